// By which interface packets would leave, as the kernel decides it now. No Node headers.
#pragma once
#include "socket.h"

namespace multirail {

constexpr size_t kDeviceMax = 16;

/// Asks the kernel for the route to `remote` from `local` (null = any), policy rules included. Writes the interface's name. The value is
/// 0, or the negative errno that a connection would get (ENETUNREACH, EHOSTUNREACH, EACCES), or that of a failed call.
Outcome routeDevice(const Address& remote, const Address* local, char device[kDeviceMax]);

}  // namespace multirail
