//===- MakeDatabase.cpp - A small database for tests of the tools ---------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//   make-database FILE
//
// Two kernels on one target; one with a record, a trial of every outcome, and
// texts that try to disturb a terminal.
//
//===----------------------------------------------------------------------===//
#include "db/Store.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;
using namespace pto::db;

static ExitOnError orDie("make-database: ");

int main(int argc, char **argv) {
  if (argc != 2) {
    errs() << "usage: make-database FILE\n";
    return 2;
  }
  auto store = orDie(Store::open(argv[1], Store::Mode::Create));
  TargetInfo target{"x86_64 avx512 l1=32768", "cpu", R"({"cores":2})"};
  Kernel matmul{"aa11aa11aa11aa11aa11aa11aa11aa11",
                "matmul_64x64x64",
                "matmul",
                524288,
                49152,
                R"({"dtype":"f32","m":64,"n":64,"k":64})",
                "module { func.func @kernel() { return } }\n"};
  Kernel softmax = matmul;
  softmax.hash = "bb22bb22bb22bb22bb22bb22bb22bb22";
  softmax.name = "softmax_197x197";
  softmax.op = "reduce";
  softmax.flops = 0;
  Schedule schedule{"", "matmul/f32_avx512", "// script with open knobs\n"};
  schedule.hash = hashText(schedule.text);
  orDie(store->addTarget(target));
  orDie(store->addKernel(matmul));
  orDie(store->addKernel(softmax));
  orDie(store->addSchedule(schedule));

  Trial trial;
  trial.key = {matmul.hash, target.fingerprint, 2, "exact"};
  trial.scheduleHash = schedule.hash;
  trial.maker = {"22.1.8", "0.1.0", "cold"};
  int64_t tile = 0, winner = 0;
  for (Outcome outcome : allOutcomes()) {
    trial.knobs = "{\"tile_m\":" + std::to_string(++tile) + "}";
    trial.outcome = outcome;
    trial.message =
        outcome == Outcome::Ok
            ? ""
            : "why it is " + toString(outcome).str() + "\x1b[2J\nsecond line";
    trial.compileMs = 10 * tile;
    if (outcome == Outcome::Ok)
      trial.setSamples({5300, 5200, 5250});
    int64_t id = orDie(store->insertTrial(trial));
    if (outcome == Outcome::Ok)
      winner = id;
  }
  Record record;
  record.key = trial.key;
  record.trial = winner;
  record.scheduleHash = schedule.hash;
  record.knobs = R"({"tile_m":1})";
  record.text = "// script with tile_m = 1\n";
  record.timeNs = 5200;
  record.defaultNs = 10400;
  record.maker = trial.maker;
  orDie(store->putRecord(record));
  return 0;
}
