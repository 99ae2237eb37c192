// The machine's part of the surface: processors.
#include "../env.h"
#include "affinity.h"
#include "common/napi-args.h"

namespace multirail {
namespace {

napi_value jsSetAffinity(napi_env env, napi_callback_info info) {
  Args<1> args(env, info);
  const int cpu = static_cast<int>(args.whole(0, "cpu", INT32_MIN, INT32_MAX));
  return args.ok ? answerInt(env, setAffinity(cpu)) : nullptr;
}

napi_value jsCurrentCpu(napi_env env, napi_callback_info) { return answerInt(env, currentCpu()); }

napi_value jsYieldCpu(napi_env, napi_callback_info) {
  yieldCpu();
  return nullptr;
}

constexpr Export kExports[] = {{"setAffinity", jsSetAffinity}, {"currentCpu", jsCurrentCpu}, {"yieldCpu", jsYieldCpu}};

}  // namespace

Exports osExports() { return exportsOf(kExports); }

}  // namespace multirail
