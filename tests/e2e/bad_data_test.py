#!/usr/bin/env python3
"""What comes with the data: indices out of bounds and sizes that do not fit each
other end a run with a status that names the node, never with a wild access; a
right run of the same library agrees with onnxruntime."""

import os
import shutil
import subprocess

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

F, I64, I32 = TensorProto.FLOAT, TensorProto.INT64, TensorProto.INT32
rng = np.random.default_rng(0)


def f(*shape):
    return rng.standard_normal(shape).astype(np.float32)


def i(values, dtype=np.int64):
    return np.array(values, dtype)


def constant(name, array):
    return numpy_helper.from_array(array, name)


def node(op, inputs, **attributes):
    return helper.make_node(op, inputs.split(), ["y"], name="the_node", **attributes)


# A dynamic dim is a name.
CASES = {
    "gather": (
        [node("Gather", "x i")],
        {"x": (F, [5, 3]), "i": (I64, [4])},
        [{"x": f(5, 3), "i": i([0, -5, 4, -1])}],
        [
            ({"x": f(5, 3), "i": i([0, 5, 1, 1])}, "index 5 is out of bounds"),
            ({"x": f(5, 3), "i": i([0, 1, 1, -6])}, "index -6 is out of bounds"),
            ({"x": f(5, 3), "i": i([0, 1, 1, -(2**63)])}, "index -9223372036854775808"),
            ({"x": f(5, 3), "i": i([0, 1, 2**62, 1])}, "index 4611686018427387904"),
        ],
    ),
    "gather_dynamic": (
        [node("Gather", "x i", axis=1)],
        {"x": (F, [3, "n"]), "i": (I32, ["k"])},
        [{"x": f(3, 5), "i": i([0, -5, 4], np.int32)}, {"x": f(3, 1), "i": i([0], np.int32)}],
        [
            ({"x": f(3, 5), "i": i([7], np.int32)}, "index 7 is out of bounds"),
            ({"x": f(3, 0), "i": i([0], np.int32)}, "indices into an empty dim"),
            ({"x": f(3, 1000), "i": i([-1001] * 300, np.int32)}, "index -1001 is out of bounds"),
        ],
    ),
    "gather_scalar": (
        [node("Gather", "x i")],
        {"x": (F, [5, 3]), "i": (I64, [])},
        [{"x": f(5, 3), "i": i(-2)}],
        [({"x": f(5, 3), "i": i(5)}, "index 5 is out of bounds")],
    ),
    "embedding": (
        [
            helper.make_node("Gather", ["w", "i"], ["e"], name="the_node"),
            helper.make_node("Mul", ["e", "e"], ["f"]),
            helper.make_node("MatMul", ["f", "m"], ["y"]),
        ],
        {"i": (I64, ["batch", "sequence"])},
        [{"i": rng.integers(0, 100, (2, 7))}, {"i": rng.integers(-100, 100, (1, 33))}],
        [({"i": np.full((2, 3), 100)}, "index 100 is out of bounds")],
        {"w": f(100, 16), "m": f(16, 8)},
    ),
    "gather_elements": (
        [node("GatherElements", "x i", axis=1)],
        {"x": (F, ["n", 3]), "i": (I64, ["m", 2])},
        [{"x": f(5, 3), "i": i([[0, 2], [-3, 1]])}],
        [
            ({"x": f(5, 3), "i": i([[0, 2], [-4, 1]])}, "index -4 is out of bounds"),
            ({"x": f(1, 3), "i": i([[0, 2], [-3, 1]])}, "indices are larger than the data in dim 0"),
        ],
    ),
    "gather_nd": (
        [node("GatherND", "x i")],
        {"x": (F, [5, 3]), "i": (I64, [2, 2])},
        [{"x": f(5, 3), "i": i([[4, 2], [-5, -3]])}],
        [
            ({"x": f(5, 3), "i": i([[4, 2], [2, 3]])}, "index 3 is out of bounds"),
            ({"x": f(5, 3), "i": i([[4, 2], [-6, 2]])}, "index -6 is out of bounds"),
        ],
    ),
    "scatter_nd": (
        [node("ScatterND", "x i u")],
        {"x": (F, [5, 3]), "i": (I64, ["k", 1]), "u": (F, ["m", 3])},
        [{"x": f(5, 3), "i": i([[1], [-1]]), "u": f(2, 3)}],
        [
            ({"x": f(5, 3), "i": i([[1], [5]]), "u": f(2, 3)}, "index 5 is out of bounds"),
            ({"x": f(5, 3), "i": i([[1], [4]]), "u": f(1, 3)}, "a reshape changes the number of elements"),
        ],
    ),
    "scatter_elements": (
        [node("ScatterElements", "x i u")],
        {"x": (F, [5, 3]), "i": (I64, [2, "k"]), "u": (F, [2, "m"])},
        [{"x": f(5, 3), "i": i([[1, 0, 2], [-1, 1, 1]]), "u": f(2, 3)}],
        [
            ({"x": f(5, 3), "i": i([[1, 0, 2], [-6, 1, 1]]), "u": f(2, 3)}, "index -6 is out of bounds"),
            ({"x": f(5, 3), "i": i([[1, 0, 2], [-1, 1, 1]]), "u": f(2, 2)}, "indices and updates differ in dim 1"),
        ],
    ),
    "add": (
        [node("Add", "x z")],
        {"x": (F, ["n", 3]), "z": (F, ["m", 3])},
        [{"x": f(5, 3), "z": f(5, 3)}],
        [
            ({"x": f(5, 3), "z": f(4, 3)}, "sizes of its inputs do not fit each other"),
            ({"x": f(4, 3), "z": f(5000, 3)}, "sizes of its inputs do not fit each other"),
        ],
    ),
    "matmul": (
        [node("MatMul", "x z")],
        {"x": (F, [4, "n"]), "z": (F, ["m", 3])},
        [{"x": f(4, 7), "z": f(7, 3)}],
        [({"x": f(4, 7), "z": f(6, 3)}, "sizes of its inputs do not fit each other")],
    ),
    "concat": (
        [node("Concat", "x z", axis=1)],
        {"x": (F, ["n", 3]), "z": (F, ["m", 2])},
        [{"x": f(4, 3), "z": f(4, 2)}],
        [({"x": f(4, 3), "z": f(3, 2)}, "inputs differ in dim 0")],
    ),
    "reshape": (
        [node("Reshape", "x shape")],
        {"x": (F, ["n", 3])},
        [{"x": f(4, 3)}],
        [({"x": f(5, 3)}, "a reshape changes the number of elements")],
        {"shape": i([2, -1])},
    ),
    "split": (
        [helper.make_node("Split", ["x", "parts"], ["y", "z"], name="the_node")],
        {"x": (F, ["n", 3])},
        [{"x": f(5, 3)}],
        [({"x": f(4, 3)}, "node 'the_node'"), ({"x": f(0, 3)}, "node 'the_node'")],
        {"parts": i([2, 3])},
    ),
}


