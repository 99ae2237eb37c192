/*
 * A heat plate in strips of rows. When a rank dies the others make a communicator without it (User-Level Failure Mitigation), cut the plate anew
 * and go on from the last plate that all of them had kept a copy of:
 *
 *   npx multirail cc -O3 heat.c -o heat.wasm
 *   npx multirail run -n 4 --mca ft on --kill 2@1s heat.wasm 4000
 *
 * The argument is the number of steps. Every KEEP steps each rank gets a copy of the whole plate, so that whoever lives has it.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 240, COLUMNS = 240, KEEP = 100 };

/* The last plate that all have agreed on, and the one that they are about to. */
static double kept[ROWS][COLUMNS], plate[ROWS][COLUMNS];
static double now[ROWS + 2][COLUMNS], next[ROWS + 2][COLUMNS];

static int first_row(int rank, int size) { return (int)((long long)ROWS * rank / size); }

/* One step of the rows [from, to); row r of the plate is now[r + 1]. */
static int step(MPI_Comm comm, int rank, int size, int from, int to) {
  int up = rank > 0 ? rank - 1 : MPI_PROC_NULL, down = rank < size - 1 ? rank + 1 : MPI_PROC_NULL, code;
  code = MPI_Sendrecv(now[from + 1], COLUMNS, MPI_DOUBLE, up, 0, now[to + 1], COLUMNS, MPI_DOUBLE, down, 0, comm, MPI_STATUS_IGNORE);
  if (code != MPI_SUCCESS) return code;
  code = MPI_Sendrecv(now[to], COLUMNS, MPI_DOUBLE, down, 1, now[from], COLUMNS, MPI_DOUBLE, up, 1, comm, MPI_STATUS_IGNORE);
  if (code != MPI_SUCCESS) return code;
  for (int r = from + 1; r <= to; r++)
    for (int c = 1; c < COLUMNS - 1; c++)
      next[r][c] = r == 1 || r == ROWS ? now[r][c] : 0.25 * (now[r - 1][c] + now[r + 1][c] + now[r][c - 1] + now[r][c + 1]);
  for (int r = from + 1; r <= to; r++) memcpy(now[r] + 1, next[r] + 1, (COLUMNS - 2) * sizeof(double));
  return MPI_SUCCESS;
}

/* Everybody gets the whole plate. */
static int keep(MPI_Comm comm, int rank, int size) {
  int counts[1024], displs[1024];
  for (int i = 0; i < size; i++) {
    displs[i] = first_row(i, size) * COLUMNS;
    counts[i] = first_row(i + 1, size) * COLUMNS - displs[i];
  }
  return MPI_Allgatherv(now[first_row(rank, size) + 1], counts[rank], MPI_DOUBLE, plate, counts, displs, MPI_DOUBLE, comm);
}

int main(int argc, char **argv) {
  MPI_Comm comm;
  int rank, size, kept_at = 0;
  MPI_Init(&argc, &argv);
  int steps = argc > 1 ? atoi(argv[1]) : 1000;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  for (int c = 0; c < COLUMNS; c++) kept[0][c] = 100.0;
  while (kept_at < steps) {
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    memcpy(now[1], kept, sizeof kept);
    int from = first_row(rank, size), to = first_row(rank + 1, size), code = MPI_SUCCESS, well = 1;
    for (int at = kept_at; well && at < steps;) {
      int end = at + KEEP < steps ? at + KEEP : steps;
      while (at < end && code == MPI_SUCCESS) {
        code = step(comm, rank, size, from, to);
        at++;
      }
      if (code == MPI_SUCCESS) code = keep(comm, rank, size);
      /* Whoever has found a failure breaks the communicator, so that the others come here, too. */
      if (code != MPI_SUCCESS) MPIX_Comm_revoke(comm);
      well = code == MPI_SUCCESS;
      code = MPIX_Comm_agree(comm, &well);
      well = well && code == MPI_SUCCESS;
      /* Either everybody has the new plate, or all go back to the one before. */
      if (well) {
        memcpy(kept, plate, sizeof kept);
        kept_at = at;
      }
    }
    if (well) continue;
    MPI_Comm alive;
    if (MPIX_Comm_shrink(comm, &alive) != MPI_SUCCESS) {
      fprintf(stderr, "there is no going on after failures here: start the job with --mca ft on\n");
      MPI_Abort(comm, 1);
    }
    MPI_Comm_free(&comm);
    comm = alive;
    MPI_Comm_size(comm, &size);
    MPI_Comm_rank(comm, &rank);
    if (rank == 0) printf("a rank is gone; %d go on from step %d\n", size, kept_at);
  }
  double heat = 0;
  for (int r = 0; r < ROWS; r++)
    for (int c = 0; c < COLUMNS; c++) heat += kept[r][c];
  if (rank == 0) printf("after %d steps the plate holds %.9f\n", steps, heat);
  MPI_Finalize();
  return 0;
}
