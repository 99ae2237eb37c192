// Entry of the addon: the record of each environment, its clean-up, and the list of what is exported. The functions stand in the files named
// *-binding.cc: from JavaScript's arguments to objects.h, device.h and work.h and back. Mechanism only; the surface is described in index.d.ts.
// Every object is a number in the table of its environment, which closes what is left when it ends.
#include <stdlib.h>

#include "env.h"

namespace noderdma {
namespace {

/// ABI of binding.js.
constexpr int32_t kAbi = 2;

/// Lets go of the memory of a region that is gone.
void disown(void* data, void* owner) {
  Env* env = static_cast<Env*>(data);
  if (!env->ending) napi_delete_reference(env->env, static_cast<napi_ref>(owner));
}

/// Before JavaScript's memory goes: no device may write into it any more.
void endEnv(void* data) {
  Env* env = static_cast<Env*>(data);
  env->ending = true;
  if (env->lib != nullptr) env->table.closeAll();
}

void freeEnv(napi_env, void* data, void*) {
  Env* env = static_cast<Env*>(data);
  env->table.end();
  free(env);
}

}  // namespace
}  // namespace noderdma

NAPI_MODULE_INIT() {
  using namespace noderdma;
  auto* data = static_cast<Env*>(calloc(1, sizeof(Env)));
  if (data == nullptr) return throwCode(env, "ENOMEM", "no memory for node-rdma");
  const char* why = nullptr;
  data->env = env;
  data->lib = verbsLib(&why);
  data->table.open(data->lib, disown, data);
  if (napi_set_instance_data(env, data, freeEnv, nullptr) != napi_ok) {
    free(data);
    return throwCode(env, "ENOMEM", "no memory for node-rdma");
  }
  napi_add_env_cleanup_hook(env, endEnv, data);
  setInt(env, exports, "abi", kAbi);
  const Exports groups[] = {deviceExports(), memoryExports(), completionExports(), queuePairExports(), objectsExports()};
  for (const Exports& group : groups) {
    if (!exportAll(env, exports, group)) return throwCode(env, "ERR_RDMA_INIT", "exports refused");
  }
  return exports;
}
