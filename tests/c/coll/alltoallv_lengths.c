/* MPI_Alltoallv whose counts do not match: the receiver gets MPI_ERR_TRUNCATE with a text that names both ranks and both lengths, nobody waits for
 * ever, all other blocks arrive, and the communicator works on. Lengths about the one at which blocks go as messages.
 * MPI-5.0 6.8 (counts and types of both ends must match). */
// run: n=2,5 args=both env=SPX_COLL_ALLTOALLV=shared timeout=60
// run: n=5 args=both env=SPX_COLL_ALLTOALLV=shared env=SPX_CMA=0 timeout=60
// run: n=5 timeout=60
// run: n=3 env=SPX_COLL_ALLTOALLV=linear timeout=60
// run: n=16 args=both env=SPX_TRANSPORTS=tcp env=SPX_CONNECTIONS=topology:1 env=SPX_TOPOLOGY=groups:4 timeout=60
#include "../check.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 300000 };
static int rank, size;
static int both; /* the text names both ranks and lengths */
static char *in, *out;
static int scounts[16], rcounts[16], displs[16];

static char value(int from, int to, int i) { return (char)(from * 31 + to * 7 + i * 13); }

static void prepare(int n)
{
  for (int i = 0; i < size; i++) {
    scounts[i] = rcounts[i] = n;
    displs[i] = i * BLOCK;
    for (int k = 0; k < BLOCK; k++) in[i * BLOCK + k] = value(rank, i, k);
  }
  memset(out, 0x55, (size_t)size * BLOCK);
}

static int run(MPI_Comm c, int nonblocking)
{
  MPI_Request r;
  if (!nonblocking) return MPI_Alltoallv(in, scounts, displs, MPI_CHAR, out, rcounts, displs, MPI_CHAR, c);
  int err = MPI_Ialltoallv(in, scounts, displs, MPI_CHAR, out, rcounts, displs, MPI_CHAR, c, &r);
  return err == MPI_SUCCESS ? MPI_Wait(&r, MPI_STATUS_IGNORE) : err;
}

/* All blocks, but that of one rank. */
static void arrived(int but, int n)
{
  int wrong = 0;
  for (int i = 0; i < size; i++)
    for (int k = 0; k < n && i != but; k++)
      if (out[i * BLOCK + k] != value(i, rank, k)) wrong++;
  CHECK(wrong == 0);
}

/* Rank 0 sends `sent` bytes to the last rank, which expects `expected`; all others exchange n. */
static void mismatch(MPI_Comm c, int n, int sent, int expected, int nonblocking)
{
  int last = size - 1;
  prepare(n);
  if (rank == 0) scounts[last] = sent;
  if (rank == last) rcounts[0] = expected;
  int err = run(c, nonblocking);
  if (rank != last) {
    CHECK_CLASS(err, MPI_SUCCESS);
    arrived(-1, n);
    return;
  }
  char text[MPI_MAX_ERROR_STRING], want[128];
  int len;
  CHECK_CLASS(err, MPI_ERR_TRUNCATE);
  MPI_Error_string(err, text, &len);
  strcpy(want, "rank 0");
  if (both)
    snprintf(want, sizeof want, "rank 0 sends %d bytes to rank %d, which expects %d bytes", sent, last, expected);
  if (!strstr(text, want)) fprintf(stderr, "the text is \"%s\", not \"%s\"\n", text, want);
  CHECK(strstr(text, want) != NULL);
  arrived(0, n);
  int beyond = 0;
  for (int k = expected; k < BLOCK; k++) beyond += out[k] != 0x55;
  CHECK(beyond == 0);
}

int main(int argc, char **argv)
{
  MPI_Init(&argc, &argv);
  both = argc > 1 && strcmp(argv[1], "both") == 0;
  MPI_Comm c;
  MPI_Comm_dup(MPI_COMM_WORLD, &c);
  MPI_Comm_rank(c, &rank);
  MPI_Comm_size(c, &size);
  MPI_Comm_set_errhandler(c, MPI_ERRORS_RETURN);
  in = malloc((size_t)size * BLOCK);
  out = malloc((size_t)size * BLOCK);
  static const int lengths[] = {8, 24, 4000, 20000, 200000, BLOCK};
  enum { N = sizeof lengths / sizeof *lengths };
  for (int i = 0; i < N; i++)
    for (int k = 0; k < N; k++)
      for (int nonblocking = 0; nonblocking < 2 && i != k; nonblocking++)
        mismatch(c, lengths[(i + k) % 4], lengths[i], lengths[k], nonblocking);
  prepare(1000);
  CHECK_CLASS(run(c, 0), MPI_SUCCESS);
  arrived(-1, 1000);
  MPI_Comm_free(&c);
  MPI_Finalize();
  return check_status();
}
