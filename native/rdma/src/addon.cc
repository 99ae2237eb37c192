// The addon: from JavaScript's arguments to objects.h and work.h and back. Mechanism only; the surface is described in index.d.ts.
// Every object is a number in the table of its environment (the main thread, or one worker thread), which closes what is left when it ends.
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <node_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "objects.h"
#include "work.h"

namespace noderdma {
namespace {

/// ABI of binding.js.
constexpr int32_t kAbi = 1;
constexpr size_t kPageBytes = 4096;

struct Env {
  napi_env env;
  const VerbsLib* lib;
  Table table;
  /// References are gone with the environment: nobody deletes them then.
  bool ending;
};

Env* envOf(napi_env env) {
  void* data = nullptr;
  napi_get_instance_data(env, &data);
  return static_cast<Env*>(data);
}

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

// ---------------------------------------------------------------- values

napi_value number(napi_env env, double value) {
  napi_value made = nullptr;
  napi_create_double(env, value, &made);
  return made;
}

void set(napi_env env, napi_value object, const char* name, double value) { napi_set_named_property(env, object, name, number(env, value)); }

void setText(napi_env env, napi_value object, const char* name, const char* text) {
  napi_value made = nullptr;
  napi_create_string_utf8(env, text, NAPI_AUTO_LENGTH, &made);
  napi_set_named_property(env, object, name, made);
}

void setHex64(napi_env env, napi_value object, const char* name, uint64_t value) {
  char text[24];
  snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(value));
  setText(env, object, name, text);
}

napi_value throwText(napi_env env, const char* code, const char* text) {
  napi_throw_error(env, code, text);
  return nullptr;
}

// GNU's strerror_r answers the text, POSIX's (musl) fills the buffer.
[[maybe_unused]] const char* textOf(const char* text, const char*) { return text; }
[[maybe_unused]] const char* textOf(int, const char* buffer) { return buffer; }

/// `failure` is a negative errno.
napi_value throwSystem(napi_env env, int failure, const char* call) {
  char message[192];
  char reason[96];
  const char* text = textOf(strerror_r(-failure, reason, sizeof reason), reason);
  snprintf(message, sizeof message, "%s: %s", call, text);
  char code[24];
  snprintf(code, sizeof code, "ERRNO_%d", -failure);
  napi_value jsCode, jsMessage, error;
  if (napi_create_string_utf8(env, code, NAPI_AUTO_LENGTH, &jsCode) != napi_ok ||
      napi_create_string_utf8(env, message, NAPI_AUTO_LENGTH, &jsMessage) != napi_ok ||
      napi_create_error(env, jsCode, jsMessage, &error) != napi_ok) {
    return nullptr;
  }
  set(env, error, "errno", failure);
  setText(env, error, "syscall", call);
  napi_throw(env, error);
  return nullptr;
}

int failureOf(int answer) { return answer > 0 ? -answer : -errno; }

/// Reader of arguments: the first bad one throws, and `ok` says so.
struct Args {
  napi_env env;
  Env* own;
  bool ok = true;
  napi_value at[10];

  Args(napi_env callEnv, napi_callback_info info) : env(callEnv), own(envOf(callEnv)) {
    size_t count = 10;
    if (napi_get_cb_info(env, info, &count, at, nullptr, nullptr) != napi_ok) ok = false;
    if (ok && own->lib == nullptr) {
      const char* why = "";
      verbsLib(&why);
      refuse("ERR_RDMA_UNAVAILABLE", why);
    }
  }

  void refuse(const char* code, const char* text) {
    if (!ok) return;
    ok = false;
    napi_throw_error(env, code, text);
  }

  double whole(int index, const char* name, double low, double high) {
    double value = 0;
    if (napi_get_value_double(env, at[index], &value) != napi_ok || !(value >= low && value <= high) ||
        static_cast<double>(static_cast<int64_t>(value)) != value) {
      char text[96];
      snprintf(text, sizeof text, "%s must be a whole number from %.0f to %.0f", name, low, high);
      refuse("ERR_INVALID_ARG", text);
      return low;
    }
    return value;
  }

