//===- Check.h - Do the rows keep the format's promises? --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The invariants of Record.h, row by row. SQLite's own integrity check sees
// broken pages; this sees rows that were edited or written by a faulty tool.
// Internal to db/: use Store::check.
//
//===----------------------------------------------------------------------===//
#ifndef PTO_DB_CHECK_H
#define PTO_DB_CHECK_H

#include "db/Sqlite.h"
#include <vector>

namespace pto::db {

/// One line per finding; empty when all is well.
llvm::Expected<std::vector<std::string>> checkInvariants(Connection &db);

} // namespace pto::db

#endif // PTO_DB_CHECK_H
