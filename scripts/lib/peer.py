#!/usr/bin/env python3
"""Times a model in another runtime, in a process of its own.

  peer.py {ort|openvino} MODEL.onnx --data DIR --threads N --seconds S
  peer.py numpy MxNxK --threads N --seconds S

Prints a line of JSON when it is ready (version; max_rel, the largest error
against DIR's output_J.pb over the largest reference; load_s, the time that
loading took; before_mb, the memory of the process before), then one for each
line on stdin, after timing for S seconds: min_ms, median_ms, runs. numpy
multiplies f32 matrices with its BLAS (OpenBLAS).
"""

import argparse
import json
import os
import sys
import time

parser = argparse.ArgumentParser(
    description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
)
parser.add_argument("peer", choices=["ort", "openvino", "numpy"])
parser.add_argument("model")
parser.add_argument("--data")
parser.add_argument("--threads", type=int, required=True)
parser.add_argument("--seconds", type=float, default=3)
args = parser.parse_args()
# Read once, when the libraries start.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[name] = str(args.threads)
# Left by others, these would make OpenBLAS choose badly.
for name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
    os.environ.pop(name, None)

import numpy as np  # noqa: E402

MAX_RUNS = 5000


def load_ort():
    import onnxruntime
    import testdata

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = args.threads
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(
        args.model, options, providers=["CPUExecutionProvider"]
    )
    names = [i.name for i in session.get_inputs()]
    feeds = dict(zip(names, testdata.load_set(args.data, "input")))
    return lambda: session.run(None, feeds), onnxruntime.__version__


def load_openvino():
    import openvino
    import testdata

    arrays = testdata.load_set(args.data, "input")
    core = openvino.Core()
    model = core.read_model(args.model)
    model.reshape({i: list(a.shape) for i, a in zip(model.inputs, arrays)})
    compiled = core.compile_model(
        model,
        "CPU",
        {
            "INFERENCE_NUM_THREADS": args.threads,
            "PERFORMANCE_HINT": "LATENCY",
            # Its default is bf16 where the CPU has it.
            "INFERENCE_PRECISION_HINT": "f32",
        },
    )
    request = compiled.create_infer_request()
    feeds = dict(enumerate(arrays))

    def run():
        outputs = request.infer(feeds, share_inputs=True, share_outputs=True)
        return [outputs[i] for i in range(len(outputs))]

    return run, openvino.__version__.split("-")[0]


def load_numpy():
    m, n, k = map(int, args.model.split("x"))
    rng = np.random.default_rng(0)
    a = rng.standard_normal((m, k), dtype=np.float32)
    b = rng.standard_normal((k, n), dtype=np.float32)
    c = np.empty((m, n), np.float32)
    return lambda: [np.matmul(a, b, out=c)], np.__version__


def max_rel(outputs):
    """None where there is nothing to compare with."""
    if not args.data:
        return None
    import testdata

    worst = 0.0
    for got, want in zip(outputs, testdata.load_set(args.data, "output")):
        if want.size == 0:
            continue
        want = want.astype(np.float64)
        error = np.abs(got.astype(np.float64) - want).max()
        worst = max(worst, float(error / (np.abs(want).max() or 1)))
    return worst


def memory_mb(field):
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith(field)) / 1e3


def emit(figures):
    json.dump(figures, sys.stdout)
    print(flush=True)


if args.data:
    import testdata  # noqa: F401 - what the interpreter needs is no memory of the peer's.
before_mb, start = memory_mb("VmRSS:"), time.perf_counter()
run, version = {"ort": load_ort, "openvino": load_openvino, "numpy": load_numpy}[args.peer]()
load_s = time.perf_counter() - start
error = max_rel(run())
emit({"version": version, "max_rel": error, "load_s": load_s, "before_mb": before_mb})
for _ in sys.stdin:
    for _ in range(2):
        run()
    times = []
    start = time.perf_counter()
    while not times or (time.perf_counter() - start < args.seconds and len(times) < MAX_RUNS):
        before = time.perf_counter()
        run()
        times.append((time.perf_counter() - before) * 1e3)
    emit({"min_ms": min(times), "median_ms": float(np.median(times)), "runs": len(times)})