  bool boolean(int index) {
    bool value = false;
    if (napi_get_value_bool(env, at[index], &value) != napi_ok) refuse("ERR_INVALID_ARG", "expected a boolean");
    return value;
  }

  Object* object(int index, Kind kind, const char* name) {
    int32_t id = 0;
    napi_get_value_int32(env, at[index], &id);
    Object* found = ok ? own->table.find(id, kind) : nullptr;
    if (found == nullptr) {
      char text[96];
      snprintf(text, sizeof text, "this %s is closed, or is none", name);
      refuse("ERR_RDMA_CLOSED", text);
    }
    return found;
  }

  void* array(int index, napi_typedarray_type type, const char* wanted, size_t* length) {
    napi_typedarray_type found;
    void* data = nullptr;
    *length = 0;
    if (napi_get_typedarray_info(env, at[index], &found, length, &data, nullptr, nullptr) != napi_ok || found != type) {
      *length = 0;
      refuse("ERR_INVALID_ARG", wanted);
      return nullptr;
    }
    return data;
  }

  uint32_t* words(int index, size_t* length) {
    return static_cast<uint32_t*>(array(index, napi_uint32_array, "expected a Uint32Array", length));
  }
};

Object* begin(Args& args, Kind kind, Object* const* parents, int count) {
  Object* object = args.own->table.begin(kind, parents, count);
  if (object == nullptr) args.refuse("ENOMEM", "no memory for another object");
  return object;
}

/// Enters what the library made, or, where it made nothing, drops the object and throws what errno says: errno is 0 before the call.
bool enter(Args& args, Object* object, void* raw, const char* call, napi_ref owner = nullptr) {
  if (raw != nullptr) {
    args.own->table.made(object, raw, owner);
    return true;
  }
  const int failure = errno == 0 ? -ENOMEM : -errno;
  args.own->table.dropped(object);
  if (owner != nullptr) napi_delete_reference(args.env, owner);
  throwSystem(args.env, failure, call);
  return false;
}

/// Events are asked for, not waited for.
void setNonBlocking(int fd) { fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK); }

napi_value idOf(napi_env env, const Object* object) { return number(env, object->id); }

// ---------------------------------------------------------------- devices

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
    set(env, device, "nodeType", list[i]->node_type);
    set(env, device, "transport", list[i]->transport_type);
    napi_set_element(env, answer, static_cast<uint32_t>(i), device);
  }
  if (list != nullptr) args.own->lib->free_device_list(list);
  return answer;
}

