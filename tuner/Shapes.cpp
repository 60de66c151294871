//===- Shapes.cpp - The --shape option ------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "tuner/Shapes.h"
#include "tuner/ToolError.h"

namespace pto::tuner {

llvm::Expected<std::vector<ShapeSet>>
parseShapes(const std::vector<std::string> &options) {
  std::vector<ShapeSet> sets;
  for (llvm::StringRef option : options) {
    auto bad = [&] {
      return toolError(BadInput, "--shape " + option +
                                     ": must be NAME=AxBxC, for example "
                                     "--shape x=1x3x224x224");
    };
    // Names may hold '=', sizes may not.
    size_t split = option.rfind('=');
    if (split == llvm::StringRef::npos || split == 0)
      return bad();
    llvm::SmallVector<int64_t> shape;
    llvm::StringRef sizes = option.substr(split + 1);
    llvm::SmallVector<llvm::StringRef> parts;
    if (!sizes.empty())
      sizes.split(parts, 'x');
    for (llvm::StringRef part : parts) {
      int64_t size;
      if (part.getAsInteger(10, size) || size < 0)
        return bad();
      shape.push_back(size);
    }
    llvm::StringRef name = option.take_front(split);
    if (sets.empty() || sets.back().contains(name))
      sets.emplace_back();
    sets.back()[name] = shape;
  }
  return sets;
}

} // namespace pto::tuner
