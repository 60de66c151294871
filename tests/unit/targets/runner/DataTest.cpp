//===- DataTest.cpp -------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
#include "targets/runner/Data.h"
#include "targets/runner/Buffer.h"
#include "gtest/gtest.h"
#include <cmath>
#include <cstring>

using namespace pto::targets;

static ArgumentSpec argument(DType type, std::vector<int64_t> shape) {
  ArgumentSpec a;
  a.tensor = {type, std::move(shape)};
  return a;
}

TEST(Data, noZerosAndEqualForEqualSeeds) {
  ArgumentSpec a = argument(DType::F32, {40, 30});
  std::vector<float> x(1200), y(1200);
  for (DataSet set : {DataSet::Mixed, DataSet::Negative, DataSet::Positive}) {
    fillInput((char *)x.data(), a, set, 7);
    fillInput((char *)y.data(), a, set, 7);
    EXPECT_EQ(x, y);
    unsigned negative = 0;
    for (float v : x) {
      EXPECT_GE(std::fabs(v), 0.125f);
      EXPECT_LE(std::fabs(v), 1.125f);
      negative += v < 0;
    }
    if (set == DataSet::Negative)
      EXPECT_EQ(1200u, negative);
    else if (set == DataSet::Positive)
      EXPECT_EQ(0u, negative);
    else {
      EXPECT_GT(negative, 300u);
      EXPECT_LT(negative, 1000u);
    }
    fillInput((char *)y.data(), a, set, 8);
    EXPECT_NE(x, y);
  }
}

TEST(Data, mixedSetHasNegativeRegion) {
  ArgumentSpec a = argument(DType::F32, {64, 64});
  std::vector<float> x(4096);
  fillInput((char *)x.data(), a, DataSet::Mixed, 0);
  for (int i = 256; i < 512; ++i)
    EXPECT_LT(x[i], 0);
}

TEST(Data, indicesStayInBounds) {
  ArgumentSpec a = argument(DType::I64, {1000});
  a.indexBound = 7;
  std::vector<int64_t> x(1000);
  fillInput((char *)x.data(), a, DataSet::Negative, 1);
  for (int64_t v : x) {
    EXPECT_GE(v, 0);
    EXPECT_LT(v, 7);
  }
}

TEST(Data, halfInputs) {
  ArgumentSpec a = argument(DType::F16, {100});
  std::vector<uint16_t> x(100);
  fillInput((char *)x.data(), a, DataSet::Positive, 1);
  for (uint16_t v : x) {
    EXPECT_GE(v, 0x3000); // 0.125
    EXPECT_LE(v, 0x3C80); // 1.125
  }
}

TEST(Data, compareFloats) {
  TensorSpec t{DType::F32, {2, 3}};
  float e[] = {1, -2, 3, NAN, INFINITY, 1e-9f};
  float a[] = {1, -2, 3, NAN, INFINITY, 0};
  double allowed = tolerance(DType::F32, 1);
  EXPECT_TRUE(compareOutput((char *)a, (char *)e, t, allowed).equal);
  a[1] = -2.001f;
  Verdict v = compareOutput((char *)a, (char *)e, t, allowed);
  EXPECT_FALSE(v.equal);
  EXPECT_NE(std::string::npos, v.message.find("[0, 1]")) << v.message;
  EXPECT_NE(std::string::npos, v.message.find("1 of 6")) << v.message;
  a[1] = -2;
  a[4] = -INFINITY;
  EXPECT_FALSE(compareOutput((char *)a, (char *)e, t, allowed).equal);
  a[4] = INFINITY;
  a[0] = NAN;
  EXPECT_FALSE(compareOutput((char *)a, (char *)e, t, allowed).equal);
}

TEST(Data, poisonIsNotNaN) {
  for (DType type : {DType::F32, DType::F64, DType::F16, DType::BF16}) {
    TensorSpec t{type, {4}};
    char a[32], e[32];
    poison(a, t, 1);
    poison(e, t, 1);
    Verdict v = compareOutput(a, e, t, 1);
    EXPECT_FALSE(v.equal) << name(type).str();
    EXPECT_NE(std::string::npos, v.message.find("not written")) << v.message;
  }
}

TEST(Data, toleranceGrowsWithReduction) {
  EXPECT_LT(tolerance(DType::F32, 1), 1e-5);
  EXPECT_LT(tolerance(DType::F32, 1), tolerance(DType::F32, 4096));
  EXPECT_LT(tolerance(DType::F32, 4608), 1e-4);
  EXPECT_EQ(0, tolerance(DType::I32, 100));
}

TEST(Data, integersAreExact) {
  TensorSpec t{DType::I8, {3}};
  char e[] = {1, 2, 3}, a[] = {1, 2, 4};
  EXPECT_TRUE(compareOutput(e, e, t, 0).equal);
  EXPECT_FALSE(compareOutput(a, e, t, 0).equal);
}

TEST(GuardedBuffer, seesNearWrites) {
  for (Placement p : {Placement::Aligned, Placement::Odd, Placement::Flush}) {
    GuardedBuffer b(100, 4, p);
    ASSERT_TRUE(b);
    std::memset(b.data(), 1, 100);
    EXPECT_TRUE(b.guardsIntact());
    // Where it would fault at once is left out.
    if (p != Placement::Flush) {
      b.data()[100] ^= 1;
      EXPECT_FALSE(b.guardsIntact());
      b.data()[100] ^= 1;
    }
    if (p != Placement::Aligned) {
      b.data()[-1] ^= 1;
      EXPECT_FALSE(b.guardsIntact());
    }
  }
  EXPECT_EQ(4u, uintptr_t(GuardedBuffer(64, 4, Placement::Odd).data()) % 64);
}

TEST(Signature, roundTrip) {
  KernelSignature s;
  s.arguments.push_back(argument(DType::F32, {1, 2}));
  s.arguments.push_back(argument(DType::I64, {}));
  s.arguments[1].role = Role::Weight;
  s.arguments[1].indexBound = 5;
  s.dims = {3};
  s.flops = 1000000000000;
  s.reductionLength = 9;
  auto back = KernelSignature::fromJson(s.toJson());
  ASSERT_TRUE(bool(back));
  EXPECT_EQ(llvm::json::Value(s.toJson()), llvm::json::Value(back->toJson()));

  CallSpec c;
  c.operands = {{false, 0}, {true, 1}};
  c.prepackArguments = {1};
  c.prepackResults = {{DType::BF16, {4, 4}}};
  auto call = CallSpec::fromJson(c.toJson());
  ASSERT_TRUE(bool(call));
  EXPECT_EQ(llvm::json::Value(c.toJson()), llvm::json::Value(call->toJson()));
}