napi_value jsOpenDevice(napi_env env, napi_callback_info info) {
  Args args(env, info);
  char name[128];
  size_t length = 0;
  if (args.ok && napi_get_value_string_utf8(env, args.at[0], name, sizeof name, &length) != napi_ok)
    args.refuse("ERR_INVALID_ARG", "expected the name of a device");
  if (!args.ok) return nullptr;
  const VerbsLib& lib = *args.own->lib;
  ibv_device** list = lib.get_device_list(nullptr);
  ibv_context* context = nullptr;
  int failure = -ENODEV;
  for (ibv_device** device = list; device != nullptr && *device != nullptr; device++) {
    if (strcmp(lib.get_device_name(*device), name) != 0) continue;
    errno = 0;
    context = lib.open_device(*device);
    failure = errno == 0 ? -EIO : -errno;
    break;
  }
  if (list != nullptr) lib.free_device_list(list);
  if (context == nullptr) return throwSystem(env, failure, "ibv_open_device");
  setNonBlocking(context->async_fd);
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
  set(env, object, "ports", attr.phys_port_cnt);
  set(env, object, "regionBytesMax", static_cast<double>(attr.max_mr_size));
  set(env, object, "regionsMax", attr.max_mr);
  set(env, object, "queuePairsMax", attr.max_qp);
  set(env, object, "requestsMax", attr.max_qp_wr);
  set(env, object, "piecesMax", attr.max_sge);
  set(env, object, "completionQueuesMax", attr.max_cq);
  set(env, object, "completionsMax", attr.max_cqe);
  set(env, object, "readsAsTargetMax", attr.max_qp_rd_atom);
  set(env, object, "readsAsInitiatorMax", attr.max_qp_init_rd_atom);
  set(env, object, "pkeys", attr.max_pkeys);
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
  set(env, object, "state", attr.state);
  set(env, object, "mtuMax", attr.max_mtu);
  set(env, object, "mtu", attr.active_mtu);
  set(env, object, "lid", attr.lid);
  set(env, object, "lmc", attr.lmc);
  set(env, object, "gids", attr.gid_tbl_len);
  set(env, object, "messageBytesMax", attr.max_msg_sz);
  set(env, object, "linkLayer", attr.link_layer);
  set(env, object, "width", attr.active_width);
  set(env, object, "speed", attr.active_speed);
  set(env, object, "physicalState", attr.phys_state);
  return object;
}

napi_value jsQueryGid(napi_env env, napi_callback_info info) {
  Args args(env, info);
  const Object* context = args.object(0, Kind::context, "device");
  const auto port = static_cast<uint8_t>(args.whole(1, "port", 1, 255));
  const int index = static_cast<int>(args.whole(2, "index", 0, 65535));
  size_t length = 0;
  void* out = args.array(3, napi_uint8_array, "expected a Uint8Array", &length);
  if (args.ok && length != 16) args.refuse("ERR_INVALID_ARG", "a GID has 16 bytes");
  if (!args.ok) return nullptr;
  ibv_gid gid;
  errno = 0;
  if (args.own->lib->query_gid(context->context(), port, index, &gid) != 0) return number(env, errno == 0 ? -EINVAL : -errno);
  memcpy(out, gid.raw, 16);
  return number(env, 0);
}

napi_value jsAsyncFd(napi_env env, napi_callback_info info) {
  Args args(env, info);
  const Object* context = args.object(0, Kind::context, "device");
  return args.ok ? number(env, context->context()->async_fd) : nullptr;
}

/// into[0]: the event (ibv_event_type); into[1]: the port, or the number of the object that it is about, or 0.
napi_value jsAsyncEvent(napi_env env, napi_callback_info info) {
  Args args(env, info);
  const Object* context = args.object(0, Kind::context, "device");
  size_t length = 0;
  auto* into = static_cast<int32_t*>(args.array(1, napi_int32_array, "expected an Int32Array", &length));
  if (args.ok && length < 2) args.refuse("ERR_INVALID_ARG", "two words are needed");
  if (!args.ok) return nullptr;
  ibv_async_event event;
  errno = 0;
  if (args.own->lib->get_async_event(context->context(), &event) != 0) return number(env, errno == 0 ? -EIO : -errno);
  into[0] = event.event_type;
  into[1] = 0;
  switch (event.event_type) {
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_SQ_DRAINED:
    case IBV_EVENT_PATH_MIG:
    case IBV_EVENT_PATH_MIG_ERR:
    case IBV_EVENT_QP_LAST_WQE_REACHED:
      // The record of the queue pair lives as long as the pair, and the pair is not gone before its events are acknowledged.
      into[1] = static_cast<const Object*>(event.element.qp->qp_context)->id;
      break;
    case IBV_EVENT_CQ_ERR:
      into[1] = static_cast<const Object*>(event.element.cq->cq_context)->id;
      break;
    case IBV_EVENT_PORT_ACTIVE:
    case IBV_EVENT_PORT_ERR:
    case IBV_EVENT_LID_CHANGE:
    case IBV_EVENT_PKEY_CHANGE:
    case IBV_EVENT_SM_CHANGE:
    case IBV_EVENT_CLIENT_REREGISTER:
    case IBV_EVENT_GID_CHANGE:
      into[1] = event.element.port_num;
      break;
    default:
      break;
  }
  args.own->lib->ack_async_event(&event);
  return number(env, 0);
}

