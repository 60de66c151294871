//===- Evaluate.cpp - Constant functions run while compiling
//----------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Weights never become LLVM constants: each large constant in the function
// turns into an argument that points at its bytes. The function then follows
// the ordinary pipeline and runs from LLVM's JIT linker.
//
//===----------------------------------------------------------------------===//

#include "lowering/pipeline/Jit.h"
#include "lowering/pipeline/Pipeline.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/AsmState.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace pto::lowering {
namespace {

/// Bytes of an element in memory; i1 takes a byte.
unsigned elementBytes(Type type) {
  unsigned bits = type.isIndex() ? 64 : type.getIntOrFloatBitWidth();
  return (bits + 7) / 8;
}

/// The bytes of a constant, row-major. `storage` holds what must be expanded.
llvm::Expected<const void *> rawData(ElementsAttr attr,
                                     std::vector<std::vector<char>> &storage) {
  if (auto resource = dyn_cast<DenseResourceElementsAttr>(attr)) {
    AsmResourceBlob *blob = resource.getRawHandle().getBlob();
    if (!blob)
      return llvm::createStringError("a constant's data is missing: " +
                                     resource.getRawHandle().getKey());
    return blob->getData().data();
  }
  auto dense = dyn_cast<DenseElementsAttr>(attr);
  if (!dense)
    return llvm::createStringError("a constant of an unknown kind");
  unsigned width = elementBytes(dense.getElementType());
  bool isBool = dense.getElementType().isInteger(1);
  if (!isBool && !dense.isSplat())
    return dense.getRawData().data();
  std::vector<char> bytes(dense.getNumElements() * width);
  if (isBool) {
    size_t i = 0;
    for (bool v : dense.getValues<bool>())
      bytes[i++] = v;
  } else {
    for (int64_t i = 0; i < dense.getNumElements(); ++i)
      memcpy(bytes.data() + i * width, dense.getRawData().data(), width);
  }
  storage.push_back(std::move(bytes));
  return storage.back().data();
}

} // namespace

llvm::Expected<llvm::SmallVector<ElementsAttr>>
evaluateConstants(func::FuncOp constants) {
  MLIRContext *ctx = constants.getContext();
  if (constants.getNumArguments())
    return llvm::createStringError("constant functions take no arguments");
  Location loc = constants.getLoc();
  OwningOpRef<ModuleOp> module(ModuleOp::create(loc));
  OpBuilder b = OpBuilder::atBlockBegin(module->getBody());
  auto func = cast<func::FuncOp>(b.clone(*constants));
  func.setName("evaluate");
  func.setPublic();
  for (NamedAttribute attr : llvm::to_vector(func->getDiscardableAttrs()))
    func->removeAttr(attr.getName());

  // Large constants become arguments.
  std::vector<std::vector<char>> storage;
  storage.reserve(1024);
  SmallVector<void *> pointers;
  SmallVector<arith::ConstantOp> large;
  func.walk([&](arith::ConstantOp op) {
    auto value = dyn_cast<ElementsAttr>(op.getValue());
    if (value &&
        (isa<DenseResourceElementsAttr>(value) || value.getNumElements() > 64))
      large.push_back(op);
  });
  storage.reserve(large.size());
  for (arith::ConstantOp op : large) {
    auto data = rawData(cast<ElementsAttr>(op.getValue()), storage);
    if (!data)
      return data.takeError();
    pointers.push_back(const_cast<void *>(*data));
    unsigned at = func.getNumArguments();
    DictionaryAttr readOnly = b.getDictionaryAttr(
        b.getNamedAttr("bufferization.writable", b.getBoolAttr(false)));
    if (failed(func.insertArgument(at, op.getType(), readOnly, loc)))
      return llvm::createStringError("cannot add an argument");
    op.replaceAllUsesWith(func.getArgument(at));
    op.erase();
  }

  // Results go to arguments at the end.
  SmallVector<AsmResourceBlob> blobs;
  for (Type type : func.getResultTypes()) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor || !tensor.hasStaticShape())
      return llvm::createStringError(
          "constant functions return tensors of static shape");
    if (failed(func.insertArgument(func.getNumArguments(), type, {}, loc)))
      return llvm::createStringError("cannot add an argument");
    size_t bytes =
        tensor.getNumElements() * size_t(elementBytes(tensor.getElementType()));
    blobs.push_back(HeapAsmResourceBlob::allocate(std::max<size_t>(bytes, 1),
                                                  64, /*dataIsMutable=*/true));
    pointers.push_back(const_cast<char *>(blobs.back().getData().data()));
  }

  auto host = targets::parseTarget("cpu");
  if (!host)
    return host.takeError();
  std::string messages;
  ScopedDiagnosticHandler handler(ctx, [&](Diagnostic &d) {
    messages += d.str() + "\n";
    return success();
  });
  if (failed(lowerToLLVM(*module, *host)))
    return llvm::createStringError("constant evaluation: " + messages);
  ObjectOptions options;
  // Each loop runs once: vectorising it costs more than it gives.
  options.optLevel = 1;
  auto object = emitObject(*module, *host, options);
  if (!object)
    return object.takeError();

  auto jit = Jit::load(std::move(*object));
  if (!jit)
    return jit.takeError();
  auto run = jit->lookup("evaluate");
  if (!run)
    return run.takeError();
  (*run)(pointers.data(), nullptr, nullptr);

  SmallVector<ElementsAttr> results;
  for (auto [i, type] : llvm::enumerate(constants.getResultTypes())) {
    auto tensor = cast<RankedTensorType>(type);
    ArrayRef<char> bytes = blobs[i].getData();
    size_t size =
        tensor.getNumElements() * size_t(elementBytes(tensor.getElementType()));
    if (tensor.getElementType().isInteger(1)) {
      SmallVector<bool> bits;
      for (int64_t k = 0; k < tensor.getNumElements(); ++k)
        bits.push_back(bytes[k] != 0);
      results.push_back(DenseElementsAttr::get(tensor, bits));
    } else if (size <= 64) {
      results.push_back(
          DenseElementsAttr::getFromRawBuffer(tensor, bytes.take_front(size)));
    } else {
      results.push_back(DenseResourceElementsAttr::get(tensor, "folded",
                                                       std::move(blobs[i])));
    }
  }
  return results;
}

} // namespace pto::lowering
