//===- Knobs.cpp - Options that depend on kernel and target
//-----------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "schedules/engine/Knobs.h"
#include "lowering/pipeline/MicroKernel.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "schedules/engine/extension/KernelKind.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace pto::schedules {

KernelFacts factsOf(Operation *kernel) {
  KernelFacts facts;
  facts.kind = kernelKind(kernel).str();
  linalg::LinalgOp root = rootOf(kernel), anchor = anchorOf(kernel);
  if (!root || !anchor)
    return facts;
  if (auto type = dyn_cast<RankedTensorType>(root.getDpsInits()[0].getType()))
    for (int64_t d : type.getShape())
      facts.shape.push_back(ShapedType::isDynamic(d) ? -1 : d);
  facts.batch.assign(facts.shape.size(), false);
  AffineMap out = anchor.getMatchingIndexingMap(anchor.getDpsInitOperand(0));
  if (out.getNumResults() == facts.shape.size())
    for (unsigned d = 0; d < out.getNumResults(); ++d)
      facts.batch[d] = lowering::numbersProducts(anchor, out.getResult(d));
  facts.elementBits = 8;
  for (Value v : anchor->getOperands()) {
    Type t = getElementTypeOrSelf(v.getType());
    if (t.isIntOrFloat())
      facts.elementBits =
          std::max<int64_t>(facts.elementBits, t.getIntOrFloatBitWidth());
  }
  auto bytesOf = [](Value v) -> int64_t {
    auto type = dyn_cast<ShapedType>(v.getType());
    if (!type || !type.hasStaticShape() ||
        !type.getElementType().isIntOrFloat())
      return 0;
    return type.getNumElements() * type.getElementTypeBitWidth() / 8;
  };
  if (anchor.getNumDpsInputs() >= 2)
    facts.weightBytes = bytesOf(anchor.getDpsInputOperand(1)->get());
  if (anchor.getNumDpsInputs() >= 1)
    facts.streamBytes = bytesOf(anchor.getDpsInputOperand(0)->get()) +
                        bytesOf(root.getDpsInits()[0]);
  SmallVector<int64_t> ranges = anchor.getStaticLoopRanges();
  for (auto [range, type] :
       llvm::zip_equal(ranges, anchor.getIteratorTypesArray()))
    if (type == utils::IteratorType::reduction)
      facts.reduction *= ShapedType::isDynamic(range) ? 256 : range;
  return facts;
}

int64_t registersFor(RegisterTile tile) {
  return tile.rows * tile.vectors + tile.vectors + 1;
}

double cyclesPerStep(RegisterTile tile, int64_t m, int64_t n, int64_t width) {
  // One tile of r rows and v vectors. Broadcasts of one row serve v FMAs.
  auto cycles = [](double r, double v) {
    double fma = r * v / 2, load = (r + v) / 2, latency = 4;
    return std::max({fma, load, latency}) + 0.25;
  };
  int64_t columns = tile.vectors * width;
  auto rowTiles = [&](double vectors) {
    int64_t tail = m % tile.rows;
    return double(m / tile.rows) * cycles(double(tile.rows), vectors) +
           (tail ? cycles(double(tail), vectors) : 0.0);
  };
  int64_t tail = n % columns;
  return double(n / columns) * rowTiles(double(tile.vectors)) +
         (tail ? rowTiles(double(llvm::divideCeil(tail, width))) : 0.0);
}

RegisterTile bestRegisterTile(int64_t m, int64_t n, int64_t width,
                              int64_t registers) {
  RegisterTile best;
  double bestCycles = cyclesPerStep(best, m, n, width);
  for (int64_t v = 1; v <= 4; ++v)
    for (int64_t r = 1; r <= 32; ++r) {
      RegisterTile tile{r, v};
      if (registersFor(tile) > registers || r > m ||
          (v > 1 && (v - 1) * width >= n))
        continue;
      double cycles = cyclesPerStep(tile, m, n, width);
      if (cycles < bestCycles * 0.999) {
        bestCycles = cycles;
        best = tile;
      }
    }
  return best;
}

static std::string print(Attribute attr) {
  std::string text;
  llvm::raw_string_ostream os(text);
  attr.print(os, /*elideType=*/true);
  return text;
}

static std::vector<std::string> numbers(llvm::ArrayRef<int64_t> values) {
  std::vector<std::string> out;
  for (int64_t v : values)
    out.push_back(std::to_string(v));
  return out;
}

