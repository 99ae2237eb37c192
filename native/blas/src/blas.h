// The machine's BLAS, if it has one: loaded by name when somebody asks, never linked. Two routines of it, in the forms that a factorisation
// needs, over matrices by columns. No Node headers.
#pragma once
#include <stdint.h>

namespace blas {

/// Loads a library (`libopenblas.so.0`, or a path) and finds its routines in it: true, and from then on all threads use it. The last one that
/// was loaded is used. `text` gets what it says of itself ("" when it says nothing), or why it cannot be used.
bool openLibrary(const char* name, char* text, int capacity);

/// Whether a library is loaded.
bool isOpen();

/// C := C - A B; A is m x k, B is k x n.
void dgemm(int m, int n, int k, const double* a, int lda, const double* b, int ldb, double* c, int ldc);

/// B := L^-1 B; L is the unit lower triangle of m rows, B is m x n.
void dtrsm(int m, int n, const double* l, int ldl, double* b, int ldb);

}  // namespace blas