// ---------------------------------------------------------------- memory

napi_value jsAllocPd(napi_env env, napi_callback_info info) {
  Args args(env, info);
  Object* context = args.object(0, Kind::context, "device");
  if (!args.ok) return nullptr;
  Object* object = begin(args, Kind::pd, &context, 1);
  if (object == nullptr) return nullptr;
  errno = 0;
  ibv_pd* pd = args.own->lib->alloc_pd(context->context());
  if (!enter(args, object, pd, "ibv_alloc_pd")) return nullptr;
  return idOf(env, object);
}

napi_value jsRegister(napi_env env, napi_callback_info info) {
  Args args(env, info);
  Object* pd = args.object(0, Kind::pd, "protection domain");
  size_t length = 0;
  void* data = args.array(1, napi_uint8_array, "expected a Uint8Array", &length);
  const int access = static_cast<int>(args.whole(2, "access", 0, 0xfffff));
  if (args.ok && length == 0) args.refuse("ERR_INVALID_ARG", "there is nothing to register");
  if (!args.ok) return nullptr;
  // The collector must not take memory that a device reads and writes.
  napi_ref owner = nullptr;
  if (napi_create_reference(env, args.at[1], 1, &owner) != napi_ok) return throwText(env, "ENOMEM", "no reference to the memory");
  Object* object = begin(args, Kind::mr, &pd, 1);
  if (object == nullptr) {
    napi_delete_reference(env, owner);
    return nullptr;
  }
  errno = 0;
  ibv_mr* mr = args.own->lib->reg_mr(pd->pd(), data, length, access);
  if (!enter(args, object, mr, "ibv_reg_mr", owner)) return nullptr;
  napi_value answer = nullptr;
  napi_create_object(env, &answer);
  set(env, answer, "id", object->id);
  set(env, answer, "lkey", mr->lkey);
  set(env, answer, "rkey", mr->rkey);
  napi_value address = nullptr;
  napi_create_bigint_uint64(env, reinterpret_cast<uint64_t>(data), &address);
  napi_set_named_property(env, answer, "address", address);
  return answer;
}

void unmap(napi_env, void* data, void* hint) { munmap(data, reinterpret_cast<size_t>(hint)); }

/// Memory of whole pages that is no part of V8's heap and never moves.
napi_value jsMemory(napi_env env, napi_callback_info info) {
  size_t count = 1;
  napi_value given;
  double wanted = 0;
  if (napi_get_cb_info(env, info, &count, &given, nullptr, nullptr) != napi_ok || napi_get_value_double(env, given, &wanted) != napi_ok ||
      !(wanted >= 1 && wanted <= 1099511627776.0)) {
    return throwText(env, "ERR_INVALID_ARG", "expected a number of bytes from 1 to 2^40");
  }
  const size_t bytes = (static_cast<size_t>(wanted) + kPageBytes - 1) / kPageBytes * kPageBytes;
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) return throwSystem(env, -errno, "mmap");
  napi_value buffer = nullptr;
  if (napi_create_external_arraybuffer(env, data, bytes, unmap, reinterpret_cast<void*>(bytes), &buffer) != napi_ok) {
    munmap(data, bytes);
    return throwText(env, "ENOMEM", "no ArrayBuffer for the memory");
  }
  return buffer;
}

// ---------------------------------------------------------------- completions

