// Entry of the addon. `forward(ports, seed)` does not return before the forwarder is told to end (forwarder.h): it is for a process of its own.
#include <node_api.h>
#include <stdio.h>
#include <string.h>

#include "forwarder.h"
#include "wire.h"

namespace {

/// What tools/lab/forwarder.ts asks for.
constexpr int32_t kAbi = 1;
/// IFNAMSIZ.
constexpr size_t kNameBytes = 16;

napi_value refuse(napi_env env, const char* what) {
  napi_throw_type_error(env, "ERR_INVALID_ARG", what);
  return nullptr;
}

napi_value jsForward(napi_env env, napi_callback_info info) {
  static char names[impair::kPortsMax][kNameBytes];
  const char* ports[impair::kPortsMax];
  size_t given = 2;
  napi_value args[2];
  uint32_t count = 0;
  double seed = 0;
  napi_get_cb_info(env, info, &given, args, nullptr, nullptr);
  if (napi_get_array_length(env, args[0], &count) != napi_ok || count < 1 || count > impair::kPortsMax) {
    return refuse(env, "ports must be the names of 1 to 32 interfaces");
  }
  for (uint32_t i = 0; i < count; i++) {
    napi_value name = nullptr;
    size_t length = 0;
    if (napi_get_element(env, args[0], i, &name) != napi_ok || napi_get_value_string_utf8(env, name, nullptr, 0, &length) != napi_ok ||
        length >= kNameBytes) {
      return refuse(env, "ports must be the names of interfaces");
    }
    napi_get_value_string_utf8(env, name, names[i], kNameBytes, &length);
    ports[i] = names[i];
  }
  if (napi_get_value_double(env, args[1], &seed) != napi_ok || !(seed >= 0 && seed <= 9007199254740991.0)) {
    return refuse(env, "seed must be a whole number");
  }
  const impair::Failure failure = impair::forward(ports, static_cast<int>(count), static_cast<uint64_t>(seed));
  if (failure.error != 0) {
    char message[128];
    snprintf(message, sizeof message, "%s: %s", failure.call, strerror(-failure.error));
    napi_throw_error(env, "ERR_SUPPORT", message);
  }
  return nullptr;
}

}  // namespace

NAPI_MODULE_INIT() {
  napi_value function, abi;
  napi_create_int32(env, kAbi, &abi);
  napi_set_named_property(env, exports, "abi", abi);
  if (napi_create_function(env, "forward", NAPI_AUTO_LENGTH, jsForward, nullptr, &function) == napi_ok) {
    napi_set_named_property(env, exports, "forward", function);
  }
  return exports;
}
