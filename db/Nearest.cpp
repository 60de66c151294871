//===- Nearest.cpp - How far two kernels are apart ------------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
#include "db/Nearest.h"

#include "llvm/Support/JSON.h"
#include <cmath>
#include <limits>

using namespace llvm;

namespace pto::db {
namespace {

/// In doublings: a dtype or layout that differs outweighs a size that does.
constexpr double unlike = 4;

double distance(const json::Value &a, const json::Value &b) {
  std::optional<double> x = a.getAsNumber(), y = b.getAsNumber();
  if (x && y)
    return std::abs(std::log2((std::abs(*x) + 1) / (std::abs(*y) + 1))) +
           ((*x < 0) != (*y < 0) ? unlike : 0);
  const json::Array *as = a.getAsArray(), *bs = b.getAsArray();
  if (as && bs && as->size() == bs->size()) {
    double sum = 0;
    for (size_t i = 0; i < as->size(); ++i)
      sum += distance((*as)[i], (*bs)[i]);
    return sum;
  }
  return a == b ? 0 : unlike;
}

} // namespace

double featureDistance(StringRef a, StringRef b) {
  Expected<json::Value> left = json::parse(a), right = json::parse(b);
  if (!left)
    consumeError(left.takeError());
  if (!right)
    consumeError(right.takeError());
  const json::Object *x = left ? left->getAsObject() : nullptr;
  const json::Object *y = right ? right->getAsObject() : nullptr;
  if (!x || !y)
    return std::numeric_limits<double>::infinity();
  double sum = 0;
  for (const auto &[name, value] : *x) {
    const json::Value *other = y->get(name);
    sum += other ? distance(value, *other) : unlike;
  }
  for (const auto &[name, value] : *y)
    if (!x->get(name))
      sum += unlike;
  return sum;
}

} // namespace pto::db
