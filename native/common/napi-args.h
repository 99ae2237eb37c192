// Reading of arguments and making of answers and errors: all that stands between JavaScript values and the plain functions below.
// A reader that finds a bad value throws a TypeError with the code ERR_INVALID_ARG and turns `ok` to false; the caller looks at `ok`
// once, before it does anything. The readers never run JavaScript, except `property`, so pointers into buffers stay good.
#pragma once
#include <errno.h>
#include <node_api.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>

#include "errno-name.h"

// Of libuv, with an ABI that is fixed within libuv 1; Node exports it.
extern "C" char* uv_strerror_r(int err, char* out, size_t capacity);

namespace common {

/// Bytes of a typed array. `data` is null when the length is 0.
struct Bytes {
  uint8_t* data;
  size_t length;
};

inline napi_value throwArgument(napi_env env, const char* what) {
  napi_throw_type_error(env, "ERR_INVALID_ARG", what);
  return nullptr;
}

inline napi_value throwCode(napi_env env, const char* code, const char* what) {
  napi_throw_error(env, code, what);
  return nullptr;
}

/// Throws an Error with `code` ('EADDRINUSE'), `errno` (negative, as Node gives it) and `syscall`. `failure` is a negative errno.
inline napi_value throwSystem(napi_env env, int failure, const char* syscall) {
  const char* code = errnoName(-failure);
  char reason[128];
  char message[256];
  uv_strerror_r(failure, reason, sizeof reason);
  snprintf(message, sizeof message, "%s %s: %s", syscall, code, reason);
  napi_value jsCode, jsMessage, jsSyscall, jsErrno, error;
  if (napi_create_string_utf8(env, code, NAPI_AUTO_LENGTH, &jsCode) != napi_ok ||
      napi_create_string_utf8(env, message, NAPI_AUTO_LENGTH, &jsMessage) != napi_ok ||
      napi_create_string_utf8(env, syscall, NAPI_AUTO_LENGTH, &jsSyscall) != napi_ok ||
      napi_create_int32(env, failure, &jsErrno) != napi_ok || napi_create_error(env, jsCode, jsMessage, &error) != napi_ok) {
    return nullptr;
  }
  napi_set_named_property(env, error, "syscall", jsSyscall);
  napi_set_named_property(env, error, "errno", jsErrno);
  napi_throw(env, error);
  return nullptr;
}

inline napi_value answerInt(napi_env env, int32_t value) {
  napi_value answer = nullptr;
  napi_create_int32(env, value, &answer);
  return answer;
}

inline napi_value answerUint(napi_env env, uint32_t value) {
  napi_value answer = nullptr;
  napi_create_uint32(env, value, &answer);
  return answer;
}

inline napi_value answerNumber(napi_env env, double value) {
  napi_value answer = nullptr;
  napi_create_double(env, value, &answer);
  return answer;
}

inline napi_value answerBool(napi_env env, bool value) {
  napi_value answer = nullptr;
  napi_get_boolean(env, value, &answer);
  return answer;
}

/// A count or a negative errno; the kernel moves less than 2 GiB per call.
inline napi_value answerCount(napi_env env, ssize_t count) { return answerInt(env, static_cast<int32_t>(count)); }

/// The answer of a cold call: a value, or the error thrown.
inline napi_value answerOrThrow(napi_env env, int value, const char* syscall) {
  return value < 0 ? throwSystem(env, value, syscall) : answerInt(env, value);
}

inline void setInt(napi_env env, napi_value object, const char* name, int32_t value) {
  napi_set_named_property(env, object, name, answerInt(env, value));
}

inline void setNumber(napi_env env, napi_value object, const char* name, double value) {
  napi_set_named_property(env, object, name, answerNumber(env, value));
}

inline void setBool(napi_env env, napi_value object, const char* name, bool value) {
  napi_set_named_property(env, object, name, answerBool(env, value));
}

inline void setText(napi_env env, napi_value object, const char* name, const char* text, size_t length = NAPI_AUTO_LENGTH) {
  napi_value value = nullptr;
  napi_create_string_utf8(env, text, length, &value);
  napi_set_named_property(env, object, name, value);
}

/// The first N arguments of a call; those that were not given are undefined.
template <int N>
struct Args {
  napi_env env;
  bool ok = true;
  napi_value at[N];

