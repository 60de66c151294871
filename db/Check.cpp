//===- Check.cpp - Do the rows keep the format's promises? ----------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
#include "db/Check.h"
#include "db/Schema.h"
#include "db/StoreImpl.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/JSON.h"
#include <cmath>

using namespace llvm;

namespace pto::db {
namespace {

/// Findings are for people: a database with a million bad rows needs no
/// million lines.
constexpr size_t maxFindings = 100;

class Checker {
public:
  explicit Checker(Connection &db) : db(db) {}

  Error run() {
    for (auto step : {&Checker::foreignKeys, &Checker::names, &Checker::texts,
                      &Checker::trials, &Checker::records})
      if (Error e = (this->*step)())
        return e;
    return Error::success();
  }
  std::vector<std::string> findings;

private:
  void found(StringRef table, int64_t id, const Twine &what) {
    if (findings.size() < maxFindings)
      findings.push_back((table + " " + Twine(id) + ": " + what).str());
  }

  /// Runs `sql`, whose first column is the id, and calls `row` for each row.
  Error each(StringRef sql, function_ref<void(const Statement &)> row) {
    Expected<Statement> select = db.prepare(sql);
    return forEachRow(select, [&] {
      row(*select);
      return Error::success();
    });
  }

  void object(StringRef table, int64_t id, StringRef column, StringRef text) {
    Expected<std::string> canonical = canonicalObject(text, column);
    if (!canonical)
      found(table, id, toString(canonical.takeError()));
    else if (*canonical != text)
      found(table, id, column + " is not in canonical form");
  }

  void hash(StringRef table, int64_t id, StringRef text) {
    bool hex = text.size() >= 16 && llvm::all_of(text, [](char c) {
                 return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
               });
    if (!hex)
      found(table, id,
            "hash '" + text.take_front(40) +
                "' is not lower-case hex of at least 16 digits");
  }

  Error foreignKeys() {
    return each("SELECT rowid, \"table\", parent FROM "
                "pragma_foreign_key_check",
                [&](const Statement &row) {
                  found(row.text(1), row.integer(0),
                        "refers to a row of " + row.text(2) +
                            " that is not there");
                });
  }

  Error names() {
    if (Error e = each("SELECT id, facts, fingerprint FROM target",
                       [&](const Statement &row) {
                         object("target", row.integer(0), "facts", row.text(1));
                         if (row.text(2).empty())
                           found("target", row.integer(0), "no fingerprint");
                       }))
      return e;
    if (Error e = each("SELECT id, hash, features, ir FROM kernel",
                       [&](const Statement &row) {
                         hash("kernel", row.integer(0), row.text(1));
                         object("kernel", row.integer(0), "features",
                                row.text(2));
                         if (row.text(3).empty())
                           found("kernel", row.integer(0), "no IR");
                       }))
      return e;
    return each("SELECT id, hash, json_valid(variants) FROM region",
                [&](const Statement &row) {
                  hash("region", row.integer(0), row.text(1));
                  if (!row.integer(2))
                    found("region", row.integer(0), "variants are not JSON");
                });
  }

  Error texts() {
    auto matches = [&](StringRef table) {
      return [this, table](const Statement &row) {
        if (row.text(1) != hashText(row.text(2)))
          found(table, row.integer(0), "the hash is not that of the text");
      };
    };
    if (Error e =
            each("SELECT id, hash, text FROM schedule", matches("schedule")))
      return e;
    return each("SELECT id, text_hash, text FROM record", matches("record"));
  }

  void samples(const Statement &row) {
    int64_t id = row.integer(0);
    Expected<json::Value> value = json::parse(row.text(3));
    if (!value) {
      consumeError(value.takeError());
      return found("trial", id, "samples are not JSON");
    }
    const json::Array *array = value->getAsArray();
    if (!array)
      return found("trial", id, "samples are not an array");
    double least = INFINITY;
    for (const json::Value &element : *array) {
      std::optional<double> ns = element.getAsNumber();
      if (!ns || !(*ns > 0))
        return found("trial", id, "a sample is not a time");
      least = std::min(least, *ns);
    }
    if (row.isNull(4) != array->empty())
      found("trial", id, "has samples without a best time, or the reverse");
    else if (!row.isNull(4) && least != row.real(4))
      found("trial", id, "best_ns is not the least sample");
  }

  Error trials() {
    return each("SELECT id, knobs, outcome, samples, best_ns, message, "
                "evidence, purpose FROM trial ORDER BY id",
                [&](const Statement &row) {
                  int64_t id = row.integer(0);
                  object("trial", id, "knobs", row.text(1));
                  std::optional<Outcome> outcome = parseOutcome(row.text(2));
                  if (!outcome)
                    found("trial", id, "unknown outcome " + row.text(2));
                  if (!parseEvidence(row.text(6)))
                    found("trial", id, "unknown evidence " + row.text(6));
                  if (!parsePurpose(row.text(7)))
                    found("trial", id, "unknown purpose " + row.text(7));
                  bool ok = outcome == Outcome::Ok;
                  if (outcome && ok == row.isNull(4))
                    found("trial", id,
                          "has a time and is not ok, or the reverse");
                  if (outcome && !ok && row.text(5).empty())
                    found("trial", id, "no message says why it failed");
                  samples(row);
                });
  }

  Error records() {
    if (Error e = each(
            "SELECT id, knobs, (kernel IS NULL) + (region IS NULL) FROM record",
            [&](const Statement &row) {
              object("record", row.integer(0), "knobs", row.text(1));
              if (row.integer(2) != 1)
                found("record", row.integer(0),
                      "needs either a kernel or a region");
            }))
      return e;
    if (Error e = each(
            "SELECT r.id FROM record r LEFT JOIN trial t ON t.id = r.trial "
            "AND t.outcome = 'ok' AND t.kernel = r.kernel AND "
            "t.target = r.target AND t.threads = r.threads AND "
            "t.dtype_policy = r.dtype_policy AND t.schedule = r.schedule AND "
            "t.knobs = r.knobs AND t.evidence = r.evidence "
            "WHERE r.kernel IS NOT NULL AND t.id IS NULL",
            [&](const Statement &row) {
              found("record", row.integer(0),
                    "has no ok trial of its key, schedule, knobs and evidence");
            }))
      return e;
    return each("SELECT r.id, r.variant FROM record r JOIN region g ON "
                "g.id = r.region WHERE json_valid(g.variants) AND NOT EXISTS "
                "(SELECT 1 FROM json_each(g.variants) v WHERE "
                "json_extract(v.value, '$.name') = r.variant)",
                [&](const Statement &row) {
                  found("record", row.integer(0),
                        "its region has no variant '" + row.text(1) + "'");
                });
  }

  Connection &db;
};

} // namespace

Expected<std::vector<std::string>> checkInvariants(Connection &db) {
  Checker checker(db);
  if (Error e = checker.run())
    return std::move(e);
  return std::move(checker.findings);
}

Expected<std::vector<std::string>> Store::check() {
  // Rows of damaged pages can be anything: stop at the first kind of damage.
  if (Error e = checkIntegrity(impl->connection, /*quick=*/false)) {
    std::string message;
    bool corrupt = false;
    e = handleErrors(std::move(e), [&](const StoreError &damage) -> Error {
      if (damage.getKind() != StoreError::Kind::Corrupt)
        return make_error<StoreError>(damage);
      corrupt = true;
      message = damage.message();
      return Error::success();
    });
    if (e)
      return std::move(e);
    if (corrupt)
      return std::vector<std::string>{message};
  }
  return checkInvariants(impl->connection);
}

} // namespace pto::db
