//===- Key.cpp - Canonical text and hashes of a kernel --------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The text is the printed function under the name @kernel, without locations
// and without attributes that name or number things. For the kernel hash, the
// values of inline float and integer constants are set to zero; index
// constants stay, for they are sizes.
//
//===----------------------------------------------------------------------===//

#include "lowering/graph/Graph.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/BLAKE3.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace pto::lowering {

static void clearValue(arith::ConstantOp op) {
  OpBuilder b(op);
  Type type = op.getType();
  if (type.isIntOrFloat()) {
    op.setValueAttr(cast<TypedAttr>(b.getZeroAttr(type)));
    return;
  }
  auto shaped = dyn_cast<ShapedType>(type);
  if (shaped && shaped.hasStaticShape() &&
      shaped.getElementType().isIntOrFloat())
    op.setValueAttr(cast<TypedAttr>(b.getZeroAttr(type)));
}

std::string canonicalText(func::FuncOp kernel, bool withConstants) {
  OwningOpRef<func::FuncOp> copy(cast<func::FuncOp>(kernel->clone()));
  copy->setSymName("kernel");
  (*copy)->removeAttr("pto.key");
  (*copy)->removeAttr("pto.name");
  for (unsigned i = 0; i < copy->getNumArguments(); ++i)
    copy->removeArgAttr(i, "pto.name");
  if (!withConstants)
    copy->walk([](arith::ConstantOp op) { clearValue(op); });
  std::string text;
  llvm::raw_string_ostream stream(text);
  // Never elide: two constants must not print alike.
  OpPrintingFlags flags;
  flags.enableDebugInfo(false).useLocalScope();
  copy->print(stream, flags);
  stream << "\n";
  return text;
}

static std::string hash(StringRef text) {
  llvm::BLAKE3 hasher;
  hasher.update(text);
  return llvm::toHex(hasher.final<16>(), /*LowerCase=*/true);
}

std::string codeHash(func::FuncOp kernel) {
  return hash(canonicalText(kernel, /*withConstants=*/true));
}

std::string kernelHash(func::FuncOp kernel) {
  return hash(canonicalText(kernel, /*withConstants=*/false));
}

} // namespace pto::lowering
