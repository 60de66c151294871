//===- MatMul.cpp - Products of tensors
//------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
// MatMul, Gemm and Einsum. Named ops for the plain forms. A right operand of
// rank 2 turns the product into one matmul over all rows; broadcast batch dims
// and transposed operands are indexing maps, never copies.
//
//===----------------------------------------------------------------------===//

#include "lowering/onnx/Generic.h"
#include "lowering/onnx/Ops.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace pto::lowering {

static Value zeroTensor(Node &n, ArrayRef<OpFoldResult> sizes, Type type) {
  return filledTensor(n.b, n.loc, sizes,
                      scalarConstant(n.b, n.loc, sumType(type), 0));
}

static llvm::Error checkInner(Node &n, OpFoldResult x, OpFoldResult y) {
  if (known(x) && known(y) && *known(x) != *known(y))
    return n.invalid("inner sizes " + Twine(*known(x)) + " and " +
                     Twine(*known(y)) + " differ");
  return llvm::Error::success();
}

/// a[m, k] * b[k, n], either of them stored transposed.
static Value matmul2d(Node &n, Value a, Value b, bool transA, bool transB) {
  OpBuilder &builder = n.b;
  Sizes as = sizesOf(builder, n.loc, a), bs = sizesOf(builder, n.loc, b);
  Type type = cast<RankedTensorType>(a.getType()).getElementType();
  Value init = zeroTensor(n, {as[transA ? 1 : 0], bs[transB ? 0 : 1]}, type);
  if (!transA && !transB)
    return linalg::MatmulOp::create(builder, n.loc, TypeRange{init.getType()},
                                    ValueRange{a, b}, ValueRange{init})
        .getResult(0);
  AffineExpr m, nn, k;
  bindDims(builder.getContext(), m, nn, k);
  auto map = [&](AffineExpr x, AffineExpr y) {
    return AffineMap::get(3, 0, {x, y}, builder.getContext());
  };
  return contract(builder, n.loc, a, b, init,
                  {transA ? map(k, m) : map(m, k),
                   transB ? map(nn, k) : map(k, nn), map(m, nn)},
                  {false, false, true});
}

llvm::Error buildGemm(Node &n) {
  Tensor &a = n.in(0), &b = n.in(1);
  if (a.rank() != 2 || b.rank() != 2)
    return n.invalid("operands must have rank 2");
  if (a.dtype != b.dtype)
    return n.invalid("operands of different types");
  bool transA = n.intAttr("transA", 0), transB = n.intAttr("transB", 0);
  Sizes as = sizesOf(n, a), bs = sizesOf(n, b);
  if (auto error = checkInner(n, as[transA ? 0 : 1], bs[transB ? 1 : 0]))
    return error;
  Tensor out =
      roundSum(n, matmul2d(n, n.value(a), n.value(b), transA, transB), a.dtype);
  float alpha = n.floatAttr("alpha", 1), beta = n.floatAttr("beta", 1);
  bool hasC = n.has(2) && beta != 0;
  if (hasC || alpha != 1) {
    SmallVector<Tensor *> inputs = {&out};
    if (hasC)
      inputs.push_back(&n.in(2));
    Sizes sizes = sizesOf(n, out);
    auto result = elementwise(
        n, inputs, a.dtype,
        [&](OpBuilder &b, Location loc, ArrayRef<Value> args) {
          auto scale = [&](Value v, float by) {
            return by == 1 ? v
                           : scalarMul(b, loc, v,
                                       scalarConstant(b, loc, v.getType(), by));
          };
          Value r = scale(args[0], alpha);
          return hasC ? scalarAdd(b, loc, r, scale(args[1], beta)) : r;
        });
    if (!result)
      return result.takeError();
    if (result->rank() != 2)
      return n.invalid("C does not broadcast to the product");
    out = *result;
  }
  n.set(0, out);
  return llvm::Error::success();
}

