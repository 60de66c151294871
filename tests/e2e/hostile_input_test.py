#!/usr/bin/env python3
"""Hostile and unlucky input and surroundings: each is a case with the tool's exit
code and the words that its message must have. No case may end in a signal, a
stack dump, or a file left behind.

  item                                  here, as              also
  missing file                          missing               lit/tuner/*-invalid
  truncated ONNX                        truncated
  unsupported ops, all at once          unsupported
  wrong input name, type, shape         input                 lit/tuner/pto-run, c-abi
  indices out of bounds at run time     bounds                e2e/bad_data
  read-only folder                      read-only             unit/db Store
  full disk                             full                  unit/db Store
  out of memory                         memory
  database locked, corrupt, newer,      database              unit/db Store, lit/db
    foreign, of another machine
  CPU without the features              cpu                   unit/targets Runtime
  misaligned buffers                    -                     lit/tuner/c-abi, scripts/check-sanitizers
  model folder that moved               moved                 lit/tuner/pto-compile
  Ctrl-C, twice                         interrupt             e2e/tune_kill
  clock set back                        clock                 unit/db Store
"""

import ctypes
import json
import os
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import time

import numpy as np
import onnx
from onnx import TensorProto, external_data_helper, helper, numpy_helper

SRC = os.environ["PTO_SRC"]
SMALL = os.path.join(SRC, "tests", "lit", "tuner", "inputs", "small.mlir")
# Seconds for one command. Tuning takes a few, but waits for its turn on a machine
# where others measure.
LIMIT = 300
F, I64 = TensorProto.FLOAT, TensorProto.INT64
problems = 0


def report(good, what, text=""):
    global problems
    problems += not good
    print(("ok: " if good else "FAILED: ") + what + ("" if good else "\n" + text), flush=True)


def case(item, command, code, words, absent=(), **options):
    """Runs a command. `words`: strings of its stderr; the first of them is in a
    line that names the tool; `absent`: files that must not be there."""
    words = [words] if isinstance(words, str) else words
    tool = options.pop("tool", None)
    done = subprocess.run(
        command.split() if isinstance(command, str) else command, stdin=subprocess.DEVNULL,
        stdout=options.pop("stdout", subprocess.PIPE), stderr=subprocess.PIPE, text=True,
        errors="replace", timeout=LIMIT, **options,
    )
    text = done.stderr
    command = command if isinstance(command, str) else " ".join(command)
    wrong = []
    if done.returncode != code:
        wrong.append(f"exit {done.returncode}, not {code}")
    if code and words:
        tool = tool or os.path.basename(command.split()[0])
        if not any(line.startswith(tool + ": ") and words[0] in line for line in text.splitlines()):
            wrong.append(f"no line '{tool}: ... {words[0]}'")
    wrong += [f"no '{w}'" for w in words if w not in text]
    wrong += ["crashed"] * ("Stack dump" in text or "PLEASE submit" in text)
    wrong += [f"{path} is there" for path in absent if os.path.exists(path)]
    wrong += [f"{n} is left" for n in os.listdir(".") if n.endswith(".tmp")]
    report(not wrong, f"{item}: {command}: exit {code}", "; ".join(wrong) + "\n" + text)
    if os.environ.get("SHOW"):
        print("    | " + text.strip().replace("\n", "\n    | "))
    return text


def good(*command, **options):
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                   timeout=LIMIT, **options)


def save(path, nodes, inputs, outputs=("y",), weights=(), opsets=(("", 17),), **options):
    graph = helper.make_graph(
        nodes, "net",
        [helper.make_tensor_value_info(n, t, s) for n, t, s in inputs],
        [helper.make_tensor_value_info(o, F, None) for o in outputs], list(weights),
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid(*o) for o in opsets])
    model.ir_version = 8
    try:
        model = onnx.shape_inference.infer_shapes(model)
    except Exception:  # Operators that onnx does not know.
        pass
    onnx.save(model, path, **options)


def weight(name, *shape):
    values = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    return numpy_helper.from_array(values, name)


