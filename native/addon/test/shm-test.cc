// Segments (sealing, sizes, sharing), single copy, and doorbells with two threads.
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../test/check.h"
#include "../src/shm/cma.h"
#include "../src/shm/doorbell.h"
#include "../src/shm/segment.h"

using namespace multirail;

namespace {

void segments() {
  const char* syscall = nullptr;
  const int fd = segmentCreate("test", 65536, &syscall);
  CHECK(fd >= 0);
  CHECK((fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
  // Nobody can change its size, and nobody can take the seals off or add others.
  CHECK(ftruncate(fd, 4096) != 0 && errno == EPERM);
  CHECK(ftruncate(fd, 1 << 20) != 0 && errno == EPERM);
  CHECK(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE) != 0 && errno == EPERM);
  void* one = nullptr;
  void* two = nullptr;
  CHECK(segmentMap(fd, 65536, &one) == 0);
  CHECK(segmentMap(fd, 4096, &two) == 0);
  CHECK(segmentMap(fd, 65537, &two) == kSegmentTooSmall);
  static_cast<uint8_t*>(one)[4095] = 77;
  CHECK(static_cast<uint8_t*>(two)[4095] == 77);
  CHECK(segmentUnmap(two, 4096) == 0);
  close(fd);
  static_cast<uint8_t*>(one)[65535] = 1;
  CHECK(segmentUnmap(one, 65536) == 0);

  // What could be shrunk later is refused, and so is what is no memory at all.
  const int open = memfd_create("open", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  CHECK(ftruncate(open, 8192) == 0);
  CHECK(segmentMap(open, 4096, &two) == kSegmentNotSealed);
  CHECK(fcntl(open, F_ADD_SEALS, F_SEAL_SHRINK) == 0);
  CHECK(segmentMap(open, 4096, &two) == 0);
  CHECK(segmentUnmap(two, 4096) == 0);
  close(open);
  CHECK(segmentMap(open, 4096, &two) == -EBADF);
  int pipes[2];
  CHECK(pipe(pipes) == 0);
  CHECK(segmentMap(pipes[0], 1, &two) == kSegmentNotSealed);
  close(pipes[0]);
  close(pipes[1]);
  CHECK(segmentCreate("huge", static_cast<size_t>(1) << 63, &syscall) == -EINVAL && strcmp(syscall, "ftruncate") == 0);
}

/// A byte beyond the end of a segment would be SIGBUS: with the checks there is none to reach. The child proves that the rest works.
void acrossProcesses() {
  const char* syscall = nullptr;
  const int fd = segmentCreate("across", 4096, &syscall);
  void* base = nullptr;
  CHECK(segmentMap(fd, 4096, &base) == 0);
  auto* words = static_cast<uint32_t*>(base);
  words[0] = 0;
  // The child has the same value at the same address.
  const uint64_t secret = 0x1122334455667788ull + static_cast<uint64_t>(getpid());
  const pid_t child = fork();
  if (child == 0) {
    void* mine = nullptr;
    if (segmentMap(fd, 4096, &mine) != 0) _exit(1);
    __atomic_store_n(static_cast<uint32_t*>(mine), 4711u, __ATOMIC_RELEASE);
    pause();
    _exit(0);
  }
  while (__atomic_load_n(&words[0], __ATOMIC_ACQUIRE) != 4711u) usleep(100);
  const int watch = processWatch(child);
  CHECK(watch >= 0 || watch == -ENOSYS);
  pollfd wanted = {watch, POLLIN, 0};
  if (watch >= 0) CHECK(poll(&wanted, 1, 0) == 0);

  uint64_t copy = 0;
  const ssize_t got = processRead(child, reinterpret_cast<uintptr_t>(&secret), &copy, sizeof copy);
  CHECK((got == sizeof copy && copy == secret) || got == -EPERM);
  CHECK(processRead(child, 16, &copy, sizeof copy) == -EFAULT || got == -EPERM);

  kill(child, SIGKILL);
  if (watch >= 0) CHECK(poll(&wanted, 1, 5000) == 1);
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(processRead(child, 16, &copy, sizeof copy) == -ESRCH);
  if (watch >= 0) close(watch);
  CHECK(segmentUnmap(base, 4096) == 0);
  close(fd);
}

struct Shared {
  int bell;
  unsigned produced;
};

constexpr unsigned kRounds = 20000;

void* ringer(void* argument) {
  auto* shared = static_cast<Shared*>(argument);
  for (unsigned i = 1; i <= kRounds; i++) {
    __atomic_store_n(&shared->produced, i, __ATOMIC_RELEASE);
    if (doorbellSignal(shared->bell) != 0) abort();
  }
  return nullptr;
}

/// No wake-up is lost: who sleeps after having looked is woken by what came in between.
void doorbells() {
  Shared shared = {doorbellOpen(), 0};
  CHECK(shared.bell >= 0);
  CHECK(doorbellClear(shared.bell) == 0);
  CHECK(doorbellSignal(shared.bell) == 0);
  CHECK(doorbellSignal(shared.bell) == 0);
  CHECK(doorbellClear(shared.bell) == 1);
  CHECK(doorbellClear(shared.bell) == 0);
  pthread_t thread;
  CHECK(pthread_create(&thread, nullptr, ringer, &shared) == 0);
  unsigned seen = 0;
  unsigned sleeps = 0;
  while (seen < kRounds) {
    pollfd wanted = {shared.bell, POLLIN, 0};
    if (poll(&wanted, 1, 10000) != 1) break;
    sleeps++;
    CHECK(doorbellClear(shared.bell) == 1);
    seen = __atomic_load_n(&shared.produced, __ATOMIC_ACQUIRE);
  }
  CHECK(seen == kRounds);
  CHECK(sleeps >= 1);
  pthread_join(thread, nullptr);
  close(shared.bell);
  CHECK(doorbellSignal(shared.bell) == -EBADF);
  CHECK(doorbellClear(-1) == -EBADF);
  // A full counter is a bell that rings.
  const int full = doorbellOpen();
  const uint64_t most = 0xfffffffffffffffeull;
  CHECK(write(full, &most, sizeof most) == sizeof most);
  CHECK(doorbellSignal(full) == 0);
  CHECK(doorbellClear(full) == 1);
  close(full);
}

}  // namespace

int main() {
  segments();
  acrossProcesses();
  doorbells();
  return check::finish("shm");
}
