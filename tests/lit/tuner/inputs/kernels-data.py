"""Data sets for insert.mlir and dynamic.mlir."""
import os

import numpy as np
from onnx import numpy_helper


def write(folder, inputs, outputs):
    os.makedirs(folder, exist_ok=True)
    for kind, arrays in (("input", inputs), ("output", outputs)):
        for j, array in enumerate(arrays):
            with open(f"{folder}/{kind}_{j}.pb", "wb") as out:
                out.write(numpy_helper.from_array(array).SerializeToString())


w = np.arange(1, 13, dtype=np.float32).reshape(3, 4)
x = np.full((1, 4), -1, np.float32)
y = w.copy()
y[1] = -1
write("insert", [x], [y, w])
for n in (0, 1, 3, 1000):
    x = np.arange(4 * n, dtype=np.float32).reshape(n, 4) + 1
    write(f"dynamic{n}", [x, np.zeros(n, np.float32)], [16 * x.reshape(-1), 2 * x])
