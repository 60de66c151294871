#!/usr/bin/env python3
"""Scripts of the user's: a good one is searched and can win beside a bad one; a
script can be meant for one kernel. hostile_schedules_test has the bad ones."""

import json
import os
import sqlite3
import subprocess

from product_kernel import KERNEL

BIN = os.environ["PTO_BIN"]
SCRIPT = """
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%%m: !transform.any_op) {
    %%mm = transform.structured.match attributes {pto.anchor} in %%m : (!transform.any_op) -> !transform.any_op
%s
    transform.yield
  }
}
"""
OP = "!transform.any_op"
CASES = {
    # Has a knob with three values.
    "good": (
        f"""    %t = transform.tune.knob<"tile"> options = [4, 8, 12] -> !transform.param<i64>
    transform.structured.tile_using_for %mm tile_sizes [%t, %t] : ({OP}, !transform.param<i64>, !transform.param<i64>) -> ({OP}, {OP}, {OP})""",
        "ok",
    ),
    # The sum starts at one.
    "wrong": (
        f"""    %c = transform.structured.match ops{{["arith.constant"]}} in %m : ({OP}) -> {OP}
    %v = transform.param.constant 1.0 : f32 -> !transform.any_param
    transform.annotate %c "value" = %v : {OP}, !transform.any_param""",
        "wrong-result",
    ),
}


def check(condition, message):
    if not condition:
        raise SystemExit("FAILED: " + message)
    print("ok:", message)


with open("kernel.mlir", "w") as f:
    f.write(KERNEL)
command = [BIN + "/pto-tune", "kernel.mlir", "--db=t.db", "--threads=1", "--budget=100s"]
command += ["--trials=4", "--json=report.json"]
for name, (body, _) in CASES.items():
    with open(name + ".mlir", "w") as f:
        f.write(SCRIPT % body)
    command.append(f"--schedule={name}.mlir")
done = subprocess.run(command, capture_output=True, text=True)
check(done.returncode == 0, "the run ends well" if not done.returncode else done.stderr)

db = sqlite3.connect("t.db")
for name, (_, expected) in CASES.items():
    rows = db.execute(
        "select t.outcome, t.message, t.knobs from trial t join schedule s on"
        " s.id = t.schedule where s.name = ? order by t.id",
        (name + ".mlir",),
    ).fetchall()
    check(rows, f"{name}.mlir was tried")
    check(
        rows[0][0] in expected.split("|"), f"{name}.mlir: {rows[0][0]} {rows[0][1][:80]!r}"
    )
    check(rows[0][0] == "ok" or rows[0][1], f"{name}.mlir: the message says why")
report = json.load(open("report.json"))
check(report["kernels"][0]["tuned_ms"] > 0, "the kernel has a winner")
check(sum(report["trials"].values()) >= len(CASES), "the report counts the outcomes")

# Its knob is searched when there is room.
os.remove("t.db")
done = subprocess.run(
    [BIN + "/pto-tune", "kernel.mlir", "--db=t.db", "--threads=1", "--budget=60s"]
    + ["--schedule=good.mlir:kernel", "--trials=300"],
    capture_output=True,
    text=True,
)
check(done.returncode == 0, "the second run ends well" if not done.returncode else done.stderr)
knobs = sqlite3.connect("t.db").execute(
    "select distinct t.knobs from trial t join schedule s on s.id = t.schedule"
    " where s.name = 'good.mlir'"
).fetchall()
check(len(knobs) == 3, f"all values of the knob were tried: {knobs}")

done = subprocess.run(
    [BIN + "/pto-tune", "kernel.mlir", "--db=t.db", "--schedule=good.mlir:conv"],
    capture_output=True,
    text=True,
)
check(done.returncode == 2 and "fits none" in done.stderr, "a script for no kernel is bad usage")
