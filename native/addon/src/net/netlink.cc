// See netlink.h.
#include "netlink.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_addr.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

namespace multirail {
namespace {

// Flags of <linux/if.h>, which cannot be included together with the library's <net/if.h>.
constexpr uint32_t kUp = 0x1;
constexpr uint32_t kRunning = 0x40;
constexpr uint32_t kLowerUp = 0x10000;

/// The kernel's messages of a dump have at most 32 KiB.
constexpr size_t kDatagramMax = 32768;
/// The kernel answers a dump at once; it is not waited for longer.
constexpr int kDumpTimeoutMs = 2000;

void parseLink(const nlmsghdr* message, const uint8_t* body, size_t length, NetlinkEvent* event, bool* whole) {
  ifinfomsg link;
  *whole = length >= sizeof link;
  if (!*whole) return;
  memcpy(&link, body, sizeof link);
  event->kind = NetlinkKind::kLink;
  event->index = link.ifi_index;
  event->up = (link.ifi_flags & kUp) != 0;
  event->carrier = (link.ifi_flags & kRunning) != 0 && (link.ifi_flags & kLowerUp) != 0;
  event->removed = message->nlmsg_type == RTM_DELLINK;
}

void parseAddressHead(const nlmsghdr* message, const uint8_t* body, size_t length, NetlinkEvent* event, bool* whole, int* family) {
  ifaddrmsg address;
  *whole = length >= sizeof address;
  if (!*whole) return;
  memcpy(&address, body, sizeof address);
  event->kind = NetlinkKind::kAddress;
  event->index = static_cast<int>(address.ifa_index);
  event->removed = message->nlmsg_type == RTM_DELADDR;
  *family = address.ifa_family;
}

/// Takes the name of a link, or the address: the local one where a point-to-point interface gives both.
void parseAttributes(const uint8_t* at, size_t left, int family, NetlinkEvent* event) {
  bool local = false;
  while (left >= sizeof(rtattr)) {
    rtattr attribute;
    memcpy(&attribute, at, sizeof attribute);
    if (attribute.rta_len < sizeof attribute || attribute.rta_len > left) return;
    const uint8_t* value = at + RTA_LENGTH(0);
    const size_t length = attribute.rta_len - RTA_LENGTH(0);
    if (event->kind == NetlinkKind::kLink) {
      if (attribute.rta_type == IFLA_IFNAME) {
        const size_t name = strnlen(reinterpret_cast<const char*>(value), length < 63 ? length : 63);
        memcpy(event->text, value, name);
        event->text[name] = '\0';
      }
    } else if (attribute.rta_type == IFA_LOCAL || (attribute.rta_type == IFA_ADDRESS && !local)) {
      if (length == (family == AF_INET ? 4u : 16u)) {
        inet_ntop(family, value, event->text, sizeof event->text);
        local = attribute.rta_type == IFA_LOCAL;
      }
    }
    const size_t step = RTA_ALIGN(attribute.rta_len);
    if (step >= left) return;
    at += step;
    left -= step;
  }
}

}  // namespace

int netlinkParse(const void* data, size_t length, NetlinkSink sink, void* context) {
  const auto* at = static_cast<const uint8_t*>(data);
  while (length >= sizeof(nlmsghdr)) {
    nlmsghdr message;
    memcpy(&message, at, sizeof message);
    if (message.nlmsg_len < NLMSG_LENGTH(0) || message.nlmsg_len > length) return 0;
    const uint8_t* body = at + NLMSG_LENGTH(0);
    const size_t bodyLength = message.nlmsg_len - NLMSG_LENGTH(0);
    if (message.nlmsg_type == NLMSG_DONE) return 1;
    if (message.nlmsg_type == NLMSG_ERROR) {
      nlmsgerr error;
      if (bodyLength < sizeof error.error) return 0;
      memcpy(&error.error, body, sizeof error.error);
      if (error.error < 0) return error.error;
    }
    NetlinkEvent event;
    memset(&event, 0, sizeof event);
    bool whole = false;
    int family = AF_UNSPEC;
    size_t head = 0;
    if (message.nlmsg_type == RTM_NEWLINK || message.nlmsg_type == RTM_DELLINK) {
      parseLink(&message, body, bodyLength, &event, &whole);
      head = NLMSG_ALIGN(sizeof(ifinfomsg));
    } else if (message.nlmsg_type == RTM_NEWADDR || message.nlmsg_type == RTM_DELADDR) {
      parseAddressHead(&message, body, bodyLength, &event, &whole, &family);
      whole = whole && (family == AF_INET || family == AF_INET6);
      head = NLMSG_ALIGN(sizeof(ifaddrmsg));
    }
    if (whole) {
      if (bodyLength > head) parseAttributes(body + head, bodyLength - head, family, &event);
      if (!sink(context, event)) return 0;
    }
    const size_t step = NLMSG_ALIGN(message.nlmsg_len);
    if (step >= length) return 0;
    at += step;
    length -= step;
  }
  return 0;
}

namespace {

/// One datagram of the kernel's. 1 = read, 2 = end of a list, 0 = nothing now, or a negative errno.
int readDatagram(int fd, NetlinkSink sink, void* context) {
  alignas(nlmsghdr) uint8_t buffer[kDatagramMax];
  sockaddr_nl sender;
  memset(&sender, 0, sizeof sender);
  iovec vector = {buffer, sizeof buffer};
  msghdr message;
  memset(&message, 0, sizeof message);
  message.msg_name = &sender;
  message.msg_namelen = sizeof sender;
  message.msg_iov = &vector;
  message.msg_iovlen = 1;
  ssize_t got;
  do got = recvmsg(fd, &message, MSG_DONTWAIT);
  while (got < 0 && errno == EINTR);
  NetlinkEvent overrun;
  memset(&overrun, 0, sizeof overrun);
  overrun.kind = NetlinkKind::kOverrun;
  if (got < 0) {
    if (errno == EAGAIN) return 0;
    if (errno != ENOBUFS) return -errno;
    sink(context, overrun);
    return 1;
  }
  // Only the kernel, whose port is 0, is believed. Another descriptor than a netlink socket has no such sender.
  if (sender.nl_family != AF_NETLINK) return -EINVAL;
  if (sender.nl_pid != 0) return 1;
  if ((message.msg_flags & MSG_TRUNC) != 0) sink(context, overrun);
  const int parsed = netlinkParse(buffer, static_cast<size_t>(got), sink, context);
  return parsed < 0 ? parsed : parsed + 1;
}

}  // namespace

Outcome netlinkOpen() {
  const int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, NETLINK_ROUTE);
  if (fd < 0) return failed(fd, "socket");
  sockaddr_nl address;
  memset(&address, 0, sizeof address);
  address.nl_family = AF_NETLINK;
  address.nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR;
  if (bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) return failed(fd, "bind");
  return {fd, nullptr};
}

