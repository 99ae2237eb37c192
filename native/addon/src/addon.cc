// Entry of the addon: the record of each environment, its clean-up, and the list of what is exported.
// The functions live beside what they wrap; the surface is described in src/native/binding.ts.
#include <stdlib.h>

#include "common/napi-args.h"
#include "env.h"

namespace multirail {
namespace {

/// NATIVE_ABI of src/native/binding.ts.
constexpr int32_t kAbi = 9;

void endEnv(napi_async_cleanup_hook_handle handle, void* data) {
  Env* env = static_cast<Env*>(data);
  env->cleanup = handle;
  env->ending = true;
  pollersEnd(env);
}

void freeEnv(napi_env, void* data, void*) {
  Env* env = static_cast<Env*>(data);
  mappingsOrphan(env);
  free(env);
}

}  // namespace
}  // namespace multirail

NAPI_MODULE_INIT() {
  using namespace multirail;
  Env* data = static_cast<Env*>(calloc(1, sizeof(Env)));
  if (data == nullptr) return throwCode(env, "ENOMEM", "no memory for the native part");
  data->env = env;
  if (napi_set_instance_data(env, data, freeEnv, nullptr) != napi_ok) {
    free(data);
    return throwCode(env, "ERR_NATIVE_INIT", "instance data refused");
  }
  if (napi_add_async_cleanup_hook(env, endEnv, data, &data->cleanup) != napi_ok) {
    return throwCode(env, "ERR_NATIVE_INIT", "clean-up hook refused");
  }
  setInt(env, exports, "abi", kAbi);
  const Exports groups[] = {netExports(), unixExports(), netlinkExports(), pollerExports(),
                            shmExports(), crcExports(),  osExports(),      combineExports()};
  for (const Exports& group : groups) {
    if (!exportAll(env, exports, group)) return throwCode(env, "ERR_NATIVE_INIT", "exports refused");
  }
  return exports;
}
