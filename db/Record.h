//===- Record.h - What the database knows, and how it is stored -*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// This file owns the format: the C++ structs below and the tables they are
// stored in (db/Schema.cpp creates them). A change here is a change of the
// format: raise schemaVersion in db/Schema.h and add a migration.
//
// THE FILE
//
// One SQLite 3 database, journal mode WAL. `pragma application_id` is
// 0x70746f31 ("pto1"); `pragma user_version` is the schema version. All text is
// UTF-8, all tables STRICT, foreign keys enforced. Beside FILE, while it is
// open or after a crash, lie FILE-wal and FILE-shm: they belong to it.
//
// Units: times are nanoseconds of one call of the kernel (REAL, > 0) unless the
// name says otherwise (compile_ms); sizes are bytes; points in time are Unix
// milliseconds, for people only (clocks are set back, so order is by id).
// JSON is canonical: no spaces, keys sorted, 1.0 written as 1 (canonicalJson).
// Hashes are lower-case hex, at least 16 digits.
//
//   meta       key TEXT PRIMARY KEY, value TEXT
//              "created" (Unix ms), "created_by" (pto version)
//
//   target     a device, as far as times depend on it
//     id           INTEGER PRIMARY KEY
//     fingerprint  TEXT UNIQUE  ISA features in use, caches, core model
//     name         TEXT         family: "cpu"
//     facts        TEXT JSON    object, for people and features
//
//   kernel     a unit of tuning
//     id           INTEGER PRIMARY KEY
//     hash         TEXT UNIQUE  the kernel hash: canonical IR with the concrete
//                               shapes, without the values of constants
//     name         TEXT         for people; need not be unique
//     op           TEXT         kind of the anchor: "matmul", "conv2d", ...
//     flops        INTEGER      of one call, >= 0
//     bytes        INTEGER      inputs + outputs of one call, >= 0
//     features     TEXT JSON    flat object: sizes, dtype, ...; what makes
//                               another kernel "near" (db/Nearest.h)
//     ir           TEXT         module with the kernel, runnable with pto-opt;
//                               constants are those of one model that has it
//
//   region     a part of a graph that can be cut into kernels in several ways
//     id           INTEGER PRIMARY KEY
//     hash         TEXT UNIQUE
//     name         TEXT
//     variants     TEXT JSON    [{"kernels":[kernel hash, ...],"name":...}, ..]
//                               at least one; names unique within the region
//
//   schedule   a script with its knobs open
//     id           INTEGER PRIMARY KEY
//     hash         TEXT UNIQUE  of the text
//     name         TEXT         "matmul/f32_avx512", or a user's file name
//     text         TEXT
//
//   trial      one point of a kernel's space, finished, whatever came out
//     id           INTEGER PRIMARY KEY
//     kernel, target, schedule  REFERENCES
//     threads      INTEGER      the limit given, >= 1
//     dtype_policy TEXT         "exact": no type is narrowed
//     knobs        TEXT JSON    object: knob name -> value (int or string)
//     outcome      TEXT         ok illegal transform-failed compile-failed
//                               too-large timeout crashed wrong-result
//     message      TEXT         '' for ok; else the first line says why
//     evidence     TEXT         measured simulated compiled analytic
//     best_ns      REAL         least sample; NULL unless ok
//     median_ns    REAL         NULL unless ok
//     samples      TEXT JSON    array of ns, in the order taken; [] if none
//     compile_ms   REAL         transform + code generation
//     error        REAL         largest |error| / largest |reference|, or NULL
//     object_hash  TEXT         of the machine code, '' if none: equal objects
//                               are measured once
//     purpose      TEXT         search (a point of the space), default (the
//                               schedule taken without tuning), confirm (a
//                               winner or the default timed again)
//     llvm, pto    TEXT         versions that made it
//     policy       TEXT         how it was measured (tuner/)
//     started      INTEGER      Unix ms
//
//   record     the winner for a key; what pto-compile reads
//     id           INTEGER PRIMARY KEY
//     kernel       REFERENCES   of a kernel's record, else NULL
//     region       REFERENCES   of a region's record, else NULL
//     variant      TEXT         region: the name of the best variant, else ''
//     target, threads, dtype_policy   as in trial
//     trial        REFERENCES   the winning trial; NULL for a region
//     schedule     REFERENCES   with knobs open; NULL for a region
//     knobs        TEXT JSON    the winning values; {} for a region
//     text         TEXT         the schedule with the knobs filled in: runs by
//                               itself; '' for a region
//     text_hash    TEXT
//     evidence     TEXT
//     time_ns      REAL         of the winner
//     default_ns   REAL         of the default schedule, same run; or NULL
//     llvm, pto, policy         what made it
//     created      INTEGER      Unix ms
//
// INVARIANTS (db/Check.h tests them; `pto-db FILE check`)
//
//   1. A record has exactly one of kernel and region, and there is at most one
//      record per (kernel or region, target, threads, dtype_policy): the key.
//   2. A kernel's record names a trial with outcome ok and the same key,
//      schedule, knobs and evidence.
//   3. A trial has times if and only if its outcome is ok; its best_ns is the
//      least of its samples.
//   4. Trials are only ever added. Two trials may have the same point: two
//      tuners may meet, and a confirmation times a winner again.
//   5. The hashes of schedule text and of record text match the texts.
//   6. The variant of a region's record is one of the region's.
//
// Weights' values, file names and dates are part of no key and no hash.
//
//===----------------------------------------------------------------------===//
#ifndef PTO_DB_RECORD_H
#define PTO_DB_RECORD_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace pto::db {

