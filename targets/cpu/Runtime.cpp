//===- Runtime.cpp - The runtime that artifacts link ----------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "targets/cpu/Runtime.h"
#include "llvm/TargetParser/Triple.h"
#include <algorithm>
#include <vector>

namespace pto::targets {
namespace {

#include "targets/cpu/RuntimeObjects.inc"

} // namespace

llvm::ArrayRef<RuntimeObject> runtimeObjects(const Target &target) {
  llvm::StringRef arch =
      llvm::Triple::getArchTypeName(llvm::Triple(target.triple).getArch());
  // The objects of an architecture are neighbours in the table.
  llvm::ArrayRef<RuntimeObject> all(embeddedObjects);
  auto matches = [&](const RuntimeObject &object) {
    return arch == object.arch;
  };
  return all.drop_until(matches).take_while(matches);
}

llvm::StringRef abiHeader() { return embeddedHeader; }

} // namespace pto::targets
