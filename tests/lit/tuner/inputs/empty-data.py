"""The data set for empty.mlir."""
import os

import numpy as np
from onnx import numpy_helper

os.makedirs("data", exist_ok=True)
arrays = {
    "input_0": np.zeros((0, 3)),
    "input_1": np.ones((3, 4)),
    "input_2": np.zeros((5, 0)),
    "output_0": np.zeros((0, 4)),
    "output_1": np.ones(5),
}
for name, array in arrays.items():
    with open(f"data/{name}.pb", "wb") as out:
        out.write(numpy_helper.from_array(array.astype(np.float32)).SerializeToString())
