// Opening by name and events, without a device: the library is a handful of functions that answer what the test says. Built with sanitizers by
// native/scripts/test.mjs.
#include "../src/device.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "../../test/check.h"

using namespace noderdma;

namespace {

// --- devices: two, of which one cannot be opened

ibv_device first, second;
ibv_device* devices[] = {&first, &second, nullptr};
ibv_context opened;
int lists = 0;

ibv_device** getDeviceList(int*) {
  lists++;
  return devices;
}
ibv_device** noDeviceList(int*) { return nullptr; }
void freeDeviceList(ibv_device**) { lists--; }
const char* getDeviceName(ibv_device* device) { return device->name; }
ibv_context* openDevice(ibv_device* device) {
  if (device == &first) return &opened;
  errno = EPERM;
  return nullptr;
}

void opening() {
  VerbsLib lib;
  memset(&lib, 0, sizeof lib);
  lib.get_device_list = getDeviceList;
  lib.free_device_list = freeDeviceList;
  lib.get_device_name = getDeviceName;
  lib.open_device = openDevice;
  strcpy(first.name, "one0");
  strcpy(second.name, "two0");
  int ends[2];
  CHECK(pipe(ends) == 0);
  opened.async_fd = ends[0];
  int failure = 0;
  CHECK(deviceOpen(lib, "one0", &failure) == &opened);
  CHECK((fcntl(ends[0], F_GETFL) & O_NONBLOCK) != 0);
  CHECK(deviceOpen(lib, "two0", &failure) == nullptr && failure == -EPERM);
  CHECK(deviceOpen(lib, "one", &failure) == nullptr && failure == -ENODEV);
  CHECK(lists == 0);
  lib.get_device_list = noDeviceList;
  CHECK(deviceOpen(lib, "one0", &failure) == nullptr && failure == -ENODEV);
  close(ends[0]);
  close(ends[1]);
}

// --- asynchronous events

ibv_async_event waiting;
bool isWaiting = false;
int acknowledged = 0;

int getAsyncEvent(ibv_context*, ibv_async_event* out) {
  if (!isWaiting) {
    errno = EAGAIN;
    return -1;
  }
  *out = waiting;
  isWaiting = false;
  return 0;
}
void ackAsyncEvent(ibv_async_event*) { acknowledged++; }

void asynchronous() {
  VerbsLib lib;
  memset(&lib, 0, sizeof lib);
  lib.get_async_event = getAsyncEvent;
  lib.ack_async_event = ackAsyncEvent;
  ibv_context context;
  int32_t into[2] = {-1, -1};
  CHECK(deviceEvent(lib, &context, into) == -EAGAIN);
  CHECK(into[0] == -1 && acknowledged == 0);

  Object object;
  memset(&object, 0, sizeof object);
  object.id = 4711;
  ibv_qp qp;
  qp.qp_context = &object;
  ibv_cq cq;
  cq.cq_context = &object;
  const auto tell = [&](ibv_event_type type) {
    waiting.event_type = type;
    isWaiting = true;
    return deviceEvent(lib, &context, into) == 0 && into[0] == type;
  };
  waiting.element.qp = &qp;
  CHECK(tell(IBV_EVENT_QP_FATAL) && into[1] == 4711);
  CHECK(tell(IBV_EVENT_QP_LAST_WQE_REACHED) && into[1] == 4711);
  waiting.element.cq = &cq;
  CHECK(tell(IBV_EVENT_CQ_ERR) && into[1] == 4711);
  memset(&waiting.element, 0, sizeof waiting.element);
  waiting.element.port_num = 3;
  CHECK(tell(IBV_EVENT_PORT_ERR) && into[1] == 3);
  CHECK(tell(IBV_EVENT_GID_CHANGE) && into[1] == 3);
  // About the whole device.
  CHECK(tell(IBV_EVENT_DEVICE_FATAL) && into[1] == 0);
  CHECK(acknowledged == 6);
}

// --- events of a channel

int rung = 0;
int dryWith = EAGAIN;
unsigned cqAcknowledged = 0;

int getCqEvent(ibv_comp_channel*, ibv_cq**, void**) {
  if (rung > 0) {
    rung--;
    return 0;
  }
  errno = dryWith;
  return -1;
}
void ackCqEvents(ibv_cq*, unsigned count) { cqAcknowledged += count; }

void channel() {
  VerbsLib lib;
  memset(&lib, 0, sizeof lib);
  lib.get_cq_event = getCqEvent;
  lib.ack_cq_events = ackCqEvents;
  ibv_comp_channel channel;
  rung = 5;
  CHECK(channelEvents(lib, &channel) == 5 && cqAcknowledged == 5);
  CHECK(channelEvents(lib, &channel) == 0);
  // What was taken is told before what went wrong.
  dryWith = EBADF;
  rung = 1;
  CHECK(channelEvents(lib, &channel) == 1);
  CHECK(channelEvents(lib, &channel) == -EBADF);
}

}  // namespace

int main() {
  opening();
  asynchronous();
  channel();
  return check::finish("device");
}
