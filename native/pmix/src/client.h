// A client of PMIx that never makes its caller wait: what blocks in the library runs on a thread of its own, and what comes back, from that
// thread or from the library's, is handed on as a message. No Node headers.
#pragma once
#include "abi.h"

namespace pmix {

enum class Content : uint8_t { kNothing, kNumber, kText, kOther };

/// The end of a call, or an event.
struct Message {
  /// Of the call; 0 = an event.
  uint32_t id;
  abi::Status status;
  /// init(): the job's name and this process's rank. An event: the process that it is about.
  char nspace[abi::kNspaceMax + 1];
  abi::Rank rank;
  /// get(): the value. init(): a number, with which the library answered the registration for events.
  Content content;
  double number;
  char* text;
  /// The library's type of a value that is neither number nor text.
  abi::DataType type;
};

void freeMessage(Message* message);

/// Takes the message over. Called on any thread.
using Deliver = void (*)(Message* message, void* data);

/// One for the whole process, as in the library. Lives as long as the process does.
struct Client {
  const abi::Functions* functions;
  Deliver deliver;
  void* data;
  abi::Proc self;
};

/// Each answers 0, and a message with that id follows; or a positive error number, and none does. `id` is not 0.
/// init() also registers for the ends of processes; from then on, events come as messages with the id 0.
int init(Client* client, uint32_t id);
int put(Client* client, uint32_t id, const char* key, const char* text);
int commit(Client* client, uint32_t id);
/// Over all processes of the job. `collect`: what was committed is at hand everywhere afterwards.
int fence(Client* client, uint32_t id, bool collect);
/// What the process of that rank has put, or what is known of the job (kRankWildcard). Waits until it is there, unless `isOptional`: then
/// only what is at hand is looked at.
int get(Client* client, uint32_t id, abi::Rank rank, const char* key, bool isOptional);
/// Has all processes of the job ended.
int abort(Client* client, uint32_t id, int code, const char* text);
int finalize(Client* client, uint32_t id);

}  // namespace pmix
