#!/usr/bin/env python3
"""A model's records, exported, run through pto-opt on their kernels and give the
scheduled kernels; pto-compile takes such a file in place of the database."""

import json
import os
import re
import subprocess

import small_models

BIN = os.environ["PTO_BIN"]


def run(*command):
    print("+", *command, flush=True)
    command = [os.path.join(BIN, command[0]), *command[1:]]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        raise SystemExit(f"exit {done.returncode}:\n{done.stdout}")
    return done.stdout


small_models.make("models")
model, data = "models/batch/model.onnx", "models/batch/test_data_set_0"
shape = ["--shape", "x=3x5x19x17", "--threads=1"]
run("pto-tune", model, *shape, "--db=t.db", "--trials=3", "--budget=2m", "--json=tune.json")
with open("tune.json") as file:
    kernels = json.load(file)["kernels"]
assert len(kernels) > 3, kernels
for index, kernel in enumerate(kernels):
    run("pto-db", "t.db", "export", kernel["key"], "-o", f"{index}.mlir")
    before = run("pto-opt", f"{index}.kernel.mlir")
    after = run("pto-opt", f"{index}.kernel.mlir", f"--pto-apply-schedule=file={index}.mlir")
    assert "func.func @kernel" in after, after
    with open(f"{index}.mlir") as file:
        script = file.read()
    # The values are in the script, and no choice is open.
    assert not re.search(r"knob<[^>]*> options", script), script
    # any/plain changes nothing, the others do.
    changed = before != after
    assert changed or kernel["schedule"] == "any/plain", kernel
    print(kernel["name"], kernel["schedule"], "changed" if changed else "unchanged")

best = max(range(len(kernels)), key=lambda i: kernels[i]["flops"])
run("pto-compile", model, *shape, "--static", "--db=none", f"--schedule={best}.mlir:{kernels[best]['name']}",
    "--json=compile.json", "-o", "model.so")
with open("compile.json") as file:
    sources = {k["name"]: k["source"] for k in json.load(file)["kernels"]}
assert sources.pop(kernels[best]["name"]) == "user", sources
assert set(sources.values()) == {"default"}, sources
run("pto-run", "model.so", "--check", data, "--rel=1e-5")

# With the database, all of them are records, and production can insist on it.
run("pto-compile", model, *shape, "--db=t.db", "--require-tuned", "-o", "tuned.so")
run("pto-run", "tuned.so", "--check", data, "--rel=1e-5")
print("ok")
