/* partitioned sends and receives with other partitions on the two sides, other datatypes, eager and large
 * partitions, several iterations, ready in any order; several operations of one envelope match in order of initialization. */
// run: n=2
// run: n=2 env="SPX_CMA=0"
#include <stdlib.h>
#include <string.h>
#include "../check.h"

#define TAG 7
static int rank;

static double value(int iteration, long i) { return iteration * 1e6 + (double)i; }

/* order: 0 one by one, 1 backwards, 2 ranges, 3 a list with odd partitions first */
static void make_ready(MPI_Request r, int n, int order)
{
  int *list = malloc((size_t)n * sizeof *list), k = 0;
  switch (order) {
  case 0:
    for (int i = 0; i < n; i++) MPI_Pready(i, r);
    break;
  case 1:
    for (int i = n - 1; i >= 0; i--) MPI_Pready(i, r);
    break;
  case 2:
    MPI_Pready_range(n / 2, n - 1, r);
    if (n > 1) MPI_Pready_range(0, n / 2 - 1, r);
    break;
  default:
    for (int i = 1; i < n; i += 2) list[k++] = i;
    for (int i = 0; i < n; i += 2) list[k++] = i;
    MPI_Pready_list(k, list, r);
  }
  free(list);
}

static void await_partitions(MPI_Request r, const double *buf, int parts, long each, int iteration)
{
  for (int p = parts - 1; p >= 0; p--) {
    int here = 0;
    while (!here) MPI_Parrived(r, p, &here);
    CHECK(each == 0 || buf[p * each] == value(iteration, p * each));
    CHECK(each == 0 || buf[p * each + each - 1] == value(iteration, p * each + each - 1));
  }
}

static void exchange(int sparts, int rparts, long total)
{
  double *buf = malloc((size_t)(total + 1) * sizeof *buf);
  MPI_Request r;
  if (rank == 0)
    MPI_Psend_init(buf, sparts, total / sparts, MPI_DOUBLE, 1, TAG, MPI_COMM_WORLD, MPI_INFO_NULL, &r);
  else
    MPI_Precv_init(buf, rparts, total / rparts, MPI_DOUBLE, 0, TAG, MPI_COMM_WORLD, MPI_INFO_NULL, &r);
  for (int it = 0; it < 6; it++) {
    MPI_Status st;
    for (long i = 0; i < total; i++) buf[i] = rank == 0 ? value(it, i) : -1;
    MPI_Start(&r);
    if (rank == 0)
      make_ready(r, sparts, it % 4);
    else if (it & 1)
      await_partitions(r, buf, rparts, total / rparts, it);
    if (it < 3)
      MPI_Wait(&r, &st);
    else
      for (int done = 0; !done;) MPI_Test(&r, &done, &st);
    if (rank == 1) {
      int n = -1;
      long wrong = 0;
      for (long i = 0; i < total; i++) wrong += buf[i] != value(it, i);
      CHECK(wrong == 0);
      MPI_Get_count(&st, MPI_DOUBLE, &n);
      CHECK(n == total && st.MPI_SOURCE == 0 && st.MPI_TAG == TAG);
    }
  }
  MPI_Request_free(&r);
  CHECK(r == MPI_REQUEST_NULL);
  free(buf);
}

/* A column of a matrix is sent in 3 partitions of 4 columns' parts; the receiver has 4 partitions of 3 pairs (int, int). */
static void other_types(void)
{
  enum { N = 24 };
  int data[2 * N], got[3 * N];
  MPI_Datatype every_other, pair;
  MPI_Type_vector(4, 1, 2, MPI_INT, &every_other);
  MPI_Type_create_resized(every_other, 0, 8 * (MPI_Aint)sizeof(int), &every_other);
  MPI_Type_commit(&every_other);
  MPI_Type_create_resized(MPI_2INT, 0, 3 * (MPI_Aint)sizeof(int), &pair);
  MPI_Type_commit(&pair);
  for (int i = 0; i < 2 * N; i++) data[i] = i % 2 ? -1 : i / 2;
  memset(got, 0xff, sizeof got);
  MPI_Request r;
  /* 3 partitions of 2 elements of 4 ints = 24 ints; 4 of 3 pairs = 24 ints: 32 bytes against 24: no common borders */
  if (rank == 0)
    MPI_Psend_init(data, 3, 2, every_other, 1, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &r);
  else
    MPI_Precv_init(got, 4, 3, pair, 0, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &r);
  for (int it = 0; it < 3; it++) {
    MPI_Start(&r);
    if (rank == 0) make_ready(r, 3, it);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    for (int i = 0; rank == 1 && i < 12; i++) {
      CHECK(got[3 * i] == 2 * i && got[3 * i + 1] == 2 * i + 1 && got[3 * i + 2] == -1);
      got[3 * i] = got[3 * i + 1] = -2;
    }
  }
  MPI_Request_free(&r);
  MPI_Type_free(&every_other);
  MPI_Type_free(&pair);
}

