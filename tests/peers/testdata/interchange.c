/* interchange.c - one program for every MPI with the standard ABI: each step uses constants, handles, structs or callbacks
 * whose values are fixed by the standard, and checks the result. */
#include <mpi.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size;

#define CHECK(condition)                                                                                               \
  do {                                                                                                                 \
    if (!(condition)) {                                                                                                \
      fprintf(stderr, "interchange: rank %d: line %d: %s\n", rank, __LINE__, #condition);                              \
      MPI_Abort(MPI_COMM_WORLD, 3);                                                                                    \
    }                                                                                                                  \
  } while (0)

/* Statuses are written by the library and read by the program: MPI_SOURCE, MPI_TAG, MPI_ERROR, and the private words. */
static void statuses(void)
{
  int next = (rank + 1) % size, previous = (rank + size - 1) % size, count = 0, numbers[3] = {rank, 2 * rank, 3 * rank},
      got[5];
  MPI_Status st;
  MPI_Sendrecv(numbers, 3, MPI_INT, next, 17, got, 5, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &st);
  MPI_Get_count(&st, MPI_INT, &count);
  CHECK(st.MPI_SOURCE == previous && st.MPI_TAG == 17 && count == 3 && got[2] == 3 * previous);
  MPI_Recv(got, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &st);
  CHECK(st.MPI_SOURCE == MPI_PROC_NULL && st.MPI_TAG == MPI_ANY_TAG);
  MPI_Request r[2];
  MPI_Status both[2];
  MPI_Irecv(got, 5, MPI_INT, previous, 5, MPI_COMM_WORLD, &r[0]);
  MPI_Isend(numbers, 3, MPI_INT, next, 5, MPI_COMM_WORLD, &r[1]);
  MPI_Waitall(2, r, both);
  CHECK(both[0].MPI_SOURCE == previous && r[0] == MPI_REQUEST_NULL && r[1] == MPI_REQUEST_NULL);
}

/* Datatypes: predefined sizes, derived ones across the wire, large-count forms. */
static void datatypes(void)
{
  struct pair {
    char c;
    double d;
    int i[3];
  } out = {'a', 2.5 + rank, {rank, 1, 2}}, in;
  int lengths[3] = {1, 1, 3}, bytes;
  MPI_Aint at[3] = {offsetof(struct pair, c), offsetof(struct pair, d), offsetof(struct pair, i)}, lb, extent;
  MPI_Datatype types[3] = {MPI_CHAR, MPI_DOUBLE, MPI_INT}, made, resized;
  MPI_Count wide;
  memset(&in, 0, sizeof in);
  MPI_Type_create_struct(3, lengths, at, types, &made);
  MPI_Type_create_resized(made, 0, sizeof(struct pair), &resized);
  MPI_Type_commit(&resized);
  MPI_Type_size(resized, &bytes);
  MPI_Type_size_c(resized, &wide);
  MPI_Type_get_extent(resized, &lb, &extent);
  CHECK(bytes == 1 + 8 + 12 && wide == bytes && lb == 0 && extent == (MPI_Aint)sizeof(struct pair));
  MPI_Sendrecv(&out, 1, resized, (rank + 1) % size, 1, &in, 1, resized, (rank + size - 1) % size, 1, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  CHECK(in.c == 'a' && in.d == 2.5 + (rank + size - 1) % size && in.i[2] == 2);
  MPI_Type_free(&made);
  MPI_Type_free(&resized);
  CHECK(resized == MPI_DATATYPE_NULL);
  MPI_Type_size(MPI_INT64_T, &bytes);
  CHECK(bytes == 8);
}

static void multiply(void *in, void *inout, int *n, MPI_Datatype *type)
{
  if (*type != MPI_LONG) MPI_Abort(MPI_COMM_WORLD, 4);
  for (int i = 0; i < *n; i++) ((long *)inout)[i] *= ((long *)in)[i];
}

/* Collectives with MPI_IN_PLACE, predefined and user-defined operations. */
static void collectives(void)
{
  double sum = rank;
  long product = rank + 1, *all = malloc((size_t)size * sizeof(long)), want = 1;
  struct {
    int value, where;
  } best = {rank * rank, rank};
  MPI_Op op;
  MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  CHECK(sum == size * (size - 1) / 2.0);
  MPI_Op_create(multiply, 1, &op);
  MPI_Allreduce(MPI_IN_PLACE, &product, 1, MPI_LONG, op, MPI_COMM_WORLD);
  for (int i = 1; i <= size; i++) want *= i;
  CHECK(product == want);
  MPI_Op_free(&op);
  MPI_Allreduce(MPI_IN_PLACE, &best, 1, MPI_2INT, MPI_MAXLOC, MPI_COMM_WORLD);
  CHECK(best.where == size - 1);
  all[rank] = 7 * rank;
  MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, 1, MPI_LONG, MPI_COMM_WORLD);
  for (int i = 0; i < size; i++) CHECK(all[i] == 7 * i);
  MPI_Bcast(all, size, MPI_LONG, size - 1, MPI_COMM_WORLD);
  free(all);
  MPI_Barrier(MPI_COMM_WORLD);
}

static int deleted;

static int forget(MPI_Comm comm, int key, void *value, void *extra)
{
  (void)comm, (void)key;
  if (value == extra) deleted++;
  return MPI_SUCCESS;
}

static int handled;

static void handler(MPI_Comm *comm, int *code, ...)
{
  int class;
  MPI_Error_class(*code, &class);
  if (*comm != MPI_COMM_NULL && class == MPI_ERR_RANK) handled++;
}

/* Communicators, groups, attributes, error handlers and error classes. */
static void objects(void)
{
  MPI_Comm half, same;
  MPI_Group all, some;
  MPI_Errhandler eh;
  int key, *top, flag, result, text_length, ranks[1] = {0}, x = 0;
  char text[MPI_MAX_ERROR_STRING];
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &top, &flag);
  CHECK(flag && *top >= 32767);
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2 ? 1 : MPI_UNDEFINED, -rank, &half);
  CHECK((half == MPI_COMM_NULL) == (rank % 2 == 0));
  if (half != MPI_COMM_NULL) MPI_Comm_free(&half);
  MPI_Comm_dup(MPI_COMM_WORLD, &same);
  MPI_Comm_compare(MPI_COMM_WORLD, same, &result);
  CHECK(result == MPI_CONGRUENT);
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, forget, &key, &deleted);
  MPI_Comm_set_attr(same, key, &deleted);
  MPI_Comm_create_errhandler(handler, &eh);
  MPI_Comm_set_errhandler(same, eh);
  MPI_Send(&x, 1, MPI_INT, size + 5, 0, same);
  CHECK(handled == 1); /* what a call returns after a handler that returned differs between libraries */
  MPI_Comm_set_errhandler(same, MPI_ERRORS_RETURN);
  MPI_Error_class(MPI_Send(&x, 1, MPI_INT, size + 5, 0, same), &result);
  CHECK(result == MPI_ERR_RANK);
  MPI_Error_string(MPI_ERR_TRUNCATE, text, &text_length);
  CHECK(text_length > 0 && text_length < MPI_MAX_ERROR_STRING);
  MPI_Errhandler_free(&eh);
  MPI_Comm_free(&same);
  CHECK(deleted == 1 && same == MPI_COMM_NULL);
  MPI_Comm_free_keyval(&key);
  MPI_Comm_group(MPI_COMM_WORLD, &all);
  MPI_Group_incl(all, 1, ranks, &some);
  MPI_Group_rank(some, &result);
  CHECK(result == (rank == 0 ? 0 : MPI_UNDEFINED));
  MPI_Group_free(&all);
  MPI_Group_free(&some);
}

int main(int argc, char **argv)
{
  int provided;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  CHECK(provided >= MPI_THREAD_SINGLE && provided <= MPI_THREAD_MULTIPLE);
  statuses();
  datatypes();
  collectives();
  objects();
  printf("interchange: rank %d of %d ok\n", rank, size);
  MPI_Finalize();
  return 0;
}
