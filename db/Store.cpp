//===- Store.cpp - Open a database; targets, kernels, schedules -----------===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Trials are in StoreTrials.cpp, records in StoreRecords.cpp, the check in
// Check.cpp.
//
//===----------------------------------------------------------------------===//
#include "db/Schema.h"
#include "db/StoreImpl.h"

#include "llvm/ADT/StringSet.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"
#include <chrono>

using namespace llvm;

namespace pto::db {

//===----------------------------------------------------------------------===//
// What the parts share
//===----------------------------------------------------------------------===//

Error invalid(const Twine &message) {
  return make_error<StoreError>(StoreError::Kind::Invalid, message);
}

Error malformed(StringRef table, int64_t id, StringRef column,
                StringRef value) {
  return make_error<StoreError>(
      StoreError::Kind::Corrupt,
      "row " + Twine(id) + " of table " + table + " has " + column + " '" +
          value.take_front(60) +
          "', which its format does not allow\nlist all such rows with "
          "pto-db FILE check");
}

Expected<std::string> canonicalObject(StringRef json, StringRef what) {
  Expected<json::Value> value = json::parse(json);
  if (!value)
    return invalid(what + " is not JSON: " + toString(value.takeError()));
  if (!value->getAsObject())
    return invalid(what + " is not a JSON object");
  std::string text;
  raw_string_ostream(text) << *value;
  return text;
}

std::string cleanText(StringRef text) {
  std::string clean = json::isUTF8(text) ? text.str() : json::fixUTF8(text);
  llvm::erase(clean, '\0');
  return clean;
}

int64_t unixMs() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

bool versionFits(StringRef made, StringRef wanted) {
  auto majorMinor = [](StringRef version) {
    size_t dot = version.find('.');
    return version.substr(0, version.find('.', dot + 1));
  };
  return majorMinor(made) == majorMinor(wanted);
}

Expected<int64_t> Store::Impl::find(StringRef table, StringRef column,
                                    StringRef text) {
  Expected<Statement> select = connection.prepare(
      ("SELECT id FROM " + table + " WHERE " + column + " = ?").str());
  if (!select)
    return select.takeError();
  select->bind(text);
  Expected<bool> row = select->step();
  if (!row)
    return row.takeError();
  return *row ? select->integer(0) : 0;
}

Expected<int64_t> Store::Impl::require(StringRef table, StringRef column,
                                       StringRef text) {
  Expected<int64_t> id = find(table, column, text);
  if (id && *id == 0)
    return invalid("no " + table + " with " + column + " '" + text +
                   "' was added to the database");
  return id;
}

Error forEachRow(Expected<Statement> &statement, function_ref<Error()> row) {
  if (!statement)
    return statement.takeError();
  while (true) {
    Expected<bool> more = statement->step();
    if (!more)
      return more.takeError();
    if (!*more)
      return Error::success();
    if (Error e = row())
      return e;
  }
}

//===----------------------------------------------------------------------===//
// Store
//===----------------------------------------------------------------------===//

Store::Store(std::unique_ptr<Impl> impl) : impl(std::move(impl)) {}
Store::~Store() = default;

Expected<std::unique_ptr<Store>> Store::open(StringRef path, Mode mode,
                                             int busyMs) {
  if (path.empty())
    return invalid("the database has an empty name\nname a file with --db");
  Expected<Connection> connection =
      mode == Mode::ReadOnly
          ? openReadOnly(path, busyMs)
          : openReadWrite(path, mode == Mode::Create, busyMs);
  if (!connection)
    return connection.takeError();
  auto impl = std::make_unique<Impl>();
  impl->connection = std::move(*connection);
  return std::unique_ptr<Store>(new Store(std::move(impl)));
}

Expected<int64_t> Store::addTarget(const TargetInfo &target) {
  if (target.fingerprint.empty())
    return invalid("a target needs a fingerprint");
  Expected<std::string> facts = canonicalObject(target.facts, "target facts");
  if (!facts)
    return facts.takeError();
  Expected<Statement> insert = impl->connection.prepare(
      "INSERT INTO target (fingerprint, name, facts) VALUES (?, ?, ?) "
      "ON CONFLICT (fingerprint) DO UPDATE SET name = excluded.name, "
      "facts = excluded.facts RETURNING id");
  if (!insert)
    return insert.takeError();
  insert->bind(target.fingerprint).bind(target.name).bind(*facts);
  return insert->runReturning();
}

Expected<int64_t> Store::addKernel(const Kernel &kernel) {
  if (kernel.hash.empty())
    return invalid("a kernel needs a hash");
  Expected<std::string> features =
      canonicalObject(kernel.features, "kernel features");
  if (!features)
    return features.takeError();
  Expected<Statement> insert = impl->connection.prepare(
      "INSERT INTO kernel (hash, name, op, flops, bytes, features, ir) "
      "VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (hash) DO UPDATE SET "
      "name = excluded.name, op = excluded.op, flops = excluded.flops, "
      "bytes = excluded.bytes, features = excluded.features, "
      "ir = excluded.ir RETURNING id");
  if (!insert)
    return insert.takeError();
  insert->bind(kernel.hash)
      .bind(cleanText(kernel.name))
      .bind(kernel.op)
      .bind(kernel.flops)
      .bind(kernel.bytes)
      .bind(*features)
      .bind(kernel.ir);
  return insert->runReturning();
}

Expected<int64_t> Store::addRegion(const Region &region) {
  if (region.hash.empty() || region.variants.empty())
    return invalid("a region needs a hash and at least one variant");
  json::Array variants;
  StringSet<> names;
  for (const Variant &variant : region.variants) {
    if (!names.insert(variant.name).second)
      return invalid("two variants of region " + region.name +
                     " have the name '" + variant.name + "'");
    variants.push_back(json::Object{{"name", variant.name},
                                    {"kernels", json::Array(variant.kernels)}});
  }
  std::string text;
  raw_string_ostream(text) << json::Value(std::move(variants));
  Expected<Statement> insert = impl->connection.prepare(
      "INSERT INTO region (hash, name, variants) VALUES (?, ?, ?) "
      "ON CONFLICT (hash) DO UPDATE SET name = excluded.name, "
      "variants = excluded.variants RETURNING id");
  if (!insert)
    return insert.takeError();
  insert->bind(region.hash).bind(cleanText(region.name)).bind(text);
  return insert->runReturning();
}

Expected<int64_t> Store::addSchedule(Schedule schedule) {
  if (schedule.hash.empty())
    schedule.hash = hashText(schedule.text);
  if (schedule.hash != hashText(schedule.text))
    return invalid("the hash of schedule " + schedule.name +
                   " is not that of its text");
  Expected<Statement> insert = impl->connection.prepare(
      "INSERT INTO schedule (hash, name, text) VALUES (?, ?, ?) "
      "ON CONFLICT (hash) DO UPDATE SET name = excluded.name RETURNING id");
  if (!insert)
    return insert.takeError();
  insert->bind(schedule.hash)
      .bind(cleanText(schedule.name))
      .bind(schedule.text);
  return insert->runReturning();
}

//===----------------------------------------------------------------------===//
// Reading names
//===----------------------------------------------------------------------===//

static Kernel readKernel(const Statement &row) {
  Kernel kernel;
  kernel.hash = row.text(0);
  kernel.name = row.text(1);
  kernel.op = row.text(2);
  kernel.flops = row.integer(3);
  kernel.bytes = row.integer(4);
  kernel.features = row.text(5);
  kernel.ir = row.text(6);
  return kernel;
}
static const char *const kernelColumns =
    "SELECT hash, name, op, flops, bytes, features, ir FROM kernel ";

Expected<std::optional<Kernel>> Store::getKernel(StringRef hash) {
  Expected<Statement> select =
      impl->connection.prepare((kernelColumns + Twine("WHERE hash = ?")).str());
  if (select)
    select->bind(hash);
  std::optional<Kernel> kernel;
  if (Error e = forEachRow(select, [&] {
        kernel = readKernel(*select);
        return Error::success();
      }))
    return std::move(e);
  return kernel;
}

Expected<std::vector<Kernel>> Store::kernels() {
  Expected<Statement> select =
      impl->connection.prepare((kernelColumns + Twine("ORDER BY id")).str());
  std::vector<Kernel> all;
  if (Error e = forEachRow(select, [&] {
        all.push_back(readKernel(*select));
        return Error::success();
      }))
    return std::move(e);
  return all;
}

Expected<std::optional<Schedule>> Store::getSchedule(StringRef hash) {
  Expected<Statement> select = impl->connection.prepare(
      "SELECT hash, name, text FROM schedule WHERE hash = ?");
  if (select)
    select->bind(hash);
  std::optional<Schedule> schedule;
  if (Error e = forEachRow(select, [&] {
        schedule = Schedule{select->text(0), select->text(1), select->text(2)};
        return Error::success();
      }))
    return std::move(e);
  return schedule;
}

Expected<std::vector<Schedule>> Store::schedules() {
  Expected<Statement> select = impl->connection.prepare(
      "SELECT hash, name, text FROM schedule ORDER BY id");
  std::vector<Schedule> all;
  if (Error e = forEachRow(select, [&] {
        all.push_back({select->text(0), select->text(1), select->text(2)});
        return Error::success();
      }))
    return std::move(e);
  return all;
}

Expected<std::vector<TargetInfo>> Store::targets() {
  Expected<Statement> select = impl->connection.prepare(
      "SELECT fingerprint, name, facts FROM target ORDER BY id");
  std::vector<TargetInfo> all;
  if (Error e = forEachRow(select, [&] {
        all.push_back({select->text(0), select->text(1), select->text(2)});
        return Error::success();
      }))
    return std::move(e);
  return all;
}

/// The inverse of what addRegion writes.
static std::optional<std::vector<Variant>> parseVariants(StringRef text) {
  Expected<json::Value> value = json::parse(text);
  if (!value) {
    consumeError(value.takeError());
    return std::nullopt;
  }
  const json::Array *array = value->getAsArray();
  if (!array || array->empty())
    return std::nullopt;
  std::vector<Variant> variants;
  for (const json::Value &element : *array) {
    const json::Object *object = element.getAsObject();
    const json::Array *kernels = object ? object->getArray("kernels") : nullptr;
    std::optional<StringRef> name;
    if (object)
      name = object->getString("name");
    if (!kernels || !name)
      return std::nullopt;
    Variant variant{name->str(), {}};
    for (const json::Value &kernel : *kernels) {
      std::optional<StringRef> hash = kernel.getAsString();
      if (!hash)
        return std::nullopt;
      variant.kernels.push_back(hash->str());
    }
    variants.push_back(std::move(variant));
  }
  return variants;
}

Expected<std::vector<Region>> Store::regions() {
  Expected<Statement> select = impl->connection.prepare(
      "SELECT hash, name, variants, id FROM region ORDER BY id");
  std::vector<Region> all;
  if (Error e = forEachRow(select, [&]() -> Error {
        auto variants = parseVariants(select->text(2));
        if (!variants)
          return malformed("region", select->integer(3), "variants",
                           select->text(2));
        all.push_back({select->text(0), select->text(1), *variants});
        return Error::success();
      }))
    return std::move(e);
  return all;
}

} // namespace pto::db
