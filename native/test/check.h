// The smallest frame for tests without Node: named cases, and checks that say where they failed. A program ends with 1 when one did.
#pragma once
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

namespace check {

inline int checks = 0;
inline int failures = 0;

inline void that(bool holds, const char* text, const char* file, int line) {
  __atomic_fetch_add(&checks, 1, __ATOMIC_RELAXED);
  if (holds) return;
  __atomic_fetch_add(&failures, 1, __ATOMIC_RELAXED);
  fprintf(stderr, "%s:%d: %s does not hold\n", file, line, text);
}

inline int finish(const char* name) {
  printf("%s: %d checks, %d failed\n", name, checks, failures);
  return failures == 0 && checks > 0 ? 0 : 1;
}

/// xorshift: the same numbers in every run.
struct Random {
  unsigned long long state;
  unsigned next() {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return static_cast<unsigned>(state >> 16);
  }
  unsigned below(unsigned bound) { return next() % bound; }
};

}  // namespace check

#define CHECK(condition) check::that((condition), #condition, __FILE__, __LINE__)
