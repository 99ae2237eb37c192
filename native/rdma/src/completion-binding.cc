// Completions of the surface: channels, and queues with what work.h takes out of them.
#include "device.h"
#include "env.h"
#include "work.h"

namespace noderdma {
namespace {

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
  return args.ok ? answerInt(env, channel->channel()->fd) : nullptr;
}

napi_value jsChannelEvents(napi_env env, napi_callback_info info) {
  Args args(env, info);
  const Object* channel = args.object(0, Kind::channel, "completion channel");
  return args.ok ? answerOrThrow(env, channelEvents(*args.own->lib, channel->channel()), "ibv_get_cq_event") : nullptr;
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
  return answerOrThrow(env, pollCompletions(cq->cq(), words, length / kCompletionWords), "ibv_poll_cq");
}

napi_value jsNotify(napi_env env, napi_callback_info info) {
  Args args(env, info);
  const Object* cq = args.object(0, Kind::cq, "completion queue");
  const bool solicitedOnly = args.boolean(1, "solicitedOnly");
  if (!args.ok) return nullptr;
  const int answer = ibv_req_notify_cq(cq->cq(), solicitedOnly ? 1 : 0);
  return answer == 0 ? answerInt(env, 0) : throwSystem(env, failureOf(answer), "ibv_req_notify_cq");
}

constexpr Export kExports[] = {
    {"createChannel", jsCreateChannel}, {"channelFd", jsChannelFd}, {"channelEvents", jsChannelEvents},
    {"createCq", jsCreateCq},           {"poll", jsPoll},           {"notify", jsNotify},
};

}  // namespace

Exports completionExports() { return exportsOf(kExports); }

}  // namespace noderdma
