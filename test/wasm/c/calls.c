/* Messages, types, collectives, operations, communicators: each group of checks counts what is wrong, and rank 0 prints the sum. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int errors = 0;
static int rank, size;

static int begins = 0;
static void __attribute__((constructor)) begin(void) { begins++; }

static void check(int holds, const char *what) {
  if (holds) return;
  errors++;
  fprintf(stderr, "rank %d: %s\n", rank, what);
}

static void messages(void) {
  MPI_Status status;
  MPI_Request requests[2];
  int next = (rank + 1) % size, before = (rank + size - 1) % size, value = rank, got = -1, count, flag;
  MPI_Irecv(&got, 1, MPI_INT, before, 5, MPI_COMM_WORLD, &requests[0]);
  MPI_Isend(&value, 1, MPI_INT, next, 5, MPI_COMM_WORLD, &requests[1]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  check(got == before && requests[0] == MPI_REQUEST_NULL, "isend and irecv");
  MPI_Sendrecv(&value, 1, MPI_INT, next, 6, &got, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
  MPI_Get_count(&status, MPI_INT, &count);
  check(got == before && status.MPI_SOURCE == before && status.MPI_TAG == 6 && count == 1, "sendrecv and its status");
  char pad[1024];
  MPI_Buffer_attach(pad, sizeof pad);
  MPI_Bsend(&value, 1, MPI_INT, next, 7, MPI_COMM_WORLD);
  MPI_Probe(before, 7, MPI_COMM_WORLD, &status);
  MPI_Message message;
  MPI_Improbe(before, 7, MPI_COMM_WORLD, &flag, &message, &status);
  check(flag == 1, "improbe");
  MPI_Mrecv(&got, 1, MPI_INT, &message, &status);
  check(got == before && message == MPI_MESSAGE_NULL, "mrecv");
  void *back;
  MPI_Buffer_detach(&back, &count);
  check(back == pad && count == sizeof pad, "buffer_detach");
  MPI_Request again;
  MPI_Recv_init(&got, 1, MPI_INT, before, 8, MPI_COMM_WORLD, &again);
  for (int i = 0; i < 3; i++) {
    int out = 10 * i + rank;
    MPI_Start(&again);
    MPI_Ssend(&out, 1, MPI_INT, next, 8, MPI_COMM_WORLD);
    MPI_Wait(&again, &status);
    check(got == 10 * i + before, "persistent receive");
  }
  MPI_Request_free(&again);
  MPI_Irecv(&got, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &again);
  MPI_Wait(&again, &status);
  check(status.MPI_SOURCE == MPI_PROC_NULL, "receive from nobody");
}

static void types(void) {
  int matrix[4][4], column[4];
  for (int i = 0; i < 16; i++) matrix[i / 4][i % 4] = 100 * rank + i;
  MPI_Datatype vector, resized, block, record;
  MPI_Type_vector(4, 1, 4, MPI_INT, &vector);
  MPI_Type_create_resized(vector, 0, sizeof(int), &resized);
  MPI_Type_commit(&resized);
  MPI_Sendrecv(&matrix[0][1], 1, resized, rank, 1, column, 4, MPI_INT, rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  for (int i = 0; i < 4; i++) check(column[i] == 100 * rank + 4 * i + 1, "a column as a vector");
  int sizes[2] = {4, 4}, part[2] = {2, 2}, from[2] = {1, 2}, corner[4];
  MPI_Type_create_subarray(2, sizes, part, from, MPI_ORDER_C, MPI_INT, &block);
  MPI_Type_commit(&block);
  int at = 0;
  char packed[64];
  MPI_Pack(matrix, 1, block, packed, sizeof packed, &at, MPI_COMM_WORLD);
  memcpy(corner, packed, sizeof corner);
  check(at == 16 && corner[0] == 100 * rank + 6 && corner[3] == 100 * rank + 11, "a subarray packed");
  struct record {
    char key;
    double value;
  } records[2] = {{'a', 1.5}, {'b', 2.5}}, copies[2];
  int lengths[2] = {1, 1};
  MPI_Aint places[2] = {0, 8}, lb, extent;
  MPI_Datatype kinds[2] = {MPI_CHAR, MPI_DOUBLE};
  MPI_Type_create_struct(2, lengths, places, kinds, &record);
  MPI_Type_commit(&record);
  MPI_Type_get_extent(record, &lb, &extent);
  check(extent == sizeof(struct record), "the extent of a struct");
  MPI_Sendrecv(records, 2, record, rank, 2, copies, 2, record, rank, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  check(copies[1].key == 'b' && copies[1].value == 2.5, "records");
  char external[32];
  MPI_Aint place = 0;
  double pi = 3.25, back = 0;
  MPI_Pack_external("external32", &pi, 1, MPI_DOUBLE, external, sizeof external, &place);
  check(place == 8 && external[0] == 0x40 && external[1] == 0x0a, "external32 has the highest byte first");
  place = 0;
  MPI_Unpack_external("external32", external, sizeof external, &place, &back, 1, MPI_DOUBLE);
  check(back == pi, "unpack_external");
  MPI_Count large;
  MPI_Type_size_c(record, &large);
  check(large == 9, "type_size_c");
  MPI_Type_free(&vector), MPI_Type_free(&resized), MPI_Type_free(&block), MPI_Type_free(&record);
}

/* What comes of the lower rank stays. */
static void first(void *in, void *inout, int *count, MPI_Datatype *type) {
  (void)type;
  for (int i = 0; i < *count; i++) ((int *)inout)[i] = ((int *)in)[i];
}

