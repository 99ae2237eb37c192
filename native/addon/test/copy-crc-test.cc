// Copies with their checksum: every length and alignment against memcpy and the checksum alone, and not a byte beside; those that are long
// enough to be written past the caches, around the borders of their pieces.
#include "../src/crc/copy-crc.h"

#include "../../test/check.h"
#include "../src/crc/crc32c.h"

using namespace multirail;

namespace {

constexpr uint8_t kUntouched = 0xa5;
constexpr size_t kAround = 16;

/// `source` is in memory of its exact length, so that the sanitizer sees a read behind its end; so is the target with what is around it.
void expectCopy(const uint8_t* data, size_t length, size_t sourceShift, size_t targetShift, uint32_t crc) {
  auto* from = static_cast<uint8_t*>(malloc(sourceShift + length + (sourceShift + length == 0)));
  auto* to = static_cast<uint8_t*>(malloc(targetShift + length + kAround));
  memcpy(from + sourceShift, data, length);
  memset(to, kUntouched, targetShift + length + kAround);
  CHECK(copyCrc32c(crc, to + targetShift, from + sourceShift, length) == crc32cByTable(crc, data, length));
  CHECK(memcmp(to + targetShift, data, length) == 0);
  for (size_t i = 0; i < targetShift; i++) CHECK(to[i] == kUntouched);
  for (size_t i = 0; i < kAround; i++) CHECK(to[targetShift + length + i] == kUntouched);
  free(from);
  free(to);
}

}  // namespace

int main() {
  check::Random random{0x2545f4914f6cdd1dull};
  constexpr size_t kPastCaches = 1024 * 1024;
  constexpr size_t kPiece = 24 * 1024;
  constexpr size_t kBytes = kPastCaches + 3 * kPiece;
  static uint8_t data[kBytes];
  for (uint8_t& byte : data) byte = static_cast<uint8_t>(random.next());

  CHECK(copyCrc32c(5, nullptr, nullptr, 0) == 5);
  for (size_t length = 0; length <= 300; length++) {
    for (size_t shift = 0; shift < 16; shift++) expectCopy(data + shift, length, shift, (shift * 7 + length) % 16, random.next());
  }
  const size_t borders[] = {kPiece, 2 * kPiece, kPastCaches, kPastCaches + 64, kPastCaches + 2 * kPiece};
  for (const size_t border : borders) {
    for (size_t length = border - 3; length <= border + 3; length++) {
      expectCopy(data, length, random.below(16), random.below(64), random.next());
    }
  }
  for (int round = 0; round < 20; round++) {
    expectCopy(data, random.below(static_cast<unsigned>(kBytes)), random.below(64), random.below(64), random.next());
  }
  return check::finish("copy-crc");
}
