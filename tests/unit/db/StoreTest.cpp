//===- StoreTest.cpp - Reading, writing, and all that can go wrong --------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
#include "db/Store.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include <csignal>
#include <fstream>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace llvm;
using namespace pto::db;
using Kind = StoreError::Kind;
using Mode = Store::Mode;

namespace {

template <typename T> T ok(Expected<T> value, int line = __builtin_LINE()) {
  if (!value) {
    ADD_FAILURE() << "line " << line << ": " << toString(value.takeError());
    abort();
  }
  return std::move(*value);
}

/// The kind and message of an error that must be there.
struct Failure {
  Kind kind;
  std::string message;
};
Failure failure(Error error) {
  Failure f{Kind::Io, "no error"};
  handleAllErrors(std::move(error),
                  [&](const StoreError &e) { f = {e.getKind(), e.message()}; });
  return f;
}
template <typename T> Failure failure(Expected<T> value) {
  return failure(value ? Error::success() : value.takeError());
}

class StoreTest : public testing::Test {
protected:
  void SetUp() override {
    ASSERT_FALSE(sys::fs::createUniqueDirectory("pto-store", folder));
    path = (folder + "/t.db").str();
  }
  void TearDown() override { sys::fs::remove_directories(folder); }

  std::unique_ptr<Store> open(Mode mode = Mode::Create, int busyMs = 10000) {
    return ok(Store::open(path, mode, busyMs));
  }
  void write(StringRef text) { std::ofstream(path) << text.str(); }
  /// Runs SQL behind the store's back.
  void sql(const char *text) {
    sqlite3 *db = nullptr;
    ASSERT_EQ(sqlite3_open(path.c_str(), &db), SQLITE_OK);
    char *message = nullptr;
    sqlite3_exec(db, text, nullptr, nullptr, &message);
    EXPECT_EQ(message, nullptr) << message;
    sqlite3_close(db);
  }

  SmallString<128> folder;
  std::string path;
};

const Maker maker{"22.1.8", "0.1.0", "cold"};

Kernel kernel(StringRef hash, int m = 64, StringRef op = "matmul") {
  Kernel k;
  k.hash = std::string(32 - hash.size(), '0') + hash.str();
  k.name = "k_" + hash.str();
  k.op = op.str();
  k.flops = 2 * m;
  k.bytes = 4 * m;
  k.features = "{\"m\": " + std::to_string(m) + "}";
  k.ir = "module {}";
  return k;
}
const TargetInfo host{"x86 avx512 l1=32k", "cpu", "{}"};
const TargetInfo other{"arm neon", "cpu", "{}"};
const Schedule schedule{hashText("script"), "matmul/f32", "script"};

/// A store with one kernel, target and schedule; the key of the kernel there.
Key fill(Store &store, const Kernel &k = kernel("aa")) {
  ok(store.addTarget(host));
  ok(store.addKernel(k));
  ok(store.addSchedule(schedule));
  return {k.hash, host.fingerprint, 2, "exact"};
}

Trial trial(const Key &key, StringRef knobs, double ns) {
  Trial t;
  t.key = key;
  t.scheduleHash = schedule.hash;
  t.knobs = knobs.str();
  t.setSamples({ns + 1, ns, ns + 2});
  t.compileMs = 12.5;
  t.objectHash = "0b" + std::to_string(int(ns));
  t.maker = maker;
  return t;
}

Record record(const Trial &t, int64_t id) {
  Record r;
  r.key = t.key;
  r.trial = id;
  r.scheduleHash = t.scheduleHash;
  r.knobs = t.knobs;
  r.text = "script, filled in";
  r.evidence = t.evidence;
  r.timeNs = t.bestNs;
  r.defaultNs = 2 * t.bestNs;
  r.maker = t.maker;
  return r;
}

/// A child that must exit with 0; `body` returns what went wrong.
void inChild(function_ref<std::string()> body) {
  pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    std::string message = body();
    if (!message.empty())
      fprintf(stderr, "child: %s\n", message.c_str());
    _exit(message.empty() ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

} // namespace

//===----------------------------------------------------------------------===//
// Trials
//===----------------------------------------------------------------------===//

TEST_F(StoreTest, TrialsSurviveReopening) {
  Trial failed;
  int64_t id = 0;
  {
    auto store = open();
    Key key = fill(*store);
    Trial t = trial(key, "{\"tile\": 8, \"order\": \"mn\"}", 100);
    t.error = 1e-6;
    id = ok(store->insertTrial(t));
    failed = trial(key, "{}", 1);
    failed.outcome = Outcome::Crashed;
    failed.message = std::string("signal 11\0 \xff", 12);
    ok(store->insertTrial(failed));
  }
  auto store = open(Mode::ReadOnly);
  std::vector<Trial> all = ok(store->trials());
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].id, id);
  EXPECT_EQ(all[0].key, failed.key);
  EXPECT_EQ(all[0].knobs, R"({"order":"mn","tile":8})");
  EXPECT_EQ(all[0].outcome, Outcome::Ok);
  EXPECT_EQ(all[0].bestNs, 100);
  EXPECT_EQ(all[0].medianNs, 101);
  EXPECT_EQ(all[0].samplesNs, (std::vector<double>{101, 100, 102}));
  EXPECT_EQ(all[0].error, 1e-6);
  EXPECT_EQ(all[0].compileMs, 12.5);
  EXPECT_EQ(all[0].maker.policy, "cold");
  EXPECT_GT(all[0].startedMs, 0);
  EXPECT_EQ(all[1].outcome, Outcome::Crashed);
  EXPECT_EQ(all[1].message, "signal 11 \xef\xbf\xbd")
      << "valid UTF-8 without NUL";
  EXPECT_TRUE(all[1].samplesNs.empty());
  EXPECT_EQ(all[1].error, std::nullopt);
  EXPECT_TRUE(ok(store->check()).empty());
}

