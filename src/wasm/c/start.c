/* Linked into every program by `multirail cc`: relative paths go from the directory that the rank was started in, and mpi.h's host
 * knows by the export what it can rely on. Then what the C library of WASI lacks, and stdlib.h and sys/resource.h beside this file declare. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <wasi/api.h>

#include "stdlib.h"
#include "sys/resource.h"

/* The first function in the table of functions, whose number is that of MPI_COMM_DUP_FN: no function of the program has it. */
__attribute__((export_name("multirail_slot"))) void multirail_slot(void) {}
static void (*volatile multirail_first)(void) = multirail_slot;
__attribute__((export_name("multirail_abi"))) int multirail_abi(void) { return multirail_first != NULL; }

static void long_doubles(int operation, int is_complex, const long double *in, long double *inout, int count);

/* Functions that the host calls are handed over as pointers. Exports would not do: around those of a command, some linkers put a call of all
 * constructors and destructors of the program, each time. */
__attribute__((import_module("mpi"), import_name("multirail_functions"))) void
multirail_functions(void *(*)(size_t), void (*)(void *), void (*)(int, int, const long double *, long double *, int));

__attribute__((constructor)) static void multirail_start(void) {
  const char *directory = getenv("MULTIRAIL_CWD");
  multirail_functions(malloc, free, long_doubles);
  if (directory != NULL) chdir(directory);
}

/* Reductions of numbers that JavaScript does not have: `inout = in operation inout`. */
static void long_doubles(int operation, int is_complex, const long double *in, long double *inout, int count) {
  if (is_complex && operation == 1) {
    for (int i = 0; i < 2 * count; i += 2) {
      long double a = in[i], b = in[i + 1], c = inout[i], d = inout[i + 1];
      inout[i] = a * c - b * d;
      inout[i + 1] = a * d + b * c;
    }
    return;
  }
  if (is_complex) count *= 2;
  for (int i = 0; i < count; i++) {
    long double a = in[i], b = inout[i];
    switch (operation) {
    case 0: inout[i] = a + b; break;
    case 1: inout[i] = a * b; break;
    case 2: inout[i] = a > b ? a : b; break;
    case 3: inout[i] = a < b ? a : b; break;
    case 4: inout[i] = a != 0 && b != 0; break;
    case 5: inout[i] = a != 0 || b != 0; break;
    default: inout[i] = (a != 0) != (b != 0);
    }
  }
}

int system(const char *command) {
  if (command == NULL) return 0;
  errno = ENOSYS;
  return -1;
}

int getrusage(int who, struct rusage *usage) {
  memset(usage, 0, sizeof *usage);
  if (who == RUSAGE_CHILDREN) return 0;
  __wasi_timestamp_t ns = 0;
  __wasi_errno_t error = who == RUSAGE_SELF ? __wasi_clock_time_get(__WASI_CLOCKID_PROCESS_CPUTIME_ID, 1000, &ns) : __WASI_ERRNO_INVAL;
  if (error != 0) {
    errno = error;
    return -1;
  }
  usage->ru_utime.tv_sec = ns / 1000000000;
  usage->ru_utime.tv_usec = ns % 1000000000 / 1000;
  usage->ru_maxrss = __builtin_wasm_memory_size(0) * 64;
  return 0;
}

#ifdef MULTIRAIL_NO_EXCEPTIONS
/* The C++ library of this compiler has no exceptions. What only might throw works; what throws ends here, with the name of the type. */
void *__cxa_allocate_exception(size_t bytes) { return malloc(bytes); }
void __cxa_free_exception(void *exception) { free(exception); }
void *__cxa_begin_catch(void *exception) { return exception; }
void __cxa_end_catch(void) {}
_Noreturn void __cxa_rethrow(void) { abort(); }
_Noreturn void __cxa_throw(void *exception, const char **type, void *(*destroy)(void *)) {
  (void)exception, (void)destroy;
  fprintf(stderr, "a C++ exception of the type %s was thrown, and this compiler's library has none\n", type[1]);
  abort();
}
#endif