llvm::Expected<Tensor> matrixProduct(Node &n, Tensor &a, Tensor &b) {
  if (a.dtype != b.dtype)
    return n.invalid("operands of different types");
  if (a.rank() == 0 || b.rank() == 0)
    return n.invalid("operands must not be scalars");
  OpBuilder &builder = n.b;
  Sizes as = sizesOf(n, a), bs = sizesOf(n, b);
  OpFoldResult k = as.back();
  if (auto error = checkInner(n, k, bs[b.rank() == 1 ? 0 : b.rank() - 2]))
    return error;
  Type type = a.elementType();
  Value lhs = n.value(a), rhs = n.value(b);

  // Weight matrix: all rows at once.
  if (b.rank() == 2 && a.rank() >= 2) {
    OpFoldResult rows = product(builder, n.loc, ArrayRef(as).drop_back());
    Value flat = reshape(builder, n.loc, lhs, {rows, k});
    Value out = matmul2d(n, flat, rhs, false, false);
    as.back() = bs[1];
    return roundSum(n, reshape(builder, n.loc, out, as), a.dtype);
  }

  // Equal batch dims: one batch dim.
  ArrayRef<OpFoldResult> aBatch =
      ArrayRef(as).drop_back(std::min<int64_t>(2, a.rank()));
  ArrayRef<OpFoldResult> bBatch =
      ArrayRef(bs).drop_back(std::min<int64_t>(2, b.rank()));
  if (a.rank() >= 3 && aBatch == bBatch) {
    OpFoldResult batch = product(builder, n.loc, aBatch);
    OpFoldResult m = as[a.rank() - 2], cols = bs.back();
    lhs = reshape(builder, n.loc, lhs, {batch, m, k});
    rhs = reshape(builder, n.loc, rhs, {batch, k, cols});
    Value init = zeroTensor(n, {batch, m, cols}, type);
    Value out =
        linalg::BatchMatmulOp::create(builder, n.loc, TypeRange{init.getType()},
                                      ValueRange{lhs, rhs}, ValueRange{init})
            .getResult(0);
    Sizes outSizes(aBatch);
    outSizes.push_back(m);
    outSizes.push_back(cols);
    return roundSum(n, reshape(builder, n.loc, out, outSizes), a.dtype);
  }

  // The general case: (batch..., [m,] [n,] k) with broadcast batch dims.
  auto batch = broadcastSizes(n, {Sizes(aBatch), Sizes(bBatch)});
  if (!batch)
    return batch.takeError();
  int64_t rank = batch->size(), next = rank;
  Sizes outSizes = *batch;
  SmallVector<AffineExpr> outExprs;
  for (int64_t d = 0; d < rank; ++d)
    outExprs.push_back(builder.getAffineDimExpr(d));
  AffineExpr m, cols;
  if (a.rank() > 1) {
    m = builder.getAffineDimExpr(next++);
    outExprs.push_back(m);
    outSizes.push_back(as[a.rank() - 2]);
  }
  if (b.rank() > 1) {
    cols = builder.getAffineDimExpr(next++);
    outExprs.push_back(cols);
    outSizes.push_back(bs.back());
  }
  AffineExpr kExpr = builder.getAffineDimExpr(next++);
  // Drops the batch dims that are broadcast and gives the operand's exprs.
  auto operand = [&](Value v, ArrayRef<OpFoldResult> own,
                     SmallVector<AffineExpr> matrix) {
    SmallVector<bool> drop;
    SmallVector<AffineExpr> exprs;
    SmallVector<int64_t> kept;
    for (auto [d, size] : llvm::enumerate(own)) {
      int64_t outDim = rank - own.size() + d;
      drop.push_back(known(size) == 1 && known((*batch)[outDim]) != 1);
      if (!drop.back())
        exprs.push_back(builder.getAffineDimExpr(outDim));
    }
    auto vType = cast<RankedTensorType>(v.getType());
    drop.resize(vType.getRank(), false);
    llvm::append_range(exprs, matrix);
    if (llvm::is_contained(drop, true))
      v = tensor::CollapseShapeOp::create(builder, n.loc, v,
                                          dropDims(vType.getRank(), drop));
    return std::make_pair(v,
                          AffineMap::get(next, 0, exprs, builder.getContext()));
  };
  SmallVector<AffineExpr> aMatrix, bMatrix;
  if (m)
    aMatrix.push_back(m);
  aMatrix.push_back(kExpr);
  bMatrix.push_back(kExpr);
  if (cols)
    bMatrix.push_back(cols);
  auto [aValue, aMap] = operand(lhs, aBatch, aMatrix);
  auto [bValue, bMap] = operand(rhs, bBatch, bMatrix);
  SmallVector<bool> isReduction(next, false);
  isReduction.back() = true;
  Value init = zeroTensor(n, outSizes, type);
  auto outMap = AffineMap::get(next, 0, outExprs, builder.getContext());
  return roundSum(n,
                  contract(builder, n.loc, aValue, bValue, init,
                           {aMap, bMap, outMap}, isReduction),
                  a.dtype);
}

llvm::Error buildMatMul(Node &n) {
  auto out = matrixProduct(n, n.in(0), n.in(1));
  if (!out)
    return out.takeError();
  n.set(0, *out);
  return llvm::Error::success();
}

