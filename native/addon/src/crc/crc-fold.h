// CRC32C of long inputs by carry-less multiplication, for processors that multiply 64 bytes at a time: twice as fast as the instruction for
// CRC32C itself (crc32c.h, which chooses). No Node headers. May be called from any thread.
#pragma once
#include <stddef.h>
#include <stdint.h>

namespace multirail {

constexpr size_t kFoldBlockBytes = 256;

/// Whether this processor can, and the kernel keeps its wide registers.
bool crcFoldIsThere();

/// `state` is the register of the CRC, which is the complement of what crc32c() gives. `length` is one block or more of them, and crcFoldIsThere().
uint32_t crcFold(uint32_t state, const uint8_t* data, size_t length);

}  // namespace multirail
