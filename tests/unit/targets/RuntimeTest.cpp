//===- RuntimeTest.cpp - Contexts, CPU check, cores -----------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

extern "C" {
#include "targets/cpu/runtime/cpu.h"
}
#include "targets/Features.h"
#include "targets/Host.h"
#include "targets/cpu/runtime/pto_artifact.h"
#include <gtest/gtest.h>
#include <string>

using namespace pto::targets;

namespace {

void noMain(pto_call *) {}

/// A model without inputs and outputs that needs `features`.
pto_model emptyModel(uint64_t features) {
  pto_model model = {};
  model.signature.model = "empty";
  static const pto_version version = {nullptr, noMain, 0, 0};
  model.version_count = 1;
  model.versions = &version;
  model.features = features;
  model.threads = 2;
  model.target = "cpu test";
  return model;
}

TEST(Runtime, ThisMachineHasItsOwnFeatures) {
  // LLVM's detection and the runtime's own must agree.
  EXPECT_EQ(0u, pto_missing_features(codeFeatureMask(detectHost())));
}

TEST(Runtime, CreateNamesMissingFeatures) {
  uint64_t missing = pto_missing_features(~uint64_t(0));
  if (!missing)
    GTEST_SKIP() << "this CPU has every feature in the table";
  char names[512];
  pto_feature_names(missing, names, sizeof(names));
  pto_model model = emptyModel(missing);
  pto_context *context = nullptr;
  EXPECT_EQ(PTO_UNSUPPORTED_CPU, pto_create(&model, nullptr, &context));
  ASSERT_NE(nullptr, context);
  std::string message = pto_error(context);
  EXPECT_NE(std::string::npos, message.find(std::string("lacks: ") + names))
      << message;
  EXPECT_EQ(PTO_UNSUPPORTED_CPU, pto_run(context, nullptr, 0, nullptr, 0));
  EXPECT_EQ(message, pto_error(context));
  pto_destroy(context);
}

TEST(Runtime, EmptyModelRuns) {
  pto_model model = emptyModel(0);
  pto_context *context = nullptr;
  ASSERT_EQ(PTO_OK, pto_create(&model, nullptr, &context));
  EXPECT_EQ(PTO_OK, pto_run(context, nullptr, 0, nullptr, 0));
  pto_destroy(context);
}

TEST(Runtime, ThreadsAreLimitedByTheModel) {
  pto_model model = emptyModel(0);
  pto_options options = {};
  options.threads = 64;
  pto_context *context = nullptr;
  ASSERT_EQ(PTO_OK, pto_create(&model, &options, &context));
  EXPECT_EQ(2, pto_threads(context));
  pto_destroy(context);
}

TEST(Runtime, CoresAgreeWithHwloc) {
  EXPECT_EQ(static_cast<int32_t>(detectHost().cores), pto_available_cores());
}

} // namespace
