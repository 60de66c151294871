//===- Shapes.h - The --shape option ----------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
#ifndef PTO_TUNER_SHAPES_H
#define PTO_TUNER_SHAPES_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace pto::tuner {

/// Sizes for the inputs' dynamic dims: input name -> full shape.
using ShapeSet = llvm::StringMap<llvm::SmallVector<int64_t>>;

/// Parses NAME=AxB options into sets: naming an input again starts another.
llvm::Expected<std::vector<ShapeSet>>
parseShapes(const std::vector<std::string> &options);

} // namespace pto::tuner

#endif // PTO_TUNER_SHAPES_H
