// Sealing and scanning of frames: sound ones, cut ones, every bit flipped, and bytes of chance. Buffers have their exact size, so that
// the sanitizer sees every step outside.
#include "../src/crc/frames.h"

#include "../../test/check.h"
#include "../src/crc/crc32c.h"

using namespace multirail;

namespace {

struct Buffer {
  uint8_t* data;
  size_t length;
  explicit Buffer(size_t bytes) : data(static_cast<uint8_t*>(calloc(bytes == 0 ? 1 : bytes, 1))), length(bytes) {}
  ~Buffer() { free(data); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
};

void header(uint8_t* at, unsigned packetHeaderBytes, unsigned payloadBytes) {
  at[0] = 1;
  at[1] = 1;
  at[4] = static_cast<uint8_t>(packetHeaderBytes);
  at[5] = static_cast<uint8_t>(packetHeaderBytes >> 8);
  at[6] = 0x4d;
  at[7] = 0x52;
  for (int i = 0; i < 4; i++) at[8 + i] = static_cast<uint8_t>(payloadBytes >> (8 * i));
}

void copyOf(const Buffer& from, size_t length, Buffer* into) { memcpy(into->data, from.data, length); }

void soundFrames() {
  Buffer buffer(40 + 8 + 100 + 40 + 40 + 16);
  header(buffer.data, 8, 100);
  header(buffer.data + 148, 0, 0);
  header(buffer.data + 188, 16, 5000);
  for (int i = 0; i < 8; i++) buffer.data[40 + i] = static_cast<uint8_t>(i);
  CHECK(frameScan(buffer.data, 0, buffer.length) == 0);
  CHECK(frameSeal(buffer.data, 0, buffer.length, 1000));
  uint8_t covered[44];
  memcpy(covered, buffer.data, 36);
  memcpy(covered + 36, buffer.data + 40, 8);
  const uint32_t crc = crc32c(0, covered, 44);
  for (int i = 0; i < 4; i++) CHECK(buffer.data[36 + i] == static_cast<uint8_t>(crc >> (8 * i)));
  // The last payload is not there: the end lies behind the buffer.
  CHECK(frameScan(buffer.data, 0, buffer.length) == buffer.length + 5000);
  CHECK(frameScan(buffer.data, 148, buffer.length) == buffer.length + 5000);
  CHECK(frameScan(buffer.data, 0, 148) == 148);
  CHECK(frameScan(buffer.data, 1, buffer.length) == 1);
  CHECK(frameScan(buffer.data, buffer.length, buffer.length) == buffer.length);

  // Cut anywhere: the answer is the end of the last header that is whole.
  for (size_t cut = 0; cut <= buffer.length; cut++) {
    Buffer part(cut);
    copyOf(buffer, cut, &part);
    const uint64_t expected = cut < 48 ? 0 : cut < 188 ? 148 : cut < 244 ? 188 : 244 + 5000;
    CHECK(frameScan(part.data, 0, cut) == expected);
  }

  // Any flipped bit of a header or packet header is found; one in a payload is not looked at.
  for (size_t bit = 0; bit < buffer.length * 8; bit++) {
    Buffer flipped(buffer.length);
    copyOf(buffer, buffer.length, &flipped);
    flipped.data[bit / 8] ^= static_cast<uint8_t>(1u << (bit % 8));
    const size_t at = bit / 8;
    const uint64_t expected = at < 48 ? 0 : at < 148 ? 244 + 5000 : at < 188 ? 148 : 188;
    CHECK(frameScan(flipped.data, 0, flipped.length) == expected);
  }
}

/// A header whose CRC is right, but that another version or somebody else wrote.
void strangers() {
  const size_t offsets[] = {0, 6, 7};
  for (const size_t at : offsets) {
    Buffer buffer(40);
    header(buffer.data, 0, 0);
    buffer.data[at]++;
    CHECK(frameSeal(buffer.data, 0, 40, 0));
    CHECK(frameScan(buffer.data, 0, 40) == 0);
    buffer.data[at]--;
    CHECK(frameSeal(buffer.data, 0, 40, 0));
    CHECK(frameScan(buffer.data, 0, 40) == 40);
  }
}

void wrongSeals() {
  Buffer buffer(100);
  header(buffer.data, 60, 0);
  CHECK(frameSeal(buffer.data, 0, 100, 0));
  CHECK(!frameSeal(buffer.data, 0, 99, 0));
  CHECK(!frameSeal(buffer.data, 0, 39, 0));
  CHECK(frameSeal(buffer.data, 50, 50, 0));
  header(buffer.data, 0xffff, 0);
  CHECK(!frameSeal(buffer.data, 0, 100, 0));
  header(buffer.data, 60, 1);
  CHECK(frameSeal(buffer.data, 0, 100, 0));
  CHECK(!frameSeal(buffer.data, 0, 100, 1));
  header(buffer.data, 60, 0xffffffffu);
  CHECK(!frameSeal(buffer.data, 0, 100, 0xffffffffffffull));
  CHECK(frameSeal(buffer.data, 0, 100, 0xfffffffeull));
}

void chance() {
  check::Random random{42};
  for (int round = 0; round < 20000; round++) {
    Buffer buffer(random.below(400));
    for (size_t i = 0; i < buffer.length; i++) buffer.data[i] = static_cast<uint8_t>(random.next());
    // Mostly plausible beginnings, so that the lengths are believed.
    if (buffer.length >= 40 && random.below(4) != 0)
      header(buffer.data, random.below(300), random.below(4) == 0 ? random.next() : random.below(300));
    const size_t from = random.below(4) == 0 ? random.below(static_cast<unsigned>(buffer.length) + 1) : 0;
    const size_t to = from + random.below(static_cast<unsigned>(buffer.length - from) + 1);
    CHECK(frameScan(buffer.data, from, to) >= from);
    const bool sealed = frameSeal(buffer.data, from, to, random.below(300));
    CHECK(sealed || to > from);
  }
  // Whole streams of chance: what was sealed is found to the last frame.
  for (int round = 0; round < 2000; round++) {
    size_t lengths[20];
    size_t total = 0;
    const unsigned count = 1 + random.below(20);
    for (unsigned i = 0; i < count; i++) total += lengths[i] = 40 + random.below(64) + random.below(200);
    Buffer buffer(total);
    size_t at = 0;
    for (unsigned i = 0; i < count; i++) {
      const unsigned packet = random.below(static_cast<unsigned>(lengths[i]) - 39);
      header(buffer.data + at, packet, static_cast<unsigned>(lengths[i]) - 40 - packet);
      at += lengths[i];
    }
    CHECK(frameSeal(buffer.data, 0, total, 0xffffffffull));
    CHECK(frameScan(buffer.data, 0, total) == total);
  }
}

}  // namespace

int main() {
  soundFrames();
  strangers();
  wrongSeals();
  chance();
  return check::finish("frames");
}