  Args(napi_env callEnv, napi_callback_info info) : env(callEnv) {
    size_t count = N;
    if (napi_get_cb_info(env, info, &count, at, nullptr, nullptr) != napi_ok) ok = false;
  }

  void refuse(const char* name, const char* wanted) {
    if (!ok) return;
    ok = false;
    char message[192];
    snprintf(message, sizeof message, "%s must be %s", name, wanted);
    throwArgument(env, message);
  }

  /// For what is wrong with more than one argument.
  void fail(const char* code, const char* what) {
    if (!ok) return;
    ok = false;
    throwCode(env, code, what);
  }

  /// A whole number in [low, high]. Fractions, NaN and other types are refused.
  int64_t whole(int index, const char* name, double low, double high) {
    double value;
    if (napi_get_value_double(env, at[index], &value) != napi_ok || !(value >= low && value <= high) ||
        static_cast<double>(static_cast<int64_t>(value)) != value) {
      char wanted[96];
      snprintf(wanted, sizeof wanted, "a whole number from %.0f to %.0f", low, high);
      refuse(name, wanted);
      return 0;
    }
    return static_cast<int64_t>(value);
  }

  /// Any int32: the kernel answers EBADF for what is no descriptor.
  int fd(int index, const char* name = "fd") { return static_cast<int>(whole(index, name, INT32_MIN, INT32_MAX)); }

  size_t size(int index, const char* name) { return static_cast<size_t>(whole(index, name, 0, 9007199254740991.0)); }

  double number(int index, const char* name) {
    double value = 0;
    if (napi_get_value_double(env, at[index], &value) != napi_ok) refuse(name, "a number");
    return value;
  }

  bool boolean(int index, const char* name) {
    bool value = false;
    if (napi_get_value_bool(env, at[index], &value) != napi_ok) refuse(name, "a boolean");
    return value;
  }

  /// A typed array of one kind. `length` is in elements.
  void* array(int index, const char* name, napi_typedarray_type type, const char* wanted, size_t* length) {
    napi_typedarray_type found;
    void* data = nullptr;
    *length = 0;
    if (napi_get_typedarray_info(env, at[index], &found, length, &data, nullptr, nullptr) != napi_ok || found != type) {
      *length = 0;
      refuse(name, wanted);
      return nullptr;
    }
    return data;
  }

  Bytes bytes(int index, const char* name = "bytes") {
    Bytes bytes;
    bytes.data = static_cast<uint8_t*>(array(index, name, napi_uint8_array, "a Uint8Array", &bytes.length));
    return bytes;
  }

  /// bytes[offset, offset + length), where the three stand one after the other.
  Bytes slice(int index) {
    const Bytes whole = bytes(index);
    const size_t offset = size(index + 1, "offset");
    const size_t length = size(index + 2, "length");
    if (ok && (offset > whole.length || length > whole.length - offset)) refuse("offset and length", "within the bytes");
    return ok ? Bytes{whole.data + offset, length} : Bytes{nullptr, 0};
  }

  /// A property of an object, and what it is: undefined where there is none. A getter may throw; then its error stays.
  napi_value property(napi_value object, const char* name, napi_valuetype* type) {
    napi_value value = nullptr;
    *type = napi_undefined;
    if (ok && (napi_get_named_property(env, object, name, &value) != napi_ok || napi_typeof(env, value, type) != napi_ok)) ok = false;
    return value;
  }

  /// UTF-8 into `out` of `capacity` bytes, which may hold NULs and is closed by one; returns the bytes without the last NUL.
  size_t text(int index, const char* name, char* out, size_t capacity) {
    size_t length = 0;
    out[0] = '\0';
    if (napi_get_value_string_utf8(env, at[index], nullptr, 0, &length) != napi_ok || length >= capacity) {
      char wanted[48];
      snprintf(wanted, sizeof wanted, "a string of at most %zu bytes", capacity - 1);
      refuse(name, wanted);
      return 0;
    }
    napi_get_value_string_utf8(env, at[index], out, capacity, &length);
    return length;
  }
};

}  // namespace common
