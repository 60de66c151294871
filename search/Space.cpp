//===- Space.cpp - The points that a search chooses from ------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
#include "search/Space.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Support/xxhash.h"
#include <cassert>
#include <cmath>
#include <limits>

using namespace llvm;

namespace pto::search {
namespace {

/// Points of one branch, saturating.
uint64_t countPoints(const Branch &branch) {
  uint64_t count = 1;
  for (const Knob &knob : branch.knobs)
    count = SaturatingMultiply<uint64_t>(count, knob.options.size());
  return count;
}

json::Value toJsonValue(const Value &value) {
  if (const auto *integer = std::get_if<int64_t>(&value))
    return *integer;
  return std::get<std::string>(value);
}

std::optional<Value> fromJsonValue(const json::Value &value) {
  if (std::optional<int64_t> integer = value.getAsInteger())
    return Value(*integer);
  if (std::optional<StringRef> text = value.getAsString())
    return Value(text->str());
  return std::nullopt;
}

std::string describe(const json::Value &value) {
  std::string text;
  raw_string_ostream(text) << value;
  return text;
}

std::optional<unsigned> findOption(const Knob &knob, const Value &value) {
  auto it = llvm::find(knob.options, value);
  if (it == knob.options.end())
    return std::nullopt;
  return it - knob.options.begin();
}

/// The option with the least ratio to `value`: tile sizes are alike in
/// doublings, not in differences.
unsigned nearestOption(const Knob &knob, const Value &value) {
  if (std::optional<unsigned> same = findOption(knob, value))
    return *same;
  const auto *wanted = std::get_if<int64_t>(&value);
  if (!wanted || !knob.isOrdered())
    return knob.defaultChoice;
  auto scale = [](int64_t v) {
    return std::copysign(std::log2(1 + std::abs(double(v))), double(v));
  };
  unsigned best = 0;
  double least = std::numeric_limits<double>::infinity();
  for (auto [i, option] : llvm::enumerate(knob.options)) {
    double distance =
        std::abs(scale(std::get<int64_t>(option)) - scale(*wanted));
    if (distance < least) {
      least = distance;
      best = i;
    }
  }
  return best;
}

Expected<json::Object> parseObject(StringRef text) {
  Expected<json::Value> value = json::parse(text);
  if (!value)
    return value.takeError();
  if (json::Object *object = value->getAsObject())
    return std::move(*object);
  return createStringError("knob values are not a JSON object: " + text);
}

} // namespace

bool Knob::isOrdered() const {
  return llvm::all_of(options, [](const Value &value) {
    return std::holds_alternative<int64_t>(value);
  });
}

unsigned Space::addBranch(Branch branch) {
  for (const Knob &knob : branch.knobs) {
    (void)knob;
    assert(!knob.options.empty() && "a knob needs an option");
    assert(knob.defaultChoice < knob.options.size() && "default out of range");
    assert(llvm::count_if(branch.knobs,
                          [&](const Knob &k) { return k.name == knob.name; }) ==
               1 &&
           "knob names are unique");
  }
  branches.push_back(std::move(branch));
  return branches.size() - 1;
}

std::optional<unsigned> Space::findBranch(StringRef name) const {
  for (auto [i, branch] : llvm::enumerate(branches))
    if (branch.name == name)
      return i;
  return std::nullopt;
}

uint64_t Space::size() const {
  uint64_t sum = 0;
  for (const Branch &branch : branches)
    sum = SaturatingAdd(sum, countPoints(branch));
  return sum;
}

uint64_t Space::size(unsigned branch) const {
  return countPoints(branches[branch]);
}

Point Space::defaultPoint(unsigned branch) const {
  Point point{branch, {}};
  for (const Knob &knob : branches[branch].knobs)
    point.choices.push_back(knob.defaultChoice);
  return point;
}

Point Space::at(uint64_t index) const {
  for (unsigned b = 0; b < branches.size(); ++b) {
    uint64_t count = size(b);
    if (index < count)
      return at(b, index);
    index -= count;
  }
  llvm_unreachable("index is not below size()");
}

Point Space::at(unsigned branch, uint64_t index) const {
  Point point{branch, {}};
  for (const Knob &knob : branches[branch].knobs) {
    point.choices.push_back(index % knob.options.size());
    index /= knob.options.size();
  }
  return point;
}

uint64_t Space::indexOf(const Point &point) const {
  uint64_t index = 0, scale = 1;
  for (auto [knob, choice] :
       llvm::zip_equal(branches[point.branch].knobs, point.choices)) {
    index += choice * scale;
    scale *= knob.options.size();
  }
  for (unsigned b = 0; b < point.branch; ++b)
    index += countPoints(branches[b]);
  return index;
}

const Value &Space::valueOf(const Point &point, unsigned knob) const {
  return branches[point.branch].knobs[knob].options[point.choices[knob]];
}

std::optional<std::string> Space::refusal(const Point &point) const {
  const Constraint &constraint = branches[point.branch].constraint;
  if (!constraint)
    return std::nullopt;
  return constraint(Assignment(*this, point));
}

//===----------------------------------------------------------------------===//
// Points as text and numbers
//===----------------------------------------------------------------------===//

std::string Space::toJson(const Point &point) const {
  json::Object object;
  for (auto [i, knob] : llvm::enumerate(branches[point.branch].knobs))
    object[knob.name] = toJsonValue(valueOf(point, i));
  std::string text;
  raw_string_ostream(text) << json::Value(std::move(object));
  return text;
}

Expected<Point> Space::fromJson(unsigned branch, StringRef text) const {
  Expected<json::Object> object = parseObject(text);
  if (!object)
    return object.takeError();
  Point point{branch, {}};
  for (const Knob &knob : branches[branch].knobs) {
    const json::Value *given = object->get(knob.name);
    if (!given)
      return createStringError("no value for knob '" + knob.name + "'");
    std::optional<Value> value = fromJsonValue(*given);
    std::optional<unsigned> choice;
    if (value)
      choice = findOption(knob, *value);
    if (!choice)
      return createStringError("knob '" + knob.name + "' has no option " +
                               describe(*given));
    point.choices.push_back(*choice);
    object->erase(knob.name);
  }
  if (!object->empty())
    return createStringError("there is no knob '" +
                             object->begin()->first.str() + "'");
  return point;
}

Expected<Point> Space::adapt(unsigned branch, StringRef text) const {
  Expected<json::Object> object = parseObject(text);
  if (!object)
    return object.takeError();
  Point point = defaultPoint(branch);
  for (auto [i, knob] : llvm::enumerate(branches[branch].knobs))
    if (const json::Value *given = object->get(knob.name))
      if (std::optional<Value> value = fromJsonValue(*given))
        point.choices[i] = nearestOption(knob, *value);
  return point;
}

Point Space::moveTo(unsigned branch, const Point &from) const {
  Point point = defaultPoint(branch);
  const std::vector<Knob> &old = branches[from.branch].knobs;
  for (auto [i, knob] : llvm::enumerate(branches[branch].knobs))
    for (auto [j, other] : llvm::enumerate(old))
      if (other.name == knob.name)
        point.choices[i] = nearestOption(knob, valueOf(from, j));
  return point;
}

uint64_t Space::hash(const Point &point) const {
  return xxh3_64bits(branches[point.branch].name + '\0' + toJson(point));
}

std::vector<double> Space::encode(const Point &point) const {
  std::vector<double> features;
  for (unsigned b = 0; b < branches.size(); ++b)
    features.push_back(b == point.branch);
  for (auto [b, branch] : llvm::enumerate(branches))
    for (auto [i, knob] : llvm::enumerate(branch.knobs)) {
      if (b != point.branch) {
        features.push_back(-1);
        continue;
      }
      const auto *integer = std::get_if<int64_t>(&valueOf(point, i));
      features.push_back(integer ? std::log2(1 + std::abs(double(*integer)))
                                 : point.choices[i]);
    }
  return features;
}

//===----------------------------------------------------------------------===//
// Assignment
//===----------------------------------------------------------------------===//

const Value *Assignment::find(StringRef name) const {
  for (auto [i, knob] :
       llvm::enumerate(space.getBranches()[point.branch].knobs))
    if (knob.name == name)
      return &space.valueOf(point, i);
  return nullptr;
}

int64_t Assignment::integer(StringRef name, int64_t otherwise) const {
  const Value *value = find(name);
  const auto *integer = value ? std::get_if<int64_t>(value) : nullptr;
  return integer ? *integer : otherwise;
}

StringRef Assignment::text(StringRef name) const {
  const Value *value = find(name);
  const auto *text = value ? std::get_if<std::string>(value) : nullptr;
  return text ? StringRef(*text) : StringRef();
}

} // namespace pto::search
