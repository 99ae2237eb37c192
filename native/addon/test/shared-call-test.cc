// Collective calls in one step, by threads that take the places of ranks: every result, and that nothing is read that is still written
// (with the sanitizer of threads).
#include <pthread.h>
#include <string.h>

#include "../../test/check.h"
#include "../src/shm/shared-call.h"
#include "../src/shm/watch.h"

using namespace multirail;

namespace {

constexpr int kRanks = 3;
constexpr int32_t kCalls = 3000;
/// As in src/mpi/coll/shared/segment.ts: a page for each member, behind one for all, with four slots of 256 bytes.
constexpr int32_t kPage = 1024;
constexpr int32_t kSlots = 4;
constexpr int32_t kSlotWords = 64;
constexpr int32_t kFirstSlot = 256;
constexpr int32_t kBell = 32;

alignas(64) int32_t words[kPage * (1 + kRanks)];

struct Rank {
  pthread_t thread;
  int32_t number;
  int wrong;
};

SharedCallPlan planOf(int32_t rank, int32_t call) {
  SharedCallPlan plan;
  memset(&plan, 0, sizeof plan);
  plan.flagAt = kPage + kFirstSlot + (call % kSlots) * kSlotWords;
  plan.stride = kPage;
  plan.members = kRanks;
  plan.rank = rank;
  plan.call = call;
  plan.nextCall = call + 1;
  plan.code = 7;
  plan.bytes = 16;
  plan.puts = 1;
  plan.until = kRanks;
  plan.op = static_cast<int32_t>(CombineOp::kSum);
  plan.source = -1;
  plan.clearAt = kPage * (1 + rank);
  plan.bellAt = plan.clearAt + kBell;
  plan.looks = 1000;
  plan.looksPerYield = 10;
  plan.takenAwayUs = 1 << 30;
  return plan;
}

/// A sum, then what one of the ranks has.
void* run(void* given) {
  auto* rank = static_cast<Rank*>(given);
  for (int32_t call = 1; call <= kCalls; call++) {
    SharedCallPlan plan = planOf(rank->number, call);
    const int64_t own[2] = {call * 10 + rank->number, -call};
    int64_t out[2] = {0, 0};
    const bool isSum = call % 2 == 0;
    if (!isSum) plan.source = call % kRanks;
    CHECK(fits(plan, sizeof words / sizeof words[0]));
    while (
        (sharedCall(words, plan, reinterpret_cast<const uint8_t*>(own), sizeof own, reinterpret_cast<uint8_t*>(out), CombineKind::kInt64) &
         kSharedCallDone) == 0) {
    }
    const int64_t first = isSum ? kRanks * call * 10 + 3 : call * 10 + call % kRanks;
    if (out[0] != first || out[1] != (isSum ? -kRanks * call : -call)) rank->wrong++;
  }
  return nullptr;
}

void byThreads() {
  Rank ranks[kRanks];
  for (int32_t number = 0; number < kRanks; number++) {
    ranks[number] = {0, number, 0};
    CHECK(pthread_create(&ranks[number].thread, nullptr, run, &ranks[number]) == 0);
  }
  for (Rank& rank : ranks) {
    pthread_join(rank.thread, nullptr);
    CHECK(rank.wrong == 0);
  }
  for (int32_t rank = 0; rank < kRanks; rank++) CHECK(words[kPage * (1 + rank)] == kCalls + 1);
}

int32_t spun;

void* write(void*) {
  __atomic_store_n(&spun, 1, __ATOMIC_RELEASE);
  return nullptr;
}

void spins() {
  const WatchedWord word = {&spun, 0};
  CHECK(watchWords(&word, 1, 0, 1, 0) == WatchEnd::kNothing);
  CHECK(watchWords(&word, 0, 5, 1, 1e9) == WatchEnd::kNothing);
  CHECK(watchWords(&word, 1, 1, 1, -1) == WatchEnd::kTakenAway);
  pthread_t writer;
  CHECK(pthread_create(&writer, nullptr, write, nullptr) == 0);
  while (watchWords(&word, 1, 1000, 10, 1e9) != WatchEnd::kChanged) {
  }
  pthread_join(writer, nullptr);
  CHECK(spun == 1);
}

}  // namespace

int main() {
  spins();
  byThreads();
  return check::finish("shared-call");
}
