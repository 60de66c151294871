//===- RawKernel.cpp ------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
#include "tuner/worker/RawKernel.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace pto;
using namespace pto::targets;

static llvm::Expected<TensorSpec> tensorOf(Type type) {
  auto shaped = dyn_cast<ShapedType>(type);
  std::string text;
  llvm::raw_string_ostream(text) << type;
  if (!shaped || !shaped.hasRank())
    return llvm::createStringError("%s is no ranked tensor", text.c_str());
  if (!shaped.hasStaticShape())
    return llvm::createStringError("%s has sizes that are not known: give "
                                   "them with --shape",
                                   text.c_str());
  TensorSpec spec;
  spec.shape.assign(shaped.getShape().begin(), shaped.getShape().end());
  std::string element;
  llvm::raw_string_ostream(element) << shaped.getElementType();
  if (shaped.getElementType().isIndex())
    element = "i64";
  auto dtype = parseDType(element);
  if (!dtype)
    return llvm::createStringError("element type %s cannot be measured",
                                   element.c_str());
  spec.dtype = *dtype;
  return spec;
}

/// Float operations in one execution of a linalg op's body.
static int64_t bodyFlops(linalg::LinalgOp op) {
  int64_t n = 0;
  op->getRegion(0).walk([&](Operation *inner) {
    if (inner->getNumResults() != 1 || inner->getNumOperands() == 0 ||
        !isa<FloatType>(inner->getResult(0).getType()))
      return;
    StringRef dialect = inner->getName().getDialectNamespace();
    StringRef name = inner->getName().stripDialect();
    bool conversion = name.starts_with("ext") || name.starts_with("trunc") ||
                      name.contains("tofp") || name == "select" ||
                      name == "bitcast";
    n += (dialect == "arith" || dialect == "math") && !conversion;
  });
  return n;
}

llvm::Expected<KernelSignature> tuner::signatureOf(func::FuncOp kernel) {
  KernelSignature signature;
  unsigned n = kernel.getNumArguments();
  unsigned written = std::max(1u, kernel.getNumResults());
  for (unsigned i = 0; i < n; ++i) {
    auto tensor = tensorOf(kernel.getArgument(i).getType());
    if (!tensor)
      return llvm::createStringError("argument %u: %s", i,
                                     toString(tensor.takeError()).c_str());
    ArgumentSpec argument;
    argument.tensor = std::move(*tensor);
    auto role = kernel.getArgAttrOfType<StringAttr>(i, "pto.role");
    if (role && role.getValue() == "weight")
      argument.role = Role::Weight;
    else if (role && role.getValue() == "output")
      argument.role = Role::Output;
    else if (!role && i + written >= n)
      argument.role = Role::InOut;
    signature.arguments.push_back(std::move(argument));
  }

  int64_t indexBound = 0;
  kernel.walk([&](Operation *op) {
    if (auto extract = dyn_cast<tensor::ExtractOp>(op)) {
      // Integers may become indices: whichever dimension they index, they fit.
      for (int64_t size : extract.getTensor().getType().getShape())
        if (!ShapedType::isDynamic(size))
          indexBound = indexBound ? std::min(indexBound, size) : size;
    }
    auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
    if (!linalgOp || op->getNumRegions() == 0)
      return;
    int64_t points = 1, reduction = 1;
    auto ranges = linalgOp.getStaticLoopRanges();
    for (auto [size, kind] :
         llvm::zip(ranges, linalgOp.getIteratorTypesArray())) {
      if (ShapedType::isDynamic(size))
        return;
      points *= size;
      if (kind == utils::IteratorType::reduction)
        reduction *= size;
    }
    signature.flops += points * bodyFlops(linalgOp);
    signature.reductionLength = std::max(signature.reductionLength, reduction);
  });
  if (indexBound)
    for (ArgumentSpec &argument : signature.arguments)
      if (!isFloat(argument.tensor.dtype))
        argument.indexBound = indexBound;
  return signature;
}

llvm::Expected<CallSpec> tuner::callOf(ModuleOp scheduled) {
  CallSpec call;
  auto kernel = scheduled.lookupSymbol<func::FuncOp>("kernel");
  if (!kernel)
    return llvm::createStringError("the schedule left no @kernel");
  auto prepack = scheduled.lookupSymbol<func::FuncOp>("kernel_prepack");
  if (!prepack)
    return call;
  for (unsigned i = 0; i < kernel.getNumArguments(); ++i) {
    CallSpec::Operand operand{false, i};
    if (auto raw = kernel.getArgAttrOfType<IntegerAttr>(i, "pto.arg"))
      operand.index = raw.getInt();
    else if (auto packed =
                 kernel.getArgAttrOfType<IntegerAttr>(i, "pto.prepack"))
      operand = {true, unsigned(packed.getInt())};
    call.operands.push_back(operand);
  }
  for (Type type : prepack.getResultTypes()) {
    auto tensor = tensorOf(type);
    if (!tensor)
      return tensor.takeError();
    call.prepackResults.push_back(std::move(*tensor));
  }
  unsigned results = prepack.getNumResults();
  for (unsigned i = 0; i + results < prepack.getNumArguments(); ++i) {
    auto raw = prepack.getArgAttrOfType<IntegerAttr>(i, "pto.arg");
    if (!raw)
      return llvm::createStringError(
          "argument %u of @kernel_prepack has no pto.arg", i);
    call.prepackArguments.push_back(raw.getInt());
  }
  return call;
}
