// Local sockets, which carry descriptors and tell who is at the other end. No Node headers.
#pragma once
#include "socket.h"

namespace multirail {

/// Descriptors that one message may carry. More in one message is refused on both sides.
constexpr size_t kDescriptorsMax = 8;

/// `name` of `length` bytes: a path, or an abstract name when it begins with NUL. ENAMETOOLONG beyond 107 bytes.
Outcome unixListen(const char* name, size_t length, int backlog);
Outcome unixConnect(const char* name, size_t length);
Outcome unixPeer(int fd, int* pid, uint32_t* uid);

/// The bytes taken or a negative errno. The descriptors go with the first byte.
ssize_t sendDescriptors(int fd, const void* data, size_t length, const int* descriptors, size_t count);
/// The bytes received or a negative errno. `*count` descriptors came, which the caller closes. A message with more of them than
/// kDescriptorsMax gives -EMSGSIZE, and all of them are closed.
ssize_t receiveDescriptors(int fd, void* data, size_t length, int descriptors[kDescriptorsMax], size_t* count);

}  // namespace multirail
