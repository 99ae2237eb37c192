// Open MPI's side of bench/peers/ulfm.mjs: how long agreement and shrinking take before and after the death of a rank, and how long it
// takes survivors to learn of it. Needs a file of a page that all ranks map: ulfm FILE ITERATIONS. Rank 0 prints one line of JSON; times are
// microseconds, by the clock of the machine. After the tutorial of ulfm.org; the calls are those of the ULFM proposal.
#define _GNU_SOURCE
#include <fcntl.h>
#include <mpi.h>
#include <mpi-ext.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static double now_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1e6 + t.tv_nsec * 1e-3;
}

static int ascending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double median(double *values, int count) {
  qsort(values, count, sizeof *values, ascending);
  return values[count / 2];
}

int main(int argc, char **argv) {
  int rank, size, flag;
  if (argc < 3) return fprintf(stderr, "usage: ulfm FILE ITERATIONS\n"), 2;
  int iterations = atoi(argv[2]), file = open(argv[1], O_RDWR);
  volatile double *shared = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (iterations < 1 || shared == MAP_FAILED) return perror(argv[1]), 2;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  double *times = malloc(iterations * sizeof *times);

  for (int i = 0; i < iterations; i++) {
    MPI_Barrier(MPI_COMM_WORLD);
    double from = now_us();
    flag = 1;
    MPIX_Comm_agree(MPI_COMM_WORLD, &flag);
    times[i] = now_us() - from;
  }
  double agree = median(times, iterations);
  for (int i = 0; i < iterations; i++) {
    MPI_Barrier(MPI_COMM_WORLD);
    double from = now_us();
    MPI_Barrier(MPI_COMM_WORLD);
    times[i] = now_us() - from;
  }
  double barrier = median(times, iterations);
  int shrinks = iterations < 50 ? iterations : 50;
  for (int i = 0; i < shrinks; i++) {
    MPI_Comm smaller;
    MPI_Barrier(MPI_COMM_WORLD);
    double from = now_us();
    MPIX_Comm_shrink(MPI_COMM_WORLD, &smaller);
    times[i] = now_us() - from;
    MPI_Comm_free(&smaller);
  }
  double shrink = median(times, shrinks);

  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == size - 1) {
    usleep(20000);
    shared[0] = now_us();
    raise(SIGKILL);
  }
  while (MPI_Barrier(MPI_COMM_WORLD) == MPI_SUCCESS) continue;
  double learned = now_us() - shared[0];
  MPIX_Comm_failure_ack(MPI_COMM_WORLD);
  double from = now_us();
  flag = 1;
  MPIX_Comm_agree(MPI_COMM_WORLD, &flag);
  double first_agree = now_us() - from;
  MPI_Comm survivors;
  from = now_us();
  MPIX_Comm_shrink(MPI_COMM_WORLD, &survivors);
  double first_shrink = now_us() - from, shrunk = now_us() - shared[0], worst = 0;
  MPI_Comm_set_errhandler(survivors, MPI_ERRORS_RETURN);
  MPI_Reduce(&learned, &worst, 1, MPI_DOUBLE, MPI_MAX, 0, survivors);
  if (rank == 0)
    printf("{\"ranks\":%d,\"barrierUs\":%.2f,\"agreeUs\":%.2f,\"shrinkUs\":%.2f,\"learnedUs\":%.0f,\"firstAgreeUs\":%.1f,\"firstShrinkUs\":%.1f,\"killToShrunkUs\":%.0f}\n",
           size, barrier, agree, shrink, worst, first_agree, first_shrink, shrunk);
  fflush(stdout);
  MPI_Barrier(survivors);
  // MPI_Finalize() of a world with a dead rank may wait for it.
  _exit(0);
}
