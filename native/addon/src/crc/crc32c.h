// CRC32C (Castagnoli), the convention of src/btl/base/crc32c.ts: 0 begins, the answer for some bytes continues with the next ones.
// No Node headers. May be called from any thread.
#pragma once
#include <stddef.h>
#include <stdint.h>

namespace multirail {

/// By the processor's instruction where it has one.
uint32_t crc32c(uint32_t crc, const uint8_t* data, size_t length);

/// The two ways apart, for tests. The first answers with the second's value where the processor has no instruction.
bool crc32cHasInstruction();
uint32_t crc32cByInstruction(uint32_t crc, const uint8_t* data, size_t length);
uint32_t crc32cByTable(uint32_t crc, const uint8_t* data, size_t length);

}  // namespace multirail