int netlinkRead(int fd, NetlinkSink sink, void* context) {
  const int outcome = readDatagram(fd, sink, context);
  return outcome == 2 ? 1 : outcome;
}

Outcome netlinkLinks(NetlinkSink sink, void* context) {
  const int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, NETLINK_ROUTE);
  if (fd < 0) return failed(fd, "socket");
  struct {
    nlmsghdr header;
    ifinfomsg body;
  } request;
  memset(&request, 0, sizeof request);
  request.header.nlmsg_len = NLMSG_LENGTH(sizeof request.body);
  request.header.nlmsg_type = RTM_GETLINK;
  request.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
  request.body.ifi_family = AF_UNSPEC;
  sockaddr_nl kernel;
  memset(&kernel, 0, sizeof kernel);
  kernel.nl_family = AF_NETLINK;
  if (sendto(fd, &request, request.header.nlmsg_len, 0, reinterpret_cast<sockaddr*>(&kernel), sizeof kernel) < 0) {
    return failed(fd, "sendto");
  }
  for (;;) {
    const int outcome = readDatagram(fd, sink, context);
    if (outcome == 2) break;
    if (outcome < 0) {
      close(fd);
      return {outcome, "recvmsg"};
    }
    if (outcome == 1) continue;
    pollfd wanted = {fd, POLLIN, 0};
    const int found = poll(&wanted, 1, kDumpTimeoutMs);
    if (found < 0 && errno != EINTR) return failed(fd, "poll");
    if (found == 0) {
      close(fd);
      return {-ETIMEDOUT, "recvmsg"};
    }
  }
  close(fd);
  return {0, nullptr};
}

}  // namespace multirail
