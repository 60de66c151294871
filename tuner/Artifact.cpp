//===- Artifact.cpp - A compiled model, loaded ----------------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "tuner/Artifact.h"
#include "tuner/FileChecks.h"
#include "tuner/ToolError.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/BinaryFormat/ELF.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/Triple.h"
#include <cstring>
#include <dlfcn.h>
#include <random>

namespace pto::tuner {

/// What dlopen does not look at: it maps a file that is cut short, and the
/// first touch of what is missing ends the process.
static llvm::Error checkLibrary(llvm::StringRef path) {
  using namespace llvm::ELF;
  auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/false,
                                            /*RequiresNullTerminator=*/false);
  if (!buffer)
    return toolError(EnvironmentFailed,
                     path + ": " + buffer.getError().message());
  llvm::StringRef bytes = (*buffer)->getBuffer();
  auto unusable = [&](const llvm::Twine &why) {
    return toolError(BadInput, path + ": cannot be loaded: " + why +
                                   "\nmake one with: pto-compile MODEL -o " +
                                   path);
  };
  if (!bytes.starts_with(ElfMagic))
    return unusable("it is no shared library");
  Elf64_Ehdr header;
  if (bytes.size() < sizeof(header))
    return unusable("it is cut short");
  std::memcpy(&header, bytes.data(), sizeof(header));
  auto host = llvm::Triple(llvm::sys::getProcessTriple());
  unsigned machine = host.isAArch64() ? EM_AARCH64 : EM_X86_64;
  if (header.e_machine != machine)
    return toolError(EnvironmentFailed,
                     path + ": was compiled for another kind of CPU (" +
                         convertEMachineToArchName(header.e_machine) +
                         "); this is " + host.getArchName() +
                         "\nrun it on such a machine, or compile the model "
                         "for this one");
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    uint64_t at = header.e_phoff + uint64_t(i) * sizeof(segment);
    if (at > bytes.size() || bytes.size() - at < sizeof(segment))
      return unusable("it is cut short");
    std::memcpy(&segment, bytes.data() + at, sizeof(segment));
    if (segment.p_type == PT_LOAD &&
        (segment.p_offset > bytes.size() ||
         bytes.size() - segment.p_offset < segment.p_filesz))
      return unusable("it is cut short");
  }
  return llvm::Error::success();
}

llvm::Expected<std::unique_ptr<Artifact>> Artifact::open(llvm::StringRef path) {
  if (llvm::Error error = checkReadable(path))
    return std::move(error);
  if (llvm::Error error = checkLibrary(path))
    return std::move(error);
  // A name without '/' would be searched for in the system's folders.
  std::string file = path.contains('/') ? path.str() : "./" + path.str();
  std::unique_ptr<Artifact> artifact(new Artifact());
  artifact->handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!artifact->handle)
    return toolError(BadInput, path + ": cannot be loaded: " + dlerror() +
                                   "\nmake one with: pto-compile MODEL -o " +
                                   path);
  artifact->entry = static_cast<const pto_artifact_table *>(
      dlsym(artifact->handle, "pto_artifact"));
  if (!artifact->entry)
    return toolError(BadInput, path + ": was not made by pto-compile");
  if (artifact->entry->abi_version != PTO_ABI_VERSION)
    return toolError(BadInput, path + ": has interface version " +
                                   llvm::Twine(artifact->entry->abi_version) +
                                   ", this tool knows " +
                                   llvm::Twine(PTO_ABI_VERSION) +
                                   "\ncompile the model again");
  return std::move(artifact);
}

std::vector<int64_t> Artifact::shapeOf(const pto_version &version,
                                       size_t i) const {
  const pto_signature &signature = model().signature;
  const int64_t *sizes = version.shapes;
  for (size_t before = 0; before < i; ++before)
    sizes += signature.inputs[before].rank;
  return {sizes, sizes + signature.inputs[i].rank};
}

Artifact::~Artifact() {
  if (handle)
    dlclose(handle);
}

llvm::Error Instance::failure(int status) const {
  const char *message = artifact.table().error(context);
  bool environment =
      status == PTO_OUT_OF_MEMORY || status == PTO_UNSUPPORTED_CPU;
  const char *advice =
      status == PTO_BAD_WEIGHTS ? "\nwith pto-run: --weights=FILE" : "";
  return toolError(environment ? EnvironmentFailed : BadInput,
                   llvm::Twine(message) + advice);
}

