// See affinity.h.
#include "affinity.h"

#include <errno.h>
#include <sched.h>

namespace multirail {

int setAffinity(int cpu) {
  if (cpu < 0 || cpu >= CPU_SETSIZE) return -EINVAL;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  return sched_setaffinity(0, sizeof set, &set) != 0 ? -errno : 0;
}

int currentCpu() {
  const int cpu = sched_getcpu();
  return cpu < 0 ? -errno : cpu;
}

void yieldCpu() { sched_yield(); }

}  // namespace multirail