static void collectives(void) {
  int value = rank + 1, sum = 0, all[64], root = size - 1;
  MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  check(sum == size * (size + 1) / 2, "allreduce");
  sum = value;
  MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  check(sum == size, "allreduce in place");
  struct {
    double value;
    int index;
  } pair = {rank == root ? 7.0 : 1.0, rank}, best;
  MPI_Allreduce(&pair, &best, 1, MPI_DOUBLE_INT, MPI_MAXLOC, MPI_COMM_WORLD);
  check(best.value == 7.0 && best.index == root, "maxloc of pairs");
  long double l = rank + 0.5L, total = 0;
  MPI_Allreduce(&l, &total, 1, MPI_LONG_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  check(total == size * (size - 1) / 2 + size * 0.5L, "long doubles");
  MPI_Gather(&value, 1, MPI_INT, all, 1, MPI_INT, 0, MPI_COMM_WORLD);
  if (rank == 0)
    for (int i = 0; i < size; i++) check(all[i] == i + 1, "gather");
  MPI_Op op;
  MPI_Op_create(first, 0, &op);
  int own = 10 + rank, result = 0;
  MPI_Reduce(&own, &result, 1, MPI_INT, op, 0, MPI_COMM_WORLD);
  if (rank == 0) check(result == 10, "an operation that does not commute");
  MPI_Op_free(&op);
  MPI_Request request;
  int from = rank == root ? 99 : 0;
  MPI_Ibcast(&from, 1, MPI_INT, root, MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  check(from == 99, "ibcast");
  int out[64], in[64];
  for (int i = 0; i < size; i++) out[i] = 100 * rank + i;
  MPI_Alltoall(out, 1, MPI_INT, in, 1, MPI_INT, MPI_COMM_WORLD);
  for (int i = 0; i < size; i++) check(in[i] == 100 * i + rank, "alltoall");
  int counts[64], displs[64];
  for (int i = 0; i < size; i++) counts[i] = 1, displs[i] = size - 1 - i;
  MPI_Allgatherv(&value, 1, MPI_INT, all, counts, displs, MPI_INT, MPI_COMM_WORLD);
  for (int i = 0; i < size; i++) check(all[size - 1 - i] == i + 1, "allgatherv");
  int scan = -5;
  MPI_Exscan(&value, &scan, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  check(scan == (rank == 0 ? -5 : rank * (rank + 1) / 2), "exscan");
}

static int deleted = 0;
static int forget(MPI_Comm comm, int key, void *value, void *extra) {
  (void)comm, (void)key, (void)value, (void)extra;
  deleted++;
  return MPI_SUCCESS;
}

static void communicators(void) {
  MPI_Comm half, copy, grid, inter, merged;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
  int own, members, result, *universe, flag, key;
  MPI_Comm_rank(half, &own);
  MPI_Comm_size(half, &members);
  check(members == (size + 1 - rank % 2) / 2 && own == members - 1 - rank / 2, "split");
  MPI_Comm_create_keyval(MPI_COMM_DUP_FN, forget, &key, NULL);
  MPI_Comm_set_attr(half, key, &own);
  MPI_Comm_dup(half, &copy);
  int *kept;
  MPI_Comm_get_attr(copy, key, &kept, &flag);
  check(flag && kept == &own, "an attribute is copied");
  MPI_Comm_compare(half, copy, &result);
  check(result == MPI_CONGRUENT, "compare");
  /* In another order at each rank, with another call between. */
  if (rank == 0) MPI_Comm_free(&copy);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank != 0) MPI_Comm_free(&copy);
  check(deleted == 1 && copy == MPI_COMM_NULL, "an attribute is deleted");
  MPI_Comm_free_keyval(&key);
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &universe, &flag);
  check(flag && *universe == 2147483647, "the highest tag");
  int dims[1] = {size}, periods[1] = {1}, source, dest;
  MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, 0, &grid);
  MPI_Cart_shift(grid, 0, 1, &source, &dest);
  check(dest == (rank + 1) % size, "cart_shift");
  int around[2] = {-1, -1}, mine[2] = {10 * rank, 10 * rank + 1};
  MPI_Neighbor_alltoall(mine, 1, MPI_INT, around, 1, MPI_INT, grid);
  check(around[0] == 10 * source + 1 && around[1] == 10 * dest, "what goes down comes from above");
  MPI_Comm_free(&grid);
  if (size > 1) {
    MPI_Intercomm_create(half, members - 1, MPI_COMM_WORLD, rank % 2 == 0 ? 1 : 0, 3, &inter);
    int far, mineToo = rank, sum = 0;
    MPI_Comm_remote_size(inter, &far);
    check(far == size - members, "remote_size");
    MPI_Allreduce(&mineToo, &sum, 1, MPI_INT, MPI_SUM, inter);
    int expected = 0;
    for (int i = 1 - rank % 2; i < size; i += 2) expected += i;
    check(sum == expected, "allreduce of the other group");
    MPI_Intercomm_merge(inter, rank % 2, &merged);
    MPI_Comm_size(merged, &members);
    check(members == size, "merge");
    MPI_Comm_free(&merged);
    MPI_Comm_free(&inter);
  }
  MPI_Comm_free(&half);
}

/* The memory of the program grows while a message comes. */
static void growth(void) {
  enum { N = 1 << 20 };
  char *data = malloc(N);
  MPI_Request request;
  int next = (rank + 1) % size, before = (rank + size - 1) % size;
  memset(data, 0, N);
  MPI_Irecv(data, N, MPI_CHAR, before, 9, MPI_COMM_WORLD, &request);
  char *more = malloc(64 << 20);
  memset(more, rank + 1, 64 << 20);
  MPI_Send(more, N, MPI_CHAR, next, 9, MPI_COMM_WORLD);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  check(data[0] == before + 1 && data[N - 1] == before + 1, "a receive while the memory grows");
  free(more), free(data);
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  messages();
  types();
  collectives();
  communicators();
  growth();
  int all = 0;
  MPI_Reduce(&errors, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("%d errors\n", all);
  MPI_Finalize();
  return errors != 0;
}
