//===- Jit.cpp - Objects loaded into this process
//---------------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lowering/pipeline/Jit.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/Support/SmallVectorMemoryBuffer.h"

namespace pto::lowering {

Jit::Jit(std::unique_ptr<llvm::orc::LLJIT> impl) : impl(std::move(impl)) {}
Jit::Jit(Jit &&) = default;
Jit::~Jit() = default;

llvm::Expected<Jit> Jit::load(llvm::SmallVector<char, 0> object) {
  auto jit = llvm::orc::LLJITBuilder().create();
  if (!jit)
    return jit.takeError();
  if (llvm::Error e =
          (*jit)->addObjectFile(std::make_unique<llvm::SmallVectorMemoryBuffer>(
              std::move(object), /*RequiresNullTerminator=*/false)))
    return std::move(e);
  return Jit(std::move(*jit));
}

llvm::Expected<Jit::Kernel> Jit::lookup(llvm::StringRef symbol) const {
  auto address = impl->lookup(symbol);
  if (!address)
    return address.takeError();
  return address->toPtr<Kernel>();
}

} // namespace pto::lowering
