// The forwarder: packet sockets on the ports, one loop, one thread. A frame stays in the buffer that it was received into until it is sent.
// Frames that cannot be held or sent are dropped and counted; nothing ever waits for a socket.
#include "forwarder.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "wire.h"

#ifndef PACKET_IGNORE_OUTGOING
#define PACKET_IGNORE_OUTGOING 23
#endif

namespace impair {
namespace {

/// As many as a rail of 1 Gbit/s has under way in both directions within 0.7 s. Only what is used takes memory.
constexpr uint32_t kFrames = 128 * 1024;
constexpr size_t kFrameBytes = 2048;
/// What is longer (large frames, packets of segmentation offload) is copied to memory of its own.
constexpr size_t kLongBytes = 256 * 1024;
constexpr int kBatch = 64;
constexpr int kReceiveBytes = 16 << 20;
/// What a port's own queue holds is charged to the socket until it has left.
constexpr int kSendBytes = 256 << 20;
constexpr size_t kOrderBytes = 4096;
constexpr size_t kAnswerBytes = 16 * 1024;

struct Frame {
  OffloadHeader header;
  uint32_t length;
  /// Instead of the buffer of this number.
  uint8_t* longer;
};

struct Counters {
  /// Received; lost by chance; damaged, and among them dropped since no checksum would have told; held back.
  uint64_t taken, lost, flipped, held;
  /// Sent out of this port; refused by its queue or since it is down.
  uint64_t sent, refused;
  /// Of what enters here: dropped since there was no buffer; dropped by the kernel since this was too slow.
  uint64_t noRoom, missed;
};

struct Port {
  int fd = -1;
  unsigned index = 0;
  Settings settings;
  Dice dice;
  Counters counters = {};
  uint32_t batch[kBatch];
  int batchCount = 0;
};

int64_t nowNs() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<int64_t>(now.tv_sec) * 1000000000 + now.tv_nsec;
}

class Forwarder {
 public:
  Outcome start(const char* const* names, int portCount, uint64_t seed);
  void run();

 private:
  uint8_t* buffer(uint32_t frame) { return buffers_ + static_cast<size_t>(frame) * kFrameBytes; }
  uint8_t* bytes(uint32_t frame) { return frames_[frame].longer != nullptr ? frames_[frame].longer : buffer(frame); }
  void release(uint32_t frame);
  void receive(int from);
  void take(int from, uint32_t frame, int64_t now);
  void pass(int from, int to, uint32_t frame, int64_t now, const Verdict& verdict);
  bool copyOf(uint32_t frame, uint32_t* copy);
  void sendDue(int64_t now);
  void sendBatch(Port* port);
  bool readOrders();
  bool obey(const char* order);
  void answer(const char* text, size_t length);
  void answerStats();

