//===- Sqlite.cpp - The little of SQLite's C API that db/ needs -----------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
#include "db/Sqlite.h"

#include <cerrno>
#include <cstring>
#include <sqlite3.h>
#include <utility>

using namespace llvm;

namespace pto::db {
namespace {

using Kind = StoreError::Kind;

/// What a status means to the user, and what to do about it.
struct Diagnosis {
  Kind kind;
  const char *what;
  const char *advice;
};

Diagnosis diagnose(int status, int systemError) {
  switch (status & 0xff) {
  case SQLITE_BUSY:
  case SQLITE_LOCKED:
    return {Kind::Locked, "is locked by another process",
            "wait for it, or name another file with --db"};
  case SQLITE_PROTOCOL:
    return {Kind::Locked, "cannot be locked on this file system",
            "keep the database on a local disk"};
  case SQLITE_READONLY:
    return {Kind::ReadOnly, "cannot be written",
            "check the permissions of the file and of its folder"};
  case SQLITE_PERM:
  case SQLITE_AUTH:
    return {Kind::ReadOnly, "is not accessible",
            "check the permissions of the file and of its folder"};
  case SQLITE_FULL:
    return {Kind::DiskFull, "cannot grow: the disk is full",
            "free some space and run the same command again: what is in the "
            "database is kept"};
  case SQLITE_CORRUPT:
    return {Kind::Corrupt, "is damaged",
            "restore a copy, or move it away to start afresh"};
  case SQLITE_NOTADB:
    return {Kind::NotADatabase, "is not a database of pto",
            "name another file with --db"};
  default:
    break;
  }
  // A quota or file-size limit in mid-page; SQLite loses the errno.
  if (status == SQLITE_IOERR_WRITE && systemError == 0)
    systemError = EDQUOT;
  switch (systemError) {
  case ENOSPC:
  case EDQUOT:
  case EFBIG:
    return {Kind::DiskFull,
            "cannot grow: disk, quota or file size limit is "
            "exhausted",
            "free some space and run the same command again: what is in the "
            "database is kept"};
  case EACCES:
  case EPERM:
  case EROFS:
    return {Kind::ReadOnly, "cannot be opened as needed",
            "check the permissions of the file and of its folder"};
  default:
    break;
  }
  if ((status & 0xff) == SQLITE_CONSTRAINT)
    return {Kind::Invalid, "refused a value that its format does not allow",
            "this is a fault of pto: please report it"};
  if ((status & 0xff) == SQLITE_CANTOPEN)
    return {Kind::Io, "cannot be opened",
            "check that its folder exists and can be written"};
  return {Kind::Io, "failed", "check the disk"};
}

/// Percent-encodes what has a meaning in a URI.
std::string uriOf(StringRef path) {
  std::string uri = "file:";
  for (char c : path) {
    if (c == '%' || c == '?' || c == '#') {
      static const char hex[] = "0123456789ABCDEF";
      uri += {'%', hex[(unsigned char)c >> 4], hex[c & 15]};
    } else {
      uri += c;
    }
  }
  return uri + "?immutable=1";
}

} // namespace

//===----------------------------------------------------------------------===//
// Connection
//===----------------------------------------------------------------------===//

Connection::Connection(Connection &&other)
    : handle(std::exchange(other.handle, nullptr)),
      path(std::move(other.path)) {}

Connection &Connection::operator=(Connection &&other) {
  std::swap(handle, other.handle);
  std::swap(path, other.path);
  return *this;
}

Connection::~Connection() { sqlite3_close_v2(handle); }

Expected<Connection> Connection::open(StringRef path, int flags,
                                      bool immutable) {
  Connection connection;
  connection.path = path.str();
  std::string name = immutable ? uriOf(path) : path.str();
  int status =
      sqlite3_open_v2(name.c_str(), &connection.handle,
                      flags | (immutable ? SQLITE_OPEN_URI : 0), nullptr);
  if (connection.handle)
    sqlite3_extended_result_codes(connection.handle, 1);
  if (status != SQLITE_OK)
    return connection.error("opening");
  return std::move(connection);
}

Error Connection::error(StringRef doing) const {
  if (!handle)
    return make_error<StoreError>(Kind::Io, path + ": out of memory");
  int status = sqlite3_extended_errcode(handle);
  // The handle keeps the errno of its last failed system call, also when the
  // present status has nothing to do with one.
  bool fromSystem =
      (status & 0xff) == SQLITE_IOERR || (status & 0xff) == SQLITE_CANTOPEN;
  int systemError = fromSystem ? sqlite3_system_errno(handle) : 0;
  Diagnosis d = diagnose(status, systemError);
  std::string detail = sqlite3_errmsg(handle);
  if (systemError)
    detail += std::string(": ") + std::strerror(systemError);
  return make_error<StoreError>(d.kind, path + " " + d.what + " (" + doing +
                                            ": " + detail + ")\n" + d.advice);
}

Error Connection::exec(StringRef sql) {
  if (sqlite3_exec(handle, sql.str().c_str(), nullptr, nullptr, nullptr) !=
      SQLITE_OK)
    return error(sql.split('\n').first.take_front(40));
  return Error::success();
}

Expected<Statement> Connection::prepare(StringRef sql) {
  sqlite3_stmt *statement = nullptr;
  if (sqlite3_prepare_v2(handle, sql.data(), sql.size(), &statement, nullptr) !=
      SQLITE_OK)
    return error("preparing");
  return Statement(*this, statement);
}

Expected<int64_t> Connection::scalar(StringRef sql) {
  Expected<Statement> statement = prepare(sql);
  if (!statement)
    return statement.takeError();
  Expected<bool> row = statement->step();
  if (!row)
    return row.takeError();
  return *row ? statement->integer(0) : 0;
}

bool Connection::isReadOnly() const {
  return sqlite3_db_readonly(handle, "main") == 1;
}

int64_t Connection::lastInsertId() const {
  return sqlite3_last_insert_rowid(handle);
}

void Connection::setBusyTimeout(int milliseconds) {
  sqlite3_busy_timeout(handle, milliseconds);
}

//===----------------------------------------------------------------------===//
// Statement
//===----------------------------------------------------------------------===//

Statement::Statement(Statement &&other)
    : connection(other.connection),
      handle(std::exchange(other.handle, nullptr)), next(other.next) {}

Statement::~Statement() { sqlite3_finalize(handle); }

Statement &Statement::bind(StringRef text) {
  // A null data pointer would bind NULL instead of the empty text.
  sqlite3_bind_text(handle, next++, text.empty() ? "" : text.data(),
                    text.size(), SQLITE_TRANSIENT);
  return *this;
}
Statement &Statement::bind(int64_t value) {
  sqlite3_bind_int64(handle, next++, value);
  return *this;
}
Statement &Statement::bind(double value) {
  sqlite3_bind_double(handle, next++, value);
  return *this;
}
Statement &Statement::bindNull() {
  sqlite3_bind_null(handle, next++);
  return *this;
}

Expected<bool> Statement::step() {
  switch (sqlite3_step(handle)) {
  case SQLITE_ROW:
    return true;
  case SQLITE_DONE:
    return false;
  default:
    return connection->error(sqlite3_stmt_readonly(handle) ? "reading"
                                                           : "writing");
  }
}

Error Statement::run() {
  Expected<bool> row = step();
  if (!row)
    return row.takeError();
  sqlite3_reset(handle);
  next = 1;
  return Error::success();
}

Expected<int64_t> Statement::runReturning() {
  Expected<bool> row = step();
  if (!row)
    return row.takeError();
  int64_t value = *row ? integer(0) : 0;
  while (*row) {
    row = step();
    if (!row)
      return row.takeError();
  }
  return value;
}

std::string Statement::text(int column) const {
  const void *data = sqlite3_column_text(handle, column);
  int size = sqlite3_column_bytes(handle, column);
  return std::string(static_cast<const char *>(data ? data : ""), size);
}
int64_t Statement::integer(int column) const {
  return sqlite3_column_int64(handle, column);
}
double Statement::real(int column) const {
  return sqlite3_column_double(handle, column);
}
std::optional<double> Statement::optionalReal(int column) const {
  if (isNull(column))
    return std::nullopt;
  return real(column);
}
bool Statement::isNull(int column) const {
  return sqlite3_column_type(handle, column) == SQLITE_NULL;
}

//===----------------------------------------------------------------------===//
// Transaction
//===----------------------------------------------------------------------===//

Transaction::~Transaction() {
  if (open)
    consumeError(connection.exec("ROLLBACK"));
}

Error Transaction::begin() {
  if (Error e = connection.exec("BEGIN IMMEDIATE"))
    return e;
  open = true;
  return Error::success();
}

Error Transaction::commit() {
  if (Error e = connection.exec("COMMIT"))
    return e;
  open = false;
  return Error::success();
}

} // namespace pto::db
