// Anonymous shared memory. A segment lives as long as a descriptor or a mapping of it does, whatever kills its makers. No Node headers.
#pragma once
#include <stddef.h>

namespace multirail {

/// Answers of segmentMap beside negative errnos.
constexpr int kSegmentTooSmall = -100001;
constexpr int kSegmentNotSealed = -100002;

/// A memfd of `bytes`, sealed so that nobody can change its size. A descriptor, or a negative errno with the call that failed.
int segmentCreate(const char* name, size_t bytes, const char** syscall);

/// Maps the first `bytes`, shared. A segment that is smaller or that could still be shrunk is refused: an access behind its end would
/// kill the process, and the other side could bring that about. 0, a negative errno, or one of the answers above.
int segmentMap(int fd, size_t bytes, void** out);

int segmentUnmap(void* base, size_t bytes);

}  // namespace multirail
