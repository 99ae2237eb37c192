// What a bad wire does to frames: chances and their seeds, delay and order, damage that a checksum always tells, the queue, the switch.
#include "../src/wire.h"

#include "../../test/check.h"

using namespace impair;

namespace {

constexpr Chance kAlways = 1ull << 32;

/// A frame as the kernel hands it over: TCP or UDP over IPv4 or IPv6, with the checksum whole or left to the card.
struct Packet {
  uint8_t bytes[2048];
  size_t length;
  size_t transport;
  size_t end;
  uint8_t protocol;
  bool is6;
  OffloadHeader header;
};

void put16(uint8_t* at, size_t value) {
  at[0] = static_cast<uint8_t>(value >> 8);
  at[1] = static_cast<uint8_t>(value);
}

uint32_t add(uint32_t sum, const uint8_t* data, size_t length) {
  for (size_t i = 0; i < length; i++) sum += i % 2 == 0 ? static_cast<uint32_t>(data[i]) << 8 : data[i];
  while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
  return sum;
}

uint32_t pseudoSum(const Packet& packet) {
  const uint8_t* ip = packet.bytes + 14;
  uint8_t tail[4] = {0, packet.protocol, 0, 0};
  put16(tail + 2, packet.end - packet.transport);
  return add(packet.is6 ? add(0, ip + 8, 32) : add(0, ip + 12, 8), tail, sizeof tail);
}

/// As a receiver looks at it.
bool isRight(const Packet& packet) {
  return add(pseudoSum(packet), packet.bytes + packet.transport, packet.end - packet.transport) == 0xffff;
}

Packet make(check::Random* random, bool is6, uint8_t protocol, size_t payload, bool isLeft) {
  Packet packet = {};
  const size_t head = protocol == 6 ? 20 : 8;
  const size_t checksumAt = protocol == 6 ? 16 : 6;
  packet.is6 = is6;
  packet.protocol = protocol;
  packet.transport = 14 + (is6 ? 40 : 20);
  packet.end = packet.transport + head + payload;
  // Some cards pad.
  packet.length = packet.end < 60 && !isLeft ? 60 : packet.end;
  for (size_t i = 0; i < packet.end; i++) packet.bytes[i] = static_cast<uint8_t>(random->next());
  uint8_t* ip = packet.bytes + 14;
  put16(packet.bytes + 12, is6 ? 0x86dd : 0x0800);
  if (is6) {
    ip[0] = 0x60;
    put16(ip + 4, packet.end - packet.transport);
    ip[6] = protocol;
  } else {
    ip[0] = 0x45;
    put16(ip + 2, packet.end - 14);
    ip[9] = protocol;
  }
  if (protocol == 17) put16(packet.bytes + packet.transport + 4, head + payload);
  uint8_t* field = packet.bytes + packet.transport + checksumAt;
  put16(field, pseudoSum(packet));
  if (isLeft) {
    packet.header.flags = kNeedsChecksum;
    packet.header.checksumStart = static_cast<uint16_t>(packet.transport);
    packet.header.checksumOffset = static_cast<uint16_t>(checksumAt);
  } else {
    put16(field, 0);
    uint32_t sum = ~add(pseudoSum(packet), packet.bytes + packet.transport, packet.end - packet.transport) & 0xffff;
    put16(field, sum == 0 && protocol == 17 ? 0xffff : sum);
    CHECK(isRight(packet));
  }
  return packet;
}

int bitsApart(const Packet& a, const Packet& b, size_t from, size_t to) {
  int bits = 0;
  for (size_t i = from; i < to; i++) bits += __builtin_popcount(a.bytes[i] ^ b.bytes[i]);
  return bits;
}

void damageIsTold(check::Random* random) {
  const uint8_t protocols[] = {6, 17};
  for (int round = 0; round < 4000; round++) {
    const bool is6 = round % 2 == 0;
    const uint8_t protocol = protocols[round / 2 % 2];
    const bool isLeft = round / 4 % 2 == 0;
    const Packet before = make(random, is6, protocol, random->below(1400), isLeft);
    Packet after = before;
    CHECK(damage(after.bytes, after.length, &after.header, random->next()));
    CHECK(after.header.flags == 0);
    CHECK(!isRight(after));
    CHECK(bitsApart(before, after, 0, after.transport) == 0);
    CHECK(bitsApart(before, after, after.end, after.length) == 0);
    if (!isLeft) CHECK(bitsApart(before, after, after.transport, after.end) == 1);
  }
}

void everyBitIsHitOnce(check::Random* random) {
  const Packet before = make(random, false, 6, 3, false);
  const size_t bits = (before.end - before.transport) * 8;
  Packet all = before;
  for (uint64_t pick = 0; pick < bits; pick++) {
    Packet after = before;
    CHECK(damage(after.bytes, after.length, &after.header, pick));
    for (size_t i = 0; i < after.length; i++) all.bytes[i] ^= static_cast<uint8_t>(after.bytes[i] ^ before.bytes[i]);
  }
  CHECK(bitsApart(before, all, 0, all.length) == static_cast<int>(bits));
}

void whatNoChecksumTellsIsDropped(check::Random* random) {
  Packet arp = make(random, false, 6, 20, false);
  put16(arp.bytes + 12, 0x0806);
  Packet without = make(random, false, 17, 20, false);
  put16(without.bytes + without.transport + 6, 0);
  Packet offloaded = make(random, false, 6, 1000, true);
  offloaded.header.gsoType = 1;
  Packet other = make(random, false, 6, 20, false);
  other.bytes[14 + 9] = 89;
  Packet optioned = make(random, true, 6, 20, false);
  optioned.bytes[14 + 6] = 0;
  Packet* const all[] = {&arp, &without, &offloaded, &other, &optioned};
  for (Packet* one : all) {
    const Packet before = *one;
    CHECK(!damage(one->bytes, one->length, &one->header, random->next()));
    CHECK(bitsApart(before, *one, 0, one->length) == 0);
  }
  // Cut short anywhere, and lies about its lengths: nothing is read or written behind its end.
  for (int round = 0; round < 20000; round++) {
    Packet packet = make(random, round % 2 == 0, 6, 20, round % 3 == 0);
    for (int i = 0; i < 3; i++) packet.bytes[14 + random->below(20)] = static_cast<uint8_t>(random->next());
    if (round % 5 == 0) packet.header.checksumStart = static_cast<uint16_t>(random->below(200));
    const size_t length = random->below(static_cast<unsigned>(packet.length) + 1);
    auto* exact = static_cast<uint8_t*>(malloc(length == 0 ? 1 : length));
    memcpy(exact, packet.bytes, length);
    damage(exact, length, &packet.header, random->next());
    free(exact);
  }
  CHECK(true);
}

void chances() {
  Settings settings;
  settings.loss = kAlways / 5;
  settings.reorder = kAlways / 100;
  settings.flip = kAlways / 2;
  Dice dice, same, other, port;
  dice.seed(7, 0);
  same.seed(7, 0);
  other.seed(8, 0);
  port.seed(7, 1);
  Settings lossOnly;
  lossOnly.loss = settings.loss;
  int lost = 0, held = 0, flipped = 0, otherwise = 0, elsewhere = 0;
  constexpr int kFrames = 100000;
  for (int i = 0; i < kFrames; i++) {
    const Verdict verdict = dice.roll(settings, i);
    lost += verdict.isLost;
    held += verdict.isHeld;
    flipped += verdict.isFlipped;
    CHECK(same.roll(lossOnly, i).isLost == verdict.isLost);
    otherwise += other.roll(settings, i).isLost != verdict.isLost;
    elsewhere += port.roll(settings, i).isLost != verdict.isLost;
  }
  // The numbers are the same in every run.
  CHECK(lost > 19500 && lost < 20500);
  CHECK(held > 900 && held < 1100);
  CHECK(flipped > 49000 && flipped < 51000);
  CHECK(otherwise > 30000 && elsewhere > 30000);
  Settings sure;
  sure.loss = kAlways;
  for (int i = 0; i < 1000; i++) CHECK(dice.roll(sure, i).isLost && !dice.roll(Settings{}, i).isLost);
}

void delays() {
  Settings settings;
  settings.delayNs = 1000;
  settings.spreadNs = 400;
  settings.reorder = kAlways / 50;
  settings.holdNs = 5000;
  Dice dice;
  dice.seed(3, 0);
  static Pacing pacing;
  int64_t last = 0, least = INT64_MAX, most = 0, sum = 0, before = 0;
  int held = 0, count = 0;
  for (int64_t now = 1; now < 2000000; now += 100) {
    const Verdict verdict = dice.roll(settings, now);
    CHECK(verdict.delayNs >= 600 && verdict.delayNs <= 1400);
    // Never faster than time.
    if (count++ > 0) CHECK(verdict.delayNs >= before - 101 && verdict.delayNs <= before + 101);
    before = verdict.delayNs;
    sum += verdict.delayNs;
    if (verdict.delayNs < least) least = verdict.delayNs;
    if (verdict.delayNs > most) most = verdict.delayNs;
    const int64_t due = pacing.dueNs(0, 1, now, settings, verdict);
    CHECK(due >= now + verdict.delayNs);
    if (verdict.isHeld) {
      held++;
      CHECK(due >= now + verdict.delayNs + settings.holdNs);
    } else {
      CHECK(due >= last);
      last = due;
    }
  }
  CHECK(least < 620 && most > 1380 && held > 100);
  CHECK(sum / count > 970 && sum / count < 1030);
  // After a pause it begins somewhere else.
  least = INT64_MAX, most = 0;
  for (int64_t now = 10000000; now < 20000000; now += 10000) {
    const int64_t delayNs = dice.roll(settings, now).delayNs;
    if (delayNs < least) least = delayNs;
    if (delayNs > most) most = delayNs;
  }
  CHECK(least >= 600 && least < 620 && most > 1380 && most <= 1400);
  // A delay that falls does not let the next frame overtake; between other ports nothing waits.
  const Verdict slow{false, false, false, 9000000, 0};
  const Verdict quick{false, false, false, 0, 0};
  const int64_t due = pacing.dueNs(0, 1, 6000000, settings, slow);
  CHECK(pacing.dueNs(0, 1, 6000001, settings, quick) == due);
  CHECK(pacing.dueNs(1, 0, 6000001, settings, quick) == 6000001);
  // A delay below its spread is none at times, and never negative.
  settings.delayNs = 100;
  for (int i = 0; i < 1000; i++) CHECK(dice.roll(settings, i).delayNs >= 0);
}

void queue(check::Random* random) {
  constexpr uint32_t kCapacity = 500;
  auto* storage = static_cast<Queue::Entry*>(malloc(kCapacity * sizeof(Queue::Entry)));
  Queue queue;
  queue.use(storage, kCapacity);
  for (int round = 0; round < 20; round++) {
    for (uint32_t i = 0; i < kCapacity; i++) CHECK(queue.push(random->below(50), i, 3));
    CHECK(!queue.push(0, 0, 0));
    int64_t due = -1;
    uint64_t order = 0;
    for (uint32_t i = 0; i < kCapacity; i++) {
      const Queue::Entry first = queue.first();
      CHECK(first.dueNs > due || (first.dueNs == due && first.order > order));
      CHECK(first.port == 3);
      due = first.dueNs;
      order = first.order;
      queue.pop();
    }
    CHECK(queue.isEmpty());
  }
  free(storage);
}

void addresses(check::Random* random) {
  static Switch addresses;
  uint8_t all[20][6];
  for (int i = 0; i < 20; i++) {
    const uint8_t address[6] = {2, 0x77, 0, 0, 1, static_cast<uint8_t>(i + 1)};
    memcpy(all[i], address, 6);
    CHECK(addresses.portOf(address) == -1);
    addresses.learn(address, i);
  }
  for (int i = 0; i < 20; i++) CHECK(addresses.portOf(all[i]) == i);
  addresses.learn(all[4], 9);
  CHECK(addresses.portOf(all[4]) == 9);
  const uint8_t group[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
  addresses.learn(group, 1);
  CHECK(addresses.portOf(group) == -1);
  // However many there are, an answer is right or none.
  for (int i = 0; i < 5000; i++) {
    uint8_t address[6] = {2, 0, 0, 0, static_cast<uint8_t>(random->next()), static_cast<uint8_t>(random->next())};
    const int port = address[5] % 32;
    addresses.learn(address, port);
    CHECK(addresses.portOf(address) == port);
    address[3] = 1;
    CHECK(addresses.portOf(address) == -1);
  }
}

}  // namespace

int main() {
  check::Random random{0x2545f4914f6cdd1dull};
  damageIsTold(&random);
  everyBitIsHitOnce(&random);
  whatNoChecksumTellsIsDropped(&random);
  chances();
  delays();
  queue(&random);
  addresses(&random);
  return check::finish("wire");
}
