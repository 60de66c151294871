"""Small models of the kinds that pto is for, with odd sizes: tails everywhere.

make(FOLDER) writes FOLDER/NAME/model.onnx and test_data_set_0 for each; weights
and inputs are seeded, outputs are onnxruntime's.
"""

import os
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "scripts", "lib"))
import testdata  # noqa: E402


class Net:
    """A graph under construction: each method adds a node, gives its output."""

    def __init__(self, seed):
        self.nodes, self.weights = [], []
        self.rng = np.random.default_rng(seed)

    def node(self, op, inputs, **attributes):
        name = f"{op.lower()}{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], name=name, **attributes))
        return name

    def constant(self, array):
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def weight(self, *shape):
        """Scaled so that values stay around one from layer to layer."""
        fan_in = int(np.prod(shape[1:])) if len(shape) > 1 else 16
        scale = np.sqrt(2 / fan_in)
        return self.constant((self.rng.standard_normal(shape) * scale).astype(np.float32))

    def positive(self, *shape):
        return self.constant(self.rng.uniform(0.5, 1.5, shape).astype(np.float32))

    def conv(self, x, cin, cout, k, stride=1, pads=None, group=1, dilation=1, bias=True):
        reach = dilation * (k - 1) // 2
        inputs = [x, self.weight(cout, cin // group, k, k)] + ([self.weight(cout)] if bias else [])
        return self.node(
            "Conv", inputs, kernel_shape=[k, k], strides=[stride] * 2, group=group,
            dilations=[dilation] * 2, pads=pads or [reach] * 4,
        )

    def norm(self, x, channels):
        return self.node(
            "BatchNormalization",
            [x, self.positive(channels), self.weight(channels), self.weight(channels),
             self.positive(channels)],
        )

    def dense(self, x, n_in, n_out):
        return self.node("Gemm", [x, self.weight(n_out, n_in), self.weight(n_out)], transB=1)

    def ints(self, *values):
        return self.constant(np.array(values, np.int64))

    def linear(self, x, n_in, n_out):
        return self.node("Add", [self.node("MatMul", [x, self.weight(n_in, n_out)]), self.weight(n_out)])

    def layer_norm(self, x, width):
        return self.node("LayerNormalization", [x, self.positive(width), self.weight(width)], axis=-1)

    def gelu(self, x):
        gate = self.node("Erf", [self.node("Mul", [x, self.constant(np.float32(0.5**0.5))])])
        half = self.node("Mul", [x, self.constant(np.float32(0.5))])
        return self.node("Mul", [half, self.node("Add", [gate, self.constant(np.float32(1))])])

    def attention(self, x, heads, size):
        """x: batch x length x (heads * size); so is the result."""
        width = heads * size

        def project(perm):
            parts = self.node("Reshape", [self.linear(x, width, width), self.ints(0, 0, heads, size)])
            return self.node("Transpose", [parts], perm=perm)

        q, k, v = project([0, 2, 1, 3]), project([0, 2, 3, 1]), project([0, 2, 1, 3])
        scores = self.node("Mul", [self.node("MatMul", [q, k]), self.constant(np.float32(size**-0.5))])
        mixed = self.node("MatMul", [self.node("Softmax", [scores], axis=-1), v])
        mixed = self.node("Transpose", [mixed], perm=[0, 2, 1, 3])
        return self.linear(self.node("Reshape", [mixed, self.ints(0, 0, width)]), width, width)

    def model(self, inputs, output):
        """`inputs`: name to shape; a string is a dynamic dim."""
        graph = helper.make_graph(
            self.nodes,
            "net",
            [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in inputs.items()],
            [onnx.ValueInfoProto(name=output)],
            self.weights,
        )
        graph.output[0].type.tensor_type.elem_type = TensorProto.FLOAT
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
        model.ir_version = 8
        return onnx.shape_inference.infer_shapes(model, check_type=True)


def mlp():
    net, sizes = Net(1), [37, 65, 129, 10]
    x = "x"
    for n_in, n_out in zip(sizes, sizes[1:]):
        x = net.dense(x, n_in, n_out)
        x = net.node("Relu", [x]) if n_out != 10 else net.node("Softmax", [x], axis=-1)
    return net.model({"x": ["batch", 37]}, x), {"x": [5, 37]}


def residual():
    net = Net(2)
    x = net.node("Relu", [net.norm(net.conv("x", 3, 24, 7, stride=2, bias=False), 24)])
    x = net.node("MaxPool", [x], kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    channels = 24
    for out, stride in ((24, 1), (40, 2)):
        y = net.node("Relu", [net.norm(net.conv(x, channels, out, 3, stride, bias=False), out)])
        y = net.norm(net.conv(y, out, out, 3, bias=False), out)
        if stride != 1:
            x = net.norm(net.conv(x, channels, out, 1, stride, pads=[0] * 4, bias=False), out)
        x, channels = net.node("Relu", [net.node("Add", [y, x])]), out
    x = net.node("Flatten", [net.node("GlobalAveragePool", [x])])
    return net.model({"x": [1, 3, 45, 45]}, net.dense(x, 40, 10)), {}


def mobile():
    """Depthwise and grouped, squeeze and excite, uneven pads, many activations."""
    net = Net(3)
    x = net.node("HardSwish", [net.conv("x", 3, 16, 3, stride=2, pads=[0, 0, 1, 1])])
    # An inverted residual.
    y = net.node("HardSwish", [net.norm(net.conv(x, 16, 48, 1, bias=False), 48)])
    y = net.conv(y, 48, 48, 5, group=48)
    s = net.node("GlobalAveragePool", [y])
    s = net.node("Relu", [net.conv(s, 48, 12, 1)])
    s = net.node("HardSigmoid", [net.conv(s, 12, 48, 1)], alpha=1 / 6, beta=0.5)
    y = net.conv(net.node("Mul", [y, s]), 48, 16, 1)
    x = net.node("Add", [x, y])
    x = net.conv(x, 16, 16, 3, stride=2, group=16, dilation=2)
    x = net.node("Clip", [x, net.constant(np.float32(0)), net.constant(np.float32(6))])
    x = net.conv(x, 16, 32, 3, group=4)
    x = net.node("Mul", [x, net.node("Sigmoid", [x])])
    x = net.node("AveragePool", [x], kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4,
                 count_include_pad=0)
    x = net.node("Concat", [x, net.node("Pad", [net.conv(x, 32, 20, 3, pads=[0] * 4),
                 net.constant(np.array([0, 0, 1, 1, 0, 0, 1, 1]))])], axis=1)
    x = net.node("ReduceMean", [x], axes=[2, 3], keepdims=0)
    return net.model({"x": [1, 3, 37, 41]}, net.dense(x, 52, 7)), {}


def batch():
    net = Net(4)
    x = net.node("Relu", [net.conv("x", 5, 18, 3)])
    x = net.node("MaxPool", [x], kernel_shape=[2, 2], strides=[2, 2])
    x = net.node("LeakyRelu", [net.conv(x, 18, 33, 3, pads=[0] * 4)], alpha=0.1)
    x = net.node("Flatten", [net.node("GlobalMaxPool", [x])])
    return net.model({"x": ["batch", 5, 19, 17]}, net.dense(x, 33, 4)), {"x": [3, 5, 19, 17]}


def encoder():
    """Patches after a class token, one block of attention, the token classified."""
    net, heads, size = Net(6), 3, 8
    width, patches = heads * size, 7 * 6
    weights = [net.weight(width, 3, 4, 4), net.weight(width)]
    x = net.node("Conv", ["x", *weights], kernel_shape=[4, 4], strides=[4, 4])
    x = net.node("Transpose", [net.node("Reshape", [x, net.ints(0, width, -1)])], perm=[0, 2, 1])
    x = net.node("Concat", [net.weight(1, 1, width), x], axis=1)
    x = net.node("Add", [x, net.weight(1, 1 + patches, width)])
    x = net.node("Add", [x, net.attention(net.layer_norm(x, width), heads, size)])
    y = net.gelu(net.linear(net.layer_norm(x, width), width, 4 * width))
    x = net.node("Add", [x, net.linear(y, 4 * width, width)])
    x = net.node("Gather", [net.layer_norm(x, width), net.constant(np.int64(0))], axis=1)
    return net.model({"x": [1, 3, 28, 24]}, net.dense(x, width, 10)), {}


MODELS = {"mlp": mlp, "residual": residual, "mobile": mobile, "batch": batch, "encoder": encoder}


def make(folder):
    for name, build in MODELS.items():
        model, shapes = build()
        os.makedirs(os.path.join(folder, name))
        path = os.path.join(folder, name, "model.onnx")
        onnx.save(model, path)
        testdata.make(path, os.path.join(folder, name, "test_data_set_0"), shapes)
