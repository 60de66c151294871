#!/usr/bin/env python3
"""Two builds of one model give the same bytes: on two days, from two folders,
with different numbers of compile threads, whatever memory held before."""

import filecmp
import os
import shutil
import subprocess

import small_models

# Two days later.
CLOCK = """
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t id, struct timespec *t) {
  int status = syscall(SYS_clock_gettime, id, t);
  if (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)
    t->tv_sec += 2 * 24 * 60 * 60;
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


def build(folder, model, stem, *options, **env):
    command = ["pto-compile", model, "--db=none", "--threads=2", "-o", f"{stem}.so", *options]
    subprocess.run(command, cwd=folder, env=dict(os.environ, **env), check=True)


with open("clock.c", "w") as file:
    file.write(CLOCK)
subprocess.run(["clang-22", "-shared", "-fPIC", "clock.c", "-o", "clock.so"], check=True)
later = {"LD_PRELOAD": os.path.abspath("clock.so")}
day = lambda **env: subprocess.check_output(["date", "+%F"], env=dict(os.environ, **env))
assert day() != day(**later), "the second build is on another day"

small_models.make("models")
shutil.copy(os.path.join(os.environ["PTO_SRC"], "tests/lit/tuner/inputs/small.mlir"), "models")
models = [os.path.abspath("models/small.mlir")]
models += [os.path.abspath(f"models/{name}/model.onnx") for name in small_models.MODELS]
one, two = os.path.abspath("one"), os.path.abspath("two/deeper")
os.makedirs(one)
os.makedirs(two)
different = []
for model in models:
    name = os.path.basename(os.path.dirname(model))
    here = os.path.join(two, os.path.basename(model))
    shutil.copy(model, here)
    for kind, options in (("whole", []), ("beside", ["--weights-file"])):
        stem = f"{name}-{kind}"
        build(one, model, stem, "--jobs=1", *options, MALLOC_PERTURB_="85")
        build(os.path.dirname(two), os.path.relpath(here, os.path.dirname(two)), f"deeper/{stem}",
              "--jobs=3", *options, MALLOC_PERTURB_="170", TMPDIR=two, **later)
        built = sorted(n for n in os.listdir(one) if n.startswith(stem))
        assert len(built) == 2 + len(options), built
        different += [n for n in built
                      if not filecmp.cmp(os.path.join(one, n), os.path.join(two, n), shallow=False)]
        with open(os.path.join(one, f"{stem}.so"), "rb") as file:
            text = file.read()
        for path in (os.getcwd(), "/tmp", "/proc", os.path.basename(model)):
            assert path.encode() not in text, f"{stem}.so holds {path}"
assert not different, different
print(f"{len(models)} models: the same bytes")
