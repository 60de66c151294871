#!/usr/bin/env python3
"""scripts/run-cases: each form of case, right and wrong, and the last line."""

import json
import os
import shutil
import subprocess

import small_models
import testdata

SRC = os.environ["PTO_SRC"]
KERNEL = """
func.func @kernel(%a: tensor<32x16xf32>, %b: tensor<16x24xf32>, %c: tensor<32x24xf32>) -> tensor<32x24xf32> {
  %0 = linalg.matmul ins(%a, %b : tensor<32x16xf32>, tensor<16x24xf32>) outs(%c : tensor<32x24xf32>) -> tensor<32x24xf32>
  return %0 : tensor<32x24xf32>
}
"""
SCRIPT = """
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%%root: !transform.any_op) {
    %%mm = transform.structured.match ops{["linalg.matmul"]} in %%root : (!transform.any_op) -> !transform.any_op
    %%t, %%l = transform.structured.tile_using_for %%mm tile_sizes [%s] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}
"""


def write(case, name, text):
    os.makedirs(f"cases/{case}", exist_ok=True)
    with open(f"cases/{case}/{name}", "w") as file:
        file.write(text)


def kernel_case(case, tiles, expect):
    write(case, "kernel.mlir", KERNEL)
    write(case, "schedule.mlir", SCRIPT % tiles)
    write(case, "expect.json", json.dumps(expect))


def add_data(case, wrong=False):
    """The kernel's, with the destination last."""
    import numpy as np

    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(s).astype(np.float32) for s in ((32, 16), (16, 24), (32, 24))]
    folder = f"cases/{case}/test_data_set_0"
    os.makedirs(folder)
    for j, array in enumerate(arrays):
        testdata.write(f"{folder}/input_{j}.pb", array, f"a{j}")
    result = arrays[0] @ arrays[1] + arrays[2] + (1 if wrong else 0)
    testdata.write(f"{folder}/output_0.pb", result, "y")


small_models.make("small")
shutil.copytree("small/mlp", "cases/right")
write("right", "case.md", "# right\n\nTolerance: rtol=1e-4 atol=1e-5.\n")
# A second set of another size.
testdata.make("small/mlp/model.onnx", "cases/right/test_data_set_1", {"x": [2, 37]}, seed=1)
shutil.copytree("small/mlp", "cases/wrong")
array, name = testdata.read("cases/wrong/test_data_set_0/output_0.pb")
testdata.write("cases/wrong/test_data_set_0/output_0.pb", array * 1.01, name)
write("refused", "model.onnx", "rubbish")
write("refused", "expect.json", json.dumps({"error": ["REFUSED/model.onnx"], "exit": "nonzero"}))
write("silent", "model.onnx", "rubbish")
write("silent", "expect.json", json.dumps({"error": ["no such text"], "exit": "nonzero"}))
shutil.copytree("small/mlp", "cases/accepted")
write("accepted", "expect.json", json.dumps({"error": [], "exit": "nonzero"}))
shutil.copytree("small/mlp", "cases/either")
write("either", "expect.json", json.dumps({"error": [], "exit": "nonzero", "or": "values"}))
kernel_case("deep/tiled", "8", {"outcome": "ok"})
add_data("deep/tiled")
kernel_case("deep/tiled-wrong", "8", {"outcome": "ok"})
add_data("deep/tiled-wrong", wrong=True)
kernel_case("deep/counts", "8, 8, 8, 8", {"outcome": "illegal", "also": ["transform-failed"]})
kernel_case("deep/surprise", "8", {"outcome": "crashed"})

command = [os.path.join(SRC, "scripts/run-cases"), "cases", "--json=report.json"]
env = dict(os.environ, PTO_BUILD=os.path.dirname(os.environ["PTO_BIN"]))
done = subprocess.run(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
print(done.stdout)
assert done.returncode == 1, done.returncode
assert done.stdout.strip().splitlines()[-1] == "5 passed, 5 failed"
with open("report.json") as file:
    passed = {c["case"] for c in json.load(file)["cases"] if c["passed"]}
assert passed == {"right", "refused", "either", "deep/tiled", "deep/counts"}, passed

done = subprocess.run(command[:1] + ["small"], env=env, stdout=subprocess.PIPE, text=True)
assert done.returncode == 0 and done.stdout.endswith(f"\n{len(small_models.MODELS)} passed, 0 failed\n"), done.stdout
print("ok")
