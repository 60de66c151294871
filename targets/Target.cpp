//===- Target.cpp - Target specs, description files, fingerprints ---------===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The description files are part of the library (CMake turns each .toml into a
// string), so a tool finds them wherever it is installed.
//
//===----------------------------------------------------------------------===//

#include "targets/Target.h"
#include "targets/Features.h"
#include "targets/Host.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"
#include <algorithm>
#include <iterator>
#include <optional>
#include <vector>

#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

namespace pto::targets {
namespace {

struct Description {
  const char *arch;
  const char *text;
};

const Description descriptions[] = {
#include "targets/CpuDescriptions.inc"
};

llvm::Error error(const llvm::Twine &message) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), message);
}

/// Reads one description. Every key is required: a target with guessed facts
/// would give wrong search spaces without a word.
class DescriptionReader {
public:
  DescriptionReader(const Description &description)
      : arch(description.arch), result(toml::parse(description.text)) {}

  llvm::Expected<Target> read() {
    if (!result) {
      std::string what(result.error().description());
      return error(llvm::formatv("description of '{0}': {1}", arch, what));
    }
    Target target;
    target.name = "cpu";
    target.triple = text("triple");
    target.cpu = text("cpu");
    target.model = text("model");
    target.isa = text("isa");
    target.features = features();
    target.vectorBits = number("vector.bits");
    target.vectorRegisters = number("vector.registers");
    target.l1Bytes = number("cache.l1");
    target.l2Bytes = number("cache.l2");
    target.l3Bytes = number("cache.l3");
    target.lineBytes = number("cache.line");
    target.cores = number("topology.cores");
    if (!missing.empty())
      return error(llvm::formatv("description of '{0}': no valid value for {1}",
                                 arch, llvm::join(missing, ", ")));
    return target;
  }

private:
  std::string text(const char *key) {
    auto value = result.table().at_path(key).value<std::string>();
    if (!value)
      missing.push_back(key);
    return value.value_or("");
  }

  int64_t number(const char *key) {
    auto value = result.table().at_path(key).value<int64_t>();
    if (!value || *value < 0)
      missing.push_back(key);
    return value.value_or(0);
  }

  std::string features() {
    std::vector<std::string> parts;
    if (const toml::array *list = result.table()["features"].as_array())
      for (const toml::node &node : *list)
        parts.push_back("+" + node.value_or(std::string()));
    if (parts.empty())
      missing.push_back("features");
    std::sort(parts.begin(), parts.end());
    return llvm::join(parts, ",");
  }

  std::string arch;
  toml::parse_result result;
  std::vector<std::string> missing;
};

std::string knownArchs() {
  std::vector<std::string> names;
  for (const Description &description : descriptions)
    names.push_back(description.arch);
  return llvm::join(names, ", ");
}

} // namespace

std::string Target::fingerprint() const {
  std::string text;
  llvm::raw_string_ostream out(text);
  out << name << ';' << llvm::StringRef(triple).split('-').first << ';' << cpu
      << ';' << isa << ';' << llvm::join(codeFeatures(*this), "+") << ";v"
      << vectorBits << "x" << vectorRegisters << ";l1=" << l1Bytes
      << ";l2=" << l2Bytes << ";l3=" << l3Bytes << ";line=" << lineBytes << ';'
      << model;
  return text;
}

llvm::Expected<Target> parseTarget(llvm::StringRef spec) {
  llvm::SmallVector<llvm::StringRef> parts;
  spec.split(parts, ',');
  llvm::StringRef family = parts.front().trim();
  if (family != "cpu")
    return error(llvm::formatv(
        "--target={0}: no target '{1}'; known: cpu (this machine), or "
        "cpu,arch=X with X one of {2}",
        spec, family, knownArchs()));

  std::optional<Target> target;
  for (llvm::StringRef part : llvm::ArrayRef(parts).drop_front()) {
    std::pair<llvm::StringRef, llvm::StringRef> entry = part.split('=');
    llvm::StringRef key = entry.first.trim(), value = entry.second.trim();
    if (key != "arch")
      return error(llvm::formatv(
          "--target={0}: no key '{1}' for cpu; known: arch", spec, key));
    const Description *found =
        std::find_if(std::begin(descriptions), std::end(descriptions),
                     [&](const Description &description) {
                       return value == description.arch;
                     });
    if (found == std::end(descriptions))
      return error(llvm::formatv("--target={0}: no arch '{1}'; known: {2}",
                                 spec, value, knownArchs()));
    llvm::Expected<Target> described = DescriptionReader(*found).read();
    if (!described)
      return described.takeError();
    target = std::move(*described);
  }

  Target host = detectHost();
  if (!target)
    return host;
  // Code for a lesser CPU of the same kind runs here: it can be tested, and
  // tuned with this machine's thread count.
  target->isHost = runsOn(*target, host);
  if (target->isHost)
    target->cores = host.cores;
  return std::move(*target);
}

} // namespace pto::targets