def write_data(folder, arrays, kind="input"):
    os.makedirs(folder, exist_ok=True)
    for k, array in enumerate(arrays):
        with open(f"{folder}/{kind}_{k}.pb", "wb") as file:
            file.write(numpy_helper.from_array(array).SerializeToString())


save("dense.onnx", [helper.make_node("MatMul", ["x", "w"], ["y"])], [("x", F, ["n", 8])],
     weights=[weight("w", 8, 16)])
good("pto-compile", "dense.onnx", "--db=none", "--threads=1", "-o", "dense.so")
good("pto-tune", SMALL, "--db=t.db", "--threads=1", "--trials=1", "--budget=200s")


def missing():
    for tool in ("pto-compile", "pto-tune", "pto-run", "pto-opt"):
        case("missing", f"{tool} no/such.onnx", 2, "no/such.onnx: no such file")
        case("missing", f"{tool} .", 2, ".: is a folder, not a file")
    case("missing", "pto-db no/such.db list", 2, "no/such.db does not exist")
    case("missing", "pto-compile dense.onnx --schedule=none.mlir", 2, "none.mlir: no such file")
    case("missing", "pto-tune dense.onnx --data=none --db=none", 2, "none: no such folder")
    case("missing", "pto-run dense.so --check none", 2, "none: no such folder")


