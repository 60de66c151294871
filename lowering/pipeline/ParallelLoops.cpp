//===- ParallelLoops.cpp - scf.forall to the runtime's parallel_for
//---------===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The body of an outermost parallel loop becomes a function `(ptr, i64)`; what
// it uses from outside travels in a struct on the caller's stack. The loop
// becomes one call of runtime->parallel_for with the number of iterations of
// the whole (linearised) loop nest.
//
//===----------------------------------------------------------------------===//

#include "lowering/pipeline/Stages.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Transforms/Transforms.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;

namespace pto::lowering {
namespace {

class Outliner {
public:
  Outliner(scf::ForallOp loop, func::FuncOp parent, unsigned index)
      : loop(loop), parent(parent), index(index), loc(loop.getLoc()),
        converter(loop.getContext()) {}

  LogicalResult run() {
    if (loop.getNumResults() != 0)
      return loop.emitError("a parallel loop still returns tensors");
    MLIRContext *ctx = loop.getContext();
    auto ptr = LLVM::LLVMPointerType::get(ctx);
    Type i64 = IntegerType::get(ctx, 64);
    OpBuilder b(loop);

    SmallVector<Value> lower =
        getValueOrCreateConstantIndexOp(b, loc, loop.getMixedLowerBound());
    SmallVector<Value> upper =
        getValueOrCreateConstantIndexOp(b, loc, loop.getMixedUpperBound());
    SmallVector<Value> step =
        getValueOrCreateConstantIndexOp(b, loc, loop.getMixedStep());
    SmallVector<Value> counts;
    Value total = arith::ConstantIndexOp::create(b, loc, 1);
    for (auto [l, u, s] : llvm::zip_equal(lower, upper, step)) {
      Value extent = arith::SubIOp::create(b, loc, u, l);
      counts.push_back(arith::CeilDivSIOp::create(b, loc, extent, s));
      total = arith::MulIOp::create(b, loc, total, counts.back());
    }

    // What the body needs, apart from constants (cloned into it).
    llvm::SetVector<Value> used;
    getUsedValuesDefinedAbove(loop.getRegion(), used);
    for (ArrayRef<Value> vs :
         {ArrayRef(lower), ArrayRef(step), ArrayRef(counts)})
      used.insert(vs.begin(), vs.end());
    SmallVector<Value> captured, constants;
    for (Value v : used) {
      Operation *def = v.getDefiningOp();
      (def && def->hasTrait<OpTrait::ConstantLike>() ? constants : captured)
          .push_back(v);
    }
    SmallVector<Type> fields;
    for (Value v : captured) {
      Type t = converter.convertType(v.getType());
      if (!t)
        return loop.emitError("cannot pass a value of type ")
               << v.getType() << " to a parallel loop";
      fields.push_back(t);
    }
    auto record = LLVM::LLVMStructType::getLiteral(ctx, fields);

    OpBuilder top(parent);
    auto body = func::FuncOp::create(
        top, loc, (parent.getName() + ".par" + Twine(index)).str(),
        FunctionType::get(ctx, {ptr, i64}, {}));
    body.setPrivate();
    Block *entry = body.addEntryBlock();
    OpBuilder in = OpBuilder::atBlockBegin(entry);
    IRMapping map;
    for (Value c : constants)
      in.clone(*c.getDefiningOp(), map);
    for (auto [i, v] : llvm::enumerate(captured)) {
      Value at =
          LLVM::GEPOp::create(in, loc, ptr, record, entry->getArgument(0),
                              ArrayRef<LLVM::GEPArg>{0, (int32_t)i});
      Value field = LLVM::LoadOp::create(in, loc, fields[i], at);
      map.map(v, castTo(in, field, v.getType()));
    }
    Value rest = arith::IndexCastOp::create(in, loc, in.getIndexType(),
                                            entry->getArgument(1));
    SmallVector<Value> ivs(counts.size());
    for (int64_t d = counts.size() - 1; d >= 0; --d) {
      Value count = map.lookupOrDefault(counts[d]);
      Value at =
          d ? arith::RemUIOp::create(in, loc, rest, count).getResult() : rest;
      if (d)
        rest = arith::DivUIOp::create(in, loc, rest, count);
      Value offset =
          arith::MulIOp::create(in, loc, at, map.lookupOrDefault(step[d]));
      ivs[d] =
          arith::AddIOp::create(in, loc, offset, map.lookupOrDefault(lower[d]));
    }
    map.map(loop.getInductionVars(), ivs);
    for (Operation &op : loop.getBody()->without_terminator())
      in.clone(op, map);
    func::ReturnOp::create(in, loc);

    // The call. The record is on the stack: bodies never outlive the call.
    OpBuilder start = OpBuilder::atBlockBegin(&parent.getBody().front());
    Value one =
        LLVM::ConstantOp::create(start, loc, i64, start.getI64IntegerAttr(1));
    Value stack = LLVM::AllocaOp::create(start, loc, ptr, record, one);
    for (auto [i, v] : llvm::enumerate(captured)) {
      Value at = LLVM::GEPOp::create(b, loc, ptr, record, stack,
                                     ArrayRef<LLVM::GEPArg>{0, (int32_t)i});
      LLVM::StoreOp::create(b, loc, castTo(b, v, fields[i]), at);
    }
    Value runtime =
        parent.getArgument(parent.getNumArguments() - 1); // wrapEntries
    Value callee = LLVM::LoadOp::create(b, loc, ptr, runtime);
    Value address = func::ConstantOp::create(b, loc, body.getFunctionType(),
                                             body.getName());
    address = castTo(b, address, ptr);
    Value n = arith::IndexCastOp::create(b, loc, i64, total);
    auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(ctx),
                                            {ptr, i64, ptr, ptr});
    LLVM::CallOp::create(b, loc, type,
                         ValueRange{callee, runtime, n, address, stack});
    loop.erase();
    return success();
  }

private:
  static Value castTo(OpBuilder &b, Value v, Type type) {
    if (v.getType() == type)
      return v;
    return UnrealizedConversionCastOp::create(b, v.getLoc(), type, v)
        .getResult(0);
  }

  scf::ForallOp loop;
  func::FuncOp parent;
  unsigned index;
  Location loc;
  LLVMTypeConverter converter;
};

} // namespace

LogicalResult lowerParallelLoops(ModuleOp module) {
  IRRewriter rewriter(module.getContext());
  SmallVector<func::FuncOp> funcs(module.getOps<func::FuncOp>());
  for (func::FuncOp func : funcs) {
    SmallVector<scf::ForallOp> outer, inner;
    func.walk<WalkOrder::PreOrder>([&](scf::ForallOp loop) {
      (loop->getParentOfType<scf::ForallOp>() ? inner : outer).push_back(loop);
    });
    for (scf::ForallOp loop : inner) {
      if (loop.getMapping() && !loop.getMapping()->empty() &&
          !isa<DeviceMappingAttrInterface>((*loop.getMapping())[0]))
        return loop.emitError("unknown mapping");
      rewriter.setInsertionPoint(loop);
      if (failed(scf::forallToForLoop(rewriter, loop)))
        return loop.emitError("cannot make a nested parallel loop sequential");
    }
    unsigned index = 0;
    for (scf::ForallOp loop : outer)
      if (failed(Outliner(loop, func, index++).run()))
        return failure();
  }
  return success();
}

} // namespace pto::lowering
