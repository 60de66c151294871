#!/usr/bin/env python3
"""Small MLP and convolution nets, untuned and tuned, agree with onnxruntime; a
tenth of the usual tolerance."""

import os
import sys

os.execv(
    sys.executable,
    [sys.executable, os.path.join(os.environ["PTO_SRC"], "tests/e2e/models"), "--rel=1e-5"],
)
