//===- MathApproximationTest.cpp - exp is exp, over all floats
//--------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lowering/pipeline/Jit.h"
#include "lowering/pipeline/Pipeline.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"
#include <cmath>
#include <limits>

using namespace pto;

namespace {

/// Runs the elementwise `op` of the math dialect on `x`.
std::vector<float> run(const std::string &op, std::vector<float> x) {
  mlir::DialectRegistry registry;
  lowering::registerAll(registry);
  mlir::MLIRContext context(registry);
  std::string type = "tensor<" + std::to_string(x.size()) + "xf32>";
  std::string text = "func.func @kernel(%x: " + type + ", %out: " + type +
                     ") -> " + type +
                     " {\n%0 = linalg.generic {indexing_maps "
                     "= [affine_map<(d) -> (d)>, affine_map<(d) -> (d)>], "
                     "iterator_types = [\"parallel\"]} ins(%x : " +
                     type + ") outs(%out : " + type +
                     ") {\n^bb0(%a: f32, %b: f32):\n%r = math." + op +
                     " %a : f32\nlinalg.yield %r : f32\n} -> " + type +
                     "\nreturn %0 : " + type + "\n}";
  auto module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
  auto host = targets::parseTarget("cpu");
  EXPECT_TRUE(module && bool(host));
  EXPECT_TRUE(mlir::succeeded(lowering::lowerToLLVM(*module, *host)));
  auto object = lowering::emitObject(*module, *host);
  EXPECT_TRUE(bool(object));
  auto jit = lowering::Jit::load(std::move(*object));
  EXPECT_TRUE(bool(jit));
  auto kernel = jit->lookup("kernel");
  EXPECT_TRUE(bool(kernel));
  std::vector<float> out(x.size(), -7);
  void *args[] = {x.data(), out.data()};
  (*kernel)(args, nullptr, nullptr);
  return out;
}

/// Distance in units of the last place of the right value.
double ulps(float actual, double right) {
  if (float(right) == actual)
    return 0;
  double ulp = std::nextafter(std::fabs(float(right)), INFINITY) -
               double(std::fabs(float(right)));
  return std::fabs(actual - right) / ulp;
}

TEST(MathApproximation, ExpWithinTwoUlpsEverywhere) {
  std::vector<float> x;
  for (float v = -103.9f; v < 88.7f; v += 0.0137f)
    x.push_back(v);
  std::vector<float> y = run("exp", x);
  for (size_t i = 0; i < x.size(); ++i)
    ASSERT_LE(ulps(y[i], std::exp(double(x[i]))), 2) << x[i] << " -> " << y[i];
}

TEST(MathApproximation, ExpOfTheUnusual) {
  float inf = std::numeric_limits<float>::infinity();
  std::vector<float> y =
      run("exp", {0.0f, -0.0f, inf, -inf, NAN, 88.8f, 1e30f, -105.0f, -1e30f});
  EXPECT_EQ(y[0], 1);
  EXPECT_EQ(y[1], 1);
  EXPECT_EQ(y[2], inf);
  EXPECT_EQ(y[3], 0);
  EXPECT_TRUE(std::isnan(y[4]));
  EXPECT_EQ(y[5], inf);
  EXPECT_EQ(y[6], inf);
  EXPECT_EQ(y[7], 0);
  EXPECT_EQ(y[8], 0);
}

TEST(MathApproximation, TanhAndErfStayClose) {
  std::vector<float> x;
  for (float v = -6; v < 6; v += 0.0031f)
    x.push_back(v);
  std::vector<float> t = run("tanh", x), e = run("erf", x);
  for (size_t i = 0; i < x.size(); ++i) {
    ASSERT_NEAR(t[i], std::tanh(double(x[i])), 1e-6) << x[i];
    ASSERT_NEAR(e[i], std::erf(double(x[i])), 1e-6) << x[i];
  }
}

} // namespace
