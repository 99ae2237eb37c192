// Shared memory, doorbells, single copy, spins and shared calls of the surface: from JavaScript's arguments to segment.h, doorbell.h, cma.h,
// watch.h, shared-call.h and back.
// A mapping belongs to its ArrayBuffer. It is unmapped once: by memoryUnmap, or when the ArrayBuffer is collected.
#include <stdlib.h>

#include "../combine/combine.h"
#include "../env.h"
#include "cma.h"
#include "common/napi-args.h"
#include "doorbell.h"
#include "segment.h"
#include "shared-call.h"
#include "watch.h"

namespace multirail {

struct Mapping {
  /// Null after the environment's record is gone.
  Env* env;
  Mapping* previous;
  Mapping* next;
  /// Null once unmapped.
  void* base;
  size_t bytes;
};

namespace {

/// The ArrayBuffer is gone, or detached by memoryUnmap.
void release(napi_env, void*, void* hint) {
  auto* mapping = static_cast<Mapping*>(hint);
  if (mapping->base != nullptr) segmentUnmap(mapping->base, mapping->bytes);
  if (mapping->previous != nullptr) mapping->previous->next = mapping->next;
  else if (mapping->env != nullptr) mapping->env->mappings = mapping->next;
  if (mapping->next != nullptr) mapping->next->previous = mapping->previous;
  free(mapping);
}

napi_value refuseExternal(napi_env env, napi_status status) {
  // napi_no_external_buffers_allowed, which headers before Node 18.13 lack.
  if (static_cast<int>(status) == 22) return throwCode(env, "ERR_NO_EXTERNAL", "this runtime permits no ArrayBuffer over foreign memory");
  return throwCode(env, "ERR_MEMORY_MAP", "no ArrayBuffer could be made over the memory");
}

napi_value jsMemoryCreate(napi_env env, napi_callback_info info) {
  Args<2> args(env, info);
  char name[200];
  const size_t length = args.text(0, "name", name, sizeof name);
  if (args.ok && strlen(name) != length) args.refuse("name", "without NUL");
  const auto bytes = static_cast<size_t>(args.whole(1, "bytes", 1, 9007199254740991.0));
  if (!args.ok) return nullptr;
  const char* syscall;
  const int outcome = segmentCreate(name, bytes, &syscall);
  return answerOrThrow(env, outcome, syscall);
}

napi_value jsMemoryMap(napi_env env, napi_callback_info info) {
  Args<2> args(env, info);
  const int fd = args.fd(0);
  const auto bytes = static_cast<size_t>(args.whole(1, "bytes", 1, 9007199254740991.0));
  if (!args.ok) return nullptr;
  void* base = nullptr;
  const int outcome = segmentMap(fd, bytes, &base);
  if (outcome == kSegmentTooSmall) return throwCode(env, "ERR_SEGMENT_SIZE", "the segment is smaller than what is to be mapped");
  if (outcome == kSegmentNotSealed) return throwCode(env, "ERR_SEGMENT_SEAL", "the segment is not sealed against shrinking");
  if (outcome < 0) return throwSystem(env, outcome, "mmap");
  auto* mapping = static_cast<Mapping*>(calloc(1, sizeof(Mapping)));
  if (mapping == nullptr) {
    segmentUnmap(base, bytes);
    return throwSystem(env, -ENOMEM, "mmap");
  }
  mapping->base = base;
  mapping->bytes = bytes;
  napi_value memory = nullptr;
  const napi_status status = napi_create_external_arraybuffer(env, base, bytes, release, mapping, &memory);
  if (status != napi_ok) {
    segmentUnmap(base, bytes);
    free(mapping);
    return refuseExternal(env, status);
  }
  Env* data = envOf(env);
  mapping->env = data;
  mapping->next = data->mappings;
  if (mapping->next != nullptr) mapping->next->previous = mapping;
  data->mappings = mapping;
  return memory;
}

napi_value jsMemoryUnmap(napi_env env, napi_callback_info info) {
  Args<1> args(env, info);
  void* base = nullptr;
  size_t bytes = 0;
  if (napi_get_arraybuffer_info(env, args.at[0], &base, &bytes) != napi_ok) args.refuse("memory", "an ArrayBuffer of memoryMap");
  Mapping* mapping = base == nullptr ? nullptr : envOf(env)->mappings;
  while (mapping != nullptr && mapping->base != base) mapping = mapping->next;
  if (mapping == nullptr) args.refuse("memory", "an ArrayBuffer of memoryMap that is still mapped");
  if (!args.ok) return nullptr;
  // After this no view can reach the memory. `release` may run at once or later; it finds nothing left to unmap.
  mapping->base = nullptr;
  const size_t mapped = mapping->bytes;
  if (napi_detach_arraybuffer(env, args.at[0]) != napi_ok) {
    mapping->base = base;
    return throwCode(env, "ERR_MEMORY_MAP", "the ArrayBuffer cannot be detached");
  }
  segmentUnmap(base, mapped);
  return nullptr;
}

/// The memory is somebody else's.
void forget(napi_env, void*, void*) {}

napi_value jsMemoryAlias(napi_env env, napi_callback_info info) {
  Args<1> args(env, info);
  const Bytes bytes = args.bytes(0);
  if (args.ok && bytes.length == 0) args.refuse("bytes", "a view that is not empty");
  if (!args.ok) return nullptr;
  napi_value memory = nullptr;
  const napi_status status = napi_create_external_arraybuffer(env, bytes.data, bytes.length, forget, nullptr, &memory);
  return status == napi_ok ? memory : refuseExternal(env, status);
}

napi_value jsAddressOf(napi_env env, napi_callback_info info) {
  Args<1> args(env, info);
  const Bytes bytes = args.bytes(0);
  return args.ok ? answerNumber(env, static_cast<double>(reinterpret_cast<uintptr_t>(bytes.data))) : nullptr;
}

napi_value jsProcessRead(napi_env env, napi_callback_info info) {
  Args<5> args(env, info);
  const int pid = args.fd(0, "pid");
  const uint64_t address = args.size(1, "address");
  const Bytes bytes = args.slice(2);
  return args.ok ? answerCount(env, processRead(pid, address, bytes.data, bytes.length)) : nullptr;
}

napi_value jsProcessWatch(napi_env env, napi_callback_info info) {
  Args<1> args(env, info);
  const int pid = args.fd(0, "pid");
  return args.ok ? answerInt(env, processWatch(pid)) : nullptr;
}

napi_value jsEventOpen(napi_env env, napi_callback_info) { return answerOrThrow(env, doorbellOpen(), "eventfd"); }

napi_value jsEventSignal(napi_env env, napi_callback_info info) {
  Args<1> args(env, info);
  const int fd = args.fd(0);
  if (!args.ok) return nullptr;
  const int outcome = doorbellSignal(fd);
  return outcome < 0 ? throwSystem(env, outcome, "write") : nullptr;
}

napi_value jsEventClear(napi_env env, napi_callback_info info) {
  Args<1> args(env, info);
  const int fd = args.fd(0);
  if (!args.ok) return nullptr;
  const int outcome = doorbellClear(fd);
  return outcome < 0 ? throwSystem(env, outcome, "read") : answerBool(env, outcome > 0);
}

/// Words that are looked at together.
constexpr size_t kWatchedMax = 64;

napi_value jsWatchWords(napi_env env, napi_callback_info info) {
  Args<6> args(env, info);
  size_t length;
  const auto* places = static_cast<const int32_t*>(args.array(1, "places", napi_int32_array, "an Int32Array", &length));
  const auto count = static_cast<size_t>(args.whole(2, "count", 0, kWatchedMax));
  const auto looks = static_cast<uint32_t>(args.whole(3, "looks", 0, UINT32_MAX));
  const auto looksPerYield = static_cast<uint32_t>(args.whole(4, "looksPerYield", 1, UINT32_MAX));
  const double takenAwayMs = args.number(5, "takenAwayMs");
  if (args.ok && 2 * count > length) args.refuse("places", "two numbers for each word");
  WatchedWord words[kWatchedMax];
  for (size_t i = 0; i < count && args.ok; i++) {
    napi_value array = nullptr;
    napi_typedarray_type type = napi_int8_array;
    void* data = nullptr;
    size_t arrayLength = 0;
    if (napi_get_element(env, args.at[0], static_cast<uint32_t>(i), &array) != napi_ok ||
        napi_get_typedarray_info(env, array, &type, &arrayLength, &data, nullptr, nullptr) != napi_ok || type != napi_int32_array) {
      args.refuse("words", "Int32Arrays");
    } else if (places[2 * i] < 0 || static_cast<size_t>(places[2 * i]) >= arrayLength) {
      args.refuse("places", "within the arrays");
    } else {
      words[i] = {static_cast<const int32_t*>(data) + places[2 * i], places[2 * i + 1]};
    }
  }
  return args.ok ? answerInt(env, static_cast<int32_t>(watchWords(words, count, looks, looksPerYield, takenAwayMs))) : nullptr;
}

bool areApart(const void* a, size_t aBytes, const void* b, size_t bBytes) {
  const auto x = reinterpret_cast<uintptr_t>(a), y = reinterpret_cast<uintptr_t>(b);
  return x + aBytes <= y || y + bBytes <= x;
}

napi_value jsSharedCall(napi_env env, napi_callback_info info) {
  Args<4> args(env, info);
  size_t wordCount;
  auto* words = static_cast<int32_t*>(args.array(0, "words", napi_int32_array, "an Int32Array", &wordCount));
  size_t planWords;
  const void* planData = args.array(1, "plan", napi_int32_array, "an Int32Array", &planWords);
  const Bytes own = args.bytes(2, "own");
  if (args.ok && planWords < kSharedCallWords) args.refuse("plan", "as long as SHARED_CALL says");
  if (!args.ok) return nullptr;
  SharedCallPlan plan;
  memcpy(&plan, planData, sizeof plan);
  if (!fits(plan, wordCount)) args.refuse("plan", "of places within the words");
  const auto bytes = static_cast<size_t>(plan.bytes);
  if (args.ok && own.length != 0 && own.length != bytes) args.refuse("own", "empty, or as long as the plan says");
  napi_valuetype outType = napi_undefined;
  napi_typeof(env, args.at[3], &outType);
  napi_typedarray_type type = napi_uint8_array;
  void* out = nullptr;
  CombineKind kind = CombineKind::kUint8;
  if (args.ok && outType != napi_undefined) {
    size_t length = 0;
    if (napi_get_typedarray_info(env, args.at[3], &type, &length, &out, nullptr, nullptr) != napi_ok || !combineKindOf(type, &kind)) {
      args.refuse("out", "a typed array");
    } else if (length * combineElementBytes(kind) != bytes) {
      args.refuse("out", "as long as the plan says");
    }
  }
  const bool combines = out != nullptr && plan.source < 0;
  if (args.ok && combines &&
      (plan.op < 0 || plan.op >= static_cast<int32_t>(CombineOp::kEnd) || !canCombine(static_cast<CombineOp>(plan.op), kind))) {
    args.refuse("plan", "an operation that is defined for out");
  }
  const size_t segmentBytes = wordCount * sizeof(int32_t);
  if (args.ok &&
      (!areApart(words, segmentBytes, own.data, own.length) || !areApart(words, segmentBytes, out, out == nullptr ? 0 : bytes))) {
    args.refuse("own and out", "apart from the words");
  }
  if (!args.ok) return nullptr;
  return answerInt(env, sharedCall(words, plan, own.data, own.length, static_cast<uint8_t*>(out), kind));
}

constexpr Export kExports[] = {
    {"memoryCreate", jsMemoryCreate}, {"memoryMap", jsMemoryMap},     {"memoryUnmap", jsMemoryUnmap},   {"memoryAlias", jsMemoryAlias},
    {"addressOf", jsAddressOf},       {"processRead", jsProcessRead}, {"processWatch", jsProcessWatch}, {"eventOpen", jsEventOpen},
    {"eventSignal", jsEventSignal},   {"eventClear", jsEventClear},   {"watchWords", jsWatchWords},     {"sharedCall", jsSharedCall},
};

}  // namespace

void mappingsOrphan(Env* env) {
  for (Mapping* mapping = env->mappings; mapping != nullptr; mapping = mapping->next) mapping->env = nullptr;
}

Exports shmExports() { return exportsOf(kExports); }

}  // namespace multirail
