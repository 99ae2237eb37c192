// See combine.h. One plain loop for each operation on each kind of element, which the compiler turns into vector instructions: that needs
// -O3 (binding.gyp), and the word that no element depends on another one. Never fast mathematics: every rounding, NaN and -0 is the standard's.
#include "combine.h"

#include <string.h>

#if defined(__clang__)
#define EACH_BY_ITSELF _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define EACH_BY_ITSELF _Pragma("GCC ivdep")
#else
#define EACH_BY_ITSELF
#endif

namespace multirail {
namespace {

// Not <type_traits>: it belongs to the C++ library, which musl's compilers of Debian do not have.
template <bool isEight>
struct UnsignedOf {
  using type = uint32_t;
};
template <>
struct UnsignedOf<true> {
  using type = uint64_t;
};
template <typename T>
using Unsigned = typename UnsignedOf<(sizeof(T) > 4)>::type;

/// What sums and products are computed in: they wrap around, as the arrays do, so no signed kind, and none that is promoted to one.
template <typename T>
struct WideOf {
  using type = Unsigned<T>;
  static constexpr bool isFloating = false;
};
template <>
struct WideOf<float> {
  using type = float;
  static constexpr bool isFloating = true;
};
template <>
struct WideOf<double> {
  using type = double;
  static constexpr bool isFloating = true;
};
template <typename T>
using Wide = typename WideOf<T>::type;

/// JavaScript rounds the double sum, or product, of two floats: the same as rounding once, since 53 bits are at least twice 24 and 2 more.
struct Sum {
  template <typename T>
  static T of(T a, T b) {
    return static_cast<T>(static_cast<Wide<T>>(a) + static_cast<Wide<T>>(b));
  }
};

struct Prod {
  template <typename T>
  static T of(T a, T b) {
    return static_cast<T>(static_cast<Wide<T>>(a) * static_cast<Wide<T>>(b));
  }
};

struct ClampedSum {
  static uint8_t of(uint8_t a, uint8_t b) { return cut(uint32_t{a} + b); }
  static uint8_t cut(uint32_t value) { return static_cast<uint8_t>(value > 255 ? 255 : value); }
};

struct ClampedProd {
  static uint8_t of(uint8_t a, uint8_t b) { return ClampedSum::cut(uint32_t{a} * b); }
};

template <typename To, typename From>
To bitsOf(From value) {
  static_assert(sizeof(To) == sizeof(From));
  To bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

/// Of equal numbers only zeros differ in their bits: in the sign, which one of the two ways of putting them together keeps.
template <typename T, bool wantsMost>
T extreme(T a, T b) {
  if constexpr (WideOf<T>::isFloating) {
    using Bits = Unsigned<T>;
    const Bits left = bitsOf<Bits>(a), right = bitsOf<Bits>(b);
    const bool isLeft = wantsMost ? a > b : a < b;
    // Where b is no number it is taken here, since no comparison holds; where a is none, below.
    Bits bits = isLeft ? left : right;
    bits = a == b ? (wantsMost ? left & right : left | right) : bits;
    bits = a != a ? left : bits;
    return bitsOf<T>(bits);
  } else {
    return (wantsMost ? a > b : a < b) ? a : b;
  }
}

struct Max {
  template <typename T>
  static T of(T a, T b) {
    return extreme<T, true>(a, b);
  }
};

struct Min {
  template <typename T>
  static T of(T a, T b) {
    return extreme<T, false>(a, b);
  }
};

struct Land {
  template <typename T>
  static T of(T a, T b) {
    return static_cast<T>((a != 0) & (b != 0));
  }
};

struct Lor {
  template <typename T>
  static T of(T a, T b) {
    return static_cast<T>((a != 0) | (b != 0));
  }
};

struct Lxor {
  template <typename T>
  static T of(T a, T b) {
    return static_cast<T>((a != 0) != (b != 0));
  }
};

struct Band {
  template <typename T>
  static T of(T a, T b) {
    return static_cast<T>(a & b);
  }
};

struct Bor {
  template <typename T>
  static T of(T a, T b) {
    return static_cast<T>(a | b);
  }
};

struct Bxor {
  template <typename T>
  static T of(T a, T b) {
    return static_cast<T>(a ^ b);
  }
};

using Loop = void (*)(const uint8_t* left, const uint8_t* right, uint8_t* out, size_t count);

template <typename Operation, typename T>
void loop(const uint8_t* left, const uint8_t* right, uint8_t* out, size_t count) {
  EACH_BY_ITSELF
  for (size_t i = 0; i < count; i++) {
    T a, b;
    memcpy(&a, left + i * sizeof(T), sizeof(T));
    memcpy(&b, right + i * sizeof(T), sizeof(T));
    const T c = Operation::of(a, b);
    memcpy(out + i * sizeof(T), &c, sizeof(T));
  }
}

template <typename Operation>
Loop ofIntegers(CombineKind kind) {
  switch (kind) {
    case CombineKind::kInt8:
      return loop<Operation, int8_t>;
    case CombineKind::kUint8:
    case CombineKind::kUint8Clamped:
      return loop<Operation, uint8_t>;
    case CombineKind::kInt16:
      return loop<Operation, int16_t>;
    case CombineKind::kUint16:
      return loop<Operation, uint16_t>;
    case CombineKind::kInt32:
      return loop<Operation, int32_t>;
    case CombineKind::kUint32:
      return loop<Operation, uint32_t>;
    case CombineKind::kInt64:
      return loop<Operation, int64_t>;
    case CombineKind::kUint64:
      return loop<Operation, uint64_t>;
    default:
      return nullptr;
  }
}

template <typename Operation>
Loop ofNumbers(CombineKind kind) {
  if (kind == CombineKind::kFloat32) return loop<Operation, float>;
  if (kind == CombineKind::kFloat64) return loop<Operation, double>;
  return ofIntegers<Operation>(kind);
}

Loop loopOf(CombineOp op, CombineKind kind) {
  const bool isClamped = kind == CombineKind::kUint8Clamped;
  switch (op) {
    case CombineOp::kSum:
      return isClamped ? loop<ClampedSum, uint8_t> : ofNumbers<Sum>(kind);
    case CombineOp::kProd:
      return isClamped ? loop<ClampedProd, uint8_t> : ofNumbers<Prod>(kind);
    case CombineOp::kMax:
      return ofNumbers<Max>(kind);
    case CombineOp::kMin:
      return ofNumbers<Min>(kind);
    case CombineOp::kLand:
      return ofIntegers<Land>(kind);
    case CombineOp::kLor:
      return ofIntegers<Lor>(kind);
    case CombineOp::kLxor:
      return ofIntegers<Lxor>(kind);
    case CombineOp::kBand:
      return ofIntegers<Band>(kind);
    case CombineOp::kBor:
      return ofIntegers<Bor>(kind);
    case CombineOp::kBxor:
      return ofIntegers<Bxor>(kind);
    default:
      return nullptr;
  }
}

}  // namespace

bool combineKindOf(int number, CombineKind* kind) {
  *kind = static_cast<CombineKind>(number);
  return number >= 0 && number < static_cast<int>(CombineKind::kEnd);
}

size_t combineElementBytes(CombineKind kind) {
  switch (kind) {
    case CombineKind::kInt8:
    case CombineKind::kUint8:
    case CombineKind::kUint8Clamped:
      return 1;
    case CombineKind::kInt16:
    case CombineKind::kUint16:
      return 2;
    case CombineKind::kInt32:
    case CombineKind::kUint32:
    case CombineKind::kFloat32:
      return 4;
    default:
      return 8;
  }
}

bool canCombine(CombineOp op, CombineKind kind) { return loopOf(op, kind) != nullptr; }

bool combine(CombineOp op, CombineKind kind, const uint8_t* left, const uint8_t* right, uint8_t* out, size_t count) {
  const Loop run = loopOf(op, kind);
  if (run != nullptr) run(left, right, out, count);
  return run != nullptr;
}

}  // namespace multirail
