// What an addon exports: names and functions, in lists that stand beside the functions.
#pragma once
#include <node_api.h>
#include <stddef.h>

namespace common {

struct Export {
  const char* name;
  napi_callback function;
};

struct Exports {
  const Export* list;
  size_t count;
};

template <size_t N>
constexpr Exports exportsOf(const Export (&list)[N]) {
  return {list, N};
}

/// False when the engine refuses one of them.
inline bool exportAll(napi_env env, napi_value exports, Exports group) {
  for (size_t i = 0; i < group.count; i++) {
    napi_value function;
    if (napi_create_function(env, group.list[i].name, NAPI_AUTO_LENGTH, group.list[i].function, nullptr, &function) != napi_ok ||
        napi_set_named_property(env, exports, group.list[i].name, function) != napi_ok) {
      return false;
    }
  }
  return true;
}

}  // namespace common
