// The table of objects in the surface: what the library made enters it, and is closed by its number.
#include "env.h"

namespace noderdma {
namespace {

napi_value jsClose(napi_env env, napi_callback_info info) {
  Args args(env, info);
  int32_t id = 0;
  napi_get_value_int32(env, args.at[0], &id);
  if (!args.ok) return nullptr;
  const int outcome = args.own->table.close(id);
  return outcome < 0 ? throwSystem(env, outcome, "close") : nullptr;
}

/// How many objects of each kind exist, those included that were closed and wait for others.
napi_value jsLive(napi_env env, napi_callback_info info) {
  Args args(env, info);
  if (!args.ok) return nullptr;
  napi_value object = nullptr;
  napi_create_object(env, &object);
  const Table& table = args.own->table;
  setNumber(env, object, "devices", table.live(Kind::context));
  setNumber(env, object, "domains", table.live(Kind::pd));
  setNumber(env, object, "regions", table.live(Kind::mr));
  setNumber(env, object, "channels", table.live(Kind::channel));
  setNumber(env, object, "completionQueues", table.live(Kind::cq));
  setNumber(env, object, "queuePairs", table.live(Kind::qp));
  return object;
}

constexpr Export kExports[] = {
    {"close", jsClose},
    {"live", jsLive},
};

}  // namespace

Object* begin(Args& args, Kind kind, Object* const* parents, int count) {
  Object* object = args.own->table.begin(kind, parents, count);
  if (object == nullptr) args.fail("ENOMEM", "no memory for another object");
  return object;
}

bool enter(Args& args, Object* object, void* raw, const char* call, napi_ref owner) {
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

Exports objectsExports() { return exportsOf(kExports); }

}  // namespace noderdma
