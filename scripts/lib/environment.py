"""Where things are: the source root, the built tools, the set-up's Python."""

import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CACHE = os.environ.get("PTO_CACHE") or os.path.expanduser("~/.cache/pto")


def fail(program, message, status=2):
    """What and where first, then what to do."""
    print(f"{program}: {message}", file=sys.stderr)
    sys.exit(status)


def use_venv(program):
    """Runs the calling script again with the set-up's Python, which has numpy,
    onnx and onnxruntime."""
    python = os.path.join(CACHE, "venv", "bin", "python")
    if os.path.abspath(sys.prefix) == os.path.join(os.path.abspath(CACHE), "venv"):
        return
    if not os.path.exists(python):
        fail(program, f"there is no {python}\nrun scripts/setup first", 3)
    os.execv(python, [python] + sys.argv)


def tools(program, build=None):
    """The folder of pto's programs."""
    build = build or os.environ.get("PTO_BUILD") or "build"
    folder = os.path.join(build if os.path.isabs(build) else os.path.join(ROOT, build), "bin")
    if not os.path.exists(os.path.join(folder, "pto-compile")):
        fail(program, f"there is no {folder}/pto-compile\nrun scripts/build first", 3)
    return folder


def parse_shapes(program, texts):
    """Sizes by input, from NAME=AxB as the tools take it."""
    shapes = {}
    for text in texts:
        name, equal, sizes = text.rpartition("=")
        try:
            shapes[name] = [int(s) for s in sizes.split("x")]
        except ValueError:
            equal = ""
        if not equal:
            fail(program, f"--shape {text}: must be NAME=AxB")
    return shapes


def cpu_name():
    with open("/proc/cpuinfo") as info:
        for line in info:
            if line.startswith(("model name", "Model\t")):
                return " ".join(line.split(":", 1)[1].split())
    return os.uname().machine


def available_cores():
    """Physical cores that this process may use."""
    cores = set()
    for cpu in os.sched_getaffinity(0):
        path = f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list"
        try:
            with open(path) as siblings:
                cores.add(siblings.read().strip())
        except OSError:
            cores.add(str(cpu))
    return len(cores)


def run(command, **options):
    """Runs a tool; its output as text, both streams apart."""
    return subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        **options,
    )
