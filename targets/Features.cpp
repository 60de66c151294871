//===- Features.cpp - CPU features that generated code may use ------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "targets/Features.h"
#include "targets/cpu/runtime/pto_features.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/TargetParser/Triple.h"

namespace pto::targets {
namespace {

#define NAME(name, ...) name,
const char *const x86Names[] = {PTO_X86_FEATURES(NAME)};
const char *const aarch64Names[] = {PTO_AARCH64_FEATURES(NAME)};
#undef NAME

llvm::ArrayRef<const char *> table(const Target &target) {
  llvm::Triple triple(target.triple);
  if (triple.isX86())
    return x86Names;
  if (triple.isAArch64())
    return aarch64Names;
  return {};
}

} // namespace

uint64_t codeFeatureMask(const Target &target) {
  llvm::StringSet<> enabled;
  llvm::SmallVector<llvm::StringRef> parts;
  llvm::StringRef(target.features).split(parts, ',');
  for (llvm::StringRef part : parts)
    if (part.consume_front("+"))
      enabled.insert(part);
  uint64_t mask = 0;
  llvm::ArrayRef<const char *> names = table(target);
  for (size_t i = 0; i < names.size(); ++i)
    if (enabled.contains(names[i]))
      mask |= uint64_t(1) << i;
  return mask;
}

std::vector<std::string> codeFeatures(const Target &target) {
  std::vector<std::string> features;
  uint64_t mask = codeFeatureMask(target);
  llvm::ArrayRef<const char *> names = table(target);
  for (size_t i = 0; i < names.size(); ++i)
    if (mask >> i & 1)
      features.push_back(names[i]);
  return features;
}

uint64_t x86FeatureBit(llvm::StringRef name) {
  for (auto [i, known] : llvm::enumerate(x86Names))
    if (name == known)
      return uint64_t(1) << i;
  return 0;
}

bool runsOn(const Target &target, const Target &host) {
  llvm::Triple a(target.triple), b(host.triple);
  return a.getArch() == b.getArch() && a.getOS() == b.getOS() &&
         (codeFeatureMask(target) & ~codeFeatureMask(host)) == 0;
}

} // namespace pto::targets
