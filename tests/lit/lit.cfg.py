# lit configuration. Loaded through lit.site.cfg.py in the build folder.
#
# Substitutions: %src (source root), %schedules, %python (with numpy, onnx and
# onnxruntime), %cc (a C compiler). Tools come from build/bin, then LLVM's.
# Features for REQUIRES: x86, aarch64, and the host's avx2, avx512f, amx-tile;
# not-root (permissions are enforced).
import os
import platform

import lit.formats

config.name = "pto"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.excludes = ["inputs"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.pto_binary_dir, "tests", "lit", "out")

bin_dir = os.path.join(config.pto_binary_dir, "bin")
helpers_dir = os.path.join(config.pto_binary_dir, "tests", "bin")
path = [bin_dir, helpers_dir, config.llvm_tools_dir, os.environ.get("PATH", "")]
config.environment["PATH"] = os.pathsep.join(path)
config.environment["PTO_SOURCE_DIR"] = config.pto_source_dir
for name in ("HOME", "PTO_CACHE", "ASAN_OPTIONS", "TSAN_OPTIONS"):
    if name in os.environ:
        config.environment[name] = os.environ[name]

config.substitutions.append(("%src", config.pto_source_dir))
config.substitutions.append(
    ("%schedules", os.path.join(config.pto_source_dir, "schedules"))
)
config.substitutions.append(("%python", config.python))
config.substitutions.append(("%cc", config.c_compiler))

machine = platform.machine()
if machine in ("x86_64", "AMD64"):
    config.available_features.add("x86")
elif machine in ("aarch64", "arm64"):
    config.available_features.add("aarch64")
try:
    with open("/proc/cpuinfo") as cpuinfo:
        flags = next((l.split() for l in cpuinfo if l.startswith("flags")), [])
except OSError:
    flags = []
for flag in ("avx2", "avx512f", "amx_tile"):
    if flag in flags:
        config.available_features.add(flag.replace("_", "-"))
if os.geteuid() != 0:
    config.available_features.add("not-root")
