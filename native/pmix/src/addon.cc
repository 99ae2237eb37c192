// Entry of the addon: from JavaScript's arguments to client.h, and from the threads of PMIx back to the event loop of the one environment
// that has started the client. The surface is described in src/launch/pmix/binding.ts.
#include <pthread.h>
#include <stdlib.h>

#include "client.h"
#include "common/exports.h"
#include "common/napi-args.h"
#include "library.h"

namespace pmix {
namespace {

using namespace common;

/// PMIX_ABI of src/launch/pmix/binding.ts.
constexpr int32_t kAbi = 1;
constexpr size_t kNameMax = 4096;
constexpr size_t kTextBytesMax = 64 * 1024;
constexpr size_t kCapacity = 512;
/// Events that the loop has not taken. A process ends once; what does not fit is lost, and its lifeline tells.
constexpr int kEventsMax = 64 * 1024;

/// All of it belongs to the process: the library knows one client, and its threads do not end with an environment.
abi::Functions functions;
bool isLoaded = false;
Client client;
/// Under the lock: whether there is a loop that takes messages.
pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
bool isStarted = false;
bool isOpen = false;
napi_env owner = nullptr;
napi_threadsafe_function toLoop;
int eventsWaiting = 0;
/// The loop's own: calls without an answer, which keep it alive.
int callsUnderWay = 0;

void deliver(Message* message, void*) {
  pthread_mutex_lock(&lock);
  const bool isEvent = message->id == 0;
  const bool isTaken = isOpen && (!isEvent || eventsWaiting < kEventsMax) &&
                       napi_call_threadsafe_function(toLoop, message, napi_tsfn_nonblocking) == napi_ok;
  if (isTaken && isEvent) eventsWaiting++;
  pthread_mutex_unlock(&lock);
  if (!isTaken) freeMessage(message);
}

napi_value toJs(napi_env env, const Message& message) {
  napi_value object = nullptr;
  napi_create_object(env, &object);
  setNumber(env, object, "id", message.id);
  setInt(env, object, "status", message.status);
  setText(env, object, "statusText", message.status == abi::kSuccess ? "" : functions.errorString(message.status));
  if (message.nspace[0] != '\0') {
    setText(env, object, "nspace", message.nspace);
    setNumber(env, object, "rank", message.rank);
  }
  if (message.content == Content::kNumber) setNumber(env, object, "value", message.number);
  if (message.content == Content::kText && message.text != nullptr) setText(env, object, "value", message.text);
  if (message.content == Content::kOther) setInt(env, object, "type", message.type);
  return object;
}

void onLoop(napi_env env, napi_value callback, void*, void* data) {
  auto* message = static_cast<Message*>(data);
  if (message->id == 0) {
    pthread_mutex_lock(&lock);
    eventsWaiting--;
    pthread_mutex_unlock(&lock);
  }
  // Without an environment: it has ended, and the queue is emptied.
  if (env != nullptr) {
    if (message->id != 0 && --callsUnderWay == 0) napi_unref_threadsafe_function(env, toLoop);
    napi_value undefined = nullptr;
    napi_value object = toJs(env, *message);
    napi_get_undefined(env, &undefined);
    napi_call_function(env, undefined, callback, 1, &object, nullptr);
  }
  freeMessage(message);
}

void onEnvironmentEnd(void*) {
  pthread_mutex_lock(&lock);
  isOpen = false;
  pthread_mutex_unlock(&lock);
}

napi_value jsOpen(napi_env env, napi_callback_info info) {
  Args<1> args(env, info);
  char name[kNameMax];
  const size_t length = args.text(0, "name", name, sizeof name);
  if (args.ok && (length == 0 || memchr(name, '\0', length) != nullptr)) args.refuse("name", "the name of a library");
  if (!args.ok) return nullptr;
  char text[kCapacity];
  pthread_mutex_lock(&lock);
  abi::Functions found;
  // Once a client runs, its library is the one.
  const bool isFound = openLibrary(name, &found, text, sizeof text);
  if (isFound && !isStarted) {
    functions = found;
    isLoaded = true;
  }
  pthread_mutex_unlock(&lock);
  if (!isFound) return throwCode(env, "ERR_PMIX", text);
  napi_value answer = nullptr;
  napi_create_string_utf8(env, text, NAPI_AUTO_LENGTH, &answer);
  return answer;
}

napi_value jsStart(napi_env env, napi_callback_info info) {
  Args<1> args(env, info);
  napi_valuetype type = napi_undefined;
  if (args.ok) napi_typeof(env, args.at[0], &type);
  if (type != napi_function) args.refuse("listener", "a function");
  if (!args.ok) return nullptr;
  pthread_mutex_lock(&lock);
  const char* refusal = nullptr;
  if (!isLoaded) refusal = "no library is open: open() opens one";
  if (isStarted) refusal = "a process is one client of PMIx, and this one has been started before";
  if (refusal == nullptr) isStarted = true;
  pthread_mutex_unlock(&lock);
  if (refusal != nullptr) return throwCode(env, "ERR_PMIX", refusal);
  napi_value name = nullptr;
  napi_create_string_utf8(env, "multirail-pmix", NAPI_AUTO_LENGTH, &name);
  if (napi_create_threadsafe_function(env, args.at[0], nullptr, name, 0, 1, nullptr, nullptr, nullptr, onLoop, &toLoop) != napi_ok) {
    return throwCode(env, "ERR_PMIX", "the engine has no way to the event loop");
  }
  napi_unref_threadsafe_function(env, toLoop);
  // Asked before the function's own hook, so that no thread uses it while it goes.
  napi_add_env_cleanup_hook(env, onEnvironmentEnd, nullptr);
  client.functions = &functions;
  client.deliver = deliver;
  pthread_mutex_lock(&lock);
  owner = env;
  isOpen = true;
  pthread_mutex_unlock(&lock);
  return nullptr;
}

/// Whether this environment has started the client.
bool isOwner(napi_env env) {
  pthread_mutex_lock(&lock);
  const bool is = isOpen && owner == env;
  pthread_mutex_unlock(&lock);
  return is;
}

/// Reads the number of the call, which stands first.
template <int N>
uint32_t readId(Args<N>& args) {
  const auto id = static_cast<uint32_t>(args.whole(0, "id", 1, UINT32_MAX));
  if (!isOwner(args.env)) args.fail("ERR_PMIX", "there is no client of this environment: start() starts it");
  return id;
}

/// Before the call: its answer may be there before it returns.
void countCall(napi_env env) {
  if (callsUnderWay++ == 0) napi_ref_threadsafe_function(env, toLoop);
}

napi_value answerOf(napi_env env, int failure, const char* call) {
  if (failure == 0) return nullptr;
  if (--callsUnderWay == 0) napi_unref_threadsafe_function(env, toLoop);
  return throwSystem(env, -failure, call);
}

napi_value jsInit(napi_env env, napi_callback_info info) {
  Args<1> args(env, info);
  const uint32_t id = readId(args);
  if (!args.ok) return nullptr;
  countCall(env);
  return answerOf(env, init(&client, id), "PMIx_Init");
}

napi_value jsPut(napi_env env, napi_callback_info info) {
  Args<3> args(env, info);
  const uint32_t id = readId(args);
  char key[abi::kKeyMax + 1];
  args.text(1, "key", key, sizeof key);
  auto* text = static_cast<char*>(malloc(kTextBytesMax));
  if (text == nullptr) return throwSystem(env, -ENOMEM, "malloc");
  const size_t length = args.text(2, "text", text, kTextBytesMax);
  if (args.ok && memchr(text, '\0', length) != nullptr) args.refuse("text", "a string without zero bytes");
  napi_value answer = nullptr;
  if (args.ok) {
    countCall(env);
    answer = answerOf(env, put(&client, id, key, text), "PMIx_Put");
  }
  free(text);
  return answer;
}

napi_value jsCommit(napi_env env, napi_callback_info info) {
  Args<1> args(env, info);
  const uint32_t id = readId(args);
  if (!args.ok) return nullptr;
  countCall(env);
  return answerOf(env, commit(&client, id), "PMIx_Commit");
}

napi_value jsFence(napi_env env, napi_callback_info info) {
  Args<2> args(env, info);
  const uint32_t id = readId(args);
  const bool collect = args.boolean(1, "collect");
  if (!args.ok) return nullptr;
  countCall(env);
  return answerOf(env, fence(&client, id, collect), "PMIx_Fence_nb");
}

napi_value jsGet(napi_env env, napi_callback_info info) {
  Args<4> args(env, info);
  const uint32_t id = readId(args);
  const int64_t rank = args.whole(1, "rank", -1, INT32_MAX);
  char key[abi::kKeyMax + 1];
  args.text(2, "key", key, sizeof key);
  const bool isOptional = args.boolean(3, "isOptional");
  if (!args.ok) return nullptr;
  countCall(env);
  const abi::Rank of = rank < 0 ? abi::kRankWildcard : static_cast<abi::Rank>(rank);
  return answerOf(env, get(&client, id, of, key, isOptional), "PMIx_Get_nb");
}

napi_value jsAbort(napi_env env, napi_callback_info info) {
  Args<3> args(env, info);
  const uint32_t id = readId(args);
  const int code = static_cast<int>(args.whole(1, "code", INT32_MIN, INT32_MAX));
  char text[kCapacity];
  args.text(2, "text", text, sizeof text);
  if (!args.ok) return nullptr;
  countCall(env);
  return answerOf(env, abort(&client, id, code, text), "PMIx_Abort");
}

napi_value jsFinalize(napi_env env, napi_callback_info info) {
  Args<1> args(env, info);
  const uint32_t id = readId(args);
  if (!args.ok) return nullptr;
  countCall(env);
  return answerOf(env, finalize(&client, id), "PMIx_Finalize");
}

constexpr Export kExports[] = {{"open", jsOpen},   {"start", jsStart}, {"init", jsInit},   {"put", jsPut},          {"commit", jsCommit},
                               {"fence", jsFence}, {"get", jsGet},     {"abort", jsAbort}, {"finalize", jsFinalize}};

}  // namespace
}  // namespace pmix

NAPI_MODULE_INIT() {
  using namespace pmix;
  setInt(env, exports, "abi", kAbi);
  if (!exportAll(env, exports, exportsOf(kExports))) return throwCode(env, "ERR_NATIVE_INIT", "exports refused");
  return exports;
}
