//===- CostModel.h - Guesses times before they are measured -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// What Evolution asks to rank more candidates than can be tried. Only the order
// of its answers counts.
//
//===----------------------------------------------------------------------===//
#ifndef PTO_SEARCH_COSTMODEL_H
#define PTO_SEARCH_COSTMODEL_H

#include "search/Space.h"

namespace pto::search {

class CostModel {
public:
  virtual ~CostModel() = default;

  /// A result; no time for a failure.
  virtual void add(const Space &space, const Point &point,
                   std::optional<double> time) = 0;
  /// False while it knows too little to be asked.
  virtual bool isReady() const = 0;
  /// A guess for each point: less is better.
  virtual std::vector<double> predict(const Space &space,
                                      llvm::ArrayRef<Point> points) = 0;
};

} // namespace pto::search

#endif // PTO_SEARCH_COSTMODEL_H