def truncated():
    whole = open("dense.onnx", "rb").read()
    for keep in (0, 1, 10, len(whole) // 3, len(whole) // 2, len(whole) - 100, len(whole) - 1):
        open("cut.onnx", "wb").write(whole[:keep])
        case(f"truncated to {keep} of {len(whole)} bytes", "pto-compile cut.onnx --db=none -o cut.so",
             2, "cut.onnx", ["cut.so", "cut.h"])
    case("truncated", "pto-tune cut.onnx --db=none", 2, "cut.onnx")
    open("cut.mlir", "w").write(open(SMALL).read()[:300])
    case("truncated", "pto-compile cut.mlir --db=none", 2, "cut.mlir", ["cut.so"])
    for keep in (0, 100, 5000):
        open("cut.so", "wb").write(open("dense.so", "rb").read()[:keep])
        case("truncated", "pto-run cut.so --bench=0", 2, "cut.so: cannot be loaded")
    write_data("cutdata", [np.ones((2, 8), np.float32)])
    write_data("cutdata", [np.ones((2, 16), np.float32)], "output")
    with open("cutdata/input_0.pb", "r+b") as file:
        file.truncate(30)
    case("truncated", "pto-run dense.so --check cutdata", 2, "cutdata/input_0.pb")
    os.remove("cut.so")


def unsupported():
    save("odd.onnx", [
        helper.make_node("FuseEverything", ["x"], ["a"], domain="com.acme", name="first"),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("StringNormalizer", ["s"], ["t"], name="second"),
        helper.make_node("Mystery", ["b"], ["y"], name="third"),
    ], [("x", F, [2, 3]), ("s", TensorProto.STRING, [2])], opsets=(("", 17), ("com.acme", 1)))
    for tool in ("pto-compile", "pto-tune"):
        case("unsupported", f"{tool} odd.onnx --db=none", 2,
             ["odd.onnx", "FuseEverything", "StringNormalizer", "Mystery"], ["odd.so"])


def wrong_input():
    for tool in ("pto-compile", "pto-tune"):
        case("input", f"{tool} dense.onnx --db=none --shape z=2x8", 2, ["'z'", "x"])
        case("input", f"{tool} dense.onnx --db=none --shape x=2x9", 2, "input 'x' has a dim of size 8, given as 9")
        case("input", f"{tool} dense.onnx --db=none --shape x=2", 2, "input 'x' has rank 2, the given shape has 1")
        case("input", f"{tool} dense.onnx --db=none --shape x=-2x8", 2, "--shape x=-2x8")
    case("input", "pto-run dense.so --bench=0 --shape z=2x8", 2, "no input 'z'")
    case("input", "pto-run dense.so --bench=0 --shape x=2x9", 2, "input 0 ('x'): shape is 2x9, must be ?x8")
    write_data("type", [np.ones((2, 8), np.float64)])
    case("input", "pto-run dense.so --bench=0 --data type", 2,
         "input 0 ('x'): element type is f64 (11), must be f32")
    write_data("rank", [np.ones((16,), np.float32)])
    case("input", "pto-run dense.so --bench=0 --data rank", 2, "input 0 ('x'): rank is 1, must be 2 (?x8)")
    write_data("many", [np.ones((2, 8), np.float32)] * 2)
    case("input", "pto-run dense.so --bench=0 --data many", 2, "many: has 2 input_J.pb files; the model has 1")
    case("input", "pto-tune dense.onnx --db=none --data many", 2, "many holds more inputs than the model has")
    case("input", "pto-tune dense.onnx --db=none --data rank", 2, "input 'x' has rank 2, the given shape has 1")


def bounds():
    save("gather.onnx", [helper.make_node("Gather", ["w", "i"], ["y"], name="lookup")],
         [("i", I64, ["k"])], weights=[weight("w", 5, 8)])
    good("pto-compile", "gather.onnx", "--db=none", "-o", "gather.so")
    write_data("far", [np.array([0, 5], np.int64)])
    case("bounds", "pto-run gather.so --bench=0 --data far", 2, ["index 5 is out of bounds", "lookup"])


def without_override():
    """root may do all; without this capability it is bound by permissions like
    anybody."""
    libc = ctypes.CDLL(None, use_errno=True)
    for capability in (1, 2):  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
        libc.prctl(24, capability, 0, 0, 0)  # PR_CAPBSET_DROP


def read_only():
    os.makedirs("ro")
    shutil.copy("t.db", "ro/t.db")
    shutil.copy("dense.onnx", "ro/closed.onnx")
    os.chmod("ro/closed.onnx", 0)
    os.chmod("ro/t.db", 0o444)
    os.chmod("ro", 0o555)
    bound = {"preexec_fn": without_override}
    if subprocess.run(["touch", "ro/x"], stderr=subprocess.DEVNULL, **bound).returncode == 0:
        print("skipped: read-only (permissions do not bind this user)")
        return
    case("read-only", "pto-compile dense.onnx --db=none -o ro/dense.so", 3, "cannot write ro/dense.so", **bound)
    case("read-only", "pto-compile dense.onnx --db=none -o ro/dense.ll", 3, "cannot write ro/dense.ll", **bound)
    case("read-only", "pto-compile dense.onnx --db=none -o d.so --json=ro/d.json", 3, "cannot write ro/d.json", **bound)
    case("read-only", "pto-compile dense.onnx --db=none -o d.so --save-temps=ro/t", 3, "ro/t", **bound)
    case("read-only", "pto-compile ro/closed.onnx --db=none", 3, "ro/closed.onnx", **bound)
    case("read-only", "pto-tune dense.onnx --db=ro/new.db", 3, "new.db cannot be created", **bound)
    case("read-only", f"pto-tune {SMALL} --db=ro/t.db", 3, "t.db cannot be written", **bound)
    case("read-only", f"pto-compile {SMALL} --db=ro/t.db --threads=1 --require-tuned -o s.so", 0, [], **bound)
    case("read-only", "pto-db ro/t.db list", 0, [], **bound)
    case("read-only", "pto-db ro/t.db best --json=ro/b.json", 3, "ro/b.json", **bound)
    case("read-only", "pto-run dense.so --bench=0 --json=ro/r.json", 3, "cannot write ro/r.json", **bound)
    os.chmod("ro", 0o755)


def full():
    """A file system with little room; a limit on the size of files; /dev/full."""

    def on_small_disk(size, command, words, **options):
        # What the shell lists at the end is what the command left behind.
        shell = (f"mkdir -p full && mount -t tmpfs -o size={size} none full && {{ {command}; "
                 "code=$?; ls -A full >listing; exit $code; }")
        text = case("full", ["unshare", "-m", "sh", "-c", shell], 3, words,
                    tool=command[command.index("pto-") :].split()[0], **options)
        return open("listing").read().split(), text

    if subprocess.run(["unshare", "-m", "mount", "-t", "tmpfs", "none", "."],
                      stderr=subprocess.DEVNULL).returncode:
        print("skipped: full disk (this user cannot mount)")
    else:
        for ending in ("so", "ll", "o"):
            left, _ = on_small_disk("16k", f"pto-compile dense.onnx --db=none -o full/d.{ending}",
                                    f"full/d.{ending}: " + ("No space left" if ending == "ll" else "the disk is full"))
            report(not left, f"full: nothing is left: {left}")
        on_small_disk("64k", f"pto-tune {SMALL} --db=full/t.db --budget=200s", "full/t.db cannot grow")
        # Where workers keep what they compile: no trial may be blamed for it.
        _, text = on_small_disk("64k", f"TMPDIR=$PWD/full pto-tune {SMALL} --db=temp.db --budget=200s --threads=1",
                                ["the disk is full", "set TMPDIR"])
        report(outcomes("temp.db") == {}, f"full: no trial is blamed: {outcomes('temp.db')}")
    limit = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))}
    case("full", "pto-compile dense.onnx --db=none -o limit.so", 3, ["limit.so: ", "File too large"], ["limit.so"], **limit)
    case("full", "pto-compile dense.onnx --db=none -o limit.ll", 3, "cannot write limit.ll", ["limit.ll"], **limit)
    case("full", f"pto-tune {SMALL} --db=limit.db --budget=200s", 3, "limit.db cannot grow", **limit)
    case("full", "pto-run dense.so --bench=0 --json=/dev/full", 3, "cannot write /dev/full")
    with open("/dev/full", "w") as device:
        for command in ("pto-db t.db list", "pto-run dense.so", "pto-run dense.so --json=-",
                        f"pto-opt {SMALL}"):
            case("full", command, 3, "cannot write", stdout=device)


