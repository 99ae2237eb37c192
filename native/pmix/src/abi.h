// The part of the PMIx ABI that this addon uses, written out so that nothing of PMIx is needed to build it: PMIx Standard 4, as libpmix.so.2
// of OpenPMIx 4 and 5 has it. Names are those of the standard without their prefix; test/abi-test.cc compares all of this with <pmix.h>.
#pragma once
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

namespace pmix {
namespace abi {

constexpr size_t kNspaceMax = 255;
constexpr size_t kKeyMax = 511;

using Status = int;
using Rank = uint32_t;
using DataType = uint16_t;
using Scope = uint8_t;

constexpr Rank kRankWildcard = UINT32_MAX - 1;

constexpr Status kSuccess = 0;
constexpr Status kErrLostConnection = -61;
constexpr Status kOperationSucceeded = -157;
constexpr Status kErrNoMem = -32;

/// Events about the end of a process. The first two are what PMIx 3 says.
constexpr Status kErrProcAborted = -7;
constexpr Status kErrProcRequestedAbort = -8;
constexpr Status kErrProcTermWoSync = -200;
constexpr Status kEventProcTerminated = -201;
constexpr Status kErrProcKilledByCmd = -400;
constexpr Status kErrProcFailedToStart = -401;
constexpr Status kErrProcAbortedBySig = -402;
constexpr Status kErrProcSensorBoundExceeded = -403;
constexpr Status kErrExitNonzeroTerm = -404;
/// What a handler answers when others are still to be asked.
constexpr Status kEventNoActionTaken = -331;

constexpr Scope kGlobal = 3;

constexpr DataType kTypeBool = 1;
constexpr DataType kTypeString = 3;
constexpr DataType kTypeSize = 4;
constexpr DataType kTypeInt = 6;
constexpr DataType kTypeInt32 = 9;
constexpr DataType kTypeUint16 = 13;
constexpr DataType kTypeUint32 = 14;
constexpr DataType kTypeUint64 = 15;
constexpr DataType kTypeProc = 22;
constexpr DataType kTypeDataArray = 39;
constexpr DataType kTypeProcRank = 40;

constexpr const char* kCollectData = "pmix.collect";
constexpr const char* kOptional = "pmix.optional";
constexpr const char* kEventAffectedProc = "pmix.evproc";
constexpr const char* kEventAffectedProcs = "pmix.evaffected";

struct Proc {
  char nspace[kNspaceMax + 1];
  Rank rank;
};

struct DataArray {
  DataType type;
  size_t size;
  void* array;
};

/// The largest member of the union, which decides its size.
struct Envar {
  char* name;
  char* value;
  char separator;
};

struct Value {
  DataType type;
  union {
    bool flag;
    char* string;
    size_t size;
    int integer;
    int32_t int32;
    uint16_t uint16;
    uint32_t uint32;
    uint64_t uint64;
    Rank rank;
    Proc* proc;
    DataArray* array;
    Envar envar;
  } data;
};

struct Info {
  char key[kKeyMax + 1];
  uint32_t flags;
  Value value;
};

extern "C" {
using OpDone = void (*)(Status status, void* data);
using ValueDone = void (*)(Status status, Value* value, void* data);
using EventDone = void (*)(Status status, Info* results, size_t resultCount, OpDone done, void* doneData, void* data);
using EventHandler = void (*)(size_t registration, Status status, const Proc* source, Info* infos, size_t infoCount, Info* results,
                              size_t resultCount, EventDone done, void* data);
using HandlerRegistered = void (*)(Status status, size_t registration, void* data);
}

/// What is called of the library.
struct Functions {
  Status (*init)(Proc* self, Info* infos, size_t infoCount);
  Status (*finalize)(const Info* infos, size_t infoCount);
  Status (*abort)(int status, const char* message, Proc* procs, size_t procCount);
  Status (*put)(Scope scope, const char* key, Value* value);
  Status (*commit)();
  Status (*fenceNb)(const Proc* procs, size_t procCount, const Info* infos, size_t infoCount, OpDone done, void* data);
  Status (*getNb)(const Proc* proc, const char* key, const Info* infos, size_t infoCount, ValueDone done, void* data);
  Status (*registerEventHandler)(Status* codes, size_t codeCount, Info* infos, size_t infoCount, EventHandler handler,
                                 HandlerRegistered done, void* data);
  const char* (*errorString)(Status status);
  const char* (*getVersion)();
};

}  // namespace abi
}  // namespace pmix
