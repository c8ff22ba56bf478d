/* What the caller may free while a nonblocking or persistent collective is under way: datatypes, operations, the communicator;
 * with more peers than are talked to at once. Datatypes of w forms with a count of 0 may be anything. MPI-5.0 5.1.9, 6.12. */
// run: n=2,5,40 n.few=2,12 timeout=60
#include "../check.h"
#include <stdlib.h>

static void sum(void *in, void *inout, int *len, MPI_Datatype *t)
{
  (void)t;
  for (int i = 0; i < *len; i++) ((int *)inout)[2 * i] += ((int *)in)[2 * i];
}

int main(int argc, char **argv)
{
  int rank, size;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  size_t n = (size_t)size;
  int *counts = malloc(n * sizeof *counts), *displs = malloc(n * sizeof *displs), *in = malloc(2 * n * sizeof *in),
      *out = malloc(2 * n * sizeof *out);
  MPI_Datatype *types = malloc(n * sizeof *types), spaced;
  for (int round = 0; round < 20; round++) {
    MPI_Comm c;
    MPI_Request r[3];
    MPI_Op op;
    int v[8] = {rank, -1, 1, -1, 2 * rank, -1, 3, -1}, w[8];
    for (int i = 0; i < 8; i++) w[i] = -1;
    MPI_Comm_dup(MPI_COMM_WORLD, &c);
    MPI_Type_create_resized(MPI_INT, 0, 8, &spaced);
    MPI_Type_commit(&spaced);
    MPI_Op_create(sum, 1, &op);
    for (int i = 0; i < size; i++) {
      counts[i] = (i + rank) % 3 != 0;
      displs[i] = 8 * i;
      types[i] = counts[i] ? spaced : MPI_DATATYPE_NULL;
      in[2 * i] = 1000 * rank + i;
      out[2 * i] = -1;
    }
    MPI_Ialltoallw(in, counts, displs, types, out, counts, displs, types, c, &r[0]);
    MPI_Iallreduce(v, w, 4, spaced, op, c, &r[1]);
    MPI_Allreduce_init(v, w, 4, spaced, op, c, MPI_INFO_NULL, &r[2]);
    MPI_Type_free(&spaced);
    MPI_Op_free(&op);
    MPI_Comm_free(&c);
    /* what was freed may be made again at the same place */
    MPI_Type_contiguous(5, MPI_DOUBLE, &spaced);
    MPI_Type_commit(&spaced);
    MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
    for (int i = 0; i < size; i++) CHECK(out[2 * i] == (counts[i] ? 1000 * i + rank : -1));
    for (int again = 0; again < 2; again++) {
      CHECK(w[0] == size * (size - 1) / 2 && w[2] == size && w[4] == size * (size - 1) && w[6] == 3 * size &&
            w[7] == -1);
      w[0] = w[2] = w[4] = w[6] = 0;
      if (again) break;
      MPI_Start(&r[2]);
      MPI_Wait(&r[2], MPI_STATUS_IGNORE);
    }
    MPI_Request_free(&r[2]);
    MPI_Type_free(&spaced);
  }
  free(counts), free(displs), free(in), free(out), free(types);
  MPI_Finalize();
  return check_status();
}