/// About how many cycles the slowest of `threads` takes if they share dim `d`
/// of the result. Chunks are whole register tiles. Every thread reads the
/// second factor unless it has columns or products of its own, and the first
/// one unless it has rows or products of its own.
static double cyclesOfThread(size_t d, size_t rowDim, int64_t m, int64_t n,
                             int64_t width, unsigned threads,
                             const KernelFacts &facts,
                             const targets::Target &target) {
  bool columns = d + 1 == facts.shape.size();
  bool tiled = facts.kind == "matmul" || facts.kind == "conv";
  RegisterTile tile{1, 1};
  if (tiled)
    tile = bestRegisterTile(m, n, width, target.vectorRegisters);
  int64_t unit = columns                                 ? tile.vectors * width
                 : facts.kind == "matmul" && d == rowDim ? tile.rows
                                                         : 1;
  // A size known at run time may be small.
  int64_t size = facts.shape[d] < 0 ? 256 : facts.shape[d];
  double unknown = facts.shape[d] < 0 ? 1.4 : 1.0;
  int64_t units = llvm::divideCeil(size, unit);
  int64_t chunk =
      std::min(size, int64_t(llvm::divideCeil(units, threads)) * unit);
  // Whole products, rows or columns of the others dims' full extent.
  double steps = double(facts.reduction);
  for (size_t other = 0; other + 1 < facts.shape.size(); ++other)
    if (other != rowDim && other != d)
      steps *= double(std::max<int64_t>(1, facts.shape[other]));
  if (!columns && d != rowDim)
    steps *= double(chunk);
  double compute = steps * cyclesPerStep(tile, d == rowDim ? chunk : m,
                                         columns ? chunk : n, width);
  auto read = [&](int64_t bytes, bool shared) {
    double bytesPerCycle = bytes > target.l2Bytes / 2 ? 8 : 32;
    return double(bytes) / bytesPerCycle / (shared ? threads : 1);
  };
  bool products = d < facts.batch.size() && facts.batch[d];
  double memory = 0;
  if (tiled)
    memory = read(facts.weightBytes, columns || products) +
             read(facts.streamBytes, !columns || products);
  return (compute + memory) * unknown;
}

