// Frames of src/btl/base/frame-hdr.ts as they stand in a buffer: writing and checking the CRCs of their headers. No Node headers.
// Only what finds the bytes of a header is known here: version, magic and the two lengths.
#pragma once
#include <stddef.h>
#include <stdint.h>

namespace multirail {

/// Seals the frames in data[from, to), each followed by its payload when that is at most `inlinePayloadMax` bytes. False when they do
/// not fill the range exactly; then those before the bad one are sealed.
bool frameSeal(uint8_t* data, size_t from, size_t to, uint64_t inlinePayloadMax);

/// The end of the last frame in data[from, to) whose header and packet header are whole and sound, each followed by its payload; it
/// lies beyond `to` when that frame's payload is cut off. `from` when there is none.
uint64_t frameScan(const uint8_t* data, size_t from, size_t to);

}  // namespace multirail
