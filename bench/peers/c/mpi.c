// osu_latency and osu_bw in one program for whichever MPI compiles it: MPI_Send/MPI_Recv for latency, windows of MPI_Isend and
// MPI_Irecv for bandwidth.
#include "cells.h"
#include <mpi.h>

enum { DATA_TAG = 1, ORDER_TAG = 2 };
static int peer;
static MPI_Request requests[WINDOW_MAX];

// Orders, acknowledgements and the messages of a ping-pong never mix: each waits for the one before.
static void mpi_send(const char *p, size_t n) { MPI_Send(p, (int)n, MPI_CHAR, peer, ORDER_TAG, MPI_COMM_WORLD); }
static void mpi_receive(char *p, size_t n) { MPI_Recv(p, (int)n, MPI_CHAR, peer, ORDER_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE); }

static void send_window(const char *p, size_t n, int count) {
  for (int i = 0; i < count; i++) MPI_Isend(p, (int)n, MPI_CHAR, peer, DATA_TAG, MPI_COMM_WORLD, &requests[i]);
  MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
}

static void receive_window(char *p, size_t n, int count) {
  for (int i = 0; i < count; i++) MPI_Irecv(p, (int)n, MPI_CHAR, peer, DATA_TAG, MPI_COMM_WORLD, &requests[i]);
  MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
}

int main(int argc, char **argv) {
  int rank, size;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (size != 2) return fprintf(stderr, "two ranks, not %d\n", size), 2;
  peer = 1 - rank;
  side self = {rank, mpi_send, mpi_receive, send_window, receive_window};
  run_cells(&self);
  MPI_Finalize();
  return 0;
}
