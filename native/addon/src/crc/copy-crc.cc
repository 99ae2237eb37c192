// See copy-crc.h. The bytes are taken piece by piece: the checksum brings a piece into the first cache, and the copy finds it there. What is
// longer than a cache is written past the caches: memory that is overwritten whole need not be read first.
#include "copy-crc.h"

#include <string.h>

#include "crc32c.h"

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace multirail {
namespace {

/// Fits into a first cache of 32 KiB, and is two blocks of the three streams of crc32c.cc.
constexpr size_t kPieceBytes = 24 * 1024;

#if defined(__x86_64__)

/// A copy of that length would push out of the caches more than it leaves there for whoever reads it next.
constexpr size_t kPastCachesBytesMin = 1024 * 1024;
constexpr size_t kLineBytes = 64;

/// `target` and `length` are whole cache lines, each of which leaves the processor at once.
void copyPastCaches(uint8_t* target, const uint8_t* source, size_t length) {
  for (size_t at = 0; at < length; at += kLineBytes) {
    const auto* from = reinterpret_cast<const __m128i*>(source + at);
    auto* to = reinterpret_cast<__m128i*>(target + at);
    const __m128i a = _mm_loadu_si128(from), b = _mm_loadu_si128(from + 1), c = _mm_loadu_si128(from + 2), d = _mm_loadu_si128(from + 3);
    _mm_stream_si128(to, a);
    _mm_stream_si128(to + 1, b);
    _mm_stream_si128(to + 2, c);
    _mm_stream_si128(to + 3, d);
  }
}

#endif

uint32_t copyThroughCaches(uint32_t crc, uint8_t* target, const uint8_t* source, size_t length) {
  for (size_t at = 0; at < length; at += kPieceBytes) {
    const size_t piece = length - at < kPieceBytes ? length - at : kPieceBytes;
    crc = crc32c(crc, source + at, piece);
    memcpy(target + at, source + at, piece);
  }
  return crc;
}

}  // namespace

uint32_t copyCrc32c(uint32_t crc, uint8_t* target, const uint8_t* source, size_t length) {
#if defined(__x86_64__)
  if (length >= kPastCachesBytesMin) {
    const size_t head = (kLineBytes - (reinterpret_cast<uintptr_t>(target) & (kLineBytes - 1))) & (kLineBytes - 1);
    const size_t lines = (length - head) / kLineBytes * kLineBytes;
    crc = copyThroughCaches(crc, target, source, head);
    for (size_t at = head; at < head + lines; at += kPieceBytes) {
      const size_t piece = head + lines - at < kPieceBytes ? head + lines - at : kPieceBytes;
      crc = crc32c(crc, source + at, piece);
      copyPastCaches(target + at, source + at, piece);
    }
    // Whoever is told of the copy after this sees all of it, on other processors too.
    _mm_sfence();
    return copyThroughCaches(crc, target + head + lines, source + head + lines, length - head - lines);
  }
#endif
  return copyThroughCaches(crc, target, source, length);
}

}  // namespace multirail
