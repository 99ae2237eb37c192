// The events of the network in the surface: from netlink.h to JavaScript's objects.
#include "../env.h"
#include "common/napi-args.h"
#include "netlink.h"

namespace multirail {
namespace {

/// Datagrams read by one call; what is left is found by the next.
constexpr int kDatagramsMax = 64;

struct Collector {
  napi_env env;
  napi_value list;
  uint32_t count;
  /// Only links, without the fields that tell of a change.
  bool plain;
};

bool collect(void* context, const NetlinkEvent& event) {
  auto* into = static_cast<Collector*>(context);
  napi_env env = into->env;
  napi_value object = nullptr;
  if (into->plain && event.kind != NetlinkKind::kLink) return true;
  if (napi_create_object(env, &object) != napi_ok) return false;
  if (event.kind == NetlinkKind::kOverrun) {
    setText(env, object, "type", "overrun");
  } else {
    const bool link = event.kind == NetlinkKind::kLink;
    if (!into->plain) setText(env, object, "type", link ? "link" : "address");
    setInt(env, object, "index", event.index);
    setText(env, object, link ? "name" : "address", event.text);
    if (link) {
      setBool(env, object, "up", event.up);
      setBool(env, object, "carrier", event.carrier);
    }
    if (!into->plain) setBool(env, object, "removed", event.removed);
  }
  return napi_set_element(env, into->list, into->count++, object) == napi_ok;
}

napi_value jsNetlinkOpen(napi_env env, napi_callback_info) {
  const Outcome outcome = netlinkOpen();
  return answerOrThrow(env, outcome.value, outcome.syscall);
}

napi_value jsNetlinkRead(napi_env env, napi_callback_info info) {
  Args<1> args(env, info);
  const int fd = args.fd(0);
  if (!args.ok) return nullptr;
  Collector into = {env, nullptr, 0, false};
  napi_create_array(env, &into.list);
  for (int i = 0; i < kDatagramsMax; i++) {
    const int outcome = netlinkRead(fd, collect, &into);
    if (outcome == 0) break;
    // What was collected is not lost: the error comes again with the next call.
    if (outcome < 0 && into.count > 0) break;
    if (outcome < 0) return throwSystem(env, outcome, "recvmsg");
  }
  return into.list;
}

napi_value jsLinks(napi_env env, napi_callback_info) {
  Collector into = {env, nullptr, 0, true};
  napi_create_array(env, &into.list);
  const Outcome outcome = netlinkLinks(collect, &into);
  return outcome.value < 0 ? throwSystem(env, outcome.value, outcome.syscall) : into.list;
}

constexpr Export kExports[] = {{"netlinkOpen", jsNetlinkOpen}, {"netlinkRead", jsNetlinkRead}, {"links", jsLinks}};

}  // namespace

Exports netlinkExports() { return exportsOf(kExports); }

}  // namespace multirail
