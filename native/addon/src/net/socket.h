// TCP sockets: opening, options, names, and the moving of bytes. No Node headers. Every function may be called from any thread.
// Descriptors are non-blocking and close-on-exec, and belong to the caller.
#pragma once
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "common/outcome.h"

namespace multirail {

using common::failed;
using common::Outcome;

/// Empty strings and zeros leave the system's values.
struct SocketOptions {
  char device[16];
  char congestion[16];
  int notSentLowatBytes;
  int sendBufferBytes;
  int receiveBufferBytes;
};

struct Address {
  sockaddr_storage storage;
  socklen_t length;
};

constexpr size_t kAddressTextMax = 128;

/// A numeric IPv4 or IPv6 address, the latter with an optional zone (`fe80::1%eth0`, `fe80::1%3`). False when the text is not an address.
bool parseAddress(const char* host, uint16_t port, Address* out);
/// The address as text (with its zone when it is link-local), the name of a local socket, or ''. Returns the bytes of text.
size_t formatAddress(const Address& address, char out[kAddressTextMax], uint16_t* port);

Outcome tcpListen(const Address& address, int backlog, const SocketOptions& options);
/// `local` may be null. The attempt goes on after the return; `connectResult` tells its end.
Outcome tcpConnect(const Address& address, const Address* local, const SocketOptions& options);
int acceptConnection(int fd);
int connectResult(int fd);
/// Name of this end or of the other.
Outcome nameOf(int fd, bool peer, Address* out);
/// TCP_CONGESTION, closed by a NUL.
Outcome congestionOf(int fd, char out[32]);

/// Count >= 0 or negative errno. An interrupted call is done again.
ssize_t sendBytes(int fd, const void* data, size_t length);
ssize_t receiveBytes(int fd, void* data, size_t length);
ssize_t sendVector(int fd, iovec* vector, size_t count);
ssize_t receiveVector(int fd, iovec* vector, size_t count);

int shutdownWrite(int fd);
int closeDescriptor(int fd);
int closeReset(int fd);

}  // namespace multirail
