"""Test data in the layout of ONNX's own tests: input_J.pb, output_J.pb.

Inputs are seeded and hold no zeros (a zero hides faults); references are
onnxruntime's, with one thread.
"""

import os

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper

INDEX_LIMIT = 32  # For integer inputs of unknown use.


def read(path):
    tensor = onnx.TensorProto()
    with open(path, "rb") as file:
        tensor.ParseFromString(file.read())
    return numpy_helper.to_array(tensor), tensor.name


def write(path, array, name):
    with open(path, "wb") as file:
        file.write(numpy_helper.from_array(np.asarray(array), name).SerializeToString())


def load_set(folder, kind):
    """Arrays of input_J.pb or output_J.pb, in order."""
    arrays = []
    while os.path.exists(os.path.join(folder, f"{kind}_{len(arrays)}.pb")):
        arrays.append(read(os.path.join(folder, f"{kind}_{len(arrays)}.pb"))[0])
    return arrays


def graph_inputs(model):
    """The inputs that a caller must give."""
    constants = {i.name for i in model.graph.initializer}
    return [i for i in model.graph.input if i.name not in constants]


def dynamic_shapes(model, arrays):
    """--shape arguments for the inputs with dynamic dims, sizes from `arrays`."""
    arguments = []
    for value, array in zip(graph_inputs(model), arrays):
        if any(not d.HasField("dim_value") for d in value.type.tensor_type.shape.dim):
            arguments += ["--shape", f"{value.name}={'x'.join(map(str, array.shape))}"]
    return arguments


def index_limit(graph, name):
    """Below what an integer input must stay: tables that it looks up in."""
    sizes = {i.name: list(i.dims) for i in graph.initializer}
    limit = None
    for node in graph.node:
        if name not in node.input:
            continue
        if node.op_type in ("Cast", "Reshape", "Unsqueeze", "Squeeze", "Identity"):
            found = index_limit(graph, node.output[0])
        elif node.op_type == "Gather" and node.input[1] == name and node.input[0] in sizes:
            axis = next((a.i for a in node.attribute if a.name == "axis"), 0)
            found = sizes[node.input[0]][axis]
        else:
            continue
        if found:
            limit = min(limit or found, found)
    return limit


def make_input(rng, graph, value, shapes):
    tensor = value.type.tensor_type
    shape = shapes.get(value.name) or [d.dim_value or 1 for d in tensor.shape.dim]
    dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)
    if np.issubdtype(dtype, np.floating):
        size = rng.uniform(0.05, 1, shape)
        return (size * rng.choice([-1, 1], shape)).astype(dtype)
    if dtype == np.bool_:
        return rng.integers(0, 2, shape).astype(dtype)
    if "mask" in value.name:
        return np.ones(shape, dtype)
    limit = index_limit(graph, value.name) or INDEX_LIMIT
    return rng.integers(1 if limit > 1 else 0, limit, shape).astype(dtype)


def make(path, folder, shapes=None, seed=0):
    """Writes a data set for the model at `path`."""
    model = onnx.load(path, load_external_data=False)
    rng = np.random.default_rng(seed)
    feeds = {
        value.name: make_input(rng, model.graph, value, shapes or {})
        for value in graph_inputs(model)
    }
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    os.makedirs(folder, exist_ok=True)
    for j, (name, array) in enumerate(feeds.items()):
        write(os.path.join(folder, f"input_{j}.pb"), array, name)
    for j, (info, array) in enumerate(zip(session.get_outputs(), session.run(None, feeds))):
        write(os.path.join(folder, f"output_{j}.pb"), array, info.name)