napi_value jsCreateChannel(napi_env env, napi_callback_info info) {
  Args args(env, info);
  Object* context = args.object(0, Kind::context, "device");
  if (!args.ok) return nullptr;
  Object* object = begin(args, Kind::channel, &context, 1);
  if (object == nullptr) return nullptr;
  errno = 0;
  ibv_comp_channel* channel = args.own->lib->create_comp_channel(context->context());
  if (!enter(args, object, channel, "ibv_create_comp_channel")) return nullptr;
  setNonBlocking(channel->fd);
  return idOf(env, object);
}

napi_value jsChannelFd(napi_env env, napi_callback_info info) {
  Args args(env, info);
  const Object* channel = args.object(0, Kind::channel, "completion channel");
  return args.ok ? number(env, channel->channel()->fd) : nullptr;
}

/// Takes and acknowledges every event that waits. Answers how many there were, or a negative errno.
napi_value jsChannelEvents(napi_env env, napi_callback_info info) {
  Args args(env, info);
  const Object* channel = args.object(0, Kind::channel, "completion channel");
  if (!args.ok) return nullptr;
  int taken = 0;
  for (;;) {
    ibv_cq* cq = nullptr;
    void* of = nullptr;
    errno = 0;
    if (args.own->lib->get_cq_event(channel->channel(), &cq, &of) != 0) break;
    args.own->lib->ack_cq_events(cq, 1);
    taken++;
  }
  const bool isDry = errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
  return number(env, taken > 0 || isDry ? taken : -errno);
}

napi_value jsCreateCq(napi_env env, napi_callback_info info) {
  Args args(env, info);
  Object* parents[2] = {args.object(0, Kind::context, "device"), nullptr};
  const int depth = static_cast<int>(args.whole(1, "depth", 1, 16777216));
  int32_t channelId = 0;
  napi_get_value_int32(env, args.at[2], &channelId);
  if (channelId != 0) parents[1] = args.object(2, Kind::channel, "completion channel");
  if (!args.ok) return nullptr;
  Object* object = begin(args, Kind::cq, parents, 2);
  if (object == nullptr) return nullptr;
  errno = 0;
  ibv_cq* cq = args.own->lib->create_cq(parents[0]->context(), depth, object, parents[1] == nullptr ? nullptr : parents[1]->channel(), 0);
  if (!enter(args, object, cq, "ibv_create_cq")) return nullptr;
  return idOf(env, object);
}

napi_value jsPoll(napi_env env, napi_callback_info info) {
  Args args(env, info);
  const Object* cq = args.object(0, Kind::cq, "completion queue");
  size_t length = 0;
  uint32_t* words = args.words(1, &length);
  if (!args.ok) return nullptr;
  return number(env, pollCompletions(cq->cq(), words, length / kCompletionWords));
}

napi_value jsNotify(napi_env env, napi_callback_info info) {
  Args args(env, info);
  const Object* cq = args.object(0, Kind::cq, "completion queue");
  const bool solicitedOnly = args.boolean(1);
  if (!args.ok) return nullptr;
  const int answer = ibv_req_notify_cq(cq->cq(), solicitedOnly ? 1 : 0);
  return answer == 0 ? number(env, 0) : throwSystem(env, failureOf(answer), "ibv_req_notify_cq");
}

// ---------------------------------------------------------------- queue pairs

