// See socket.h.
#include "socket.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

// Numbers of the kernel's interface that older headers lack.
#ifndef TCP_NOTSENT_LOWAT
#define TCP_NOTSENT_LOWAT 25
#endif
#ifndef IP_BIND_ADDRESS_NO_PORT
#define IP_BIND_ADDRESS_NO_PORT 24
#endif

namespace multirail {
namespace {

bool setInt(int fd, int level, int name, int value) { return setsockopt(fd, level, name, &value, sizeof value) == 0; }

bool applyOptions(int fd, const SocketOptions& options) {
  // Buffers are set before listen or connect, since the window scale is settled by then.
  if (!setInt(fd, IPPROTO_TCP, TCP_NODELAY, 1)) return false;
  if (options.sendBufferBytes > 0 && !setInt(fd, SOL_SOCKET, SO_SNDBUF, options.sendBufferBytes)) return false;
  if (options.receiveBufferBytes > 0 && !setInt(fd, SOL_SOCKET, SO_RCVBUF, options.receiveBufferBytes)) return false;
  if (options.notSentLowatBytes > 0 && !setInt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, options.notSentLowatBytes)) return false;
  if (options.device[0] != '\0') {
    const socklen_t length = static_cast<socklen_t>(strlen(options.device) + 1);
    if (setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, options.device, length) != 0) return false;
  }
  if (options.congestion[0] != '\0') {
    // An unknown or forbidden name leaves the system's; congestionOf tells which one it is.
    const socklen_t length = static_cast<socklen_t>(strlen(options.congestion));
    if (setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, options.congestion, length) != 0 && errno != ENOENT && errno != EPERM) return false;
  }
  return true;
}

int openSocket(const Address& address) {
  return socket(address.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP);
}

const sockaddr* plain(const Address& address) { return reinterpret_cast<const sockaddr*>(&address.storage); }

uint32_t zoneIndex(const char* zone) {
  const uint32_t index = if_nametoindex(zone);
  if (index != 0) return index;
  char* end = nullptr;
  const unsigned long number = strtoul(zone, &end, 10);
  return zone[0] >= '0' && zone[0] <= '9' && *end == '\0' && number <= UINT32_MAX ? static_cast<uint32_t>(number) : 0;
}

}  // namespace

bool parseAddress(const char* host, uint16_t port, Address* out) {
  memset(out, 0, sizeof *out);
  auto* v4 = reinterpret_cast<sockaddr_in*>(&out->storage);
  if (inet_pton(AF_INET, host, &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    v4->sin_port = htons(port);
    out->length = sizeof *v4;
    return true;
  }
  auto* v6 = reinterpret_cast<sockaddr_in6*>(&out->storage);
  char text[kAddressTextMax];
  const size_t length = strlen(host);
  if (length >= sizeof text) return false;
  memcpy(text, host, length + 1);
  char* percent = strchr(text, '%');
  if (percent != nullptr) *percent = '\0';
  if (inet_pton(AF_INET6, text, &v6->sin6_addr) != 1) return false;
  if (percent != nullptr && (v6->sin6_scope_id = zoneIndex(percent + 1)) == 0) return false;
  v6->sin6_family = AF_INET6;
  v6->sin6_port = htons(port);
  out->length = sizeof *v6;
  return true;
}

size_t formatAddress(const Address& address, char out[kAddressTextMax], uint16_t* port) {
  *port = 0;
  out[0] = '\0';
  if (address.storage.ss_family == AF_INET) {
    const auto* v4 = reinterpret_cast<const sockaddr_in*>(&address.storage);
    *port = ntohs(v4->sin_port);
    inet_ntop(AF_INET, &v4->sin_addr, out, kAddressTextMax);
  } else if (address.storage.ss_family == AF_INET6) {
    const auto* v6 = reinterpret_cast<const sockaddr_in6*>(&address.storage);
    *port = ntohs(v6->sin6_port);
    inet_ntop(AF_INET6, &v6->sin6_addr, out, kAddressTextMax);
    if (v6->sin6_scope_id != 0 && IN6_IS_ADDR_LINKLOCAL(&v6->sin6_addr)) {
      const size_t used = strlen(out);
      char zone[IF_NAMESIZE];
      if (if_indextoname(v6->sin6_scope_id, zone) != nullptr) snprintf(out + used, kAddressTextMax - used, "%%%s", zone);
      else snprintf(out + used, kAddressTextMax - used, "%%%u", v6->sin6_scope_id);
    }
  } else if (address.storage.ss_family == AF_UNIX) {
    const auto* local = reinterpret_cast<const sockaddr_un*>(&address.storage);
    const size_t head = offsetof(sockaddr_un, sun_path);
    size_t length = address.length > head ? address.length - head : 0;
    if (length > sizeof local->sun_path) length = sizeof local->sun_path;
    // A path is closed by a NUL that the kernel counts; an abstract name begins with one and has no end but its length.
    if (length > 0 && local->sun_path[0] != '\0') length = strnlen(local->sun_path, length);
    memcpy(out, local->sun_path, length);
    out[length] = '\0';
    return length;
  }
  return strlen(out);
}

Outcome tcpListen(const Address& address, int backlog, const SocketOptions& options) {
  const int fd = openSocket(address);
  if (fd < 0) return failed(fd, "socket");
  if (!setInt(fd, SOL_SOCKET, SO_REUSEADDR, 1) || !applyOptions(fd, options)) return failed(fd, "setsockopt");
  if (address.storage.ss_family == AF_INET6 && !setInt(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1)) return failed(fd, "setsockopt");
  if (bind(fd, plain(address), address.length) != 0) return failed(fd, "bind");
  if (listen(fd, backlog) != 0) return failed(fd, "listen");
  return {fd, nullptr};
}

Outcome tcpConnect(const Address& address, const Address* local, const SocketOptions& options) {
  const int fd = openSocket(address);
  if (fd < 0) return failed(fd, "socket");
  if (!applyOptions(fd, options)) return failed(fd, "setsockopt");
  if (local != nullptr) {
    // Without this the port is chosen before the peer is known, and 28 000 outgoing connections of an address use up all ports.
    if (!setInt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1)) return failed(fd, "setsockopt");
    if (bind(fd, plain(*local), local->length) != 0) return failed(fd, "bind");
  }
  if (connect(fd, plain(address), address.length) != 0 && errno != EINPROGRESS && errno != EINTR) return failed(fd, "connect");
  return {fd, nullptr};
}

