// Memory of the surface: protection domains, regions, and whole pages to register.
#include <sys/mman.h>

#include "env.h"

namespace noderdma {
namespace {

constexpr size_t kPageBytes = 4096;
constexpr double kMemoryBytesMax = 1099511627776.0;

napi_value jsAllocPd(napi_env env, napi_callback_info info) {
  Args args(env, info);
  Object* context = args.object(0, Kind::context, "device");
  if (!args.ok) return nullptr;
  Object* object = begin(args, Kind::pd, &context, 1);
  if (object == nullptr) return nullptr;
  errno = 0;
  ibv_pd* pd = args.own->lib->alloc_pd(context->context());
  if (!enter(args, object, pd, "ibv_alloc_pd")) return nullptr;
  return idOf(env, object);
}

napi_value jsRegister(napi_env env, napi_callback_info info) {
  Args args(env, info);
  Object* pd = args.object(0, Kind::pd, "protection domain");
  size_t length = 0;
  void* data = args.array(1, "memory", napi_uint8_array, "a Uint8Array", &length);
  const int access = static_cast<int>(args.whole(2, "access", 0, 0xfffff));
  if (args.ok && length == 0) args.refuse("memory", "at least one byte");
  if (!args.ok) return nullptr;
  // The collector must not take memory that a device reads and writes.
  napi_ref owner = nullptr;
  if (napi_create_reference(env, args.at[1], 1, &owner) != napi_ok) return throwCode(env, "ENOMEM", "no reference to the memory");
  Object* object = begin(args, Kind::mr, &pd, 1);
  if (object == nullptr) {
    napi_delete_reference(env, owner);
    return nullptr;
  }
  errno = 0;
  ibv_mr* mr = args.own->lib->reg_mr(pd->pd(), data, length, access);
  if (!enter(args, object, mr, "ibv_reg_mr", owner)) return nullptr;
  napi_value answer = nullptr;
  napi_create_object(env, &answer);
  setNumber(env, answer, "id", object->id);
  setNumber(env, answer, "lkey", mr->lkey);
  setNumber(env, answer, "rkey", mr->rkey);
  napi_value address = nullptr;
  napi_create_bigint_uint64(env, reinterpret_cast<uint64_t>(data), &address);
  napi_set_named_property(env, answer, "address", address);
  return answer;
}

void unmap(napi_env, void* data, void* hint) { munmap(data, reinterpret_cast<size_t>(hint)); }

/// Memory of whole pages that is no part of V8's heap and never moves.
napi_value jsMemory(napi_env env, napi_callback_info info) {
  common::Args<1> args(env, info);
  const double wanted = args.number(0, "bytes");
  if (args.ok && !(wanted >= 1 && wanted <= kMemoryBytesMax)) args.refuse("bytes", "a number from 1 to 2^40");
  if (!args.ok) return nullptr;
  const size_t bytes = (static_cast<size_t>(wanted) + kPageBytes - 1) / kPageBytes * kPageBytes;
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) return throwSystem(env, -errno, "mmap");
  napi_value buffer = nullptr;
  if (napi_create_external_arraybuffer(env, data, bytes, unmap, reinterpret_cast<void*>(bytes), &buffer) != napi_ok) {
    munmap(data, bytes);
    return throwCode(env, "ENOMEM", "no ArrayBuffer for the memory");
  }
  return buffer;
}

constexpr Export kExports[] = {
    {"allocPd", jsAllocPd},
    {"register", jsRegister},
    {"memory", jsMemory},
};

}  // namespace

Exports memoryExports() { return exportsOf(kExports); }

}  // namespace noderdma
