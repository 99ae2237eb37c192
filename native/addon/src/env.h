// What one environment (the main thread, or one worker thread) has open. It is touched by that environment's thread only.
#pragma once
#include <node_api.h>

#include "common/exports.h"
#include "common/napi-args.h"

namespace multirail {

using namespace common;

struct Poller;
struct Mapping;

struct Env {
  napi_env env;
  /// Open pollers, and those whose handle is still closing.
  Poller* pollers;
  /// Segments mapped by `memoryMap` whose ArrayBuffer still lives.
  Mapping* mappings;
  napi_async_cleanup_hook_handle cleanup;
  bool ending;
};

inline Env* envOf(napi_env env) {
  void* data = nullptr;
  napi_get_instance_data(env, &data);
  return static_cast<Env*>(data);
}

/// Closes the pollers that are left; `Env::cleanup` is removed when the last of them is closed.
void pollersEnd(Env* env);
/// Whether `fd` is the epoll set of an open poller, which only `pollerClose` may close.
bool pollerOwns(Env* env, int fd);
/// The mappings outlive the environment's record until their ArrayBuffers are collected.
void mappingsOrphan(Env* env);

/// What `addon.cc` exports.
Exports netExports();
Exports unixExports();
Exports netlinkExports();
Exports pollerExports();
Exports shmExports();
Exports crcExports();
Exports osExports();
Exports combineExports();

}  // namespace multirail
