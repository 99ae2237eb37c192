// See watch.h.
#include "watch.h"

#include <sched.h>
#include <time.h>

namespace multirail {
namespace {

/// Tells the processor that this is a spin.
inline void pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__) || defined(__arm__)
  __asm__ volatile("yield" ::: "memory");
#endif
}

double nowMs() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) / 1e6;
}

/// Whoever is told of a change reads what was written before it by an atomic load of its own.
bool hasChanged(const WatchedWord* words, size_t count) {
  for (size_t i = 0; i < count; i++) {
    if (__atomic_load_n(words[i].at, __ATOMIC_RELAXED) != words[i].seen) return true;
  }
  return false;
}

}  // namespace

WatchEnd watchWords(const WatchedWord* words, size_t count, uint32_t looks, uint32_t looksPerYield, double takenAwayMs) {
  uint32_t untilYield = looksPerYield;
  for (uint32_t look = 0; look < looks; look++) {
    if (hasChanged(words, count)) return WatchEnd::kChanged;
    if (--untilYield > 0) {
      pause();
      continue;
    }
    untilYield = looksPerYield;
    const double beforeMs = nowMs();
    sched_yield();
    if (nowMs() - beforeMs > takenAwayMs) return hasChanged(words, count) ? WatchEnd::kChanged : WatchEnd::kTakenAway;
  }
  return WatchEnd::kNothing;
}

}  // namespace multirail