napi_value jsCreateQp(napi_env env, napi_callback_info info) {
  Args args(env, info);
  Object* parents[3] = {args.object(0, Kind::pd, "protection domain"), args.object(1, Kind::cq, "completion queue"),
                        args.object(2, Kind::cq, "completion queue")};
  ibv_qp_init_attr attr;
  memset(&attr, 0, sizeof attr);
  attr.qp_type = IBV_QPT_RC;
  attr.cap.max_send_wr = static_cast<uint32_t>(args.whole(3, "sendRequests", 0, 1048576));
  attr.cap.max_recv_wr = static_cast<uint32_t>(args.whole(4, "receiveRequests", 0, 1048576));
  attr.cap.max_send_sge = static_cast<uint32_t>(args.whole(5, "sendPieces", 0, 64));
  attr.cap.max_recv_sge = static_cast<uint32_t>(args.whole(6, "receivePieces", 0, 64));
  attr.cap.max_inline_data = static_cast<uint32_t>(args.whole(7, "inlineBytes", 0, 65536));
  attr.sq_sig_all = args.boolean(8) ? 1 : 0;
  if (!args.ok) return nullptr;
  attr.send_cq = parents[1]->cq();
  attr.recv_cq = parents[2]->cq();
  Object* object = begin(args, Kind::qp, parents, 3);
  if (object == nullptr) return nullptr;
  attr.qp_context = object;
  errno = 0;
  ibv_qp* qp = args.own->lib->create_qp(parents[0]->pd(), &attr);
  if (!enter(args, object, qp, "ibv_create_qp")) return nullptr;
  napi_value answer = nullptr;
  napi_create_object(env, &answer);
  set(env, answer, "id", object->id);
  set(env, answer, "number", qp->qp_num);
  set(env, answer, "sendRequests", attr.cap.max_send_wr);
  set(env, answer, "receiveRequests", attr.cap.max_recv_wr);
  set(env, answer, "inlineBytes", attr.cap.max_inline_data);
  return answer;
}

/// A number of `object` by that name, if it is there.
bool field(Args& args, napi_value object, const char* name, double high, double* out) {
  bool has = false;
  napi_value value = nullptr;
  napi_valuetype type = napi_undefined;
  if (!args.ok || napi_has_named_property(args.env, object, name, &has) != napi_ok || !has) return false;
  if (napi_get_named_property(args.env, object, name, &value) != napi_ok || napi_typeof(args.env, value, &type) != napi_ok) return false;
  if (type == napi_undefined) return false;
  if (napi_get_value_double(args.env, value, out) != napi_ok || !(*out >= 0 && *out <= high)) {
    char text[96];
    snprintf(text, sizeof text, "%s must be a number from 0 to %.0f", name, high);
    args.refuse("ERR_INVALID_ARG", text);
    return false;
  }
  return true;
}

/// The way to the other side: `ah` of the attributes.
bool addressOf(Args& args, napi_value from, ibv_ah_attr* to) {
  double value = 0;
  if (field(args, from, "lid", 65535, &value)) to->dlid = static_cast<uint16_t>(value);
  if (field(args, from, "serviceLevel", 15, &value)) to->sl = static_cast<uint8_t>(value);
  if (field(args, from, "pathBits", 127, &value)) to->src_path_bits = static_cast<uint8_t>(value);
  if (field(args, from, "port", 255, &value)) to->port_num = static_cast<uint8_t>(value);
  if (field(args, from, "gidIndex", 65535, &value)) to->grh.sgid_index = static_cast<uint8_t>(value);
  if (field(args, from, "hopLimit", 255, &value)) to->grh.hop_limit = static_cast<uint8_t>(value);
  if (field(args, from, "trafficClass", 255, &value)) to->grh.traffic_class = static_cast<uint8_t>(value);
  if (field(args, from, "flowLabel", 1048575, &value)) to->grh.flow_label = static_cast<uint32_t>(value);
  napi_value gid = nullptr;
  napi_typedarray_type type;
  size_t length = 0;
  void* data = nullptr;
  if (args.ok && napi_get_named_property(args.env, from, "gid", &gid) == napi_ok &&
      napi_get_typedarray_info(args.env, gid, &type, &length, &data, nullptr, nullptr) == napi_ok) {
    if (type != napi_uint8_array || length != 16) {
      args.refuse("ERR_INVALID_ARG", "a GID is a Uint8Array of 16 bytes");
      return false;
    }
    memcpy(to->grh.dgid.raw, data, 16);
    to->is_global = 1;
  }
  return args.ok;
}

