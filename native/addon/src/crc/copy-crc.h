// A copy with the CRC32C of what is copied, in one pass. No Node headers. May be called from any thread.
#pragma once
#include <stddef.h>
#include <stdint.h>

namespace multirail {

/// Continues `crc` as crc32c() does. The two places share no memory, and need no alignment.
uint32_t copyCrc32c(uint32_t crc, uint8_t* target, const uint8_t* source, size_t length);

}  // namespace multirail
