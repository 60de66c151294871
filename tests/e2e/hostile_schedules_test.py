#!/usr/bin/env python3
"""Scripts that crash, hang, take all memory, compute wrong numbers, write where
they may not, print, swallow their failures: each has its outcome and a message,
none harms the run, and the record is of a schedule that works.

  what a candidate does            here          also
  crashes when it runs             crash         unit/targets/runner RunnerTest
  crashes the compiler             recursion     PoolTest (abort, stack overflow)
  hangs when it runs               hang          PoolTest
  takes all memory                 hog           PoolTest
  is too large to compile          unrolled, whole
  wrong numbers                    wrong, half   RunnerTest (modes, inputs)
  a race                           race
  writes outside                   outside       RunnerTest (either side)
  prints                           prints        PoolTest (forged answers)
  swallows a failure               swallows
  uses a dead handle               stale
  has a knob set to no option      knob
  does not parse, does not apply   unparsable, fails
"""

import json
import os
import sqlite3
import subprocess
import time

from product_kernel import KERNEL

BIN = os.environ["PTO_BIN"]
SCRIPT = """
module attributes {transform.with_named_sequence} {
  transform.named_sequence @again(%%x: !transform.any_op {transform.readonly}) {
    %s
    transform.yield
  }
  transform.named_sequence @__transform_main(%%m: !transform.any_op) {
    %%mm = transform.structured.match attributes {pto.anchor} in %%m : (!transform.any_op) -> !transform.any_op
%s
    transform.yield
  }
}
"""
OP = "!transform.any_op"


def tile(sizes, name="t"):
    loops = sum(1 for s in sizes if s)
    names = ", ".join([f"%{name}"] + [f"%{name}l{i}" for i in range(loops)])
    return (f"    {names} = transform.structured.tile_using_for %mm tile_sizes {list(sizes)} : "
            f"({OP}) -> ({', '.join([OP] * (loops + 1))})\n")


def set_constant(old, new):
    """Other bounds or steps of loops than the ones that tiling made."""
    return f"""    %c = transform.structured.match ops{{["arith.constant"]}} attributes {{value = {old} : index}} in %m : ({OP}) -> {OP}
    %v = transform.param.constant {new} : index -> !transform.any_param
    transform.annotate %c "value" = %v : {OP}, !transform.any_param
"""


def pad(sizes):
    return (f"    %p:3 = transform.structured.pad %mm pad_to_multiple_of {sizes} {{"
            "padding_values = [0.0 : f32, 0.0 : f32, 0.0 : f32], padding_dimensions = [0, 1, 2]}"
            f" : ({OP}) -> ({OP}, {OP}, {OP})")


# Name: script, outcomes, words that the message must have one of.
CASES = {
    "crash": (tile([0, 0, 8]) + set_constant(32, 1 << 40), "crashed", ["signal"]),
    "recursion": (f"    transform.include @again failures(propagate) (%m) : ({OP}) -> ()",
                  "illegal|crashed|transform-failed", ["recursi", "signal", "stack"]),
    # 4e11 operations in place of 7e4; 14 GB in place of 14 KB.
    "hang": (pad([3000, 3000, 20000]), "timeout", ["no answer within"]),
    "hog": (pad([60000, 60000, 32]), "too-large|crashed", ["memory", "signal"]),
    "unrolled": (tile([1, 1, 1])
                 + "".join(f"    transform.loop.unroll %tl{i} {{factor = {f}}} : {OP}\n"
                           for i, f in ((2, 32), (1, 48), (0, 24))),
                 "too-large|timeout", ["limit", "no answer within", "memory"]),
    "whole": (f"    transform.structured.vectorize %mm vector_sizes [24, 48, 32] : {OP}",
              "too-large|timeout|ok", [""]),
    "wrong": (f"""    %c = transform.structured.match ops{{["arith.constant"]}} in %m : ({OP}) -> {OP}
    %v = transform.param.constant 1.0 : f32 -> !transform.any_param
    transform.annotate %c "value" = %v : {OP}, !transform.any_param""", "wrong-result", ["want -"]),
    "half": (tile([8, 0, 0]) + set_constant(24, 16), "wrong-result", [""]),
    "race": (f"""    %t, %l = transform.structured.tile_using_forall %mm tile_sizes [0, 0, 8] : ({OP}) -> ({OP}, {OP})""",
             "illegal|transform-failed|wrong-result", [""]),
    "outside": (tile([8, 0, 0]) + set_constant(24, 32), "wrong-result|crashed", ["outside of its bounds", "signal"]),
    "prints": (f'    transform.print %m {{name = "noise"}} : {OP}\n' * 20, "ok", [""]),
    "swallows": (f"""    transform.sequence %m : {OP} failures(suppress) {{
    ^bb0(%r: {OP}):
      %c = transform.structured.match attributes {{pto.anchor}} in %r : ({OP}) -> {OP}
      transform.structured.vectorize %c vector_sizes [8] : {OP}
    }}""", "ok|transform-failed", [""]),
    "stale": (tile([8, 0, 0]) + f"    transform.structured.vectorize %mm : {OP}",
              "illegal|transform-failed", ["handle"]),
    "knob": (f"""    %t = transform.tune.knob<"tile"> = 24 from options = [4, 8, 12] -> !transform.param<i64>
    %u, %l = transform.structured.tile_using_for %mm tile_sizes [%t] : ({OP}, !transform.param<i64>) -> ({OP}, {OP})""",
             "illegal", ["tile"]),
    "unparsable": ("    transform.no.such.op", "illegal", ["no.such.op"]),
    "fails": (f"    transform.structured.vectorize %mm vector_sizes [8] : {OP}", "transform-failed", ["vectorize"]),
}
problems = 0


