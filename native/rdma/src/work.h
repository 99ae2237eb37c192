// Work requests and completions as words of a Uint32Array that the caller owns: no object is made for a message.
//
// A send request, 32 words (little-endian pairs hold 64 bits):
//    0 opcode (ibv_wr_opcode)      1 flags (ibv_send_flags)       2-3 id
//    4-5 remote address            6 rkey                         7 immediate, as a number
//    8 pieces, 0 to 4              9-11 0
//   12-31 five words a piece: number of the memory region, offset in it (2 words), bytes, 0
// A receive request, 32 words: 2-3, 8 and 12-31 of the above.
// A completion, 8 words: 0-1 id, 2 status (ibv_wc_status), 3 opcode (ibv_wc_opcode), 4 bytes, 5 immediate, 6 number of the queue pair,
// 7 flags (ibv_wc_flags). Of one that failed only 0-2 and 6 say anything.
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "objects.h"

namespace noderdma {

constexpr size_t kRequestWords = 32;
constexpr size_t kCompletionWords = 8;
constexpr int kPiecesMax = 4;
/// Where an error number is put when the request could not be posted.
constexpr size_t kErrorWord = 9;

/// Posts `count` requests that stand one behind the other. Returns how many were posted; of the first that was not, kErrorWord says why:
/// EINVAL for words that make no sense (an unknown region, a range outside of it), else what the library said.
size_t postSends(const Table& table, ibv_qp* qp, uint32_t* words, size_t count);
size_t postReceives(const Table& table, ibv_qp* qp, uint32_t* words, size_t count);

/// Takes at most `capacity` completions. Returns how many, or a negative errno.
int pollCompletions(ibv_cq* cq, uint32_t* words, size_t capacity);

}  // namespace noderdma
