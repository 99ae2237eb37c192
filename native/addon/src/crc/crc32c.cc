// See crc32c.h. The instruction takes three cycles and can be begun in each, so long inputs are cut in three streams that run at the
// same time; the first two values are then moved over the bytes behind them by a table of the operator "append n zero bytes".
#include "crc32c.h"

#include <string.h>

#include "crc-fold.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <nmmintrin.h>
#define CRC_INSTRUCTION __attribute__((target("sse4.2")))
#elif defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#define CRC_INSTRUCTION __attribute__((target("+crc")))
#endif

namespace multirail {
namespace {

/// Reflected polynomial of CRC32C.
constexpr uint32_t kPolynomial = 0x82f63b78;

/// Bytes per stream: long enough that moving the values costs little, short enough that packets profit too.
constexpr size_t kLongBytes = 4096;
constexpr size_t kShortBytes = 256;

/// Tables of slicing-by-8: [k][byte] is the effect of a byte that lies k bytes further back.
struct ByteTables {
  uint32_t at[8][256];
};

constexpr ByteTables makeByteTables() {
  ByteTables tables{};
  for (uint32_t byte = 0; byte < 256; byte++) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; bit++) crc = (crc & 1) != 0 ? (crc >> 1) ^ kPolynomial : crc >> 1;
    tables.at[0][byte] = crc;
  }
  for (uint32_t byte = 0; byte < 256; byte++) {
    for (int k = 1; k < 8; k++) {
      const uint32_t previous = tables.at[k - 1][byte];
      tables.at[k][byte] = (previous >> 8) ^ tables.at[0][previous & 0xff];
    }
  }
  return tables;
}

constexpr ByteTables kBytes = makeByteTables();

#if defined(CRC_INSTRUCTION)

/// The operator "append n zero bytes": [k][byte] is what it makes of byte k of the value.
struct ShiftTable {
  uint32_t at[4][256];
};

/// A linear operator on the 32 bits of a value: what it makes of each bit.
struct Matrix {
  uint32_t column[32];
};

constexpr uint32_t times(const Matrix& matrix, uint32_t vector) {
  uint32_t sum = 0;
  for (int bit = 0; vector != 0; bit++, vector >>= 1) {
    if ((vector & 1) != 0) sum ^= matrix.column[bit];
  }
  return sum;
}

constexpr Matrix squared(const Matrix& matrix) {
  Matrix square{};
  for (int bit = 0; bit < 32; bit++) square.column[bit] = times(matrix, matrix.column[bit]);
  return square;
}

/// `bytes` is a power of two.
constexpr ShiftTable makeShiftTable(size_t bytes) {
  Matrix matrix{};  // one zero bit
  matrix.column[0] = kPolynomial;
  for (int bit = 1; bit < 32; bit++) matrix.column[bit] = 1u << (bit - 1);
  for (size_t bits = 1; bits < 8 * bytes; bits *= 2) matrix = squared(matrix);
  ShiftTable table{};
  for (uint32_t byte = 0; byte < 256; byte++) {
    for (int k = 0; k < 4; k++) table.at[k][byte] = times(matrix, byte << (8 * k));
  }
  return table;
}

constexpr ShiftTable kShiftLong = makeShiftTable(kLongBytes);
constexpr ShiftTable kShiftShort = makeShiftTable(kShortBytes);

inline uint32_t shift(const ShiftTable& table, uint32_t crc) {
  return table.at[0][crc & 0xff] ^ table.at[1][(crc >> 8) & 0xff] ^ table.at[2][(crc >> 16) & 0xff] ^ table.at[3][crc >> 24];
}

#if defined(__x86_64__)
CRC_INSTRUCTION inline uint32_t step1(uint32_t crc, uint8_t byte) { return _mm_crc32_u8(crc, byte); }
CRC_INSTRUCTION inline uint64_t step8(uint64_t crc, uint64_t word) { return _mm_crc32_u64(crc, word); }

bool askProcessor() {
  unsigned a, b, c, d;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_SSE4_2) != 0;
}
#else
CRC_INSTRUCTION inline uint32_t step1(uint32_t crc, uint8_t byte) { return __builtin_aarch64_crc32cb(crc, byte); }
CRC_INSTRUCTION inline uint64_t step8(uint64_t crc, uint64_t word) { return __builtin_aarch64_crc32cx(static_cast<uint32_t>(crc), word); }

bool askProcessor() {
  constexpr unsigned long kHwcapCrc32 = 1ul << 7;
  return (getauxval(AT_HWCAP) & kHwcapCrc32) != 0;
}
#endif