TEST_F(StoreTest, FinishedTrialIsFoundWhateverItsOutcome) {
  auto store = open();
  Key key = fill(*store);
  Trial t = trial(key, R"({"a":1,"b":2})", 50);
  t.outcome = Outcome::Timeout;
  t.message = "10 s";
  ok(store->insertTrial(t));
  auto find = [&](Key k, StringRef s, StringRef knobs, Maker m) {
    return ok(store->findTrial(k, s, knobs, m));
  };
  auto hit = find(key, schedule.hash, "{\"b\":2, \"a\":1.0}", maker);
  ASSERT_TRUE(hit);
  EXPECT_EQ(hit->outcome, Outcome::Timeout);
  EXPECT_EQ(hit->message, "10 s");
  EXPECT_FALSE(find(key, schedule.hash, R"({"a":1})", maker));
  EXPECT_FALSE(find(key, "ff", t.knobs, maker));
  Key fewer = key;
  fewer.threads = 1;
  EXPECT_FALSE(find(fewer, schedule.hash, t.knobs, maker));
  EXPECT_FALSE(find(key, schedule.hash, t.knobs, {"22.1.9", "0.1.0", "cold"}));
  EXPECT_FALSE(find(key, schedule.hash, t.knobs, {"22.1.8", "0.1.0", "hot"}));
}

TEST_F(StoreTest, ConfirmationIsNoFinishedTrial) {
  auto store = open();
  Key key = fill(*store);
  Trial t = trial(key, "{}", 50);
  t.purpose = Purpose::Confirm;
  ok(store->insertTrial(t));
  EXPECT_FALSE(ok(store->findTrial(key, schedule.hash, "{}", maker)));
  EXPECT_FALSE(ok(store->findObject(key, t.objectHash, maker)));
}

TEST_F(StoreTest, EqualObjectIsFound) {
  auto store = open();
  Key key = fill(*store);
  ok(store->insertTrial(trial(key, R"({"a":1})", 50)));
  auto hit = ok(store->findObject(key, "0b50", maker));
  ASSERT_TRUE(hit);
  EXPECT_EQ(hit->knobs, R"({"a":1})");
  EXPECT_FALSE(ok(store->findObject(key, "0b51", maker)));
  EXPECT_FALSE(ok(store->findObject(key, "", maker)));
}

TEST_F(StoreTest, BestTrialsOnePerPointStrongestEvidenceOnly) {
  auto store = open();
  Key key = fill(*store);
  ok(store->insertTrial(trial(key, R"({"a":1})", 50)));
  ok(store->insertTrial(trial(key, R"({"a":2})", 40)));
  ok(store->insertTrial(trial(key, R"({"a":2})", 41)));
  Trial guess = trial(key, R"({"a":3})", 5);
  guess.evidence = Evidence::Analytic;
  ok(store->insertTrial(guess));
  std::vector<Trial> best = ok(store->bestTrials(key, 10));
  ASSERT_EQ(best.size(), 2u);
  EXPECT_EQ(best[0].bestNs, 40);
  EXPECT_EQ(best[1].bestNs, 50);
  EXPECT_EQ(ok(store->bestTrials(key, 1)).size(), 1u);
}

