// See doorbell.h.
#include "doorbell.h"

#include <errno.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

namespace multirail {

int doorbellOpen() {
  const int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  return fd < 0 ? -errno : fd;
}

int doorbellSignal(int fd) {
  const uint64_t one = 1;
  ssize_t count;
  do count = write(fd, &one, sizeof one);
  while (count < 0 && errno == EINTR);
  // EAGAIN: the counter is full, so the bell rings.
  return count < 0 && errno != EAGAIN ? -errno : 0;
}

int doorbellClear(int fd) {
  uint64_t signals;
  ssize_t count;
  do count = read(fd, &signals, sizeof signals);
  while (count < 0 && errno == EINTR);
  if (count < 0) return errno == EAGAIN ? 0 : -errno;
  return count == sizeof signals ? 1 : 0;
}

}  // namespace multirail