llvm::Expected<std::unique_ptr<Instance>>
Instance::create(const Artifact &artifact, const pto_options &options) {
  std::unique_ptr<Instance> instance(new Instance(artifact));
  int status =
      artifact.table().create(&artifact.model(), &options, &instance->context);
  if (status != PTO_OK)
    return instance->failure(status);
  instance->out.resize(artifact.model().signature.output_count);
  return std::move(instance);
}

Instance::~Instance() { artifact.table().destroy(context); }

llvm::Error Instance::bind(const std::vector<HostTensor> &inputs) {
  in.clear();
  for (const HostTensor &input : inputs) {
    pto_tensor tensor = {};
    if (input.shape.size() > PTO_MAX_RANK)
      return toolError(BadInput, "input '" + input.name + "' has " +
                                     llvm::Twine(input.shape.size()) +
                                     " dimensions");
    tensor.data = const_cast<char *>(input.bytes.data());
    tensor.dtype = input.dtype;
    tensor.rank = static_cast<int32_t>(input.shape.size());
    std::copy(input.shape.begin(), input.shape.end(), tensor.shape);
    in.push_back(tensor);
  }
  return llvm::Error::success();
}

llvm::Error Instance::run() {
  for (pto_tensor &tensor : out)
    tensor = {};
  int status = artifact.table().run(context, in.data(), in.size(), out.data(),
                                    out.size());
  return status == PTO_OK ? llvm::Error::success() : failure(status);
}

std::vector<HostTensor> Instance::outputs() const {
  std::vector<HostTensor> copies;
  for (size_t i = 0; i < out.size(); ++i) {
    HostTensor copy;
    copy.name = artifact.model().signature.outputs[i].name;
    copy.dtype = out[i].dtype;
    copy.shape.assign(out[i].shape, out[i].shape + out[i].rank);
    const char *data = static_cast<const char *>(out[i].data);
    copy.bytes.assign(data, data + copy.elements() * elementBytes(copy.dtype));
    copies.push_back(std::move(copy));
  }
  return copies;
}

namespace {

template <typename T> void put(std::vector<char> &bytes, int64_t i, T value) {
  std::memcpy(bytes.data() + i * sizeof(T), &value, sizeof(T));
}

void fillSeeded(HostTensor &tensor, std::mt19937_64 &random) {
  std::uniform_real_distribution<float> uniform(-1, 1);
  int64_t n = tensor.elements();
  for (int64_t i = 0; i < n; ++i) {
    switch (tensor.dtype) {
    case PTO_F32:
      put(tensor.bytes, i, uniform(random));
      break;
    case PTO_F64:
      put(tensor.bytes, i, static_cast<double>(uniform(random)));
      break;
    case PTO_F16:
    case PTO_BF16: {
      llvm::APFloat value(uniform(random));
      bool lossy;
      value.convert(tensor.dtype == PTO_F16 ? llvm::APFloat::IEEEhalf()
                                            : llvm::APFloat::BFloat(),
                    llvm::APFloat::rmNearestTiesToEven, &lossy);
      put(tensor.bytes, i,
          static_cast<uint16_t>(value.bitcastToAPInt().getZExtValue()));
      break;
    }
    default: // little-endian: the low byte is the value
      tensor.bytes[i * elementBytes(tensor.dtype)] = random() & 1;
    }
  }
}

} // namespace

llvm::Expected<std::vector<HostTensor>> seededInputs(
    const pto_signature &signature, uint64_t seed,
    llvm::function_ref<const std::vector<int64_t> *(llvm::StringRef)> shapeOf) {
  std::mt19937_64 random(seed);
  std::vector<HostTensor> inputs;
  for (size_t i = 0; i < signature.input_count; ++i) {
    const pto_value_info &info = signature.inputs[i];
    HostTensor tensor;
    tensor.name = info.name;
    tensor.dtype = info.dtype;
    tensor.shape.assign(info.shape, info.shape + info.rank);
    if (const std::vector<int64_t> *given = shapeOf(info.name))
      tensor.shape = *given;
    for (int64_t &size : tensor.shape)
      if (size < 0)
        size = 1; // unknown and not given
    tensor.bytes.assign(tensor.elements() * elementBytes(tensor.dtype), 0);
    fillSeeded(tensor, random);
    inputs.push_back(std::move(tensor));
  }
  return std::move(inputs);
}

} // namespace pto::tuner
