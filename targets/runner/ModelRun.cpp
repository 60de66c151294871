//===- ModelRun.cpp -------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
#include "targets/runner/ModelRun.h"
#include "targets/cpu/runtime/pto_artifact.h"
#include "targets/runner/Data.h"
#include "targets/runner/Serve.h"
#include "targets/runner/Timing.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <cmath>
#include <dlfcn.h>
#include <optional>

using namespace pto::targets;

/// How much longer than asked for a comparison may last on a busy machine.
static constexpr double kPatience = 4;

/// Storage class of a type of the C interface.
static std::optional<DType> storageOf(int32_t type) {
  switch (type) {
  case PTO_F32:
    return DType::F32;
  case PTO_F64:
    return DType::F64;
  case PTO_F16:
    return DType::F16;
  case PTO_BF16:
    return DType::BF16;
  case PTO_BOOL:
    return DType::I1;
  case PTO_I8:
  case PTO_U8:
    return DType::I8;
  case PTO_I16:
  case PTO_U16:
    return DType::I16;
  case PTO_I32:
  case PTO_U32:
    return DType::I32;
  case PTO_I64:
  case PTO_U64:
    return DType::I64;
  default:
    return std::nullopt;
  }
}

namespace {
/// A loaded artifact with a context.
struct Model {
  void *handle = nullptr;
  const pto_artifact_table *table = nullptr;
  pto_context *context = nullptr;

  Model() = default;
  Model(Model &&o) noexcept
      : handle(std::exchange(o.handle, nullptr)), table(o.table),
        context(std::exchange(o.context, nullptr)),
        outputs(std::move(o.outputs)) {}
  ~Model() {
    if (context)
      table->destroy(context);
    if (handle)
      ::dlclose(handle);
  }
  std::vector<pto_tensor> outputs;

  llvm::Error run(const std::vector<pto_tensor> &inputs) {
    for (pto_tensor &t : outputs)
      t = {};
    if (table->run(context, inputs.data(), inputs.size(), outputs.data(),
                   outputs.size()) != PTO_OK)
      return llvm::createStringError("the model failed: %s",
                                     table->error(context));
    return llvm::Error::success();
  }
};
} // namespace

static llvm::Expected<Model> load(const std::string &path, unsigned threads) {
  Model model;
  model.handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!model.handle)
    return llvm::createStringError("cannot load %s: %s", path.c_str(),
                                   ::dlerror());
  model.table = static_cast<const pto_artifact_table *>(
      ::dlsym(model.handle, "pto_artifact"));
  if (!model.table || model.table->abi_version != PTO_ABI_VERSION)
    return llvm::createStringError("%s was not made by this pto-compile",
                                   path.c_str());
  pto_options options = {};
  options.threads = int32_t(threads);
  if (model.table->create(model.table->model, &options, &model.context) !=
      PTO_OK)
    return llvm::createStringError("%s: %s", path.c_str(),
                                   model.table->error(model.context));
  model.outputs.resize(model.table->model->signature.output_count);
  return std::move(model);
}

/// Inputs of the shapes that the model is compiled for especially.
static llvm::Expected<std::vector<std::vector<char>>>
makeInputs(const pto_model &model, uint64_t seed,
           std::vector<pto_tensor> &tensors) {
  const pto_signature &signature = model.signature;
  const int64_t *size = model.versions[0].shapes;
  std::vector<std::vector<char>> data;
  for (size_t i = 0; i < signature.input_count; ++i) {
    const pto_value_info &info = signature.inputs[i];
    auto storage = storageOf(info.dtype);
    if (!storage)
      return llvm::createStringError("input %s has an unknown type", info.name);
    ArgumentSpec argument;
    argument.tensor.dtype = *storage;
    argument.indexBound = 2; // Small integers are valid indices almost always.
    pto_tensor t = {};
    t.dtype = info.dtype;
    t.rank = info.rank;
    for (int32_t d = 0; d < info.rank; ++d, ++size) {
      t.shape[d] = *size < 0 ? 1 : *size;
      argument.tensor.shape.push_back(t.shape[d]);
    }
    data.emplace_back(argument.tensor.bytes() + 64);
    fillInput(data.back().data(), argument, DataSet::Mixed, seed + i);
    t.data = data.back().data();
    tensors.push_back(t);
  }
  return std::move(data);
}

/// Largest difference of f32 outputs, relative to the largest magnitude.
static double difference(const Model &a, const Model &b) {
  double worst = 0;
  for (size_t i = 0; i < a.outputs.size(); ++i) {
    const pto_tensor &x = a.outputs[i], &y = b.outputs[i];
    if (x.dtype != PTO_F32 || y.dtype != PTO_F32)
      continue;
    int64_t n = 1;
    for (int32_t d = 0; d < x.rank; ++d)
      n *= x.shape[d];
    double error = 0, magnitude = 0;
    for (int64_t e = 0; e < n; ++e) {
      double p = static_cast<const float *>(x.data)[e];
      double q = static_cast<const float *>(y.data)[e];
      magnitude = std::max(magnitude, std::fabs(p));
      if (std::isnan(p) != std::isnan(q))
        return INFINITY;
      if (!std::isnan(p))
        error = std::max(error, std::fabs(p - q));
    }
    worst = std::max(worst, magnitude > 0 ? error / magnitude : error);
  }
  return worst;
}

llvm::Expected<ModelTimes>
pto::targets::compareModels(const std::vector<std::string> &artifacts,
                            unsigned threads, double seconds, uint64_t seed) {
  reportPhase("loading models");
  std::vector<Model> models;
  for (const std::string &path : artifacts) {
    auto model = load(path, threads);
    if (!model)
      return model.takeError();
    models.push_back(std::move(*model));
  }
  std::vector<pto_tensor> inputs;
  ModelTimes result;
  if (models.empty())
    return result;
  auto data = makeInputs(*models[0].table->model, seed, inputs);
  if (!data)
    return data.takeError();
  reportPhase("running models");
  double once = 0;
  for (int warm = 0; warm < 2; ++warm)
    for (Model &m : models) {
      double start = nowNs();
      if (llvm::Error error = m.run(inputs))
        return std::move(error);
      once = std::max(once, nowNs() - start);
    }
  for (Model &m : models)
    result.difference = std::max(result.difference, difference(models[0], m));
  result.samplesNs.resize(models.size());
  double start = nowNs();
  for (int round = 0; round < 1000; ++round) {
    double used = (nowNs() - start) / 1e9;
    if (round >= 5 && used > seconds &&
        (used > kPatience * seconds ||
         llvm::all_of(result.samplesNs, isStable)))
      break;
    for (size_t i = 0; i < models.size(); ++i) {
      size_t m = round % 2 ? models.size() - 1 - i : i;
      // The clock's resolution asks for more calls of tiny models.
      int calls = once < 1e5 ? 20 : 1;
      double begin = nowNs();
      for (int c = 0; c < calls; ++c)
        if (llvm::Error error = models[m].run(inputs))
          return std::move(error);
      result.samplesNs[m].push_back((nowNs() - begin) / calls);
    }
  }
  return result;
}
