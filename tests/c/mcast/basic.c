/* Multicasts as one reads of them: received by plain receives and probes, by rank or MPI_ANY_SOURCE, with the master inside and outside of
 * its set, an empty set, short and long messages, persistent and nonblocking. */
// run: n=1,2,3,5,8 n.few=1,2,5
// run: n=4 env="SPX_TRANSPORTS=tcp"
// run: n=4 env="SPX_CMA=0"
#include <mpi-ext.h>
#include <stdlib.h>
#include <string.h>
#include "../check.h"

#define MUST(call) CHECK_CLASS(call, MPI_SUCCESS)

static int me, size;

static char byte_of(int i, int salt) { return (char)(i * 7 + salt * 13 + i / 251); }

static char *filled(int n, int salt)
{
  char *b = malloc((size_t)n + 1);
  for (int i = 0; i < n; i++) b[i] = byte_of(i, salt);
  return b;
}

static int right(const char *b, int n, int salt)
{
  for (int i = 0; i < n; i++)
    if (b[i] != byte_of(i, salt)) return 0;
  return 1;
}

/* All but the master if outside, received by plain receives. */
static void one(int n, int master, int inside, int how, int salt)
{
  MPI_Status st;
  int ranks[64], k = 0, count;
  for (int r = 0; r < size; r++)
    if (inside || r != master) ranks[k++] = r;
  char *got = malloc((size_t)n + 1);
  if (me == master) {
    MPIX_Rankset set;
    MPI_Request r = MPI_REQUEST_NULL, own = MPI_REQUEST_NULL;
    MUST(MPIX_Rankset_incl(MPI_COMM_WORLD, k, ranks, &set));
    char *b = filled(n, salt);
    if (inside) MUST(MPI_Irecv(got, n, MPI_BYTE, MPI_ANY_SOURCE, salt, MPI_COMM_WORLD, &own));
    switch (how % 5) {
    case 0: MUST(MPIX_Mcast(b, n, MPI_BYTE, set, salt, MPI_COMM_WORLD)); break;
    case 1: MUST(MPIX_Imcast(b, n, MPI_BYTE, set, salt, MPI_COMM_WORLD, &r)); break;
    case 2: MUST(MPIX_Smcast(b, n, MPI_BYTE, set, salt, MPI_COMM_WORLD)); break;
    case 3: MUST(MPIX_Ismcast(b, n, MPI_BYTE, set, salt, MPI_COMM_WORLD, &r)); break;
    default: MUST(MPIX_Mcast_init(b, n, MPI_BYTE, set, salt, MPI_COMM_WORLD, MPI_INFO_NULL, &r)); MUST(MPI_Start(&r));
    }
    MUST(MPIX_Rankset_free(&set)); /* what is on its way keeps it */
    MUST(MPI_Wait(&r, &st));
    if (r != MPI_REQUEST_NULL) MUST(MPI_Request_free(&r));
    free(b);
    if (inside) {
      MUST(MPI_Wait(&own, &st));
      CHECK(st.MPI_SOURCE == master && right(got, n, salt));
    }
  } else {
    int from = how & 1 ? MPI_ANY_SOURCE : master,
        tag = (how & 3) == 2 ? MPI_ANY_TAG : salt; /* masters are not in order among themselves */
    if (how & 4) {
      MPI_Message m;
      MUST(MPI_Mprobe(from, tag, MPI_COMM_WORLD, &m, &st));
      MPI_Get_count(&st, MPI_BYTE, &count);
      CHECK(count == n);
      MUST(MPI_Mrecv(got, n, MPI_BYTE, &m, &st));
    } else {
      if (how & 8) {
        MUST(MPI_Probe(from, tag, MPI_COMM_WORLD, &st));
        MPI_Get_count(&st, MPI_BYTE, &count);
        CHECK(count == n && st.MPI_TAG == salt);
      }
      MUST(MPI_Recv(got, n, MPI_BYTE, from, tag, MPI_COMM_WORLD, &st));
    }
    MPI_Get_count(&st, MPI_BYTE, &count);
    CHECK(st.MPI_SOURCE == master && st.MPI_TAG == salt && count == n);
    CHECK(right(got, n, salt));
  }
  free(got);
}

/* Data that are not contiguous, at both ends. */
static void strided(void)
{
  enum { N = 30000 };
  MPI_Datatype every_other;
  int *b = calloc(2 * N, sizeof *b), zero = 0, range[1][3] = {{0, size - 1, 1}};
  MPI_Type_vector(N, 1, 2, MPI_INT, &every_other);
  MPI_Type_commit(&every_other);
  if (me == 0) {
    MPIX_Rankset all, self, others;
    MUST(MPIX_Rankset_range_incl(MPI_COMM_WORLD, 1, range, &all));
    MUST(MPIX_Rankset_incl(MPI_COMM_WORLD, 1, &zero, &self));
    MUST(MPIX_Rankset_difference(all, self, &others));
    for (int i = 0; i < 2 * N; i++) b[i] = i;
    MUST(MPIX_Mcast(b, 1, every_other, others, 5, MPI_COMM_WORLD));
    MUST(MPIX_Mcast(b, 10, MPI_INT, others, 6, MPI_COMM_WORLD));
    MUST(MPIX_Rankset_free(&all));
    MUST(MPIX_Rankset_free(&self));
    MUST(MPIX_Rankset_free(&others));
  } else {
    MUST(MPI_Recv(b, 1, every_other, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    for (int i = 0; i < 2 * N; i++) CHECK(b[i] == (i % 2 ? 0 : i));
    CHECK_CLASS(MPI_Recv(b, 3, MPI_INT, 0, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE), MPI_ERR_TRUNCATE);
    CHECK(b[0] == 0 && b[2] == 2 && b[3] == 0);
  }
  MPI_Type_free(&every_other);
  free(b);
}

int main(int argc, char **argv)
{
  static const int sizes[] = {0, 1, 8, 33, 1000, 8000, 16300, 16384, 16385, 80000, 3000000};
  MPI_Init(&argc, &argv);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  int salt = 0;
  for (int i = 0; i < 11; i++)
    for (int how = 0; how < 16; how++) one(sizes[i], (i + how) % size, (i + how / 2) % 2, how, ++salt);
  strided();
  MPI_Request gone; /* freed at once: it goes on, and MPI_Finalize waits for it */
  char *last = filled(300000, 77);
  if (me == 0) {
    int range[1][3] = {{0, size - 1, 1}};
    MPIX_Rankset all;
    MUST(MPIX_Rankset_range_incl(MPI_COMM_WORLD, 1, range, &all));
    MUST(MPIX_Imcast(last, 300000, MPI_BYTE, all, 77, MPI_COMM_WORLD, &gone));
    MUST(MPI_Request_free(&gone));
    MUST(MPIX_Rankset_free(&all));
  }
  char *got = calloc(1, 300000);
  MUST(MPI_Recv(got, 300000, MPI_BYTE, 0, 77, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  CHECK(right(got, 300000, 77));
  free(got);
  MPIX_Rankset none;
  MUST(MPIX_Rankset_incl(MPI_COMM_WORLD, 0, NULL, &none));
  MUST(MPIX_Mcast(&salt, 1, MPI_INT, none, 1, MPI_COMM_WORLD));
  MUST(MPIX_Smcast(&salt, 1, MPI_INT, none, 1, MPI_COMM_WORLD));
  MUST(MPIX_Rankset_free(&none));
  MPI_Finalize();
  free(last);
  return check_status();
}
