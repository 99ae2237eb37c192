// See shared-call.h.
#include "shared-call.h"

#include <string.h>

#include "watch.h"

namespace multirail {
namespace {

/// Behind a flag: code, length, a word that is not used, data.
constexpr int32_t kCode = 1;
constexpr int32_t kBytes = 2;
constexpr int32_t kData = 4;

int64_t flagAt(const SharedCallPlan& plan, int32_t member) { return plan.flagAt + static_cast<int64_t>(member) * plan.stride; }

bool isWithin(int64_t at, size_t words) { return at >= 0 && static_cast<uint64_t>(at) < words; }

/// kSharedCallDone: all that are waited for have put what belongs to this call. Else one has not come in time, has failed, or makes another call.
int32_t awaitOthers(const int32_t* words, const SharedCallPlan& plan) {
  for (int32_t member = plan.from; member < plan.until; member++) {
    const int32_t* flag = words + flagAt(plan, member);
    const int32_t seen = __atomic_load_n(flag, __ATOMIC_ACQUIRE);
    if (seen == ~plan.call) return kSharedCallUnfit;
    if (seen != plan.call) {
      const WatchedWord word = {flag, seen};
      const WatchEnd end = watchWords(&word, 1, plan.looks, plan.looksPerYield, plan.takenAwayUs / 1e3);
      if (end != WatchEnd::kChanged) return end == WatchEnd::kTakenAway ? kSharedCallTakenAway : 0;
      // A flag goes from an earlier call to this one at once.
      if (__atomic_load_n(flag, __ATOMIC_ACQUIRE) != plan.call) return kSharedCallUnfit;
    }
    if (flag[kCode] != plan.code || flag[kBytes] != plan.bytes) return kSharedCallUnfit;
  }
  return kSharedCallDone;
}

const uint8_t* dataOf(const int32_t* words, const SharedCallPlan& plan, int32_t member) {
  return reinterpret_cast<const uint8_t*>(words + flagAt(plan, member) + kData);
}

/// In the order of the members, as everybody does.
void takeResult(const int32_t* words, const SharedCallPlan& plan, uint8_t* out, CombineKind kind) {
  if (plan.source >= 0) {
    memcpy(out, dataOf(words, plan, plan.source), plan.bytes);
    return;
  }
  const auto op = static_cast<CombineOp>(plan.op);
  const size_t count = plan.bytes / combineElementBytes(kind);
  combine(op, kind, dataOf(words, plan, 0), dataOf(words, plan, 1), out, count);
  for (int32_t member = 2; member < plan.members; member++) combine(op, kind, out, dataOf(words, plan, member), out, count);
}

}  // namespace

bool fits(const SharedCallPlan& plan, size_t words) {
  if (plan.members < 2 || plan.rank < 0 || plan.rank >= plan.members || plan.source >= plan.members) return false;
  if (plan.from < 0 || plan.until > plan.members) return false;
  if (plan.flagAt < 0 || plan.stride < kData || plan.bytes < 0 || plan.bytes > (plan.stride - kData) * int64_t{4}) return false;
  const int64_t last = flagAt(plan, plan.members - 1);
  return isWithin(last + kData + (plan.bytes + 3) / 4 - 1, words) && isWithin(plan.clearAt, words) && isWithin(plan.bellAt, words) &&
         plan.looks >= 0 && plan.looksPerYield > 0;
}

int32_t sharedCall(int32_t* words, const SharedCallPlan& plan, const uint8_t* own, size_t ownBytes, uint8_t* out, CombineKind kind) {
  if (plan.puts != 0) {
    int32_t* flag = words + flagAt(plan, plan.rank);
    // Where this is no first attempt it stands there, and others may be reading it.
    if (__atomic_load_n(flag, __ATOMIC_RELAXED) != plan.call) {
      if (ownBytes > 0) memcpy(flag + kData, own, ownBytes);
      flag[kCode] = plan.code;
      flag[kBytes] = plan.bytes;
      // In one order with the bell: who sleeps rings it and then looks at the flag.
      __atomic_store_n(flag, plan.call, __ATOMIC_SEQ_CST);
    }
    if (__atomic_load_n(words + plan.bellAt, __ATOMIC_SEQ_CST) != 0) return kSharedCallBell;
  }
  const int32_t end = awaitOthers(words, plan);
  if (end != kSharedCallDone) return end;
  if (out != nullptr) takeResult(words, plan, out, kind);
  __atomic_store_n(words + plan.clearAt, plan.nextCall, __ATOMIC_SEQ_CST);
  return kSharedCallDone | (__atomic_load_n(words + plan.bellAt, __ATOMIC_SEQ_CST) != 0 ? kSharedCallBell : 0);
}

}  // namespace multirail
