//===- Strategy.h - Which point to try next ---------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The interface between a tuning run and a way to search: propose gives points
// to try, observe tells what came of them. Read next: Random.h, Evolution.h.
//
//===----------------------------------------------------------------------===//
#ifndef PTO_SEARCH_STRATEGY_H
#define PTO_SEARCH_STRATEGY_H

#include "search/Space.h"
#include <memory>
#include <unordered_set>

namespace pto::search {

class CostModel;

/// The base looks after what every strategy promises: points are legal, none is
/// proposed twice or after it was observed, seeds come first, and everything
/// depends on the space, the seed and the order of calls alone.
class Strategy {
public:
  explicit Strategy(const Space &space) : space(space) {}
  virtual ~Strategy() = default;

  /// Points to try before the strategy's own: the default, a neighbour's
  /// winner, a user's choice. Illegal and known ones are dropped.
  void addSeeds(llvm::ArrayRef<Point> points);

  /// Up to `count` points. Fewer when the space is nearly exhausted or most of
  /// it refused; none means that this strategy is at its end.
  std::vector<Point> propose(unsigned count);

  /// The result of a point, proposed or not (a stored trial): its time, or
  /// nothing for a failure of any kind.
  void observe(const Point &point, std::optional<double> time);

  const Space &getSpace() const { return space; }

protected:
  /// One more point that take() accepts, or nothing.
  virtual std::optional<Point> proposeOne() = 0;
  virtual void observed(const Point &point, std::optional<double> time) = 0;

  /// Marks a legal, new point as proposed; false if it is neither.
  bool take(const Point &point);
  bool isKnown(const Point &point) const;

  const Space &space;

private:
  std::vector<Point> seeds; ///< Last first.
  std::unordered_set<uint64_t> known;
};

struct StrategyOptions {
  uint64_t seed = 0;
  /// Trials that the budget is likely to allow: a space that is no larger is
  /// searched as a whole. 0 if unknown.
  uint64_t expectedTrials = 0;
  /// Ranks candidates before they are tried; not owned; may be null.
  CostModel *model = nullptr;
};

/// The names that makeStrategy knows.
llvm::ArrayRef<llvm::StringRef> strategyNames();

/// "evolution" or "random". An unknown name is an error that lists them.
llvm::Expected<std::unique_ptr<Strategy>>
makeStrategy(llvm::StringRef name, const Space &space,
             const StrategyOptions &options);

} // namespace pto::search

#endif // PTO_SEARCH_STRATEGY_H
