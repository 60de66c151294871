//===- Budget.h - How much time is left -------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// A wall-clock budget. The clock is a parameter, so that tests need no waiting;
// by default it is the steady one, which nobody sets back.
//
//===----------------------------------------------------------------------===//
#ifndef PTO_SEARCH_BUDGET_H
#define PTO_SEARCH_BUDGET_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <functional>
#include <string>

namespace pto::search {

/// "90s", "10m", "2h", "1h30m", "1.5h": seconds, more than none.
llvm::Expected<double> parseDuration(llvm::StringRef text);
/// "1h02m", "3m05s", "42s".
std::string formatDuration(double seconds);

class Budget {
public:
  /// Seconds since any fixed point.
  using Clock = std::function<double()>;

  explicit Budget(double seconds, Clock clock = steadyClock());

  double total() const { return seconds; }
  double elapsed() const { return clock() - start; }
  /// Never negative.
  double remaining() const;
  bool isSpent() const { return remaining() <= 0; }
  /// Whether something that takes this long still fits.
  bool hasRoomFor(double duration) const { return remaining() >= duration; }
  /// Ends it now (Ctrl-C).
  void end() { seconds = 0; }

  static Clock steadyClock();

private:
  double seconds;
  Clock clock;
  double start;
};

} // namespace pto::search

#endif // PTO_SEARCH_BUDGET_H
