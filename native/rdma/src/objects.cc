// See objects.h.
#include "objects.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

namespace noderdma {
namespace {

/// A number is index and generation: one that was closed is not mistaken for what took its place, until that slot was used
/// kGenerations - 1 times more and its numbers begin again.
constexpr uint32_t kIndexBits = 20;
constexpr uint32_t kIndexMask = (1u << kIndexBits) - 1;
constexpr uint32_t kGenerations = 1u << (31 - kIndexBits);
constexpr uint32_t kSlotsMin = 64;

int32_t numberOf(uint32_t index, uint16_t generation) { return static_cast<int32_t>((uint32_t{generation} << kIndexBits) | index); }

}  // namespace

void Table::open(const VerbsLib* lib, void (*disown)(void* data, void* owner), void* data) {
  lib_ = lib;
  disown_ = disown;
  data_ = data;
}

void Table::end() {
  closeAll();
  free(slots_);
  free(generations_);
}

Object* Table::begin(Kind kind, Object* const* parents, int count) {
  uint32_t index = capacity_;
  for (uint32_t i = 0; i < capacity_; i++) {
    const uint32_t candidate = (searchFrom_ + i) % capacity_;
    if (slots_[candidate] == nullptr) {
      index = candidate;
      break;
    }
  }
  if (index == capacity_) {
    const uint32_t capacity = capacity_ == 0 ? kSlotsMin : capacity_ * 2;
    if (capacity > kIndexMask + 1) return nullptr;
    auto** slots = static_cast<Object**>(realloc(slots_, capacity * sizeof(Object*)));
    if (slots == nullptr) return nullptr;
    slots_ = slots;
    auto* generations = static_cast<uint16_t*>(realloc(generations_, capacity * sizeof(uint16_t)));
    if (generations == nullptr) return nullptr;
    generations_ = generations;
    for (uint32_t i = capacity_; i < capacity; i++) {
      slots_[i] = nullptr;
      generations_[i] = 1;
    }
    capacity_ = capacity;
  }
  auto* object = static_cast<Object*>(calloc(1, sizeof(Object)));
  if (object == nullptr) return nullptr;
  object->kind = kind;
  object->id = numberOf(index, generations_[index]);
  for (int i = 0; i < count; i++) {
    object->parents[i] = parents[i];
    if (parents[i] != nullptr) parents[i]->users++;
  }
  slots_[index] = object;
  searchFrom_ = index + 1;
  live_[static_cast<int>(kind)]++;
  return object;
}

void Table::made(Object* object, void* verbs, void* owner) {
  object->verbs = verbs;
  object->owner = owner;
}

void Table::dropped(Object* object) {
  for (Object* parent : object->parents) {
    if (parent != nullptr) parent->users--;
  }
  forget(object);
}

Object* Table::at(int32_t id) const {
  if (id <= 0) return nullptr;
  const uint32_t index = static_cast<uint32_t>(id) & kIndexMask;
  if (index >= capacity_) return nullptr;
  Object* object = slots_[index];
  return object != nullptr && object->id == id && !object->closed ? object : nullptr;
}

Object* Table::find(int32_t id, Kind kind) const {
  Object* object = at(id);
  return object != nullptr && object->kind == kind ? object : nullptr;
}

int Table::close(int32_t id) {
  Object* object = at(id);
  if (object == nullptr) return -EBADF;
  object->closed = true;
  return object->users == 0 ? release(object) : 0;
}

/// Destroys an object that nobody needs, and those of its parents that were closed and waited for it. Parents are let go one after the other,
/// so that each is there when it is looked at: one may be the parent of another (the device of a queue, and of the queue's channel), and the
/// same may stand there twice (one queue for both directions).
int Table::release(Object* object) {
  int failure = destroy(object);
  Object* parents[kParentsMax];
  memcpy(parents, object->parents, sizeof parents);
  forget(object);
  for (Object* parent : parents) {
    if (parent == nullptr || --parent->users > 0 || !parent->closed) continue;
    const int worse = release(parent);
    if (failure == 0) failure = worse;
  }
  return failure;
}

int Table::destroy(Object* object) {
  int answer = 0;
  if (object->verbs != nullptr) {
    switch (object->kind) {
      case Kind::context:
        answer = lib_->close_device(object->context());
        break;
      case Kind::pd:
        answer = lib_->dealloc_pd(object->pd());
        break;
      case Kind::mr:
        answer = lib_->dereg_mr(object->mr());
        break;
      case Kind::channel:
        answer = lib_->destroy_comp_channel(object->channel());
        break;
      case Kind::cq:
        answer = lib_->destroy_cq(object->cq());
        break;
      case Kind::qp:
        answer = lib_->destroy_qp(object->qp());
        break;
    }
  }
  if (answer == 0) return 0;
  // Some answer an error number, some -1 and errno.
  return answer > 0 ? -answer : -errno;
}

void Table::forget(Object* object) {
  if (object->owner != nullptr) disown_(data_, object->owner);
  const uint32_t index = static_cast<uint32_t>(object->id) & kIndexMask;
  slots_[index] = nullptr;
  generations_[index] = static_cast<uint16_t>(generations_[index] + 1 == kGenerations ? 1 : generations_[index] + 1);
  live_[static_cast<int>(object->kind)]--;
  free(object);
}

int Table::closeAll() {
  int failure = 0;
  // What is needed by nothing else first.
  const Kind order[] = {Kind::qp, Kind::mr, Kind::cq, Kind::channel, Kind::pd, Kind::context};
  for (const Kind kind : order) {
    for (uint32_t i = 0; i < capacity_; i++) {
      Object* object = slots_[i];
      if (object == nullptr || object->kind != kind) continue;
      object->closed = true;
      if (object->users > 0) continue;
      const int worse = release(object);
      if (failure == 0) failure = worse;
    }
  }
  return failure;
}

}  // namespace noderdma
