/* Wrong calls of collectives: the error class of each, on the communicator's handler; and that the communicator still works.
 * MPI-5.0 6.2, 6.9; 9.4 (classes). */
// run: n=1,3 timeout=30
#include "../check.h"
#include <string.h>

static MPI_Comm c;
static int rank, size;

static void nothing(void *in, void *inout, int *len, MPI_Datatype *t) { (void)in, (void)inout, (void)len, (void)t; }

static void operations(void)
{
  int in[4] = {1, 2, 3, 4}, out[4];
  float f[4] = {0}, g[4];
  char s[4] = "abc", t[4];
  MPI_Op op, none = MPI_OP_NULL, sum = MPI_SUM;
  int commutes = -1;
  CHECK_CLASS(MPI_Allreduce(in, out, 4, MPI_INT, MPI_OP_NULL, c), MPI_ERR_OP);
  CHECK_CLASS(MPI_Allreduce(f, g, 4, MPI_FLOAT, MPI_BAND, c), MPI_ERR_OP);
  CHECK_CLASS(MPI_Reduce(f, g, 4, MPI_FLOAT, MPI_LXOR, 0, c), MPI_ERR_OP);
  CHECK_CLASS(MPI_Scan(s, t, 4, MPI_CHARACTER, MPI_SUM, c), MPI_ERR_OP);
  CHECK_CLASS(MPI_Exscan(s, t, 4, MPI_BYTE, MPI_MAX, c), MPI_ERR_OP);
  for (int i = 0; i < 4; i++) s[i] = i % 2 ? -1 - rank : 1 + rank;
  CHECK_CLASS(MPI_Allreduce(s, t, 4, MPI_CHAR, MPI_MAX, c), MPI_SUCCESS);
  CHECK(t[0] == size && t[1] == ((char)-1 < 0 ? -1 : (char)-1));
  CHECK_CLASS(MPI_Allreduce(s, t, 4, MPI_CHAR, MPI_SUM, c), MPI_SUCCESS);
  CHECK(t[0] == (char)(size * (size + 1) / 2) && t[1] == (char)(-size * (size + 1) / 2));
  CHECK_CLASS(MPI_Allreduce(s, t, 0, MPI_BYTE, MPI_SUM, c), MPI_SUCCESS); /* no elements */
  CHECK_CLASS(MPI_Reduce_local(f, g, 0, MPI_FLOAT, MPI_BOR), MPI_SUCCESS);
  CHECK_CLASS(MPI_Allreduce(in, out, 4, MPI_INT, MPI_MINLOC, c), MPI_ERR_OP);
  CHECK_CLASS(MPI_Allreduce(in, out, 2, MPI_2INT, MPI_SUM, c), MPI_ERR_OP);
  CHECK_CLASS(MPI_Allreduce(in, out, 4, MPI_INT, MPI_REPLACE, c), MPI_ERR_OP);
  CHECK_CLASS(MPI_Reduce_scatter_block(in, out, 1, MPI_INT, MPI_NO_OP, c), MPI_ERR_OP);
  CHECK_CLASS(MPI_Reduce_local(f, g, 4, MPI_FLOAT, MPI_BOR), MPI_ERR_OP);
  CHECK_CLASS(MPI_Op_free(&none), MPI_ERR_OP);
  CHECK_CLASS(MPI_Op_free(&sum), MPI_ERR_OP);
  CHECK_CLASS(MPI_Op_create(nothing, 1, &op), MPI_SUCCESS);
  CHECK_CLASS(MPI_Op_commutative(op, &commutes), MPI_SUCCESS);
  CHECK(commutes == 1);
  CHECK_CLASS(MPI_Op_commutative(MPI_MAXLOC, &commutes), MPI_SUCCESS);
  CHECK(commutes == 1);
  MPI_Op old = op;
  CHECK_CLASS(MPI_Op_free(&op), MPI_SUCCESS);
  CHECK(op == MPI_OP_NULL);
  CHECK_CLASS(MPI_Allreduce(in, out, 4, MPI_INT, old, c), MPI_ERR_OP);
}