def check(condition, message, text=""):
    global problems
    problems += not condition
    print(("ok: " if condition else "FAILED: ") + message + ("" if condition else "\n" + text), flush=True)


with open("kernel.mlir", "w") as f:
    f.write(KERNEL)
command = [BIN + "/pto-tune", "kernel.mlir", "--db=t.db", "--threads=2", "--budget=300s", "--trials=1",
           "--json=report.json"]
for name, (body, _, _) in CASES.items():
    include = f"transform.include @again failures(propagate) (%x) : ({OP}) -> ()" if name == "recursion" else ""
    with open(name + ".mlir", "w") as f:
        f.write(SCRIPT % (include, body))
    command.append(f"--schedule={name}.mlir")
before = set(os.listdir("."))
start = time.monotonic()
done = subprocess.run(command, capture_output=True, text=True, timeout=600)
print(f"{time.monotonic() - start:.0f} s")
check(done.returncode == 0, "the run ends well", done.stderr)
check("noise" not in done.stdout + done.stderr, "what a script prints is not heard of", done.stderr)
new = set(os.listdir(".")) - before
check(new <= {"t.db", "t.db-wal", "t.db-shm", "report.json"}, f"nothing is left behind: {new}")

db = sqlite3.connect("t.db")
for name, (_, expected, words) in CASES.items():
    rows = db.execute(
        "select t.outcome, t.message from trial t join schedule s on s.id = t.schedule"
        " where s.name = ? order by t.id", (name + ".mlir",),
    ).fetchall()
    outcome, message = rows[0] if rows else ("not tried", "")
    check(outcome in expected.split("|"), f"{name}: {outcome}: {message[:150]!r}", f"expected {expected}")
    if outcome != "ok":
        check(message and any(w in message for w in words), f"{name}: the message says why", message)
    check("Stack dump" not in message and " #0 0x" not in message, f"{name}: no stack in the message", message)
records = db.execute(
    "select s.name from record r join schedule s on s.hash = r.schedule_hash"
    if "schedule_hash" in [c[1] for c in db.execute("pragma table_info(record)")]
    else "select s.name from record r join schedule s on s.id = r.schedule"
).fetchall()
harmless = {"prints.mlir", "swallows.mlir", "whole.mlir"}
check(len(records) == 1 and records[0][0] not in {n + ".mlir" for n in CASES} - harmless,
      f"the record is of a schedule that works: {records}")
report = json.load(open("report.json"))
check(sum(report["trials"].values()) >= len(CASES), f"the report counts them: {report['trials']}")
done = subprocess.run([BIN + "/pto-db", "t.db", "check"], capture_output=True, text=True)
check(done.returncode == 0, "the database is whole", done.stdout + done.stderr)
raise SystemExit(problems != 0)
