// What the kernel tells of a TCP connection. No Node headers.
#pragma once
#include <stddef.h>

namespace multirail {

/// TCP_INFO_LENGTH of src/native/binding.ts; the order of the fields is the one given there.
constexpr size_t kTcpInfoLength = 16;

/// 0 or a negative errno. A field that the kernel does not give is -1.
int tcpInfo(int fd, double out[kTcpInfoLength]);

}  // namespace multirail
