/* What is wrong ends in an error class and a sentence, and the program goes on. Prints the class of each. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

static void say(const char *what, int code) {
  int errorClass, length;
  char text[MPI_MAX_ERROR_STRING];
  MPI_Error_class(code, &errorClass);
  MPI_Error_string(code, text, &length);
  printf("%s: %d %s\n", what, errorClass, length > 20 && strchr(text, '(') ? "with a sentence" : text);
}

int main(int argc, char **argv) {
  int value = 0;
  MPI_Datatype type;
  MPI_Comm comm = (MPI_Comm)0x12345678;
  MPI_Init(&argc, &argv);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  say("a count", MPI_Send(&value, -1, MPI_INT, 0, 0, MPI_COMM_WORLD));
  say("a rank", MPI_Send(&value, 1, MPI_INT, 99, 0, MPI_COMM_WORLD));
  say("a tag", MPI_Send(&value, 1, MPI_INT, 0, -7, MPI_COMM_WORLD));
  say("a communicator", MPI_Send(&value, 1, MPI_INT, 0, 0, comm));
  say("no communicator", MPI_Barrier(MPI_COMM_NULL));
  say("a datatype", MPI_Send(&value, 1, (MPI_Datatype)0x7777777, 0, 0, MPI_COMM_WORLD));
  MPI_Type_contiguous(2, MPI_INT, &type);
  say("not committed", MPI_Send(&value, 1, type, 0, 0, MPI_COMM_WORLD));
  say("NULL", MPI_Send(NULL, 1, MPI_INT, 0, 0, MPI_COMM_WORLD));
  say("beyond the memory", MPI_Send((void *)0xfffffff0, 100, MPI_INT, 0, 0, MPI_COMM_WORLD));
  say("an operation", MPI_Allreduce(&value, &value, 1, MPI_INT, (MPI_Op)0x9999999, MPI_COMM_WORLD));
  say("an operation for floats", MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_FLOAT, MPI_BAND, MPI_COMM_WORLD));
  say("a root", MPI_Bcast(&value, 1, MPI_INT, 42, MPI_COMM_WORLD));
  int two[2] = {1, 2};
  MPI_Request request;
  MPI_Isend(two, 2, MPI_INT, 0, 1, MPI_COMM_SELF, &request);
  MPI_Status status;
  int got = MPI_Recv(&value, 1, MPI_INT, 0, 1, MPI_COMM_SELF, &status);
  say("too long", got);
  int count = 0;
  MPI_Get_count(&status, MPI_INT, &count);
  printf("of which came: %d\n", count);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  say("a free of what is predefined", (type = MPI_INT, MPI_Type_free(&type)));
  MPI_Finalize();
  return 0;
}
