/* Long messages that the kernel is told to send out of the buffers (SPX_ZEROCOPY). Between processes of one machine it copies all the same, and says so: a connection that is left to itself stops. Each buffer is written to as soon
 * as its send is over, and what is received is what was sent: by blocking, nonblocking, persistent, synchronous and partitioned sends, of contiguous data and not. */
// run: n=2,3 args="off" env=SPX_TRANSPORTS=tcp env=SPX_ZEROCOPY=off timeout=60
// run: n=2,3 args="auto" env=SPX_TRANSPORTS=tcp env=SPX_ZEROCOPY=auto timeout=60
// run: n=2,3 args="on" env=SPX_TRANSPORTS=tcp env=SPX_ZEROCOPY=on timeout=60
// run: n=2 args="on" env=SPX_TRANSPORTS=tcp env=SPX_ZEROCOPY=on env=SPX_PROGRESS=1 timeout=60
// run: n=2 args="off" env=SPX_TRANSPORTS=tcp env=SPX_ZEROCOPY=on env=SPX_TLS=1 timeout=60
// run: n=2 args="off" env=SPX_TRANSPORTS=tcp env=SPX_ZEROCOPY=some status=13 stderr~"SPX_ZEROCOPY=some: there is no such choice" timeout=60
#include <stdlib.h>
#include <string.h>
#include "../check.h"

enum { BYTES = 3000000, ROUNDS = 12, PARTS = 5 };
static int rank, size;
static unsigned char *out, *in;

static unsigned char byte_of(int from, int round, int i)
{
  return (unsigned char)(from * 31 + round * 5 + i + (i >> 8));
}

enum { DIRECT, ZERO, COPIED, COUNTERS };
static MPI_T_pvar_session session;
static MPI_T_pvar_handle handles[COUNTERS];

/* They count from here on. */
static void begin_to_count(void)
{
  static const char *const names[COUNTERS] = {"spx_bytes_direct", "spx_bytes_zerocopy", "spx_bytes_zerocopy_copied"};
  int index, n, provided;
  MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
  MPI_T_pvar_session_create(&session);
  for (int i = 0; i < COUNTERS; i++) {
    CHECK(MPI_T_pvar_get_index(names[i], MPI_T_PVAR_CLASS_AGGREGATE, &index) == MPI_SUCCESS);
    CHECK(MPI_T_pvar_handle_alloc(session, index, NULL, &handles[i], &n) == MPI_SUCCESS);
    MPI_T_pvar_start(session, handles[i]);
  }
}

static unsigned long long count_of(int i)
{
  unsigned long long value = 0;
  MPI_T_pvar_read(session, handles[i], &value);
  return value;
}

static void prepare(int round)
{
  for (int i = 0; i < BYTES; i++) out[i] = byte_of(rank, round, i);
}

static void look(int from, int round)
{
  int wrong = 0;
  for (int i = 0; i < BYTES; i++) wrong += in[i] != byte_of(from, round, i);
  CHECK(wrong == 0);
}

/* The send of a round, and its end. */
static void send_to(int to, int round, MPI_Request *persistent)
{
  MPI_Request r;
  switch (round % 5) {
  case 0: MPI_Send(out, BYTES, MPI_BYTE, to, 1, MPI_COMM_WORLD); return;
  case 1: MPI_Isend(out, BYTES, MPI_BYTE, to, 1, MPI_COMM_WORLD, &r); break;
  case 2: MPI_Ssend(out, BYTES, MPI_BYTE, to, 1, MPI_COMM_WORLD); return;
  case 3:
    MPI_Start(persistent);
    MPI_Wait(persistent, MPI_STATUS_IGNORE);
    return;
  default: {
    MPI_Datatype half; /* long pieces */
    MPI_Type_vector(2, BYTES / 2, BYTES / 2, MPI_BYTE, &half);
    MPI_Type_commit(&half);
    MPI_Isend(out, 1, half, to, 1, MPI_COMM_WORLD, &r);
    MPI_Type_free(&half);
  }
  }
  MPI_Wait(&r, MPI_STATUS_IGNORE);
}

static void exchange(void)
{
  int to = (rank + 1) % size, from = (rank - 1 + size) % size;
  MPI_Request persistent, r;
  MPI_Send_init(out, BYTES, MPI_BYTE, to, 1, MPI_COMM_WORLD, &persistent);
  for (int round = 0; round < ROUNDS; round++) {
    prepare(round);
    MPI_Irecv(in, BYTES, MPI_BYTE, from, 1, MPI_COMM_WORLD, &r);
    send_to(to, round, &persistent);
    memset(out, 0xee, BYTES);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    look(from, round);
  }
  MPI_Request_free(&persistent);
}

static void in_parts(void)
{
  int to = (rank + 1) % size, from = (rank - 1 + size) % size;
  MPI_Request s, r;
  MPI_Psend_init(out, PARTS, BYTES / PARTS, MPI_BYTE, to, 2, MPI_COMM_WORLD, MPI_INFO_NULL, &s);
  MPI_Precv_init(in, PARTS, BYTES / PARTS, MPI_BYTE, from, 2, MPI_COMM_WORLD, MPI_INFO_NULL, &r);
  for (int round = 0; round < 3; round++) {
    prepare(round);
    MPI_Start(&r);
    MPI_Start(&s);
    for (int p = 0; p < PARTS; p++) MPI_Pready(p, s);
    MPI_Wait(&s, MPI_STATUS_IGNORE);
    memset(out, 0xee, BYTES);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    look(from, round);
  }
  MPI_Request_free(&s);
  MPI_Request_free(&r);
}

int main(int argc, char **argv)
{
  MPI_Init(&argc, &argv);
  begin_to_count();
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  out = malloc(BYTES);
  in = malloc(BYTES);
  exchange();
  in_parts();
  unsigned long long direct = count_of(DIRECT), zero = count_of(ZERO), copied = count_of(COPIED);
  if (!strcmp(argv[1], "off")) CHECK(zero == 0 && direct > 0);
  if (!strcmp(argv[1], "auto")) CHECK(zero > 0 && copied == zero && zero < direct / 2);
  if (!strcmp(argv[1], "on")) CHECK(zero > direct / 2 && copied == zero);
  free(out);
  free(in);
  MPI_T_finalize();
  MPI_Finalize();
  return check_status();
}
