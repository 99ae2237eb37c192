// See segment.h.
#include "segment.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

// Numbers of the kernel's interface that older headers lack.
#ifndef MFD_CLOEXEC
#define MFD_CLOEXEC 1U
#define MFD_ALLOW_SEALING 2U
#endif
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8U
#endif
#ifndef F_ADD_SEALS
#define F_ADD_SEALS 1033
#define F_GET_SEALS 1034
#define F_SEAL_SEAL 1
#define F_SEAL_SHRINK 2
#define F_SEAL_GROW 4
#endif

namespace multirail {
namespace {

int openMemory(const char* name) {
  const unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  // Kernels before 6.3 do not know the last flag; later ones may insist on it.
  const long fd = syscall(SYS_memfd_create, name, flags | MFD_NOEXEC_SEAL);
  if (fd >= 0 || errno != EINVAL) return static_cast<int>(fd);
  return static_cast<int>(syscall(SYS_memfd_create, name, flags));
}

}  // namespace

int segmentCreate(const char* name, size_t bytes, const char** syscallName) {
  *syscallName = "memfd_create";
  const int fd = openMemory(name);
  if (fd < 0) return -errno;
  *syscallName = "ftruncate";
  if (ftruncate(fd, static_cast<off_t>(bytes)) == 0) {
    *syscallName = "fcntl";
    if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0) return fd;
  }
  const int failure = -errno;
  close(fd);
  return failure;
}

int segmentMap(int fd, size_t bytes, void** out) {
  // The seal first: what is sealed keeps the size that is read afterwards.
  const int seals = fcntl(fd, F_GET_SEALS);
  if (seals < 0) return errno == EBADF ? -EBADF : kSegmentNotSealed;
  if ((seals & F_SEAL_SHRINK) == 0) return kSegmentNotSealed;
  // Not fstat, which would ask for glibc 2.33. The position of a memfd means nothing to anybody.
  const off_t end = lseek(fd, 0, SEEK_END);
  if (end < 0) return -errno;
  if (static_cast<size_t>(end) < bytes) return kSegmentTooSmall;
  void* base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (base == MAP_FAILED) return -errno;
  *out = base;
  return 0;
}

int segmentUnmap(void* base, size_t bytes) { return munmap(base, bytes) != 0 ? -errno : 0; }

}  // namespace multirail
