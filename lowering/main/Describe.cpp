//===- Describe.cpp - The tables that an artifact carries -----------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lowering/main/Describe.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Builders.h"
#include "targets/Features.h"
#include "targets/cpu/runtime/pto_artifact.h"

using namespace mlir;

namespace pto::lowering {
namespace {

/// One scalar of a table.
struct Field {
  enum Kind { I32, I64, F64, Pointer } kind;
  int64_t integer = 0;
  double real = 0;
  std::string symbol; ///< Empty: null.

  static Field i32(int64_t value) { return {I32, value, 0, {}}; }
  static Field i64(int64_t value) { return {I64, value, 0, {}}; }
  static Field f64(double value) { return {F64, 0, value, {}}; }
  static Field pointer(std::string symbol) {
    return {Pointer, 0, 0, std::move(symbol)};
  }
};

/// Emits globals. A table is one flat struct of its scalars: the C structs that
/// it mirrors have no padding but natural alignment, so the layouts agree.
class TableBuilder {
public:
  explicit TableBuilder(ModuleOp module)
      : b(OpBuilder::atBlockEnd(module.getBody())), loc(module.getLoc()) {}

  /// Equal texts are one global: the runtime compares addresses.
  Field string(StringRef text) {
    auto [known, isNew] = strings.try_emplace(text, Field::i64(0));
    if (isNew)
      known->second = newString(text);
    return known->second;
  }

private:
  Field newString(StringRef text) {
    std::string name = "pto.text." + std::to_string(count++);
    std::string bytes = text.str() + '\0';
    auto type = LLVM::LLVMArrayType::get(b.getI8Type(), bytes.size());
    LLVM::GlobalOp::create(b, loc, type, /*isConstant=*/true,
                           LLVM::Linkage::Internal, name,
                           b.getStringAttr(bytes));
    return Field::pointer(name);
  }

public:
  Field table(ArrayRef<Field> fields) {
    if (fields.empty())
      return Field::pointer("");
    std::string name = "pto.table." + std::to_string(count++);
    emit(name, fields, LLVM::Linkage::Internal);
    return Field::pointer(name);
  }

  void emit(StringRef name, ArrayRef<Field> fields, LLVM::Linkage linkage) {
    SmallVector<Type> types;
    for (const Field &field : fields)
      types.push_back(typeOf(field));
    auto type = LLVM::LLVMStructType::getLiteral(b.getContext(), types);
    auto global = LLVM::GlobalOp::create(b, loc, type, /*isConstant=*/true,
                                         linkage, name, Attribute());
    OpBuilder::InsertionGuard guard(b);
    b.createBlock(&global.getInitializerRegion());
    Value value = LLVM::UndefOp::create(b, loc, type);
    for (auto [i, field] : llvm::enumerate(fields))
      value = LLVM::InsertValueOp::create(b, loc, value, constant(field),
                                          static_cast<int64_t>(i));
    LLVM::ReturnOp::create(b, loc, value);
  }

  /// A symbol that another object defines.
  void declareBytes(StringRef name) {
    auto global = LLVM::GlobalOp::create(
        b, loc, LLVM::LLVMArrayType::get(b.getI8Type(), 0),
        /*isConstant=*/true, LLVM::Linkage::External, name, Attribute());
    global.setVisibility_(LLVM::Visibility::Hidden);
  }

  LLVM::LLVMFuncOp declare(StringRef name, Type result, ArrayRef<Type> args) {
    auto func = LLVM::LLVMFuncOp::create(
        b, loc, name, LLVM::LLVMFunctionType::get(result, args));
    func.setVisibility_(LLVM::Visibility::Hidden);
    return func;
  }

  /// `name(args...)` calls `callee(leading..., args...)`.
  void wrapper(StringRef name, LLVM::LLVMFuncOp callee,
               StringRef leading = "") {
    LLVM::LLVMFunctionType type = callee.getFunctionType();
    ArrayRef<Type> args = type.getParams().drop_front(leading.empty() ? 0 : 1);
    auto func = LLVM::LLVMFuncOp::create(
        b, loc, name, LLVM::LLVMFunctionType::get(type.getReturnType(), args));
    OpBuilder::InsertionGuard guard(b);
    Block *body = func.addEntryBlock(b);
    b.setInsertionPointToStart(body);
    SmallVector<Value> operands;
    if (!leading.empty())
      operands.push_back(address(leading));
    llvm::append_range(operands, body->getArguments());
    auto call = LLVM::CallOp::create(b, loc, callee, operands);
    LLVM::ReturnOp::create(b, loc, call.getResults());
  }

  /// `name()` gives the address of `symbol`.
  void getter(StringRef name, StringRef symbol) {
    auto func = LLVM::LLVMFuncOp::create(
        b, loc, name, LLVM::LLVMFunctionType::get(pointerType(), {}));
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(func.addEntryBlock(b));
    LLVM::ReturnOp::create(b, loc, address(symbol));
  }

  Type pointerType() { return LLVM::LLVMPointerType::get(b.getContext()); }
  OpBuilder b;

private:
  Type typeOf(const Field &field) {
    switch (field.kind) {
    case Field::I32:
      return b.getI32Type();
    case Field::I64:
      return b.getI64Type();
    case Field::F64:
      return b.getF64Type();
    case Field::Pointer:
      break;
    }
    return pointerType();
  }

  Value address(StringRef symbol) {
    return LLVM::AddressOfOp::create(b, loc, pointerType(), symbol);
  }

