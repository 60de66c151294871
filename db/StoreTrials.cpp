//===- StoreTrials.cpp - Write and find trials ----------------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
#include "db/StoreImpl.h"

#include "llvm/ADT/StringSet.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>
#include <tuple>

using namespace llvm;

namespace pto::db {
namespace {

/// Compilers' messages can hold whole modules; people read the start.
constexpr size_t maxMessageBytes = 4096;

const char *const trialColumns =
    "SELECT t.id, k.hash, d.fingerprint, t.threads, t.dtype_policy, s.hash, "
    "t.knobs, t.outcome, t.message, t.evidence, t.best_ns, t.median_ns, "
    "t.samples, t.compile_ms, t.error, t.object_hash, t.purpose, t.llvm, "
    "t.pto, t.policy, t.started FROM trial t JOIN kernel k ON k.id = t.kernel "
    "JOIN target d ON d.id = t.target JOIN schedule s ON s.id = t.schedule ";

std::optional<std::vector<double>> parseSamples(StringRef text) {
  Expected<json::Value> value = json::parse(text);
  if (!value) {
    consumeError(value.takeError());
    return std::nullopt;
  }
  const json::Array *array = value->getAsArray();
  if (!array)
    return std::nullopt;
  std::vector<double> samples;
  for (const json::Value &element : *array) {
    std::optional<double> sample = element.getAsNumber();
    if (!sample)
      return std::nullopt;
    samples.push_back(*sample);
  }
  return samples;
}

Expected<Trial> readTrial(const Statement &row) {
  Trial trial;
  trial.id = row.integer(0);
  trial.key = {row.text(1), row.text(2), unsigned(row.integer(3)), row.text(4)};
  trial.scheduleHash = row.text(5);
  trial.knobs = row.text(6);
  std::optional<Outcome> outcome = parseOutcome(row.text(7));
  if (!outcome)
    return malformed("trial", trial.id, "outcome", row.text(7));
  trial.outcome = *outcome;
  trial.message = row.text(8);
  std::optional<Evidence> evidence = parseEvidence(row.text(9));
  if (!evidence)
    return malformed("trial", trial.id, "evidence", row.text(9));
  trial.evidence = *evidence;
  trial.bestNs = row.real(10);
  trial.medianNs = row.real(11);
  std::optional<std::vector<double>> samples = parseSamples(row.text(12));
  if (!samples)
    return malformed("trial", trial.id, "samples", row.text(12));
  trial.samplesNs = std::move(*samples);
  trial.compileMs = row.real(13);
  trial.error = row.optionalReal(14);
  trial.objectHash = row.text(15);
  std::optional<Purpose> purpose = parsePurpose(row.text(16));
  if (!purpose)
    return malformed("trial", trial.id, "purpose", row.text(16));
  trial.purpose = *purpose;
  trial.maker = {row.text(17), row.text(18), row.text(19)};
  trial.startedMs = row.integer(20);
  return trial;
}

/// The first row, or none.
Expected<std::optional<Trial>> readOne(Expected<Statement> &select) {
  if (!select)
    return select.takeError();
  Expected<bool> row = select->step();
  if (!row)
    return row.takeError();
  if (!*row)
    return std::nullopt;
  Expected<Trial> trial = readTrial(*select);
  if (!trial)
    return trial.takeError();
  return std::move(*trial);
}

Error checkTimes(const Trial &trial) {
  if (trial.outcome != Outcome::Ok) {
    if (trial.message.empty())
      return invalid("a trial that is " + toString(trial.outcome) +
                     " needs a message");
    return Error::success();
  }
  for (double ns : trial.samplesNs)
    if (!std::isfinite(ns) || ns <= 0)
      return invalid(
          "a sample of a trial is not a time: " + std::to_string(ns) + " ns");
  if (trial.samplesNs.empty() || !(trial.bestNs > 0) || !(trial.medianNs > 0))
    return invalid("a trial that is ok needs samples, best and median");
  if (trial.bestNs != *llvm::min_element(trial.samplesNs))
    return invalid("the best time of a trial is not its least sample");
  return Error::success();
}

} // namespace

Expected<int64_t> Store::insertTrial(const Trial &trial) {
  if (Error e = checkTimes(trial))
    return std::move(e);
  Expected<std::string> knobs = canonicalObject(trial.knobs, "knobs");
  if (!knobs)
    return knobs.takeError();
  if (trial.key.threads < 1)
    return invalid("a trial needs a thread limit of at least 1");
  Expected<int64_t> kernel =
      impl->require("kernel", "hash", trial.key.kernelHash);
  if (!kernel)
    return kernel.takeError();
  Expected<int64_t> target =
      impl->require("target", "fingerprint", trial.key.targetFingerprint);
  if (!target)
    return target.takeError();
  Expected<int64_t> schedule =
      impl->require("schedule", "hash", trial.scheduleHash);
  if (!schedule)
    return schedule.takeError();

  bool ok = trial.outcome == Outcome::Ok;
  std::string samples;
  raw_string_ostream(samples)
      << json::Value(json::Array(ok ? trial.samplesNs : std::vector<double>()));
  Expected<Statement> insert = impl->connection.prepare(
      "INSERT INTO trial (kernel, target, threads, dtype_policy, schedule, "
      "knobs, outcome, message, evidence, best_ns, median_ns, samples, "
      "compile_ms, error, object_hash, purpose, llvm, pto, policy, started) "
      "VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)");
  if (!insert)
    return insert.takeError();
  insert->bind(*kernel)
      .bind(*target)
      .bind(int64_t(trial.key.threads))
      .bind(trial.key.dtypePolicy)
      .bind(*schedule)
      .bind(*knobs)
      .bind(toString(trial.outcome))
      .bind(cleanText(StringRef(trial.message).take_front(maxMessageBytes)))
      .bind(toString(trial.evidence))
      .bind(ok ? std::optional<double>(trial.bestNs) : std::nullopt)
      .bind(ok ? std::optional<double>(trial.medianNs) : std::nullopt)
      .bind(samples)
      .bind(trial.compileMs)
      .bind(trial.error)
      .bind(trial.objectHash)
      .bind(toString(trial.purpose))
      .bind(trial.maker.llvm)
      .bind(trial.maker.pto)
      .bind(trial.maker.policy)
      .bind(trial.startedMs ? trial.startedMs : unixMs());
  // A single statement is a transaction of its own.
  if (Error e = insert->run())
    return std::move(e);
  return impl->connection.lastInsertId();
}

Expected<std::optional<Trial>> Store::findTrial(const Key &key,
                                                StringRef scheduleHash,
                                                StringRef knobs,
                                                const Maker &maker) {
  Expected<std::string> canonical = canonicalObject(knobs, "knobs");
  if (!canonical)
    return canonical.takeError();
  Expected<Statement> select = impl->connection.prepare(
      (trialColumns +
       Twine("WHERE k.hash = ? AND d.fingerprint = ? AND t.threads = ? AND "
             "t.dtype_policy = ? AND s.hash = ? AND t.knobs = ? AND "
             "t.llvm = ? AND t.pto = ? AND t.policy = ? AND "
             "t.purpose != 'confirm' ORDER BY t.id DESC LIMIT 1"))
          .str());
  if (select)
    select->bind(key.kernelHash)
        .bind(key.targetFingerprint)
        .bind(int64_t(key.threads))
        .bind(key.dtypePolicy)
        .bind(scheduleHash)
        .bind(*canonical)
        .bind(maker.llvm)
        .bind(maker.pto)
        .bind(maker.policy);
  return readOne(select);
}

Expected<std::optional<Trial>>
Store::findObject(const Key &key, StringRef objectHash, const Maker &maker) {
  if (objectHash.empty())
    return std::nullopt;
  Expected<Statement> select = impl->connection.prepare(
      (trialColumns +
       Twine("WHERE t.object_hash = ? AND k.hash = ? AND d.fingerprint = ? "
             "AND t.threads = ? AND t.dtype_policy = ? AND t.policy = ? AND "
             "t.purpose != 'confirm' ORDER BY t.id DESC LIMIT 1"))
          .str());
  if (select)
    select->bind(objectHash)
        .bind(key.kernelHash)
        .bind(key.targetFingerprint)
        .bind(int64_t(key.threads))
        .bind(key.dtypePolicy)
        .bind(maker.policy);
  return readOne(select);
}

Expected<std::vector<Trial>> Store::trials(const TrialFilter &filter) {
  std::string sql = trialColumns + std::string("WHERE 1");
  if (!filter.kernelHash.empty())
    sql += " AND k.hash = ?";
  if (!filter.targetFingerprint.empty())
    sql += " AND d.fingerprint = ?";
  if (filter.threads)
    sql += " AND t.threads = ?";
  if (!filter.dtypePolicy.empty())
    sql += " AND t.dtype_policy = ?";
  if (filter.outcome)
    sql += " AND t.outcome = ?";
  Expected<Statement> select = impl->connection.prepare(sql + " ORDER BY t.id");
  if (!select)
    return select.takeError();
  if (!filter.kernelHash.empty())
    select->bind(filter.kernelHash);
  if (!filter.targetFingerprint.empty())
    select->bind(filter.targetFingerprint);
  if (filter.threads)
    select->bind(int64_t(*filter.threads));
  if (!filter.dtypePolicy.empty())
    select->bind(filter.dtypePolicy);
  if (filter.outcome)
    select->bind(toString(*filter.outcome));

  std::vector<Trial> all;
  if (Error e = forEachRow(select, [&]() -> Error {
        Expected<Trial> trial = readTrial(*select);
        if (!trial)
          return trial.takeError();
        all.push_back(std::move(*trial));
        return Error::success();
      }))
    return std::move(e);
  return all;
}

Expected<std::vector<Trial>> Store::bestTrials(const Key &key, unsigned count) {
  TrialFilter filter{key.kernelHash, key.targetFingerprint, key.threads,
                     key.dtypePolicy, Outcome::Ok};
  Expected<std::vector<Trial>> all = trials(filter);
  if (!all)
    return all.takeError();
  // Times of weaker evidence say nothing about those of stronger.
  llvm::sort(*all, [](const Trial &a, const Trial &b) {
    return std::tie(a.evidence, a.bestNs, a.id) <
           std::tie(b.evidence, b.bestNs, b.id);
  });
  std::vector<Trial> best;
  StringSet<> points;
  for (Trial &trial : *all) {
    if (best.size() == count || trial.evidence != all->front().evidence)
      break;
    if (points.insert(trial.scheduleHash + trial.knobs).second)
      best.push_back(std::move(trial));
  }
  return best;
}

} // namespace pto::db
