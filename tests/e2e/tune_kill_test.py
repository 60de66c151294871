#!/usr/bin/env python3
"""kill -9 and Ctrl-C in the middle of a tuning run: no worker stays, nothing
finished is lost or made again, and the database is clean."""

import os
import signal
import sqlite3
import subprocess
import time

BIN = os.environ["PTO_BIN"]
GEMM = """
func.func @main(%a: tensor<96x128xf32>, %b: tensor<128x160xf32>) -> tensor<96x160xf32> {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<96x160xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<96x160xf32>) -> tensor<96x160xf32>
  %c = linalg.matmul ins(%a, %b : tensor<96x128xf32>, tensor<128x160xf32>) outs(%f : tensor<96x160xf32>) -> tensor<96x160xf32>
  return %c : tensor<96x160xf32>
}
"""
COMMAND = [BIN + "/pto-tune", "gemm.mlir", "--db=t.db", "--threads=1", "--budget=90s"]


def start(*more):
    log = open("log.txt", "a")
    return subprocess.Popen(COMMAND + list(more), stdout=log, stderr=log)


def trials(where=""):
    db = sqlite3.connect("file:t.db?mode=ro", uri=True, timeout=10)
    try:
        return db.execute(
            "select s.hash, t.knobs, t.object_hash from trial t join schedule s"
            " on s.id = t.schedule where t.purpose != 'confirm'" + where
        ).fetchall()
    except sqlite3.OperationalError:
        return []  # Not made yet.
    finally:
        db.close()


def wait_for(count, process):
    end = time.monotonic() + 80
    while time.monotonic() < end and process.poll() is None:
        if os.path.exists("t.db") and len(trials()) >= count:
            return
        time.sleep(0.05)
    raise SystemExit(f"no {count} trials:\n" + open("log.txt").read())


def children(pid):
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            stat = open(f"/proc/{entry}/stat").read()
        except OSError:
            continue
        if int(stat.rsplit(")", 1)[1].split()[1]) == pid:
            found.append(int(entry))
    return found


def alive(pid):
    try:
        # A zombie that nobody reaps is dead.
        return open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def check(condition, message):
    if not condition:
        raise SystemExit("FAILED: " + message)
    print("ok:", message)


with open("gemm.mlir", "w") as f:
    f.write(GEMM)

# Killed without warning, in the middle.
process = start()
wait_for(6, process)
workers = children(process.pid)
check(len(workers) >= 2, f"{len(workers)} workers run")
process.kill()
process.wait()
end = time.monotonic() + 10
while any(alive(w) for w in workers) and time.monotonic() < end:
    time.sleep(0.05)
check(not any(alive(w) for w in workers), "no worker outlives its manager")
before = trials()
check(len(before) >= 6, f"{len(before)} trials are stored")

# The same command goes on.
process = start()
wait_for(len(before) + 6, process)
process.send_signal(signal.SIGINT)
stopped = time.monotonic()
check(process.wait(timeout=30) == 0, "Ctrl-C ends the run well")
print(f"stopped within {time.monotonic() - stopped:.1f} s")
after = trials()
points = [row[:2] for row in after]
check(after[: len(before)] == before, "what was stored is still there")
check(len(points) == len(set(points)), "no point was tried twice")
report = open("log.txt").read()
check("from earlier runs" in report, "the report counts the earlier trials")

# Two signals end it at once, without loss.
process = start("--seed=1")
wait_for(len(after) + 2, process)
process.send_signal(signal.SIGTERM)
process.send_signal(signal.SIGTERM)
check(process.wait(timeout=10) in (0, 130), "a second signal ends it at once")

done = subprocess.run([BIN + "/pto-db", "t.db", "check"], capture_output=True, text=True)
check(done.returncode == 0, "pto-db check: " + (done.stdout + done.stderr).strip())
records = sqlite3.connect("t.db").execute("select count(*) from record").fetchone()[0]
check(records == 1, "the best so far is a record")
