// The names of error numbers, against those of the C library where it has such a function.
#include <features.h>

#include "../common/errno-name.h"
#include "check.h"

using common::errnoName;

namespace {

bool is(int number, const char* name) { return strcmp(errnoName(number), name) == 0; }

}  // namespace

int main() {
  CHECK(is(EADDRINUSE, "EADDRINUSE"));
  CHECK(is(EAGAIN, "EAGAIN"));
  CHECK(is(EBADMSG, "EBADMSG"));
  // What Node says; the C library says EOPNOTSUPP.
  CHECK(is(EOPNOTSUPP, "ENOTSUP"));
  CHECK(is(0, "UNKNOWN"));
  CHECK(is(-EPERM, "UNKNOWN"));
  CHECK(is(4711, "UNKNOWN"));
#if defined(__GLIBC__) && (__GLIBC__ > 2 || __GLIBC_MINOR__ >= 32)
  for (int number = 1; number < 200; number++) {
    const char* known = strerrorname_np(number);
    CHECK(known == nullptr ? is(number, "UNKNOWN") : number == EOPNOTSUPP || is(number, known));
  }
#endif
  return check::finish("errno");
}