TEST_F(StoreTest, MalformedTrialIsRefused) {
  auto store = open();
  Key key = fill(*store);
  Trial t = trial(key, "[1]", 50);
  EXPECT_EQ(failure(store->insertTrial(t)).kind, Kind::Invalid);
  t = trial(key, "{}", 50);
  t.samplesNs.clear();
  EXPECT_EQ(failure(store->insertTrial(t)).kind, Kind::Invalid);
  t = trial(key, "{}", 50);
  t.bestNs = 49;
  EXPECT_EQ(failure(store->insertTrial(t)).kind, Kind::Invalid);
  t = trial(key, "{}", 50);
  t.outcome = Outcome::Illegal;
  EXPECT_EQ(failure(store->insertTrial(t)).kind, Kind::Invalid) << "no reason";
  t = trial(key, "{}", 50);
  t.key.kernelHash = "nobody";
  Failure f = failure(store->insertTrial(t));
  EXPECT_EQ(f.kind, Kind::Invalid);
  EXPECT_NE(f.message.find("nobody"), std::string::npos);
  EXPECT_TRUE(ok(store->trials()).empty());
}

//===----------------------------------------------------------------------===//
// Records
//===----------------------------------------------------------------------===//

TEST_F(StoreTest, RecordIsFoundByItsExactKeyOnly) {
  auto store = open();
  Key key = fill(*store);
  ok(store->addTarget(other));
  EXPECT_EQ(ok(store->getRecord(key, maker)).miss, Miss::NoRecord);
  Trial t = trial(key, R"({"tile":8})", 50);
  int64_t id = ok(store->insertTrial(t));
  EXPECT_TRUE(ok(store->putRecord(record(t, id))));

  Lookup hit = ok(store->getRecord(key, maker));
  ASSERT_TRUE(hit.record);
  EXPECT_EQ(hit.record->key, key);
  EXPECT_EQ(hit.record->trial, id);
  EXPECT_EQ(hit.record->text, "script, filled in");
  EXPECT_EQ(hit.record->timeNs, 50);
  EXPECT_EQ(hit.record->defaultNs, 100);
  EXPECT_FALSE(hit.record->isRegion);

  auto miss = [&](Key k, Maker m = maker) {
    Lookup lookup = ok(store->getRecord(k, m));
    EXPECT_FALSE(lookup.record);
    return std::pair(lookup.miss, lookup.reason);
  };
  Key k = key;
  k.kernelHash = "unknown";
  EXPECT_EQ(miss(k),
            std::pair(Miss::UnknownKernel, std::string("never tuned")));
  k = key;
  k.targetFingerprint = other.fingerprint;
  EXPECT_EQ(miss(k).first, Miss::OtherTarget);
  EXPECT_NE(miss(k).second.find(host.fingerprint), std::string::npos);
  k = key;
  k.dtypePolicy = "bf16";
  EXPECT_EQ(miss(k).first, Miss::OtherPolicy);
  k = key;
  k.threads = 1;
  EXPECT_EQ(miss(k), std::pair(Miss::OtherThreads,
                               std::string("tuned for 2 thread(s), wanted 1")));
  EXPECT_EQ(
      miss(key, {"23.1.0", "0.1.0", ""}),
      std::pair(Miss::OtherVersion,
                std::string("made with LLVM 22.1.8, this is LLVM 23.1.0")));
  EXPECT_EQ(miss(key, {"22.1.8", "0.1.0", "hot"}).first, Miss::OtherVersion);
  EXPECT_TRUE(ok(store->getRecord(key, {"22.1.9", "0.1.3", ""})).record)
      << "patch releases fit, and an empty policy fits all";
}

