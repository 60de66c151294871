//===- LowerMain.cpp - @main: tensors to pointers, calls to C calls -------===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Two passes over @main. The first finds where each tensor lives (a caller's
// buffer, the weights, the arena), how long, and its sizes as values of the new
// function; sizes depend on inputs' shapes only, so all of them, and the
// arena's, are known before the first kernel runs. The second emits the calls.
// Static sizes fold to constants on the way: they are no special case.
//
//===----------------------------------------------------------------------===//

#include "lowering/main/Abi.h"
#include "lowering/main/Describe.h"
#include "lowering/main/Dtype.h"
#include "lowering/main/Main.h"
#include "lowering/main/MemoryPlan.h"
#include "mlir/Conversion/AffineToStandard/AffineToStandard.h"
#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/ADT/StringExtras.h"
#include <optional>

using namespace mlir;

namespace pto::lowering {
namespace {

constexpr int64_t arenaAlignment = 64;

/// Where a tensor's bytes are, and its sizes.
struct Place {
  enum Kind { Input, Output, Arena, Weight } kind = Arena;
  int64_t index = 0; ///< Input, output or buffer number; offset of a weight.
  SmallVector<OpFoldResult> sizes;
};

/// A value that a kernel call writes.
struct Buffer {
  LiveBuffer live;
  OpFoldResult bytes;
  std::optional<int64_t> output; ///< Lives in this output of the model.
  Value offset;                  ///< In the arena, if it lives there.
};

/// What the second pass emits: a kernel call, a check of indices, or a copy.
struct Action {
  func::CallOp call; ///< Null: a copy of `from` to `to`.
  StringAttr check;  ///< Set: `from` must hold no bad index.
  SmallVector<Place> args;
  Place from, to;
  OpFoldResult bytes;
  int64_t step = 0;
};

class MainLowering {
public:
  MainLowering(ModuleOp source, func::FuncOp main, Program &program,
               VersionInfo &version)
      : source(source), main(main), program(program), version(version),
        b(OpBuilder::atBlockEnd(program.module->getBody())), loc(main.getLoc()),
        ptr(LLVM::LLVMPointerType::get(b.getContext())) {}

  LogicalResult run() {
    version.firstStep = program.steps.size();
    int64_t weightsBefore = program.weights.size();
    openFunction();
    if (failed(readInputs()))
      return failure();
    for (Operation &op : main.front().without_terminator())
      if (failed(readOp(op)))
        return failure();
    if (failed(readOutputs()))
      return failure();
    Value arenaBytes = planArena();
    emitPrepare(arenaBytes);
    for (Action &action : actions)
      emit(action);
    LLVM::ReturnOp::create(b, loc, ValueRange());
    version.stepCount = program.steps.size() - version.firstStep;
    version.addedWeights = program.weights.size() - weightsBefore;
    return success();
  }

  std::vector<ValueInfo> inputInfo, outputInfo; ///< The signature.

private:
  //===--- Small helpers --------------------------------------------------===//

  Value i64(int64_t value) {
    return LLVM::ConstantOp::create(b, loc, b.getI64Type(),
                                    b.getI64IntegerAttr(value));
  }

  OpFoldResult size(int64_t value) { return b.getIndexAttr(value); }

  Value indexValue(OpFoldResult size) {
    if (auto value = dyn_cast<Value>(size))
      return value;
    return arith::ConstantIndexOp::create(b, loc, *getConstantIntValue(size));
  }

  /// A size as the i64 that C code gets.
  Value i64Value(OpFoldResult size) {
    if (auto constant = getConstantIntValue(size))
      return i64(*constant);
    return arith::IndexCastOp::create(b, loc, b.getI64Type(),
                                      cast<Value>(size));
  }

  OpFoldResult multiply(OpFoldResult x, OpFoldResult y) {
    auto cx = getConstantIntValue(x), cy = getConstantIntValue(y);
    if (cx && cy)
      return size(*cx * *cy);
    if (cx && *cx == 1)
      return y;
    if (cy && *cy == 1)
      return x;
    return arith::MulIOp::create(b, loc, indexValue(x), indexValue(y))
        .getResult();
  }

