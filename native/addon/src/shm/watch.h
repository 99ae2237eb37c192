// A spin on words of shared memory: what waits for one of several writers, and runs no code of JavaScript meanwhile. No Node headers.
#pragma once
#include <stddef.h>
#include <stdint.h>

namespace multirail {

/// A word, and what stood there when it was looked at last.
struct WatchedWord {
  const int32_t* at;
  int32_t seen;
};

/// WATCH of src/native/binding.ts.
enum class WatchEnd { kNothing, kChanged, kTakenAway };

/**
 * Looks until a word is not what was seen, at most `looks` times, and offers the processor after each `looksPerYield` of them in vain.
 * kTakenAway: another process took such an offer for longer than `takenAwayMs`, which ends the spin.
 */
WatchEnd watchWords(const WatchedWord* words, size_t count, uint32_t looks, uint32_t looksPerYield, double takenAwayMs);

}  // namespace multirail
