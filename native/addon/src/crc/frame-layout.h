// The layout of src/btl/base/frame-hdr.ts, out of which native/scripts/frame-layout.mjs writes this file.
#pragma once
#include <stddef.h>

namespace multirail {

constexpr size_t kFrameVersion = 1;
constexpr size_t kFrameMagic = 0x524d;
constexpr size_t kFrameHeaderBytes = 40;
constexpr size_t kOffsetVersion = 0;
constexpr size_t kOffsetKind = 1;
constexpr size_t kOffsetFlags = 2;
constexpr size_t kOffsetPacketHeaderBytes = 4;
constexpr size_t kOffsetMagic = 6;
constexpr size_t kOffsetPayloadBytes = 8;
constexpr size_t kOffsetFrameNumber = 12;
constexpr size_t kOffsetDeliveredCount = 16;
constexpr size_t kOffsetAliveMs = 20;
constexpr size_t kOffsetReceivedBytes = 24;
constexpr size_t kOffsetPayloadCrc = 32;
constexpr size_t kOffsetHeaderCrc = 36;

}  // namespace multirail
