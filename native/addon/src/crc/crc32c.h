// CRC32C (Castagnoli), the convention of src/btl/base/crc32c.ts: 0 begins, the answer for some bytes continues with the next ones.
// No Node headers. May be called from any thread.
#pragma once
#include <stddef.h>
#include <stdint.h>

namespace multirail {

/// In the fastest way that this processor has.
uint32_t crc32c(uint32_t crc, const uint8_t* data, size_t length);

/// The ways apart, for tests. Each answers with the value of the next where the processor has no such instructions.
uint32_t crc32cByFolding(uint32_t crc, const uint8_t* data, size_t length);
bool crc32cHasInstruction();
uint32_t crc32cByInstruction(uint32_t crc, const uint8_t* data, size_t length);
uint32_t crc32cByTable(uint32_t crc, const uint8_t* data, size_t length);

}  // namespace multirail
