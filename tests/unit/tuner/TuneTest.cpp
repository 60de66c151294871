//===- TuneTest.cpp -------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
#include "tuner/Tune.h"
#include "ScriptedEvaluator.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "gtest/gtest.h"

using namespace pto;
using namespace pto::tuner;
using db::Outcome;

namespace {

struct TuneTest : testing::Test {
  void SetUp() override {
    ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("pto-tune", folder));
    openStore();
    evaluator.script = [](const KernelSource &, const CandidateRequest &r) {
      // Best at tile = 16; the second schedule is slower everywhere.
      Behaviour b;
      int tile = std::stoi(r.knobs[0].second);
      b.ns = 1000 + 10 * std::abs(tile - 16);
      if (r.scheduleName == "plain")
        b.ns += 5000;
      return b;
    };
  }
  void TearDown() override {
    store.reset();
    llvm::sys::fs::remove_directories(folder);
  }
  void openStore() {
    store.reset();
    auto opened =
        db::Store::open((folder + "/test.db").str(), db::Store::Mode::Create);
    ASSERT_TRUE(bool(opened)) << toString(opened.takeError());
    store = std::move(*opened);
  }

  static BranchSpec branch(const char *name, bool fromUser = false) {
    BranchSpec b;
    b.name = name;
    b.text = std::string("schedule ") + name;
    search::Knob tile;
    tile.name = "tile";
    for (int64_t i = 1; i <= 20; ++i)
      tile.options.push_back(i * 2);
    b.knobs = {tile};
    b.fromUser = fromUser;
    return b;
  }
  static TaskSpec kernel(const char *hash = "0123456789abcdef0123456789abcdef",
                         double calls = 1) {
    TaskSpec t;
    t.kernel = {"matmul", hash, "module {}"};
    t.op = "matmul";
    t.flops = 1000;
    t.bytes = 100;
    t.calls = calls;
    t.branches = {branch("packed"), branch("plain")};
    return t;
  }
  TuneOptions options() {
    TuneOptions o;
    o.target.fingerprint = "test-machine";
    o.target.name = "cpu";
    o.clock = [this] { return evaluator.seconds; };
    o.stop = [this] { return stop; };
    o.budgetSeconds = 60;
    o.batch = 4;
    return o;
  }
  TuneResult run(std::vector<TaskSpec> specs, TuneOptions o) {
    TuningRun tuning(std::move(o), evaluator, store.get(), progress);
    auto result = tuning.run(std::move(specs));
    if (!result) {
      ADD_FAILURE() << toString(result.takeError());
      return {};
    }
    return std::move(*result);
  }
  TuneResult run(TaskSpec spec) {
    std::vector<TaskSpec> specs;
    specs.push_back(std::move(spec));
    return run(std::move(specs), options());
  }
  std::vector<db::Trial> trials() {
    auto all = store->trials();
    EXPECT_TRUE(bool(all));
    return std::move(*all);
  }
  db::Lookup record(const TuneTask &task) {
    auto r = store->getRecord(task.key, db::Maker::current("scripted"));
    EXPECT_TRUE(bool(r));
    return std::move(*r);
  }
  void expectHealthy() {
    auto findings = store->check();
    ASSERT_TRUE(bool(findings));
    for (const std::string &f : *findings)
      ADD_FAILURE() << f;
  }

  llvm::SmallString<64> folder;
  std::unique_ptr<db::Store> store;
  ScriptedEvaluator evaluator;
  Progress progress;
  bool stop = false;
};

} // namespace

TEST_F(TuneTest, findsAndStoresTheBest) {
  TuneResult r = run(kernel());
  TuneTask &task = *r.tasks[0];
  ASSERT_TRUE(task.best);
  EXPECT_EQ(1000, task.best->bestNs);
  EXPECT_EQ(1140, task.byDefault->bestNs); // tile = 2
  EXPECT_TRUE(task.confirmed);
  db::Lookup found = record(task);
  ASSERT_TRUE(found.record) << found.reason;
  EXPECT_EQ(1000, found.record->timeNs);
  EXPECT_EQ(1140, *found.record->defaultNs);
  EXPECT_EQ(R"({"tile":16})", found.record->knobs);
  EXPECT_NE(std::string::npos, found.record->text.find("filled"));
  expectHealthy();
}

