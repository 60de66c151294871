//===- StoreRecords.cpp - Winners, and why there is none ------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
#include "db/Nearest.h"
#include "db/StoreImpl.h"

#include "llvm/ADT/StringExtras.h"
#include <cmath>
#include <tuple>

using namespace llvm;

namespace pto::db {
namespace {

const char *const recordColumns =
    "SELECT r.id, coalesce(k.hash, g.hash), d.fingerprint, r.threads, "
    "r.dtype_policy, r.region IS NOT NULL, r.variant, coalesce(r.trial, 0), "
    "coalesce(s.hash, ''), r.knobs, r.text, r.evidence, r.time_ns, "
    "r.default_ns, r.llvm, r.pto, r.policy, r.created, k.features "
    "FROM record r "
    "JOIN target d ON d.id = r.target LEFT JOIN kernel k ON k.id = r.kernel "
    "LEFT JOIN region g ON g.id = r.region "
    "LEFT JOIN schedule s ON s.id = r.schedule ";

Expected<Record> readRecord(const Statement &row) {
  Record record;
  record.id = row.integer(0);
  record.key = {row.text(1), row.text(2), unsigned(row.integer(3)),
                row.text(4)};
  record.isRegion = row.integer(5) != 0;
  record.variant = row.text(6);
  record.trial = row.integer(7);
  record.scheduleHash = row.text(8);
  record.knobs = row.text(9);
  record.text = row.text(10);
  std::optional<Evidence> evidence = parseEvidence(row.text(11));
  if (!evidence)
    return malformed("record", record.id, "evidence", row.text(11));
  record.evidence = *evidence;
  record.timeNs = row.real(12);
  record.defaultNs = row.optionalReal(13);
  record.maker = {row.text(14), row.text(15), row.text(16)};
  record.createdMs = row.integer(17);
  return record;
}

bool fits(const Maker &made, const Maker &wanted) {
  return versionFits(made.llvm, wanted.llvm) &&
         versionFits(made.pto, wanted.pto) &&
         (wanted.policy.empty() || made.policy == wanted.policy);
}

/// Says which of the three does not fit.
std::string misfit(const Maker &made, const Maker &wanted) {
  if (!versionFits(made.llvm, wanted.llvm))
    return "made with LLVM " + made.llvm + ", this is LLVM " + wanted.llvm;
  if (!versionFits(made.pto, wanted.pto))
    return "made by pto " + made.pto + ", this is pto " + wanted.pto;
  return "measured as '" + made.policy + "', wanted '" + wanted.policy + "'";
}

/// A fingerprint's start: it can be hundreds of characters.
std::string brief(StringRef text) {
  return text.size() <= 72 ? text.str() : (text.take_front(69) + "...").str();
}

} // namespace

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

/// The row ids that a record refers to; 0 stands for NULL.
struct RecordRefs {
  int64_t kernel = 0, region = 0, target = 0, schedule = 0;
};

static Error checkRegion(Store &store, const Record &record) {
  Expected<std::vector<Region>> regions = store.regions();
  if (!regions)
    return regions.takeError();
  for (const Region &region : *regions)
    if (region.hash == record.key.kernelHash)
      for (const Variant &variant : region.variants)
        if (variant.name == record.variant)
          return Error::success();
  return invalid("region " + record.key.kernelHash + " has no variant '" +
                 record.variant + "'");
}

/// Invariant 2 of Record.h.
static Error checkTrial(Connection &connection, const Record &record,
                        const RecordRefs &refs, StringRef knobs) {
  Expected<Statement> select = connection.prepare(
      "SELECT count(*) FROM trial WHERE id = ? AND outcome = 'ok' AND "
      "kernel = ? AND target = ? AND threads = ? AND dtype_policy = ? AND "
      "schedule = ? AND knobs = ? AND evidence = ?");
  if (!select)
    return select.takeError();
  select->bind(record.trial)
      .bind(refs.kernel)
      .bind(refs.target)
      .bind(int64_t(record.key.threads))
      .bind(record.key.dtypePolicy)
      .bind(refs.schedule)
      .bind(knobs)
      .bind(toString(record.evidence));
  Expected<bool> row = select->step();
  if (!row)
    return row.takeError();
  if (!*row || select->integer(0) != 1)
    return invalid("trial " + Twine(record.trial) +
                   " is not an ok trial of the record's key, schedule, knobs "
                   "and evidence");
  return Error::success();
}

Expected<bool> Store::putRecord(const Record &record, Put put) {
  if (!(record.timeNs > 0) || !std::isfinite(record.timeNs))
    return invalid("a record needs a time");
  if (record.defaultNs && !(*record.defaultNs > 0))
    return invalid("a record's default time is not a time");
  if (!record.isRegion && record.text.empty())
    return invalid("a kernel's record needs the text of its schedule");
  Expected<std::string> knobs = canonicalObject(record.knobs, "knobs");
  if (!knobs)
    return knobs.takeError();

  // The old record is read and replaced under one lock: of two tuners that
  // finish the same kernel, the better one stays.
  Transaction transaction(impl->connection);
  if (Error e = transaction.begin())
    return std::move(e);

  RecordRefs refs;
  Expected<int64_t> owner = impl->require(record.isRegion ? "region" : "kernel",
                                          "hash", record.key.kernelHash);
  if (!owner)
    return owner.takeError();
  (record.isRegion ? refs.region : refs.kernel) = *owner;
  Expected<int64_t> target =
      impl->require("target", "fingerprint", record.key.targetFingerprint);
  if (!target)
    return target.takeError();
  refs.target = *target;
  if (record.isRegion) {
    if (Error e = checkRegion(*this, record))
      return std::move(e);
  } else {
    Expected<int64_t> schedule =
        impl->require("schedule", "hash", record.scheduleHash);
    if (!schedule)
      return schedule.takeError();
    refs.schedule = *schedule;
    if (Error e = checkTrial(impl->connection, record, refs, *knobs))
      return std::move(e);
  }

  Expected<Lookup> old = getRecord(record.key, record.maker);
  if (!old)
    return old.takeError();
  if (put == Put::IfBetter && old->record) {
    const Record &was = *old->record;
    if (was.evidence < record.evidence ||
        (was.evidence == record.evidence && was.timeNs <= record.timeNs))
      return false;
  }

  Expected<Statement> remove = impl->connection.prepare(
      (Twine("DELETE FROM record WHERE ") +
       (record.isRegion ? "region" : "kernel") +
       " = ? AND target = ? AND threads = ? AND dtype_policy = ?")
          .str());
  if (!remove)
    return remove.takeError();
  remove->bind(*owner)
      .bind(refs.target)
      .bind(int64_t(record.key.threads))
      .bind(record.key.dtypePolicy);
  if (Error e = remove->run())
    return std::move(e);

  Expected<Statement> insert = impl->connection.prepare(
      "INSERT INTO record (kernel, region, variant, target, threads, "
      "dtype_policy, trial, schedule, knobs, text, text_hash, evidence, "
      "time_ns, default_ns, llvm, pto, policy, created) VALUES "
      "(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)");
  if (!insert)
    return insert.takeError();
  auto bindId = [&](int64_t id) { id ? insert->bind(id) : insert->bindNull(); };
  bindId(refs.kernel);
  bindId(refs.region);
  insert->bind(record.variant)
      .bind(refs.target)
      .bind(int64_t(record.key.threads))
      .bind(record.key.dtypePolicy);
  bindId(record.isRegion ? 0 : record.trial);
  bindId(refs.schedule);
  insert->bind(*knobs)
      .bind(record.text)
      .bind(hashText(record.text))
      .bind(toString(record.evidence))
      .bind(record.timeNs)
      .bind(record.defaultNs)
      .bind(record.maker.llvm)
      .bind(record.maker.pto)
      .bind(record.maker.policy)
      .bind(record.createdMs ? record.createdMs : unixMs());
  if (Error e = insert->run())
    return std::move(e);
  if (Error e = transaction.commit())
    return std::move(e);
  return true;
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

/// Explains a miss from the records that the kernel has under other keys.
static Lookup explain(const Key &key, ArrayRef<Record> others, bool known) {
  Lookup lookup;
  if (!known) {
    lookup.miss = Miss::UnknownKernel;
    lookup.reason = "never tuned";
    return lookup;
  }
  if (others.empty()) {
    lookup.miss = Miss::NoRecord;
    lookup.reason = "tuning did not come to a winner";
    return lookup;
  }
  std::vector<const Record *> here;
  for (const Record &record : others)
    if (record.key.targetFingerprint == key.targetFingerprint)
      here.push_back(&record);
  if (here.empty()) {
    lookup.miss = Miss::OtherTarget;
    lookup.reason = "tuned for another device: " +
                    brief(others.front().key.targetFingerprint);
    return lookup;
  }
  std::string policies, threads;
  for (const Record *record : here) {
    if (record->key.dtypePolicy == key.dtypePolicy)
      threads +=
          (threads.empty() ? "" : ", ") + std::to_string(record->key.threads);
    else
      policies += (policies.empty() ? "" : ", ") + record->key.dtypePolicy;
  }
  if (threads.empty()) {
    lookup.miss = Miss::OtherPolicy;
    lookup.reason = "tuned under another dtype policy: " + policies +
                    ", wanted " + key.dtypePolicy;
  } else {
    lookup.miss = Miss::OtherThreads;
    lookup.reason = "tuned for " + threads + " thread(s), wanted " +
                    std::to_string(key.threads);
  }
  return lookup;
}

Expected<Lookup> Store::getRecord(const Key &key, const Maker &maker) {
  Expected<Statement> select = impl->connection.prepare(
      (recordColumns + Twine("WHERE k.hash = ?1 OR g.hash = ?1 "
                             "ORDER BY r.threads, r.id"))
          .str());
  if (!select)
    return select.takeError();
  select->bind(key.kernelHash);
  std::vector<Record> others;
  std::optional<Record> hit;
  if (Error e = forEachRow(select, [&]() -> Error {
        Expected<Record> record = readRecord(*select);
        if (!record)
          return record.takeError();
        if (record->key == key)
          hit = std::move(*record);
        else
          others.push_back(std::move(*record));
        return Error::success();
      }))
    return std::move(e);
  Lookup lookup;
  if (hit) {
    if (fits(hit->maker, maker)) {
      lookup.record = std::move(hit);
    } else {
      lookup.miss = Miss::OtherVersion;
      lookup.reason = misfit(hit->maker, maker);
    }
    return lookup;
  }
  Expected<int64_t> kernel = impl->find("kernel", "hash", key.kernelHash);
  if (!kernel)
    return kernel.takeError();
  Expected<int64_t> region = impl->find("region", "hash", key.kernelHash);
  if (!region)
    return region.takeError();
  return explain(key, others, *kernel || *region);
}

Expected<std::vector<Record>> Store::records() {
  Expected<Statement> select = impl->connection.prepare(
      (recordColumns + Twine("ORDER BY r.kernel, r.region, r.id")).str());
  std::vector<Record> all;
  if (Error e = forEachRow(select, [&]() -> Error {
        Expected<Record> record = readRecord(*select);
        if (!record)
          return record.takeError();
        all.push_back(std::move(*record));
        return Error::success();
      }))
    return std::move(e);
  return all;
}

Expected<std::vector<Near>> Store::nearest(const Kernel &kernel, const Key &key,
                                           unsigned count) {
  Expected<Statement> select = impl->connection.prepare(
      (recordColumns +
       Twine("WHERE k.op = ? AND k.hash != ? AND d.fingerprint = ? AND "
             "r.dtype_policy = ? ORDER BY r.id"))
          .str());
  if (!select)
    return select.takeError();
  select->bind(kernel.op)
      .bind(kernel.hash)
      .bind(key.targetFingerprint)
      .bind(key.dtypePolicy);
  std::vector<Near> all;
  if (Error e = forEachRow(select, [&]() -> Error {
        Expected<Record> record = readRecord(*select);
        if (!record)
          return record.takeError();
        double distance =
            featureDistance(kernel.features, select->text(18)) +
            std::abs(std::log2(double(record->key.threads) / key.threads));
        if (std::isfinite(distance))
          all.push_back({std::move(*record), distance});
        return Error::success();
      }))
    return std::move(e);
  llvm::sort(all, [](const Near &a, const Near &b) {
    return std::tie(a.distance, a.record.id) <
           std::tie(b.distance, b.record.id);
  });
  if (all.size() > count)
    all.resize(count);
  return all;
}

} // namespace pto::db
