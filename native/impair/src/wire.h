// What a bad wire does to frames, without any socket: chance, delay, order and damage. Times are nanoseconds of one clock.
#pragma once
#include <stddef.h>
#include <stdint.h>

namespace impair {

constexpr int kPortsMax = 32;

/// splitmix64: the same numbers after the same seed.
struct Random {
  uint64_t state;
  uint64_t next();
};

/// A chance as its share of 2^32: 0 is never, 2^32 always.
using Chance = uint64_t;

/// What happens to what enters by one port.
struct Settings {
  Chance loss = 0;
  int64_t delayNs = 0;
  /// The delay swings between delayNs - spreadNs and delayNs + spreadNs: every 2 * spreadNs a new one is drawn, and between two of them it
  /// goes straight. So it never falls faster than time goes on, and no frame overtakes another for it.
  int64_t spreadNs = 0;
  /// Frames that are held for holdNs more, and are overtaken meanwhile.
  Chance reorder = 0;
  int64_t holdNs = 0;
  /// Frames of which a bit flips.
  Chance flip = 0;
};

struct Verdict {
  bool isLost;
  bool isHeld;
  bool isFlipped;
  int64_t delayNs;
  /// Says which bit.
  uint64_t pick;
};

/// Decides for the frames of one port, one after the other. Every kind of chance has numbers of its own and takes one of them per frame:
/// which frames are lost does not depend on whether some are held back too. Only the delay draws as time goes on.
class Dice {
 public:
  void seed(uint64_t seed, int port);
  Verdict roll(const Settings& settings, int64_t nowNs);

 private:
  double swing(int64_t nowNs, int64_t periodNs);

  /// Where the delay swings from and to, -1 to 1, and when.
  double from_ = 0, to_ = 0;
  int64_t fromNs_ = 0, toNs_ = 0;
  Random loss_{}, delay_{}, reorder_{}, flip_{}, pick_{};
};

/// When frames leave. A frame that is not held leaves after all that came before it between the same two ports.
class Pacing {
 public:
  int64_t dueNs(int from, int to, int64_t nowNs, const Settings& settings, const Verdict& verdict);

 private:
  int64_t lastNs_[kPortsMax][kPortsMax] = {};
};

/// virtio_net_hdr, which the kernel puts before each frame: what of the frame's checksum is still to be computed, and whether it is cut.
struct OffloadHeader {
  uint8_t flags;
  uint8_t gsoType;
  uint16_t headerBytes;
  uint16_t segmentBytes;
  uint16_t checksumStart;
  uint16_t checksumOffset;
};
constexpr uint8_t kNeedsChecksum = 1;

/// Flips one bit of what the frame's transport checksum covers, which is computed before where that was left to the card. False, and no
/// bit is flipped, for a frame without such a checksum: a card drops it, since it checks what this wire has not.
bool damage(uint8_t* frame, size_t length, OffloadHeader* header, uint64_t pick);

/// Frames that wait, by the time they are due; those due at the same time in the order of their coming.
class Queue {
 public:
  struct Entry {
    int64_t dueNs;
    uint64_t order;
    uint32_t frame;
    uint8_t port;
  };
  /// `storage` has room for `capacity`.
  void use(Entry* storage, uint32_t capacity);
  /// False when it is full.
  bool push(int64_t dueNs, uint32_t frame, int port);
  bool isEmpty() const { return count_ == 0; }
  const Entry& first() const { return heap_[0]; }
  void pop();

 private:
  Entry* heap_ = nullptr;
  uint32_t capacity_ = 0;
  uint32_t count_ = 0;
  uint64_t order_ = 0;
};

/// The port behind which an address was last seen, as a switch learns it. What is forgotten is sent to all.
class Switch {
 public:
  void learn(const uint8_t* address, int port);
  /// -1: unknown, or of a group.
  int portOf(const uint8_t* address) const;

 private:
  static constexpr int kSlots = 256;
  struct Slot {
    uint8_t address[6];
    bool isUsed;
    uint8_t port;
  };
  static int slotOf(const uint8_t* address);
  Slot slots_[kSlots] = {};
};

}  // namespace impair
