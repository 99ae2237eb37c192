// The local sockets of the surface: from JavaScript's arguments to unix.h and back.
#include <limits.h>
#include <unistd.h>

#include "../env.h"
#include "common/napi-args.h"
#include "unix.h"

namespace multirail {
namespace {

constexpr size_t kNameCapacity = 128;

napi_value jsUnixListen(napi_env env, napi_callback_info info) {
  Args<2> args(env, info);
  char name[kNameCapacity];
  const size_t length = args.text(0, "name", name, sizeof name);
  const int backlog = static_cast<int>(args.whole(1, "backlog", 0, INT_MAX));
  if (!args.ok) return nullptr;
  const Outcome outcome = unixListen(name, length, backlog);
  return answerOrThrow(env, outcome.value, outcome.syscall);
}

napi_value jsUnixConnect(napi_env env, napi_callback_info info) {
  Args<1> args(env, info);
  char name[kNameCapacity];
  const size_t length = args.text(0, "name", name, sizeof name);
  if (!args.ok) return nullptr;
  const Outcome outcome = unixConnect(name, length);
  return answerOrThrow(env, outcome.value, outcome.syscall);
}

napi_value jsUnixPeer(napi_env env, napi_callback_info info) {
  Args<1> args(env, info);
  const int fd = args.fd(0);
  if (!args.ok) return nullptr;
  int pid;
  uint32_t uid;
  const Outcome outcome = unixPeer(fd, &pid, &uid);
  if (outcome.value < 0) return throwSystem(env, outcome.value, outcome.syscall);
  napi_value peer = nullptr;
  napi_create_object(env, &peer);
  setInt(env, peer, "pid", pid);
  napi_set_named_property(env, peer, "uid", answerUint(env, uid));
  return peer;
}

napi_value jsSendDescriptors(napi_env env, napi_callback_info info) {
  Args<3> args(env, info);
  const int fd = args.fd(0);
  uint32_t count = 0;
  if (napi_get_array_length(env, args.at[2], &count) != napi_ok || count > kDescriptorsMax) {
    args.refuse("descriptors", "an array of at most 8 descriptors");
  }
  int descriptors[kDescriptorsMax];
  for (uint32_t i = 0; i < count && args.ok; i++) {
    napi_value element;
    if (napi_get_element(env, args.at[2], i, &element) != napi_ok) return nullptr;
    if (napi_get_value_int32(env, element, &descriptors[i]) != napi_ok) args.refuse("descriptors", "an array of at most 8 descriptors");
  }
  // The bytes come last: fetching elements may have run JavaScript.
  const Bytes bytes = args.bytes(1);
  if (args.ok && bytes.length == 0) args.refuse("bytes", "at least one byte");
  return args.ok ? answerCount(env, sendDescriptors(fd, bytes.data, bytes.length, descriptors, count)) : nullptr;
}

napi_value jsRecvDescriptors(napi_env env, napi_callback_info info) {
  Args<3> args(env, info);
  const int fd = args.fd(0);
  const Bytes bytes = args.bytes(1);
  uint32_t before = 0;
  if (napi_get_array_length(env, args.at[2], &before) != napi_ok) args.refuse("descriptors", "an array");
  if (args.ok && bytes.length == 0) args.refuse("bytes", "room for at least one byte");
  if (!args.ok) return nullptr;
  int came[kDescriptorsMax];
  size_t count;
  const ssize_t got = receiveDescriptors(fd, bytes.data, bytes.length, came, &count);
  size_t pushed = 0;
  while (pushed < count &&
         napi_set_element(env, args.at[2], before + static_cast<uint32_t>(pushed), answerInt(env, came[pushed])) == napi_ok) {
    pushed++;
  }
  // A frozen array takes nothing and says nothing.
  uint32_t after = before;
  napi_get_array_length(env, args.at[2], &after);
  if (count > 0 && (pushed < count || after != before + count)) {
    for (size_t i = 0; i < count; i++) close(came[i]);
    args.refuse("descriptors", "an array that can be pushed to");
    return nullptr;
  }
  return answerCount(env, got);
}

constexpr Export kExports[] = {
    {"unixListen", jsUnixListen},           {"unixConnect", jsUnixConnect},         {"unixPeer", jsUnixPeer},
    {"sendDescriptors", jsSendDescriptors}, {"recvDescriptors", jsRecvDescriptors},
};

}  // namespace

Exports unixExports() { return exportsOf(kExports); }

}  // namespace multirail
