// What a bad wire does to frames: see wire.h.
#include "wire.h"

#include <string.h>

namespace impair {

uint64_t Random::next() {
  uint64_t z = (state += 0x9e3779b97f4a7c15ull);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

void Dice::seed(uint64_t seed, int port) {
  Random root{seed ^ (static_cast<uint64_t>(port) << 48)};
  Random* const all[] = {&loss_, &delay_, &reorder_, &flip_, &pick_};
  for (Random* one : all) one->state = root.next();
}

namespace {
bool happens(Random* random, Chance chance) { return (random->next() >> 32) < chance; }
}  // namespace

/// -1 to 1 in steps of 2^-31.
static double place(Random* random) { return static_cast<double>(random->next() >> 32) / 2147483648.0 - 1.0; }

double Dice::swing(int64_t nowNs, int64_t periodNs) {
  if (periodNs == 0) return 0;
  if (nowNs >= toNs_) {
    const bool goesOn = toNs_ != 0 && nowNs < toNs_ + periodNs;
    from_ = goesOn ? to_ : place(&delay_);
    fromNs_ = goesOn ? toNs_ : nowNs;
    to_ = place(&delay_);
    toNs_ = fromNs_ + periodNs;
  }
  return from_ + (to_ - from_) * (static_cast<double>(nowNs - fromNs_) / static_cast<double>(toNs_ - fromNs_));
}

Verdict Dice::roll(const Settings& settings, int64_t nowNs) {
  Verdict verdict;
  verdict.isLost = happens(&loss_, settings.loss);
  verdict.isHeld = happens(&reorder_, settings.reorder);
  verdict.isFlipped = happens(&flip_, settings.flip);
  verdict.pick = pick_.next();
  const int64_t delayNs =
      settings.delayNs + static_cast<int64_t>(swing(nowNs, 2 * settings.spreadNs) * static_cast<double>(settings.spreadNs));
  verdict.delayNs = delayNs < 0 ? 0 : delayNs;
  return verdict;
}

int64_t Pacing::dueNs(int from, int to, int64_t nowNs, const Settings& settings, const Verdict& verdict) {
  int64_t* lastNs = &lastNs_[from][to];
  int64_t dueNs = nowNs + verdict.delayNs;
  if (dueNs < *lastNs) dueNs = *lastNs;
  if (verdict.isHeld) return dueNs + settings.holdNs;
  return *lastNs = dueNs;
}

// ---------------------------------------------------------------- damage

namespace {

constexpr size_t kEthernetBytes = 14;
constexpr size_t kIpv4Bytes = 20;
constexpr size_t kIpv6Bytes = 40;
constexpr uint8_t kIcmp = 1, kTcp = 6, kUdp = 17, kIcmp6 = 58;
constexpr size_t kUdpChecksumAt = 6;

uint16_t read16(const uint8_t* at) { return static_cast<uint16_t>(at[0] << 8 | at[1]); }

/// Ones' complement sum of 16-bit words, folded.
uint16_t sumOf(const uint8_t* data, size_t length) {
  uint64_t sum = 0;
  for (; length > 1; data += 2, length -= 2) sum += read16(data);
  if (length > 0) sum += static_cast<uint64_t>(*data) << 8;
  while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<uint16_t>(sum);
}

/// Where the transport's header and data lie, and what transport it is. False when no checksum of it would tell.
bool findTransport(const uint8_t* frame, size_t length, size_t* start, size_t* end, uint8_t* protocol) {
  if (length < kEthernetBytes + kIpv4Bytes) return false;
  const uint8_t* ip = frame + kEthernetBytes;
  const uint16_t type = read16(frame + 12);
  if (type == 0x0800) {
    *start = kEthernetBytes + static_cast<size_t>(ip[0] & 15) * 4;
    *end = kEthernetBytes + read16(ip + 2);
    *protocol = ip[9];
    // A fragment carries a part only, and the checksum of the whole tells.
    if (*protocol != kTcp && *protocol != kUdp && *protocol != kIcmp) return false;
  } else if (type == 0x86dd) {
    if (length < kEthernetBytes + kIpv6Bytes) return false;
    *start = kEthernetBytes + kIpv6Bytes;
    *end = *start + read16(ip + 4);
    *protocol = ip[6];
    if (*protocol != kTcp && *protocol != kUdp && *protocol != kIcmp6) return false;
  } else {
    return false;
  }
  return *start < *end && *end <= length;
}

/// Does what was left to the card for the transport in [start, end). False when it was left for something else, as in a tunnel.
bool completeChecksum(uint8_t* frame, size_t start, size_t end, const OffloadHeader& header, uint8_t protocol) {
  const size_t at = start + header.checksumOffset;
  if (header.checksumStart != start || at + 2 > end) return false;
  // The field holds the sum of the pseudo-header already.
  uint16_t checksum = static_cast<uint16_t>(~sumOf(frame + start, end - start));
  if (checksum == 0 && protocol == kUdp) checksum = 0xffff;
  frame[at] = static_cast<uint8_t>(checksum >> 8);
  frame[at + 1] = static_cast<uint8_t>(checksum);
  return true;
}

}  // namespace

bool damage(uint8_t* frame, size_t length, OffloadHeader* header, uint64_t pick) {
  size_t start, end;
  uint8_t protocol;
  // A packet of segmentation offload is no frame, and comes only from before the nodes were told to cut.
  if (header->gsoType != 0 || !findTransport(frame, length, &start, &end, &protocol)) return false;
  if ((header->flags & kNeedsChecksum) != 0) {
    if (!completeChecksum(frame, start, end, *header, protocol)) return false;
  } else if (protocol == kUdp && end - start >= kUdpChecksumAt + 2 && read16(frame + start + kUdpChecksumAt) == 0) {
    // Zero says that there is none.
    return false;
  }
  *header = OffloadHeader{};
  const uint64_t bit = pick % ((end - start) * 8);
  frame[start + bit / 8] ^= static_cast<uint8_t>(1u << (bit % 8));
  return true;
}

// ---------------------------------------------------------------- the queue

namespace {
bool isBefore(const Queue::Entry& a, const Queue::Entry& b) { return a.dueNs != b.dueNs ? a.dueNs < b.dueNs : a.order < b.order; }
}  // namespace

void Queue::use(Entry* storage, uint32_t capacity) {
  heap_ = storage;
  capacity_ = capacity;
}

bool Queue::push(int64_t dueNs, uint32_t frame, int port) {
  if (count_ == capacity_) return false;
  const Entry entry{dueNs, order_++, frame, static_cast<uint8_t>(port)};
  uint32_t at = count_++;
  while (at > 0 && isBefore(entry, heap_[(at - 1) / 2])) {
    heap_[at] = heap_[(at - 1) / 2];
    at = (at - 1) / 2;
  }
  heap_[at] = entry;
  return true;
}

void Queue::pop() {
  const Entry entry = heap_[--count_];
  uint32_t at = 0;
  for (;;) {
    uint32_t child = 2 * at + 1;
    if (child >= count_) break;
    if (child + 1 < count_ && isBefore(heap_[child + 1], heap_[child])) child++;
    if (!isBefore(heap_[child], entry)) break;
    heap_[at] = heap_[child];
    at = child;
  }
  if (count_ > 0) heap_[at] = entry;
}

// ---------------------------------------------------------------- addresses

int Switch::slotOf(const uint8_t* address) {
  unsigned hash = 0;
  for (int i = 0; i < 6; i++) hash = hash * 31 + address[i];
  return static_cast<int>(hash % kSlots);
}

void Switch::learn(const uint8_t* address, int port) {
  if ((address[0] & 1) != 0) return;
  Slot& slot = slots_[slotOf(address)];
  memcpy(slot.address, address, sizeof slot.address);
  slot.isUsed = true;
  slot.port = static_cast<uint8_t>(port);
}

int Switch::portOf(const uint8_t* address) const {
  const Slot& slot = slots_[slotOf(address)];
  if ((address[0] & 1) != 0 || !slot.isUsed || memcmp(slot.address, address, sizeof slot.address) != 0) return -1;
  return slot.port;
}

}  // namespace impair
