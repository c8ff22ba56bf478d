/* What has come beyond the message that was waited for stays in the connection's buffer for the receives that follow: a stream of messages to a slow receiver is copied once. Nothing is held up by that: messages are
 * found by probes, those of a third process arrive meanwhile, and a synchronous send or a long message behind the stream ends. docs/network.md. */
// run: n=3 env=SPX_TRANSPORTS=tcp timeout=60
// run: n=3 args="long" env=SPX_TRANSPORTS=tcp timeout=60
// run: n=3 args="threads" env=SPX_TRANSPORTS=tcp timeout=60
#include <stdlib.h>
#include <string.h>
#include "../check.h"

enum { MANY = 20000, BYTES = 1024, EVERY = 100, LONG = 1 << 20 };

static int rank;
static char *buffer;

static unsigned long long unexpected(void)
{
  static MPI_T_pvar_session session;
  static MPI_T_pvar_handle h;
  static int open;
  unsigned long long v = 0;
  if (!open) {
    int index, count;
    MPI_T_pvar_session_create(&session);
    CHECK(MPI_T_pvar_get_index("spx_unexpected_messages", MPI_T_PVAR_CLASS_COUNTER, &index) == MPI_SUCCESS);
    CHECK(MPI_T_pvar_handle_alloc(session, index, NULL, &h, &count) == MPI_SUCCESS);
    MPI_T_pvar_start(session, h);
    open = 1;
  }
  CHECK(MPI_T_pvar_read(session, h, &v) == MPI_SUCCESS);
  return v;
}

static void receive(int i)
{
  MPI_Recv(buffer, BYTES, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  CHECK(buffer[0] == (char)i && buffer[BYTES - 1] == (char)(i >> 8));
}

/* Rank 0 sends without a pause; rank 1 receives one after the other. */
static void stream(void)
{
  for (int i = 0; i < MANY && rank < 2; i++)
    if (rank == 0) {
      buffer[0] = (char)i;
      buffer[BYTES - 1] = (char)(i >> 8);
      MPI_Send(buffer, BYTES, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
    } else
      receive(i);
}

/* The same, and now and then rank 1 receives from rank 2, which waits for each answer, and what rank 0 waits for. */
static void mixed(int length)
{
  for (int i = 0; i < MANY; i++) {
    if (rank == 0) {
      buffer[0] = (char)i;
      buffer[BYTES - 1] = (char)(i >> 8);
      MPI_Send(buffer, BYTES, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
      if (i % EVERY == 0) MPI_Ssend(buffer, i % (2 * EVERY) ? length : 0, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
      continue;
    }
    if (rank == 1) receive(i);
    if (i % EVERY) continue;
    if (rank == 1) {
      MPI_Status s;
      MPI_Recv(buffer, length, MPI_BYTE, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &s); /* of rank 0 or 2 */
      int there = 0, other = 2 - s.MPI_SOURCE;
      while (!there) MPI_Iprobe(other, 1, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE);
      MPI_Recv(buffer, length, MPI_BYTE, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Send(buffer, 1, MPI_BYTE, 2, 2, MPI_COMM_WORLD);
    } else {
      MPI_Send(buffer, length / 2, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
      MPI_Recv(buffer, 1, MPI_BYTE, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
  }
}

/* A few at once in a call: all arrive, in order. */
static void together(void)
{
  MPI_Request r[8];
  for (int k = 0; rank < 2 && k < 8; k++)
    if (rank == 0)
      MPI_Send_init(buffer + k, 1, MPI_BYTE, 1, 3, MPI_COMM_WORLD, &r[k]);
    else
      MPI_Recv_init(buffer + k, 1, MPI_BYTE, 0, 3, MPI_COMM_WORLD, &r[k]);
  for (int i = 0; rank < 2 && i < 1000; i++) {
    for (int k = 0; k < 8; k++) buffer[k] = (char)(rank == 0 ? i + k : -1);
    MPI_Startall(8, r);
    MPI_Waitall(8, r, MPI_STATUSES_IGNORE);
    for (int k = 0; k < 8; k++) CHECK(buffer[k] == (char)(i + k));
  }
  for (int k = 0; rank < 2 && k < 8; k++) MPI_Request_free(&r[k]);
}

int main(int argc, char **argv)
{
  const char *what = argc > 1 ? argv[1] : "";
  int provided, threads = strcmp(what, "threads") == 0;
  MPI_Init_thread(&argc, &argv, threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
  MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  CHECK((buffer = calloc(1, LONG)) != NULL);
  MPI_Barrier(MPI_COMM_WORLD);
  unsigned long long before = unexpected();
  stream();
  unsigned long long early = unexpected() - before;
  if (rank == 1) printf("%llu of %d messages came before their receive\n", early, MANY);
  if (rank == 1 && !threads) CHECK(early < MANY / 10);
  mixed(strcmp(what, "long") == 0 ? LONG : BYTES);
  together();
  MPI_Finalize();
  return check_status();
}
