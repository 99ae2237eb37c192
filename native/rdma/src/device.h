// A device and what it tells: opening by name, its asynchronous events, the events of its completion channels. No Node headers.
#pragma once
#include <stdint.h>

#include "objects.h"

namespace noderdma {

/// Opens the device of that name; its events are asked for, not waited for. Null when that fails, with a negative errno in `failure`:
/// ENODEV when there is no such device.
ibv_context* deviceOpen(const VerbsLib& lib, const char* name, int* failure);

/// Takes and acknowledges the next asynchronous event. into[0]: which (ibv_event_type); into[1]: the port, or the number of the object that
/// it is about, or 0. Answers 0 or a negative errno (EAGAIN: there is none).
int deviceEvent(const VerbsLib& lib, ibv_context* context, int32_t into[2]);

void setNonBlocking(int fd);

/// Takes and acknowledges every event that waits. How many there were, or a negative errno.
int channelEvents(const VerbsLib& lib, ibv_comp_channel* channel);

}  // namespace noderdma
