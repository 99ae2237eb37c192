// Checksums of the surface: from JavaScript's arguments to crc32c.h, copy-crc.h and frames.h and back.
#include "../env.h"
#include "common/napi-args.h"
#include "copy-crc.h"
#include "crc32c.h"
#include "frames.h"

namespace multirail {
namespace {

napi_value jsCrc32c(napi_env env, napi_callback_info info) {
  Args<4> args(env, info);
  const Bytes bytes = args.slice(0);
  const auto crc = static_cast<uint32_t>(args.whole(3, "crc", 0, 4294967295.0));
  return args.ok ? answerUint(env, crc32c(crc, bytes.data, bytes.length)) : nullptr;
}

napi_value jsCopyCrc32c(napi_env env, napi_callback_info info) {
  Args<3> args(env, info);
  const Bytes target = args.bytes(0), source = args.bytes(1);
  const auto crc = static_cast<uint32_t>(args.whole(2, "crc", 0, 4294967295.0));
  if (args.ok && target.length != source.length) args.refuse("target", "as long as source");
  const auto to = reinterpret_cast<uintptr_t>(target.data), from = reinterpret_cast<uintptr_t>(source.data);
  if (args.ok && source.length > 0 && (to < from ? from - to : to - from) < source.length) args.refuse("target", "apart from source");
  return args.ok ? answerUint(env, copyCrc32c(crc, target.data, source.data, source.length)) : nullptr;
}

/// bytes[from, to) where the three stand at the beginning of the arguments.
template <int N>
Bytes range(Args<N>& args, size_t* from, size_t* to) {
  const Bytes bytes = args.bytes(0);
  *from = args.size(1, "from");
  *to = args.size(2, "to");
  if (args.ok && (*from > *to || *to > bytes.length)) args.refuse("from and to", "in order and within the bytes");
  return bytes;
}

napi_value jsFrameSeal(napi_env env, napi_callback_info info) {
  Args<4> args(env, info);
  size_t from, to;
  const Bytes bytes = range(args, &from, &to);
  const size_t inlinePayloadMax = args.size(3, "inlinePayloadMax");
  if (args.ok && !frameSeal(bytes.data, from, to, inlinePayloadMax)) args.refuse("bytes", "whole frames from end to end");
  return nullptr;
}

napi_value jsFrameScan(napi_env env, napi_callback_info info) {
  Args<3> args(env, info);
  size_t from, to;
  const Bytes bytes = range(args, &from, &to);
  return args.ok ? answerNumber(env, static_cast<double>(frameScan(bytes.data, from, to))) : nullptr;
}

constexpr Export kExports[] = {{"crc32c", jsCrc32c}, {"copyCrc32c", jsCopyCrc32c}, {"frameSeal", jsFrameSeal}, {"frameScan", jsFrameScan}};

}  // namespace

Exports crcExports() { return exportsOf(kExports); }

}  // namespace multirail
