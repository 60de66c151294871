//===- TextTable.h - Columns for a terminal ---------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Rows of text, printed with every column as wide as its widest cell. Cells
// that came from elsewhere (messages, names) cannot move the cursor: control
// characters are printed as '?'.
//
//===----------------------------------------------------------------------===//
#ifndef PTO_TUNER_TEXTTABLE_H
#define PTO_TUNER_TEXTTABLE_H

#include "llvm/Support/raw_ostream.h"
#include <string>
#include <vector>

namespace pto::tuner {

class TextTable {
public:
  /// A heading that starts with '>' is of a column of numbers: right-aligned.
  explicit TextTable(std::vector<std::string> headings);
  /// As many cells as headings.
  void add(std::vector<std::string> cells);
  void print(llvm::raw_ostream &os) const;

private:
  std::vector<bool> right;
  std::vector<std::vector<std::string>> rows;
};

/// "812 ns", "12.3 us", "4.56 ms": three digits.
std::string formatTime(double ns);

} // namespace pto::tuner

#endif // PTO_TUNER_TEXTTABLE_H
