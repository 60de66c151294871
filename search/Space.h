//===- Space.h - The points that a search chooses from ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// A space is a set of branches (one script each); a branch is a list of named
// knobs with a finite list of values each, and a constraint that may refuse a
// point with a reason. A point is a branch and one choice per knob. Nothing
// here knows what the values do.
//
//===----------------------------------------------------------------------===//
#ifndef PTO_SEARCH_SPACE_H
#define PTO_SEARCH_SPACE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace pto::search {

using Value = std::variant<int64_t, std::string>;

struct Knob {
  std::string name;
  std::vector<Value> options; ///< At least one, all different.
  unsigned defaultChoice = 0; ///< Index into options.

  /// Neighbours in `options` are alike: true when all are integers.
  bool isOrdered() const;
};

/// A branch and, for each of its knobs, an index into the knob's options.
struct Point {
  unsigned branch = 0;
  std::vector<unsigned> choices;

  bool operator==(const Point &other) const {
    return branch == other.branch && choices == other.choices;
  }
};

/// The values of a point by name, for constraints.
class Assignment;

/// The reason why a point is refused, or nothing.
using Constraint =
    std::function<std::optional<std::string>(const Assignment &)>;

struct Branch {
  std::string name; ///< Of the script; unique within the space.
  std::vector<Knob> knobs;
  Constraint constraint; ///< May be null: everything is allowed.
};

class Space {
public:
  /// Returns the branch's index. Knob names must be unique within the branch.
  unsigned addBranch(Branch branch);

  llvm::ArrayRef<Branch> getBranches() const { return branches; }
  /// The index of the branch with this name.
  std::optional<unsigned> findBranch(llvm::StringRef name) const;

  /// Number of points, refused ones included; UINT64_MAX when it is more.
  uint64_t size() const;
  uint64_t size(unsigned branch) const;

  Point defaultPoint(unsigned branch) const;
  /// The inverse of indexOf; `index` < size() < UINT64_MAX.
  Point at(uint64_t index) const;
  /// The same within one branch.
  Point at(unsigned branch, uint64_t index) const;
  uint64_t indexOf(const Point &point) const;

  const Value &valueOf(const Point &point, unsigned knob) const;
  /// Why the point must not be tried, or nothing.
  std::optional<std::string> refusal(const Point &point) const;

  /// The knobs' values as a JSON object, sorted by name: what is stored.
  std::string toJson(const Point &point) const;
  /// The inverse. A knob that is missing or unknown, or a value that is not an
  /// option, is an error that names it.
  llvm::Expected<Point> fromJson(unsigned branch, llvm::StringRef json) const;
  /// The point nearest to what another space's winner had: unknown knobs are
  /// ignored, missing ones take the default, integers the nearest option.
  llvm::Expected<Point> adapt(unsigned branch, llvm::StringRef json) const;
  /// The same values on another branch, as far as knobs have the same names.
  Point moveTo(unsigned branch, const Point &point) const;

  /// Equal on every machine and in every run.
  uint64_t hash(const Point &point) const;
  /// For cost models: a one-hot branch, then for each knob of each branch the
  /// integer's log2(1 + |value|), or the choice's index; -1 in other branches.
  std::vector<double> encode(const Point &point) const;

private:
  std::vector<Branch> branches;
};

class Assignment {
public:
  Assignment(const Space &space, const Point &point)
      : space(space), point(point) {}

  /// The value of a knob of the branch, null when it has none of that name.
  const Value *find(llvm::StringRef name) const;
  /// The value of an integer knob; `otherwise` when there is none.
  int64_t integer(llvm::StringRef name, int64_t otherwise = 0) const;
  llvm::StringRef text(llvm::StringRef name) const;

private:
  const Space &space;
  const Point &point;
};

} // namespace pto::search

#endif // PTO_SEARCH_SPACE_H
