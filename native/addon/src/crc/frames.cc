// See frames.h.
#include "frames.h"

#include "crc32c.h"
#include "frame-layout.h"

namespace multirail {
namespace {

uint32_t u16At(const uint8_t* data) { return static_cast<uint32_t>(data[0]) | static_cast<uint32_t>(data[1]) << 8; }
uint32_t u32At(const uint8_t* data) { return u16At(data) | u16At(data + 2) << 16; }

uint32_t headerCrc(const uint8_t* frame, size_t packetHeaderBytes) {
  const uint32_t crc = crc32c(0, frame, kOffsetHeaderCrc);
  return packetHeaderBytes == 0 ? crc : crc32c(crc, frame + kFrameHeaderBytes, packetHeaderBytes);
}

}  // namespace

bool frameSeal(uint8_t* data, size_t from, size_t to, uint64_t inlinePayloadMax) {
  while (from < to) {
    const size_t left = to - from;
    uint8_t* frame = data + from;
    if (left < kFrameHeaderBytes) return false;
    const size_t packetHeaderBytes = u16At(frame + kOffsetPacketHeaderBytes);
    const uint64_t payloadBytes = u32At(frame + kOffsetPayloadBytes);
    const uint64_t bytes = kFrameHeaderBytes + packetHeaderBytes + (payloadBytes <= inlinePayloadMax ? payloadBytes : 0);
    if (bytes > left) return false;
    const uint32_t crc = headerCrc(frame, packetHeaderBytes);
    for (int i = 0; i < 4; i++) frame[kOffsetHeaderCrc + i] = static_cast<uint8_t>(crc >> (8 * i));
    from += static_cast<size_t>(bytes);
  }
  return true;
}

uint64_t frameScan(const uint8_t* data, size_t from, size_t to) {
  uint64_t end = from;
  while (end < to && to - end >= kFrameHeaderBytes) {
    const uint8_t* frame = data + end;
    if (u16At(frame + kOffsetMagic) != kFrameMagic || frame[kOffsetVersion] != kFrameVersion) break;
    const size_t packetHeaderBytes = u16At(frame + kOffsetPacketHeaderBytes);
    if (packetHeaderBytes > to - end - kFrameHeaderBytes) break;
    if (u32At(frame + kOffsetHeaderCrc) != headerCrc(frame, packetHeaderBytes)) break;
    end += kFrameHeaderBytes + packetHeaderBytes + u32At(frame + kOffsetPayloadBytes);
  }
  return end;
}

}  // namespace multirail