/* Elements of 12 bytes with a gap behind, received in messages of 8 bytes: they do not end with an element. */
static void cut_elements(void)
{
  enum { N = 8 };
  int data[3 * N], got[4 * N];
  MPI_Datatype three;
  MPI_Type_contiguous(3, MPI_INT, &three);
  MPI_Type_create_resized(three, 0, 4 * (MPI_Aint)sizeof(int), &three);
  MPI_Type_commit(&three);
  for (int i = 0; i < 3 * N; i++) data[i] = i;
  memset(got, 0xff, sizeof got);
  MPI_Request r;
  if (rank == 0)
    MPI_Psend_init(data, 3 * N / 2, 2, MPI_INT, 1, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &r);
  else
    MPI_Precv_init(got, N / 2, 2, three, 0, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &r);
  MPI_Start(&r);
  if (rank == 0) make_ready(r, 3 * N / 2, 3);
  for (int p = 0, here = 0; rank == 1 && p < N / 2; p++, here = 0) {
    while (!here) MPI_Parrived(r, p, &here);
    CHECK(got[8 * p] == 6 * p && got[8 * p + 2] == 6 * p + 2 && got[8 * p + 3] == -1 && got[8 * p + 6] == 6 * p + 5);
  }
  MPI_Wait(&r, MPI_STATUS_IGNORE);
  MPI_Request_free(&r);
  MPI_Type_free(&three);
}

/* Three operations of one envelope; the receiver starts them in the reverse order. */
static void one_envelope(void)
{
  int a[3][4], order[3] = {2, 0, 1};
  MPI_Request r[3];
  for (int k = 0; k < 3; k++)
    if (rank == 0)
      MPI_Psend_init(a[k], 2, 2, MPI_INT, 1, 3, MPI_COMM_WORLD, MPI_INFO_NULL, &r[k]);
    else
      MPI_Precv_init(a[k], 4, 1, MPI_INT, 0, 3, MPI_COMM_WORLD, MPI_INFO_NULL, &r[k]);
  for (int it = 0; it < 3; it++) {
    for (int k = 0; k < 3; k++)
      for (int i = 0; i < 4; i++) a[k][i] = rank == 0 ? 100 * it + 10 * k + i : -1;
    if (rank == 0) {
      MPI_Startall(3, r);
      for (int k = 0; k < 3; k++) make_ready(r[order[k]], 2, it);
    } else
      for (int k = 2; k >= 0; k--) MPI_Start(&r[k]);
    MPI_Waitall(3, r, MPI_STATUSES_IGNORE);
    for (int k = 0; k < 3; k++)
      for (int i = 0; i < 4; i++) CHECK(a[k][i] == 100 * it + 10 * k + i);
  }
  for (int k = 0; k < 3; k++) MPI_Request_free(&r[k]);
}

/* Plain messages of the same envelope are no business of partitioned ones; a partition that is ready arrives although others
 * are not. */
static void among_others(void)
{
  int a[2] = {1, 2}, plain = 5;
  MPI_Request r;
  if (rank == 0) {
    MPI_Psend_init(a, 2, 1, MPI_INT, 1, 9, MPI_COMM_WORLD, MPI_INFO_NULL, &r);
    MPI_Start(&r);
    MPI_Pready(1, r);
    MPI_Send(&plain, 1, MPI_INT, 1, 9, MPI_COMM_WORLD);
    MPI_Recv(&plain, 1, MPI_INT, 1, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Pready(0, r);
  } else {
    int got = 0, here = 0;
    MPI_Precv_init(a, 2, 1, MPI_INT, 0, 9, MPI_COMM_WORLD, MPI_INFO_NULL, &r);
    a[0] = a[1] = 0;
    MPI_Start(&r);
    MPI_Recv(&got, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(got == 5);
    while (!here) MPI_Parrived(r, 1, &here);
    CHECK(a[1] == 2);
    MPI_Parrived(r, 0, &here);
    CHECK(!here);
    MPI_Send(&got, 1, MPI_INT, 0, 9, MPI_COMM_WORLD);
  }
  MPI_Wait(&r, MPI_STATUS_IGNORE);
  CHECK(a[0] == 1 && a[1] == 2);
  MPI_Request_free(&r);
}

int main(int argc, char **argv)
{
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  exchange(1, 1, 64);
  exchange(8, 8, 64);
  exchange(6, 4, 24);
  exchange(1, 16, 64);
  exchange(16, 1, 64);
  exchange(4, 6, 12 << 15);
  exchange(9000, 3, 9000); /* more partitions than messages */
  exchange(3, 9000, 9000);
  exchange(2, 5, 400000);
  exchange(3, 7, 0);
  other_types();
  cut_elements();
  one_envelope();
  among_others();
  MPI_Finalize();
  return check_status();
}
