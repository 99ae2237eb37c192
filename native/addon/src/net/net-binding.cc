// The TCP part of the surface: from JavaScript's arguments to socket.h and tcp-info.h and back.
#include <limits.h>
#include <stdlib.h>
#include <sys/uio.h>

#include "../env.h"
#include "common/napi-args.h"
#include "route.h"
#include "socket.h"
#include "tcp-info.h"

namespace multirail {
namespace {

constexpr size_t kChunksMax = 1024;
static_assert(kChunksMax <= IOV_MAX, "one sendmsg takes all chunks that are looked at");

/// Reads a text property that may be missing.
template <int N>
void optionText(Args<N>& args, napi_value options, const char* name, char* out, size_t capacity) {
  napi_valuetype type;
  const napi_value value = args.property(options, name, &type);
  if (type == napi_undefined) return;
  size_t length = 0;
  if (napi_get_value_string_utf8(args.env, value, nullptr, 0, &length) != napi_ok || length >= capacity) {
    args.refuse(name, "a string of at most 15 bytes");
    return;
  }
  napi_get_value_string_utf8(args.env, value, out, capacity, &length);
}

template <int N>
void optionSize(Args<N>& args, napi_value options, const char* name, int* out) {
  napi_valuetype type;
  const napi_value value = args.property(options, name, &type);
  if (type == napi_undefined) return;
  double number = -1;
  if (napi_get_value_double(args.env, value, &number) != napi_ok || !(number >= 0 && number <= INT_MAX)) {
    args.refuse(name, "a number of bytes below 2 GiB");
    return;
  }
  *out = static_cast<int>(number);
}

template <int N>
SocketOptions socketOptions(Args<N>& args, int index) {
  SocketOptions options;
  memset(&options, 0, sizeof options);
  napi_valuetype type = napi_undefined;
  napi_typeof(args.env, args.at[index], &type);
  if (type == napi_undefined) return options;
  if (type != napi_object) {
    args.refuse("options", "an object");
    return options;
  }
  const napi_value object = args.at[index];
  optionText(args, object, "device", options.device, sizeof options.device);
  optionText(args, object, "congestion", options.congestion, sizeof options.congestion);
  optionSize(args, object, "notSentLowatBytes", &options.notSentLowatBytes);
  optionSize(args, object, "sendBufferBytes", &options.sendBufferBytes);
  optionSize(args, object, "receiveBufferBytes", &options.receiveBufferBytes);
  return options;
}

template <int N>
void addressArgument(Args<N>& args, int index, const char* name, uint16_t port, Address* out) {
  char text[kAddressTextMax];
  const size_t length = args.text(index, name, text, sizeof text);
  if (args.ok && (strlen(text) != length || !parseAddress(text, port, out))) args.refuse(name, "a numeric address with a known zone");
}

napi_value jsTcpListen(napi_env env, napi_callback_info info) {
  Args<4> args(env, info);
  Address address;
  const auto port = static_cast<uint16_t>(args.whole(1, "port", 0, 65535));
  addressArgument(args, 0, "host", port, &address);
  const int backlog = static_cast<int>(args.whole(2, "backlog", 0, INT_MAX));
  const SocketOptions options = socketOptions(args, 3);
  if (!args.ok) return nullptr;
  const Outcome outcome = tcpListen(address, backlog, options);
  return answerOrThrow(env, outcome.value, outcome.syscall);
}

napi_value jsTcpConnect(napi_env env, napi_callback_info info) {
  Args<4> args(env, info);
  Address address;
  Address local;
  const auto port = static_cast<uint16_t>(args.whole(1, "port", 0, 65535));
  addressArgument(args, 0, "host", port, &address);
  char localHost[kAddressTextMax];
  const bool bound = args.text(2, "localHost", localHost, sizeof localHost) > 0;
  if (bound) addressArgument(args, 2, "localHost", 0, &local);
  const SocketOptions options = socketOptions(args, 3);
  if (!args.ok) return nullptr;
  const Outcome outcome = tcpConnect(address, bound ? &local : nullptr, options);
  return answerOrThrow(env, outcome.value, outcome.syscall);
}

napi_value jsRouteDevice(napi_env env, napi_callback_info info) {
  Args<2> args(env, info);
  Address remote;
  Address local;
  addressArgument(args, 0, "remote", 0, &remote);
  char localHost[kAddressTextMax];
  const bool from = args.text(1, "local", localHost, sizeof localHost) > 0;
  if (from) addressArgument(args, 1, "local", 0, &local);
  if (!args.ok) return nullptr;
  char device[kDeviceMax];
  const Outcome outcome = routeDevice(remote, from ? &local : nullptr, device);
  if (outcome.value < 0) return throwSystem(env, outcome.value, outcome.syscall);
  napi_value answer = nullptr;
  napi_create_string_utf8(env, device, NAPI_AUTO_LENGTH, &answer);
  return answer;
}

napi_value jsAccept(napi_env env, napi_callback_info info) {
  Args<1> args(env, info);
  const int fd = args.fd(0);
  return args.ok ? answerInt(env, acceptConnection(fd)) : nullptr;
}

napi_value jsConnectResult(napi_env env, napi_callback_info info) {
  Args<1> args(env, info);
  const int fd = args.fd(0);
  return args.ok ? answerInt(env, connectResult(fd)) : nullptr;
}

napi_value nameAnswer(napi_env env, napi_callback_info info, bool peer) {
  Args<1> args(env, info);
  const int fd = args.fd(0);
  if (!args.ok) return nullptr;
  Address address;
  const Outcome outcome = nameOf(fd, peer, &address);
  if (outcome.value < 0) return throwSystem(env, outcome.value, outcome.syscall);
  char text[kAddressTextMax];
  uint16_t port;
  const size_t length = formatAddress(address, text, &port);
  napi_value name = nullptr;
  napi_create_object(env, &name);
  setText(env, name, "address", text, length);
  setInt(env, name, "port", port);
  return name;
}

napi_value jsSocketName(napi_env env, napi_callback_info info) { return nameAnswer(env, info, false); }
napi_value jsPeerName(napi_env env, napi_callback_info info) { return nameAnswer(env, info, true); }

napi_value jsCongestionOf(napi_env env, napi_callback_info info) {
  Args<1> args(env, info);
  const int fd = args.fd(0);
  if (!args.ok) return nullptr;
  char name[32];
  const Outcome outcome = congestionOf(fd, name);
  if (outcome.value < 0) return throwSystem(env, outcome.value, outcome.syscall);
  napi_value answer = nullptr;
  napi_create_string_utf8(env, name, NAPI_AUTO_LENGTH, &answer);
  return answer;
}

napi_value jsSend(napi_env env, napi_callback_info info) {
  Args<4> args(env, info);
  const int fd = args.fd(0);
  const Bytes bytes = args.slice(1);
  return args.ok ? answerCount(env, sendBytes(fd, bytes.data, bytes.length)) : nullptr;
}

napi_value jsRecv(napi_env env, napi_callback_info info) {
  Args<4> args(env, info);
  const int fd = args.fd(0);
  const Bytes bytes = args.slice(1);
  return args.ok ? answerCount(env, receiveBytes(fd, bytes.data, bytes.length)) : nullptr;
}

napi_value jsSendv(napi_env env, napi_callback_info info) {
  Args<4> args(env, info);
  const int fd = args.fd(0);
  size_t skip = args.size(3, "skip");
  const size_t from = args.size(2, "from");
  uint32_t length = 0;
  if (napi_get_array_length(env, args.at[1], &length) != napi_ok) args.refuse("chunks", "an array of Uint8Array");
  if (!args.ok) return nullptr;
  if (from >= length) return answerInt(env, 0);
  size_t count = length - from;
  if (count > kChunksMax) count = kChunksMax;
  // All elements are fetched first: a getter among them could free what an earlier one holds. Nothing runs JavaScript afterwards.
  napi_value chunks[kChunksMax];
  for (size_t i = 0; i < count; i++) {
    if (napi_get_element(env, args.at[1], static_cast<uint32_t>(from + i), &chunks[i]) != napi_ok) return nullptr;
  }
  iovec vector[kChunksMax];
  size_t used = 0;
  for (size_t i = 0; i < count; i++) {
    napi_typedarray_type type;
    size_t bytes = 0;
    void* data = nullptr;
    if (napi_get_typedarray_info(env, chunks[i], &type, &bytes, &data, nullptr, nullptr) != napi_ok || type != napi_uint8_array) {
      args.refuse("chunks", "an array of Uint8Array");
      return nullptr;
    }
    if (i == 0) {
      if (skip > bytes) {
        args.refuse("skip", "at most the bytes of the first chunk");
        return nullptr;
      }
      data = static_cast<uint8_t*>(data) + skip;
      bytes -= skip;
    }
    if (bytes > 0) vector[used++] = {data, bytes};
  }
  return used == 0 ? answerInt(env, 0) : answerCount(env, sendVector(fd, vector, used));
}

napi_value jsRecv2(napi_env env, napi_callback_info info) {
  Args<5> args(env, info);
  const int fd = args.fd(0);
  const Bytes first = args.slice(1);
  const Bytes rest = args.bytes(4, "rest");
  if (!args.ok) return nullptr;
  iovec vector[2] = {{first.data, first.length}, {rest.data, rest.length}};
  return answerCount(env, receiveVector(fd, vector, 2));
}

napi_value jsShutdownWrite(napi_env env, napi_callback_info info) {
  Args<1> args(env, info);
  const int fd = args.fd(0);
  return args.ok ? answerInt(env, shutdownWrite(fd)) : nullptr;
}

napi_value closeAnswer(napi_env env, napi_callback_info info, int (*closing)(int)) {
  Args<1> args(env, info);
  const int fd = args.fd(0);
  if (!args.ok) return nullptr;
  if (pollerOwns(envOf(env), fd)) return throwArgument(env, "fd is a poller: close it with pollerClose()");
  const int outcome = closing(fd);
  return outcome < 0 ? throwSystem(env, outcome, "close") : nullptr;
}

napi_value jsClose(napi_env env, napi_callback_info info) { return closeAnswer(env, info, closeDescriptor); }
napi_value jsCloseReset(napi_env env, napi_callback_info info) { return closeAnswer(env, info, closeReset); }

napi_value jsTcpInfo(napi_env env, napi_callback_info info) {
  Args<2> args(env, info);
  const int fd = args.fd(0);
  size_t length;
  auto* out = static_cast<double*>(args.array(1, "out", napi_float64_array, "a Float64Array of TCP_INFO_LENGTH", &length));
  if (args.ok && length < kTcpInfoLength) args.refuse("out", "a Float64Array of TCP_INFO_LENGTH");
  return args.ok ? answerInt(env, tcpInfo(fd, out)) : nullptr;
}

constexpr Export kExports[] = {
    {"tcpListen", jsTcpListen},
    {"accept", jsAccept},
    {"tcpConnect", jsTcpConnect},
    {"connectResult", jsConnectResult},
    {"socketName", jsSocketName},
    {"peerName", jsPeerName},
    {"congestionOf", jsCongestionOf},
    {"send", jsSend},
    {"recv", jsRecv},
    {"sendv", jsSendv},
    {"recv2", jsRecv2},
    {"shutdownWrite", jsShutdownWrite},
    {"close", jsClose},
    {"closeReset", jsCloseReset},
    {"tcpInfo", jsTcpInfo},
    {"routeDevice", jsRouteDevice},
};

}  // namespace

Exports netExports() { return exportsOf(kExports); }

}  // namespace multirail