/// The options of a source, the default first.
static llvm::Expected<Knob> fromSource(llvm::StringRef name,
                                       llvm::StringRef source,
                                       const KernelFacts &facts,
                                       const targets::Target &target,
                                       unsigned threads) {
  Knob knob;
  knob.name = name.str();
  int64_t width = std::max<int64_t>(1, target.vectorBits / facts.elementBits);
  size_t rank = facts.shape.size();
  int64_t n = rank >= 1 ? facts.shape[rank - 1] : 1;
  // The rows' dim, as micro-kernels count them: the last one of more than 1
  // that does not number the products.
  int64_t m = 1;
  size_t rowDim = rank;
  for (size_t d = 0; d + 1 < rank; ++d)
    if (facts.shape[d] != 1 && !(d < facts.batch.size() && facts.batch[d])) {
      m = facts.shape[d];
      rowDim = d;
    }
  n = n < 0 ? 256 : n;
  m = m < 0 ? 256 : m;
  SmallVector<int64_t> values;
  int64_t chosen = 0;
  if (source == "vector_bits") {
    chosen = target.vectorBits;
    values = {chosen};
    if (chosen >= 256)
      values.push_back(chosen / 2);
  } else if (source == "rows") {
    chosen = bestRegisterTile(m, n, width, target.vectorRegisters).rows;
    for (int64_t r = 1; r <= std::min<int64_t>(m, 32); ++r)
      values.push_back(r);
  } else if (source == "panel") {
    chosen =
        bestRegisterTile(m, n, width, target.vectorRegisters).vectors * width;
    for (int64_t v = 1; v <= 4 && (v == 1 || (v - 1) * width < n); ++v)
      values.push_back(v * width);
  } else if (source == "vectors") {
    // Whole vectors per step of a kernel without register blocking.
    for (int64_t v = 1; v <= 8 && (v == 1 || v / 2 * width < n); v *= 2)
      values.push_back(v * width);
    chosen = values[std::min<size_t>(values.size() - 1, 2)];
  } else if (source == "block_rows") {
    // What passes from one step to the next in half of the L1 cache; 0: all.
    values = {0, 2, 4, 8, 16, 32};
    for (int64_t rows : values)
      if (rows * n * facts.elementBits / 8 <= target.l1Bytes / 2)
        chosen = rows;
  } else if (source == "threads") {
    chosen = threads;
    for (int64_t t = 1; t <= threads;
         t = t * 2 > threads && t < threads ? int64_t(threads) : t * 2)
      values.push_back(t);
  } else if (source == "chunks") {
    // Parts of some 20 us and more for each thread to take in turn, unless
    // each part would read large weights anew.
    double steps = double(facts.reduction);
    for (int64_t size : facts.shape)
      steps *= double(size < 0 ? 256 : size);
    double us = steps / (facts.reduction > 1 ? 5e4 : 2e3) / threads;
    auto dim =
        fromSource("parallel_dim", "parallel_dim", facts, target, threads);
    if (!dim)
      return dim.takeError();
    bool rereads =
        facts.weightBytes > target.l2Bytes / 2 &&
        dim->options[dim->defaultIndex] != std::to_string(int64_t(rank) - 1);
    chosen = threads == 1 || rereads ? 1 : us >= 80 ? 4 : us >= 40 ? 2 : 1;
    values = {1, 2, 4, 8};
    if (threads == 1)
      values = {1};
  } else if (source == "vector_loop") {
    bool rowsStay = facts.kind == "matmul" &&
                    facts.weightBytes <= target.l2Bytes / 4 &&
                    facts.streamBytes > target.l2Bytes;
    chosen = rowsStay ? -1 : 0;
    values = {0, -1, 1};
  } else if (source == "parallel_dim") {
    // The outermost dim along which the slowest thread is done first.
    double best = 0;
    for (size_t d = 0; d < rank; ++d) {
      if (facts.shape[d] == 1)
        continue;
      values.push_back(int64_t(d));
      double cycles =
          cyclesOfThread(d, rowDim, m, n, width, threads, facts, target);
      if (best == 0 || cycles < best * 0.98) {
        best = cycles;
        chosen = int64_t(d);
      }
    }
    if (values.empty())
      values.push_back(0);
    // One thread takes everything: the same code for every dim.
    if (threads == 1)
      values.assign(1, llvm::is_contained(values, chosen) ? chosen
                                                          : values.front());
  } else {
    return llvm::createStringError("knob '" + name + "': unknown source '" +
                                   source + "'");
  }
  if (!llvm::is_contained(values, chosen))
    values.insert(values.begin(), chosen);
  knob.options = numbers(values);
  knob.defaultIndex = llvm::find(values, chosen) - values.begin();
  return knob;
}

llvm::Expected<Knob> resolveKnob(llvm::StringRef name, Attribute options,
                                 const KernelFacts &facts,
                                 const targets::Target &target,
                                 unsigned threads) {
  Knob knob;
  knob.name = name.str();
  auto array = dyn_cast<ArrayAttr>(options);
  if (auto dict = dyn_cast<DictionaryAttr>(options)) {
    if (auto source = dict.getAs<StringAttr>("source"))
      return fromSource(name, source.getValue(), facts, target, threads);
    array = dict.getAs<ArrayAttr>(target.isa);
    if (!array)
      array = dict.getAs<ArrayAttr>("any");
    if (!array)
      array = dict.getAs<ArrayAttr>("options");
    // Bounds, as other tuners write them.
    auto low = dict.getAs<IntegerAttr>("lower_bound"),
         high = dict.getAs<IntegerAttr>("upper_bound");
    if (!array && low && high) {
      auto divides = dict.getAs<IntegerAttr>("divides");
      auto multiple = dict.getAs<IntegerAttr>("divisible_by");
      for (int64_t v = low.getInt(); v <= high.getInt(); ++v) {
        if (v == 0 || (divides && divides.getInt() % v) ||
            (multiple && multiple.getInt() && v % multiple.getInt()))
          continue;
        knob.options.push_back(std::to_string(v));
        if (knob.options.size() > 4096)
          return llvm::createStringError("knob '" + name +
                                         "': more than 4096 options");
      }
      if (knob.options.empty())
        return llvm::createStringError("knob '" + name +
                                       "': no value satisfies its bounds");
      return knob;
    }
  }
  if (!array || array.empty())
    return llvm::createStringError(
        "knob '" + name +
        "': options are neither a list, nor by ISA, nor "
        "bounds, nor a source: " +
        print(options));
  for (Attribute a : array)
    knob.options.push_back(print(a));
  return knob;
}

} // namespace pto::schedules