TEST_F(TuneTest, resumesWithoutCompilingAgain) {
  run(kernel());
  unsigned compiled = evaluator.compilations, measured = evaluator.measurements;
  size_t before = trials().size();
  openStore();
  TuneResult r = run(kernel());
  EXPECT_EQ(compiled, evaluator.compilations);
  EXPECT_EQ(measured, evaluator.measurements);
  EXPECT_EQ(before, trials().size());
  EXPECT_EQ(40u, r.tasks[0]->resumed);
  EXPECT_EQ(1000, r.tasks[0]->tunedNs);
  EXPECT_EQ(1140, r.tasks[0]->defaultNs);
}

TEST_F(TuneTest, stopKeepsWhatWasMeasured) {
  evaluator.onMeasure = [&] { stop = evaluator.measurements >= 7; };
  TuneResult r = run(kernel());
  EXPECT_TRUE(r.stopped);
  EXPECT_EQ(7u, trials().size());
  EXPECT_EQ(0u, evaluator.comparisons);
  EXPECT_TRUE(record(*r.tasks[0]).record); // Provisional.
  // The next run goes on, and tries nothing twice.
  stop = false;
  evaluator.onMeasure = nullptr;
  run(kernel());
  std::set<std::string> points;
  for (const db::Trial &t : trials())
    if (t.purpose != db::Purpose::Confirm)
      EXPECT_TRUE(points.insert(t.scheduleHash + t.knobs).second);
  EXPECT_EQ(40u, points.size());
  expectHealthy();
}

TEST_F(TuneTest, failuresAreOutcomes) {
  evaluator.script = [](const KernelSource &, const CandidateRequest &r) {
    Behaviour b;
    int tile = std::stoi(r.knobs[0].second);
    b.ns = 1000 + tile;
    const Outcome compiles[] = {Outcome::Ok, Outcome::Illegal,
                                Outcome::TransformFailed,
                                Outcome::CompileFailed, Outcome::TooLarge};
    const Outcome runs[] = {Outcome::Ok, Outcome::Timeout, Outcome::Crashed,
                            Outcome::WrongResult};
    b.compiles = compiles[tile / 2 % 5];
    b.runs = runs[tile / 2 % 4];
    return b;
  };
  TuneResult r = run(kernel());
  for (Outcome o : db::allOutcomes())
    EXPECT_GT(r.outcomes[o], 0u) << db::toString(o).str();
  EXPECT_EQ(1040, r.tasks[0]->best->bestNs); // tile 40: the only multiple of 20
  expectHealthy();
}

TEST_F(TuneTest, defaultIsTheFirstThatWorks) {
  evaluator.script = [](const KernelSource &, const CandidateRequest &r) {
    Behaviour b;
    b.ns = 2000;
    if (r.scheduleName == "packed")
      b.compiles = Outcome::TransformFailed;
    return b;
  };
  TuneResult r = run(kernel());
  ASSERT_TRUE(r.tasks[0]->byDefault);
  EXPECT_EQ(1u, r.tasks[0]->byDefault->point.branch);
}

TEST_F(TuneTest, winnerThatIsNotConfirmedLoses) {
  evaluator.script = [](const KernelSource &, const CandidateRequest &r) {
    Behaviour b;
    int tile = std::stoi(r.knobs[0].second);
    b.ns = 1000 - tile;
    b.confirmNs = 1000;
    return b;
  };
  TuneResult r = run(kernel());
  TuneTask &task = *r.tasks[0];
  EXPECT_TRUE(task.confirmed);
  EXPECT_EQ(task.byDefault->point, task.best->point);
  EXPECT_EQ(R"({"tile":2})", record(task).record->knobs);
  expectHealthy();
  // And stays so without measuring it all again.
  unsigned comparisons = evaluator.comparisons;
  TuneResult again = run(kernel());
  EXPECT_EQ(comparisons, evaluator.comparisons);
  EXPECT_EQ(again.tasks[0]->byDefault->point, again.tasks[0]->best->point);
}

