// Combination of arrays: each operation on each kind against one element at a time, at places of any alignment, into either operand, and not
// a byte beyond; wrap-around, NaN, -0 and infinities by known values.
#include "../src/combine/combine.h"

#include <math.h>

#include "../../test/check.h"

using namespace multirail;

namespace {

constexpr size_t kElementsMax = 67;
constexpr int kOps = static_cast<int>(CombineOp::kEnd);
constexpr int kKinds = static_cast<int>(CombineKind::kEnd);

template <typename T>
T one(CombineOp op, CombineKind kind, T a, T b) {
  T c{};
  CHECK(combine(op, kind, reinterpret_cast<uint8_t*>(&a), reinterpret_cast<uint8_t*>(&b), reinterpret_cast<uint8_t*>(&c), 1));
  return c;
}

bool isFloat(CombineKind kind) { return kind == CombineKind::kFloat32 || kind == CombineKind::kFloat64; }

/// Bytes of the exact length, so that the sanitizer sees what is read or written behind the end; they begin at no particular multiple.
struct Block {
  uint8_t* all;
  uint8_t* at;

  Block(size_t bytes, size_t shift) : all(static_cast<uint8_t*>(malloc(bytes + shift))), at(all + shift) {}
  ~Block() { free(all); }
};

bool isNan(CombineKind kind, const uint8_t* at) {
  if (kind == CombineKind::kFloat32) {
    float value;
    memcpy(&value, at, sizeof value);
    return isnan(value);
  }
  double value;
  memcpy(&value, at, sizeof value);
  return isnan(value);
}

/// The same bits; but of two NaN, a sum or product takes the payload of whichever the compiler has put first.
bool sameBits(CombineKind kind, const uint8_t* a, const uint8_t* b, size_t count) {
  const size_t each = combineElementBytes(kind);
  if (!isFloat(kind)) return memcmp(a, b, count * each) == 0;
  for (size_t i = 0; i < count; i++, a += each, b += each) {
    if (memcmp(a, b, each) != 0 && !(isNan(kind, a) && isNan(kind, b))) return false;
  }
  return true;
}

/// A long loop runs in vectors, with what is left over element by element: both give what one element by itself gives.
void againstSingles(CombineOp op, CombineKind kind, size_t count, size_t shift, check::Random& random) {
  const size_t each = combineElementBytes(kind);
  const size_t bytes = count * each;
  Block left(bytes, shift), right(bytes, shift / 2), out(bytes, shift / 3), wanted(bytes, 0);
  for (size_t i = 0; i < bytes; i++) {
    // Every fourth element equal, so that order counts; random bits hold NaN, infinities and numbers of all sizes.
    left.at[i] = static_cast<uint8_t>(random.below(16) == 0 ? 0xff : random.next());
    right.at[i] = i / each % 4 == 0 ? left.at[i] : static_cast<uint8_t>(random.next());
  }
  for (size_t i = 0; i < count; i++) CHECK(combine(op, kind, left.at + i * each, right.at + i * each, wanted.at + i * each, 1));
  CHECK(combine(op, kind, left.at, right.at, out.at, count));
  CHECK(sameBits(kind, out.at, wanted.at, count));
  memcpy(out.at, right.at, bytes);
  CHECK(combine(op, kind, left.at, out.at, out.at, count));
  CHECK(sameBits(kind, out.at, wanted.at, count));
  CHECK(combine(op, kind, left.at, right.at, left.at, count));
  CHECK(sameBits(kind, left.at, wanted.at, count));
}

void integers() {
  using O = CombineOp;
  using K = CombineKind;
  CHECK(one<int8_t>(O::kSum, K::kInt8, 127, 1) == -128);
  CHECK(one<uint8_t>(O::kSum, K::kUint8, 255, 2) == 1);
  CHECK(one<uint8_t>(O::kSum, K::kUint8Clamped, 255, 2) == 255);
  CHECK(one<uint8_t>(O::kProd, K::kUint8Clamped, 16, 16) == 255);
  CHECK(one<uint8_t>(O::kProd, K::kUint8Clamped, 16, 15) == 240);
  CHECK(one<uint8_t>(O::kMin, K::kUint8Clamped, 255, 2) == 2);
  CHECK(one<int16_t>(O::kProd, K::kInt16, -32768, -1) == -32768);
  CHECK(one<uint16_t>(O::kProd, K::kUint16, 65535, 65535) == 1);
  CHECK(one<int32_t>(O::kSum, K::kInt32, INT32_MAX, 1) == INT32_MIN);
  CHECK(one<int32_t>(O::kProd, K::kInt32, 123456789, 987654321) == -67153019);
  CHECK(one<uint32_t>(O::kProd, K::kUint32, 4294967295u, 4294967295u) == 1);
  CHECK(one<int64_t>(O::kSum, K::kInt64, INT64_MAX, 1) == INT64_MIN);
  CHECK(one<int64_t>(O::kProd, K::kInt64, INT64_MIN, -1) == INT64_MIN);
  CHECK(one<uint64_t>(O::kSum, K::kUint64, UINT64_MAX, 1) == 0);
  CHECK(one<int8_t>(O::kMax, K::kInt8, -1, 1) == 1);
  CHECK(one<uint8_t>(O::kMax, K::kUint8, 255, 1) == 255);
  CHECK(one<int64_t>(O::kMin, K::kInt64, -1, 1) == -1);
  CHECK(one<uint64_t>(O::kMin, K::kUint64, UINT64_MAX, 1) == 1);
  CHECK(one<int32_t>(O::kLand, K::kInt32, 256, 512) == 1);
  CHECK(one<int32_t>(O::kLor, K::kInt32, 0, 0) == 0);
  CHECK(one<int32_t>(O::kLxor, K::kInt32, 5, 3) == 0);
  CHECK(one<int32_t>(O::kLxor, K::kInt32, 0, 3) == 1);
  CHECK(one<int16_t>(O::kBand, K::kInt16, 12, 10) == 8);
  CHECK(one<int16_t>(O::kBor, K::kInt16, 12, 10) == 14);
  CHECK(one<int16_t>(O::kBxor, K::kInt16, 12, 10) == 6);
}

template <typename T>
void floats(CombineKind kind) {
  using O = CombineOp;
  const T nan = static_cast<T>(NAN), infinity = static_cast<T>(INFINITY), zero = 0, minusZero = -zero;
  for (int swapped = 0; swapped < 2; swapped++) {
    const auto of = [&](O op, T a, T b) { return swapped == 0 ? one<T>(op, kind, a, b) : one<T>(op, kind, b, a); };
    CHECK(isnan(of(O::kMax, nan, 1)));
    CHECK(isnan(of(O::kMin, nan, -infinity)));
    CHECK(isnan(of(O::kSum, infinity, -infinity)));
    CHECK(isnan(of(O::kProd, infinity, zero)));
    CHECK(!signbit(of(O::kMax, zero, minusZero)) && of(O::kMax, zero, minusZero) == 0);
    CHECK(signbit(of(O::kMin, zero, minusZero)) && of(O::kMin, zero, minusZero) == 0);
    CHECK(!signbit(of(O::kSum, zero, minusZero)));
    CHECK(of(O::kMax, -infinity, -5) == -5);
    CHECK(of(O::kMin, infinity, 5) == 5);
  }
  CHECK(signbit(one<T>(O::kMax, kind, minusZero, minusZero)));
  CHECK(isnan(one<T>(O::kMax, kind, nan, nan)));
  T a = 1, b = 1, c = 7;
  const O integersOnly[] = {O::kLand, O::kLor, O::kLxor, O::kBand, O::kBor, O::kBxor};
  for (const O op : integersOnly) {
    CHECK(!combine(op, kind, reinterpret_cast<uint8_t*>(&a), reinterpret_cast<uint8_t*>(&b), reinterpret_cast<uint8_t*>(&c), 1));
  }
  CHECK(c == 7);
}

}  // namespace

int main() {
  check::Random random{0x9e3779b97f4a7c15ull};
  for (int op = 0; op < kOps; op++) {
    for (int kind = 0; kind < kKinds; kind++) {
      if (isFloat(static_cast<CombineKind>(kind)) && op > static_cast<int>(CombineOp::kMin)) continue;
      for (size_t count = 0; count <= kElementsMax; count++) {
        againstSingles(static_cast<CombineOp>(op), static_cast<CombineKind>(kind), count, count % 16, random);
      }
    }
  }
  integers();
  floats<float>(CombineKind::kFloat32);
  floats<double>(CombineKind::kFloat64);
  CHECK(one<float>(CombineOp::kSum, CombineKind::kFloat32, 16777216.0f, 1.0f) == 16777216.0f);
  CHECK(!combine(CombineOp::kEnd, CombineKind::kInt8, nullptr, nullptr, nullptr, 0));
  return check::finish("combine");
}
