/* Ends in the way that its argument names; also what WASI gives it. */
#include <errno.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static void __attribute__((noinline)) writes_beyond(volatile int *memory) { *memory = 1; }

static void leaves(void *in, void *inout, int *count, MPI_Datatype *type) {
  (void)in, (void)inout, (void)type;
  exit(8 + *count);
}

int main(int argc, char **argv) {
  const char *how = argc > 1 ? argv[1] : "";
  int rank;
  if (strcmp(how, "early") == 0) MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (strcmp(how, "unfinished") == 0) return 0;
  if (strcmp(how, "abort") == 0 && rank == 0) MPI_Abort(MPI_COMM_WORLD, 7);
  if (strcmp(how, "fatal") == 0) MPI_Send(&rank, 1, MPI_INT, 1000, 0, MPI_COMM_WORLD);
  if (strcmp(how, "trap") == 0) writes_beyond((volatile int *)0xfffffff0);
  if (strcmp(how, "operation") == 0) {
    MPI_Op op;
    MPI_Op_create(leaves, 1, &op);
    MPI_Allreduce(MPI_IN_PLACE, &rank, 1, MPI_INT, op, MPI_COMM_WORLD);
  }
  if (strcmp(how, "files") == 0) {
    char line[64] = "", folder[256];
    FILE *out = fopen("made-by-c.txt", "w");
    fprintf(out, "from %s\n", getenv("WHO") == NULL ? "nobody" : getenv("WHO"));
    fclose(out);
    FILE *in = fopen(argv[2], "r");
    fgets(line, sizeof line, in);
    fclose(in);
    printf("%s in %s\n", strtok(line, "\n"), getcwd(folder, sizeof folder));
  }
  if (strcmp(how, "processes") == 0) {
    struct rusage own, children;
    volatile double sum = 0;
    for (int i = 0; i < 20000000; i++) sum += i;
    int shell = system(NULL), ran = system("true"), error = errno;
    int told = getrusage(RUSAGE_SELF, &own), others = getrusage(RUSAGE_CHILDREN, &children), wrong = getrusage(7, &children);
    double seconds = own.ru_utime.tv_sec + 1e-6 * own.ru_utime.tv_usec;
    if (sum < 1) printf("nothing was computed, ");
    printf("shell %d, command %d %s, ", shell, ran, error == ENOSYS ? "ENOSYS" : "?");
    printf("usage %d %d %d, %s, %s, %ld of children\n", told, others, wrong, seconds > 0.005 && seconds < 60 ? "seconds" : "NO TIME",
           own.ru_maxrss >= 64 && own.ru_maxrss < 4194304 ? "memory" : "NO MEMORY", (long)children.ru_utime.tv_sec);
  }
  MPI_Finalize();
  return strcmp(how, "code") == 0 ? 5 : 0;
}
