/* Arguments that are not significant may be anything (MPI-5.0, 6.5 to 6.9): away from the root, and with MPI_IN_PLACE. NULL is
 * a buffer when nothing is in it, or when a datatype is made of addresses. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define MUST(call)                                                                                                     \
  do {                                                                                                                 \
    int code_ = (call);                                                                                                \
    if (code_ != MPI_SUCCESS) {                                                                                        \
      char text[MPI_MAX_ERROR_STRING];                                                                                 \
      int len;                                                                                                         \
      MPI_Error_string(code_, text, &len);                                                                             \
      printf("rank %d, line %d: %s\n", rank, __LINE__, text);                                                          \
      bad = 1;                                                                                                         \
    }                                                                                                                  \
  } while (0)
#define IS(a, b)                                                                                                       \
  do {                                                                                                                 \
    if ((a) != (b)) printf("rank %d, line %d: %s is %d, not %d\n", rank, __LINE__, #a, (int)(a), (int)(b)), bad = 1;   \
  } while (0)

static int rank, size, bad;
static const int nothing = -5; /* a count that must not be looked at */

static void away_from_the_root(void)
{
  int mine = rank + 1, all[16] = {0}, counts[16], displs[16], root = 1, sum = 0;
  for (int i = 0; i < size; i++) counts[i] = 1, displs[i] = i;
  if (rank == root) {
    MUST(MPI_Gather(&mine, 1, MPI_INT, all, 1, MPI_INT, root, MPI_COMM_WORLD));
    MUST(MPI_Gatherv(&mine, 1, MPI_INT, all, counts, displs, MPI_INT, root, MPI_COMM_WORLD));
    for (int i = 0; i < size; i++) IS(all[i], i + 1);
    MUST(MPI_Scatter(all, 1, MPI_INT, &mine, 1, MPI_INT, root, MPI_COMM_WORLD));
    MUST(MPI_Scatterv(all, counts, displs, MPI_INT, &mine, 1, MPI_INT, root, MPI_COMM_WORLD));
    MUST(MPI_Reduce(&mine, &sum, 1, MPI_INT, MPI_SUM, root, MPI_COMM_WORLD));
    IS(sum, size * (size + 1) / 2);
  } else {
    MUST(MPI_Gather(&mine, 1, MPI_INT, NULL, nothing, MPI_DATATYPE_NULL, root, MPI_COMM_WORLD));
    MUST(MPI_Gatherv(&mine, 1, MPI_INT, NULL, NULL, NULL, MPI_DATATYPE_NULL, root, MPI_COMM_WORLD));
    MUST(MPI_Scatter(NULL, nothing, MPI_DATATYPE_NULL, &mine, 1, MPI_INT, root, MPI_COMM_WORLD));
    MUST(MPI_Scatterv(NULL, NULL, NULL, MPI_DATATYPE_NULL, &mine, 1, MPI_INT, root, MPI_COMM_WORLD));
    MUST(MPI_Reduce(&mine, NULL, 1, MPI_INT, MPI_SUM, root, MPI_COMM_WORLD));
  }
  IS(mine, rank + 1);
}