static void arguments(void)
{
  int in[64] = {0}, out[64] = {0};
  MPI_Datatype fresh;
  MPI_Type_contiguous(2, MPI_INT, &fresh); /* not committed */
  CHECK_CLASS(MPI_Bcast(in, 1, MPI_INT, size, c), MPI_ERR_ROOT);
  CHECK_CLASS(MPI_Bcast(in, 1, MPI_INT, -1, c), MPI_ERR_ROOT);
  CHECK_CLASS(MPI_Bcast(in, -1, MPI_INT, 0, c), MPI_ERR_COUNT);
  CHECK_CLASS(MPI_Bcast(in, 1, MPI_DATATYPE_NULL, 0, c), MPI_ERR_TYPE);
  CHECK_CLASS(MPI_Bcast(in, 1, fresh, 0, c), MPI_ERR_TYPE);
  CHECK_CLASS(MPI_Bcast(NULL, 1, MPI_INT, 0, c), MPI_ERR_BUFFER);
  CHECK_CLASS(MPI_Barrier(MPI_COMM_NULL), MPI_ERR_COMM);
  CHECK_CLASS(MPI_Allgather(in, -2, MPI_INT, out, 1, MPI_INT, c), MPI_ERR_COUNT);
  CHECK_CLASS(MPI_Alltoall(in, 1, MPI_INT, MPI_IN_PLACE, 1, MPI_INT, c), MPI_ERR_BUFFER);
  CHECK_CLASS(MPI_Ibarrier(c, NULL), MPI_ERR_ARG);
  MPI_Type_free(&fresh);
}

static void aliases(void)
{
  int v[64] = {0}, counts[16], displs[16];
  for (int i = 0; i < size; i++) counts[i] = 1, displs[i] = i;
  CHECK_CLASS(MPI_Allreduce(v, v, 4, MPI_INT, MPI_SUM, c), MPI_ERR_BUFFER);
  CHECK_CLASS(MPI_Scan(v, v, 4, MPI_INT, MPI_SUM, c), MPI_ERR_BUFFER);
  CHECK_CLASS(MPI_Alltoall(v, 1, MPI_INT, v, 1, MPI_INT, c), MPI_ERR_BUFFER);
  CHECK_CLASS(MPI_Allgather(v + rank, 1, MPI_INT, v, 1, MPI_INT, c), MPI_ERR_BUFFER);
  CHECK_CLASS(MPI_Allgatherv(v + rank, 1, MPI_INT, v, counts, displs, MPI_INT, c), MPI_ERR_BUFFER);
  CHECK_CLASS(MPI_Reduce_scatter(v, v, counts, MPI_INT, MPI_SUM, c), MPI_ERR_BUFFER);
  CHECK_CLASS(MPI_Allreduce(v, v, 0, MPI_INT, MPI_SUM, c), MPI_SUCCESS);
}

/* Counts that do not match are an error where too much or too little arrives, and not a hang. */
static void lengths(void)
{
  int v[16] = {0};
  if (size == 1) return;
  int err = MPI_Bcast(v, rank == 0 ? 2 : 5, MPI_INT, 0, c);
  if (rank > 0) CHECK_CLASS(err, MPI_ERR_TRUNCATE);
  MPI_Request r;
  MPI_Ibcast(v, rank == 0 ? 5 : 2, MPI_INT, 0, c, &r);
  err = MPI_Wait(&r, MPI_STATUS_IGNORE);
  if (rank > 0) {
    char text[MPI_MAX_ERROR_STRING];
    int n;
    CHECK_CLASS(err, MPI_ERR_TRUNCATE);
    MPI_Error_string(err, text, &n);
    CHECK(strstr(text, "rank 0") != NULL);
  }
}

int main(int argc, char **argv)
{
  MPI_Init(&argc, &argv);
  MPI_Comm_dup(MPI_COMM_WORLD, &c);
  MPI_Comm_rank(c, &rank);
  MPI_Comm_size(c, &size);
  MPI_Comm_set_errhandler(c, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  operations();
  arguments();
  aliases();
  lengths();
  int one = 1, sum = 0;
  CHECK_CLASS(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, c), MPI_SUCCESS);
  CHECK(sum == size);
  MPI_Comm_free(&c);
  MPI_Finalize();
  return check_status();
}
