//===- Header.h - MODEL.h ---------------------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The C header that pto-compile writes beside an artifact. It needs no other
// file, and several models' headers can be included together.
//
//===----------------------------------------------------------------------===//
#ifndef PTO_LOWERING_MAIN_HEADER_H
#define PTO_LOWERING_MAIN_HEADER_H

#include "lowering/main/Main.h"

namespace pto::lowering {

/// Text of the header. `abi` is pto_abi.h's text.
std::string headerText(const Program &program, llvm::StringRef prefix,
                       llvm::StringRef abi);

} // namespace pto::lowering

#endif // PTO_LOWERING_MAIN_HEADER_H
