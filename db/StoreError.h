//===- StoreError.h - Why the database could not serve ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Every error of db/ is a StoreError: a kind for code, a message for people.
// The message's first line says what and where, the next what to do.
//
//===----------------------------------------------------------------------===//
#ifndef PTO_DB_STOREERROR_H
#define PTO_DB_STOREERROR_H

#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/Error.h"
#include <string>

namespace pto::db {

class StoreError : public llvm::ErrorInfo<StoreError> {
public:
  enum class Kind {
    Missing,      ///< No such file.
    NotADatabase, ///< A folder, another format, or another program's database.
    Corrupt,      ///< pto's, but damaged.
    NewerSchema,  ///< Written by a later pto.
    OlderSchema,  ///< Written by an earlier pto, and opened read-only.
    Locked,       ///< Another process held it for longer than the timeout.
    ReadOnly,     ///< The file or its folder cannot be written.
    DiskFull,     ///< No space, quota or file-size limit reached.
    Io,           ///< Any other failure of the file system.
    Invalid,      ///< The caller gave what the format does not allow.
  };

  static char ID;

  StoreError(Kind kind, const llvm::Twine &message)
      : kind(kind), text(message.str()) {}

  Kind getKind() const { return kind; }
  /// The tools' exit code: 2 for a bad file, 3 for the environment.
  int exitCode() const;

  void log(llvm::raw_ostream &os) const override;
  std::error_code convertToErrorCode() const override;

private:
  Kind kind;
  std::string text;
};

/// Consumes `error`, returns the exit code, and sets `message`. Errors that are
/// not StoreErrors count as bad input.
int describe(llvm::Error error, std::string &message);

} // namespace pto::db

#endif // PTO_DB_STOREERROR_H
