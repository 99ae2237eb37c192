// Readiness: an epoll set per poller, watched by the event loop of its environment. A poller is named by its epoll descriptor, so
// that the hot calls need no look-up.
//   open      in the set of the environment, watched by the loop
//   closing   pollerClose or the end of the environment: nothing is called any more, the loop still owns the handle
//   (freed)   by the loop's close callback, which closes the epoll set too
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "../env.h"
#include "../uv-abi.h"
#include "common/napi-args.h"

#ifndef SYS_epoll_pwait2
#define SYS_epoll_pwait2 441
#endif

namespace multirail {

struct Poller {
  Env* env;
  Poller* next;
  int epoll;
  bool closing;
  /// onReady is being called. What the call stands on is not taken away until it is over.
  bool calling;
  napi_ref onReady;
  napi_async_context context;
  uv_poll_s* handle;
};

namespace {

constexpr int kPairsMax = 256;
/// A sleep ends after this at the latest, so that it fits every representation of time.
constexpr double kTimeoutMsMax = 2147483647.0;

uv_handle_s* handleOf(Poller* poller) { return reinterpret_cast<uv_handle_s*>(poller->handle); }

Poller* find(Env* env, int epoll) {
  for (Poller* poller = env->pollers; poller != nullptr; poller = poller->next) {
    if (poller->epoll == epoll && !poller->closing) return poller;
  }
  return nullptr;
}

void closed(uv_handle_s* handle) {
  auto* poller = static_cast<Poller*>(uv_handle_get_data(handle));
  Env* env = poller->env;
  close(poller->epoll);
  Poller** at = &env->pollers;
  while (*at != poller) at = &(*at)->next;
  *at = poller->next;
  free(poller->handle);
  free(poller);
  if (env->ending && env->pollers == nullptr) {
    napi_async_cleanup_hook_handle cleanup = env->cleanup;
    env->cleanup = nullptr;
    // Nothing of `env` may be touched after this: its environment may end at once.
    napi_remove_async_cleanup_hook(cleanup);
  }
}

void forgetCallback(Poller* poller) {
  napi_env env = poller->env->env;
  napi_delete_reference(env, poller->onReady);
  napi_async_destroy(env, poller->context);
}

void beginClose(Poller* poller) {
  poller->closing = true;
  uv_close(handleOf(poller), closed);
  if (!poller->calling) forgetCallback(poller);
}

/// One call of onReady. Returns what it returned; an exception goes to the process as uncaught.
bool callOnReady(Poller* poller) {
  napi_env env = poller->env->env;
  napi_handle_scope scope;
  if (napi_open_handle_scope(env, &scope) != napi_ok) return false;
  bool again = false;
  napi_value onReady = nullptr;
  napi_value global = nullptr;
  napi_value answer = nullptr;
  if (napi_get_reference_value(env, poller->onReady, &onReady) == napi_ok && onReady != nullptr &&
      napi_get_global(env, &global) == napi_ok) {
    if (napi_make_callback(env, poller->context, global, onReady, 0, nullptr, &answer) != napi_ok) {
      bool pending = false;
      napi_value error = nullptr;
      if (napi_is_exception_pending(env, &pending) == napi_ok && pending && napi_get_and_clear_last_exception(env, &error) == napi_ok) {
        napi_fatal_exception(env, error);
      }
    } else if (answer != nullptr) {
      napi_get_value_bool(env, answer, &again);
    }
  }
  napi_close_handle_scope(env, scope);
  return again;
}

void ready(uv_poll_s* handle, int, int) {
  auto* poller = static_cast<Poller*>(uv_handle_get_data(reinterpret_cast<uv_handle_s*>(handle)));
  // The callback may close the poller; it is freed by the loop only after this function.
  poller->calling = true;
  while (!poller->closing && callOnReady(poller)) {
  }
  poller->calling = false;
  if (poller->closing) forgetCallback(poller);
}

napi_value jsPollerOpen(napi_env env, napi_callback_info info) {
  Args<1> args(env, info);
  napi_valuetype type = napi_undefined;
  napi_typeof(env, args.at[0], &type);
  if (type != napi_function) args.refuse("onReady", "a function");
  uv_loop_s* loop = nullptr;
  if (!args.ok || napi_get_uv_event_loop(env, &loop) != napi_ok) return nullptr;
  Env* data = envOf(env);
  if (data->ending) return throwCode(env, "ERR_ENDING", "the environment is ending");

  auto* poller = static_cast<Poller*>(calloc(1, sizeof(Poller)));
  auto* handle = static_cast<uv_poll_s*>(calloc(1, uv_handle_size(kUvPoll)));
  const int epoll = poller == nullptr || handle == nullptr ? -1 : epoll_create1(EPOLL_CLOEXEC);
  int failure = epoll < 0 ? (poller == nullptr || handle == nullptr ? -ENOMEM : -errno) : uv_poll_init(loop, handle, epoll);
  if (failure < 0) {
    free(poller);
    free(handle);
    if (epoll >= 0) close(epoll);
    return throwSystem(env, failure, epoll < 0 ? "epoll_create1" : "uv_poll_init");
  }
  poller->env = data;
  poller->epoll = epoll;
  poller->handle = handle;
  poller->next = data->pollers;
  data->pollers = poller;
  uv_handle_set_data(handleOf(poller), poller);
  napi_value name;
  const bool made = napi_create_string_utf8(env, "multirail.poller", NAPI_AUTO_LENGTH, &name) == napi_ok &&
                    napi_create_reference(env, args.at[0], 1, &poller->onReady) == napi_ok &&
                    napi_async_init(env, nullptr, name, &poller->context) == napi_ok;
  if (!made) {
    poller->closing = true;
    uv_close(handleOf(poller), closed);
    return throwCode(env, "ENOMEM", "no memory for a poller");
  }
  failure = uv_poll_start(handle, kUvReadable, ready);
  if (failure < 0) {
    beginClose(poller);
    return throwSystem(env, failure, "uv_poll_start");
  }
  return answerInt(env, epoll);
}

napi_value jsPollerSet(napi_env env, napi_callback_info info) {
  Args<3> args(env, info);
  const int epoll = args.fd(0, "poller");
  const int fd = args.fd(1);
  const int events = static_cast<int>(args.whole(2, "events", -1, 0xffff));
  if (!args.ok) return nullptr;
  epoll_event event;
  memset(&event, 0, sizeof event);
  event.data.fd = fd;
  if (events < 0) {
    // A descriptor that was closed left the set by itself.
    if (epoll_ctl(epoll, EPOLL_CTL_DEL, fd, &event) == 0 || errno == ENOENT || errno == EBADF) return nullptr;
    return throwSystem(env, -errno, "epoll_ctl");
  }
  // The kernel reports errors and hang-ups even to those who asked for nothing. Edge-triggered they are told once, not again and again.
  event.events = events == 0 ? static_cast<uint32_t>(EPOLLET) : static_cast<uint32_t>(events);
  if (epoll_ctl(epoll, EPOLL_CTL_MOD, fd, &event) == 0) return nullptr;
  if (errno == ENOENT && epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0) return nullptr;
  return throwSystem(env, -errno, "epoll_ctl");
}

/// epoll_pwait2 where the kernel has it, else milliseconds rounded up.
int waitFor(int epoll, epoll_event* events, int capacity, double timeoutMs) {
  static bool hasPwait2 = true;
  if (timeoutMs > 0 && __atomic_load_n(&hasPwait2, __ATOMIC_RELAXED)) {
    const auto nanoseconds = static_cast<uint64_t>(timeoutMs * 1e6);
    // The system call takes 64-bit seconds and nanoseconds on every platform.
    const struct {
      int64_t seconds;
      int64_t nanoseconds;
    } timeout = {static_cast<int64_t>(nanoseconds / 1000000000), static_cast<int64_t>(nanoseconds % 1000000000)};
    const long found = syscall(SYS_epoll_pwait2, epoll, events, capacity, &timeout, nullptr, static_cast<size_t>(0));
    if (found >= 0) return static_cast<int>(found);
    // EPERM: what a sandbox answers for calls that it does not know.
    if (errno != ENOSYS && errno != EPERM) return -errno;
    __atomic_store_n(&hasPwait2, false, __ATOMIC_RELAXED);
  }
  const int whole = static_cast<int>(timeoutMs);
  const int found = epoll_wait(epoll, events, capacity, whole < timeoutMs ? whole + 1 : whole);
  return found < 0 ? -errno : found;
}

napi_value jsPollerWait(napi_env env, napi_callback_info info) {
  Args<3> args(env, info);
  const int epoll = args.fd(0, "poller");
  size_t length;
  auto* out = static_cast<int32_t*>(args.array(1, "out", napi_int32_array, "an Int32Array for at least one pair", &length));
  double timeoutMs = args.number(2, "timeoutMs");
  if (args.ok && length < 2) args.refuse("out", "an Int32Array for at least one pair");
  if (args.ok && !(timeoutMs >= 0)) args.refuse("timeoutMs", "0 or more");
  if (!args.ok) return nullptr;
  if (timeoutMs > kTimeoutMsMax) timeoutMs = kTimeoutMsMax;
  epoll_event events[kPairsMax];
  const int capacity = length / 2 < static_cast<size_t>(kPairsMax) ? static_cast<int>(length / 2) : kPairsMax;
  int found = waitFor(epoll, events, capacity, timeoutMs);
  // A signal ends the sleep early; its handlers run when the caller returns to the event loop.
  if (found == -EINTR) found = 0;
  for (int i = 0; i < found; i++) {
    out[2 * i] = events[i].data.fd;
    out[2 * i + 1] = static_cast<int32_t>(events[i].events);
  }
  return answerInt(env, found);
}

napi_value jsPollerRef(napi_env env, napi_callback_info info) {
  Args<2> args(env, info);
  const int epoll = args.fd(0, "poller");
  const bool keepsAlive = args.boolean(1, "keepsAlive");
  if (!args.ok) return nullptr;
  Poller* poller = find(envOf(env), epoll);
  if (poller == nullptr) return throwSystem(env, -EBADF, "pollerRef");
  if (keepsAlive) uv_ref(handleOf(poller));
  else uv_unref(handleOf(poller));
  return nullptr;
}

napi_value jsPollerClose(napi_env env, napi_callback_info info) {
  Args<1> args(env, info);
  const int epoll = args.fd(0, "poller");
  if (!args.ok) return nullptr;
  Poller* poller = find(envOf(env), epoll);
  if (poller == nullptr) return throwSystem(env, -EBADF, "pollerClose");
  beginClose(poller);
  return nullptr;
}

constexpr Export kExports[] = {
    {"pollerOpen", jsPollerOpen}, {"pollerSet", jsPollerSet},     {"pollerWait", jsPollerWait},
    {"pollerRef", jsPollerRef},   {"pollerClose", jsPollerClose},
};

}  // namespace

bool pollerOwns(Env* env, int fd) {
  for (const Poller* poller = env->pollers; poller != nullptr; poller = poller->next) {
    if (poller->epoll == fd) return true;
  }
  return false;
}

void pollersEnd(Env* env) {
  if (env->pollers == nullptr) {
    napi_async_cleanup_hook_handle cleanup = env->cleanup;
    env->cleanup = nullptr;
    napi_remove_async_cleanup_hook(cleanup);
    return;
  }
  for (Poller* poller = env->pollers; poller != nullptr; poller = poller->next) {
    if (!poller->closing) beginClose(poller);
  }
}

Exports pollerExports() { return exportsOf(kExports); }

}  // namespace multirail