  Port ports_[kPortsMax];
  int portCount_ = 0;
  Pacing pacing_;
  Switch addresses_;
  Queue queue_;
  Frame* frames_ = nullptr;
  uint8_t* buffers_ = nullptr;
  Queue::Entry* entries_ = nullptr;
  uint32_t* free_ = nullptr;
  uint32_t freeCount_ = 0;
  uint8_t* longer_ = nullptr;
  char order_[kOrderBytes];
  size_t orderLength_ = 0;
};

template <typename T>
T* reserve(size_t count) {
  void* memory = mmap(nullptr, count * sizeof(T), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<T*>(memory);
}

/// Beyond the system's limit where this may be, up to it where not.
void setBuffer(int fd, int forced, int plain, int bytes) {
  if (setsockopt(fd, SOL_SOCKET, forced, &bytes, sizeof bytes) != 0) setsockopt(fd, SOL_SOCKET, plain, &bytes, sizeof bytes);
}

Outcome openPort(Port* port, const char* name) {
  port->index = if_nametoindex(name);
  if (port->index == 0) return {-errno, "if_nametoindex"};
  // Protocol 0: nothing is received before `on`.
  port->fd = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (port->fd < 0) return {-errno, "socket"};
  const int one = 1;
  if (setsockopt(port->fd, SOL_PACKET, PACKET_VNET_HDR, &one, sizeof one) != 0) return {-errno, "PACKET_VNET_HDR"};
  // Else it would receive what it sends.
  if (setsockopt(port->fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &one, sizeof one) != 0) return {-errno, "PACKET_IGNORE_OUTGOING"};
  setBuffer(port->fd, SO_RCVBUFFORCE, SO_RCVBUF, kReceiveBytes);
  setBuffer(port->fd, SO_SNDBUFFORCE, SO_SNDBUF, kSendBytes);
  packet_mreq all = {};
  all.mr_ifindex = static_cast<int>(port->index);
  all.mr_type = PACKET_MR_PROMISC;
  if (setsockopt(port->fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &all, sizeof all) != 0) return {-errno, "PACKET_MR_PROMISC"};
  return {0, nullptr};
}

/// A wire does not wait for a processor: its kernel works in interrupts. So this comes before what else runs, as far as it may.
void hurry() {
  sched_param first = {};
  first.sched_priority = 1;
  // Not by the C library: musl has no such call.
  if (syscall(SYS_sched_setscheduler, 0, SCHED_RR, &first) != 0) setpriority(PRIO_PROCESS, 0, -20);
  // The default of 50 us would be added to every delay.
  prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
}

bool listenAt(const Port& port) {
  sockaddr_ll at = {};
  at.sll_family = AF_PACKET;
  at.sll_protocol = static_cast<uint16_t>(ETH_P_ALL << 8 | ETH_P_ALL >> 8);
  at.sll_ifindex = static_cast<int>(port.index);
  return bind(port.fd, reinterpret_cast<sockaddr*>(&at), sizeof at) == 0;
}

Outcome Forwarder::start(const char* const* names, int portCount, uint64_t seed) {
  portCount_ = portCount;
  for (int i = 0; i < portCount; i++) {
    const Outcome outcome = openPort(&ports_[i], names[i]);
    if (outcome.value < 0) return outcome;
    ports_[i].dice.seed(seed, i);
  }
  frames_ = reserve<Frame>(kFrames);
  buffers_ = reserve<uint8_t>(kFrames * kFrameBytes);
  entries_ = reserve<Queue::Entry>(kFrames);
  free_ = reserve<uint32_t>(kFrames);
  longer_ = reserve<uint8_t>(kBatch * kLongBytes);
  if (frames_ == nullptr || buffers_ == nullptr || entries_ == nullptr || free_ == nullptr || longer_ == nullptr) return {-ENOMEM, "mmap"};
  queue_.use(entries_, kFrames);
  // The last to be freed is the first to be used again: few buffers are touched while little waits.
  while (freeCount_ < kFrames) {
    free_[freeCount_] = kFrames - 1 - freeCount_;
    freeCount_++;
  }
  hurry();
  return {0, nullptr};
}

void Forwarder::release(uint32_t frame) {
  free(frames_[frame].longer);
  frames_[frame].longer = nullptr;
  free_[freeCount_++] = frame;
}

// ---------------------------------------------------------------- in

void Forwarder::receive(int from) {
  mmsghdr messages[kBatch];
  iovec parts[kBatch][3];
  uint32_t taken[kBatch];
  const int room = freeCount_ < kBatch ? static_cast<int>(freeCount_) : kBatch;
  Port& port = ports_[from];
  if (room == 0) {
    // One is read all the same, or the loop would turn on what nobody takes.
    if (recv(port.fd, longer_, kLongBytes, MSG_DONTWAIT) > 0) port.counters.noRoom++;
    return;
  }
  for (int i = 0; i < room; i++) {
    taken[i] = free_[freeCount_ - 1 - static_cast<uint32_t>(i)];
    parts[i][0] = {&frames_[taken[i]].header, sizeof(OffloadHeader)};
    parts[i][1] = {buffer(taken[i]), kFrameBytes};
    parts[i][2] = {longer_ + static_cast<size_t>(i) * kLongBytes, kLongBytes};
    messages[i] = {};
    messages[i].msg_hdr.msg_iov = parts[i];
    messages[i].msg_hdr.msg_iovlen = 3;
  }
  // An error (the port is down) is reported once; the readiness goes with it.
  const int count = recvmmsg(port.fd, messages, static_cast<unsigned>(room), MSG_DONTWAIT, nullptr);
  if (count <= 0) return;
  const int64_t now = nowNs();
  freeCount_ -= static_cast<uint32_t>(count);
  for (int i = 0; i < count; i++) {
    Frame& frame = frames_[taken[i]];
    frame.longer = nullptr;
    const size_t length = messages[i].msg_len < sizeof(OffloadHeader) ? 0 : messages[i].msg_len - sizeof(OffloadHeader);
    frame.length = static_cast<uint32_t>(length);
    if (length > kFrameBytes) {
      frame.longer = static_cast<uint8_t*>(malloc(length));
      if (frame.longer != nullptr) {
        memcpy(frame.longer, buffer(taken[i]), kFrameBytes);
        memcpy(frame.longer + kFrameBytes, longer_ + static_cast<size_t>(i) * kLongBytes, length - kFrameBytes);
      }
    }
    if (length < ETH_HLEN || (length > kFrameBytes && frame.longer == nullptr)) {
      port.counters.noRoom++;
      release(taken[i]);
    } else {
      take(from, taken[i], now);
    }
  }
}

void Forwarder::take(int from, uint32_t frame, int64_t now) {
  Port& port = ports_[from];
  Counters& counters = port.counters;
  const Verdict verdict = port.dice.roll(port.settings, now);
  const uint8_t* data = bytes(frame);
  counters.taken++;
  addresses_.learn(data + ETH_ALEN, from);
  bool goesOn = !verdict.isLost;
  if (verdict.isLost) counters.lost++;
  if (goesOn && verdict.isFlipped) {
    counters.flipped++;
    goesOn = damage(bytes(frame), frames_[frame].length, &frames_[frame].header, verdict.pick);
  }
  if (!goesOn) {
    release(frame);
    return;
  }
  if (verdict.isHeld) counters.held++;
  const int known = addresses_.portOf(data);
  if (known >= 0) {
    if (known == from) release(frame);
    else pass(from, known, frame, now, verdict);
    return;
  }
  // To everybody else: copies, and the last of them is the frame itself.
  int last = -1;
  for (int to = 0; to < portCount_; to++) {
    if (to == from) continue;
    uint32_t copy;
    if (last >= 0) {
      if (copyOf(frame, &copy)) pass(from, last, copy, now, verdict);
      else counters.noRoom++;
    }
    last = to;
  }
  if (last >= 0) pass(from, last, frame, now, verdict);
  else release(frame);
}

bool Forwarder::copyOf(uint32_t frame, uint32_t* copy) {
  if (freeCount_ == 0) return false;
  const Frame& source = frames_[frame];
  uint8_t* longer = source.longer == nullptr ? nullptr : static_cast<uint8_t*>(malloc(source.length));
  if (source.longer != nullptr && longer == nullptr) return false;
  *copy = free_[--freeCount_];
  frames_[*copy] = {source.header, source.length, longer};
  memcpy(bytes(*copy), bytes(frame), source.length);
  return true;
}

void Forwarder::pass(int from, int to, uint32_t frame, int64_t now, const Verdict& verdict) {
  // There are as many entries as frames.
  queue_.push(pacing_.dueNs(from, to, now, ports_[from].settings, verdict), frame, to);
}

// ---------------------------------------------------------------- out

void Forwarder::sendDue(int64_t now) {
  while (!queue_.isEmpty() && queue_.first().dueNs <= now) {
    Port& port = ports_[queue_.first().port];
    port.batch[port.batchCount++] = queue_.first().frame;
    queue_.pop();
    if (port.batchCount == kBatch) sendBatch(&port);
  }
  for (int i = 0; i < portCount_; i++) sendBatch(&ports_[i]);
}

void Forwarder::sendBatch(Port* port) {
  mmsghdr messages[kBatch];
  iovec parts[kBatch][2];
  for (int i = 0; i < port->batchCount; i++) {
    Frame& frame = frames_[port->batch[i]];
    parts[i][0] = {&frame.header, sizeof(OffloadHeader)};
    parts[i][1] = {bytes(port->batch[i]), frame.length};
    messages[i] = {};
    messages[i].msg_hdr.msg_iov = parts[i];
    messages[i].msg_hdr.msg_iovlen = 2;
  }
  for (int at = 0; at < port->batchCount;) {
    const int count = sendmmsg(port->fd, messages + at, static_cast<unsigned>(port->batchCount - at), MSG_DONTWAIT);
    if (count > 0) {
      port->counters.sent += static_cast<uint64_t>(count);
      at += count;
    } else {
      // The first of them was refused: its queue is full, or the port is down.
      port->counters.refused++;
      at++;
    }
  }
  for (int i = 0; i < port->batchCount; i++) release(port->batch[i]);
  port->batchCount = 0;
}

// ---------------------------------------------------------------- orders

void Forwarder::answer(const char* text, size_t length) {
  while (length > 0) {
    const ssize_t count = write(STDOUT_FILENO, text, length);
    if (count < 0 && errno == EINTR) continue;
    // Who no longer reads has closed the orders too.
    if (count <= 0) return;
    text += count;
    length -= static_cast<size_t>(count);
  }
}

void Forwarder::answerStats() {
  static char text[kAnswerBytes];
  size_t length = static_cast<size_t>(snprintf(text, sizeof text, "{\"ports\":["));
  for (int i = 0; i < portCount_; i++) {
    Port& port = ports_[i];
    // The kernel counts from one asking to the next.
    tpacket_stats stats = {};
    socklen_t size = sizeof stats;
    if (getsockopt(port.fd, SOL_PACKET, PACKET_STATISTICS, &stats, &size) == 0) port.counters.missed += stats.tp_drops;
    const Counters& c = port.counters;
    length += static_cast<size_t>(snprintf(text + length, sizeof text - length,
                                           "%s{\"taken\":%" PRIu64 ",\"lost\":%" PRIu64 ",\"flipped\":%" PRIu64 ",\"held\":%" PRIu64
                                           ",\"sent\":%" PRIu64 ",\"refused\":%" PRIu64 ",\"noRoom\":%" PRIu64 ",\"missed\":%" PRIu64 "}",
                                           i == 0 ? "" : ",", c.taken, c.lost, c.flipped, c.held, c.sent, c.refused, c.noRoom, c.missed));
  }
  length += static_cast<size_t>(snprintf(text + length, sizeof text - length, "]}\n"));
  answer(text, length);
}

bool Forwarder::obey(const char* order) {
  static const char kOk[] = "ok\n";
  static const char kNo[] = "no such order\n";
  static const char kRefused[] = "no socket can be bound\n";
  int at;
  Settings s;
  if (sscanf(order, "set %d %" SCNu64 " %" SCNd64 " %" SCNd64 " %" SCNu64 " %" SCNd64 " %" SCNu64, &at, &s.loss, &s.delayNs, &s.spreadNs,
             &s.reorder, &s.holdNs, &s.flip) == 7 &&
      at >= 0 && at < portCount_) {
    ports_[at].settings = s;
  } else if (strcmp(order, "on") == 0) {
    for (int i = 0; i < portCount_; i++) {
      if (listenAt(ports_[i])) continue;
      answer(kRefused, sizeof kRefused - 1);
      return true;
    }
  } else if (strcmp(order, "stats") == 0) {
    answerStats();
    return true;
  } else if (strcmp(order, "end") == 0) {
    sendDue(INT64_MAX);
    answer(kOk, sizeof kOk - 1);
    return false;
  } else {
    answer(kNo, sizeof kNo - 1);
    return true;
  }
  answer(kOk, sizeof kOk - 1);
  return true;
}

/// False when it is over.
bool Forwarder::readOrders() {
  const ssize_t count = read(STDIN_FILENO, order_ + orderLength_, sizeof order_ - orderLength_);
  if (count < 0) return errno == EINTR || errno == EAGAIN;
  if (count == 0) return false;
  orderLength_ += static_cast<size_t>(count);
  for (;;) {
    char* end = static_cast<char*>(memchr(order_, '\n', orderLength_));
    // No order is as long as that.
    if (end == nullptr) return orderLength_ < sizeof order_;
    *end = '\0';
    if (!obey(order_)) return false;
    const size_t used = static_cast<size_t>(end + 1 - order_);
    memmove(order_, end + 1, orderLength_ - used);
    orderLength_ -= used;
  }
}

void Forwarder::run() {
  pollfd polled[kPortsMax + 1];
  polled[0] = {STDIN_FILENO, POLLIN, 0};
  for (int i = 0; i < portCount_; i++) polled[i + 1] = {ports_[i].fd, POLLIN, 0};
  answer("ready\n", 6);
  for (;;) {
    const int64_t now = nowNs();
    sendDue(now);
    timespec wait = {};
    if (!queue_.isEmpty()) {
      const int64_t waitNs = queue_.first().dueNs - now;
      wait.tv_sec = static_cast<time_t>(waitNs / 1000000000);
      wait.tv_nsec = static_cast<long>(waitNs % 1000000000);
    }
    const int ready = ppoll(polled, static_cast<nfds_t>(portCount_ + 1), queue_.isEmpty() ? nullptr : &wait, nullptr);
    if (ready <= 0) continue;
    for (int i = 0; i < portCount_; i++) {
      if (polled[i + 1].revents != 0) receive(i);
    }
    if (polled[0].revents != 0 && !readOrders()) return;
  }
}

}  // namespace

Outcome forward(const char* const* ports, int portCount, uint64_t seed) {
  // Large, and there is only one: its sockets and mappings go with the process, which does nothing else.
  static Forwarder forwarder;
  const Outcome outcome = forwarder.start(ports, portCount, seed);
  if (outcome.value == 0) forwarder.run();
  return outcome;
}

}  // namespace impair
