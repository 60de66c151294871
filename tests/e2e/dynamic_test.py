#!/usr/bin/env python3
"""One artifact at many sizes: a convolution net with an open batch and an
attention model with open batch and length, against onnxruntime; runs with the
shapes given to pto-compile take the versions made for them."""

import json
import os
import subprocess

import onnx
import small_models
import testdata

BIN = os.environ["PTO_BIN"]


def run(*command, code=0):
    print("+", *command, flush=True)
    command = [os.path.join(BIN, command[0]), *command[1:]]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != code:
        raise SystemExit(f"exit {done.returncode}, not {code}:\n{done.stdout}")
    return done.stdout


def report(path):
    with open(path) as file:
        return json.load(file)


def attention():
    net, heads, size = small_models.Net(5), 3, 8
    width = heads * size
    y = net.layer_norm(net.node("Add", ["x", net.attention("x", heads, size)]), width)
    y = net.node("Add", [y, net.linear(net.gelu(net.linear(y, width, 50)), 50, width)])
    return net.model({"x": ["batch", "length", width]}, y)


def check(artifact, model, shape, version):
    text = "x".join(map(str, shape))
    folder = f"{model[:-5]}-{text}"
    if not os.path.isdir(folder):
        testdata.make(model, folder, {"x": shape})
    run("pto-run", artifact, "--check", folder, "--rel=1e-5", "--json=run.json")
    assert report("run.json")["version"] == version, report("run.json")


conv, _ = small_models.batch()
onnx.save(conv, "conv.onnx")
onnx.save(attention(), "attention.onnx")
CASES = {
    "conv.onnx": [[1, 5, 19, 17], [3, 5, 19, 17], [8, 5, 19, 17]],
    "attention.onnx": [[2, 7, 24], [1, 1, 24], [2, 64, 24], [3, 33, 24]],
}
for model, shapes in CASES.items():
    # Nothing given: one version, for all sizes.
    run("pto-compile", model, "--db=none", "-o", "any.so", "--json=compile.json")
    assert [v["shape"] for v in report("compile.json")["versions"]] == ["general"]
    scalar = [k["name"] for k in report("compile.json")["kernels"] if k["source"] == "none"]
    assert not scalar, scalar
    for shape in shapes:
        check("any.so", model, shape, "general")

    # Two sets: three versions, one copy of the weights.
    texts = ["x=" + "x".join(map(str, s)) for s in shapes[:2]]
    flags = [f"--shape={t}" for t in texts]
    run("pto-compile", model, "--db=none", *flags, "-o", "some.so", "--json=compile.json")
    versions = report("compile.json")["versions"]
    assert [v["shape"] for v in versions] == [*texts, "general"], versions
    assert versions[0]["added_weights_bytes"] > 0, versions
    assert versions[2]["added_weights_bytes"] == 0, versions
    for shape in shapes:
        label = "x=" + "x".join(map(str, shape))
        check("some.so", model, shape, label if label in texts else "general")
    run("pto-run", "some.so", "--bench=0.05", "--json=run.json")
    assert report("run.json")["version"] == texts[0], report("run.json")

    # --static: the shapes given and no others.
    run("pto-compile", model, "--db=none", "--static", *flags, "-o", "static.so")
    check("static.so", model, shapes[0], texts[0])
    check("static.so", model, shapes[1], texts[1])
    folder = f"{model[:-5]}-" + "x".join(map(str, shapes[2]))
    message = run("pto-run", "static.so", "--check", folder, code=2)
    assert f"shape is {'x'.join(map(str, shapes[2]))}" in message, message
    assert f"was compiled for {texts[0][2:]} and other shapes" in message, message