def save(name, nodes, inputs, weights):
    outputs = [o for o in nodes[-1].output]
    graph = helper.make_graph(
        nodes,
        name,
        [helper.make_tensor_value_info(n, t, s) for n, (t, s) in inputs.items()],
        [helper.make_tensor_value_info(o, F, ["?"]) for o in outputs],
        [constant(n, a) for n, a in weights.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    # The outputs' ranks are onnx's to find.
    for output in model.graph.output:
        output.type.tensor_type.ClearField("shape")
    shapes = onnx.shape_inference.infer_shapes(model).graph.output
    for output, inferred in zip(model.graph.output, shapes):
        output.CopyFrom(inferred)
    onnx.save(model, name + ".onnx")
    return model


def write(folder, inputs, outputs=()):
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    for kind, arrays in (("input", inputs.values()), ("output", outputs)):
        for k, array in enumerate(arrays):
            with open(f"{folder}/{kind}_{k}.pb", "wb") as out:
                out.write(numpy_helper.from_array(np.asarray(array)).SerializeToString())


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    return done.returncode, done.stderr + done.stdout


problems = 0


def check(condition, what, text=""):
    global problems
    problems += not condition
    print(("ok: " if condition else "FAILED: ") + what + ("" if condition else "\n" + text))


for name, (nodes, inputs, good, bad, *weights) in CASES.items():
    weights = weights[0] if weights else {}
    model = save(name, nodes, inputs, weights)
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    for level in ("-O0", "-O2"):
        code, text = run(
            "pto-compile", name + ".onnx", "--db=none", level, "-o", name + ".so"
        )
        check(code == 0, f"{name} {level} compiles", text)
        if code:
            continue
        for values in good:
            write("data", values, session.run(None, values))
            code, text = run("pto-run", name + ".so", "--check", "data")
            check(code == 0, f"{name} {level}: right", text)
        for values, message in bad:
            write("data", values)
            code, text = run("pto-run", name + ".so", "--data", "data", "--bench=0")
            check(
                code == 2 and message in text and "the_node" in text,
                f"{name} {level}: exit {code}, {message}",
                text,
            )
raise SystemExit(problems != 0)
