// The client against a library that is played here: what it is asked for, from which thread it answers, and what becomes of the answers and
// of events. Then the real library by name, where it is installed: without a server it says so.
#include "../src/client.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>

#include <initializer_list>

#include "../../test/check.h"
#include "../src/library.h"

using namespace pmix;

namespace {

// --- the listener: messages in a queue that a thread waits for

pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t arrived = PTHREAD_COND_INITIALIZER;
constexpr int kMessagesMax = 64;
Message* messages[kMessagesMax];
int messageCount = 0;
int marker = 0;

void deliver(Message* message, void* data) {
  CHECK(data == &marker);
  pthread_mutex_lock(&lock);
  if (messageCount < kMessagesMax) messages[messageCount++] = message;
  pthread_cond_signal(&arrived);
  pthread_mutex_unlock(&lock);
}

/// The oldest message; the test hangs no longer than ten seconds without one.
Message* next() {
  timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += 10;
  pthread_mutex_lock(&lock);
  int failure = 0;
  while (messageCount == 0 && failure == 0) failure = pthread_cond_timedwait(&arrived, &lock, &until);
  Message* message = nullptr;
  if (messageCount > 0) {
    message = messages[0];
    for (int i = 1; i < messageCount; i++) messages[i - 1] = messages[i];
    messageCount--;
  }
  pthread_mutex_unlock(&lock);
  CHECK(message != nullptr);
  if (message == nullptr) exit(1);
  return message;
}

/// That the answer of this call has this status; without what it carries.
void expect(uint32_t id, abi::Status status) {
  Message* message = next();
  CHECK(message->id == id);
  CHECK(message->status == status);
  CHECK(message->content == Content::kNothing);
  freeMessage(message);
}

// --- the library

pthread_t testThread;
abi::Status initAnswer, plainAnswer, nbAnswer, laterStatus, registerAnswer, registeredStatus;
abi::EventHandler handler = nullptr;
bool codeOfKill = false;
char putKey[abi::kKeyMax + 1], putText[64], abortText[64], getKey[abi::kKeyMax + 1];
int abortCode = 0, eventAnswers = 0;
abi::Rank getRank = 0;
bool hasCollect = false, hasOptional = false;
abi::Value nextValue;

/// Answers from a thread of the library's own.
struct Later {
  abi::OpDone op;
  abi::ValueDone value;
  abi::HandlerRegistered registered;
  void* data;
};

void* answerLater(void* argument) {
  auto* later = static_cast<Later*>(argument);
  if (later->op != nullptr) later->op(laterStatus, later->data);
  if (later->value != nullptr) {
    abi::Value copy = nextValue;
    later->value(laterStatus, laterStatus == abi::kSuccess ? &copy : nullptr, later->data);
    memset(&copy, 0x5a, sizeof copy);
  }
  if (later->registered != nullptr) later->registered(registeredStatus, 7, later->data);
  delete later;
  return nullptr;
}

void later(Later what) {
  pthread_t thread;
  CHECK(pthread_create(&thread, nullptr, answerLater, new Later(what)) == 0);
  pthread_detach(thread);
}

abi::Status fakeInit(abi::Proc* self, abi::Info*, size_t) {
  CHECK(!pthread_equal(pthread_self(), testThread));
  if (initAnswer == abi::kSuccess) {
    strcpy(self->nspace, "job");
    self->rank = 3;
  }
  return initAnswer;
}

abi::Status fakeRegister(abi::Status* codes, size_t count, abi::Info*, size_t, abi::EventHandler given, abi::HandlerRegistered done,
                         void* data) {
  for (size_t i = 0; i < count; i++) codeOfKill = codeOfKill || codes[i] == abi::kErrProcAbortedBySig;
  handler = given;
  if (registerAnswer == abi::kSuccess) later({nullptr, nullptr, done, data});
  return registerAnswer;
}

abi::Status fakePut(abi::Scope scope, const char* key, abi::Value* value) {
  CHECK(!pthread_equal(pthread_self(), testThread));
  CHECK(scope == abi::kGlobal);
  CHECK(value->type == abi::kTypeString);
  strcpy(putKey, key);
  strcpy(putText, value->data.string);
  return plainAnswer;
}

abi::Status fakeCommit() {
  CHECK(!pthread_equal(pthread_self(), testThread));
  return plainAnswer;
}

abi::Status fakeAbort(int code, const char* text, abi::Proc* procs, size_t) {
  CHECK(procs == nullptr);
  abortCode = code;
  strcpy(abortText, text);
  return plainAnswer;
}

abi::Status fakeFinalize(const abi::Info*, size_t) { return plainAnswer; }

abi::Status fakeFence(const abi::Proc* procs, size_t, const abi::Info* infos, size_t count, abi::OpDone done, void* data) {
  CHECK(procs == nullptr);
  hasCollect = count == 1 && strcmp(infos->key, "pmix.collect") == 0 && infos->value.type == abi::kTypeBool && infos->value.data.flag;
  if (nbAnswer == abi::kSuccess) later({done, nullptr, nullptr, data});
  return nbAnswer;
}

abi::Status fakeGet(const abi::Proc* proc, const char* key, const abi::Info* infos, size_t count, abi::ValueDone done, void* data) {
  CHECK(strcmp(proc->nspace, "job") == 0);
  getRank = proc->rank;
  strcpy(getKey, key);
  hasOptional = count == 1 && strcmp(infos->key, "pmix.optional") == 0;
  if (nbAnswer == abi::kSuccess) later({nullptr, done, nullptr, data});
  return nbAnswer;
}

const char* fakeText(abi::Status) { return "text"; }
const char* fakeVersion() { return "0"; }

constexpr abi::Functions kFake = {fakeInit,  fakeFinalize, fakeAbort,    fakePut,  fakeCommit,
                                  fakeFence, fakeGet,      fakeRegister, fakeText, fakeVersion};

Client client = {&kFake, deliver, &marker, {}};

// --- the tests

void starts() {
  initAnswer = -25;
  CHECK(init(&client, 1) == 0);
  expect(1, -25);
  // Without events it is a client all the same, and says so.
  initAnswer = abi::kSuccess;
  for (const abi::Status answer : {-1367, abi::kOperationSucceeded, abi::kSuccess}) {
    registerAnswer = answer;
    registeredStatus = abi::kSuccess;
    CHECK(init(&client, 2) == 0);
    Message* message = next();
    CHECK(message->id == 2);
    CHECK(message->status == abi::kSuccess);
    CHECK(strcmp(message->nspace, "job") == 0);
    CHECK(message->rank == 3);
    CHECK(message->content == Content::kNumber);
    CHECK(message->number == (answer == -1367 ? -1367 : 0));
    freeMessage(message);
  }
  CHECK(handler != nullptr);
  CHECK(codeOfKill);
}

void plainCalls() {
  for (const abi::Status answer : {abi::kSuccess, abi::kOperationSucceeded, -2}) {
    plainAnswer = answer;
    const abi::Status told = answer == abi::kOperationSucceeded ? abi::kSuccess : answer;
    CHECK(put(&client, 10, "key", "a text") == 0);
    expect(10, told);
    CHECK(strcmp(putKey, "key") == 0);
    CHECK(strcmp(putText, "a text") == 0);
    CHECK(commit(&client, 11) == 0);
    expect(11, told);
    CHECK(abort(&client, 12, 7, "enough") == 0);
    expect(12, told);
    CHECK(abortCode == 7);
    CHECK(strcmp(abortText, "enough") == 0);
    CHECK(finalize(&client, 13) == 0);
    expect(13, told);
  }
  char longKey[abi::kKeyMax + 2];
  memset(longKey, 'k', sizeof longKey);
  longKey[sizeof longKey - 1] = '\0';
  CHECK(put(&client, 14, longKey, "") == ENAMETOOLONG);
  CHECK(get(&client, 15, 0, longKey, false) == ENAMETOOLONG);
  longKey[abi::kKeyMax] = '\0';
  CHECK(put(&client, 16, longKey, "") == 0);
  expect(16, -2);
  CHECK(strcmp(putKey, longKey) == 0);
}

void fences() {
  for (const bool collect : {true, false}) {
    nbAnswer = laterStatus = abi::kSuccess;
    CHECK(fence(&client, 20, collect) == 0);
    expect(20, abi::kSuccess);
    CHECK(hasCollect == collect);
    laterStatus = -61;
    CHECK(fence(&client, 21, collect) == 0);
    expect(21, -61);
    // It answers at once, and will not call back.
    nbAnswer = abi::kOperationSucceeded;
    CHECK(fence(&client, 22, collect) == 0);
    expect(22, abi::kSuccess);
    nbAnswer = -27;
    CHECK(fence(&client, 23, collect) == 0);
    expect(23, -27);
  }
}

void number(abi::DataType type, double wanted) {
  nextValue.type = type;
  CHECK(get(&client, 30, 4, "a key", true) == 0);
  Message* message = next();
  CHECK(message->status == abi::kSuccess);
  CHECK(message->content == Content::kNumber);
  CHECK(message->number == wanted);
  freeMessage(message);
}

void gets() {
  nbAnswer = laterStatus = abi::kSuccess;
  memset(&nextValue, 0, sizeof nextValue);
  nextValue.data.flag = true;
  number(abi::kTypeBool, 1);
  CHECK(getRank == 4);
  CHECK(strcmp(getKey, "a key") == 0);
  CHECK(hasOptional);
  nextValue.data.size = 1ull << 40;
  number(abi::kTypeSize, static_cast<double>(1ull << 40));
  nextValue.data.uint64 = 1ull << 41;
  number(abi::kTypeUint64, static_cast<double>(1ull << 41));
  nextValue.data.integer = -5;
  number(abi::kTypeInt, -5);
  number(abi::kTypeInt32, -5);
  nextValue.data.uint32 = 4000000000u;
  number(abi::kTypeUint32, 4000000000.0);
  number(abi::kTypeProcRank, 4000000000.0);
  nextValue.data.uint16 = 65535;
  number(abi::kTypeUint16, 65535);

  char text[] = "a value";
  nextValue.type = abi::kTypeString;
  nextValue.data.string = text;
  CHECK(get(&client, 31, abi::kRankWildcard, "a key", false) == 0);
  Message* message = next();
  CHECK(getRank == abi::kRankWildcard);
  CHECK(!hasOptional);
  CHECK(message->content == Content::kText);
  CHECK(strcmp(message->text, "a value") == 0);
  CHECK(message->text != text);
  freeMessage(message);

  nextValue.type = abi::kTypeProc;
  CHECK(get(&client, 32, 0, "a key", false) == 0);
  message = next();
  CHECK(message->content == Content::kOther);
  CHECK(message->type == abi::kTypeProc);
  freeMessage(message);

  laterStatus = -46;
  CHECK(get(&client, 33, 0, "a key", false) == 0);
  expect(33, -46);
  nbAnswer = -46;
  CHECK(get(&client, 34, 0, "a key", false) == 0);
  expect(34, -46);
}

void onEventAnswered(abi::Status status, abi::Info*, size_t, abi::OpDone, void*, void* data) {
  CHECK(status == abi::kEventNoActionTaken);
  CHECK(data == &eventAnswers);
  eventAnswers++;
}

void event(abi::Status status, const abi::Proc* source, abi::Info* infos, size_t count) {
  handler(7, status, source, infos, count, nullptr, 0, onEventAnswered, &eventAnswers);
}

void expectEnd(abi::Status status, abi::Rank rank) {
  Message* message = next();
  CHECK(message->id == 0);
  CHECK(message->status == status);
  CHECK(message->rank == rank);
  freeMessage(message);
}

abi::Proc procOf(const char* nspace, abi::Rank rank) {
  abi::Proc proc = {};
  strcpy(proc.nspace, nspace);
  proc.rank = rank;
  return proc;
}

void events() {
  const abi::Proc server = procOf("job@0", 0);
  abi::Proc two = procOf("job", 2), other = procOf("other", 2);
  abi::Info infos[2] = {};
  strcpy(infos[0].key, "pmix.exit.code");
  infos[0].value.type = abi::kTypeInt;
  strcpy(infos[1].key, "pmix.evproc");
  infos[1].value.type = abi::kTypeProc;
  infos[1].value.data.proc = &two;
  event(abi::kErrProcAbortedBySig, &server, infos, 2);
  expectEnd(abi::kErrProcAbortedBySig, 2);
  // Nobody is named: the source is meant.
  event(abi::kErrProcAborted, &two, infos, 1);
  expectEnd(abi::kErrProcAborted, 2);
  abi::Proc several[] = {procOf("job", 0), procOf("other", 1), procOf("job", 5)};
  abi::DataArray array = {abi::kTypeProc, 3, several};
  strcpy(infos[0].key, "pmix.evaffected");
  infos[0].value.type = abi::kTypeDataArray;
  infos[0].value.data.array = &array;
  event(abi::kErrExitNonzeroTerm, &server, infos, 1);
  expectEnd(abi::kErrExitNonzeroTerm, 0);
  expectEnd(abi::kErrExitNonzeroTerm, 5);
  // Another job's process, and all processes of a job: neither is the end of a rank.
  infos[1].value.data.proc = &other;
  event(abi::kErrProcAbortedBySig, &server, infos + 1, 1);
  two.rank = abi::kRankWildcard;
  event(abi::kErrProcAbortedBySig, &two, nullptr, 0);
  event(abi::kErrProcAbortedBySig, nullptr, nullptr, 0);
  // The server is no process of the job, and its end is told all the same.
  event(abi::kErrLostConnection, &server, nullptr, 0);
  expectEnd(abi::kErrLostConnection, 0);
  CHECK(eventAnswers == 7);
}

void realLibrary() {
  abi::Functions functions;
  char text[512] = "";
  CHECK(!openLibrary("libno-such-library.so.77", &functions, text, sizeof text));
  CHECK(strstr(text, "libno-such-library.so.77") != nullptr);
  CHECK(!openLibrary("libc.so.6", &functions, text, sizeof text));
  CHECK(strcmp(text, "libc.so.6 has no PMIx_Init") == 0);
}

}  // namespace

int main() {
  testThread = pthread_self();
  starts();
  plainCalls();
  fences();
  gets();
  events();
  realLibrary();
  return check::finish("pmix client");
}
