// The structures and constants of abi.h against the headers of PMIx (Debian: libpmix-dev). They are asked for as this is compiled, so it is
// only compiled where they are.
#include "../src/abi.h"

#include <pmix.h>

#include <type_traits>

#include "../../test/check.h"

using namespace pmix;

namespace {

template <typename Ours, typename Theirs>
constexpr bool kSameSize = sizeof(Ours) == sizeof(Theirs) && alignof(Ours) == alignof(Theirs);

#define SAME_PLACE(ours, mine, theirs, its) CHECK(offsetof(ours, mine) == offsetof(theirs, its))

void structures() {
  CHECK((kSameSize<abi::Proc, pmix_proc_t>));
  SAME_PLACE(abi::Proc, rank, pmix_proc_t, rank);
  CHECK((kSameSize<abi::DataArray, pmix_data_array_t>));
  SAME_PLACE(abi::DataArray, size, pmix_data_array_t, size);
  SAME_PLACE(abi::DataArray, array, pmix_data_array_t, array);
  CHECK((kSameSize<abi::Envar, pmix_envar_t>));
  CHECK((kSameSize<abi::Value, pmix_value_t>));
  SAME_PLACE(abi::Value, data, pmix_value_t, data);
  CHECK((kSameSize<abi::Info, pmix_info_t>));
  SAME_PLACE(abi::Info, flags, pmix_info_t, flags);
  SAME_PLACE(abi::Info, value, pmix_info_t, value);
  CHECK((std::is_same<abi::Status, pmix_status_t>::value));
  CHECK((std::is_same<abi::Rank, pmix_rank_t>::value));
  CHECK((std::is_same<abi::DataType, pmix_data_type_t>::value));
  CHECK((std::is_same<abi::Scope, pmix_scope_t>::value));
}

/// Ours is a number, theirs a macro: both are read, so neither can be left out.
#define SAME(ours, theirs) CHECK(static_cast<long long>(abi::ours) == static_cast<long long>(theirs))

void constants() {
  SAME(kNspaceMax, PMIX_MAX_NSLEN);
  SAME(kKeyMax, PMIX_MAX_KEYLEN);
  CHECK(abi::kRankWildcard == static_cast<pmix_rank_t>(PMIX_RANK_WILDCARD));
  SAME(kSuccess, PMIX_SUCCESS);
  SAME(kErrLostConnection, PMIX_ERR_LOST_CONNECTION);
  SAME(kOperationSucceeded, PMIX_OPERATION_SUCCEEDED);
  SAME(kErrNoMem, PMIX_ERR_NOMEM);
  SAME(kErrProcAborted, PMIX_ERR_PROC_ABORTED);
  SAME(kErrProcRequestedAbort, PMIX_ERR_PROC_REQUESTED_ABORT);
  SAME(kErrProcTermWoSync, PMIX_ERR_PROC_TERM_WO_SYNC);
  SAME(kEventProcTerminated, PMIX_EVENT_PROC_TERMINATED);
  SAME(kErrProcKilledByCmd, PMIX_ERR_PROC_KILLED_BY_CMD);
  SAME(kErrProcFailedToStart, PMIX_ERR_PROC_FAILED_TO_START);
  SAME(kErrProcAbortedBySig, PMIX_ERR_PROC_ABORTED_BY_SIG);
  SAME(kErrProcSensorBoundExceeded, PMIX_ERR_PROC_SENSOR_BOUND_EXCEEDED);
  SAME(kErrExitNonzeroTerm, PMIX_ERR_EXIT_NONZERO_TERM);
  SAME(kEventNoActionTaken, PMIX_EVENT_NO_ACTION_TAKEN);
  SAME(kGlobal, PMIX_GLOBAL);
  SAME(kTypeBool, PMIX_BOOL);
  SAME(kTypeString, PMIX_STRING);
  SAME(kTypeSize, PMIX_SIZE);
  SAME(kTypeInt, PMIX_INT);
  SAME(kTypeInt32, PMIX_INT32);
  SAME(kTypeUint16, PMIX_UINT16);
  SAME(kTypeUint32, PMIX_UINT32);
  SAME(kTypeUint64, PMIX_UINT64);
  SAME(kTypeProc, PMIX_PROC);
  SAME(kTypeDataArray, PMIX_DATA_ARRAY);
  SAME(kTypeProcRank, PMIX_PROC_RANK);
  CHECK(strcmp(abi::kCollectData, PMIX_COLLECT_DATA) == 0);
  CHECK(strcmp(abi::kOptional, PMIX_OPTIONAL) == 0);
  CHECK(strcmp(abi::kEventAffectedProc, PMIX_EVENT_AFFECTED_PROC) == 0);
  CHECK(strcmp(abi::kEventAffectedProcs, PMIX_EVENT_AFFECTED_PROCS) == 0);
}

/// The shape of a function: how many arguments of which sizes, and the size of what it answers. Ours have types of our own.
template <size_t... sizes>
struct Numbers {};
template <typename Function>
struct Shape;
template <typename Answer, typename... Arguments>
struct Shape<Answer (*)(Arguments...)> {
  using type = Numbers<sizeof(Answer), sizeof(Arguments)...>;
};
template <typename Ours, typename Theirs>
constexpr bool kSameShape = std::is_same<typename Shape<Ours>::type, typename Shape<Theirs>::type>::value;

void functions() {
  CHECK((kSameShape<decltype(abi::Functions::init), decltype(&PMIx_Init)>));
  CHECK((kSameShape<decltype(abi::Functions::finalize), decltype(&PMIx_Finalize)>));
  CHECK((kSameShape<decltype(abi::Functions::abort), decltype(&PMIx_Abort)>));
  CHECK((kSameShape<decltype(abi::Functions::put), decltype(&PMIx_Put)>));
  CHECK((kSameShape<decltype(abi::Functions::commit), decltype(&PMIx_Commit)>));
  CHECK((kSameShape<decltype(abi::Functions::fenceNb), decltype(&PMIx_Fence_nb)>));
  CHECK((kSameShape<decltype(abi::Functions::getNb), decltype(&PMIx_Get_nb)>));
  CHECK((kSameShape<decltype(abi::Functions::registerEventHandler), decltype(&PMIx_Register_event_handler)>));
  CHECK((kSameShape<decltype(abi::Functions::errorString), decltype(&PMIx_Error_string)>));
  CHECK((kSameShape<decltype(abi::Functions::getVersion), decltype(&PMIx_Get_version)>));
}

}  // namespace

int main() {
  structures();
  constants();
  functions();
  return check::finish("abi");
}