TEST_F(StoreTest, BetterRecordStays) {
  auto store = open();
  Key key = fill(*store);
  auto put = [&](double ns, Evidence evidence = Evidence::Measured,
                 Maker m = maker, Store::Put how = Store::Put::IfBetter) {
    Trial t = trial(key, "{\"t\":" + std::to_string(int(ns)) + "}", ns);
    t.evidence = evidence;
    t.maker = m;
    return ok(store->putRecord(record(t, ok(store->insertTrial(t))), how));
  };
  EXPECT_TRUE(put(10, Evidence::Analytic));
  EXPECT_TRUE(put(100)) << "stronger evidence wins over a smaller time";
  EXPECT_FALSE(put(20, Evidence::Simulated));
  EXPECT_FALSE(put(100)) << "the first of equals stays";
  EXPECT_TRUE(put(90));
  EXPECT_TRUE(put(95, Evidence::Measured, maker, Store::Put::Replace));
  EXPECT_TRUE(put(200, Evidence::Measured, {"22.2.0", "0.1.0", "cold"}))
      << "the old one is of no use to this version";
  EXPECT_EQ(ok(store->records()).size(), 1u);
  EXPECT_TRUE(ok(store->check()).empty());
}

TEST_F(StoreTest, RecordNeedsAnOkTrialOfItsPoint) {
  auto store = open();
  Key key = fill(*store);
  Trial t = trial(key, R"({"t":1})", 10);
  int64_t id = ok(store->insertTrial(t));
  Record r = record(t, id + 1);
  EXPECT_EQ(failure(store->putRecord(r)).kind, Kind::Invalid);
  r = record(t, id);
  r.knobs = R"({"t":2})";
  EXPECT_EQ(failure(store->putRecord(r)).kind, Kind::Invalid);
  r = record(t, id);
  r.evidence = Evidence::Simulated;
  EXPECT_EQ(failure(store->putRecord(r)).kind, Kind::Invalid);
  Trial bad = trial(key, R"({"t":3})", 10);
  bad.outcome = Outcome::WrongResult;
  bad.message = "off by 3";
  EXPECT_EQ(
      failure(store->putRecord(record(bad, ok(store->insertTrial(bad))))).kind,
      Kind::Invalid);
  EXPECT_TRUE(ok(store->records()).empty()) << "refused puts leave nothing";
}

TEST_F(StoreTest, RegionsHaveRecordsToo) {
  auto store = open();
  Key key = fill(*store);
  Region region{"0123456789abcdef",
                "attention",
                {{"fused", {"aa"}}, {"apart", {"bb", "cc"}}}};
  ok(store->addRegion(region));
  Record r;
  r.key = {region.hash, host.fingerprint, 2, "exact"};
  r.isRegion = true;
  r.variant = "neither";
  r.timeNs = 5;
  r.maker = maker;
  EXPECT_EQ(failure(store->putRecord(r)).kind, Kind::Invalid);
  r.variant = "fused";
  EXPECT_TRUE(ok(store->putRecord(r)));
  Lookup hit = ok(store->getRecord(r.key, maker));
  ASSERT_TRUE(hit.record);
  EXPECT_TRUE(hit.record->isRegion);
  EXPECT_EQ(hit.record->variant, "fused");
  std::vector<Region> all = ok(store->regions());
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].variants[1].kernels, (std::vector<std::string>{"bb", "cc"}));
  EXPECT_TRUE(ok(store->check()).empty());
}

TEST_F(StoreTest, NearestIsOfTheSameKindAndTarget) {
  auto store = open();
  auto tune = [&](const Kernel &k, const TargetInfo &target) {
    fill(*store, k);
    ok(store->addTarget(target));
    Trial t = trial({k.hash, target.fingerprint, 2, "exact"}, "{}", 10);
    ok(store->putRecord(record(t, ok(store->insertTrial(t)))));
  };
  tune(kernel("a1", 64), host);
  tune(kernel("a2", 500), host);
  tune(kernel("a3", 128), host);
  tune(kernel("a4", 128, "conv2d"), host);
  tune(kernel("a5", 100), other);
  Kernel k = kernel("a1", 64);
  Key key{k.hash, host.fingerprint, 2, "exact"};
  std::vector<Near> near = ok(store->nearest(k, key, 10));
  ASSERT_EQ(near.size(), 2u);
  EXPECT_EQ(near[0].record.key.kernelHash, kernel("a3").hash);
  EXPECT_EQ(near[1].record.key.kernelHash, kernel("a2").hash);
  EXPECT_LT(near[0].distance, near[1].distance);
  EXPECT_EQ(ok(store->nearest(k, key, 1)).size(), 1u);
}

