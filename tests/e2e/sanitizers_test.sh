#!/usr/bin/env bash
# A model's kernels and runtime under AddressSanitizer, UndefinedBehaviorSanitizer
# and ThreadSanitizer; the long form is scripts/check-sanitizers without --quick.
PTO_BUILD=$(dirname "$PTO_BIN") exec "$PTO_SRC/scripts/check-sanitizers" --quick
