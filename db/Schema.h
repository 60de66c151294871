//===- Schema.h - Open a database file and bring it up to date --*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Tells pto's databases from everything else, creates and migrates the tables
// that Record.h documents. Internal to db/.
//
//===----------------------------------------------------------------------===//
#ifndef PTO_DB_SCHEMA_H
#define PTO_DB_SCHEMA_H

#include "db/Sqlite.h"

namespace pto::db {

/// `pragma user_version` of files that this build writes.
constexpr int schemaVersion = 1;
/// `pragma application_id`: "pto1".
constexpr int applicationId = 0x70746f31;

/// Opens for reading only. Works in folders that cannot be written.
llvm::Expected<Connection> openReadOnly(llvm::StringRef path, int busyMs);

/// Opens for reading and writing; migrates older files; with `create`, makes a
/// missing or empty file a database.
llvm::Expected<Connection> openReadWrite(llvm::StringRef path, bool create,
                                         int busyMs);

/// SQLite's own check of pages and indexes; quick leaves out the indexes'
/// contents. Damage is an error of kind Corrupt.
llvm::Error checkIntegrity(Connection &connection, bool quick);

} // namespace pto::db

#endif // PTO_DB_SCHEMA_H
