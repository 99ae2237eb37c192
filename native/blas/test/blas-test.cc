// The machine's BLAS by name: what cannot be loaded says why, and what can computes what a plain loop computes.
#include "../src/blas.h"

#include <math.h>

#include "../../test/check.h"

using namespace blas;

namespace {

constexpr int kM = 19, kN = 7, kK = 11, kLd = 23;

double small(check::Random& random) { return static_cast<double>(random.below(2001)) / 1000.0 - 1.0; }

void products(check::Random& random) {
  static double a[kLd * kK], b[kLd * kN], c[kLd * kN], wanted[kLd * kN];
  for (double& value : a) value = small(random);
  for (double& value : b) value = small(random);
  for (int i = 0; i < kLd * kN; i++) wanted[i] = c[i] = small(random);
  for (int j = 0; j < kN; j++)
    for (int i = 0; i < kM; i++)
      for (int p = 0; p < kK; p++) wanted[j * kLd + i] -= a[p * kLd + i] * b[j * kLd + p];
  dgemm(kM, kN, kK, a, kLd, b, kLd, c, kLd);
  for (int i = 0; i < kLd * kN; i++) CHECK(fabs(c[i] - wanted[i]) < 1e-12);
}

void solves(check::Random& random) {
  static double l[kLd * kM], b[kLd * kN], x[kLd * kN];
  // On and above the diagonal stands what must not be read.
  for (int j = 0; j < kM; j++)
    for (int i = 0; i < kLd; i++) l[j * kLd + i] = i > j ? small(random) / kM : 1e300;
  for (int i = 0; i < kLd * kN; i++) x[i] = b[i] = small(random);
  for (int j = 0; j < kN; j++)
    for (int i = 0; i < kM; i++)
      for (int p = 0; p < i; p++) x[j * kLd + i] -= l[p * kLd + i] * x[j * kLd + p];
  dtrsm(kM, kN, l, kLd, b, kLd);
  for (int i = 0; i < kLd * kN; i++) CHECK(fabs(b[i] - x[i]) < 1e-12);
}

}  // namespace

int main() {
  char text[512] = "";
  CHECK(!openLibrary("libno-such-library.so.77", text, sizeof text));
  CHECK(strstr(text, "libno-such-library.so.77") != nullptr);
  CHECK(!isOpen());
  // A library, and no BLAS.
  CHECK(!openLibrary("libc.so.6", text, sizeof text));
  CHECK(strstr(text, "dgemm_") != nullptr);
  CHECK(!isOpen());
  setenv("OPENBLAS_NUM_THREADS", "1", 0);
  if (openLibrary("libopenblas.so.0", text, sizeof text)) {
    printf("blas: %s\n", text);
    CHECK(isOpen());
    CHECK(openLibrary("libopenblas.so.0", text, sizeof text));
    check::Random random{0x9e3779b97f4a7c15ull};
    products(random);
    solves(random);
  } else {
    printf("blas: skipped the products: %s\n", text);
  }
  return check::finish("blas");
}