TEST_F(StoreTest, AddingAgainGivesTheSameRow) {
  auto store = open();
  Kernel k = kernel("aa");
  int64_t id = ok(store->addKernel(k));
  k.name = "renamed";
  EXPECT_EQ(ok(store->addKernel(k)), id);
  EXPECT_EQ(ok(store->getKernel(k.hash))->name, "renamed");
  EXPECT_FALSE(ok(store->getKernel("none")));
  EXPECT_EQ(ok(store->addTarget(host)), ok(store->addTarget(host)));
  EXPECT_EQ(ok(store->addSchedule(schedule)),
            ok(store->addSchedule({"", "again", schedule.text})));
  EXPECT_EQ(ok(store->getSchedule(schedule.hash))->name, "again");
  EXPECT_EQ(failure(store->addSchedule({"00", "n", "text"})).kind,
            Kind::Invalid);
}

//===----------------------------------------------------------------------===//
// Two processes, and killed ones
//===----------------------------------------------------------------------===//

TEST_F(StoreTest, TwoTunersLoseNothing) {
  constexpr int processes = 4, trials = 50;
  std::vector<pid_t> children;
  for (int p = 0; p < processes; ++p) {
    pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      // All create the file, and compete for one record.
      auto store = open();
      Key key = fill(*store);
      for (int i = 0; i < trials; ++i) {
        double ns = 1000 - i * processes - p;
        Trial t = trial(key, "{\"t\":" + std::to_string(int(ns)) + "}", ns);
        ok(store->putRecord(record(t, ok(store->insertTrial(t)))));
      }
      _exit(0);
    }
    children.push_back(child);
  }
  for (pid_t child : children) {
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  auto store = open(Mode::ReadOnly);
  EXPECT_EQ(ok(store->trials()).size(), size_t(processes * trials));
  std::vector<Record> records = ok(store->records());
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].timeNs, 1000 - (trials - 1) * processes - 3);
  EXPECT_TRUE(ok(store->check()).empty());
}

TEST_F(StoreTest, KilledProcessLosesNoFinishedTrial) {
  int pipes[2];
  ASSERT_EQ(pipe(pipes), 0);
  pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    auto store = open();
    Key key = fill(*store);
    for (int i = 1;; ++i) {
      ok(store->insertTrial(
          trial(key, "{\"t\":" + std::to_string(i) + "}", i)));
      if (::write(pipes[1], &i, sizeof i) != sizeof i)
        _exit(1);
    }
  }
  close(pipes[1]);
  int last = 0;
  while (last < 40)
    ASSERT_EQ(::read(pipes[0], &last, sizeof last), (ssize_t)sizeof last);
  kill(child, SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);
  for (int i; ::read(pipes[0], &i, sizeof i) == (ssize_t)sizeof i;)
    last = i;
  close(pipes[0]);
  auto store = open(Mode::ReadWrite);
  EXPECT_GE(ok(store->trials()).size(), size_t(last));
  EXPECT_TRUE(ok(store->check()).empty());
}

//===----------------------------------------------------------------------===//
// Files that are not what they should be
//===----------------------------------------------------------------------===//

TEST_F(StoreTest, MissingFile) {
  EXPECT_EQ(failure(Store::open(path, Mode::ReadOnly)).kind, Kind::Missing);
  EXPECT_EQ(failure(Store::open(path, Mode::ReadWrite)).kind, Kind::Missing);
  EXPECT_FALSE(sys::fs::exists(path)) << "looking must not create it";
  path = (folder + "/no/such/folder.db").str();
  Failure f = failure(Store::open(path, Mode::Create));
  EXPECT_EQ(f.kind, Kind::Io);
  EXPECT_NE(f.message.find("folder"), std::string::npos);
}

TEST_F(StoreTest, NotADatabase) {
  write("module {}");
  Failure f = failure(Store::open(path, Mode::ReadOnly));
  EXPECT_EQ(f.kind, Kind::NotADatabase);
  EXPECT_NE(f.message.find(path), std::string::npos);
  EXPECT_EQ(failure(Store::open(path, Mode::Create)).kind, Kind::NotADatabase);
  EXPECT_EQ(failure(Store::open(folder, Mode::Create)).kind,
            Kind::NotADatabase);
  sys::fs::remove(path);
  sql("CREATE TABLE t (x)");
  f = failure(Store::open(path, Mode::Create));
  EXPECT_EQ(f.kind, Kind::NotADatabase);
  EXPECT_NE(f.message.find("not one of pto"), std::string::npos);
}

