// What one environment (the main thread, or one worker thread) has, and how the functions of the surface (index.d.ts) come to it: arguments
// that are objects of its table, and entering what the library made. It is touched by that environment's thread only.
#pragma once
#include <errno.h>
#include <node_api.h>
#include <stdio.h>

#include "common/exports.h"
#include "common/napi-args.h"
#include "objects.h"

namespace noderdma {

using namespace common;

struct Env {
  napi_env env;
  /// Null when it cannot be loaded: then every call is refused.
  const VerbsLib* lib;
  Table table;
  /// References are gone with the environment: nobody deletes them then.
  bool ending;
};

inline Env* envOf(napi_env env) {
  void* data = nullptr;
  napi_get_instance_data(env, &data);
  return static_cast<Env*>(data);
}

/// As many arguments as the longest call has. All calls that need the library are read by this.
struct Args : common::Args<10> {
  Env* own;

  Args(napi_env callEnv, napi_callback_info info) : common::Args<10>(callEnv, info), own(envOf(callEnv)) {
    if (!ok || own->lib != nullptr) return;
    const char* why = "";
    verbsLib(&why);
    fail("ERR_RDMA_UNAVAILABLE", why);
  }

  Object* object(int index, Kind kind, const char* name) {
    int32_t id = 0;
    napi_get_value_int32(env, at[index], &id);
    Object* found = ok ? own->table.find(id, kind) : nullptr;
    if (found == nullptr) {
      char text[96];
      snprintf(text, sizeof text, "this %s is closed, or is none", name);
      fail("ERR_RDMA_CLOSED", text);
    }
    return found;
  }

  uint32_t* words(int index, size_t* length) {
    return static_cast<uint32_t*>(array(index, "words", napi_uint32_array, "a Uint32Array", length));
  }
};

/// Some functions of the library answer an error number, some -1 and errno.
inline int failureOf(int answer) { return answer > 0 ? -answer : -errno; }

inline napi_value idOf(napi_env env, const Object* object) { return answerInt(env, object->id); }

/// A record for what is about to be made; null, and an error is thrown, when there is no memory for it.
Object* begin(Args& args, Kind kind, Object* const* parents, int count);

/// Enters what the library made, or, where it made nothing, drops the object and throws what errno says: errno is 0 before the call.
bool enter(Args& args, Object* object, void* raw, const char* call, napi_ref owner = nullptr);

/// What `addon.cc` exports.
Exports deviceExports();
Exports memoryExports();
Exports completionExports();
Exports queuePairExports();
Exports objectsExports();

}  // namespace noderdma
