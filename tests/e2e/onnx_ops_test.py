"""onnx's own operator tests through pto-compile and pto-run.

  onnx_ops_test.py               a few tests of each family, at -O0 and -O2
  onnx_ops_test.py --all         every test that the installed onnx makes
  onnx_ops_test.py NAME ...      these, e.g. test_conv_with_strides_padding

A model that pto refuses is counted apart (--all only); a wrong number, a crash
or a refusal in the short list is a failure. Tolerances are the tests' own.
"""

import json
import os
import subprocess
import sys

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.backend.test.loader import load_model_tests

SHORT = """
add_bcast and2d argmax_keepdims_example averagepool_2d_ceil averagepool_2d_pads_count_include_pad
basic_conv_with_padding batchnorm_example cast_FLOAT_to_DOUBLE clip_default_inbounds clip_example concat_2d_axis_1
conv_with_strides_and_asymmetric_padding convtranspose convtranspose_pads convtranspose_dilations depthtospace_example
dequantizelinear div_bcast einsum_batch_matmul elu erf flatten_axis2 gather_elements_1
gathernd_example_int32_batch_dim1 gather_negative_indices gelu_default_1 gemm_all_attributes globalaveragepool
group_normalization_example hardswish instancenorm_example layer_normalization_3d_axis1_epsilon leakyrelu
less_equal_bcast logsoftmax_axis_1 lrn matmul_4d matmulinteger max_example maxpool_2d_dilations maxpool_2d_same_lower
mish mod_mixed_sign_int32 mvn pow_bcast_array prelu_broadcast qlinearmatmul_2D_uint8_float32 quantizelinear_axis
reduce_log_sum_exp_default_axes_keepdims_random relu scatter_elements_with_axis scatternd_add shape_start_1_end_2
sigmoid softmax_axis_0 spacetodepth_crd_mode_example softplus sqrt sub_bcast sum_example tanh transpose_all_permutations_3 tril where_example xor3d
"""


def tensor_file(path, value, name):
    proto = (
        value
        if isinstance(value, onnx.TensorProto)
        else numpy_helper.from_array(np.asarray(value), name)
    )
    with open(path, "wb") as f:
        f.write(proto.SerializeToString())


def is_tensor(info):
    return info.type.HasField("tensor_type")


def write(case, folder):
    """The folder form that pto-run --check reads, or False for other values than tensors."""
    model = case.model
    weights = {t.name for t in model.graph.initializer}
    inputs = [i for i in model.graph.input if i.name not in weights]
    if not all(map(is_tensor, list(inputs) + list(model.graph.output))):
        return False
    os.makedirs(folder, exist_ok=True)
    onnx.save(model, os.path.join(folder, "model.onnx"))
    with open(os.path.join(folder, "tol.json"), "w") as f:
        json.dump({"rtol": case.rtol, "atol": case.atol}, f)
    for k, (given, wanted) in enumerate(case.data_sets):
        data = os.path.join(folder, "test_data_set_%d" % k)
        os.makedirs(data, exist_ok=True)
        for j, (value, info) in enumerate(zip(given, inputs)):
            tensor_file(os.path.join(data, "input_%d.pb" % j), value, info.name)
        for j, (value, info) in enumerate(zip(wanted, model.graph.output)):
            tensor_file(os.path.join(data, "output_%d.pb" % j), value, info.name)
    return True


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    return done.returncode, (done.stderr + done.stdout).strip()


def check(folder, level):
    """(outcome, message); outcome is ok, refused or failed."""
    library = os.path.join(folder, "model%s.so" % level)
    code, text = run(
        "pto-compile", os.path.join(folder, "model.onnx"), level, "--db=none",
        "--threads=1", "-o", library,
    )
    if code:
        return ("refused" if code == 2 else "failed"), text
    for data in sorted(d for d in os.listdir(folder) if d.startswith("test_data_set")):
        code, text = run("pto-run", library, "--check", os.path.join(folder, data))
        if code:
            return "failed", text
    return "ok", ""


def main():
    everything = "--all" in sys.argv
    named = [a for a in sys.argv[1:] if not a.startswith("--")]
    short = {"test_" + name for name in SHORT.split()}
    np.random.seed(0)
    counts = {"ok": 0, "refused": 0, "failed": 0}
    found = set()
    for case in load_model_tests(kind="node"):
        if not everything and case.name not in (named or short):
            continue
        found.add(case.name)
        if not write(case, case.name):
            continue
        for level in ("-O0", "-O2"):
            outcome, text = check(case.name, level)
            counts[outcome] += 1
            if outcome == "failed" or (outcome == "refused" and not everything):
                print("%s %s %s: %s" % (outcome, level, case.name, text[:600]))
    missing = [] if everything else sorted(set(named or short) - found)
    if missing:
        print("this onnx has no such tests: " + ", ".join(missing))
    print(", ".join("%d %s" % (n, word) for word, n in counts.items()))
    bad = counts["failed"] or (not everything and counts["refused"])
    return 1 if bad or not counts["ok"] else 0


if __name__ == "__main__":
    sys.exit(main())
