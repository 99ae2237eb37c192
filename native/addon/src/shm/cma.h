// Single copy between processes, and the end of a process as a descriptor. No Node headers.
#pragma once
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

namespace multirail {

/// Reads `length` bytes at `address` of process `pid` (process_vm_readv). The count or a negative errno: EPERM where the kernel does
/// not permit it, ESRCH when there is no such process, EFAULT for an address that is not mapped there.
ssize_t processRead(int pid, uint64_t address, void* data, size_t length);

/// A descriptor that becomes readable when the process ends (pidfd_open), or a negative errno (ENOSYS before Linux 5.3).
int processWatch(int pid);

}  // namespace multirail
