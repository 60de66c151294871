//===- Record.cpp - Words, JSON and hashes of the data model --------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
#include "db/Record.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/SHA256.h"
#include "llvm/Support/raw_ostream.h"
#include <algorithm>
#include <cassert>

using namespace llvm;

namespace pto::db {
namespace {

template <typename Enum> struct Word {
  Enum value;
  StringLiteral text;
};

constexpr Outcome outcomes[] = {Outcome::Ok,
                                Outcome::Illegal,
                                Outcome::TransformFailed,
                                Outcome::CompileFailed,
                                Outcome::TooLarge,
                                Outcome::Timeout,
                                Outcome::Crashed,
                                Outcome::WrongResult};

constexpr Word<Outcome> outcomeWords[] = {
    {Outcome::Ok, "ok"},
    {Outcome::Illegal, "illegal"},
    {Outcome::TransformFailed, "transform-failed"},
    {Outcome::CompileFailed, "compile-failed"},
    {Outcome::TooLarge, "too-large"},
    {Outcome::Timeout, "timeout"},
    {Outcome::Crashed, "crashed"},
    {Outcome::WrongResult, "wrong-result"}};

constexpr Word<Evidence> evidenceWords[] = {{Evidence::Measured, "measured"},
                                            {Evidence::Simulated, "simulated"},
                                            {Evidence::Compiled, "compiled"},
                                            {Evidence::Analytic, "analytic"}};

constexpr Word<Purpose> purposeWords[] = {{Purpose::Search, "search"},
                                          {Purpose::Default, "default"},
                                          {Purpose::Confirm, "confirm"}};

template <typename Enum, size_t N>
StringRef wordOf(const Word<Enum> (&words)[N], Enum value) {
  for (const Word<Enum> &w : words)
    if (w.value == value)
      return w.text;
  assert(false && "value without a word");
  return "";
}

template <typename Enum, size_t N>
std::optional<Enum> valueOf(const Word<Enum> (&words)[N], StringRef word) {
  for (const Word<Enum> &w : words)
    if (w.text == word)
      return w.value;
  return std::nullopt;
}

} // namespace

ArrayRef<Outcome> allOutcomes() { return outcomes; }

StringRef toString(Outcome outcome) { return wordOf(outcomeWords, outcome); }
StringRef toString(Evidence evidence) {
  return wordOf(evidenceWords, evidence);
}
StringRef toString(Purpose purpose) { return wordOf(purposeWords, purpose); }

std::optional<Outcome> parseOutcome(StringRef word) {
  return valueOf(outcomeWords, word);
}
std::optional<Evidence> parseEvidence(StringRef word) {
  return valueOf(evidenceWords, word);
}
std::optional<Purpose> parsePurpose(StringRef word) {
  return valueOf(purposeWords, word);
}

Maker Maker::current(StringRef policy) {
  return {LLVM_VERSION_STRING, PTO_VERSION, policy.str()};
}

void Trial::setSamples(ArrayRef<double> ns) {
  assert(!ns.empty() && "an ok trial has at least one sample");
  outcome = Outcome::Ok;
  samplesNs.assign(ns.begin(), ns.end());
  std::vector<double> sorted = samplesNs;
  llvm::sort(sorted);
  bestNs = sorted.front();
  size_t half = sorted.size() / 2;
  medianNs =
      sorted.size() % 2 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

Expected<std::string> canonicalJson(StringRef json) {
  Expected<json::Value> value = json::parse(json);
  if (!value)
    return value.takeError();
  std::string text;
  raw_string_ostream(text) << *value; // Compact; objects sorted by key.
  return text;
}

std::string hashText(StringRef text) {
  auto digest = SHA256::hash(arrayRefFromStringRef(text));
  return toHex(ArrayRef<uint8_t>(digest).take_front(16), /*LowerCase=*/true);
}

} // namespace pto::db