  Value constant(const Field &field) {
    Type type = typeOf(field);
    if (field.kind == Field::Pointer)
      return field.symbol.empty()
                 ? LLVM::ZeroOp::create(b, loc, type).getResult()
                 : address(field.symbol);
    Attribute value = field.kind == Field::F64
                          ? Attribute(b.getF64FloatAttr(field.real))
                          : Attribute(b.getIntegerAttr(type, field.integer));
    return LLVM::ConstantOp::create(b, loc, type, value);
  }

  Location loc;
  llvm::StringMap<Field> strings;
  unsigned count = 0;
};

Field valueTable(TableBuilder &tables, ArrayRef<ValueInfo> values) {
  SmallVector<Field> fields;
  for (const ValueInfo &value : values) {
    SmallVector<Field> shape;
    for (int64_t size : value.shape)
      shape.push_back(Field::i64(size));
    fields.push_back(tables.string(value.name));
    fields.push_back(Field::i32(value.dtype));
    fields.push_back(Field::i32(value.shape.size()));
    fields.push_back(tables.table(shape));
    SmallVector<Field> dims;
    for (const std::string &dim : value.dims)
      dims.push_back(tables.string(dim));
    fields.push_back(tables.table(dims));
  }
  static_assert(sizeof(pto_value_info) == 32, "mirror the struct here");
  return tables.table(fields);
}

Field stepTable(TableBuilder &tables, ArrayRef<StepInfo> steps) {
  SmallVector<Field> fields;
  for (const StepInfo &step : steps) {
    fields.push_back(tables.string(step.kernel));
    fields.push_back(Field::f64(step.flops));
    fields.push_back(Field::f64(step.bytes));
  }
  return tables.table(fields);
}

Field versionTable(TableBuilder &tables, ArrayRef<VersionInfo> versions) {
  SmallVector<Field> fields;
  for (const VersionInfo &version : versions) {
    SmallVector<Field> sizes;
    for (const std::vector<int64_t> &shape : version.shapes)
      for (int64_t size : shape)
        sizes.push_back(Field::i64(size));
    fields.push_back(tables.table(sizes));
    fields.push_back(Field::pointer(version.symbol));
    fields.push_back(Field::i64(version.firstStep));
    fields.push_back(Field::i64(version.stepCount));
  }
  static_assert(sizeof(pto_version) == 4 * 8, "mirror the struct here");
  return tables.table(fields);
}

constexpr const char *modelSymbol = "pto.model";

void emitModel(TableBuilder &tables, const Program &program,
               const targets::Target &target, const MainOptions &options) {
  bool inside = options.weightsFile.empty();
  bool any = program.weights.size() > 0;
  if (inside && any)
    tables.declareBytes(weightsSymbol);
  SmallVector<Field> fields = {
      tables.string(program.model),
      Field::i64(program.inputs.size()),
      Field::i64(program.outputs.size()),
      valueTable(tables, program.inputs),
      valueTable(tables, program.outputs),
      Field::i64(program.steps.size()),
      stepTable(tables, program.steps),
      Field::i64(program.versions.size()),
      versionTable(tables, program.versions),
      Field::pointer(inside && any ? weightsSymbol : ""),
      inside ? Field::pointer("") : tables.string(options.weightsFile),
      Field::i64(program.weights.size()),
      Field::i64(program.weights.id()),
      Field::i64(targets::codeFeatureMask(target)),
      Field::i64(options.threads),
      tables.string(target.name + " " + target.cpu),
      tables.string(options.version)};
  static_assert(sizeof(pto_model) == 17 * 8, "mirror the struct here");
  tables.emit(modelSymbol, fields, LLVM::Linkage::Internal);
}

} // namespace

void describe(Program &program, const targets::Target &target,
              const MainOptions &options) {
  TableBuilder tables(*program.module);
  emitModel(tables, program, target, options);

  Type ptr = tables.pointerType(), i32 = tables.b.getI32Type(),
       i64 = tables.b.getI64Type(),
       none = LLVM::LLVMVoidType::get(tables.b.getContext());
  auto create = tables.declare("pto_create", i32, {ptr, ptr, ptr});
  auto run = tables.declare("pto_run", i32, {ptr, ptr, i64, ptr, i64});
  auto destroy = tables.declare("pto_destroy", none, {ptr});
  auto error = tables.declare("pto_error", ptr, {ptr});
  tables.declare("pto_profile", none, {ptr, ptr});
  tables.declare("pto_arena_bytes", i64, {ptr});
  tables.declare("pto_threads", i32, {ptr});
  tables.declare("pto_version_used", i32, {ptr});

  static_assert(sizeof(pto_artifact_table) == 10 * 8, "mirror the struct here");
  tables.emit("pto_artifact",
              {Field::i64(PTO_ABI_VERSION), Field::pointer(modelSymbol),
               Field::pointer("pto_create"), Field::pointer("pto_run"),
               Field::pointer("pto_destroy"), Field::pointer("pto_error"),
               Field::pointer("pto_profile"), Field::pointer("pto_arena_bytes"),
               Field::pointer("pto_threads"),
               Field::pointer("pto_version_used")},
              LLVM::Linkage::External);

  const std::string &prefix = options.prefix;
  tables.wrapper(prefix + "_create", create, modelSymbol);
  tables.wrapper(prefix + "_run", run);
  tables.wrapper(prefix + "_destroy", destroy);
  tables.wrapper(prefix + "_error", error);
  tables.getter(prefix + "_signature", modelSymbol); // its first member
  static_assert(offsetof(pto_model, signature) == 0);
  program.exports = {"pto_artifact"};
  for (const char *name :
       {"_create", "_run", "_destroy", "_error", "_signature"})
    program.exports.push_back(prefix + name);
}

} // namespace pto::lowering