int acceptConnection(int fd) {
  int accepted;
  do accepted = accept4(fd, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
  while (accepted < 0 && errno == EINTR);
  return accepted < 0 ? -errno : accepted;
}

int connectResult(int fd) {
  int error = 0;
  socklen_t length = sizeof error;
  return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) != 0 ? -errno : -error;
}

Outcome nameOf(int fd, bool peer, Address* out) {
  memset(out, 0, sizeof *out);
  out->length = sizeof out->storage;
  auto* name = reinterpret_cast<sockaddr*>(&out->storage);
  const int answer = peer ? getpeername(fd, name, &out->length) : getsockname(fd, name, &out->length);
  if (answer != 0) return {-errno, peer ? "getpeername" : "getsockname"};
  return {0, nullptr};
}

Outcome congestionOf(int fd, char out[32]) {
  memset(out, 0, 32);
  socklen_t length = 31;
  if (getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, out, &length) != 0) return {-errno, "getsockopt"};
  return {0, nullptr};
}

ssize_t sendBytes(int fd, const void* data, size_t length) {
  ssize_t count;
  do count = send(fd, data, length, MSG_NOSIGNAL | MSG_DONTWAIT);
  while (count < 0 && errno == EINTR);
  return count < 0 ? -errno : count;
}

ssize_t receiveBytes(int fd, void* data, size_t length) {
  ssize_t count;
  do count = recv(fd, data, length, MSG_DONTWAIT);
  while (count < 0 && errno == EINTR);
  return count < 0 ? -errno : count;
}

ssize_t sendVector(int fd, iovec* vector, size_t count) {
  msghdr message;
  memset(&message, 0, sizeof message);
  message.msg_iov = vector;
  message.msg_iovlen = static_cast<decltype(message.msg_iovlen)>(count);
  ssize_t taken;
  do taken = sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  while (taken < 0 && errno == EINTR);
  return taken < 0 ? -errno : taken;
}

ssize_t receiveVector(int fd, iovec* vector, size_t count) {
  msghdr message;
  memset(&message, 0, sizeof message);
  message.msg_iov = vector;
  message.msg_iovlen = static_cast<decltype(message.msg_iovlen)>(count);
  ssize_t got;
  do got = recvmsg(fd, &message, MSG_DONTWAIT);
  while (got < 0 && errno == EINTR);
  return got < 0 ? -errno : got;
}

int shutdownWrite(int fd) { return shutdown(fd, SHUT_WR) != 0 ? -errno : 0; }

// On Linux the descriptor is gone even when close is interrupted, so it is never done again.
int closeDescriptor(int fd) { return close(fd) != 0 && errno != EINTR ? -errno : 0; }

int closeReset(int fd) {
  const linger at_once = {1, 0};
  if (setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once) != 0 && errno == EBADF) return -EBADF;
  return closeDescriptor(fd);
}

}  // namespace multirail
