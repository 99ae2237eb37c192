// See blas.h. The Fortran names are what every BLAS has. Their character arguments have their lengths behind the others, as gfortran
// passes them; libraries in C do not look at them.
#include "blas.h"

#include <pthread.h>
#include <stddef.h>
#include <stdio.h>

#include "common/dl.h"

namespace blas {
namespace {

using Dgemm = void (*)(const char*, const char*, const int*, const int*, const int*, const double*, const double*, const int*,
                       const double*, const int*, const double*, double*, const int*, size_t, size_t);
using Dtrsm = void (*)(const char*, const char*, const char*, const char*, const int*, const int*, const double*, const double*, const int*,
                       double*, const int*, size_t, size_t, size_t, size_t);
using Words = const char* (*)();

struct Routines {
  Dgemm dgemm;
  Dtrsm dtrsm;
};

/// Read by every thread; a set is never changed once it is published, nor freed.
Routines* current = nullptr;
pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;
/// As many libraries as one process can ever use.
constexpr int kSetsMax = 8;
Routines sets[kSetsMax];
int setCount = 0;

bool find(const char* name, char* text, int capacity) {
  void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* why = dlerror();
    snprintf(text, capacity, "%s", why == nullptr ? "it cannot be loaded" : why);
    return false;
  }
  const Routines found = {reinterpret_cast<Dgemm>(dlsym(library, "dgemm_")), reinterpret_cast<Dtrsm>(dlsym(library, "dtrsm_"))};
  if (found.dgemm == nullptr || found.dtrsm == nullptr) {
    snprintf(text, capacity, "%s has no %s", name, found.dgemm == nullptr ? "dgemm_" : "dtrsm_");
    dlclose(library);
    return false;
  }
  int at = 0;
  while (at < setCount && (sets[at].dgemm != found.dgemm || sets[at].dtrsm != found.dtrsm)) at++;
  if (at == kSetsMax) {
    snprintf(text, capacity, "%d other libraries are loaded already", kSetsMax);
    dlclose(library);
    return false;
  }
  if (at == setCount) sets[setCount++] = found;
  __atomic_store_n(&current, &sets[at], __ATOMIC_RELEASE);
  const auto config = reinterpret_cast<Words>(dlsym(library, "openblas_get_config"));
  const auto core = reinterpret_cast<Words>(dlsym(library, "openblas_get_corename"));
  snprintf(text, capacity, "%s%s%s", config == nullptr ? "" : config(), config != nullptr && core != nullptr ? " for " : "",
           core == nullptr ? "" : core());
  return true;
}

}  // namespace

bool openLibrary(const char* name, char* text, int capacity) {
  pthread_mutex_lock(&opening);
  const bool opened = find(name, text, capacity);
  pthread_mutex_unlock(&opening);
  return opened;
}

bool isOpen() { return __atomic_load_n(&current, __ATOMIC_ACQUIRE) != nullptr; }

void dgemm(int m, int n, int k, const double* a, int lda, const double* b, int ldb, double* c, int ldc) {
  const double minusOne = -1, one = 1;
  __atomic_load_n(&current, __ATOMIC_ACQUIRE)->dgemm("N", "N", &m, &n, &k, &minusOne, a, &lda, b, &ldb, &one, c, &ldc, 1, 1);
}

void dtrsm(int m, int n, const double* l, int ldl, double* b, int ldb) {
  const double one = 1;
  __atomic_load_n(&current, __ATOMIC_ACQUIRE)->dtrsm("L", "L", "N", "U", &m, &n, &one, l, &ldl, b, &ldb, 1, 1, 1, 1);
}

}  // namespace blas