def memory():
    limit = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))}
    case("memory", "pto-run dense.so --bench=0 --shape x=50000000x8", 3, "out of memory", **limit)
    case("memory", "pto-run dense.so --bench=0 --shape x=10000000x8", 3, "no memory for output 'y'", **limit)


def outcomes(path):
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as db:
        try:
            return dict(db.execute("select outcome, count(*) from trial group by 1").fetchall())
        except sqlite3.OperationalError:
            return {}


def database():
    use = f"pto-compile {SMALL} --threads=1 -o s.so --db="
    tune = f"pto-tune {SMALL} --threads=1 --trials=1 --budget=200s --db="

    def each(name, code, words, compile_code=None):
        case(name, use + f"{name}.db", code if compile_code is None else compile_code, words)
        case(name, tune + f"{name}.db", code, words)
        case(name, f"pto-db {name}.db list", code, words)

    open("foreign.db", "w").write("a text that is no database " * 100)
    each("foreign", 2, ["foreign.db is not a database of pto", "name another file with --db"])
    with sqlite3.connect("alien.db") as db:
        db.execute("create table t (x)")
    each("alien", 2, ["alien.db is an SQLite database, but not one of pto"])
    os.makedirs("folder.db", exist_ok=True)
    each("folder", 2, ["folder.db is a folder"])
    shutil.copy("t.db", "newer.db")
    with sqlite3.connect("newer.db") as db:
        db.execute("pragma user_version = 99")
    each("newer", 2, ["newer.db was written by a newer pto (schema 99", "update pto"])
    shutil.copy("t.db", "cut.db")
    with open("cut.db", "r+b") as file:
        file.truncate(os.path.getsize("t.db") // 2)
    each("cut", 2, ["cut.db is damaged", "restore a copy"])
    shutil.copy("t.db", "damaged.db")
    with open("damaged.db", "r+b") as file:
        for page in range(1, os.path.getsize("t.db") // 4096):
            file.seek(page * 4096)
            file.write(b"\xa5" * 200)
    each("damaged", 2, ["damaged.db is damaged"])

    # Held by a process that never lets go. Readers do not wait for a writer.
    shutil.copy("t.db", "locked.db")
    holder = sqlite3.connect("locked.db", isolation_level=None)
    holder.execute("begin immediate")
    case("locked", use + "locked.db", 0, [])
    case("locked", tune + "locked.db", 3, ["locked.db is locked by another process", "wait for it"])
    holder.execute("rollback")
    holder.execute("pragma locking_mode = exclusive")
    holder.execute("update meta set value = value")
    case("locked", use + "locked.db", 3, ["locked.db is locked by another process", "wait for it"])
    holder.close()
    case("locked", use + "locked.db", 0, [])

    # Of another machine, and of another version: not used, and said why.
    shutil.copy("t.db", "other.db")
    with sqlite3.connect("other.db") as db:
        db.execute("update target set fingerprint = 'x86_64 from-elsewhere'")
    case("other machine", use + "other.db --json=other.json", 0, [])
    kernel = json.load(open("other.json"))["kernels"][0]
    report(kernel["source"] != "record" and "from-elsewhere" in kernel["reason"],
           f"other machine: {kernel['source']}: {kernel['reason']}")
    case("other machine", use + "other.db --require-tuned -o r.so", 1,
         ["without a record that fits", "from-elsewhere", "tune them with: pto-tune"], ["r.so"])
    case("other machine", tune + "other.db", 0, [])
    case("other machine", use + "other.db --require-tuned", 0, [])
    shutil.copy("t.db", "old.db")
    with sqlite3.connect("old.db") as db:
        columns = [c[1] for c in db.execute("pragma table_info(record)")]
        db.execute(f"update record set {next(c for c in columns if 'llvm' in c)} = '21.1.0'")
    case("other version", use + "old.db --require-tuned", 1, ["without a record that fits", "21.1.0"])


def cpu():
    """The mask of needed features, edited to have all that pto knows: no CPU has
    both AMD's and Intel's."""
    shutil.copy("dense.so", "needy.so")
    library = ctypes.CDLL(os.path.abspath("needy.so"))
    entry = ctypes.c_uint64.in_dll(library, "pto_artifact")
    model = ctypes.c_uint64.from_address(ctypes.addressof(entry) + 8).value
    words = (ctypes.c_uint64 * 20).from_address(model)
    id_and_features = bytes(ctypes.string_at(model, 20 * 8))
    index = next(i for i in range(1, 20) if words[i] == 8 * 16 * 4) + 2  # weights_size, id, features
    content = open("needy.so", "rb").read()
    pattern = id_and_features[(index - 2) * 8 : (index + 2) * 8]
    report(content.count(pattern) == 1, "cpu: the mask is found")
    edited = pattern[:16] + (2**36 - 1).to_bytes(8, "little") + pattern[24:]
    open("needy2.so", "wb").write(content.replace(pattern, edited))
    case("cpu", "pto-run needy2.so --bench=0", 3, ["was compiled for", "this CPU lacks: "])
    case("cpu", "pto-tune dense.onnx --db=none --target=cpu,arch=armv8-a", 2,
         ["this machine cannot run such code", "tune on a machine of that kind"])
    good("pto-compile", "dense.onnx", "--db=none", "--target=cpu,arch=armv8-a", "-o", "arm.so")
    case("cpu", "pto-run arm.so --bench=0", 3,
         ["arm.so: was compiled for another kind of CPU (AArch64)", "compile the model for this one"])


def moved():
    os.makedirs("here", exist_ok=True)
    save("here/model.onnx", [helper.make_node("MatMul", ["x", "w"], ["y"])],
         [("x", F, [4, 64])], weights=[weight("w", 64, 64)], save_as_external_data=True,
         location="model.data", size_threshold=0)
    good("pto-compile", "here/model.onnx", "--db=none", "--weights-file", "-o", "here/model.so")
    os.rename("here", "there")
    case("moved", "pto-compile there/model.onnx --db=none -o there/model2.so", 0, [])
    case("moved", "pto-run there/model.so --bench=0", 0, [])
    os.makedirs("alone")
    for name in ("model.onnx", "model.so"):
        os.rename("there/" + name, "alone/" + name)
    case("moved", "pto-compile alone/model.onnx --db=none", 2, ["alone/model.onnx", "alone/model.data"])
    case("moved", "pto-run alone/model.so --bench=0", 2, ["alone/model.weights", "it belongs beside the library", "--weights=FILE"])
    case("moved", "pto-run alone/model.so --bench=0 --weights=there/model.weights", 0, [])


def interrupt():
    def start(*command):
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

    # The first asks, the second ends it at once; a run that is quicker than the
    # second signal ends well.
    for attempt in range(5):
        process = start("pto-tune", SMALL, "--db=int.db", "--threads=1", "--budget=200s")
        while not os.path.exists("int.db") or not outcomes("int.db"):
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        for line in process.stderr:
            if "stopping: storing what was found (again: at once)" in line:
                break
        process.send_signal(signal.SIGINT)
        process.stderr.read()
        code = process.wait(timeout=20)
        if code != 0:
            break
    report(code == 130, f"interrupt: pto-tune, twice: exit {code}")
    case("interrupt", "pto-db int.db check", 0, [])
    report(bool(outcomes("int.db")), "interrupt: the trials are there")
    for command in (["pto-compile", "dense.onnx", "--db=none", "-o", "int.so"],
                    ["pto-run", "dense.so", "--bench=60"]):
        process = start(*command)
        time.sleep(0.15)
        process.send_signal(signal.SIGINT)
        text = process.stderr.read()
        code = process.wait(timeout=20)
        report(code in (-signal.SIGINT, 130, 0) and "Stack dump" not in text,
               f"interrupt: {command[0]}: {code}", text)
    left = [n for n in os.listdir(".") if n.startswith("int.") and not n.startswith("int.db")]
    report(set(left) <= {"int.so", "int.h"}, f"interrupt: {left}")


CLOCK = """
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t id, struct timespec *t) {
  int status = syscall(SYS_clock_gettime, id, t);
  if (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)
    t->tv_sec = 978307200 - t->tv_sec % 1000; /* 2001, and it runs backwards */
  return status;
}
int gettimeofday(struct timeval *t, void *zone) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  t->tv_sec = now.tv_sec;
  t->tv_usec = now.tv_nsec / 1000;
  return 0;
}
time_t time(time_t *t) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return t ? *t = now.tv_sec : now.tv_sec;
}
"""


def clock():
    """A database with trials of the future, and a clock that runs backwards:
    neither order nor budget depends on it."""
    open("clock.c", "w").write(CLOCK)
    good("clang-22", "-shared", "-fPIC", "clock.c", "-o", "clock.so")
    shutil.copy("t.db", "clock.db")
    before = outcomes("clock.db")
    past = {"env": dict(os.environ, LD_PRELOAD=os.path.abspath("clock.so"))}
    case("clock", f"pto-tune {SMALL} --db=clock.db --threads=1 --trials=6 --budget=200s", 0, [], **past)
    after = outcomes("clock.db")
    report(sum(after.values()) > sum(before.values()), f"clock: {before}, then {after}")
    with sqlite3.connect("clock.db") as db:
        points = db.execute("select schedule, knobs from trial where purpose != 'confirm'").fetchall()
        early = db.execute("select count(*) from trial where started < 1000000000000").fetchone()[0]
    report(early > 0, "clock: the tool saw the year 2001")
    report(len(points) == len(set(points)), "clock: no point was tried twice")
    case("clock", "pto-db clock.db check", 0, [], **past)
    case("clock", f"pto-compile {SMALL} --db=clock.db --threads=1 --require-tuned -o clocked.so", 0, [], **past)
    case("clock", "pto-run clocked.so --bench=0.1", 0, [], **past)


ITEMS = [missing, truncated, unsupported, wrong_input, bounds, read_only, full, memory, database, cpu, moved,
         interrupt, clock]
for item in ITEMS:
    if len(sys.argv) < 2 or item.__name__ in sys.argv[1:]:
        item()
raise SystemExit(problems != 0)
