// From the class of a typed array to the elements of combine.h.
#pragma once
#include <node_api.h>

#include "combine.h"

namespace multirail {

/// The numbers of napi_typedarray_type, which is in the same order. False: there are no such elements.
inline bool kindOf(napi_typedarray_type type, CombineKind* kind) {
  static_assert(static_cast<int>(CombineKind::kInt8) == napi_int8_array && static_cast<int>(CombineKind::kUint64) == napi_biguint64_array &&
                static_cast<int>(CombineKind::kUint8Clamped) == napi_uint8_clamped_array &&
                static_cast<int>(CombineKind::kFloat32) == napi_float32_array);
  *kind = static_cast<CombineKind>(type);
  return type >= napi_int8_array && type <= napi_biguint64_array;
}

}  // namespace multirail
