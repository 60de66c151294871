//===- Budget.cpp - How much time is left ---------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
#include "search/Budget.h"

#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"
#include <algorithm>
#include <chrono>
#include <cmath>

using namespace llvm;

namespace pto::search {

Expected<double> parseDuration(StringRef text) {
  auto bad = [&] {
    return createStringError("'" + text +
                             "' is not a duration: write 90s, 10m or 2h");
  };
  double sum = 0;
  StringRef rest = text.trim();
  // Units in falling order, each at most once, so that "5s1h" is a typing
  // error.
  for (auto [unit, scale] :
       {std::pair('h', 3600.0), std::pair('m', 60.0), std::pair('s', 1.0)}) {
    size_t end = rest.find_first_not_of("0123456789.");
    if (end == StringRef::npos || rest[end] != unit)
      continue;
    double number = 0;
    if (rest.take_front(end).getAsDouble(number))
      return bad();
    sum += number * scale;
    rest = rest.drop_front(end + 1);
  }
  if (!rest.empty() || !(sum > 0) || !std::isfinite(sum))
    return bad();
  return sum;
}

std::string formatDuration(double seconds) {
  long whole = std::lround(std::max(0.0, seconds));
  std::string text;
  raw_string_ostream os(text);
  if (whole >= 3600)
    os << format("%ldh%02ldm", whole / 3600, whole / 60 % 60);
  else if (whole >= 60)
    os << format("%ldm%02lds", whole / 60, whole % 60);
  else
    os << whole << 's';
  return text;
}

Budget::Budget(double seconds, Clock clock)
    : seconds(seconds), clock(std::move(clock)), start(this->clock()) {}

double Budget::remaining() const { return std::max(0.0, seconds - elapsed()); }

Budget::Clock Budget::steadyClock() {
  return [] {
    return std::chrono::duration<double>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
  };
}

} // namespace pto::search
