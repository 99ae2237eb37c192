// See route.h.
#include "route.h"

#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

namespace multirail {
namespace {

/// The kernel answers at once; it is not waited for longer.
constexpr int kTimeoutMs = 1000;

struct Request {
  nlmsghdr header;
  rtmsg body;
  uint8_t attributes[64];
};

void addAddress(Request* request, uint16_t type, const void* bytes, size_t length) {
  const size_t at = NLMSG_ALIGN(request->header.nlmsg_len);
  rtattr attribute;
  attribute.rta_type = type;
  attribute.rta_len = static_cast<uint16_t>(RTA_LENGTH(length));
  auto* to = reinterpret_cast<uint8_t*>(request) + at;
  memcpy(to, &attribute, sizeof attribute);
  memcpy(to + RTA_LENGTH(0), bytes, length);
  request->header.nlmsg_len = static_cast<uint32_t>(at + RTA_ALIGN(attribute.rta_len));
}

/// The raw bytes of an address.
const void* bytesOf(const Address& address, size_t* length) {
  if (address.storage.ss_family == AF_INET) {
    *length = 4;
    return &reinterpret_cast<const sockaddr_in*>(&address.storage)->sin_addr;
  }
  *length = 16;
  return &reinterpret_cast<const sockaddr_in6*>(&address.storage)->sin6_addr;
}

/// The interface index of the answer, or a negative errno.
int indexIn(const uint8_t* at, size_t length) {
  nlmsghdr message;
  if (length < sizeof message) return -EBADMSG;
  memcpy(&message, at, sizeof message);
  if (message.nlmsg_len < NLMSG_LENGTH(0) || message.nlmsg_len > length) return -EBADMSG;
  const uint8_t* body = at + NLMSG_LENGTH(0);
  size_t left = message.nlmsg_len - NLMSG_LENGTH(0);
  if (message.nlmsg_type == NLMSG_ERROR) {
    nlmsgerr error;
    if (left < sizeof error.error) return -EBADMSG;
    memcpy(&error.error, body, sizeof error.error);
    return error.error < 0 ? error.error : -EBADMSG;
  }
  rtmsg route;
  if (message.nlmsg_type != RTM_NEWROUTE || left < sizeof route) return -EBADMSG;
  memcpy(&route, body, sizeof route);
  if (route.rtm_type == RTN_UNREACHABLE) return -EHOSTUNREACH;
  if (route.rtm_type == RTN_BLACKHOLE) return -ENETUNREACH;
  if (route.rtm_type == RTN_PROHIBIT) return -EACCES;
  const size_t head = NLMSG_ALIGN(sizeof route);
  if (left < head) return -EBADMSG;
  body += head;
  left -= head;
  while (left >= sizeof(rtattr)) {
    rtattr attribute;
    memcpy(&attribute, body, sizeof attribute);
    if (attribute.rta_len < sizeof attribute || attribute.rta_len > left) break;
    if (attribute.rta_type == RTA_OIF && attribute.rta_len >= RTA_LENGTH(sizeof(int))) {
      int index;
      memcpy(&index, body + RTA_LENGTH(0), sizeof index);
      return index;
    }
    const size_t step = RTA_ALIGN(attribute.rta_len);
    if (step >= left) break;
    body += step;
    left -= step;
  }
  return -ENETUNREACH;
}

}  // namespace

Outcome routeDevice(const Address& remote, const Address* local, char device[kDeviceMax]) {
  const int family = remote.storage.ss_family;
  if (local != nullptr && local->storage.ss_family != family) return {-EINVAL, "route"};
  const int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, NETLINK_ROUTE);
  if (fd < 0) return {-errno, "socket"};
  Request request;
  memset(&request, 0, sizeof request);
  request.header.nlmsg_len = NLMSG_LENGTH(sizeof request.body);
  request.header.nlmsg_type = RTM_GETROUTE;
  request.header.nlmsg_flags = NLM_F_REQUEST;
  request.body.rtm_family = static_cast<unsigned char>(family);
  size_t length;
  const void* bytes = bytesOf(remote, &length);
  request.body.rtm_dst_len = static_cast<unsigned char>(length * 8);
  addAddress(&request, RTA_DST, bytes, length);
  if (local != nullptr) {
    bytes = bytesOf(*local, &length);
    request.body.rtm_src_len = static_cast<unsigned char>(length * 8);
    addAddress(&request, RTA_SRC, bytes, length);
  }
  sockaddr_nl kernel;
  memset(&kernel, 0, sizeof kernel);
  kernel.nl_family = AF_NETLINK;
  if (sendto(fd, &request, request.header.nlmsg_len, 0, reinterpret_cast<sockaddr*>(&kernel), sizeof kernel) < 0) {
    return failed(fd, "sendto");
  }
  alignas(nlmsghdr) uint8_t answer[4096];
  for (;;) {
    sockaddr_nl sender;
    memset(&sender, 0, sizeof sender);
    socklen_t senderLength = sizeof sender;
    const ssize_t got = recvfrom(fd, answer, sizeof answer, 0, reinterpret_cast<sockaddr*>(&sender), &senderLength);
    if (got < 0 && errno == EAGAIN) {
      pollfd wanted = {fd, POLLIN, 0};
      const int found = poll(&wanted, 1, kTimeoutMs);
      if (found < 0 && errno != EINTR) return failed(fd, "poll");
      if (found == 0) {
        close(fd);
        return {-ETIMEDOUT, "recvfrom"};
      }
      continue;
    }
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return failed(fd, "recvfrom");
    // Only the kernel, whose port is 0, is believed.
    if (sender.nl_family != AF_NETLINK || sender.nl_pid != 0) continue;
    close(fd);
    const int index = indexIn(answer, static_cast<size_t>(got));
    if (index < 0) return {index, "route"};
    char name[IF_NAMESIZE];
    if (if_indextoname(static_cast<unsigned>(index), name) == nullptr) return {-errno, "if_indextoname"};
    memcpy(device, name, kDeviceMax);
    return {0, nullptr};
  }
}

}  // namespace multirail
