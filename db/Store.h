//===- Store.h - Read and write the database --------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The one door to a database file (format: Record.h). Every write is its own
// transaction, durable when the call returns, so a killed run loses nothing;
// any number of processes may read and write one file at once. All errors are
// StoreErrors. A Store belongs to one thread, and must not cross a fork.
//
// Order of use when tuning: addTarget, addKernel, addSchedule (all may be
// repeated), findTrial before any work on a point, insertTrial after it,
// putRecord for the winner.
//
//===----------------------------------------------------------------------===//
#ifndef PTO_DB_STORE_H
#define PTO_DB_STORE_H

#include "db/Record.h"
#include "db/StoreError.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <memory>

namespace pto::db {

/// Why there is no record for a key. The first that holds, in this order.
enum class Miss {
  UnknownKernel, ///< Never tuned anywhere.
  OtherTarget,   ///< Tuned, for other devices only.
  OtherPolicy,   ///< Tuned for this device, with other dtype policies.
  OtherThreads,  ///< Tuned for this device, with other thread limits.
  OtherVersion,  ///< The key is equal, but what made it does not fit.
  NoRecord,      ///< Trials at most: no winner was stored.
};

/// A record, or the reason why there is none, for people.
struct Lookup {
  std::optional<Record> record;
  Miss miss = Miss::UnknownKernel; ///< Without a record.
  std::string reason;              ///< Without a record.
};

/// Narrows what trials() gives. Empty fields do not narrow.
struct TrialFilter {
  std::string kernelHash;
  std::string targetFingerprint;
  std::optional<unsigned> threads;
  std::string dtypePolicy;
  std::optional<Outcome> outcome;
};

/// A neighbour's record, and how far the two kernels are apart.
struct Near {
  Record record;
  double distance = 0; ///< featureDistance plus log2 of the thread ratio.
};

class Store {
public:
  enum class Mode {
    ReadOnly,  ///< Never writes a byte; the file may lie in a read-only folder.
    ReadWrite, ///< The file must exist.
    Create,    ///< Made when missing.
  };

  /// `busyMs`: how long to wait for another process's lock.
  static llvm::Expected<std::unique_ptr<Store>>
  open(llvm::StringRef path, Mode mode, int busyMs = 10000);
  ~Store();

  //===--------------------------------------------------------------------===//
  // Names. Adding what is there already updates what people read, and gives
  // the same row. The returned id is that row's.
  //===--------------------------------------------------------------------===//

  llvm::Expected<int64_t> addTarget(const TargetInfo &target);
  llvm::Expected<int64_t> addKernel(const Kernel &kernel);
  llvm::Expected<int64_t> addRegion(const Region &region);
  /// Fills in the hash when empty.
  llvm::Expected<int64_t> addSchedule(Schedule schedule);

  llvm::Expected<std::optional<Kernel>> getKernel(llvm::StringRef hash);
  llvm::Expected<std::optional<Schedule>> getSchedule(llvm::StringRef hash);

  llvm::Expected<std::vector<TargetInfo>> targets();
  llvm::Expected<std::vector<Kernel>> kernels();
  llvm::Expected<std::vector<Region>> regions();
  llvm::Expected<std::vector<Schedule>> schedules();

  //===--------------------------------------------------------------------===//
  // Trials
  //===--------------------------------------------------------------------===//

  /// Kernel, target and schedule must have been added. Returns the id.
  llvm::Expected<int64_t> insertTrial(const Trial &trial);

  /// The last trial of this point that the same versions made under the same
  /// policy, whatever its outcome: it need not be made again. Confirmations do
  /// not count. `knobs` may be any spelling of the JSON.
  llvm::Expected<std::optional<Trial>> findTrial(const Key &key,
                                                 llvm::StringRef scheduleHash,
                                                 llvm::StringRef knobs,
                                                 const Maker &maker);

  /// The last trial, other than a confirmation, of equal machine code under the
  /// same key and policy.
  llvm::Expected<std::optional<Trial>>
  findObject(const Key &key, llvm::StringRef objectHash, const Maker &maker);

  /// In the order made.
  llvm::Expected<std::vector<Trial>> trials(const TrialFilter &filter = {});

  /// The `count` fastest ok trials of the key, with the strongest evidence that
  /// it has; ties in the order made. One per point.
  llvm::Expected<std::vector<Trial>> bestTrials(const Key &key, unsigned count);

  //===--------------------------------------------------------------------===//
  // Records
  //===--------------------------------------------------------------------===//

  enum class Put {
    IfBetter, ///< Keep the old one if it fits the same maker and is as good:
              ///< stronger evidence, or equal evidence and no slower.
    Replace,
  };

  /// Stores the winner of a key; true if it is the key's record now. A kernel's
  /// record names an ok trial of the same point.
  llvm::Expected<bool> putRecord(const Record &record, Put put = Put::IfBetter);

  /// The record with exactly this key that `maker`'s versions can use. An empty
  /// policy in `maker` fits every policy.
  llvm::Expected<Lookup> getRecord(const Key &key, const Maker &maker);

  /// Records of other kernels with the same kind of op, for the same target and
  /// dtype policy, nearest first; any thread limit and any version.
  llvm::Expected<std::vector<Near>> nearest(const Kernel &kernel,
                                            const Key &key, unsigned count);

  llvm::Expected<std::vector<Record>> records();

  //===--------------------------------------------------------------------===//
  // Health
  //===--------------------------------------------------------------------===//

  /// The findings of SQLite's integrity check and of Record.h's invariants, one
  /// line each; empty when all is well. An error when it cannot be read.
  llvm::Expected<std::vector<std::string>> check();

private:
  struct Impl;
  explicit Store(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl;
};

} // namespace pto::db

#endif // PTO_DB_STORE_H