  OpFoldResult add(OpFoldResult x, OpFoldResult y) {
    auto cx = getConstantIntValue(x), cy = getConstantIntValue(y);
    if (cx && cy)
      return size(*cx + *cy);
    return arith::AddIOp::create(b, loc, indexValue(x), indexValue(y))
        .getResult();
  }

  OpFoldResult alignUp(OpFoldResult bytes) {
    if (auto constant = getConstantIntValue(bytes))
      return size(llvm::alignTo(*constant, arenaAlignment));
    Value mask = arith::ConstantIndexOp::create(b, loc, -arenaAlignment);
    Value sum = arith::AddIOp::create(b, loc, cast<Value>(bytes),
                                      indexValue(size(arenaAlignment - 1)));
    return arith::AndIOp::create(b, loc, sum, mask).getResult();
  }

  OpFoldResult bytesOf(ShapedType type, ArrayRef<OpFoldResult> sizes) {
    Type element = type.getElementType();
    OpFoldResult bytes =
        size(element.isIndex()
                 ? 8
                 : llvm::divideCeil(element.getIntOrFloatBitWidth(), 8));
    for (OpFoldResult dim : sizes)
      bytes = multiply(bytes, dim);
    return bytes;
  }

  Value at(Value base, OpFoldResult offset) {
    if (auto constant = getConstantIntValue(offset))
      return LLVM::GEPOp::create(b, loc, ptr, b.getI8Type(), base,
                                 ArrayRef<LLVM::GEPArg>{i64(*constant)});
    return LLVM::GEPOp::create(b, loc, ptr, b.getI8Type(), base,
                               ArrayRef<LLVM::GEPArg>{i64Value(offset)});
  }

  Value load(Type type, Value base, int64_t offset) {
    return LLVM::LoadOp::create(b, loc, type, at(base, size(offset)));
  }

  LLVM::LLVMFuncOp declare(StringRef name, Type result, ArrayRef<Type> args) {
    if (auto known = program.module->lookupSymbol<LLVM::LLVMFuncOp>(name))
      return known;
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(program.module->getBody());
    auto func = LLVM::LLVMFuncOp::create(
        b, loc, name, LLVM::LLVMFunctionType::get(result, args));
    func.setVisibility_(LLVM::Visibility::Hidden);
    return func;
  }

  //===--- First pass -----------------------------------------------------===//

  void openFunction() {
    auto none = LLVM::LLVMVoidType::get(b.getContext());
    auto func = LLVM::LLVMFuncOp::create(
        b, loc, version.symbol, LLVM::LLVMFunctionType::get(none, {ptr}));
    func.setVisibility_(LLVM::Visibility::Hidden);
    Block *entry = func.addEntryBlock(b);
    b.setInsertionPointToStart(entry);
    call = entry->getArgument(0);
    inputs = load(ptr, call, abi::callInputs);
    outputs = load(ptr, call, abi::callOutputs);
  }

  FailureOr<ValueInfo> valueInfo(const char *kind, unsigned index, Type type,
                                 DictionaryAttr attributes) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor)
      return main.emitError() << kind << ' ' << index << " is no tensor";
    ValueInfo info;
    if (auto name = attributes ? attributes.getAs<StringAttr>("pto.name")
                               : StringAttr())
      info.name = name.str();
    else
      info.name = (StringRef(kind) + llvm::Twine(index)).str();
    bool isUnsigned = attributes && attributes.get("pto.unsigned");
    info.dtype = abiType(tensor.getElementType(), isUnsigned);
    // Booleans are bytes in memory: i1 has no agreed memory form in MLIR.
    if (attributes && attributes.get("pto.bool"))
      info.dtype = PTO_BOOL;
    if (!info.dtype || tensor.getRank() > PTO_MAX_RANK)
      return main.emitError()
             << kind << " '" << info.name << "' has type " << tensor
             << ": the C interface knows no such element type, or more than "
             << PTO_MAX_RANK << " dimensions";
    for (int64_t dim : tensor.getShape())
      info.shape.push_back(ShapedType::isDynamic(dim) ? -1 : dim);
    auto dims =
        attributes ? attributes.getAs<ArrayAttr>("pto.dims") : ArrayAttr();
    if (dims && static_cast<int64_t>(dims.size()) == tensor.getRank() &&
        !tensor.hasStaticShape())
      for (Attribute dim : dims)
        info.dims.push_back(cast<StringAttr>(dim).str());
    return info;
  }

