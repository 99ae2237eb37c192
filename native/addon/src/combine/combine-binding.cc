// Combination of arrays in the surface: from JavaScript's arguments to combine.h.
#include "../env.h"
#include "combine.h"
#include "common/napi-args.h"

namespace multirail {
namespace {

// The kinds have the numbers of napi_typedarray_type, which is in the same order.
static_assert(static_cast<int>(CombineKind::kInt8) == napi_int8_array && static_cast<int>(CombineKind::kUint64) == napi_biguint64_array &&
              static_cast<int>(CombineKind::kUint8Clamped) == napi_uint8_clamped_array &&
              static_cast<int>(CombineKind::kFloat32) == napi_float32_array);

/// `count` elements of an array from a place on, where the two stand one after the other.
struct Operand {
  const uint8_t* array;
  size_t place;
  napi_typedarray_type type;

  const uint8_t* at(size_t elementBytes) const { return array + place * elementBytes; }
};

Operand operand(Args<8>& args, int index, const char* name, size_t count) {
  napi_typedarray_type type = napi_int8_array;
  void* data = nullptr;
  size_t length = 0;
  if (napi_get_typedarray_info(args.env, args.at[index], &type, &length, &data, nullptr, nullptr) != napi_ok) {
    args.refuse(name, "a typed array");
  }
  const size_t place = args.size(index + 1, "a place");
  if (args.ok && (place > length || count > length - place)) args.refuse("a place and count", "within the array");
  return {static_cast<const uint8_t*>(data), place, type};
}

/// The two begin at the same place, or lie apart.
bool sameOrApart(const uint8_t* a, const uint8_t* b, size_t bytes) {
  const auto x = reinterpret_cast<uintptr_t>(a), y = reinterpret_cast<uintptr_t>(b);
  return x == y || (x < y ? y - x : x - y) >= bytes;
}

napi_value jsCombine(napi_env env, napi_callback_info info) {
  Args<8> args(env, info);
  const auto op = static_cast<CombineOp>(args.whole(0, "op", 0, static_cast<int>(CombineOp::kEnd) - 1));
  const size_t count = args.size(7, "count");
  const Operand left = operand(args, 1, "left", count), right = operand(args, 3, "right", count), out = operand(args, 5, "out", count);
  CombineKind kind;
  if (args.ok && (!combineKindOf(left.type, &kind) || right.type != left.type || out.type != left.type)) {
    args.refuse("left, right and out", "arrays of the same class");
  }
  if (!args.ok || count == 0) return nullptr;
  const size_t each = combineElementBytes(kind);
  const uint8_t *a = left.at(each), *b = right.at(each);
  auto* c = const_cast<uint8_t*>(out.at(each));
  if (!sameOrApart(a, c, count * each) || !sameOrApart(b, c, count * each)) {
    args.refuse("out", "the memory of an operand at the same place, or apart from both");
  }
  if (args.ok && !combine(op, kind, a, b, c, count)) args.refuse("op", "one that is defined for these arrays");
  return nullptr;
}

constexpr Export kExports[] = {{"combine", jsCombine}};

}  // namespace

Exports combineExports() { return exportsOf(kExports); }

}  // namespace multirail
