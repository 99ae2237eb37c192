// What one environment has made with the library: contexts, protection domains, memory regions, channels, completion queues, queue pairs.
// JavaScript holds numbers; this table finds the objects behind them. An object may be closed in any order: what others still need goes
// with the last of these. Plain C++: no Node-API, so that it is tested without Node and without a device.
#pragma once
#include <stdint.h>

#include "verbs-lib.h"

namespace noderdma {

enum class Kind : uint8_t { context, pd, mr, channel, cq, qp };
constexpr int kKinds = 6;
constexpr int kParentsMax = 4;

struct Object {
  Kind kind;
  /// Closed by its owner; it lives on while `users` is not 0.
  bool closed;
  int32_t id;
  /// Objects that were made from this one.
  uint32_t users;
  Object* parents[kParentsMax];
  /// The ibv_… that it stands for.
  void* verbs;
  /// Of a memory region: what keeps the memory alive, for the layer above.
  void* owner;

  ibv_context* context() const { return static_cast<ibv_context*>(verbs); }
  ibv_pd* pd() const { return static_cast<ibv_pd*>(verbs); }
  ibv_mr* mr() const { return static_cast<ibv_mr*>(verbs); }
  ibv_comp_channel* channel() const { return static_cast<ibv_comp_channel*>(verbs); }
  ibv_cq* cq() const { return static_cast<ibv_cq*>(verbs); }
  ibv_qp* qp() const { return static_cast<ibv_qp*>(verbs); }
};

class Table {
 public:
  /// Of memory that is all zeros. `disown` is called for the `owner` of each object that is gone. (No constructor and no destructor:
  /// nothing of the C++ library is used, so that one binary serves every C library.)
  void open(const VerbsLib* lib, void (*disown)(void* data, void* owner), void* data);
  void end();

  /// A record for an object that is about to be made; null when there is no memory or no number left. Then either `made` or `dropped`.
  Object* begin(Kind kind, Object* const* parents, int count);
  void made(Object* object, void* verbs, void* owner);
  void dropped(Object* object);

  /// The open object of that number and kind; null when there is none.
  Object* find(int32_t id, Kind kind) const;
  /// Closes an open object of any kind. 0, -EBADF when there is none of that number, or what the library answered (negative errno).
  int close(int32_t id);
  /// Everything, children first. Returns the first thing that went wrong.
  int closeAll();
  /// Objects that exist, closed ones included.
  uint32_t live(Kind kind) const { return live_[static_cast<int>(kind)]; }

 private:
  Object* at(int32_t id) const;
  int release(Object* object);
  int destroy(Object* object);
  void forget(Object* object);

  const VerbsLib* lib_;
  void (*disown_)(void* data, void* owner);
  void* data_;
  Object** slots_;
  uint16_t* generations_;
  uint32_t capacity_;
  uint32_t searchFrom_;
  uint32_t live_[kKinds];
};

}  // namespace noderdma
