// See client.h.
#include "client.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

namespace pmix {
namespace {

enum class Kind : uint8_t { kInit, kPut, kCommit, kFence, kGet, kAbort, kFinalize };

/// A call under way. It holds what the library may look at until it answers.
struct Call {
  Client* client;
  uint32_t id;
  Kind kind;
  int code;
  char key[abi::kKeyMax + 1];
  char* text;
  abi::Proc proc;
  abi::Info info;
};

/// Whose events they are: the library hands a handler nothing of its owner's.
Client* listener = nullptr;

constexpr abi::Status kEnds[] = {
    abi::kErrProcAborted,     abi::kErrProcRequestedAbort, abi::kErrProcTermWoSync,   abi::kEventProcTerminated,
    abi::kErrProcKilledByCmd, abi::kErrProcFailedToStart,  abi::kErrProcAbortedBySig, abi::kErrProcSensorBoundExceeded,
    abi::kErrExitNonzeroTerm, abi::kErrLostConnection,
};
constexpr size_t kEndCount = sizeof kEnds / sizeof kEnds[0];

Message* newMessage(uint32_t id, abi::Status status) {
  auto* message = static_cast<Message*>(calloc(1, sizeof(Message)));
  // A call without an answer would wait for it for as long as the process lives.
  if (message == nullptr) ::abort();
  message->id = id;
  message->status = status;
  return message;
}

void send(Client* client, Message* message) { client->deliver(message, client->data); }

void freeCall(Call* call) {
  free(call->text);
  free(call);
}

Call* newCall(Client* client, uint32_t id, Kind kind) {
  auto* call = static_cast<Call*>(calloc(1, sizeof(Call)));
  if (call == nullptr) return nullptr;
  call->client = client;
  call->id = id;
  call->kind = kind;
  return call;
}

/// False when it does not fit.
bool setKey(char (&key)[abi::kKeyMax + 1], const char* name) {
  const size_t length = strlen(name);
  if (length > abi::kKeyMax) return false;
  memcpy(key, name, length + 1);
  return true;
}

void setFlag(abi::Info* info, const char* name) {
  setKey(info->key, name);
  info->value.type = abi::kTypeBool;
  info->value.data.flag = true;
}

void answer(Call* call, abi::Status status) {
  send(call->client, newMessage(call->id, status == abi::kOperationSucceeded ? abi::kSuccess : status));
  freeCall(call);
}

// --- events

void tellEnd(abi::Status status, const abi::Proc* proc) {
  if (proc == nullptr) return;
  Client* client = listener;
  const bool isServer = status == abi::kErrLostConnection;
  // Jobs that this one has something to do with have ends too.
  if (!isServer && (strncmp(proc->nspace, client->self.nspace, sizeof proc->nspace) != 0 || proc->rank >= abi::kRankWildcard)) return;
  Message* message = newMessage(0, status);
  memcpy(message->nspace, proc->nspace, sizeof message->nspace);
  message->rank = proc->rank;
  send(client, message);
}

extern "C" void onEvent(size_t, abi::Status status, const abi::Proc* source, abi::Info* infos, size_t infoCount, abi::Info*, size_t,
                        abi::EventDone done, void* data) {
  bool isNamed = false;
  for (size_t i = 0; i < infoCount; i++) {
    const abi::Info& info = infos[i];
    if (strncmp(info.key, abi::kEventAffectedProc, sizeof info.key) == 0 && info.value.type == abi::kTypeProc) {
      isNamed = true;
      tellEnd(status, info.value.data.proc);
    } else if (strncmp(info.key, abi::kEventAffectedProcs, sizeof info.key) == 0 && info.value.type == abi::kTypeDataArray &&
               info.value.data.array != nullptr && info.value.data.array->type == abi::kTypeProc) {
      isNamed = true;
      const abi::DataArray& array = *info.value.data.array;
      for (size_t at = 0; at < array.size; at++) tellEnd(status, static_cast<const abi::Proc*>(array.array) + at);
    }
  }
  // What PMIx 3 says of a process is said in its name.
  if (!isNamed) tellEnd(status, source);
  if (done != nullptr) done(abi::kEventNoActionTaken, nullptr, 0, nullptr, nullptr, data);
}

/// The end of init(): this process is a client, whether it hears of events or not.
extern "C" void onRegistered(abi::Status status, size_t, void* data) {
  auto* call = static_cast<Call*>(data);
  Message* message = newMessage(call->id, abi::kSuccess);
  memcpy(message->nspace, call->client->self.nspace, sizeof message->nspace);
  message->rank = call->client->self.rank;
  message->content = Content::kNumber;
  message->number = status == abi::kOperationSucceeded ? abi::kSuccess : status;
  send(call->client, message);
  freeCall(call);
}

// --- calls that block, each on its own thread

void runInit(Call* call) {
  Client* client = call->client;
  const abi::Functions& functions = *client->functions;
  const abi::Status status = functions.init(&client->self, nullptr, 0);
  if (status != abi::kSuccess) return answer(call, status);
  listener = client;
  abi::Status codes[kEndCount];
  memcpy(codes, kEnds, sizeof codes);
  const abi::Status registered = functions.registerEventHandler(codes, kEndCount, nullptr, 0, onEvent, onRegistered, call);
  if (registered != abi::kSuccess) onRegistered(registered, 0, call);
}

void runPut(Call* call) {
  abi::Value value = {};
  value.type = abi::kTypeString;
  value.data.string = call->text;
  answer(call, call->client->functions->put(abi::kGlobal, call->key, &value));
}

void* run(void* data) {
  auto* call = static_cast<Call*>(data);
  const abi::Functions& functions = *call->client->functions;
  switch (call->kind) {
    case Kind::kInit:
      runInit(call);
      break;
    case Kind::kPut:
      runPut(call);
      break;
    case Kind::kCommit:
      answer(call, functions.commit());
      break;
    case Kind::kAbort:
      answer(call, functions.abort(call->code, call->text, nullptr, 0));
      break;
    case Kind::kFinalize:
      answer(call, functions.finalize(nullptr, 0));
      break;
    case Kind::kFence:
    case Kind::kGet:
      break;
  }
  return nullptr;
}

/// There is a handful of such calls in the life of a process. Nobody waits for the thread: one that the library never lets go ends with it.
int onThread(Call* call) {
  pthread_attr_t attributes;
  pthread_t thread;
  int failure = pthread_attr_init(&attributes);
  if (failure == 0) {
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    failure = pthread_create(&thread, &attributes, run, call);
    pthread_attr_destroy(&attributes);
  }
  if (failure != 0) freeCall(call);
  return failure;
}

// --- calls that the library answers later

extern "C" void onFenced(abi::Status status, void* data) { answer(static_cast<Call*>(data), status); }

void takeValue(Message* message, const abi::Value& value) {
  const auto number = [message](double found) {
    message->content = Content::kNumber;
    message->number = found;
  };
  switch (value.type) {
    case abi::kTypeBool:
      return number(value.data.flag ? 1 : 0);
    case abi::kTypeSize:
      return number(static_cast<double>(value.data.size));
    case abi::kTypeInt:
      return number(value.data.integer);
    case abi::kTypeInt32:
      return number(value.data.int32);
    case abi::kTypeUint16:
      return number(value.data.uint16);
    case abi::kTypeUint32:
      return number(value.data.uint32);
    case abi::kTypeUint64:
      return number(static_cast<double>(value.data.uint64));
    case abi::kTypeProcRank:
      return number(value.data.rank);
    case abi::kTypeString:
      message->text = strdup(value.data.string == nullptr ? "" : value.data.string);
      if (message->text == nullptr) message->status = abi::kErrNoMem;
      message->content = Content::kText;
      return;
    default:
      message->content = Content::kOther;
      message->type = value.type;
  }
}

/// The value is the library's, and is gone when this returns.
extern "C" void onValue(abi::Status status, abi::Value* value, void* data) {
  auto* call = static_cast<Call*>(data);
  Message* message = newMessage(call->id, status == abi::kOperationSucceeded ? abi::kSuccess : status);
  if (message->status == abi::kSuccess && value != nullptr) takeValue(message, *value);
  send(call->client, message);
  freeCall(call);
}

}  // namespace

void freeMessage(Message* message) {
  free(message->text);
  free(message);
}

int init(Client* client, uint32_t id) {
  Call* call = newCall(client, id, Kind::kInit);
  return call == nullptr ? ENOMEM : onThread(call);
}

int put(Client* client, uint32_t id, const char* key, const char* text) {
  Call* call = newCall(client, id, Kind::kPut);
  if (call == nullptr) return ENOMEM;
  call->text = strdup(text);
  const bool fits = setKey(call->key, key);
  if (call->text != nullptr && fits) return onThread(call);
  freeCall(call);
  return fits ? ENOMEM : ENAMETOOLONG;
}

int commit(Client* client, uint32_t id) {
  Call* call = newCall(client, id, Kind::kCommit);
  return call == nullptr ? ENOMEM : onThread(call);
}

int fence(Client* client, uint32_t id, bool collect) {
  Call* call = newCall(client, id, Kind::kFence);
  if (call == nullptr) return ENOMEM;
  if (collect) setFlag(&call->info, abi::kCollectData);
  const abi::Status status = client->functions->fenceNb(nullptr, 0, collect ? &call->info : nullptr, collect ? 1 : 0, onFenced, call);
  // Then it does not call back.
  if (status != abi::kSuccess) answer(call, status);
  return 0;
}

int get(Client* client, uint32_t id, abi::Rank rank, const char* key, bool isOptional) {
  Call* call = newCall(client, id, Kind::kGet);
  if (call == nullptr) return ENOMEM;
  if (!setKey(call->key, key)) {
    freeCall(call);
    return ENAMETOOLONG;
  }
  memcpy(call->proc.nspace, client->self.nspace, sizeof call->proc.nspace);
  call->proc.rank = rank;
  if (isOptional) setFlag(&call->info, abi::kOptional);
  const abi::Info* infos = isOptional ? &call->info : nullptr;
  const abi::Status status = client->functions->getNb(&call->proc, call->key, infos, isOptional ? 1 : 0, onValue, call);
  if (status != abi::kSuccess) answer(call, status);
  return 0;
}

int abort(Client* client, uint32_t id, int code, const char* text) {
  Call* call = newCall(client, id, Kind::kAbort);
  if (call == nullptr) return ENOMEM;
  call->code = code;
  call->text = strdup(text);
  if (call->text != nullptr) return onThread(call);
  freeCall(call);
  return ENOMEM;
}

int finalize(Client* client, uint32_t id) {
  Call* call = newCall(client, id, Kind::kFinalize);
  return call == nullptr ? ENOMEM : onThread(call);
}

}  // namespace pmix
