// Queue pairs of the surface: making, moving through their states, and posting what stands in words (work.h).
#include <string.h>

#include "env.h"
#include "work.h"

namespace noderdma {
namespace {

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
  attr.sq_sig_all = args.boolean(8, "signalAll") ? 1 : 0;
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
  setNumber(env, answer, "id", object->id);
  setNumber(env, answer, "number", qp->qp_num);
  setNumber(env, answer, "sendRequests", attr.cap.max_send_wr);
  setNumber(env, answer, "receiveRequests", attr.cap.max_recv_wr);
  setNumber(env, answer, "inlineBytes", attr.cap.max_inline_data);
  return answer;
}

/// A number of `object` by that name, if it is there.
bool field(Args& args, napi_value object, const char* name, double high, double* out) {
  napi_valuetype type;
  const napi_value value = args.property(object, name, &type);
  if (type == napi_undefined) return false;
  if (napi_get_value_double(args.env, value, out) != napi_ok || !(*out >= 0 && *out <= high)) {
    char wanted[64];
    snprintf(wanted, sizeof wanted, "a number from 0 to %.0f", high);
    args.refuse(name, wanted);
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
  napi_valuetype type;
  const napi_value gid = args.property(from, "gid", &type);
  if (type == napi_undefined) return args.ok;
  napi_typedarray_type elements;
  size_t length = 0;
  void* data = nullptr;
  if (napi_get_typedarray_info(args.env, gid, &elements, &length, &data, nullptr, nullptr) != napi_ok || elements != napi_uint8_array ||
      length != 16) {
    args.refuse("gid", "a Uint8Array of 16 bytes");
    return false;
  }
  memcpy(to->grh.dgid.raw, data, 16);
  to->is_global = 1;
  return args.ok;
}

/// Sets what the object names, and nothing else.
napi_value jsModifyQp(napi_env env, napi_callback_info info) {
  Args args(env, info);
  ibv_qp_attr attr;
  memset(&attr, 0, sizeof attr);
  int mask = 0;
  double value = 0;
  const napi_value given = args.at[1];
  napi_valuetype type = napi_undefined;
  napi_typeof(env, given, &type);
  if (type != napi_object) args.refuse("attributes", "an object");
#define TAKE(name, high, member, type, bit)     \
  if (field(args, given, name, high, &value)) { \
    attr.member = static_cast<type>(value);     \
    mask |= bit;                                \
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
  const napi_value address = args.property(given, "address", &type);
  if (type == napi_object && addressOf(args, address, &attr.ah_attr)) mask |= IBV_QP_AV;
  // Not before: a getter among them could have closed the pair.
  const Object* qp = args.object(0, Kind::qp, "queue pair");
  if (!args.ok) return nullptr;
  const int answer = args.own->lib->modify_qp(qp->qp(), &attr, mask);
  return answer == 0 ? answerInt(env, 0) : throwSystem(env, failureOf(answer), "ibv_modify_qp");
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
  setNumber(env, object, "state", attr.qp_state);
  setNumber(env, object, "timeout", attr.timeout);
  setNumber(env, object, "retryCount", attr.retry_cnt);
  setNumber(env, object, "mtu", attr.path_mtu);
  setNumber(env, object, "remoteNumber", attr.dest_qp_num);
  return object;
}

napi_value postWith(napi_env env, napi_callback_info info, size_t (*post)(const Table&, ibv_qp*, uint32_t*, size_t)) {
  Args args(env, info);
  const Object* qp = args.object(0, Kind::qp, "queue pair");
  size_t length = 0;
  uint32_t* words = args.words(1, &length);
  const auto count = static_cast<size_t>(args.whole(2, "count", 0, 1048576));
  if (args.ok && count > length / kRequestWords) args.refuse("count", "at most the requests that stand in the words");
  if (!args.ok) return nullptr;
  return answerNumber(env, static_cast<double>(post(args.own->table, qp->qp(), words, count)));
}

napi_value jsPostSend(napi_env env, napi_callback_info info) { return postWith(env, info, postSends); }
napi_value jsPostReceive(napi_env env, napi_callback_info info) { return postWith(env, info, postReceives); }

constexpr Export kExports[] = {
    {"createQp", jsCreateQp}, {"modifyQp", jsModifyQp}, {"queryQp", jsQueryQp}, {"postSend", jsPostSend}, {"postReceive", jsPostReceive},
};

}  // namespace

Exports queuePairExports() { return exportsOf(kExports); }

}  // namespace noderdma