/// Sets what the object names, and nothing else.
napi_value jsModifyQp(napi_env env, napi_callback_info info) {
  Args args(env, info);
  const Object* qp = args.object(0, Kind::qp, "queue pair");
  if (!args.ok) return nullptr;
  ibv_qp_attr attr;
  memset(&attr, 0, sizeof attr);
  int mask = 0;
  double value = 0;
  const napi_value given = args.at[1];
#define TAKE(name, high, member, type, bit)          \
  if (field(args, given, name, high, &value)) {      \
    attr.member = static_cast<type>(value);          \
    mask |= bit;                                     \
  }
  TAKE("state", 6, qp_state, ibv_qp_state, IBV_QP_STATE)
  TAKE("pkeyIndex", 65535, pkey_index, uint16_t, IBV_QP_PKEY_INDEX)
  TAKE("port", 255, port_num, uint8_t, IBV_QP_PORT)
  TAKE("access", 1048575, qp_access_flags, unsigned int, IBV_QP_ACCESS_FLAGS)
  TAKE("mtu", 5, path_mtu, ibv_mtu, IBV_QP_PATH_MTU)
  TAKE("remoteNumber", 16777215, dest_qp_num, uint32_t, IBV_QP_DEST_QPN)
  TAKE("receivePsn", 16777215, rq_psn, uint32_t, IBV_QP_RQ_PSN)
  TAKE("sendPsn", 16777215, sq_psn, uint32_t, IBV_QP_SQ_PSN)
  TAKE("readsAsTarget", 255, max_dest_rd_atomic, uint8_t, IBV_QP_MAX_DEST_RD_ATOMIC)
  TAKE("readsAsInitiator", 255, max_rd_atomic, uint8_t, IBV_QP_MAX_QP_RD_ATOMIC)
  TAKE("rnrTimer", 31, min_rnr_timer, uint8_t, IBV_QP_MIN_RNR_TIMER)
  TAKE("timeout", 31, timeout, uint8_t, IBV_QP_TIMEOUT)
  TAKE("retryCount", 7, retry_cnt, uint8_t, IBV_QP_RETRY_CNT)
  TAKE("rnrRetry", 7, rnr_retry, uint8_t, IBV_QP_RNR_RETRY)
#undef TAKE
  bool hasAddress = false;
  napi_value address = nullptr;
  napi_valuetype type = napi_undefined;
  if (args.ok && napi_has_named_property(env, given, "address", &hasAddress) == napi_ok && hasAddress &&
      napi_get_named_property(env, given, "address", &address) == napi_ok && napi_typeof(env, address, &type) == napi_ok && type == napi_object) {
    if (addressOf(args, address, &attr.ah_attr)) mask |= IBV_QP_AV;
  }
  if (!args.ok) return nullptr;
  const int answer = args.own->lib->modify_qp(qp->qp(), &attr, mask);
  return answer == 0 ? number(env, 0) : throwSystem(env, failureOf(answer), "ibv_modify_qp");
}

napi_value jsQueryQp(napi_env env, napi_callback_info info) {
  Args args(env, info);
  const Object* qp = args.object(0, Kind::qp, "queue pair");
  if (!args.ok) return nullptr;
  ibv_qp_attr attr;
  ibv_qp_init_attr init;
  memset(&attr, 0, sizeof attr);
  memset(&init, 0, sizeof init);
  const int answer = args.own->lib->query_qp(qp->qp(), &attr, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_PATH_MTU, &init);
  if (answer != 0) return throwSystem(env, failureOf(answer), "ibv_query_qp");
  napi_value object = nullptr;
  napi_create_object(env, &object);
  set(env, object, "state", attr.qp_state);
  set(env, object, "timeout", attr.timeout);
  set(env, object, "retryCount", attr.retry_cnt);
  set(env, object, "mtu", attr.path_mtu);
  set(env, object, "remoteNumber", attr.dest_qp_num);
  return object;
}

