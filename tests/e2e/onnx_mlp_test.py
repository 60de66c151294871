#!/usr/bin/env python3
"""A small ONNX model through pto-compile and pto-run, against onnxruntime: each
level, target and way of passing sizes that this machine can run."""

import os
import subprocess

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

rng = np.random.default_rng(1)


def weight(name, *shape):
    data = (rng.standard_normal(shape) / 8).astype(np.float32)
    return numpy_helper.from_array(data, name)


graph = helper.make_graph(
    [
        helper.make_node("Gemm", ["x", "w1", "b1"], ["h"], name="first"),
        helper.make_node("Relu", ["h"], ["r"]),
        helper.make_node("MatMul", ["r", "w2"], ["m"], name="second"),
        helper.make_node("Softmax", ["m"], ["y"], axis=-1),
    ],
    "mlp",
    [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 37])],
    [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 10])],
    [weight("w1", 37, 65), weight("b1", 65), weight("w2", 65, 10)],
)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
model.ir_version = 8
onnx.save(model, "mlp.onnx")
session = onnxruntime.InferenceSession("mlp.onnx", providers=["CPUExecutionProvider"])


def data(n):
    folder = f"data{n}"
    os.makedirs(folder, exist_ok=True)
    x = rng.standard_normal((n, 37)).astype(np.float32)
    (y,) = session.run(None, {"x": x})
    for name, array in (("input_0", x), ("output_0", y)):
        with open(f"{folder}/{name}.pb", "wb") as out:
            out.write(numpy_helper.from_array(array).SerializeToString())
    return folder


def run(*command):
    print("+", *command, flush=True)
    subprocess.run(command, check=True)


def compile_and_check(name, sizes, *flags):
    run("pto-compile", "mlp.onnx", "--db=none", "-o", name, *flags)
    for n in sizes:
        run("pto-run", name, "--check", data(n))
        run("pto-run", name, "--check", data(n), "--contexts=3", "--own-loop")


flags = open("/proc/cpuinfo").read()
compile_and_check("o2.so", [5], "--shape", "x=5x37")
compile_and_check("o0.so", [5], "--shape", "x=5x37", "-O0")
compile_and_check("one.so", [1])
compile_and_check("any.so", [1, 2, 64])
if " avx2" in flags:
    compile_and_check("v3.so", [5], "--shape", "x=5x37", "--target=cpu,arch=x86-64-v3")
if " avx512vl" in flags:
    compile_and_check("v4.so", [5], "--shape", "x=5x37", "--target=cpu,arch=x86-64-v4")
print("ok")
