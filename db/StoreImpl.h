//===- StoreImpl.h - What the parts of Store share --------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Internal to db/.
//
//===----------------------------------------------------------------------===//
#ifndef PTO_DB_STOREIMPL_H
#define PTO_DB_STOREIMPL_H

#include "db/Sqlite.h"
#include "db/Store.h"

namespace pto::db {

struct Store::Impl {
  Connection connection;

  /// Row of `table` (a literal) whose `column` (a literal) has this text; 0 if
  /// none.
  llvm::Expected<int64_t> find(llvm::StringRef table, llvm::StringRef column,
                               llvm::StringRef text);
  /// As find, but without a row an error of kind Invalid.
  llvm::Expected<int64_t> require(llvm::StringRef table, llvm::StringRef column,
                                  llvm::StringRef text);
};

/// Runs `statement` to its end, `row` for each.
llvm::Error forEachRow(llvm::Expected<Statement> &statement,
                       llvm::function_ref<llvm::Error()> row);
llvm::Error invalid(const llvm::Twine &message);
/// What a row holds is not what the format allows.
llvm::Error malformed(llvm::StringRef table, int64_t id, llvm::StringRef column,
                      llvm::StringRef value);
/// Canonical spelling of a JSON object; anything else is an Invalid error that
/// names `what`.
llvm::Expected<std::string> canonicalObject(llvm::StringRef json,
                                            llvm::StringRef what);
/// Valid UTF-8 without NUL.
std::string cleanText(llvm::StringRef text);
int64_t unixMs();
/// "22.1.8" and "22.1.9" fit, "22.2.0" does not.
bool versionFits(llvm::StringRef made, llvm::StringRef wanted);

} // namespace pto::db

#endif // PTO_DB_STOREIMPL_H
