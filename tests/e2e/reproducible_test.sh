#!/usr/bin/env bash
# Two builds of one model, from two folders, at different times, with different
# numbers of compile threads, give the same bytes.
set -euo pipefail
mkdir -p one two/deeper
cp "$PTO_SRC/tests/lit/tuner/inputs/small.mlir" one/small.mlir
cp one/small.mlir two/deeper/small.mlir
(cd one && pto-compile small.mlir --db=none --threads=2 --jobs=1 -o small.so)
(cd one && pto-compile small.mlir --db=none --threads=2 --weights-file -o beside.so)
sleep 1.1
(cd two && TMPDIR=$PWD/deeper pto-compile deeper/small.mlir --db=none --threads=2 --jobs=3 -o deeper/small.so)
(cd two/deeper && pto-compile "$PWD/small.mlir" --db=none --threads=2 --weights-file -o "$PWD/beside.so")
cmp one/small.so two/deeper/small.so
cmp one/small.h two/deeper/small.h
cmp one/beside.so two/deeper/beside.so
cmp one/beside.weights two/deeper/beside.weights
if strings -a one/small.so | grep -E "$PWD|/tmp|/proc|/work|small\.mlir"; then
  echo "a path is in the library"
  exit 1
fi
