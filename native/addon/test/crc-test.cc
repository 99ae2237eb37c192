// CRC32C: known values, every length and alignment against a bit by bit reference, continued inputs, both implementations.
#include "../src/crc/crc32c.h"

#include "../../test/check.h"
#include "../src/crc/crc-fold.h"

using namespace multirail;

namespace {

uint32_t reference(uint32_t crc, const uint8_t* data, size_t length) {
  crc = ~crc;
  while (length-- > 0) {
    crc ^= *data++;
    for (int bit = 0; bit < 8; bit++) crc = (crc & 1) != 0 ? (crc >> 1) ^ 0x82f63b78u : crc >> 1;
  }
  return ~crc;
}

uint32_t each(uint32_t (*function)(uint32_t, const uint8_t*, size_t), uint32_t crc, const uint8_t* data, size_t length) {
  // A block of the exact length, so that the sanitizer sees a read behind its end.
  auto* copy = static_cast<uint8_t*>(malloc(length == 0 ? 1 : length));
  memcpy(copy, data, length);
  const uint32_t answer = function(crc, copy, length);
  free(copy);
  return answer;
}

}  // namespace

int main() {
  check::Random random{0x9e3779b97f4a7c15ull};
  constexpr size_t kBytes = 64 * 1024;
  static uint8_t data[kBytes + 16];
  for (uint8_t& byte : data) byte = static_cast<uint8_t>(random.next());
  printf("crc: instruction %s, folding %s\n", crc32cHasInstruction() ? "yes" : "no", crcFoldIsThere() ? "yes" : "no");

  CHECK(crc32c(0, reinterpret_cast<const uint8_t*>("123456789"), 9) == 0xe3069283u);
  CHECK(crc32cByTable(0, reinterpret_cast<const uint8_t*>("123456789"), 9) == 0xe3069283u);
  const uint8_t zeros[32] = {};
  CHECK(crc32c(0, zeros, 32) == 0x8a9136aau);  // RFC 3720 B.4
  CHECK(crc32c(0x12345678u, nullptr, 0) == 0x12345678u);

  for (size_t length = 0; length <= 4096; length += length < 300 ? 1 : 37) {
    for (size_t offset = 0; offset < 16; offset += length < 300 ? 1 : 5) {
      const uint32_t seed = random.next();
      const uint32_t expected = reference(seed, data + offset, length);
      CHECK(crc32cByFolding(seed, data + offset, length) == expected);
      CHECK(crc32cByInstruction(seed, data + offset, length) == expected);
      CHECK(crc32cByTable(seed, data + offset, length) == expected);
    }
    CHECK(each(crc32cByFolding, 0, data, length) == reference(0, data, length));
    CHECK(each(crc32cByInstruction, 0, data, length) == reference(0, data, length));
    CHECK(each(crc32cByTable, 0, data, length) == reference(0, data, length));
  }
  // Around the borders of the blocks that are folded, and of the three streams.
  const size_t borders[] = {256, 512, 768, 1024, 1536, 12288, 24576, 12288 + 768, kBytes};
  for (const size_t border : borders) {
    for (size_t length = border - 9; length <= border + 9 && length <= kBytes; length++) {
      const size_t begin = length & 7;
      const uint32_t expected = reference(7, data + begin, length - begin);
      CHECK(crc32cByFolding(7, data + begin, length - begin) == expected);
      CHECK(crc32cByInstruction(7, data + begin, length - begin) == expected);
    }
  }
  for (int round = 0; round < 300; round++) {
    const size_t length = random.below(30000);
    const size_t cut = length == 0 ? 0 : random.below(static_cast<unsigned>(length) + 1);
    CHECK(crc32c(crc32c(0, data, cut), data + cut, length - cut) == crc32c(0, data, length));
    CHECK(crc32cByTable(crc32c(0, data, cut), data + cut, length - cut) == crc32c(0, data, length));
  }
  return check::finish("crc");
}
