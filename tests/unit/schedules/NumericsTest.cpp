//===- NumericsTest.cpp - Scheduled kernels compute what plain ones do
//------===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Each built-in schedule that matches one of the kernels below runs with its
// defaults and with random knobs, against the kernel's unscheduled lowering.
// Sizes are ragged on purpose: tails, masks, strides, dilation, groups.
//
//===----------------------------------------------------------------------===//

#include "lowering/pipeline/Jit.h"
#include "lowering/pipeline/Pipeline.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/Parser/Parser.h"
#include "schedules/engine/Engine.h"
#include "gtest/gtest.h"
#include <cmath>
#include <random>
#include <thread>

using namespace pto;
using namespace pto::schedules;
using mlir::func::FuncOp;

namespace {

/// A stand-in for the runtime: iterations on threads of their own.
struct Runtime {
  void (*parallelFor)(Runtime *, int64_t, void (*)(void *, int64_t), void *);
};
void parallelFor(Runtime *, int64_t n, void (*body)(void *, int64_t),
                 void *arg) {
  std::vector<std::thread> threads;
  for (int64_t i = 0; i < n; ++i)
    threads.emplace_back([=] { body(arg, i); });
  for (std::thread &t : threads)
    t.join();
}

std::string conv(const char *input, const char *map, const char *filter,
                 const char *out, const char *extra = "") {
  return std::string("func.func @kernel(%x: tensor<") + input +
         "xf32> {pto.role = \"input\"}, %w: tensor<" + filter +
         "xf32> {pto.role = \"weight\"}, %out: tensor<" + out +
         "xf32> {pto.role = \"output\"}) -> tensor<" + out + "xf32> {\n" +
         "%z = arith.constant 0.0 : f32\n%e = tensor.empty() : tensor<" + out +
         "xf32>\n%f = linalg.fill ins(%z : f32) outs(%e : tensor<" + out +
         "xf32>) -> tensor<" + out +
         "xf32>\n%c = linalg.generic {pto.anchor, indexing_maps = [" + map +
         "]} ins(%x, %w : tensor<" + input + "xf32>, tensor<" + filter +
         "xf32>) outs(%f : tensor<" + out +
         "xf32>) {\n^bb0(%p: f32, %q: f32, %r: f32):\n%m = arith.mulf %p, %q "
         "fastmath<contract> : f32\n%s = arith.addf %r, %m fastmath<contract> "
         ": f32\nlinalg.yield %s : f32\n} -> tensor<" +
         out + "xf32>\n" + extra;
}

/// The kernel with its input padded by one along h and w: `input` is the shape
/// before the pad, `padded` the one that the body reads.
std::string padInput(std::string kernel, const std::string &input,
                     const std::string &padded, const char *value) {
  auto replaceAll = [&](const std::string &from, const std::string &to) {
    for (size_t at = 0; (at = kernel.find(from, at)) != std::string::npos;
         at += to.size())
      kernel.replace(at, from.size(), to);
  };
  replaceAll("%x: tensor<" + padded, "%src: tensor<" + input);
  std::string pad = std::string("{\n%pv = arith.constant ") + value +
                    " : f32\n%x = tensor.pad %src low[0, 1, 1, 0] high[0, 1, "
                    "1, 0] {\n^bb0(%i: index, %j: index, %k: index, %l: "
                    "index):\ntensor.yield %pv : f32\n} : tensor<" +
                    input + "xf32> to tensor<" + padded + "xf32>\n";
  size_t brace = kernel.find("{\n", kernel.find("-> tensor"));
  kernel.replace(brace, 2, pad);
  return kernel;
}

/// relu(x + 0.5 * bias-like scalar) into %out, as the root.
std::string epilogue(const char *out, int rank) {
  std::string dims;
  for (int i = 0; i < rank; ++i)
    dims += (i ? ", d" : "d") + std::to_string(i);
  std::string id = "affine_map<(" + dims + ") -> (" + dims + ")>";
  std::string types;
  for (int i = 0; i < rank; ++i)
    types += i ? ", \"parallel\"" : "\"parallel\"";
  return "%d = linalg.generic {pto.root, indexing_maps = [" + id + ", " + id +
         "], iterator_types = [" + types + "]} ins(%c : tensor<" + out +
         "xf32>) outs(%out : tensor<" + out +
         "xf32>) {\n^bb0(%p: f32, %q: f32):\n%h = arith.constant 0.25 : "
         "f32\n%s = arith.addf %p, %h : f32\n%t = arith.maximumf %s, %z : "
         "f32\nlinalg.yield %t : f32\n} -> tensor<" +
         out + "xf32>\nreturn %d : tensor<" + out + "xf32>\n}\n";
}

const char *matmulMap =
    "affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, "
    "affine_map<(m, n, k) -> (m, n)>], iterator_types = [\"parallel\", "
    "\"parallel\", \"reduction\"";

std::string convMap(const char *x, const char *w) {
  std::string d = "affine_map<(n, h, w, o, kh, kw, i) -> (";
  return d + x + ")>, " + d + w + ")>, " + d +
         "n, h, w, o)>], iterator_types = [\"parallel\", \"parallel\", "
         "\"parallel\", \"parallel\", \"reduction\", \"reduction\", "
         "\"reduction\"";
}

std::string depthwiseMap(const char *x) {
  std::string d = "affine_map<(n, h, w, c, kh, kw) -> (";
  return d + x + ")>, " + d + "kh, kw, c)>, " + d +
         "n, h, w, c)>], iterator_types = [\"parallel\", \"parallel\", "
         "\"parallel\", \"parallel\", \"reduction\", \"reduction\"";
}

std::vector<std::pair<std::string, std::string>> kernels() {
  std::vector<std::pair<std::string, std::string>> k;
  k.emplace_back("matmul_197x70x65",
                 conv("197x65", matmulMap, "65x70", "197x70") +
                     epilogue("197x70", 2));
  k.emplace_back("matmul_1x10x300", conv("1x300", matmulMap, "300x10", "1x10") +
                                        epilogue("1x10", 2));
  k.emplace_back("matmul_96x96x96", conv("96x96", matmulMap, "96x96", "96x96") +
                                        epilogue("96x96", 2));
  k.emplace_back("conv3x3_stride2",
                 conv("1x19x23x5",
                      convMap("n, h*2+kh, w*2+kw, i", "kh, kw, i, o").c_str(),
                      "3x3x5x24", "1x9x11x24") +
                     epilogue("1x9x11x24", 4));
  k.emplace_back("conv3x3_nchw_input",
                 conv("1x3x17x17",
                      convMap("n, i, h*2+kh, w*2+kw", "kh, kw, i, o").c_str(),
                      "3x3x3x20", "1x8x8x20") +
                     epilogue("1x8x8x20", 4));
  k.emplace_back("conv3x3_dilated",
                 conv("2x11x11x8",
                      convMap("n, h+kh*2, w+kw*2, i", "kh, kw, i, o").c_str(),
                      "3x3x8x33", "2x7x7x33") +
                     epilogue("2x7x7x33", 4));
  k.emplace_back("depthwise3x3_stride2",
                 conv("1x15x15x20",
                      depthwiseMap("n, h*2+kh, w*2+kw, c").c_str(), "3x3x20",
                      "1x7x7x20") +
                     epilogue("1x7x7x20", 4));
  k.emplace_back(
      "conv3x3_padded",
      padInput(conv("1x21x31x6",
                    convMap("n, h+kh, w+kw, i", "kh, kw, i, o").c_str(),
                    "3x3x6x40", "1x19x29x40") +
                   epilogue("1x19x29x40", 4),
               "1x19x29x6", "1x21x31x6", "0.0"));
  k.emplace_back(
      "conv5x5_stride2_tiny_padded",
      padInput(conv("1x6x7x3",
                    convMap("n, h*2+kh, w*2+kw, i", "kh, kw, i, o").c_str(),
                    "5x5x3x17", "1x1x2x17") +
                   epilogue("1x1x2x17", 4),
               "1x4x5x3", "1x6x7x3", "0.0"));
  k.emplace_back(
      "depthwise3x3_stride2_padded",
      padInput(conv("1x16x16x20", depthwiseMap("n, h*2+kh, w*2+kw, c").c_str(),
                    "3x3x20", "1x7x7x20") +
                   epilogue("1x7x7x20", 4),
               "1x14x14x20", "1x16x16x20", "0.0"));
  k.emplace_back("maxpool_padded",
                 padInput(R"(
func.func @kernel(%x: tensor<1x11x11x19xf32> {pto.role = "input"}, %out: tensor<1x5x5x19xf32> {pto.role = "output"}) -> tensor<1x5x5x19xf32> {
  %low = arith.constant 0xFF800000 : f32
  %w = tensor.empty() : tensor<3x3xf32>
  %f = linalg.fill ins(%low : f32) outs(%out : tensor<1x5x5x19xf32>) -> tensor<1x5x5x19xf32>
  %0 = linalg.generic {pto.anchor, pto.root, indexing_maps = [affine_map<(n, h, w, c, kh, kw) -> (n, h*2+kh, w*2+kw, c)>, affine_map<(n, h, w, c, kh, kw) -> (kh, kw)>, affine_map<(n, h, w, c, kh, kw) -> (n, h, w, c)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]} ins(%x, %w : tensor<1x11x11x19xf32>, tensor<3x3xf32>) outs(%f : tensor<1x5x5x19xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.maximumf %c, %a : f32
    linalg.yield %m : f32
  } -> tensor<1x5x5x19xf32>
  return %0 : tensor<1x5x5x19xf32>
})",
                          "1x9x9x19", "1x11x11x19", "0xFF800000"));
  k.emplace_back("maxpool", R"(
func.func @kernel(%x: tensor<1x9x9x19xf32> {pto.role = "input"}, %out: tensor<1x4x4x19xf32> {pto.role = "output"}) -> tensor<1x4x4x19xf32> {
  %low = arith.constant 0xFF800000 : f32
  %w = tensor.empty() : tensor<3x3xf32>
  %f = linalg.fill ins(%low : f32) outs(%out : tensor<1x4x4x19xf32>) -> tensor<1x4x4x19xf32>
  %0 = linalg.generic {pto.anchor, pto.root, indexing_maps = [affine_map<(n, h, w, c, kh, kw) -> (n, h*2+kh, w*2+kw, c)>, affine_map<(n, h, w, c, kh, kw) -> (kh, kw)>, affine_map<(n, h, w, c, kh, kw) -> (n, h, w, c)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]} ins(%x, %w : tensor<1x9x9x19xf32>, tensor<3x3xf32>) outs(%f : tensor<1x4x4x19xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.maximumf %c, %a : f32
    linalg.yield %m : f32
  } -> tensor<1x4x4x19xf32>
  return %0 : tensor<1x4x4x19xf32>
})");
  k.emplace_back("mean", R"(
func.func @kernel(%x: tensor<1x7x7x40xf32> {pto.role = "input"}, %out: tensor<1x40xf32> {pto.role = "output"}) -> tensor<1x40xf32> {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x40xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<1x40xf32>) -> tensor<1x40xf32>
  %0 = linalg.generic {pto.anchor, indexing_maps = [affine_map<(n, c, h, w) -> (n, h, w, c)>, affine_map<(n, c, h, w) -> (n, c)>], iterator_types = ["parallel", "parallel", "reduction", "reduction"]} ins(%x : tensor<1x7x7x40xf32>) outs(%f : tensor<1x40xf32>) {
  ^bb0(%a: f32, %c: f32):
    %m = arith.addf %c, %a : f32
    linalg.yield %m : f32
  } -> tensor<1x40xf32>
  %1 = linalg.generic {pto.root, indexing_maps = [affine_map<(n, c) -> (n, c)>, affine_map<(n, c) -> (n, c)>], iterator_types = ["parallel", "parallel"]} ins(%0 : tensor<1x40xf32>) outs(%out : tensor<1x40xf32>) {
  ^bb0(%a: f32, %c: f32):
    %n = arith.constant 49.0 : f32
    %m = arith.divf %a, %n : f32
    linalg.yield %m : f32
  } -> tensor<1x40xf32>
  return %1 : tensor<1x40xf32>
})");
  for (auto [op, start, name] : {std::tuple("arith.addf", "0.0", "row_sum"),
                                 {"arith.maximumf", "0xFF800000", "row_max"}})
    k.emplace_back(name, std::string(R"(
func.func @kernel(%x: tensor<6x203xf32> {pto.role = "input"}, %out: tensor<6xf32> {pto.role = "output"}) -> tensor<6xf32> {
  %z = arith.constant )") + start +
                             R"( : f32
  %e = tensor.empty() : tensor<6xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<6xf32>) -> tensor<6xf32>
  %0 = linalg.generic {pto.anchor, indexing_maps = [affine_map<(m, k) -> (m, k)>, affine_map<(m, k) -> (m)>], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<6x203xf32>) outs(%f : tensor<6xf32>) {
  ^bb0(%a: f32, %c: f32):
    %s = )" + op + R"( %c, %a : f32
    linalg.yield %s : f32
  } -> tensor<6xf32>
  %1 = linalg.generic {pto.root, indexing_maps = [affine_map<(m) -> (m)>, affine_map<(m) -> (m)>], iterator_types = ["parallel"]} ins(%0 : tensor<6xf32>) outs(%out : tensor<6xf32>) {
  ^bb0(%a: f32, %c: f32):
    %n = arith.constant 0.5 : f32
    %m = arith.mulf %a, %n : f32
    linalg.yield %m : f32
  } -> tensor<6xf32>
  return %1 : tensor<6xf32>
})");
  k.emplace_back("broadcast_multiply", R"(
func.func @kernel(%x: tensor<3x5x37xf32> {pto.role = "input"}, %s: tensor<37xf32> {pto.role = "input"}, %out: tensor<3x5x37xf32> {pto.role = "output"}) -> tensor<3x5x37xf32> {
  %0 = linalg.generic {pto.anchor, pto.root, indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (c)>, affine_map<(a, b, c) -> (a, b, c)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%x, %s : tensor<3x5x37xf32>, tensor<37xf32>) outs(%out : tensor<3x5x37xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    %t = math.exp %m : f32
    linalg.yield %t : f32
  } -> tensor<3x5x37xf32>
  return %0 : tensor<3x5x37xf32>
})");
  k.emplace_back("transpose", R"(
func.func @kernel(%x: tensor<19x35xf32> {pto.role = "input"}, %out: tensor<35x19xf32> {pto.role = "output"}) -> tensor<35x19xf32> {
  %0 = linalg.generic {pto.anchor, pto.root, indexing_maps = [affine_map<(a, b) -> (b, a)>, affine_map<(a, b) -> (a, b)>], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<19x35xf32>) outs(%out : tensor<35x19xf32>) {
  ^bb0(%a: f32, %c: f32):
    linalg.yield %a : f32
  } -> tensor<35x19xf32>
  return %0 : tensor<35x19xf32>
})");
  // One input across memory, one along it.
  k.emplace_back("transpose_outer_add", R"(
func.func @kernel(%x: tensor<39x3x21xf32> {pto.role = "input"}, %y: tensor<21x3x39xf32> {pto.role = "input"}, %out: tensor<21x3x39xf32> {pto.role = "output"}) -> tensor<21x3x39xf32> {
  %0 = linalg.generic {pto.anchor, pto.root, indexing_maps = [affine_map<(a, b, c) -> (c, b, a)>, affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (a, b, c)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%x, %y : tensor<39x3x21xf32>, tensor<21x3x39xf32>) outs(%out : tensor<21x3x39xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %s = arith.addf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<21x3x39xf32>
  return %0 : tensor<21x3x39xf32>
})");
  // Q K^T of three heads: K lies across the panels, which do not divide 53.
  k.emplace_back("scores", R"(
func.func @kernel(%q: tensor<45x3x21xf32> {pto.role = "input"}, %k: tensor<53x3x21xf32> {pto.role = "input"}, %out: tensor<3x45x53xf32> {pto.role = "output"}) -> tensor<3x45x53xf32> {
  %z = arith.constant 0.0 : f32
  %f = linalg.fill ins(%z : f32) outs(%out : tensor<3x45x53xf32>) -> tensor<3x45x53xf32>
  %0 = linalg.generic {pto.anchor, pto.root, indexing_maps = [affine_map<(h, m, n, k) -> (m, h, k)>, affine_map<(h, m, n, k) -> (n, h, k)>, affine_map<(h, m, n, k) -> (h, m, n)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%q, %k : tensor<45x3x21xf32>, tensor<53x3x21xf32>) outs(%f : tensor<3x45x53xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b fastmath<contract> : f32
    %s = arith.addf %c, %m fastmath<contract> : f32
    linalg.yield %s : f32
  } -> tensor<3x45x53xf32>
  return %0 : tensor<3x45x53xf32>
})");
  // Rows, several steps; two reductions start from equal fills.
  k.emplace_back("layer_norm", R"(
#xy = affine_map<(a, b) -> (a, b)>
#x = affine_map<(a, b) -> (a)>
#y = affine_map<(a, b) -> (b)>
#i = affine_map<(a) -> (a)>
func.func @kernel(%x: tensor<29x83xf32> {pto.role = "input"}, %g: tensor<83xf32> {pto.role = "weight"}, %out: tensor<29x83xf32> {pto.role = "output"}) -> tensor<29x83xf32> attributes {pto.rowwise} {
  %z = arith.constant 0.0 : f32
  %n = arith.constant 83.0 : f32
  %eps = arith.constant 1.0e-5 : f32
  %e = tensor.empty() : tensor<29xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<29xf32>) -> tensor<29xf32>
  %sum = linalg.generic {pto.anchor, indexing_maps = [#xy, #x], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<29x83xf32>) outs(%f : tensor<29xf32>) {
  ^bb0(%a: f32, %s: f32):
    %t = arith.addf %s, %a : f32
    linalg.yield %t : f32
  } -> tensor<29xf32>
  %mean = linalg.generic {indexing_maps = [#i, #i], iterator_types = ["parallel"]} ins(%sum : tensor<29xf32>) outs(%e : tensor<29xf32>) {
  ^bb0(%a: f32, %s: f32):
    %t = arith.divf %a, %n : f32
    linalg.yield %t : f32
  } -> tensor<29xf32>
  %squares = linalg.generic {indexing_maps = [#xy, #x, #x], iterator_types = ["parallel", "reduction"]} ins(%x, %mean : tensor<29x83xf32>, tensor<29xf32>) outs(%f : tensor<29xf32>) {
  ^bb0(%a: f32, %m: f32, %s: f32):
    %c = arith.subf %a, %m : f32
    %q = arith.mulf %c, %c : f32
    %t = arith.addf %s, %q : f32
    linalg.yield %t : f32
  } -> tensor<29xf32>
  %scale = linalg.generic {indexing_maps = [#i, #i], iterator_types = ["parallel"]} ins(%squares : tensor<29xf32>) outs(%e : tensor<29xf32>) {
  ^bb0(%a: f32, %s: f32):
    %v = arith.divf %a, %n : f32
    %w = arith.addf %v, %eps : f32
    %t = math.rsqrt %w : f32
    linalg.yield %t : f32
  } -> tensor<29xf32>
  %r = linalg.generic {pto.root, indexing_maps = [#xy, #x, #x, #y, #xy], iterator_types = ["parallel", "parallel"]} ins(%x, %mean, %scale, %g : tensor<29x83xf32>, tensor<29xf32>, tensor<29xf32>, tensor<83xf32>) outs(%out : tensor<29x83xf32>) {
  ^bb0(%a: f32, %m: f32, %v: f32, %h: f32, %o: f32):
    %c = arith.subf %a, %m : f32
    %d = arith.mulf %c, %v : f32
    %t = arith.mulf %d, %h : f32
    linalg.yield %t : f32
  } -> tensor<29x83xf32>
  return %r : tensor<29x83xf32>
})");
  // The exponentials are read by their sum and by the quotients.
  k.emplace_back("softmax", R"(
#xy = affine_map<(a, b) -> (a, b)>
#x = affine_map<(a, b) -> (a)>
func.func @kernel(%x: tensor<37x50xf32> {pto.role = "input"}, %out: tensor<37x50xf32> {pto.role = "output"}) -> tensor<37x50xf32> attributes {pto.rowwise} {
  %z = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<37xf32>
  %e2 = tensor.empty() : tensor<37x50xf32>
  %f = linalg.fill ins(%low : f32) outs(%e : tensor<37xf32>) -> tensor<37xf32>
  %f0 = linalg.fill ins(%z : f32) outs(%e : tensor<37xf32>) -> tensor<37xf32>
  %max = linalg.generic {pto.anchor, indexing_maps = [#xy, #x], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<37x50xf32>) outs(%f : tensor<37xf32>) {
  ^bb0(%a: f32, %s: f32):
    %t = arith.maximumf %s, %a : f32
    linalg.yield %t : f32
  } -> tensor<37xf32>
  %exp = linalg.generic {indexing_maps = [#xy, #x, #xy], iterator_types = ["parallel", "parallel"]} ins(%x, %max : tensor<37x50xf32>, tensor<37xf32>) outs(%e2 : tensor<37x50xf32>) {
  ^bb0(%a: f32, %m: f32, %o: f32):
    %c = arith.subf %a, %m : f32
    %t = math.exp %c : f32
    linalg.yield %t : f32
  } -> tensor<37x50xf32>
  %sum = linalg.generic {indexing_maps = [#xy, #x], iterator_types = ["parallel", "reduction"]} ins(%exp : tensor<37x50xf32>) outs(%f0 : tensor<37xf32>) {
  ^bb0(%a: f32, %s: f32):
    %t = arith.addf %s, %a : f32
    linalg.yield %t : f32
  } -> tensor<37xf32>
  %r = linalg.generic {pto.root, indexing_maps = [#xy, #x, #xy], iterator_types = ["parallel", "parallel"]} ins(%exp, %sum : tensor<37x50xf32>, tensor<37xf32>) outs(%out : tensor<37x50xf32>) {
  ^bb0(%a: f32, %s: f32, %o: f32):
    %t = arith.divf %a, %s : f32
    linalg.yield %t : f32
  } -> tensor<37x50xf32>
  return %r : tensor<37x50xf32>
})");
  return k;
}

class Numerics : public testing::TestWithParam<size_t> {
protected:
  void SetUp() override {
    mlir::DialectRegistry registry;
    lowering::registerAll(registry);
    registerSchedules(registry);
    context.appendDialectRegistry(registry);
    context.disableMultithreading();
    auto target = targets::parseTarget("cpu");
    ASSERT_TRUE(bool(target)) << llvm::toString(target.takeError());
    host = *target;
  }

  static int64_t elements(mlir::Type type) {
    return llvm::cast<mlir::RankedTensorType>(type).getNumElements();
  }

  /// Lowers `module` and runs it on `inputs`; the last buffer is the result.
  std::vector<float> run(mlir::ModuleOp module,
                         std::vector<std::vector<float>> inputs) {
    // Packed weights first.
    FuncOp kernel = module.lookupSymbol<FuncOp>("kernel");
    FuncOp prepack = module.lookupSymbol<FuncOp>("kernel_prepack");
    std::vector<std::vector<float>> packed;
    std::vector<int64_t> prepackArgs;
    unsigned outs = 0;
    if (prepack) {
      outs = prepack.getNumResults();
      for (unsigned i = 0; i < prepack.getNumArguments() - outs; ++i)
        prepackArgs.push_back(
            prepack.getArgAttrOfType<mlir::IntegerAttr>(i, "pto.arg").getInt());
      for (mlir::Type t : prepack.getResultTypes())
        packed.emplace_back(elements(t), NAN);
    }
    struct Source {
      bool isPacked;
      int64_t index;
    };
    std::vector<Source> sources;
    for (unsigned i = 0; i < kernel.getNumArguments(); ++i) {
      if (auto p = kernel.getArgAttrOfType<mlir::IntegerAttr>(i, "pto.prepack"))
        sources.push_back({true, p.getInt()});
      else if (auto a =
                   kernel.getArgAttrOfType<mlir::IntegerAttr>(i, "pto.arg"))
        sources.push_back({false, a.getInt()});
      else
        sources.push_back({false, int64_t(i)});
    }
    EXPECT_TRUE(mlir::succeeded(lowering::lowerToLLVM(module, host)));
    lowering::ObjectOptions options;
    options.optLevel = 1;
    auto object = lowering::emitObject(module, host, options);
    EXPECT_TRUE(bool(object)) << llvm::toString(object.takeError());
    auto jit = lowering::Jit::load(std::move(*object));
    EXPECT_TRUE(bool(jit)) << llvm::toString(jit.takeError());
    Runtime runtime{parallelFor};
    if (outs) {
      std::vector<void *> args;
      for (int64_t i : prepackArgs)
        args.push_back(inputs[i].data());
      for (auto &p : packed)
        args.push_back(p.data());
      auto f = jit->lookup("kernel_prepack");
      EXPECT_TRUE(bool(f)) << llvm::toString(f.takeError());
      (*f)(args.data(), nullptr, &runtime);
    }
    std::vector<void *> args;
    for (Source s : sources)
      args.push_back(s.isPacked ? packed[s.index].data()
                                : inputs[s.index].data());
    auto f = jit->lookup("kernel");
    EXPECT_TRUE(bool(f)) << llvm::toString(f.takeError());
    (*f)(args.data(), nullptr, &runtime);
    return inputs.back();
  }

  mlir::MLIRContext context;
  targets::Target host;
};

TEST_P(Numerics, EveryScheduleAgreesWithThePlainKernel) {
  auto [name, text] = kernels()[GetParam()];
  SCOPED_TRACE(name);
  auto module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
  ASSERT_TRUE(module);
  FuncOp kernel = module->lookupSymbol<FuncOp>("kernel");
  std::mt19937 rng(7);
  std::normal_distribution<float> normal;
  std::vector<std::vector<float>> inputs;
  for (mlir::Type t : kernel.getArgumentTypes()) {
    inputs.emplace_back(elements(t));
    for (float &v : inputs.back())
      v = normal(rng);
  }
  // The output starts as NaN: what is not written shows.
  inputs.back().assign(inputs.back().size(), NAN);
  mlir::OwningOpRef<mlir::ModuleOp> plain(module->clone());
  std::vector<float> expected = run(*plain, inputs);
  float scale = 0;
  for (float v : expected)
    scale = std::max(scale, std::fabs(v));
  ASSERT_GT(scale, 0);

  for (unsigned threads : {1u, 3u}) {
    auto spaces = findSpaces(*module, host, threads);
    ASSERT_TRUE(bool(spaces)) << llvm::toString(spaces.takeError());
    ASSERT_GE(spaces->size(), 2u) << "only the fallback matches";
    for (Space &space : *spaces) {
      for (int trial = 0; trial < 3; ++trial) {
        std::vector<size_t> point;
        for (Knob &knob : space.knobs)
          point.push_back(trial ? rng() % knob.options.size()
                                : knob.defaultIndex);
        KnobValues values = space.valuesAt(point);
        std::string shown = space.schedule;
        for (auto &[n, v] : values)
          shown += " " + n + "=" + v;
        SCOPED_TRACE(shown);
        auto filled = fillKnobs(&context, space.text, values, space.schedule);
        ASSERT_TRUE(bool(filled)) << llvm::toString(filled.takeError());
        mlir::OwningOpRef<mlir::ModuleOp> candidate(module->clone());
        Applied result = applySchedule(*candidate, *filled, space.schedule);
        if (result.outcome != "ok") {
          // Defaults of the schedule that a build would use must apply.
          EXPECT_FALSE(trial == 0 && &space == &spaces->front())
              << result.outcome << ": " << result.message;
          continue;
        }
        std::vector<float> actual = run(*candidate, inputs);
        ASSERT_EQ(actual.size(), expected.size());
        for (size_t i = 0; i < actual.size(); ++i)
          ASSERT_LE(std::fabs(actual[i] - expected[i]), 2e-5f * scale)
              << "at " << i << ": " << actual[i] << " for " << expected[i];
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, Numerics,
                         testing::Range<size_t>(0, kernels().size()),
                         [](const testing::TestParamInfo<size_t> &info) {
                           return kernels()[info.param].first;
                         });

} // namespace
