// Entry of the addon: from JavaScript's arguments to blas.h. Matrices are places in one Float64Array, in doubles. The surface is described
// in tools/hpl/blas.ts.
#include <limits.h>

#include "blas.h"
#include "common/exports.h"
#include "common/napi-args.h"

namespace blas {
namespace {

using namespace common;

/// BLAS_ABI of tools/hpl/blas.ts.
constexpr int32_t kAbi = 1;
constexpr size_t kNameMax = 4096;
constexpr int kTextMax = 512;

napi_value jsOpen(napi_env env, napi_callback_info info) {
  Args<1> args(env, info);
  char name[kNameMax];
  const size_t length = args.text(0, "name", name, sizeof name);
  if (args.ok && (length == 0 || memchr(name, '\0', length) != nullptr)) args.refuse("name", "the name of a library");
  if (!args.ok) return nullptr;
  char text[kTextMax];
  if (!openLibrary(name, text, sizeof text)) return throwCode(env, "ERR_BLAS", text);
  napi_value answer = nullptr;
  napi_create_string_utf8(env, text, NAPI_AUTO_LENGTH, &answer);
  return answer;
}

/// A matrix: its place at argument `index`, its leading dimension behind it.
struct Matrix {
  double* data;
  int ld;
};

template <int N>
struct Matrices {
  Args<N> args;
  double* doubles;
  size_t length;

  Matrices(napi_env env, napi_callback_info info) : args(env, info) {
    doubles = static_cast<double*>(args.array(0, "memory", napi_float64_array, "a Float64Array", &length));
  }

  int dimension(int index, const char* name) { return static_cast<int>(args.whole(index, name, 0, INT_MAX)); }

  /// rows x columns doubles from its place on lie within the memory.
  Matrix matrix(int index, const char* name, int rows, int columns) {
    const size_t place = args.size(index, name);
    const int ld = static_cast<int>(args.whole(index + 1, "a leading dimension", 0, INT_MAX));
    if (!args.ok) return {nullptr, 0};
    if (ld < 1 || ld < rows) args.refuse("a leading dimension", "as large as the rows of its matrix");
    if (rows == 0 || columns == 0) return {doubles, ld};
    const size_t span = static_cast<size_t>(columns - 1) * static_cast<size_t>(ld) + static_cast<size_t>(rows);
    if (place > length || span > length - place) args.refuse(name, "a place within the memory, with all of its matrix");
    return {args.ok ? doubles + place : nullptr, ld};
  }

  bool ready() {
    if (!isOpen()) args.fail("ERR_BLAS", "no library is open: open() opens one");
    return args.ok;
  }
};

napi_value jsDgemm(napi_env env, napi_callback_info info) {
  Matrices<10> in(env, info);
  const int m = in.dimension(1, "m"), n = in.dimension(2, "n"), k = in.dimension(3, "k");
  const Matrix a = in.matrix(4, "a", m, k), b = in.matrix(6, "b", k, n), c = in.matrix(8, "c", m, n);
  if (in.ready() && m > 0 && n > 0 && k > 0) dgemm(m, n, k, a.data, a.ld, b.data, b.ld, c.data, c.ld);
  return nullptr;
}

napi_value jsDtrsm(napi_env env, napi_callback_info info) {
  Matrices<7> in(env, info);
  const int m = in.dimension(1, "m"), n = in.dimension(2, "n");
  const Matrix l = in.matrix(3, "l", m, m), b = in.matrix(5, "b", m, n);
  if (in.ready() && m > 0 && n > 0) dtrsm(m, n, l.data, l.ld, b.data, b.ld);
  return nullptr;
}

constexpr Export kExports[] = {{"open", jsOpen}, {"dgemm", jsDgemm}, {"dtrsm", jsDtrsm}};

}  // namespace
}  // namespace blas

NAPI_MODULE_INIT() {
  using namespace blas;
  setInt(env, exports, "abi", kAbi);
  if (!exportAll(env, exports, exportsOf(kExports))) return throwCode(env, "ERR_NATIVE_INIT", "exports refused");
  return exports;
}
