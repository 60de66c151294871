//===- LoadedKernel.cpp ---------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
#include "targets/runner/LoadedKernel.h"
#include <dlfcn.h>
#include <utility>

using namespace pto::targets;

llvm::Expected<CandidateSpec>
CandidateSpec::fromJson(const llvm::json::Object &o) {
  CandidateSpec spec;
  spec.object = o.getString("object").value_or("").str();
  if (const llvm::json::Object *call = o.getObject("call")) {
    auto parsed = CallSpec::fromJson(*call);
    if (!parsed)
      return parsed.takeError();
    spec.call = std::move(*parsed);
  }
  return spec;
}

llvm::json::Object CandidateSpec::toJson() const {
  return llvm::json::Object{{"object", object}, {"call", call.toJson()}};
}

llvm::Expected<LoadedKernel> LoadedKernel::load(const CandidateSpec &spec) {
  LoadedKernel result;
  result.handle = ::dlopen(spec.object.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!result.handle)
    return llvm::createStringError("cannot load the candidate: %s",
                                   ::dlerror());
  auto symbol = [&](const char *name) {
    return reinterpret_cast<Entry>(::dlsym(result.handle, name));
  };
  result.kernel = symbol("kernel");
  if (!result.kernel)
    return llvm::createStringError("%s has no symbol 'kernel'",
                                   spec.object.c_str());
  if (!spec.call.prepackResults.empty()) {
    result.prepack = symbol("kernel_prepack");
    if (!result.prepack)
      return llvm::createStringError("%s has no symbol 'kernel_prepack'",
                                     spec.object.c_str());
  }
  return std::move(result);
}

LoadedKernel::LoadedKernel(LoadedKernel &&o) noexcept
    : kernel(o.kernel), prepack(o.prepack),
      handle(std::exchange(o.handle, nullptr)) {}

LoadedKernel::~LoadedKernel() {
  if (handle)
    ::dlclose(handle);
}