/// What came out of a candidate. A value, never an exception that ends a run.
enum class Outcome {
  Ok,
  Illegal,         ///< A constraint refused the point before any work.
  TransformFailed, ///< The script did not apply, or left something unlowerable.
  CompileFailed,   ///< No machine code.
  TooLarge,        ///< Memory or code size above the limit.
  Timeout,         ///< Compiling or running took longer than the limit.
  Crashed,         ///< The worker died.
  WrongResult,     ///< Ran, but the numbers differ from the reference.
};

/// All outcomes, in the order of the enum.
llvm::ArrayRef<Outcome> allOutcomes();
/// The word used in the database, in JSON and in messages.
llvm::StringRef toString(Outcome outcome);
std::optional<Outcome> parseOutcome(llvm::StringRef word);

/// How a time is known, strongest first. Never compared across.
enum class Evidence {
  Measured,  ///< Ran on the device.
  Simulated, ///< Ran in a simulator of the device.
  Compiled,  ///< Read off the static schedule of the device's own compiler.
  Analytic,  ///< Computed by a model of ours.
};

llvm::StringRef toString(Evidence evidence);
std::optional<Evidence> parseEvidence(llvm::StringRef word);

/// Why a trial was made.
enum class Purpose { Search, Default, Confirm };

llvm::StringRef toString(Purpose purpose);
std::optional<Purpose> parsePurpose(llvm::StringRef word);

/// What a record is good for.
struct Key {
  std::string kernelHash; ///< A region's hash for a region's record.
  std::string targetFingerprint;
  unsigned threads = 1;              ///< The limit; a schedule may use fewer.
  std::string dtypePolicy = "exact"; ///< "exact": no type is narrowed.

  bool operator==(const Key &other) const {
    return kernelHash == other.kernelHash &&
           targetFingerprint == other.targetFingerprint &&
           threads == other.threads && dtypePolicy == other.dtypePolicy;
  }
};

/// What made a trial or record, besides the schedule.
struct Maker {
  std::string llvm;   ///< "22.1.8"
  std::string pto;    ///< "0.1.0"
  std::string policy; ///< How times were taken; equal text, comparable times.

  /// This build's versions with the given policy.
  static Maker current(llvm::StringRef policy);
};

struct TargetInfo {
  std::string fingerprint;
  std::string name;
  std::string facts = "{}"; ///< JSON object.
};

struct Kernel {
  std::string hash;
  std::string name;
  std::string op;
  int64_t flops = 0;
  int64_t bytes = 0;
  std::string features = "{}"; ///< JSON object, flat.
  std::string ir;
};

struct Variant {
  std::string name;
  std::vector<std::string> kernels; ///< Kernel hashes.
};

struct Region {
  std::string hash;
  std::string name;
  std::vector<Variant> variants;
};

struct Schedule {
  std::string hash; ///< hashText(text)
  std::string name;
  std::string text;
};

struct Trial {
  int64_t id = 0; ///< Set by the store.
  Key key;
  std::string scheduleHash;
  std::string knobs = "{}";
  Outcome outcome = Outcome::Ok;
  std::string message;
  Evidence evidence = Evidence::Measured;
  double bestNs = 0; ///< 0 unless ok.
  double medianNs = 0;
  std::vector<double> samplesNs;
  double compileMs = 0;
  std::optional<double> error;
  std::string objectHash;
  Purpose purpose = Purpose::Search;
  Maker maker;
  int64_t startedMs = 0; ///< Unix ms; 0 means now.

  /// Sets samples, best and median, and the outcome to ok. `ns` is not empty.
  void setSamples(llvm::ArrayRef<double> ns);
};

struct Record {
  int64_t id = 0; ///< Set by the store.
  Key key;
  bool isRegion = false;
  std::string variant; ///< Regions only.
  int64_t trial = 0;   ///< Id; 0 for a region.
  std::string scheduleHash;
  std::string knobs = "{}";
  std::string text; ///< The schedule with the knobs filled in.
  Evidence evidence = Evidence::Measured;
  double timeNs = 0;
  std::optional<double> defaultNs;
  Maker maker;
  int64_t createdMs = 0; ///< Unix ms; 0 means now.
};

/// The one spelling of a JSON text that the database stores and compares.
llvm::Expected<std::string> canonicalJson(llvm::StringRef json);

/// 128-bit hash of a text as 32 hex digits. For schedules and their winners.
std::string hashText(llvm::StringRef text);

} // namespace pto::db

#endif // PTO_DB_RECORD_H
