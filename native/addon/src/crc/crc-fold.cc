// See crc-fold.h. After V. Gopal et al., "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ Instruction" (Intel, 2009), in its form for
// reflected CRCs: bytes that lie n bits further on are congruent to the bytes here times x^n modulo the polynomial. So the two halves of 16
// bytes are multiplied by constants of 32 bits and added to the 16 bytes that many bits further on; four registers of 64 bytes run at the
// same time. Of the last 16 bytes the instruction for CRC32C makes the value.
#include "crc-fold.h"

#if defined(__x86_64__)
#include <immintrin.h>
#define FOLD_INSTRUCTIONS __attribute__((target("avx512f,vpclmulqdq,pclmul,sse4.2")))
#endif

namespace multirail {

#if defined(__x86_64__)
namespace {

/// x^n modulo the polynomial, its bits in reverse; one place to the left, since the product of two reversed numbers lies one place to the right.
constexpr uint64_t powerOfX(unsigned n) {
  uint32_t value = 1;
  for (unsigned i = 0; i < n; i++) value = (value << 1) ^ ((value >> 31) != 0 ? 0x1edc6f41u : 0u);
  uint32_t reversed = 0;
  for (int bit = 0; bit < 32; bit++) {
    if ((value >> bit & 1) != 0) reversed |= 1u << (31 - bit);
  }
  return static_cast<uint64_t>(reversed) << 1;
}

/// The lower half lies 64 bits before the upper one; each product has 32 bits more than its half.
template <unsigned kBits>
struct Constants {
  static constexpr uint64_t kLower = powerOfX(kBits + 32);
  static constexpr uint64_t kUpper = powerOfX(kBits - 32);
};

template <unsigned kBits>
FOLD_INSTRUCTIONS inline __m512i fold64(__m512i value, __m512i next) {
  using C = Constants<kBits>;
  const __m512i by = _mm512_set_epi64(C::kUpper, C::kLower, C::kUpper, C::kLower, C::kUpper, C::kLower, C::kUpper, C::kLower);
  constexpr int kXorOfThree = 0x96;
  return _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(value, by, 0x00), _mm512_clmulepi64_epi128(value, by, 0x11), next, kXorOfThree);
}

FOLD_INSTRUCTIONS inline __m128i fold16(__m128i value, __m128i next) {
  using C = Constants<128>;
  const __m128i by = _mm_set_epi64x(C::kUpper, C::kLower);
  return _mm_xor_si128(_mm_xor_si128(_mm_clmulepi64_si128(value, by, 0x00), _mm_clmulepi64_si128(value, by, 0x11)), next);
}

}  // namespace

bool crcFoldIsThere() { return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("vpclmulqdq"); }

FOLD_INSTRUCTIONS uint32_t crcFold(uint32_t state, const uint8_t* data, size_t length) {
  const __m512i begin = _mm512_zextsi128_si512(_mm_cvtsi32_si128(static_cast<int>(state)));
  __m512i a = _mm512_xor_si512(_mm512_loadu_si512(data), begin);
  __m512i b = _mm512_loadu_si512(data + 64), c = _mm512_loadu_si512(data + 128), d = _mm512_loadu_si512(data + 192);
  for (size_t at = kFoldBlockBytes; at < length; at += kFoldBlockBytes) {
    a = fold64<2048>(a, _mm512_loadu_si512(data + at));
    b = fold64<2048>(b, _mm512_loadu_si512(data + at + 64));
    c = fold64<2048>(c, _mm512_loadu_si512(data + at + 128));
    d = fold64<2048>(d, _mm512_loadu_si512(data + at + 192));
  }
  d = fold64<512>(fold64<512>(fold64<512>(a, b), c), d);
  // Not by the intrinsics for parts of a register, which warn of their own headers in some compilers.
  alignas(64) __m128i parts[4];
  _mm512_store_si512(parts, d);
  const __m128i last = fold16(fold16(fold16(parts[0], parts[1]), parts[2]), parts[3]);
  const auto lower = static_cast<uint64_t>(_mm_cvtsi128_si64(last)), upper = static_cast<uint64_t>(_mm_extract_epi64(last, 1));
  return static_cast<uint32_t>(_mm_crc32_u64(_mm_crc32_u64(0, lower), upper));
}

#else

bool crcFoldIsThere() { return false; }

uint32_t crcFold(uint32_t state, const uint8_t*, size_t) { return state; }

#endif

}  // namespace multirail
