// A short collective call in the memory that the ranks of one host share, in one step: this rank's contribution is put, those of the others are
// waited for, and the result is taken. src/mpi/coll/shared/segment.ts has the layout, and call-memory.ts says who may write when. No Node
// headers.
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "../combine/combine.h"

namespace multirail {

/// What the call is, and where its words are, in words of the segment. SHARED_CALL of src/native/binding.ts, in this order.
struct SharedCallPlan {
  /// The flag of member 0, behind which are the code, the length and the data; and from one member to the next.
  int32_t flagAt, stride;
  int32_t members, rank;
  /// The flag of this call; what this rank has finished when it has finished the call.
  int32_t call, nextCall;
  int32_t code, bytes;
  /// Not 0: this rank puts something, or says that it has come. It waits for the members [from, until).
  int32_t puts, from, until;
  /// How the contributions are combined, or -1; the member whose contribution is the result, or -1.
  int32_t op, source;
  int32_t clearAt, bellAt;
  int32_t looks, looksPerYield, takenAwayUs;
};
constexpr size_t kSharedCallWords = sizeof(SharedCallPlan) / sizeof(int32_t);

/// Bits of SHARED_CALL_END of src/native/binding.ts: it is done; somebody waits for a bell; another process took an offer of the processor for
/// longer than `takenAwayUs`; it cannot be done in this way.
constexpr int32_t kSharedCallDone = 1;
constexpr int32_t kSharedCallBell = 2;
constexpr int32_t kSharedCallTakenAway = 4;
constexpr int32_t kSharedCallUnfit = 8;

/// Whether all that the plan names lies within that many words, and data of its length within a stride.
bool fits(const SharedCallPlan& plan, size_t words);

/**
 * `own`: what this rank puts, `ownBytes` of the length of the plan, or none where it only says that it has come. `out`: `bytes` of the plan
 * for the result, where there is one. Not done: what this rank puts stands there all the same, and others may have taken it; nothing else
 * has been written.
 */
int32_t sharedCall(int32_t* words, const SharedCallPlan& plan, const uint8_t* own, size_t ownBytes, uint8_t* out, CombineKind kind);

}  // namespace multirail