  LogicalResult readInputs() {
    for (auto [i, arg] : llvm::enumerate(main.getArguments())) {
      auto info = valueInfo("input", i, arg.getType(), main.getArgAttrDict(i));
      if (failed(info))
        return failure();
      Place place;
      place.kind = Place::Input;
      place.index = i;
      for (auto [d, dim] : llvm::enumerate(info->shape)) {
        if (dim >= 0) {
          place.sizes.push_back(size(dim));
          continue;
        }
        Value value = load(b.getI64Type(), inputs,
                           i * abi::tensorSize + abi::tensorShape + 8 * d);
        place.sizes.push_back(
            arith::IndexCastOp::create(b, loc, b.getIndexType(), value)
                .getResult());
      }
      places[arg] = std::move(place);
      version.shapes.push_back(info->shape);
      inputInfo.push_back(std::move(*info));
    }
    return success();
  }

  LogicalResult readOp(Operation &op) {
    if (auto constant = dyn_cast<arith::ConstantOp>(op))
      if (auto value = dyn_cast<ElementsAttr>(constant.getValue()))
        return readWeight(constant, value);
    if (auto empty = dyn_cast<tensor::EmptyOp>(op)) {
      Place place;
      place.index = -1;
      for (OpFoldResult dim : empty.getMixedSizes())
        place.sizes.push_back(mapped(dim));
      places[empty] = std::move(place);
      return success();
    }
    if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(op)) {
      Place place = places.lookup(collapse.getSrc());
      SmallVector<OpFoldResult> sizes;
      for (const auto &group : collapse.getReassociationIndices()) {
        OpFoldResult product = size(1);
        for (int64_t i : group)
          product = multiply(product, place.sizes[i]);
        sizes.push_back(product);
      }
      alias(collapse.getResult(), std::move(place), std::move(sizes));
      return success();
    }
    if (auto expand = dyn_cast<tensor::ExpandShapeOp>(op)) {
      SmallVector<OpFoldResult> sizes;
      for (OpFoldResult dim : expand.getMixedOutputShape())
        sizes.push_back(mapped(dim));
      alias(expand.getResult(), places.lookup(expand.getSrc()),
            std::move(sizes));
      return success();
    }
    if (auto castOp = dyn_cast<tensor::CastOp>(op)) {
      Place place = places.lookup(castOp.getSource());
      SmallVector<OpFoldResult> sizes = place.sizes;
      alias(castOp.getResult(), std::move(place), std::move(sizes));
      return success();
    }
    if (auto dim = dyn_cast<tensor::DimOp>(op)) {
      auto index = dim.getConstantIndex();
      const Place &place = places[dim.getSource()];
      if (!index || *index < 0 ||
          *index >= static_cast<int64_t>(place.sizes.size()))
        return dim.emitError("size of a dimension that is not known");
      mapping.map(dim.getResult(), indexValue(place.sizes[*index]));
      return success();
    }
    if (auto extract = dyn_cast<tensor::ExtractOp>(op))
      return readElement(extract);
    if (auto callOp = dyn_cast<func::CallOp>(op))
      return readCall(callOp);
    if (auto assertion = dyn_cast<cf::AssertOp>(op)) {
      emitRequire(assertion);
      return success();
    }
    return readScalar(op);
  }

  /// An element of an input: sizes may depend on it.
  LogicalResult readElement(tensor::ExtractOp extract) {
    Place place = places.lookup(extract.getTensor());
    OpFoldResult linear = size(0);
    for (auto [d, index] : llvm::enumerate(extract.getIndices())) {
      auto known = getConstantIntValue(index);
      auto dim = getConstantIntValue(place.sizes[d]);
      if (!known || !dim || *known < 0 || *known >= *dim)
        return extract.emitError("an element at a place that is not known");
      linear = add(multiply(linear, place.sizes[d]), size(*known));
    }
    Type type = extract.getType();
    if (place.kind != Place::Input || !type.isInteger() ||
        type.getIntOrFloatBitWidth() < 8)
      return extract.emitError(
          "a size that depends on a value which the model computes");
    Value data =
        load(ptr, inputs, place.index * abi::tensorSize + abi::tensorData);
    mapping.map(extract.getResult(),
                load(type, data,
                     *getConstantIntValue(linear) *
                         int64_t(type.getIntOrFloatBitWidth() / 8)));
    return success();
  }

  /// A condition on sizes: checked before anything runs.
  void emitRequire(cf::AssertOp assertion) {
    Value holds = arith::ExtUIOp::create(b, loc, b.getI32Type(),
                                         mapping.lookup(assertion.getArg()));
    auto require =
        declare("pto_require", LLVM::LLVMVoidType::get(b.getContext()),
                {ptr, b.getI32Type(), ptr});
    LLVM::CallOp::create(b, loc, require,
                         ValueRange{call, holds, text(assertion.getMsg())});
  }

  /// The address of a string.
  Value text(StringRef value) {
    std::string &name = texts[value];
    if (name.empty()) {
      name = version.symbol + ".text." + std::to_string(texts.size());
      std::string bytes = value.str() + '\0';
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(program.module->getBody());
      LLVM::GlobalOp::create(
          b, loc, LLVM::LLVMArrayType::get(b.getI8Type(), bytes.size()),
          /*isConstant=*/true, LLVM::Linkage::Internal, name,
          b.getStringAttr(bytes));
    }
    return LLVM::AddressOfOp::create(b, loc, ptr, name);
  }

  LogicalResult readWeight(arith::ConstantOp constant, ElementsAttr value) {
    Place place;
    place.kind = Place::Weight;
    for (int64_t dim : cast<ShapedType>(value.getType()).getShape())
      place.sizes.push_back(size(dim));
    places[constant] = std::move(place);
    weights[constant] = value; // added on first use, in the order of use
    return success();
  }

  void alias(Value result, Place place, SmallVector<OpFoldResult> sizes) {
    // The type can know more than the operation that makes it.
    for (auto [i, dim] :
         llvm::enumerate(cast<ShapedType>(result.getType()).getShape()))
      if (!ShapedType::isDynamic(dim))
        sizes[i] = size(dim);
    place.sizes = std::move(sizes);
    places[result] = std::move(place);
  }

  LogicalResult readScalar(Operation &op) {
    auto isTensor = [](Value value) {
      return isa<ShapedType>(value.getType());
    };
    if (llvm::any_of(op.getOperands(), isTensor) ||
        llvm::any_of(op.getResults(), isTensor) || op.getNumRegions() ||
        !isMemoryEffectFree(&op))
      return op.emitError("this operation has no place in @main after kernels "
                          "are formed");
    Operation *copy = b.clone(op, mapping);
    // A division by zero is found by a check of sizes, but must not trap first.
    if (isa<arith::DivSIOp, arith::DivUIOp, arith::FloorDivSIOp,
            arith::CeilDivSIOp, arith::CeilDivUIOp, arith::RemSIOp,
            arith::RemUIOp>(copy) &&
        !getConstantIntValue(copy->getOperand(1))) {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPoint(copy);
      Value divisor = copy->getOperand(1);
      Value zero = arith::ConstantOp::create(
          b, loc, b.getIntegerAttr(divisor.getType(), 0));
      Value one = arith::ConstantOp::create(
          b, loc, b.getIntegerAttr(divisor.getType(), 1));
      Value isZero = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                                           divisor, zero);
      copy->setOperand(1,
                       arith::SelectOp::create(b, loc, isZero, one, divisor));
    }
    return success();
  }

  OpFoldResult mapped(OpFoldResult value) {
    if (auto constant = getConstantIntValue(value))
      return size(*constant);
    return mapping.lookup(cast<Value>(value));
  }

  /// The place as an operand of `step`: extends its life, enters weights.
  FailureOr<Place> use(Value value, int64_t time) {
    Place place = places.lookup(value);
    if (place.kind == Place::Arena && place.index >= 0) {
      LiveBuffer &live = buffers[place.index].live;
      live.last = std::max(live.last, time);
    }
    if (place.kind == Place::Weight) {
      Value root = value;
      while (Operation *op = root.getDefiningOp()) {
        if (isa<arith::ConstantOp>(op))
          break;
        root = op->getOperand(0);
      }
      auto offset = program.weights.add(weights.lookup(root));
      if (!offset)
        return main.emitError() << llvm::toString(offset.takeError());
      place.index = *offset;
    }
    return place;
  }

  LogicalResult readCall(func::CallOp callOp) {
    auto kernel = source.lookupSymbol<func::FuncOp>(callOp.getCallee());
    if (!kernel)
      return callOp.emitError() << "no kernel " << callOp.getCallee();
    unsigned inputCount = callOp.getNumOperands() - callOp.getNumResults();
    if (callOp.getNumResults() > callOp.getNumOperands())
      return callOp.emitError("a kernel has one destination for each result");

    Action action;
    action.call = callOp;
    action.step = program.steps.size();
    for (unsigned i = 0; i < callOp.getNumOperands(); ++i) {
      Value operand = callOp.getOperand(i);
      if (!places.count(operand))
        return callOp.emitError() << "argument " << i << " is no tensor";
      if (i < inputCount) {
        auto place = use(operand, time);
        if (failed(place))
          return failure();
        action.args.push_back(*place);
        continue;
      }
      auto place = newBuffer(callOp.getResult(i - inputCount), operand);
      if (failed(place))
        return failure();
      action.args.push_back(*place);
    }
    program.steps.push_back(stepInfo(kernel, callOp));
    actions.push_back(std::move(action));
    ++time;
    return success();
  }

  /// The buffer behind `result`, destination `operand`. Unless that is an empty
  /// tensor its contents matter, and are copied first.
  FailureOr<Place> newBuffer(Value result, Value operand) {
    Place from = places.lookup(operand);
    bool isEmpty = from.kind == Place::Arena && from.index < 0;
    Place place;
    place.index = buffers.size();
    place.sizes = from.sizes;
    Buffer buffer;
    buffer.bytes = bytesOf(cast<ShapedType>(operand.getType()), place.sizes);
    buffer.live.first = buffer.live.last = time;
    buffers.push_back(buffer);
    if (!isEmpty) {
      auto source = use(operand, time);
      if (failed(source))
        return failure();
      addCopy(*source, place, buffer.bytes);
    }
    alias(result, place, place.sizes);
    return place;
  }

  void addCopy(Place from, Place to, OpFoldResult bytes) {
    Action copy;
    copy.from = std::move(from);
    copy.to = std::move(to);
    copy.bytes = bytes;
    actions.push_back(std::move(copy));
  }

  StepInfo stepInfo(func::FuncOp kernel, func::CallOp callOp) {
    StepInfo info;
    info.kernel = kernel.getName().str();
    if (auto flops = kernel->getAttr("pto.flops")) {
      if (auto value = dyn_cast<IntegerAttr>(flops))
        info.flops = value.getValue().roundToDouble();
      else if (auto value = dyn_cast<FloatAttr>(flops))
        info.flops = value.getValueAsDouble();
    }
    for (Type type : callOp.getOperandTypes()) {
      auto shaped = cast<ShapedType>(type);
      if (!shaped.hasStaticShape()) {
        info.bytes = 0;
        break;
      }
      Type element = shaped.getElementType();
      info.bytes +=
          static_cast<double>(shaped.getNumElements()) *
          (element.isIndex()
               ? 8
               : llvm::divideCeil(element.getIntOrFloatBitWidth(), 8));
    }
    return info;
  }

  LogicalResult readOutputs() {
    auto ret = cast<func::ReturnOp>(main.front().getTerminator());
    for (auto [i, value] : llvm::enumerate(ret.getOperands())) {
      int64_t k = outputInfo.size();
      if (auto check = main.getResultAttrOfType<StringAttr>(i, "pto.check")) {
        auto from = use(value, time);
        if (failed(from))
          return failure();
        Action action;
        action.check = check;
        action.from = *from;
        actions.push_back(std::move(action));
        continue;
      }
      auto info =
          valueInfo("output", k, value.getType(), main.getResultAttrDict(i));
      if (failed(info))
        return failure();
      if (!places.count(value))
        return ret.emitError() << "output " << k << " is no tensor";
      Place place = places.lookup(value);
      // Also those known here: another version's may differ.
      for (auto [d, dim] : llvm::enumerate(place.sizes))
        LLVM::StoreOp::create(
            b, loc, i64Value(dim),
            at(outputs, size(k * abi::tensorSize + abi::tensorShape + 8 * d)));
      outputInfo.push_back(std::move(*info));

      bool isBuffer = place.kind == Place::Arena && place.index >= 0;
      if (isBuffer && !buffers[place.index].output) {
        buffers[place.index].output = k;
        continue;
      }
      if (place.kind == Place::Arena && place.index < 0)
        continue; // undefined contents, by the program's own choice
      auto from = use(value, time);
      if (failed(from))
        return failure();
      Place to;
      to.kind = Place::Output;
      to.index = k;
      addCopy(*from, to,
              bytesOf(cast<ShapedType>(value.getType()), place.sizes));
    }
    return success();
  }

  //===--- Between the passes: the arena ----------------------------------===//

  /// Static buffers are planned to the byte; dynamic ones follow them, one slot
  /// after the other. Returns the arena's size.
  Value planArena() {
    std::vector<LiveBuffer> fixed, dynamic;
    std::vector<Buffer *> fixedOf, dynamicOf;
    for (Buffer &buffer : buffers) {
      if (buffer.output)
        continue;
      if (auto bytes = getConstantIntValue(buffer.bytes)) {
        buffer.live.size = *bytes;
        fixed.push_back(buffer.live);
        fixedOf.push_back(&buffer);
      } else {
        dynamic.push_back(buffer.live);
        dynamicOf.push_back(&buffer);
      }
    }
    MemoryPlan plan = planMemory(fixed, arenaAlignment);
    for (auto [buffer, offset] : llvm::zip(fixedOf, plan.offsets))
      buffer->offset = i64(offset);
    version.arenaBytes = plan.total;

    std::vector<unsigned> slots = assignSlots(dynamic);
    unsigned slotCount = 0;
    for (unsigned slot : slots)
      slotCount = std::max(slotCount, slot + 1);
    std::vector<OpFoldResult> slotBytes(slotCount, size(0));
    for (auto [buffer, slot] : llvm::zip(dynamicOf, slots)) {
      Value bytes = indexValue(alignUp(buffer->bytes));
      slotBytes[slot] =
          arith::MaxSIOp::create(b, loc, bytes, indexValue(slotBytes[slot]))
              .getResult();
    }
    OpFoldResult end = size(plan.total);
    std::vector<OpFoldResult> slotOffsets;
    for (OpFoldResult bytes : slotBytes) {
      slotOffsets.push_back(end);
      end = add(end, bytes);
    }
    for (auto [buffer, slot] : llvm::zip(dynamicOf, slots))
      buffer->offset = i64Value(slotOffsets[slot]);
    return i64Value(end);
  }

  //===--- Second pass ----------------------------------------------------===//

  void emitPrepare(Value arenaBytes) {
    auto prepare =
        declare("pto_prepare", b.getI32Type(), {ptr, b.getI64Type()});
    Value status =
        LLVM::CallOp::create(b, loc, prepare, ValueRange{call, arenaBytes})
            .getResult();
    size_t maxArgs = 1, maxDims = 1;
    for (Action &action : actions) {
      maxArgs = std::max<size_t>(maxArgs, action.args.size());
      size_t dims = 0;
      if (action.call)
        for (Type type : action.call.getOperandTypes())
          dims += cast<ShapedType>(type).getNumDynamicDims();
      maxDims = std::max(maxDims, dims);
    }
    argArray = LLVM::AllocaOp::create(b, loc, ptr, ptr, i64(maxArgs));
    dimArray =
        LLVM::AllocaOp::create(b, loc, ptr, b.getI64Type(), i64(maxDims));
    Block *current = b.getBlock();
    Block *go = b.createBlock(current->getParent());
    Block *stop = b.createBlock(current->getParent());
    LLVM::ReturnOp::create(b, loc, ValueRange());
    b.setInsertionPointToEnd(current);
    Value zero = LLVM::ConstantOp::create(b, loc, b.getI32Type(),
                                          b.getI32IntegerAttr(0));
    Value ok =
        LLVM::ICmpOp::create(b, loc, LLVM::ICmpPredicate::eq, status, zero);
    LLVM::CondBrOp::create(b, loc, ok, go, stop);
    b.setInsertionPointToStart(go);
    arena = load(ptr, call, abi::callArena);
    weightsBase = load(ptr, call, abi::callWeights);
  }

  Value address(const Place &place) {
    if (place.kind == Place::Weight)
      return at(weightsBase, size(place.index));
    bool input = place.kind == Place::Input;
    int64_t number = place.index;
    if (place.kind == Place::Arena) {
      const Buffer &buffer = buffers[place.index];
      if (!buffer.output)
        return LLVM::GEPOp::create(b, loc, ptr, b.getI8Type(), arena,
                                   ArrayRef<LLVM::GEPArg>{buffer.offset});
      number = *buffer.output;
    }
    // One load for each, before the first kernel: later stores do not matter.
    Value &cached = tensorData[{input, number}];
    if (!cached) {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointAfterValue(weightsBase);
      cached = load(ptr, input ? inputs : outputs,
                    number * abi::tensorSize + abi::tensorData);
    }
    return cached;
  }

  void emit(Action &action) {
    if (action.check) {
      auto check =
          declare("pto_check_index", LLVM::LLVMVoidType::get(b.getContext()),
                  {ptr, ptr, ptr});
      LLVM::CallOp::create(
          b, loc, check,
          ValueRange{call, address(action.from), text(action.check)});
      return;
    }
    if (!action.call) {
      auto copy = declare("pto_copy", LLVM::LLVMVoidType::get(b.getContext()),
                          {ptr, ptr, ptr, b.getI64Type()});
      LLVM::CallOp::create(b, loc, copy,
                           ValueRange{call, address(action.to),
                                      address(action.from),
                                      i64Value(action.bytes)});
      return;
    }
    int64_t nextDim = 0;
    func::CallOp callOp = action.call;
    for (auto [i, arg] : llvm::enumerate(action.args)) {
      LLVM::StoreOp::create(b, loc, address(arg), at(argArray, size(8 * i)));
      auto type = cast<ShapedType>(callOp.getOperand(i).getType());
      for (int64_t d = 0; d < type.getRank(); ++d)
        if (type.isDynamicDim(d))
          LLVM::StoreOp::create(b, loc, i64Value(arg.sizes[d]),
                                at(dimArray, size(8 * nextDim++)));
    }
    Type none = LLVM::LLVMVoidType::get(b.getContext());
    auto kernel = declare(callOp.getCallee(), none, {ptr, ptr, ptr});
    auto invoke =
        declare("pto_invoke", none, {ptr, b.getI64Type(), ptr, ptr, ptr});
    Value kernelAddress = LLVM::AddressOfOp::create(b, loc, kernel);
    LLVM::CallOp::create(
        b, loc, invoke,
        ValueRange{call, i64(action.step), kernelAddress, argArray, dimArray});
  }

  ModuleOp source;
  func::FuncOp main;
  Program &program;
  VersionInfo &version;
  OpBuilder b;
  Location loc;
  Type ptr;
  IRMapping mapping; ///< Scalars of @main to those of the new function.
  llvm::DenseMap<Value, Place> places;
  llvm::DenseMap<Value, ElementsAttr> weights;
  std::vector<Buffer> buffers;
  std::vector<Action> actions;
  int64_t time = 0; ///< Number of the current call.
  std::map<std::pair<bool, int64_t>, Value> tensorData;
  llvm::StringMap<std::string> texts; ///< Names of the strings' globals.
  Value call, inputs, outputs, arena, weightsBase, argArray, dimArray;
};

} // namespace