TEST_F(StoreTest, EmptyFileIsFilledButNotRead) {
  write("");
  EXPECT_EQ(failure(Store::open(path, Mode::ReadOnly)).kind,
            Kind::NotADatabase);
  fill(*open());
  EXPECT_EQ(ok(open(Mode::ReadOnly)->kernels()).size(), 1u);
}

TEST_F(StoreTest, NamesWithAMeaningToSqlite) {
  for (const char *name : {"/a?b%20c#d.db", "/:memory:"}) {
    path = (folder + name).str();
    fill(*open());
    EXPECT_TRUE(sys::fs::exists(path));
    EXPECT_EQ(ok(open(Mode::ReadOnly)->kernels()).size(), 1u);
  }
}

TEST_F(StoreTest, NewerSchema) {
  open();
  sql("PRAGMA user_version = 99");
  for (Mode mode : {Mode::ReadOnly, Mode::ReadWrite, Mode::Create}) {
    Failure f = failure(Store::open(path, mode));
    EXPECT_EQ(f.kind, Kind::NewerSchema);
    EXPECT_NE(f.message.find("99"), std::string::npos);
  }
}

TEST_F(StoreTest, TruncatedFile) {
  {
    auto store = open();
    Key key = fill(*store);
    for (int i = 1; i < 200; ++i)
      ok(store->insertTrial(
          trial(key, "{\"t\":" + std::to_string(i) + "}", i)));
  }
  uint64_t size = 0;
  ASSERT_FALSE(sys::fs::file_size(path, size));
  for (uint64_t left : {size / 2, size - 100, uint64_t(60)}) {
    ASSERT_EQ(truncate(path.c_str(), left), 0);
    for (Mode mode : {Mode::ReadOnly, Mode::Create}) {
      Failure f = failure(Store::open(path, mode));
      EXPECT_TRUE(f.kind == Kind::Corrupt || f.kind == Kind::NotADatabase)
          << f.message;
    }
  }
}

TEST_F(StoreTest, DamagedPagesAreFound) {
  {
    auto store = open();
    Key key = fill(*store);
    for (int i = 1; i < 200; ++i)
      ok(store->insertTrial(
          trial(key, "{\"t\":" + std::to_string(i) + "}", i)));
  }
  uint64_t size = 0;
  ASSERT_FALSE(sys::fs::file_size(path, size));
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  for (uint64_t at = 8 * 4096; at < size; at += 4096)
    file.seekp(at).write(std::string(64, '\xa5').data(), 64);
  file.close();
  auto store = Store::open(path, Mode::ReadOnly);
  if (store) {
    EXPECT_FALSE(ok((*store)->check()).empty());
    EXPECT_EQ(failure((*store)->trials()).kind, Kind::Corrupt);
  } else {
    EXPECT_EQ(failure(store.takeError()).kind, Kind::Corrupt);
  }
}

TEST_F(StoreTest, CheckSeesEditedRows) {
  {
    auto store = open();
    Key key = fill(*store);
    Trial t = trial(key, R"({"t":1})", 10);
    ok(store->putRecord(record(t, ok(store->insertTrial(t)))));
    EXPECT_TRUE(ok(store->check()).empty());
  }
  auto findings = [&](const char *edit, const char *undo) {
    sql(edit);
    auto store = open(Mode::ReadOnly);
    std::vector<std::string> found = ok(store->check());
    store.reset();
    sql(undo);
    return found.empty() ? std::string("nothing") : found.front();
  };
  EXPECT_EQ(findings("UPDATE trial SET knobs = '{\"t\": 1}'",
                     "UPDATE trial SET knobs = '{\"t\":1}'"),
            "trial 1: knobs is not in canonical form");
  EXPECT_EQ(
      findings("UPDATE trial SET best_ns = 9", "UPDATE trial SET best_ns = 10"),
      "trial 1: best_ns is not the least sample");
  EXPECT_EQ(findings("UPDATE record SET threads = 4",
                     "UPDATE record SET threads = 2"),
            "record 1: has no ok trial of its key, schedule, knobs and "
            "evidence");
  EXPECT_EQ(findings("UPDATE record SET text = 'edited'",
                     "UPDATE record SET text = 'script, filled in'"),
            "record 1: the hash is not that of the text");
  EXPECT_EQ(findings("PRAGMA ignore_check_constraints = 1; UPDATE trial SET "
                     "outcome = 'fine'",
                     "UPDATE trial SET outcome = 'ok'"),
            "trial 1: unknown outcome fine")
      << "SQLite's own check of constraints does not hide it";
  EXPECT_EQ(findings("PRAGMA foreign_keys = 0; UPDATE trial SET kernel = 77",
                     "UPDATE trial SET kernel = 1"),
            "trial 1: refers to a row of kernel that is not there");
  EXPECT_EQ(findings("SELECT 1", "SELECT 1"), "nothing");
}

