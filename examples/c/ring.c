/* A token goes around all ranks, and each adds its number. */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv) {
  int rank, size, token = 0;
  MPI_Status status;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  int next = (rank + 1) % size, before = (rank + size - 1) % size;
  if (rank == 0) {
    double began = MPI_Wtime();
    MPI_Request request;
    MPI_Isend(&token, 1, MPI_INT, next, 0, MPI_COMM_WORLD, &request);
    MPI_Recv(&token, 1, MPI_INT, before, 0, MPI_COMM_WORLD, &status);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    printf("the token has come back from rank %d with %d, after %.0f us\n", status.MPI_SOURCE, token, (MPI_Wtime() - began) * 1e6);
  } else {
    MPI_Recv(&token, 1, MPI_INT, before, 0, MPI_COMM_WORLD, &status);
    token += rank;
    MPI_Send(&token, 1, MPI_INT, next, 0, MPI_COMM_WORLD);
  }
  MPI_Finalize();
  return 0;
}
