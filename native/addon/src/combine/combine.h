// Element-wise combination of two arrays, `out = left operation right`: the results of the JavaScript loops of src/mpi/coll/kernels.ts, bit for
// bit (but for the payload of a NaN). No Node headers. May be called from any thread.
#pragma once
#include <stddef.h>
#include <stdint.h>

namespace multirail {

/// COMBINE of src/native/binding.ts.
enum class CombineOp { kSum, kProd, kMax, kMin, kLand, kLor, kLxor, kBand, kBor, kBxor, kEnd };

/// Elements of a typed array; kUint8Clamped cuts sums and products at 255, the other integers wrap around.
enum class CombineKind {
  kInt8,
  kUint8,
  kUint8Clamped,
  kInt16,
  kUint16,
  kInt32,
  kUint32,
  kFloat32,
  kFloat64,
  kInt64,
  kUint64,
  kEnd,
};

/// The kind with that number. False: there is none.
bool combineKindOf(int number, CombineKind* kind);

size_t combineElementBytes(CombineKind kind);

/// Whether the operation is defined for these elements.
bool canCombine(CombineOp op, CombineKind kind);

/**
 * `count` elements at each of the three places, which need no alignment. `out` is the memory of an operand at the same place, or shares none
 * with it. False when the operation is not defined for these elements (logical and bitwise ones of floats): nothing is written then.
 */
bool combine(CombineOp op, CombineKind kind, const uint8_t* left, const uint8_t* right, uint8_t* out, size_t count);

}  // namespace multirail