static void in_place(void)
{
  int all[16], root = 0, sum = rank + 1, counts[16], displs[16];
  MPI_Datatype types[16];
  for (int i = 0; i < size; i++) all[i] = rank + 1, counts[i] = 1, displs[i] = i * (int)sizeof(int), types[i] = MPI_INT;
  MUST(MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
  IS(sum, size * (size + 1) / 2);
  MUST(MPI_Allgather(MPI_IN_PLACE, nothing, MPI_DATATYPE_NULL, all, 1, MPI_INT, MPI_COMM_WORLD));
  for (int i = 0; i < size; i++) IS(all[i], i + 1);
  MUST(MPI_Alltoallw(MPI_IN_PLACE, NULL, NULL, NULL, all, counts, displs, types, MPI_COMM_WORLD));
  for (int i = 0; i < size; i++) IS(all[i], rank + 1);
  if (rank == root) {
    MUST(MPI_Gather(MPI_IN_PLACE, nothing, MPI_DATATYPE_NULL, all, 1, MPI_INT, root, MPI_COMM_WORLD));
    MUST(MPI_Scatter(all, 1, MPI_INT, MPI_IN_PLACE, nothing, MPI_DATATYPE_NULL, root, MPI_COMM_WORLD));
  } else {
    MUST(MPI_Gather(&all[rank], 1, MPI_INT, NULL, 0, MPI_DATATYPE_NULL, root, MPI_COMM_WORLD));
    MUST(MPI_Scatter(NULL, 0, MPI_DATATYPE_NULL, &all[rank], 1, MPI_INT, root, MPI_COMM_WORLD));
  }
  int away = MPI_Gather(MPI_IN_PLACE, 1, MPI_INT, all, 1, MPI_INT, rank ? 0 : 1, MPI_COMM_SELF), class;
  MPI_Error_class(away, &class);
  IS(class, rank ? MPI_SUCCESS : MPI_ERR_ROOT);
}

static void null_buffers(void)
{
  int value = 7, got = 0, one = 1, zeros[16] = {0};
  MPI_Aint address;
  MPI_Datatype absolute, types[16];
  for (int i = 0; i < size; i++) types[i] = MPI_DATATYPE_NULL;
  MUST(MPI_Bcast(NULL, 0, MPI_INT, 0, MPI_COMM_WORLD));
  MUST(MPI_Allgather(NULL, 0, MPI_INT, NULL, 0, MPI_INT, MPI_COMM_WORLD));
  MUST(MPI_Alltoallv(NULL, zeros, zeros, MPI_INT, NULL, zeros, zeros, MPI_INT, MPI_COMM_WORLD));
  MUST(MPI_Alltoallw(NULL, zeros, zeros, types, NULL, zeros, zeros, types, MPI_COMM_WORLD));
  MUST(MPI_Send(NULL, 0, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD));
  MPI_Get_address(&value, &address);
  MUST(MPI_Type_create_hindexed(1, &one, &address, MPI_INT, &absolute));
  MUST(MPI_Type_commit(&absolute));
  MUST(MPI_Sendrecv(MPI_BOTTOM, 1, absolute, (rank + 1) % size, 3, &got, 1, MPI_INT, (rank + size - 1) % size, 3,
                    MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  IS(got, 7);
  MUST(MPI_Type_free(&absolute));
}

/* The groups talk to each other: MPI_ROOT and MPI_PROC_NULL are roots, and MPI_IN_PLACE has no meaning. */
static void between_groups(void)
{
  MPI_Comm half, inter;
  int value = rank == 0 ? 42 : 0, class;
  MUST(MPI_Comm_split(MPI_COMM_WORLD, rank > 0, rank, &half));
  MUST(MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, rank > 0 ? 0 : 1, 9, &inter));
  MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN);
  MUST(MPI_Bcast(&value, 1, MPI_INT, rank > 0 ? 0 : MPI_ROOT, inter));
  IS(value, 42);
  if (rank > 0) {
    MUST(MPI_Bcast(&value, 1, MPI_INT, rank == 1 ? MPI_ROOT : MPI_PROC_NULL, inter));
  } else {
    MUST(MPI_Bcast(&value, 1, MPI_INT, 0, inter));
  }
  MPI_Error_class(MPI_Bcast(&value, 1, MPI_INT, size, inter), &class);
  IS(class, MPI_ERR_ROOT);
  MPI_Error_class(MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_INT, MPI_SUM, inter), &class);
  IS(class, MPI_ERR_BUFFER);
  MPI_Error_class(MPI_Send(&value, 1, MPI_INT, rank > 0 ? 1 : size - 1, 0, inter), &class);
  IS(class, MPI_ERR_RANK);
  MUST(MPI_Comm_free(&inter));
  MUST(MPI_Comm_free(&half));
}

int main(int argc, char **argv)
{
  MPI_Init(&argc, &argv);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  away_from_the_root();
  in_place();
  null_buffers();
  between_groups();
  MPI_Finalize();
  return bad;
}
