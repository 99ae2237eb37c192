// Events of the kernel's network configuration, and the interfaces as they are. No Node headers.
#pragma once
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "socket.h"

namespace multirail {

enum class NetlinkKind { kLink, kAddress, kOverrun };

struct NetlinkEvent {
  NetlinkKind kind;
  int index;
  /// Of links: IFF_UP; IFF_RUNNING and IFF_LOWER_UP.
  bool up;
  bool carrier;
  bool removed;
  /// The interface's name or the address as text.
  char text[64];
};

/// What is told of each event; false ends the reading of the message.
using NetlinkSink = bool (*)(void* context, const NetlinkEvent& event);

/// Subscribes to links and addresses of this network namespace.
Outcome netlinkOpen();
/// Reads at most one datagram. 1 = something was read, 0 = nothing now, or a negative errno.
int netlinkRead(int fd, NetlinkSink sink, void* context);
/// All interfaces, asked for on a socket of its own.
Outcome netlinkLinks(NetlinkSink sink, void* context);

/// The events of one datagram, for tests: malformed messages are left out. Answers 1 at the end of a list, a negative errno of the
/// kernel's, else 0.
int netlinkParse(const void* data, size_t length, NetlinkSink sink, void* context);

}  // namespace multirail