napi_value postWith(napi_env env, napi_callback_info info, size_t (*post)(const Table&, ibv_qp*, uint32_t*, size_t)) {
  Args args(env, info);
  const Object* qp = args.object(0, Kind::qp, "queue pair");
  size_t length = 0;
  uint32_t* words = args.words(1, &length);
  const auto count = static_cast<size_t>(args.whole(2, "count", 0, 1048576));
  if (args.ok && count > length / kRequestWords) args.refuse("ERR_INVALID_ARG", "fewer requests than that stand in the array");
  if (!args.ok) return nullptr;
  return number(env, static_cast<double>(post(args.own->table, qp->qp(), words, count)));
}

napi_value jsPostSend(napi_env env, napi_callback_info info) { return postWith(env, info, postSends); }
napi_value jsPostReceive(napi_env env, napi_callback_info info) { return postWith(env, info, postReceives); }

// ---------------------------------------------------------------- the end

napi_value jsClose(napi_env env, napi_callback_info info) {
  Args args(env, info);
  int32_t id = 0;
  napi_get_value_int32(env, args.at[0], &id);
  if (!args.ok) return nullptr;
  return number(env, args.own->table.close(id));
}

/// How many objects of each kind exist, those included that were closed and wait for others.
napi_value jsLive(napi_env env, napi_callback_info info) {
  Args args(env, info);
  if (!args.ok) return nullptr;
  napi_value object = nullptr;
  napi_create_object(env, &object);
  const Table& table = args.own->table;
  set(env, object, "devices", table.live(Kind::context));
  set(env, object, "domains", table.live(Kind::pd));
  set(env, object, "regions", table.live(Kind::mr));
  set(env, object, "channels", table.live(Kind::channel));
  set(env, object, "completionQueues", table.live(Kind::cq));
  set(env, object, "queuePairs", table.live(Kind::qp));
  return object;
}

struct Export {
  const char* name;
  napi_callback function;
};

constexpr Export kExports[] = {
    {"unavailable", jsUnavailable}, {"devices", jsDevices},         {"openDevice", jsOpenDevice},       {"queryDevice", jsQueryDevice},
    {"queryPort", jsQueryPort},     {"queryGid", jsQueryGid},       {"asyncFd", jsAsyncFd},             {"asyncEvent", jsAsyncEvent},
    {"allocPd", jsAllocPd},         {"register", jsRegister},       {"memory", jsMemory},               {"createChannel", jsCreateChannel},
    {"channelFd", jsChannelFd},     {"channelEvents", jsChannelEvents}, {"createCq", jsCreateCq},       {"poll", jsPoll},
    {"notify", jsNotify},           {"createQp", jsCreateQp},       {"modifyQp", jsModifyQp},           {"queryQp", jsQueryQp},
    {"postSend", jsPostSend},       {"postReceive", jsPostReceive}, {"close", jsClose},                 {"live", jsLive},
};

}  // namespace
}  // namespace noderdma

NAPI_MODULE_INIT() {
  using namespace noderdma;
  auto* data = static_cast<Env*>(calloc(1, sizeof(Env)));
  if (data == nullptr) return throwText(env, "ENOMEM", "no memory for node-rdma");
  const char* why = nullptr;
  data->env = env;
  data->lib = verbsLib(&why);
  data->table.open(data->lib, disown, data);
  if (napi_set_instance_data(env, data, freeEnv, nullptr) != napi_ok) {
    free(data);
    return throwText(env, "ENOMEM", "no memory for node-rdma");
  }
  napi_add_env_cleanup_hook(env, endEnv, data);
  set(env, exports, "abi", kAbi);
  for (const Export& one : kExports) {
    napi_value function;
    if (napi_create_function(env, one.name, NAPI_AUTO_LENGTH, one.function, nullptr, &function) != napi_ok ||
        napi_set_named_property(env, exports, one.name, function) != napi_ok) {
      return throwText(env, "ERR_RDMA_INIT", "exports refused");
    }
  }
  return exports;
}
