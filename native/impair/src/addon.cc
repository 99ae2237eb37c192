// Entry of the addon. `forward(ports, seed)` does not return before the forwarder is told to end (forwarder.h): it is for a process of its own.
#include "common/exports.h"
#include "common/napi-args.h"
#include "forwarder.h"
#include "wire.h"

namespace impair {
namespace {

using namespace common;

/// What tools/lab/forwarder.ts asks for.
constexpr int32_t kAbi = 1;
/// IFNAMSIZ.
constexpr size_t kNameBytes = 16;

napi_value jsForward(napi_env env, napi_callback_info info) {
  static char names[kPortsMax][kNameBytes];
  const char* ports[kPortsMax];
  Args<2> args(env, info);
  uint32_t count = 0;
  if (napi_get_array_length(env, args.at[0], &count) != napi_ok || count < 1 || count > kPortsMax) {
    args.refuse("ports", "the names of 1 to 32 interfaces");
  }
  for (uint32_t i = 0; args.ok && i < count; i++) {
    napi_value name = nullptr;
    size_t length = 0;
    if (napi_get_element(env, args.at[0], i, &name) != napi_ok || napi_get_value_string_utf8(env, name, nullptr, 0, &length) != napi_ok ||
        length >= kNameBytes) {
      args.refuse("ports", "the names of interfaces");
      break;
    }
    napi_get_value_string_utf8(env, name, names[i], kNameBytes, &length);
    ports[i] = names[i];
  }
  const uint64_t seed = args.size(1, "seed");
  if (!args.ok) return nullptr;
  const Outcome outcome = forward(ports, static_cast<int>(count), seed);
  return outcome.value < 0 ? throwSystem(env, outcome.value, outcome.syscall) : nullptr;
}

constexpr Export kExports[] = {{"forward", jsForward}};

}  // namespace
}  // namespace impair

NAPI_MODULE_INIT() {
  using namespace impair;
  setInt(env, exports, "abi", kAbi);
  if (!exportAll(env, exports, exportsOf(kExports))) return throwCode(env, "ERR_NATIVE_INIT", "exports refused");
  return exports;
}
