// Devices of the surface: from JavaScript's arguments to device.h and the library and back.
#include <endian.h>
#include <string.h>

#include "device.h"
#include "env.h"

namespace noderdma {
namespace {

void setHex64(napi_env env, napi_value object, const char* name, uint64_t value) {
  char text[24];
  snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(value));
  setText(env, object, name, text);
}

napi_value jsUnavailable(napi_env env, napi_callback_info) {
  const char* why = nullptr;
  napi_value answer = nullptr;
  if (verbsLib(&why) != nullptr) {
    napi_get_null(env, &answer);
  } else {
    napi_create_string_utf8(env, why, NAPI_AUTO_LENGTH, &answer);
  }
  return answer;
}

napi_value jsDevices(napi_env env, napi_callback_info info) {
  Args args(env, info);
  if (!args.ok) return nullptr;
  int count = 0;
  ibv_device** list = args.own->lib->get_device_list(&count);
  // A kernel without RDMA has no devices: the library answers ENOSYS there.
  if (list == nullptr && errno != ENOSYS) return throwSystem(env, -errno, "ibv_get_device_list");
  napi_value answer = nullptr;
  napi_create_array(env, &answer);
  for (int i = 0; list != nullptr && i < count; i++) {
    napi_value device = nullptr;
    napi_create_object(env, &device);
    setText(env, device, "name", args.own->lib->get_device_name(list[i]));
    setHex64(env, device, "guid", be64toh(args.own->lib->get_device_guid(list[i])));
    setNumber(env, device, "nodeType", list[i]->node_type);
    setNumber(env, device, "transport", list[i]->transport_type);
    napi_set_element(env, answer, static_cast<uint32_t>(i), device);
  }
  if (list != nullptr) args.own->lib->free_device_list(list);
  return answer;
}

napi_value jsOpenDevice(napi_env env, napi_callback_info info) {
  Args args(env, info);
  char name[128];
  args.text(0, "name", name, sizeof name);
  if (!args.ok) return nullptr;
  const VerbsLib& lib = *args.own->lib;
  int failure;
  ibv_context* context = deviceOpen(lib, name, &failure);
  if (context == nullptr) return throwSystem(env, failure, "ibv_open_device");
  Object* object = begin(args, Kind::context, nullptr, 0);
  if (object == nullptr) {
    lib.close_device(context);
    return nullptr;
  }
  args.own->table.made(object, context, nullptr);
  return idOf(env, object);
}

napi_value jsQueryDevice(napi_env env, napi_callback_info info) {
  Args args(env, info);
  const Object* context = args.object(0, Kind::context, "device");
  if (!args.ok) return nullptr;
  ibv_device_attr attr;
  memset(&attr, 0, sizeof attr);
  const int answer = args.own->lib->query_device(context->context(), &attr);
  if (answer != 0) return throwSystem(env, failureOf(answer), "ibv_query_device");
  napi_value object = nullptr;
  napi_create_object(env, &object);
  setText(env, object, "firmware", attr.fw_ver);
  setNumber(env, object, "ports", attr.phys_port_cnt);
  setNumber(env, object, "regionBytesMax", static_cast<double>(attr.max_mr_size));
  setNumber(env, object, "regionsMax", attr.max_mr);
  setNumber(env, object, "queuePairsMax", attr.max_qp);
  setNumber(env, object, "requestsMax", attr.max_qp_wr);
  setNumber(env, object, "piecesMax", attr.max_sge);
  setNumber(env, object, "completionQueuesMax", attr.max_cq);
  setNumber(env, object, "completionsMax", attr.max_cqe);
  setNumber(env, object, "readsAsTargetMax", attr.max_qp_rd_atom);
  setNumber(env, object, "readsAsInitiatorMax", attr.max_qp_init_rd_atom);
  setNumber(env, object, "pkeys", attr.max_pkeys);
  return object;
}

napi_value jsQueryPort(napi_env env, napi_callback_info info) {
  Args args(env, info);
  const Object* context = args.object(0, Kind::context, "device");
  const auto port = static_cast<uint8_t>(args.whole(1, "port", 1, 255));
  if (!args.ok) return nullptr;
  // The library fills in the part of the structure that every version of it has.
  ibv_port_attr attr;
  memset(&attr, 0, sizeof attr);
  const int answer = args.own->lib->query_port(context->context(), port, reinterpret_cast<_compat_ibv_port_attr*>(&attr));
  if (answer != 0) return throwSystem(env, failureOf(answer), "ibv_query_port");
  napi_value object = nullptr;
  napi_create_object(env, &object);
  setNumber(env, object, "state", attr.state);
  setNumber(env, object, "mtuMax", attr.max_mtu);
  setNumber(env, object, "mtu", attr.active_mtu);
  setNumber(env, object, "lid", attr.lid);
  setNumber(env, object, "lmc", attr.lmc);
  setNumber(env, object, "gids", attr.gid_tbl_len);
  setNumber(env, object, "messageBytesMax", attr.max_msg_sz);
  setNumber(env, object, "linkLayer", attr.link_layer);
  setNumber(env, object, "width", attr.active_width);
  setNumber(env, object, "speed", attr.active_speed);
  setNumber(env, object, "physicalState", attr.phys_state);
  return object;
}

napi_value jsQueryGid(napi_env env, napi_callback_info info) {
  Args args(env, info);
  const Object* context = args.object(0, Kind::context, "device");
  const auto port = static_cast<uint8_t>(args.whole(1, "port", 1, 255));
  const int index = static_cast<int>(args.whole(2, "index", 0, 65535));
  size_t length = 0;
  void* out = args.array(3, "gid", napi_uint8_array, "a Uint8Array of 16 bytes", &length);
  if (args.ok && length != 16) args.refuse("gid", "a Uint8Array of 16 bytes");
  if (!args.ok) return nullptr;
  ibv_gid gid;
  errno = 0;
  if (args.own->lib->query_gid(context->context(), port, index, &gid) != 0) return answerInt(env, errno == 0 ? -EINVAL : -errno);
  memcpy(out, gid.raw, 16);
  return answerInt(env, 0);
}

napi_value jsAsyncFd(napi_env env, napi_callback_info info) {
  Args args(env, info);
  const Object* context = args.object(0, Kind::context, "device");
  return args.ok ? answerInt(env, context->context()->async_fd) : nullptr;
}

/// Whether there was one, which `into` holds then.
napi_value jsAsyncEvent(napi_env env, napi_callback_info info) {
  Args args(env, info);
  const Object* context = args.object(0, Kind::context, "device");
  size_t length = 0;
  auto* into = static_cast<int32_t*>(args.array(1, "into", napi_int32_array, "an Int32Array of two words", &length));
  if (args.ok && length < 2) args.refuse("into", "an Int32Array of two words");
  if (!args.ok) return nullptr;
  const int outcome = deviceEvent(*args.own->lib, context->context(), into);
  if (outcome == -EAGAIN || outcome == -EINTR) return answerBool(env, false);
  return outcome < 0 ? throwSystem(env, outcome, "ibv_get_async_event") : answerBool(env, true);
}

constexpr Export kExports[] = {
    {"unavailable", jsUnavailable}, {"devices", jsDevices},   {"openDevice", jsOpenDevice}, {"queryDevice", jsQueryDevice},
    {"queryPort", jsQueryPort},     {"queryGid", jsQueryGid}, {"asyncFd", jsAsyncFd},       {"asyncEvent", jsAsyncEvent},
};

}  // namespace

Exports deviceExports() { return exportsOf(kExports); }

}  // namespace noderdma
