//===- Prepack.cpp - Weights in the form that the kernels want ------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "tuner/Prepack.h"
#include "lowering/main/Weights.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/AsmState.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "mlir/IR/Matchers.h"
#include "tuner/ToolError.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/SmallVectorMemoryBuffer.h"
#include <map>

using namespace mlir;

namespace pto::tuner {
namespace {

using KernelFunction = void (*)(void *const *, const int64_t *, void *);

template <typename Visit> void forCalls(ModuleOp module, Visit visit) {
  auto main = module.lookupSymbol<func::FuncOp>("main");
  if (main)
    main.walk([&](func::CallOp call) { visit(call); });
}

/// The constant that an operand is, or null.
ElementsAttr constantOf(Value value) {
  ElementsAttr constant;
  if (matchPattern(value, m_Constant(&constant)))
    return constant;
  return {};
}

class Prepacker {
public:
  explicit Prepacker(ModuleOp module)
      : module(module), context(module.getContext()) {}

  llvm::Error run(llvm::ArrayRef<const CompiledKernel *> kernels) {
    for (const CompiledKernel *each : kernels) {
      const CompiledKernel &kernel = *each;
      if (kernel.arguments.empty())
        continue;
      if (llvm::Error error = load(kernel))
        return error;
      SmallVector<func::CallOp> calls;
      forCalls(module, [&](func::CallOp call) {
        if (call.getCallee() == kernel.symbol)
          calls.push_back(call);
      });
      for (func::CallOp call : calls)
        if (llvm::Error error = rewrite(call, kernel))
          return error;
      declare(kernel, calls);
    }
    return llvm::Error::success();
  }

private:
  llvm::Error load(const CompiledKernel &kernel) {
    if (!jit) {
      auto made = llvm::orc::LLJITBuilder().create();
      if (!made)
        return made.takeError();
      jit = std::move(*made);
    }
    llvm::SmallVector<char, 0> copy(kernel.prepackObject);
    if (llvm::Error error =
            jit->addObjectFile(std::make_unique<llvm::SmallVectorMemoryBuffer>(
                std::move(copy), kernel.prepackSymbol,
                /*RequiresNullTerminator=*/false)))
      return error;
    auto symbol = jit->lookup(kernel.prepackSymbol);
    if (!symbol)
      return symbol.takeError();
    function = symbol->toPtr<KernelFunction>();
    return llvm::Error::success();
  }

  /// The packed weights for one call: from the cache, or computed.
  llvm::Expected<ArrayRef<ElementsAttr>> pack(func::CallOp call,
                                              const CompiledKernel &kernel) {
    std::vector<const void *> key{&kernel};
    SmallVector<ElementsAttr> raw;
    for (unsigned index : kernel.prepackInputs) {
      ElementsAttr constant = constantOf(call.getOperand(index));
      if (!constant)
        return toolError(BadInput, "kernel " + kernel.symbol +
                                       ": the weights of a call are no "
                                       "constants, so they cannot be packed");
      raw.push_back(constant);
      key.push_back(constant.getAsOpaquePointer());
    }
    std::vector<ElementsAttr> &packed = cache[key];
    if (!packed.empty())
      return ArrayRef<ElementsAttr>(packed);

    lowering::Weights bytes; // turns constants into dense bytes
    SmallVector<void *> pointers;
    for (ElementsAttr constant : raw) {
      auto offset = bytes.add(constant);
      if (!offset)
        return offset.takeError();
      for (const lowering::Weights::Entry &entry : bytes.entries())
        if (entry.offset == *offset)
          pointers.push_back(const_cast<char *>(entry.bytes.data()));
    }
    SmallVector<AsmResourceBlob> blobs;
    SmallVector<RankedTensorType> types;
    for (const std::string &text : kernel.prepackTypes) {
      auto type = dyn_cast_or_null<RankedTensorType>(parseType(text, context));
      if (!type || !type.hasStaticShape())
        return toolError(BadInput, "kernel " + kernel.symbol +
                                       ": packed weights of type " + text +
                                       " have no static shape");
      int64_t size = type.getNumElements() *
                     llvm::divideCeil(type.getElementTypeBitWidth(), 8);
      blobs.push_back(HeapAsmResourceBlob::allocate(
          std::max<int64_t>(size, 1), 64, /*dataIsMutable=*/true));
      pointers.push_back(const_cast<char *>(blobs.back().getData().data()));
      types.push_back(type);
    }
    function(pointers.data(), nullptr, nullptr);
    for (auto [type, blob] : llvm::zip(types, blobs))
      packed.push_back(
          DenseResourceElementsAttr::get(type, "packed", std::move(blob)));
    return ArrayRef<ElementsAttr>(packed);
  }

  llvm::Error rewrite(func::CallOp call, const CompiledKernel &kernel) {
    auto packed = pack(call, kernel);
    if (!packed)
      return packed.takeError();
    OpBuilder b(call);
    SmallVector<Value> operands;
    for (const ArgumentSource &source : kernel.arguments) {
      if (!source.prepacked) {
        operands.push_back(call.getOperand(source.index));
        continue;
      }
      ElementsAttr value = (*packed)[source.index];
      operands.push_back(arith::ConstantOp::create(b, call.getLoc(), value));
    }
    SmallVector<Value> old(call.getOperands());
    call->setOperands(operands);
    for (Value value : old)
      if (Operation *op = value.getDefiningOp())
        if (op->use_empty() && isa<arith::ConstantOp>(op))
          op->erase();
    return llvm::Error::success();
  }

  void declare(const CompiledKernel &kernel, ArrayRef<func::CallOp> calls) {
    auto func = module.lookupSymbol<func::FuncOp>(kernel.symbol);
    if (!func || calls.empty())
      return;
    // What is left of the kernel is its name and type.
    OpBuilder b(func);
    func::CallOp call = calls.front();
    auto declaration = func::FuncOp::create(
        b, func.getLoc(), kernel.symbol,
        b.getFunctionType(call->getOperandTypes(), call.getResultTypes()));
    declaration.setPrivate();
    for (NamedAttribute attribute : func->getDiscardableAttrs())
      declaration->setDiscardableAttr(attribute.getName(),
                                      attribute.getValue());
    func.erase();
  }

  ModuleOp module;
  MLIRContext *context;
  std::unique_ptr<llvm::orc::LLJIT> jit;
  KernelFunction function = nullptr;
  std::map<std::vector<const void *>, std::vector<ElementsAttr>> cache;
};

} // namespace

bool canPrepack(ModuleOp module, const CompiledKernel &kernel) {
  bool constant = true;
  forCalls(module, [&](func::CallOp call) {
    if (call.getCallee() != kernel.symbol)
      return;
    for (unsigned index : kernel.prepackInputs)
      constant &= index < call.getNumOperands() &&
                  constantOf(call.getOperand(index)) != nullptr;
  });
  return constant;
}

llvm::Error applyPrepack(ModuleOp module,
                         llvm::ArrayRef<const CompiledKernel *> kernels) {
  return Prepacker(module).run(kernels);
}

} // namespace pto::tuner
