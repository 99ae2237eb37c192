// osu_allreduce, osu_alltoall, osu_bcast and osu_barrier for whichever MPI compiles it, as `multirail bench allreduce|…` runs them
// (tools/bench/coll.ts: change both): each call is timed by itself, with a barrier after it that is not; average, least and most of all
// ranks.  collectives TEST SIZE...
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LARGE_BYTES = 8192 };
static int rank, size;

static void call(const char *test, char *out, char *in, int bytes) {
  if (strcmp(test, "allreduce") == 0) MPI_Allreduce(out, in, bytes / (int)sizeof(float), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  else if (strcmp(test, "alltoall") == 0) MPI_Alltoall(out, bytes, MPI_CHAR, in, bytes, MPI_CHAR, MPI_COMM_WORLD);
  else if (strcmp(test, "bcast") == 0) MPI_Bcast(out, bytes, MPI_CHAR, 0, MPI_COMM_WORLD);
  else MPI_Barrier(MPI_COMM_WORLD);
}

static void run(const char *test, int bytes) {
  int iterations = bytes > LARGE_BYTES ? 100 : 1000, warmup = bytes > LARGE_BYTES ? 10 : 200;
  size_t room = (size_t)(bytes > 0 ? bytes : 1) * (strcmp(test, "alltoall") == 0 ? size : 1);
  char *out = malloc(room), *in = malloc(room);
  if (out == NULL || in == NULL) exit(1);
  memset(out, 0, room);
  memset(in, 0, room);
  MPI_Barrier(MPI_COMM_WORLD);
  double elapsed = 0;
  for (int i = 0; i < warmup + iterations; i++) {
    double start = MPI_Wtime();
    call(test, out, in, bytes);
    if (i >= warmup) elapsed += MPI_Wtime() - start;
    MPI_Barrier(MPI_COMM_WORLD);
  }
  double own = elapsed * 1e6 / iterations, sum, least, most;
  MPI_Reduce(&own, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  MPI_Reduce(&own, &least, 1, MPI_DOUBLE, MPI_MIN, 0, MPI_COMM_WORLD);
  MPI_Reduce(&own, &most, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("%d %.2f %.2f %.2f %d\n", bytes, sum / size, least, most, iterations);
  free(out);
  free(in);
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (argc < 3) return fprintf(stderr, "collectives TEST SIZE...\n"), 2;
  for (int i = 2; i < argc; i++) run(argv[1], atoi(argv[i]));
  MPI_Finalize();
  return 0;
}
