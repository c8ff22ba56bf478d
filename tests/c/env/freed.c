/* freed.c - what is freed while it is still in use lives until then (MPI-5.0, 2.5.1): datatypes, operations, communicators, groups, info objects, error handlers. */
// run: n=2,3
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "../check.h"

#define OK(call) CHECK((call) == MPI_SUCCESS)

static int rank, size, seen;

static void add(void *in, void *inout, int *n, MPI_Datatype *type)
{
  (void)type;
  for (int i = 0; i < *n; i++) ((int *)inout)[i] += ((int *)in)[i];
}

static void note(MPI_Comm *comm, int *code, ...)
{
  (void)comm;
  MPI_Error_class(*code, &seen);
}

static MPI_Datatype every_other(int n)
{
  MPI_Datatype t, outer;
  OK(MPI_Type_vector(n, 1, 2, MPI_INT, &t));
  OK(MPI_Type_contiguous(1, t, &outer));
  OK(MPI_Type_free(&t)); /* that outer is made of */
  OK(MPI_Type_commit(&outer));
  return outer;
}

static void fill(int *a, int n)
{
  for (int i = 0; i < n; i++) a[i] = 1000 * rank + i;
}

static void of_messages(void)
{
  enum { N = 30000 };
  static int in[2 * N], out[2 * N];
  int to = (rank + 1) % size, from = (rank + size - 1) % size;
  for (int persistent = 0; persistent < 2; persistent++) {
    MPI_Datatype t = every_other(N);
    MPI_Comm dup;
    MPI_Request r[2];
    fill(out, 2 * N);
    memset(in, 0, sizeof in);
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &dup));
    if (persistent) {
      OK(MPI_Recv_init(in, 1, t, from, 0, dup, &r[0]));
      OK(MPI_Send_init(out, 1, t, to, 0, dup, &r[1]));
    } else {
      OK(MPI_Irecv(in, 1, t, from, 0, dup, &r[0]));
      OK(MPI_Isend(out, 1, t, to, 0, dup, &r[1]));
    }
    OK(MPI_Type_free(&t));
    OK(MPI_Comm_free(&dup));
    for (int k = 0; k < 1 + persistent; k++) {
      if (persistent) OK(MPI_Startall(2, r));
      OK(MPI_Waitall(2, r, MPI_STATUSES_IGNORE));
      CHECK(in[2 * N - 2] == 1000 * from + 2 * N - 2 && in[1] == 0);
    }
    for (int k = 0; persistent && k < 2; k++) OK(MPI_Request_free(&r[k]));
  }
}

static void of_collectives(void)
{
  enum { N = 5000 };
  int *in = malloc(N * sizeof *in), *out = malloc(N * sizeof *out), *all = malloc(2 * N * sizeof *all);
  for (int persistent = 0; persistent < 2; persistent++) {
    MPI_Comm dup;
    MPI_Op op;
    MPI_Request r[2];
    MPI_Info info;
    MPI_Datatype t = every_other(N);
    OK(MPI_Info_create(&info));
    OK(MPI_Op_create(add, 1, &op));
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &dup));
    fill(in, N);
    fill(all, 2 * N);
    if (persistent) {
      OK(MPI_Allreduce_init(in, out, N, MPI_INT, op, dup, info, &r[0]));
      OK(MPI_Bcast_init(all, 1, t, 0, dup, info, &r[1]));
    } else {
      OK(MPI_Iallreduce(in, out, N, MPI_INT, op, dup, &r[0]));
      OK(MPI_Ibcast(all, 1, t, 0, dup, &r[1]));
    }
    OK(MPI_Op_free(&op));
    OK(MPI_Type_free(&t));
    OK(MPI_Info_free(&info));
    OK(MPI_Comm_free(&dup));
    for (int k = 0; k < 1 + persistent; k++) {
      if (persistent) OK(MPI_Startall(2, r));
      OK(MPI_Waitall(2, r, MPI_STATUSES_IGNORE));
      CHECK(out[N - 1] == 1000 * (size * (size - 1) / 2) + size * (N - 1));
      CHECK(all[2 * N - 2] == 2 * N - 2 && all[1] == 1000 * rank + 1);
    }
    for (int k = 0; persistent && k < 2; k++) OK(MPI_Request_free(&r[k]));
  }
  free(in);
  free(out);
  free(all);
}

static void of_objects(void)
{
  MPI_Comm dup, part;
  MPI_Group g, half;
  MPI_Errhandler h;
  MPI_Win win;
  MPI_File f;
  MPI_Info info;
  int n, *base, x = rank, first[1] = {0}, in[4] = {0}, out[4] = {1, 2, 3, 4};
  OK(MPI_Comm_dup(MPI_COMM_WORLD, &dup));
  OK(MPI_Comm_create_errhandler(note, &h));
  OK(MPI_Comm_set_errhandler(dup, h));
  OK(MPI_Errhandler_free(&h));
  CHECK_CLASS(MPI_Send(&x, 1, MPI_INT, size, 0, dup), MPI_ERR_RANK);
  CHECK(seen == MPI_ERR_RANK);

  OK(MPI_Comm_group(dup, &g));
  OK(MPI_Group_incl(g, 1, first, &half));
  OK(MPI_Group_free(&g));
  OK(MPI_Group_size(half, &n)); /* made of one that is freed */
  CHECK(n == 1);
  OK(MPI_Comm_create(dup, half, &part));
  OK(MPI_Group_free(&half));
  CHECK((part == MPI_COMM_NULL) == (rank != 0));
  if (part != MPI_COMM_NULL) OK(MPI_Comm_free(&part));

  OK(MPI_Info_create(&info));
  OK(MPI_Info_set(info, "no_locks", "false"));
  OK(MPI_Win_allocate(sizeof *base * 4, sizeof *base, info, dup, &base, &win));
  char path[] = "/tmp/spx-freed-XXXXXX";
  int fd = rank == 0 ? mkstemp(path) : -1;
  OK(MPI_Bcast(path, sizeof path, MPI_CHAR, 0, dup));
  OK(MPI_File_open(dup, path, MPI_MODE_RDWR, info, &f));
  OK(MPI_Info_free(&info));
  OK(MPI_Comm_free(&dup)); /* the window and the file go on */
  OK(MPI_Win_fence(0, win));
  MPI_Datatype t = every_other(2);
  OK(MPI_Put(out, 1, t, (rank + 1) % size, 0, 1, t, win));
  OK(MPI_Type_free(&t)); /* before the epoch ends */
  OK(MPI_Win_fence(0, win));
  CHECK(base[0] == 1 && base[2] == 3);
  OK(MPI_Win_free(&win));
  t = every_other(2);
  OK(MPI_File_set_view(f, (MPI_Offset)sizeof out * rank, MPI_INT, t, "native", MPI_INFO_NULL));
  OK(MPI_Type_free(&t)); /* the view keeps it */
  MPI_Request r;
  t = every_other(2);
  OK(MPI_File_iwrite_all(f, out, 1, t, &r));
  OK(MPI_Type_free(&t));
  OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
  OK(MPI_File_read_at_all(f, 0, in, 2, MPI_INT, MPI_STATUS_IGNORE));
  CHECK(in[0] == 1 && in[1] == 3);
  OK(MPI_File_close(&f));
  if (fd >= 0) close(fd), unlink(path);
}

int main(int argc, char **argv)
{
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  of_messages();
  of_collectives();
  of_objects();
  MPI_Finalize();
  return check_status();
}
