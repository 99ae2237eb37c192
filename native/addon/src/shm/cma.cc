// See cma.h.
#include "cma.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

namespace multirail {

ssize_t processRead(int pid, uint64_t address, void* data, size_t length) {
  const iovec local = {data, length};
  const iovec remote = {reinterpret_cast<void*>(static_cast<uintptr_t>(address)), length};
  const ssize_t count = process_vm_readv(pid, &local, 1, &remote, 1, 0);
  return count < 0 ? -errno : count;
}

int processWatch(int pid) {
  // The descriptor is close-on-exec by itself.
  const long fd = syscall(SYS_pidfd_open, pid, 0U);
  return fd < 0 ? -errno : static_cast<int>(fd);
}

}  // namespace multirail
