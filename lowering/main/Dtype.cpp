//===- Dtype.cpp - Element types of the C interface -----------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lowering/main/Dtype.h"
#include "mlir/IR/BuiltinTypes.h"
#include "targets/cpu/runtime/pto_abi.h"

using namespace mlir;

namespace pto::lowering {

int32_t abiType(Type element, bool isUnsigned) {
  if (element.isF32())
    return PTO_F32;
  if (element.isF64())
    return PTO_F64;
  if (element.isF16())
    return PTO_F16;
  if (element.isBF16())
    return PTO_BF16;
  auto integer = dyn_cast<IntegerType>(element);
  if (!integer)
    return element.isIndex() ? PTO_I64 : 0;
  isUnsigned |= integer.isUnsigned();
  switch (integer.getWidth()) {
  case 1:
    return PTO_BOOL;
  case 8:
    return isUnsigned ? PTO_U8 : PTO_I8;
  case 16:
    return isUnsigned ? PTO_U16 : PTO_I16;
  case 32:
    return isUnsigned ? PTO_U32 : PTO_I32;
  case 64:
    return isUnsigned ? PTO_U64 : PTO_I64;
  }
  return 0;
}

StringRef abiTypeName(int32_t dtype) {
  switch (dtype) {
  case PTO_F32:
    return "f32";
  case PTO_U8:
    return "u8";
  case PTO_I8:
    return "i8";
  case PTO_U16:
    return "u16";
  case PTO_I16:
    return "i16";
  case PTO_I32:
    return "i32";
  case PTO_I64:
    return "i64";
  case PTO_BOOL:
    return "bool";
  case PTO_F16:
    return "f16";
  case PTO_F64:
    return "f64";
  case PTO_U32:
    return "u32";
  case PTO_U64:
    return "u64";
  case PTO_BF16:
    return "bf16";
  }
  return "?";
}

} // namespace pto::lowering
