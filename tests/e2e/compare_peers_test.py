#!/usr/bin/env python3
"""scripts/compare-peers: a model and a matrix product, all contestants, one
table, figures with their evidence; a wrong artifact is not timed."""

import json
import os
import subprocess

import small_models
import testdata

SRC = os.environ["PTO_SRC"]
env = dict(os.environ, PTO_BUILD=os.path.dirname(os.environ["PTO_BIN"]))


def compare(*arguments):
    command = [os.path.join(SRC, "scripts/compare-peers"), *arguments]
    print("+", *command, flush=True)
    done = subprocess.run(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    print(done.stdout, flush=True)
    return done


small_models.make("models")
done = compare("models/batch", "--gemm", "96x64x80", "--threads=1", "--seconds=0.4", "--rounds=2",
               "--peers=ort", "--budget=3s", "--json=compare.json")
assert done.returncode == 0, done.returncode
with open("compare.json") as file:
    results = json.load(file)["results"]
assert [r["model"] for r in results] == ["batch", "gemm 96x64x80"], results
for result, peer in zip(results, ("onnxruntime", "numpy (OpenBLAS)")):
    names = [c["runtime"] for c in result["contestants"]]
    assert names == ["pto, default", "pto, tuned", peer], names
    assert result["peak_gflops"] > 0 and result["flops"] > 0, result
    for contestant in result["contestants"]:
        assert len(contestant["rounds"]) == 2, contestant
        assert contestant["evidence"] == "measured", contestant
        assert contestant["median_ms"] >= contestant["best_ms"] > 0, contestant
        assert contestant["load_s"] > 0 and contestant["peak_mb"] > 0, contestant
        assert contestant["max_rel"] is None or contestant["max_rel"] < 1e-4, contestant
assert results[1]["flops"] == 2 * 96 * 64 * 80, results[1]

# References that the artifact does not meet.
path = "models/mlp/test_data_set_0/output_0.pb"
array, name = testdata.read(path)
testdata.write(path, array * 1.01, name)
done = compare("models/mlp", "--db=none.db", "--threads=1", "--seconds=0.2", "--rounds=1", "--peers=ort")
assert done.returncode == 1 and "numbers disagree" in done.stdout, done.returncode
done = compare("models/none.onnx")
assert done.returncode == 2 and "models/none.onnx: no such file" in done.stdout
print("ok")
