//===- TextTable.cpp - Columns for a terminal -----------------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
#include "tuner/TextTable.h"

#include "llvm/Support/Format.h"
#include "llvm/Support/Unicode.h"
#include <cassert>

using namespace llvm;

namespace pto::tuner {

static size_t widthOf(StringRef text) {
  int width = sys::unicode::columnWidthUTF8(text);
  return width < 0 ? text.size() : width;
}

TextTable::TextTable(std::vector<std::string> headings) {
  for (std::string &heading : headings) {
    right.push_back(!heading.empty() && heading[0] == '>');
    if (right.back())
      heading.erase(0, 1);
  }
  rows.push_back(std::move(headings));
}

void TextTable::add(std::vector<std::string> cells) {
  assert(cells.size() == right.size() && "a cell for each heading");
  for (std::string &cell : cells)
    for (char &c : cell)
      if ((unsigned char)c < 0x20 || c == 0x7f)
        c = '?';
  rows.push_back(std::move(cells));
}

void TextTable::print(raw_ostream &os) const {
  std::vector<size_t> widths(right.size());
  for (const auto &row : rows)
    for (size_t i = 0; i < row.size(); ++i)
      widths[i] = std::max(widths[i], widthOf(row[i]));
  for (const auto &row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      std::string space(widths[i] - widthOf(row[i]), ' ');
      line += (i ? "  " : "") + (right[i] ? space + row[i] : row[i] + space);
    }
    os << StringRef(line).rtrim() << '\n';
  }
}

std::string formatTime(double ns) {
  const char *unit = " ns";
  for (const char *next : {" us", " ms", " s"}) {
    if (ns < 999.5)
      break;
    ns /= 1000;
    unit = next;
  }
  std::string text;
  int decimals = ns < 9.995 ? 2 : ns < 99.95 ? 1 : 0;
  raw_string_ostream(text) << format("%.*f", decimals, ns) << unit;
  return text;
}

} // namespace pto::tuner