std::string sanitiseName(llvm::StringRef name) {
  std::string out;
  for (char c : name)
    out += llvm::isAlnum(c) || c == '_' ? c : '_';
  if (out.empty() || llvm::isDigit(out.front()))
    out.insert(0, "m_");
  return out;
}

/// A size that versions disagree on is known at run time only.
static LogicalResult mergeValues(ModuleOp module, std::vector<ValueInfo> &all,
                                 std::vector<ValueInfo> more) {
  if (all.empty())
    all = more;
  if (all.size() != more.size())
    return module.emitError("versions with different signatures");
  for (auto [known, other] : llvm::zip(all, more)) {
    if (known.name != other.name || known.dtype != other.dtype ||
        known.shape.size() != other.shape.size())
      return module.emitError()
             << "versions disagree on '" << known.name << "'";
    for (auto [size, now] : llvm::zip(known.shape, other.shape))
      if (size != now)
        size = -1;
    if (!other.dims.empty())
      known.dims = std::move(other.dims);
  }
  return success();
}

FailureOr<Program> lowerMain(ArrayRef<ModuleOp> versions,
                             const targets::Target &target,
                             const MainOptions &options) {
  MLIRContext *context = versions.front()->getContext();
  context->loadDialect<LLVM::LLVMDialect, arith::ArithDialect,
                       cf::ControlFlowDialect>();

  Program program;
  program.module = ModuleOp::create(UnknownLoc::get(context));
  program.model = options.prefix;
  for (auto [i, module] : llvm::enumerate(versions)) {
    ModuleOp version = module;
    auto main = version.lookupSymbol<func::FuncOp>("main");
    if (!main || main.isExternal() || !main.getBody().hasOneBlock())
      return version.emitError("no @main with one block of calls");
    if (auto name = version->getAttrOfType<StringAttr>("pto.model"))
      program.model = name.str();
    VersionInfo info;
    info.symbol = "pto.main." + std::to_string(i);
    MainLowering lowering(version, main, program, info);
    if (failed(lowering.run()) ||
        failed(mergeValues(version, program.inputs,
                           std::move(lowering.inputInfo))) ||
        failed(mergeValues(version, program.outputs,
                           std::move(lowering.outputInfo))))
      return failure();
    program.versions.push_back(std::move(info));
  }
  describe(program, target, options);

  PassManager pm(context);
  pm.addPass(createLowerAffinePass());
  pm.addPass(createSCFToControlFlowPass());
  pm.addPass(createArithToLLVMConversionPass());
  pm.addPass(createConvertControlFlowToLLVMPass());
  pm.addPass(createReconcileUnrealizedCastsPass());
  pm.addPass(createCSEPass());
  if (failed(pm.run(*program.module)))
    return failure();
  return program;
}

} // namespace pto::lowering
