/* A program with the address sanitizer: no complaint about libspx, neither of errors nor of leaks, and its own leak is found. */
// run: n=1,2 cflags="-g -fsanitize=address" timeout=60
// run: n=1 cflags="-g -fsanitize=address" args="leak" status=23 env=ASAN_OPTIONS=exitcode=23 stderr~"own_leak" timeout=60
#include "boundary.h"

static int copy(MPI_Comm old, int keyval, void *extra, void *in, void *out, int *flag)
{
  (void)old;
  (void)keyval;
  (void)extra;
  *(void **)out = in;
  *flag = 1;
  return MPI_SUCCESS;
}

static void note(MPI_Comm *comm, int *code, ...)
{
  (void)comm;
  (void)code;
}

__attribute__((noinline)) static void own_leak(void)
{
  volatile char *lost = malloc(77);
  lost[0] = 1;
}

int main(int argc, char **argv)
{
  int rank, size, keyval, lengths[2] = {1, 2}, displs[2] = {0, 3}, in = 0, out = 1;
  int *big = calloc(100000, sizeof *big);
  MPI_Comm dup, half;
  MPI_Datatype type;
  MPI_Errhandler eh;
  MPI_Group group;
  MPI_Info info;
  MPI_Request r[2];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_create_keyval(copy, MPI_COMM_NULL_DELETE_FN, &keyval, NULL);
  MPI_Comm_set_attr(MPI_COMM_WORLD, keyval, big);
  MPI_Comm_dup(MPI_COMM_WORLD, &dup);
  MPI_Comm_split(dup, rank % 2, rank, &half);
  MPI_Comm_create_errhandler(note, &eh);
  MPI_Comm_set_errhandler(dup, eh);
  MPI_Send(NULL, 0, MPI_INT, 99999, 0, dup);
  MPI_Comm_group(dup, &group);
  MPI_Info_create(&info);
  MPI_Info_set(info, "key", "value");
  MPI_Type_indexed(2, lengths, displs, MPI_INT, &type);
  MPI_Type_commit(&type);
  MPI_Irecv(big, 10000, type, (rank + size - 1) % size, 1, dup, &r[0]);
  MPI_Isend(big + 50000, 10000, type, (rank + 1) % size, 1, dup, &r[1]);
  MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
  MPI_Allreduce(&out, &in, 1, MPI_INT, MPI_SUM, half);
  MPI_Type_free(&type);
  MPI_Info_free(&info);
  MPI_Group_free(&group);
  MPI_Errhandler_free(&eh);
  MPI_Comm_free(&half);
  MPI_Comm_free(&dup);
  MPI_Comm_free_keyval(&keyval);
  MPI_Finalize();
  free(big);
  if (argc > 1) own_leak();
  return 0;
}
