/* Many short messages in a row within a host go by few segments (docs/network.md, "Bursts"): whatever the pattern, all arrive in order, and none waits for an acknowledgement that the system puts
 * off for 40 ms. Pairs of ranks take turns at random: one sends 1 to 100 messages of up to 40,000 bytes, some of them announced and long; the other one receives them at once, or is busy first, or tests now and then,
 * and answers. Every other turn is of messages too long for a burst, and shows how often other work has the processors for so long. "counts": it was used; "none": it was not. */
// run: n=2,4 args="counts" env=SPX_TRANSPORTS=tcp timeout=60
// run: n=4 args="counts" env=SPX_TRANSPORTS=tcp env=SPX_CONNECTIONS_MAX=2 timeout=60
// run: n=2 args="counts" env=SPX_TRANSPORTS=tcp env=SPX_PROGRESS=1 timeout=60
// run: n=2 args="counts" env=SPX_TRANSPORTS=tcp env=SPX_CREDIT=32K timeout=60
// run: n=2 args="none" env=SPX_TRANSPORTS=tcp env=SPX_TLS=1 timeout=60
// run: n=4 args="none" env=SPX_TRANSPORTS=tcp env=SPX_CONNECTIONS=topology:0 env=SPX_TOPOLOGY=groups:2 timeout=60
#include <stdlib.h>
#include <string.h>
#include "../check.h"

enum { TURNS = 600, MOST = 100, BYTES = 40000, ALONE = 24000, LONG = 300000, LATE = 3, PASSES = 5 };
#define PUT_OFF 0.03 /* s */

static unsigned char out[LONG], in[LONG];

/* The same at both ends of a pair. */
static unsigned next(unsigned *s)
{
  *s = *s * 1103515245u + 12345u;
  return *s >> 8;
}

typedef struct {
  int sender, messages, bytes, way;
} turn;

static turn draw(unsigned *s)
{
  static const int sizes[] = {0, 8, 8, 8, 64, 500, 600, 1024, 4000, 8192, 16000, 30000, BYTES};
  turn t = {.sender = (int)(next(s) % 2), .way = (int)(next(s) % 4)};
  t.messages = next(s) % 3 ? 1 + (int)(next(s) % MOST) : 1 + (int)(next(s) % 4);
  t.bytes = sizes[next(s) % (sizeof sizes / sizeof *sizes)];
  if (next(s) % 16 == 0) t = (turn){.sender = t.sender, .messages = 1 + t.messages % 5, .bytes = LONG, .way = t.way};
  return t;
}

/* Messages that are begun and waited for together share a buffer, which nobody may write to meanwhile. */
static int together(turn t) { return t.bytes == LONG && t.way % 2 == 0; }

static void send_all(turn t, int peer, unsigned char mark)
{
  static MPI_Request q[MOST];
  for (int i = 0; i < t.messages; i++) {
    unsigned char *b = out + i % 7;
    int n = t.bytes < LONG ? t.bytes : LONG - 7;
    if (together(t)) {
      MPI_Isend(b, n, MPI_BYTE, peer, i, MPI_COMM_WORLD, &q[i]);
      continue;
    }
    if (n) b[0] = b[n - 1] = (unsigned char)(mark + i);
    MPI_Send(b, n, MPI_BYTE, peer, i, MPI_COMM_WORLD);
  }
  if (together(t)) MPI_Waitall(t.messages, q, MPI_STATUSES_IGNORE);
}

static void receive(int peer, int i)
{
  MPI_Status s;
  int n;
  MPI_Recv(in, LONG, MPI_BYTE, peer, i, MPI_COMM_WORLD, &s);
  MPI_Get_count(&s, MPI_BYTE, &n);
  CHECK(n == 4);
}

static void busy(double s)
{
  for (double end = MPI_Wtime() + s; MPI_Wtime() < end;) {}
}

static void receive_all(turn t, int peer, unsigned char mark)
{
  if (t.way == 1) busy(0.0003);
  for (int i = 0; i < t.messages; i++) {
    MPI_Status s;
    int n, flag = t.way != 2, want = t.bytes < LONG ? t.bytes : LONG - 7;
    while (!flag) { /* looks now and then */
      MPI_Iprobe(peer, i, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
      if (!flag) busy(0.00002);
    }
    MPI_Recv(in, LONG, MPI_BYTE, peer, MPI_ANY_TAG, MPI_COMM_WORLD, &s);
    MPI_Get_count(&s, MPI_BYTE, &n);
    CHECK(s.MPI_TAG == i);
    CHECK(n == want);
    if (n && !together(t)) CHECK(in[0] == (unsigned char)(mark + i) && in[n - 1] == (unsigned char)(mark + i));
  }
}

static MPI_T_pvar_session session;
static MPI_T_pvar_handle handle;

static void count(void)
{
  int index, n, provided;
  MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
  CHECK(MPI_T_pvar_get_index("spx_bursts", MPI_T_PVAR_CLASS_COUNTER, &index) == MPI_SUCCESS);
  MPI_T_pvar_session_create(&session);
  MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &n);
  MPI_T_pvar_start(session, handle);
}

static unsigned long long counted(void)
{
  unsigned long long value;
  MPI_T_pvar_read(session, handle, &value);
  MPI_T_pvar_handle_free(session, &handle);
  MPI_T_pvar_session_free(&session);
  MPI_T_finalize();
  return value;
}

/* Turns of all kinds, each followed by the same one of messages that all go alone: did more of the former take as long as an acknowledgement is put off, at any rank? Other work may have the processors
 * for so long in turns of either kind; an acknowledgement that is put off is so again and again, in one turn of thirty at least where it was. */
static int some_late(int rank)
{
  int peer = rank ^ 1, late[2] = {0, 0}, too_many, some;
  unsigned dice = (unsigned)rank / 2 + 7;
  turn t = {0};
  for (int i = 0; i < 2 * TURNS; i++) {
    int alone = i % 2;
    if (!alone) t = draw(&dice);
    if (alone && t.bytes < ALONE) t.bytes = ALONE;
    double began = MPI_Wtime();
    if ((rank & 1) == t.sender) {
      send_all(t, peer, (unsigned char)i);
      receive(peer, MOST);
      if (MPI_Wtime() - began > PUT_OFF) late[alone]++;
    } else {
      receive_all(t, peer, (unsigned char)i);
      MPI_Send(out, 4, MPI_BYTE, peer, MOST, MPI_COMM_WORLD);
    }
  }
  too_many = late[0] > 2 * late[1] + LATE;
  MPI_Allreduce(&too_many, &some, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  return some;
}

int main(int argc, char **argv)
{
  int rank;
  MPI_Init(&argc, &argv);
  count();
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  int pass = 0;
  while (some_late(rank) && ++pass < PASSES) {}
  CHECK(pass < PASSES);
  unsigned long long mine = counted(), all;
  MPI_Allreduce(&mine, &all, 1, MPI_UNSIGNED_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
  CHECK((strcmp(argv[1], "counts") == 0) == (all > 0));
  MPI_Finalize();
  return check_status();
}