/// A product of operands in Einstein's notation: one contraction over all
/// labels.
llvm::Error buildEinsum(Node &n) {
  OpBuilder &b = n.b;
  std::string text = n.stringAttr("equation", "");
  text.erase(std::remove(text.begin(), text.end(), ' '), text.end());
  auto [left, right] = StringRef(text).split("->");
  bool explicitOutput = StringRef(text).contains("->");
  SmallVector<StringRef> terms;
  left.split(terms, ',');
  if (terms.size() != n.numInputs())
    return n.invalid("equation with " + Twine(terms.size()) + " operands");

  // Labels become characters; the dims of an ellipsis become 0, 1, 2, ...
  int64_t ellipsisRank = 0;
  for (auto [i, term] : llvm::enumerate(terms))
    if (term.contains("..."))
      ellipsisRank = std::max<int64_t>(
          ellipsisRank, n.in(i).rank() - (int64_t(term.size()) - 3));
  auto expand = [&](StringRef term, int64_t own) {
    std::string labels;
    for (size_t i = 0; i < term.size(); ++i) {
      if (term.substr(i).starts_with("...")) {
        for (int64_t d = ellipsisRank - own; d < ellipsisRank; ++d)
          labels.push_back(char(d));
        i += 2;
      } else {
        labels.push_back(term[i]);
      }
    }
    return labels;
  };
  SmallVector<std::string> labels;
  std::string order;
  llvm::SmallDenseMap<char, int> uses;
  llvm::SmallDenseMap<char, OpFoldResult> sizes;
  for (auto [i, term] : llvm::enumerate(terms)) {
    int64_t own =
        term.contains("...") ? n.in(i).rank() - (int64_t(term.size()) - 3) : 0;
    labels.push_back(expand(term, own));
    if (int64_t(labels.back().size()) != n.in(i).rank())
      return n.invalid("'" + term + "' for an operand of rank " +
                       Twine(n.in(i).rank()));
    Sizes in = sizesOf(n, n.in(i));
    for (auto [label, size] : llvm::zip(labels.back(), in)) {
      ++uses[label];
      auto [it, isNew] = sizes.try_emplace(label, size);
      if (isNew)
        order.push_back(label);
      else if (known(it->second) == 1)
        it->second = size;
      else if (known(size) && known(it->second) && *known(size) != 1 &&
               *known(size) != *known(it->second))
        return n.invalid("label '" + Twine(label) + "' has two sizes");
    }
  }
  std::string output;
  if (explicitOutput) {
    output = expand(right, ellipsisRank);
  } else {
    for (int64_t d = 0; d < ellipsisRank; ++d)
      output.push_back(char(d));
    std::string single;
    for (char c : order)
      if (c >= 'A' && uses[c] == 1)
        single.push_back(c);
    llvm::sort(single);
    output += single;
  }
  // Output labels first, then those summed over.
  std::string all = output;
  for (char c : order)
    if (output.find(c) == std::string::npos)
      all.push_back(c);
  for (char c : output)
    if (!sizes.count(c))
      return n.invalid("the result has a label that no operand has");
  if (llvm::any_of(output, [&](char c) { return llvm::count(output, c) > 1; }))
    return n.invalid("the result has a label twice");
  int64_t dims = all.size();
  SmallVector<Value> operands;
  SmallVector<AffineMap> maps;
  for (size_t i = 0; i < terms.size(); ++i) {
    Tensor &x = n.in(i);
    SmallVector<bool> drop;
    SmallVector<AffineExpr> exprs;
    for (auto [label, size] : llvm::zip(labels[i], x.shape())) {
      drop.push_back(size == 1 && known(sizes[label]) != 1);
      if (!drop.back())
        exprs.push_back(b.getAffineDimExpr(all.find(label)));
    }
    Value v = n.value(x);
    if (llvm::is_contained(drop, true))
      v = tensor::CollapseShapeOp::create(b, n.loc, v,
                                          dropDims(x.rank(), drop));
    operands.push_back(v);
    maps.push_back(AffineMap::get(dims, 0, exprs, b.getContext()));
  }
  SmallVector<AffineExpr> outExprs;
  Sizes outSizes;
  for (auto [d, label] : llvm::enumerate(output)) {
    outExprs.push_back(b.getAffineDimExpr(d));
    outSizes.push_back(sizes[label]);
  }
  maps.push_back(AffineMap::get(dims, 0, outExprs, b.getContext()));
  SmallVector<utils::IteratorType> iterators(dims,
                                             utils::IteratorType::reduction);
  std::fill_n(iterators.begin(), output.size(), utils::IteratorType::parallel);
  Value init = zeroTensor(n, outSizes, n.in(0).elementType());
  auto op = linalg::GenericOp::create(
      b, n.loc, TypeRange{init.getType()}, operands, ValueRange{init}, maps,
      iterators, [&](OpBuilder &b, Location loc, ValueRange args) {
        Type type = args.back().getType();
        auto wide = [&](Value v) -> Value {
          return v.getType() == type ? v
                                     : arith::ExtFOp::create(b, loc, type, v);
        };
        Value term = wide(args[0]);
        for (Value v : args.drop_front().drop_back())
          term = scalarMul(b, loc, term, wide(v), true);
        linalg::YieldOp::create(b, loc,
                                scalarAdd(b, loc, args.back(), term, true));
      });
  n.set(0, roundSum(n, op.getResult(0), n.in(0).dtype));
  return llvm::Error::success();
}

} // namespace pto::lowering