inline uint64_t wordAt(const uint8_t* data) {
  uint64_t word;
  memcpy(&word, data, sizeof word);
  return word;
}

/// Blocks of three streams while there are enough bytes; moves `data` and `length` behind them.
template <size_t kStream>
CRC_INSTRUCTION inline uint32_t threeStreams(uint32_t crc, const uint8_t*& data, size_t& length, const ShiftTable& table) {
  while (length >= 3 * kStream) {
    // 64 bits wide as the instruction's operands are, or each step would pay for a conversion.
    uint64_t first = crc;
    uint64_t second = 0;
    uint64_t third = 0;
    for (size_t i = 0; i < kStream; i += 8) {
      first = step8(first, wordAt(data + i));
      second = step8(second, wordAt(data + kStream + i));
      third = step8(third, wordAt(data + 2 * kStream + i));
    }
    crc = shift(table, static_cast<uint32_t>(first)) ^ static_cast<uint32_t>(second);
    crc = shift(table, crc) ^ static_cast<uint32_t>(third);
    data += 3 * kStream;
    length -= 3 * kStream;
  }
  return crc;
}

CRC_INSTRUCTION uint32_t byInstruction(uint32_t crc, const uint8_t* data, size_t length) {
  crc = ~crc;
  // Words that cross no cache line.
  for (; length > 0 && (reinterpret_cast<uintptr_t>(data) & 7) != 0; length--) crc = step1(crc, *data++);
  crc = threeStreams<kLongBytes>(crc, data, length, kShiftLong);
  crc = threeStreams<kShortBytes>(crc, data, length, kShiftShort);
  uint64_t wide = crc;
  for (; length >= 8; length -= 8, data += 8) wide = step8(wide, wordAt(data));
  crc = static_cast<uint32_t>(wide);
  for (; length > 0; length--) crc = step1(crc, *data++);
  return ~crc;
}

#endif  // CRC_INSTRUCTION

/// The answer of `ask`, which does not change. Two threads may both ask; they get the same answer.
template <bool (*ask)()>
bool askedOnce() {
  // 0 = not asked yet, 1 = no, 2 = yes.
  static int known = 0;
  int now = __atomic_load_n(&known, __ATOMIC_RELAXED);
  if (now == 0) {
    now = ask() ? 2 : 1;
    __atomic_store_n(&known, now, __ATOMIC_RELAXED);
  }
  return now == 2;
}

}  // namespace

uint32_t crc32cByTable(uint32_t crc, const uint8_t* data, size_t length) {
  const auto& t = kBytes.at;
  crc = ~crc;
  for (; length >= 8; length -= 8, data += 8) {
    // Bytes one by one, so that the order of bytes of the processor does not matter.
    crc ^= static_cast<uint32_t>(data[0]) | static_cast<uint32_t>(data[1]) << 8 | static_cast<uint32_t>(data[2]) << 16 |
           static_cast<uint32_t>(data[3]) << 24;
    crc = t[7][crc & 0xff] ^ t[6][(crc >> 8) & 0xff] ^ t[5][(crc >> 16) & 0xff] ^ t[4][crc >> 24] ^ t[3][data[4]] ^ t[2][data[5]] ^
          t[1][data[6]] ^ t[0][data[7]];
  }
  for (; length > 0; length--) crc = (crc >> 8) ^ t[0][(crc ^ *data++) & 0xff];
  return ~crc;
}

bool crc32cHasInstruction() {
#if defined(CRC_INSTRUCTION)
  return askedOnce<askProcessor>();
#else
  return false;
#endif
}

uint32_t crc32cByInstruction(uint32_t crc, const uint8_t* data, size_t length) {
#if defined(CRC_INSTRUCTION)
  if (crc32cHasInstruction()) return byInstruction(crc, data, length);
#endif
  return crc32cByTable(crc, data, length);
}

uint32_t crc32cByFolding(uint32_t crc, const uint8_t* data, size_t length) {
  const size_t blocks = length / kFoldBlockBytes * kFoldBlockBytes;
  if (blocks == 0 || !askedOnce<crcFoldIsThere>()) return crc32cByInstruction(crc, data, length);
  return crc32cByInstruction(~crcFold(~crc, data, blocks), data + blocks, length - blocks);
}

uint32_t crc32c(uint32_t crc, const uint8_t* data, size_t length) { return crc32cByFolding(crc, data, length); }

}  // namespace multirail
