//===- CallingConvention.cpp - One C signature for every kernel
//-------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Wraps `@kernel(memrefs...)` as
//   void SYMBOL(void *const *args, const int64_t *dims, pto_runtime *runtime)
// The wrapper builds memref descriptors from the pointers and the dynamic
// sizes, and calls the function, which LLVM then inlines.
//
//===----------------------------------------------------------------------===//

#include "lowering/pipeline/Stages.h"
#include "mlir/Conversion/LLVMCommon/MemRefBuilder.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;

namespace pto::lowering {
namespace {

class Wrapper {
public:
  Wrapper(func::FuncOp callee, StringRef symbol)
      : callee(callee), symbol(symbol), b(callee), loc(callee.getLoc()),
        converter(callee.getContext()) {}

  LogicalResult build() {
    MLIRContext *ctx = callee.getContext();
    auto ptr = LLVM::LLVMPointerType::get(ctx);
    auto wrapper = func::FuncOp::create(
        b, loc, symbol, FunctionType::get(ctx, {ptr, ptr, ptr}, {}));
    Block *entry = wrapper.addEntryBlock();
    b.setInsertionPointToStart(entry);
    SmallVector<Value> operands;
    for (Type type : callee.getArgumentTypes()) {
      auto memref = dyn_cast<MemRefType>(type);
      if (!memref || !memref.getLayout().isIdentity())
        return callee.emitError("argument ")
               << operands.size() << " of type " << type
               << " is not a dense row-major buffer";
      operands.push_back(buildArgument(memref, operands.size(),
                                       entry->getArgument(0),
                                       entry->getArgument(1)));
    }
    operands.push_back(entry->getArgument(2));
    // The callee takes the runtime too: its parallel loops call it.
    unsigned n = callee.getNumArguments();
    if (failed(callee.insertArgument(n, ptr, {}, loc)))
      return failure();
    func::CallOp::create(b, loc, callee, operands);
    func::ReturnOp::create(b, loc);
    callee.setPrivate();
    return success();
  }

private:
  Value constant(int64_t value) {
    return LLVM::ConstantOp::create(b, loc, b.getI64Type(),
                                    b.getI64IntegerAttr(value));
  }

  Value load(Type type, Value base, int64_t index) {
    Value at = LLVM::GEPOp::create(b, loc, base.getType(), type, base,
                                   ArrayRef<LLVM::GEPArg>{(int32_t)index});
    return LLVM::LoadOp::create(b, loc, type, at);
  }

  Value buildArgument(MemRefType type, unsigned index, Value args, Value dims) {
    auto ptr = LLVM::LLVMPointerType::get(b.getContext());
    Value data = load(ptr, args, index);
    int64_t rank = type.getRank();
    SmallVector<Value> sizes(rank), fields{data, data, constant(0)};
    for (int64_t i = 0; i < rank; ++i)
      sizes[i] = type.isDynamicDim(i) ? load(b.getI64Type(), dims, nextDim++)
                                      : constant(type.getDimSize(i));
    SmallVector<Value> strides(rank);
    Value stride = constant(1);
    for (int64_t i = rank - 1; i >= 0; --i) {
      strides[i] = stride;
      if (i)
        stride = LLVM::MulOp::create(b, loc, stride, sizes[i]);
    }
    // A static layout keeps its strides as constants in the descriptor.
    auto [known, offset] = type.getStridesAndOffset();
    for (int64_t i = 0; i < rank; ++i)
      if (known[i] != ShapedType::kDynamic)
        strides[i] = constant(known[i]);
    fields.append(sizes);
    fields.append(strides);
    Value descriptor = MemRefDescriptor::pack(b, loc, converter, type, fields);
    return UnrealizedConversionCastOp::create(b, loc, type, descriptor)
        .getResult(0);
  }

  func::FuncOp callee;
  StringRef symbol;
  OpBuilder b;
  Location loc;
  LLVMTypeConverter converter;
  int64_t nextDim = 0;
};

} // namespace

LogicalResult wrapEntries(ModuleOp module) {
  SmallVector<func::FuncOp> funcs;
  for (auto func : module.getOps<func::FuncOp>())
    if (!func.isExternal())
      funcs.push_back(func);
  for (func::FuncOp func : funcs) {
    std::string symbol = func.getName().str();
    if (auto entry = func->getAttrOfType<StringAttr>("pto.entry"))
      symbol = entry.str();
    func.setName((symbol + ".body"));
    if (failed(Wrapper(func, symbol).build()))
      return failure();
  }
  return success();
}

} // namespace pto::lowering
