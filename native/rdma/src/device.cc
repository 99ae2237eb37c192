// See device.h.
#include "device.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

namespace noderdma {

void setNonBlocking(int fd) { fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK); }

ibv_context* deviceOpen(const VerbsLib& lib, const char* name, int* failure) {
  ibv_device** list = lib.get_device_list(nullptr);
  ibv_context* context = nullptr;
  *failure = -ENODEV;
  for (ibv_device** device = list; device != nullptr && *device != nullptr; device++) {
    if (strcmp(lib.get_device_name(*device), name) != 0) continue;
    errno = 0;
    context = lib.open_device(*device);
    *failure = errno == 0 ? -EIO : -errno;
    break;
  }
  if (list != nullptr) lib.free_device_list(list);
  if (context != nullptr) setNonBlocking(context->async_fd);
  return context;
}

int deviceEvent(const VerbsLib& lib, ibv_context* context, int32_t into[2]) {
  ibv_async_event event;
  errno = 0;
  if (lib.get_async_event(context, &event) != 0) return errno == 0 ? -EIO : -errno;
  into[0] = event.event_type;
  into[1] = 0;
  switch (event.event_type) {
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_SQ_DRAINED:
    case IBV_EVENT_PATH_MIG:
    case IBV_EVENT_PATH_MIG_ERR:
    case IBV_EVENT_QP_LAST_WQE_REACHED:
      // The record of the queue pair lives as long as the pair, and the pair is not gone before its events are acknowledged.
      into[1] = static_cast<const Object*>(event.element.qp->qp_context)->id;
      break;
    case IBV_EVENT_CQ_ERR:
      into[1] = static_cast<const Object*>(event.element.cq->cq_context)->id;
      break;
    case IBV_EVENT_PORT_ACTIVE:
    case IBV_EVENT_PORT_ERR:
    case IBV_EVENT_LID_CHANGE:
    case IBV_EVENT_PKEY_CHANGE:
    case IBV_EVENT_SM_CHANGE:
    case IBV_EVENT_CLIENT_REREGISTER:
    case IBV_EVENT_GID_CHANGE:
      into[1] = event.element.port_num;
      break;
    default:
      break;
  }
  lib.ack_async_event(&event);
  return 0;
}

int channelEvents(const VerbsLib& lib, ibv_comp_channel* channel) {
  int taken = 0;
  for (;;) {
    ibv_cq* cq = nullptr;
    void* of = nullptr;
    errno = 0;
    if (lib.get_cq_event(channel, &cq, &of) != 0) break;
    lib.ack_cq_events(cq, 1);
    taken++;
  }
  const bool isDry = errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
  return taken > 0 || isDry ? taken : -errno;
}

}  // namespace noderdma