TEST_F(TuneTest, equalCodeIsMeasuredOnce) {
  evaluator.script = [](const KernelSource &, const CandidateRequest &r) {
    Behaviour b;
    int tile = std::stoi(r.knobs[0].second);
    b.ns = 1000;
    b.code = std::string(15, 'a') + char('0' + tile % 4 / 2);
    return b;
  };
  TuneResult r = run(kernel());
  EXPECT_EQ(2u, evaluator.measurements);
  EXPECT_EQ(40u, r.outcomes[Outcome::Ok]);
}

TEST_F(TuneTest, usersScriptIsMeasuredAndCanWin) {
  evaluator.script = [](const KernelSource &, const CandidateRequest &r) {
    Behaviour b;
    b.ns = r.scheduleName == "mine.mlir" ? 500 + std::stoi(r.knobs[0].second)
                                         : 1000;
    return b;
  };
  TaskSpec spec = kernel();
  spec.branches.push_back(branch("mine.mlir", /*fromUser=*/true));
  TuneResult r = run(std::move(spec));
  TuneTask &task = *r.tasks[0];
  EXPECT_EQ(2u, task.best->point.branch);
  EXPECT_EQ(502, task.best->bestNs);
  EXPECT_EQ(0u, task.byDefault->point.branch);
}

TEST_F(TuneTest, impossibleTimesAreWrong) {
  evaluator.script = [](const KernelSource &, const CandidateRequest &r) {
    Behaviour b;
    // 1000 operations in 2 ns are 500 GFLOP/s of 100.
    b.ns = std::stoi(r.knobs[0].second) == 16 ? 2 : 1000;
    return b;
  };
  TuneResult r = run(kernel());
  EXPECT_EQ(2u, r.outcomes[Outcome::WrongResult]);
  EXPECT_EQ(1000, r.tasks[0]->best->bestNs);
  expectHealthy();
}

TEST_F(TuneTest, budgetCoversEverything) {
  TuneOptions o = options();
  o.budgetSeconds = 3;
  std::vector<TaskSpec> specs;
  specs.push_back(kernel());
  TuneResult r = run(std::move(specs), o);
  // One batch of four compilations and measurements may be under way.
  EXPECT_LE(r.seconds, 3 + 4 * 0.2 + 0.2);
  EXPECT_GT(r.tasks[0]->trials, 4u);
}

TEST_F(TuneTest, trialsAreLimited) {
  TuneOptions o = options();
  o.maxTrials = 5;
  std::vector<TaskSpec> specs;
  specs.push_back(kernel());
  TuneResult r = run(std::move(specs), o);
  EXPECT_EQ(6u, r.tasks[0]->trials); // The default, too.
}

TEST_F(TuneTest, kernelWithoutReferenceIsSkipped) {
  evaluator.referenceOutcome = Outcome::Crashed;
  TuneResult r = run(kernel());
  EXPECT_FALSE(r.tasks[0]->unusable.empty());
  EXPECT_EQ(0u, evaluator.compilations);
  EXPECT_TRUE(trials().empty());
}

TEST_F(TuneTest, neighboursWinnerIsTriedEarly) {
  run(kernel());
  // Another kernel of the same kind: after its default, the winner's values.
  TaskSpec other = kernel("fedcba9876543210fedcba9876543210");
  TuneOptions o = options();
  o.maxTrials = 3;
  std::vector<TaskSpec> specs;
  specs.push_back(std::move(other));
  TuneResult r = run(std::move(specs), o);
  EXPECT_EQ(1000, r.tasks[0]->best->bestNs);
}

TEST_F(TuneTest, worksWithoutDatabase) {
  store.reset();
  std::vector<TaskSpec> specs;
  specs.push_back(kernel());
  specs.push_back(kernel("fedcba9876543210fedcba9876543210", 5));
  TuneResult r = run(std::move(specs), options());
  for (auto &task : r.tasks)
    EXPECT_EQ(1000, task->tunedNs);
}
