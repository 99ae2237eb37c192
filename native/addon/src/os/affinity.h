// Processors: where a thread runs. For the launcher and benchmarks. No Node headers.
#pragma once

namespace multirail {

/// Binds the calling thread to one processor; 0 or a negative errno.
int setAffinity(int cpu);
/// The processor that the caller runs on now, or a negative errno.
int currentCpu();
void yieldCpu();

}  // namespace multirail
