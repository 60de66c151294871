//===- StoreError.cpp - Why the database could not serve ------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
#include "db/StoreError.h"

#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace pto::db {

char StoreError::ID = 0;

int StoreError::exitCode() const {
  switch (kind) {
  case Kind::Missing:
  case Kind::NotADatabase:
  case Kind::Corrupt:
  case Kind::NewerSchema:
  case Kind::OlderSchema:
  case Kind::Invalid:
    return 2;
  case Kind::Locked:
  case Kind::ReadOnly:
  case Kind::DiskFull:
  case Kind::Io:
    return 3;
  }
  return 3;
}

void StoreError::log(raw_ostream &os) const { os << text; }

std::error_code StoreError::convertToErrorCode() const {
  return inconvertibleErrorCode();
}

int describe(Error error, std::string &message) {
  int code = 2;
  handleAllErrors(
      std::move(error),
      [&](const StoreError &e) {
        code = e.exitCode();
        message = e.message();
      },
      [&](const ErrorInfoBase &e) { message = e.message(); });
  return code;
}

} // namespace pto::db
