"""Data sets for small.mlir, right and wrong in one way each."""
import json
import os

import numpy as np
from onnx import numpy_helper

W = np.array([[1, 0, 0, 1], [0, 1, 0, 1], [0, 0, -1, 1]], np.float32)
X = np.array([[1, 2, 3], [4, 5, -6]], np.float32)
K = np.arange(4, dtype=np.int32)
C = np.array([2.5, -2.5], np.float32)


def write(folder, inputs, outputs):
    os.makedirs(folder, exist_ok=True)
    for kind, arrays in (("input", inputs), ("output", outputs)):
        for j, array in enumerate(arrays):
            with open(f"{folder}/{kind}_{j}.pb", "wb") as out:
                out.write(numpy_helper.from_array(array).SerializeToString())


def model(x):
    return np.maximum(x @ W, 0)


Y = model(X)
write("right", [X, K], [Y, K, C])
nan = X.copy()
nan[0, 1] = np.nan
y_nan = np.where(np.isnan(nan @ W), np.nan, model(nan)).astype(np.float32)
write("nan", [nan, K], [y_nan, K, C])
write("nan-wrong", [nan, K], [Y, K, C])
off = Y.copy()
off[0, 0] += 1e-3 * np.abs(Y).max()
for folder in ("off", "loose", "parent/data"):
    write(folder, [X, K], [off, K, C])
for path in ("loose/tol.json", "parent/tol.json"):
    with open(path, "w") as out:
        json.dump({"rtol": 1e-2, "atol": 1e-2}, out)
k = K.copy()
k[2] += 1
write("integer", [X, K], [Y, k, C])
write("shape", [X, K], [Y.reshape(4, 2), K, C])
write("few", [X], [Y, K, C])
write("cut", [X, K], [Y, K, C])
with open("cut/input_0.pb", "r+b") as out:
    out.truncate(20)
