/* Datatypes in messages: random types on one side, bytes or the same type on the other, from empty to many megabytes, so that
 * every protocol meets layouts; types that are freed while messages with them are on their way. MPI-5.0, 5.1.9 and 5.1.11. */
// run: n=2 timeout=60
#include "typemap.h"

static int rank;

/* Both ranks make the same type from the same seed; rank 0 sends its area, rank 1 receives. */
static void random_messages(unsigned s, int64_t max)
{
  reseed(s);
  sample *t = random_type((int)between(0, 3));
  MPI_Type_commit(&t->t);
  int64_t size = map_bounds(&t->m).size, count = between(0, size ? max / size + 1 : 3);
  int as_bytes = (int)(rnd() % 3); /* 1: sent as bytes, 2: received as bytes */
  int64_t *at = malloc((size_t)(count * size + 1) * sizeof *at);
  area full = area_for(t, count), target = area_for(t, count);
  int64_t n = area_bytes(&full, t, count, at);
  unsigned char *packed = malloc((size_t)n + 1);
  for (int64_t i = 0; i < n; i++) packed[i] = full.mem[at[i]];
  if (rank == 0) {
    if (as_bytes == 1)
      MPI_Send(packed, (int)n, MPI_BYTE, 1, 5, MPI_COMM_WORLD);
    else
      MPI_Send(area_address(&full), (int)count, t->t, 1, 5, MPI_COMM_WORLD);
  } else {
    MPI_Status st;
    MPI_Count got;
    unsigned char *bytes = malloc((size_t)n + 1), *before = area_copy(&target);
    if (as_bytes == 2) {
      MPI_Recv(bytes, (int)n, MPI_BYTE, 0, 5, MPI_COMM_WORLD, &st);
      CHECK(memcmp(bytes, packed, (size_t)n) == 0);
    } else {
      MPI_Recv(area_address(&target), (int)count, t->t, 0, 5, MPI_COMM_WORLD, &st);
      CHECK(area_received(&target, before, at, packed, n));
    }
    MPI_Get_elements_c(&st, MPI_BYTE, &got);
    CHECK(got == n);
    free(bytes), free(before);
  }
  free(packed), free(at), free(full.mem), free(target.mem);
  free_type(t);
}

/* Columns of a matrix become rows. */
static void transpose(int n)
{
  MPI_Datatype column, columns;
  MPI_Type_vector(n, 1, n, MPI_DOUBLE, &column);
  MPI_Type_create_resized(column, 0, sizeof(double), &columns);
  MPI_Type_commit(&columns);
  double *a = malloc(sizeof *a * (size_t)n * (size_t)n), *b = malloc(sizeof *b * (size_t)n * (size_t)n);
  for (int i = 0; i < n * n; i++) a[i] = i, b[i] = -1;
  if (rank == 0)
    MPI_Send(a, n, columns, 1, 6, MPI_COMM_WORLD);
  else
    MPI_Recv(b, n * n, MPI_DOUBLE, 0, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Type_free(&column);
  MPI_Type_free(&columns);
  for (int i = 0; rank == 1 && i < n; i++)
    for (int j = 0; j < n; j++) CHECK(b[i * n + j] == a[j * n + i]);
  free(a), free(b);
}

/* MPI_Type_free while an operation with the type is pending; other types take its place meanwhile. */
static void freed_in_flight(void)
{
  enum { N = 200000 };
  int *a = malloc(2 * N * sizeof *a);
  for (int i = 0; i < 2 * N; i++) a[i] = rank ? -1 : i;
  MPI_Datatype t, other[10];
  MPI_Request r;
  MPI_Type_vector(N, 1, 2, MPI_INT, &t);
  MPI_Type_commit(&t);
  if (rank == 0)
    MPI_Isend(a, 1, t, 1, 7, MPI_COMM_WORLD, &r);
  else
    MPI_Irecv(a, 1, t, 0, 7, MPI_COMM_WORLD, &r);
  MPI_Type_free(&t);
  for (int i = 0; i < 10; i++) {
    MPI_Type_contiguous(i + 1, MPI_CHAR, &other[i]);
    MPI_Type_commit(&other[i]);
  }
  MPI_Wait(&r, MPI_STATUS_IGNORE);
  for (int i = 0; i < 10; i++) MPI_Type_free(&other[i]);
  for (int i = 0; i < 2 * N; i++) CHECK(a[i] == (i % 2 && rank ? -1 : i));
  free(a);
}

/* MPI_BOTTOM and a type made of addresses. */
static void absolute(void)
{
  int x[3] = {rank ? 0 : 11, -1, rank ? 0 : 22};
  double y = rank ? 0 : 3.5;
  MPI_Aint at[3];
  int lens[3] = {1, 1, 1};
  MPI_Datatype types[3] = {MPI_INT, MPI_INT, MPI_DOUBLE}, t;
  MPI_Get_address(&x[0], &at[0]);
  MPI_Get_address(&x[2], &at[1]);
  MPI_Get_address(&y, &at[2]);
  MPI_Type_create_struct(3, lens, at, types, &t);
  MPI_Type_commit(&t);
  if (rank == 0)
    MPI_Send(MPI_BOTTOM, 1, t, 1, 8, MPI_COMM_WORLD);
  else
    MPI_Recv(MPI_BOTTOM, 1, t, 0, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  CHECK(x[0] == 11 && x[1] == -1 && x[2] == 22 && y == 3.5);
  MPI_Type_free(&t);
}

int main(int argc, char **argv)
{
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (unsigned s = 1; s <= 300; s++) random_messages(s, 2000);
  for (unsigned s = 301; s <= 400; s++) random_messages(s, 200000);
  for (unsigned s = 401; s <= 406; s++) random_messages(s, 3000000);
  transpose(3);
  transpose(700);
  freed_in_flight();
  absolute();
  MPI_Finalize();
  return 0;
}
