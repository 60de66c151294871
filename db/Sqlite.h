//===- Sqlite.h - The little of SQLite's C API that db/ needs ---*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Connection and Statement own their SQLite handles and turn every status into
// a StoreError. Internal to db/: nothing outside sees SQLite.
//
//===----------------------------------------------------------------------===//
#ifndef PTO_DB_SQLITE_H
#define PTO_DB_SQLITE_H

#include "db/StoreError.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <optional>
#include <string>

struct sqlite3;
struct sqlite3_stmt;

namespace pto::db {

class Statement;

class Connection {
public:
  Connection() = default;
  Connection(Connection &&other);
  Connection &operator=(Connection &&other);
  ~Connection();

  /// `flags` are SQLITE_OPEN_*. `immutable`: the file lies where nothing can be
  /// written beside it, and nobody writes it.
  static llvm::Expected<Connection> open(llvm::StringRef path, int flags,
                                         bool immutable = false);

  /// Runs SQL without parameters and results.
  llvm::Error exec(llvm::StringRef sql);
  llvm::Expected<Statement> prepare(llvm::StringRef sql);
  /// The first column of the first row.
  llvm::Expected<int64_t> scalar(llvm::StringRef sql);

  /// Opened for writing, but the file could only be opened for reading.
  bool isReadOnly() const;
  int64_t lastInsertId() const;
  /// The last SQLite status of this connection as a StoreError.
  llvm::Error error(llvm::StringRef doing) const;
  llvm::StringRef getPath() const { return path; }
  void setBusyTimeout(int milliseconds);

private:
  sqlite3 *handle = nullptr;
  std::string path;
};

/// One prepared statement: bind in order, then step.
class Statement {
public:
  Statement(const Connection &connection, sqlite3_stmt *handle)
      : connection(&connection), handle(handle) {}
  Statement(Statement &&other);
  Statement(const Statement &) = delete;
  ~Statement();

  Statement &bind(llvm::StringRef text);
  Statement &bind(int64_t value);
  Statement &bind(double value);
  Statement &bindNull();
  Statement &bind(std::optional<double> value) {
    return value ? bind(*value) : bindNull();
  }

  /// True with a row, false at the end.
  llvm::Expected<bool> step();
  /// Steps a statement that gives no rows.
  llvm::Error run();
  /// Runs a writing statement with RETURNING to its end (it is not committed
  /// before); the first column.
  llvm::Expected<int64_t> runReturning();

  std::string text(int column) const;
  int64_t integer(int column) const;
  double real(int column) const;
  std::optional<double> optionalReal(int column) const;
  bool isNull(int column) const;

private:
  const Connection *connection;
  sqlite3_stmt *handle;
  int next = 1;
};

/// BEGIN IMMEDIATE ... COMMIT; rolls back unless committed. Immediate, because
/// a deferred transaction that turns into a writer fails at once when another
/// process wrote in between, without waiting.
class Transaction {
public:
  explicit Transaction(Connection &connection) : connection(connection) {}
  ~Transaction();
  llvm::Error begin();
  llvm::Error commit();

private:
  Connection &connection;
  bool open = false;
};

} // namespace pto::db

#endif // PTO_DB_SQLITE_H
