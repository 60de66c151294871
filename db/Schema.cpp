//===- Schema.cpp - Open a database file and bring it up to date ----------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
#include "db/Schema.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include <chrono>
#include <sqlite3.h>
#include <thread>

using namespace llvm;

namespace pto::db {
namespace {

using Kind = StoreError::Kind;

// migrations[v] brings version v to v + 1. Never edit one that was released.
const char *const migrations[] = {
    R"sql(
CREATE TABLE meta (
  key TEXT PRIMARY KEY,
  value TEXT NOT NULL
) STRICT;
CREATE TABLE target (
  id INTEGER PRIMARY KEY,
  fingerprint TEXT NOT NULL UNIQUE,
  name TEXT NOT NULL,
  facts TEXT NOT NULL
) STRICT;
CREATE TABLE kernel (
  id INTEGER PRIMARY KEY,
  hash TEXT NOT NULL UNIQUE,
  name TEXT NOT NULL,
  op TEXT NOT NULL,
  flops INTEGER NOT NULL CHECK (flops >= 0),
  bytes INTEGER NOT NULL CHECK (bytes >= 0),
  features TEXT NOT NULL,
  ir TEXT NOT NULL
) STRICT;
CREATE INDEX kernel_op ON kernel (op);
CREATE TABLE region (
  id INTEGER PRIMARY KEY,
  hash TEXT NOT NULL UNIQUE,
  name TEXT NOT NULL,
  variants TEXT NOT NULL
) STRICT;
CREATE TABLE schedule (
  id INTEGER PRIMARY KEY,
  hash TEXT NOT NULL UNIQUE,
  name TEXT NOT NULL,
  text TEXT NOT NULL
) STRICT;
CREATE TABLE trial (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  kernel INTEGER NOT NULL REFERENCES kernel (id),
  target INTEGER NOT NULL REFERENCES target (id),
  threads INTEGER NOT NULL CHECK (threads >= 1),
  dtype_policy TEXT NOT NULL,
  schedule INTEGER NOT NULL REFERENCES schedule (id),
  knobs TEXT NOT NULL,
  outcome TEXT NOT NULL CHECK (outcome IN ('ok', 'illegal', 'transform-failed',
    'compile-failed', 'too-large', 'timeout', 'crashed', 'wrong-result')),
  message TEXT NOT NULL,
  evidence TEXT NOT NULL CHECK (evidence IN ('measured', 'simulated',
    'compiled', 'analytic')),
  best_ns REAL CHECK (best_ns > 0),
  median_ns REAL CHECK (median_ns > 0),
  samples TEXT NOT NULL,
  compile_ms REAL NOT NULL CHECK (compile_ms >= 0),
  error REAL,
  object_hash TEXT NOT NULL,
  purpose TEXT NOT NULL CHECK (purpose IN ('search', 'default', 'confirm')),
  llvm TEXT NOT NULL,
  pto TEXT NOT NULL,
  policy TEXT NOT NULL,
  started INTEGER NOT NULL,
  CHECK ((outcome = 'ok') = (best_ns IS NOT NULL)),
  CHECK ((outcome = 'ok') = (median_ns IS NOT NULL))
) STRICT;
CREATE INDEX trial_point ON trial
  (kernel, target, threads, dtype_policy, schedule, knobs);
CREATE INDEX trial_object ON trial (object_hash) WHERE object_hash != '';
CREATE TABLE record (
  id INTEGER PRIMARY KEY,
  kernel INTEGER REFERENCES kernel (id),
  region INTEGER REFERENCES region (id),
  variant TEXT NOT NULL,
  target INTEGER NOT NULL REFERENCES target (id),
  threads INTEGER NOT NULL CHECK (threads >= 1),
  dtype_policy TEXT NOT NULL,
  trial INTEGER REFERENCES trial (id),
  schedule INTEGER REFERENCES schedule (id),
  knobs TEXT NOT NULL,
  text TEXT NOT NULL,
  text_hash TEXT NOT NULL,
  evidence TEXT NOT NULL CHECK (evidence IN ('measured', 'simulated',
    'compiled', 'analytic')),
  time_ns REAL NOT NULL CHECK (time_ns > 0),
  default_ns REAL CHECK (default_ns > 0),
  llvm TEXT NOT NULL,
  pto TEXT NOT NULL,
  policy TEXT NOT NULL,
  created INTEGER NOT NULL,
  CHECK ((kernel IS NULL) != (region IS NULL)),
  CHECK ((kernel IS NULL) = (trial IS NULL)),
  CHECK ((kernel IS NULL) = (schedule IS NULL))
) STRICT;
CREATE UNIQUE INDEX record_kernel ON record
  (kernel, target, threads, dtype_policy) WHERE kernel IS NOT NULL;
CREATE UNIQUE INDEX record_region ON record
  (region, target, threads, dtype_policy) WHERE region IS NOT NULL;
)sql"};
static_assert(std::size(migrations) == schemaVersion);

Error storeError(Kind kind, const Twine &message) {
  return make_error<StoreError>(kind, message);
}

bool isKind(const Error &error, Kind kind) {
  bool is = false;
  visitErrors(error, [&](const ErrorInfoBase &info) {
    if (info.isA<StoreError>())
      is = static_cast<const StoreError &>(info).getKind() == kind;
  });
  return is;
}

//===----------------------------------------------------------------------===//
// What the file is, before SQLite sees it
//===----------------------------------------------------------------------===//

struct FileFacts {
  bool exists = false;
  uint64_t size = 0;
  bool suspicious = false; ///< Shorter than its header says, or ragged.
};

/// Looks at the first 100 bytes (https://www.sqlite.org/fileformat2.html §1.3),
/// so that other formats get a message of their own.
Expected<FileFacts> inspect(StringRef path) {
  FileFacts facts;
  sys::fs::file_status status;
  std::error_code ec = sys::fs::status(path, status);
  if (ec == std::errc::no_such_file_or_directory)
    return facts;
  if (ec)
    return storeError(Kind::ReadOnly, path + " is not accessible (" +
                                          ec.message() +
                                          ")\ncheck the permissions of the "
                                          "file and of its folder");
  if (sys::fs::is_directory(status))
    return storeError(Kind::NotADatabase,
                      path + " is a folder, not a database of pto\n"
                             "name a file with --db");
  if (!sys::fs::is_regular_file(status))
    return storeError(Kind::NotADatabase,
                      path + " is not a regular file\nname a file with --db");
  facts.exists = true;
  facts.size = status.getSize();
  if (facts.size == 0)
    return facts;
  ErrorOr<std::unique_ptr<MemoryBuffer>> head =
      MemoryBuffer::getFileSlice(path, std::min<uint64_t>(facts.size, 100), 0);
  if (!head)
    return storeError(Kind::ReadOnly, path + " cannot be read (" +
                                          head.getError().message() +
                                          ")\ncheck its permissions");
  StringRef bytes = (*head)->getBuffer();
  if (!bytes.starts_with(StringRef("SQLite format 3\0", 16)))
    return storeError(Kind::NotADatabase,
                      path + " is not a database of pto (no SQLite header)\n"
                             "name another file with --db");
  if (bytes.size() < 100) {
    facts.suspicious = true;
    return facts;
  }
  uint64_t pageSize = support::endian::read16be(bytes.data() + 16);
  if (pageSize == 1)
    pageSize = 65536;
  uint64_t pages = support::endian::read32be(bytes.data() + 28);
  facts.suspicious = pageSize == 0 || facts.size % pageSize != 0 ||
                     pages * pageSize > facts.size;
  return facts;
}

/// SQLite gives names like ":memory:" and "file:x" a meaning of their own.
std::string absolute(StringRef path) {
  SmallString<256> full(path);
  (void)sys::fs::make_absolute(full);
  return full.str().str();
}

//===----------------------------------------------------------------------===//
// What the database is
//===----------------------------------------------------------------------===//

struct Identity {
  int64_t application = 0;
  int64_t version = 0;
  int64_t tables = 0;
};

/// Call within a transaction.
Expected<Identity> identifyNow(Connection &connection) {
  Identity identity;
  for (auto [field, sql] :
       {std::pair(&identity.application, "PRAGMA application_id"),
        std::pair(&identity.version, "PRAGMA user_version"),
        std::pair(&identity.tables, "SELECT count(*) FROM sqlite_schema")}) {
    Expected<int64_t> value = connection.scalar(sql);
    if (!value)
      return value.takeError();
    *field = *value;
  }
  return identity;
}

/// The three in one snapshot: another process may be creating the file.
Expected<Identity> identify(Connection &connection) {
  if (Error e = connection.exec("BEGIN"))
    return std::move(e);
  Expected<Identity> identity = identifyNow(connection);
  if (Error e = connection.exec("COMMIT")) {
    if (identity)
      return std::move(e);
    consumeError(std::move(e));
  }
  return identity;
}

Error refuseForeign(StringRef path, const Identity &identity) {
  if (identity.application != applicationId)
    return storeError(Kind::NotADatabase,
                      path + " is an SQLite database, but not one of pto\n"
                             "name another file with --db");
  if (identity.version > schemaVersion)
    return storeError(Kind::NewerSchema,
                      path + " was written by a newer pto (schema " +
                          Twine(identity.version) + ", this one knows " +
                          Twine(schemaVersion) +
                          ")\nupdate pto, or name another file with --db");
  return Error::success();
}

/// Creates or migrates in one transaction, so that of two processes that do it
/// at once the second finds it done.
Error migrate(Connection &connection) {
  Transaction transaction(connection);
  if (Error e = transaction.begin())
    return e;
  Expected<Identity> identity = identifyNow(connection);
  if (!identity)
    return identity.takeError();
  bool fresh = identity->tables == 0 && identity->version == 0;
  if (!fresh)
    if (Error e = refuseForeign(connection.getPath(), *identity))
      return e;
  for (int64_t v = identity->version; v < schemaVersion; ++v)
    if (Error e = connection.exec(migrations[v]))
      return e;
  if (fresh) {
    auto now = std::chrono::duration_cast<std::chrono::milliseconds>(
        std::chrono::system_clock::now().time_since_epoch());
    Expected<Statement> insert = connection.prepare(
        "INSERT INTO meta VALUES ('created', ?), ('created_by', ?)");
    if (!insert)
      return insert.takeError();
    insert->bind(std::to_string(now.count())).bind(PTO_VERSION);
    if (Error e = insert->run())
      return e;
  }
  if (identity->version != schemaVersion || fresh)
    if (Error e =
            connection.exec(("PRAGMA application_id = " + Twine(applicationId) +
                             "; PRAGMA user_version = " + Twine(schemaVersion))
                                .str()))
      return e;
  return transaction.commit();
}

/// Switching to WAL needs the file alone for a moment, and SQLite does not wait
/// for that by itself.
Error switchToWal(Connection &connection, int busyMs) {
  auto deadline =
      std::chrono::steady_clock::now() + std::chrono::milliseconds(busyMs);
  while (true) {
    Error e = connection.exec("PRAGMA journal_mode = WAL");
    if (!e || !isKind(e, Kind::Locked) ||
        std::chrono::steady_clock::now() > deadline)
      return e;
    consumeError(std::move(e));
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

} // namespace

Error checkIntegrity(Connection &connection, bool quick) {
  Expected<Statement> check = connection.prepare(
      quick ? "PRAGMA quick_check(3)" : "PRAGMA integrity_check(10)");
  if (!check)
    return check.takeError();
  std::string findings;
  while (true) {
    Expected<bool> row = check->step();
    if (!row)
      return row.takeError();
    if (!*row)
      break;
    std::string line = check->text(0);
    if (line != "ok")
      findings += "\n  " + line;
  }
  if (findings.empty())
    return Error::success();
  return storeError(Kind::Corrupt,
                    connection.getPath() +
                        " is damaged\nrestore a copy, or move it away to start "
                        "afresh; SQLite found:" +
                        findings);
}

Expected<Connection> openReadOnly(StringRef given, int busyMs) {
  std::string path = absolute(given);
  Expected<FileFacts> facts = inspect(path);
  if (!facts)
    return facts.takeError();
  if (!facts->exists)
    return storeError(Kind::Missing, path + " does not exist\npto-tune makes "
                                            "it; or name another file with "
                                            "--db");
  if (facts->size == 0)
    return storeError(Kind::NotADatabase, path + " is empty\npto-tune fills "
                                                 "it; or name another file "
                                                 "with --db");
  for (bool immutable : {false, true}) {
    Expected<Connection> connection =
        Connection::open(path, SQLITE_OPEN_READONLY, immutable);
    if (!connection)
      return connection.takeError();
    connection->setBusyTimeout(busyMs);
    Expected<Identity> identity = identify(*connection);
    if (!identity) {
      // Reading a WAL database makes a file beside it. Where that is not
      // possible nobody else writes either, unless a log was left behind.
      Error e = identity.takeError();
      uint64_t logSize = 0;
      bool hasLog = !sys::fs::file_size(path + "-wal", logSize) && logSize;
      if (!immutable && !hasLog &&
          (isKind(e, Kind::ReadOnly) || isKind(e, Kind::Io) ||
           isKind(e, Kind::DiskFull))) {
        consumeError(std::move(e));
        continue;
      }
      return std::move(e);
    }
    if (Error e = refuseForeign(path, *identity))
      return std::move(e);
    if (identity->version < schemaVersion)
      return storeError(Kind::OlderSchema,
                        path + " was written by an older pto (schema " +
                            Twine(identity->version) +
                            ")\nrun pto-tune once "
                            "with it to bring it up "
                            "to date");
    if (facts->suspicious)
      if (Error e = checkIntegrity(*connection, /*quick=*/true))
        return std::move(e);
    return connection;
  }
  llvm_unreachable("the second turn returns");
}

Expected<Connection> openReadWrite(StringRef given, bool create, int busyMs) {
  std::string path = absolute(given);
  Expected<FileFacts> facts = inspect(path);
  if (!facts)
    return facts.takeError();
  if (!facts->exists && !create)
    return storeError(Kind::Missing, path + " does not exist");
  Expected<Connection> connection = Connection::open(
      path, SQLITE_OPEN_READWRITE | (create ? SQLITE_OPEN_CREATE : 0));
  if (!connection) {
    // SQLite tries again without writing, and reports that failure instead.
    StringRef parent = sys::path::parent_path(path);
    if (!facts->exists && sys::fs::is_directory(parent) &&
        !sys::fs::can_write(parent)) {
      consumeError(connection.takeError());
      return storeError(Kind::ReadOnly, path + " cannot be created: its folder "
                                               "cannot be written\ncheck its "
                                               "permissions, or name another "
                                               "file with --db");
    }
    return connection.takeError();
  }
  connection->setBusyTimeout(busyMs);
  // SQLite falls back to reading when the file cannot be written.
  if (connection->isReadOnly())
    return storeError(Kind::ReadOnly,
                      path + " cannot be written\ncheck its permissions");
  Expected<Identity> identity = identify(*connection);
  if (!identity)
    return identity.takeError();
  bool fresh = identity->tables == 0 && identity->version == 0;
  if (!fresh)
    if (Error e = refuseForeign(path, *identity))
      return std::move(e);
  if (facts->suspicious)
    if (Error e = checkIntegrity(*connection, /*quick=*/true))
      return std::move(e);
  if (Error e = switchToWal(*connection, busyMs))
    return std::move(e);
  // NORMAL survives the death of the process at any point; a power cut may
  // cost the last trials, never the file.
  if (Error e = connection->exec("PRAGMA synchronous = NORMAL;"
                                 "PRAGMA foreign_keys = ON;"
                                 "PRAGMA wal_autocheckpoint = 256"))
    return std::move(e);
  if (fresh || identity->version < schemaVersion)
    if (Error e = migrate(*connection))
      return std::move(e);
  return connection;
}

} // namespace pto::db