//===----------------------------------------------------------------------===//
// Environments that fail
//===----------------------------------------------------------------------===//

TEST_F(StoreTest, Locked) {
  auto store = open();
  Key key = fill(*store);
  sqlite3 *db = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &db), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(db, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr),
            SQLITE_OK);
  auto second = open(Mode::ReadWrite, /*busyMs=*/20);
  Failure f = failure(second->insertTrial(trial(key, "{}", 1)));
  EXPECT_EQ(f.kind, Kind::Locked);
  EXPECT_TRUE(ok(second->trials()).empty()) << "readers do not wait";
  sqlite3_exec(db, "ROLLBACK", nullptr, nullptr, nullptr);
  ok(second->insertTrial(trial(key, "{}", 1)));
  sqlite3_close(db);
}

TEST_F(StoreTest, ReadOnlyFolderCanBeReadButNotWritten) {
  Key key = fill(*open());
  chmod(path.c_str(), 0444);
  chmod(folder.c_str(), 0555);
  inChild([&]() -> std::string {
    // Permissions do not bind root.
    if (geteuid() == 0 && (setgid(65534) || setuid(65534)))
      return "";
    auto store = Store::open(path, Mode::ReadOnly);
    if (!store)
      return toString(store.takeError());
    if (ok((*store)->kernels()).size() != 1)
      return "the kernel is not there";
    if (failure((*store)->insertTrial(trial(key, "{}", 1))).kind !=
        Kind::ReadOnly)
      return "a write did not fail as it should";
    for (Mode mode : {Mode::ReadWrite, Mode::Create}) {
      Failure f = failure(Store::open(path, mode));
      if (f.kind != Kind::ReadOnly)
        return "opened for writing: " + f.message;
    }
    Failure f = failure(Store::open((folder + "/new.db").str(), Mode::Create));
    if (f.kind != Kind::ReadOnly)
      return "created: " + f.message;
    return "";
  });
  chmod(folder.c_str(), 0755);
}

TEST_F(StoreTest, ReadingLeavesTheFileAlone) {
  fill(*open());
  sys::fs::file_status before, after;
  ASSERT_FALSE(sys::fs::status(path, before));
  ok(open(Mode::ReadOnly)->kernels());
  ASSERT_FALSE(sys::fs::status(path, after));
  EXPECT_EQ(before.getLastModificationTime(), after.getLastModificationTime());
  EXPECT_EQ(before.getSize(), after.getSize());
}

TEST_F(StoreTest, FullDiskKeepsWhatIsThere) {
  inChild([&]() -> std::string {
    signal(SIGXFSZ, SIG_IGN);
    auto store = open();
    Key key = fill(*store);
    rlimit limit{300 << 10, 300 << 10};
    setrlimit(RLIMIT_FSIZE, &limit);
    for (int i = 1; i < 100000; ++i) {
      Trial t = trial(key, "{\"t\":" + std::to_string(i) + "}", i);
      Expected<int64_t> id = store->insertTrial(t);
      if (id)
        continue;
      Failure f = failure(id.takeError());
      if (f.kind != Kind::DiskFull)
        return f.message;
      size_t kept = ok(store->trials()).size();
      return kept + 1 == size_t(i) ? "" : "lost finished trials";
    }
    return "the limit was never reached";
  });
  auto store = open(Mode::ReadWrite);
  EXPECT_FALSE(ok(store->trials()).empty());
  EXPECT_TRUE(ok(store->check()).empty());
}

TEST_F(StoreTest, ErrorsHaveExitCodes) {
  EXPECT_EQ(StoreError(Kind::Missing, "").exitCode(), 2);
  EXPECT_EQ(StoreError(Kind::Corrupt, "").exitCode(), 2);
  EXPECT_EQ(StoreError(Kind::NewerSchema, "").exitCode(), 2);
  EXPECT_EQ(StoreError(Kind::Locked, "").exitCode(), 3);
  EXPECT_EQ(StoreError(Kind::ReadOnly, "").exitCode(), 3);
  EXPECT_EQ(StoreError(Kind::DiskFull, "").exitCode(), 3);
}
