//===- WorkerEvaluatorTest.cpp - Candidates in real workers ---------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
#include "tuner/WorkerEvaluator.h"
#include "gtest/gtest.h"

using namespace pto;
using namespace pto::tuner;
using db::Outcome;

namespace {

const char *const matmul = R"(
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>
func.func @kernel(%a: tensor<24x32xf32> {pto.role = "input"},
                  %b: tensor<32x48xf32> {pto.role = "weight"},
                  %o: tensor<24x48xf32> {pto.role = "output", bufferization.writable = true}) -> tensor<24x48xf32> {
  %z = arith.constant 0.0 : f32
  %f = linalg.fill ins(%z : f32) outs(%o : tensor<24x48xf32>) -> tensor<24x48xf32>
  %r = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : tensor<24x32xf32>, tensor<32x48xf32>) outs(%f : tensor<24x48xf32>) attrs = {pto.anchor, pto.root} {
  ^bb0(%x: f32, %y: f32, %s: f32):
    %m = arith.mulf %x, %y fastmath<contract> : f32
    %t = arith.addf %s, %m fastmath<contract> : f32
    linalg.yield %t : f32
  } -> tensor<24x48xf32>
  return %r : tensor<24x48xf32>
})";

/// A script around `body`, which sees the anchor as %mm and the module as %m.
std::string script(const char *body) {
  return std::string(R"(
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%m: !transform.any_op) {
    %mm = transform.structured.match attributes {pto.anchor} in %m : (!transform.any_op) -> !transform.any_op
)") + body +
         R"(
    transform.yield
  }
})";
}

const char *const tiled = R"(
    %t = transform.tune.knob<"tile"> options = [4, 8, 5] -> !transform.param<i64>
    transform.structured.tile_using_for %mm tile_sizes [%t, %t] : (!transform.any_op, !transform.param<i64>, !transform.param<i64>) -> (!transform.any_op, !transform.any_op, !transform.any_op)
)";

struct WorkerEvaluatorTest : testing::Test {
  void SetUp() override {
    EvaluatorOptions o;
    o.tools = PTO_TOOLS;
    o.compileJobs = 2;
    o.compileSeconds = 20;
    o.timing.minSampleNs = 1e5;
    o.timing.coldWeightBytes = o.timing.coldDataBytes = 1 << 16;
    auto made = WorkerEvaluator::create(std::move(o));
    ASSERT_TRUE(bool(made)) << toString(made.takeError());
    evaluator = std::move(*made);
    kernel = {"matmul", "0123456789abcdef0123456789abcdef", matmul};
  }
  std::vector<CompileResult> compile(std::vector<CandidateRequest> requests) {
    std::vector<CompileResult> results(requests.size());
    llvm::Error error = evaluator->compile(
        kernel, requests, [&](size_t i, CompileResult r) { results[i] = r; });
    EXPECT_FALSE(bool(error));
    return results;
  }
  CompileResult compile(const char *body) {
    return compile({{"test.mlir", script(body), {}}})[0];
  }
  MeasureResult measure(const CompileResult &candidate) {
    auto r = evaluator->measure(kernel, candidate, 0);
    EXPECT_TRUE(bool(r));
    return std::move(*r);
  }
  void prepare() {
    auto r = evaluator->prepare(kernel);
    ASSERT_TRUE(bool(r)) << toString(r.takeError());
    ASSERT_EQ(Outcome::Ok, r->outcome) << r->message;
  }

  std::unique_ptr<WorkerEvaluator> evaluator;
  KernelSource kernel;
};

} // namespace

TEST_F(WorkerEvaluatorTest, compilesAndMeasures) {
  prepare();
  auto results = compile({{"tiled.mlir", script(tiled), {{"tile", "4"}}},
                          {"tiled.mlir", script(tiled), {{"tile", "5"}}},
                          {"tiled.mlir", script(tiled), {{"tile", "4"}}}});
  for (const CompileResult &r : results) {
    ASSERT_EQ(Outcome::Ok, r.outcome) << r.message;
    MeasureResult m = measure(r);
    EXPECT_EQ(Outcome::Ok, m.outcome) << m.message;
    EXPECT_GE(m.samplesNs.size(), 3u);
  }
  EXPECT_EQ(results[0].objectHash, results[2].objectHash);
  EXPECT_NE(results[0].objectHash, results[1].objectHash);
  EXPECT_NE(std::string::npos,
            results[1].text.find("knob<\"tile\"> = 5 : i64 from options"))
      << results[1].text;
  auto both = evaluator->compare(kernel, {&results[0], &results[1]});
  ASSERT_TRUE(bool(both));
  EXPECT_EQ((*both)[0].samplesNs.size(), (*both)[1].samplesNs.size());
  EXPECT_FALSE((*both)[0].samplesNs.empty());
}

TEST_F(WorkerEvaluatorTest, badKnobIsIllegal) {
  auto r = compile({{"tiled.mlir", script(tiled), {{"tile", "7"}}}})[0];
  EXPECT_EQ(Outcome::Illegal, r.outcome);
  EXPECT_NE(std::string::npos, r.message.find("tile")) << r.message;
}

TEST_F(WorkerEvaluatorTest, unparsableScriptIsIllegal) {
  CompileResult r = compile("    transform.no.such.op");
  EXPECT_EQ(Outcome::Illegal, r.outcome);
  EXPECT_NE(std::string::npos, r.message.find("test.mlir:5")) << r.message;
}

TEST_F(WorkerEvaluatorTest, failingTransform) {
  CompileResult r = compile(R"(
    transform.structured.vectorize %mm vector_sizes [8] : !transform.any_op
)");
  EXPECT_EQ(Outcome::TransformFailed, r.outcome) << r.message;
  EXPECT_FALSE(r.message.empty());
}

TEST_F(WorkerEvaluatorTest, wrongNumbersAreFound) {
  prepare();
  // Drops the sum's start.
  CompileResult r = compile(R"(
    %fill = transform.structured.match ops{["linalg.fill"]} in %m : (!transform.any_op) -> !transform.any_op
    %one = transform.structured.match ops{["arith.constant"]} in %m : (!transform.any_op) -> !transform.any_op
    %v = transform.param.constant 1.0 : f32 -> !transform.any_param
    transform.annotate %one "value" = %v : !transform.any_op, !transform.any_param
)");
  ASSERT_EQ(Outcome::Ok, r.outcome) << r.message;
  MeasureResult m = measure(r);
  EXPECT_EQ(Outcome::WrongResult, m.outcome);
  EXPECT_NE(std::string::npos, m.message.find("elements differ")) << m.message;
}

TEST_F(WorkerEvaluatorTest, readsUsersSchedules) {
  auto missing = evaluator->readSchedules(kernel, {"/nonexistent.mlir"});
  ASSERT_TRUE(bool(missing));
  EXPECT_EQ(Outcome::Illegal, missing->outcome);
  EXPECT_NE(std::string::npos, missing->message.find("/nonexistent.mlir"));
}
