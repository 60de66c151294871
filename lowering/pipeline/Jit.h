//===- Jit.h - Objects loaded into this process -----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// For code that pto runs itself while compiling, and for tests: no files, no
// linker. Untrusted candidates run in workers instead (targets/runner).
//
//===----------------------------------------------------------------------===//
#ifndef PTO_LOWERING_PIPELINE_JIT_H
#define PTO_LOWERING_PIPELINE_JIT_H

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <memory>

namespace llvm::orc {
class LLJIT;
} // namespace llvm::orc

namespace pto::lowering {

class Jit {
public:
  /// A kernel's C signature (lowering/README.md).
  using Kernel = void (*)(void *const *args, const int64_t *dims,
                          void *runtime);

  static llvm::Expected<Jit> load(llvm::SmallVector<char, 0> object);
  llvm::Expected<Kernel> lookup(llvm::StringRef symbol) const;

  Jit(Jit &&);
  ~Jit();

private:
  explicit Jit(std::unique_ptr<llvm::orc::LLJIT> impl);
  std::unique_ptr<llvm::orc::LLJIT> impl;
};

} // namespace pto::lowering

#endif // PTO_LOWERING_PIPELINE_JIT_H
