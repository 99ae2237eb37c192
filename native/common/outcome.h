// What a function answers that makes several system calls. No Node headers.
#pragma once
#include <errno.h>
#include <unistd.h>

namespace common {

/// A descriptor or 0, or a negative errno with the call that failed.
struct Outcome {
  int value;
  const char* syscall;
};

/// What errno says of that call, once `fd` is closed, where there is one (-1 = none).
inline Outcome failed(int fd, const char* syscall) {
  const int failure = -errno;
  if (fd >= 0) close(fd);
  return {failure, syscall};
}

}  // namespace common
