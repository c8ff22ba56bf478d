/* Many multicasts at once, from several masters to random sets that overlap, of random sizes and tags, against a plain model: every member
 * gets from each master exactly the messages whose set it is in, in the order in which they were sent, whatever the way they came. Members
 * receive by rank and from anybody, by receives that were posted long before and after probes. Masters are members too, also of
 * their own sets. Arguments: messages of each master, and a seed, 0: another one each time, which is told. */
// run: n=2,4,7 timeout=40
// run: n=16 args="60" timeout=40
// run: n=7 env=SPX_MCAST_EACH=0 timeout=40
// run: n=6 env=SPX_TRANSPORTS=tcp timeout=40
// run: n=5 env=SPX_MCAST_STAGING=800K timeout=40
// run: n=6 env=SPX_CREDIT=4K env=SPX_EAGER_MAX=512 timeout=40
// run: n=6 args="6000 0" args.few="1500 0" timeout=60
// run: n=6 args="34000 0" timeout=150 full=1
// run: n=7,12 n.few=9 env=SPX_MCAST_CHAIN=20000 timeout=60
// run: n=9 env=SPX_MCAST_CHAIN=20000 env=SPX_MCAST_STAGING=800K timeout=60
// run: n=5 env=SPX_CMA=0 env=SPX_STREAM_MAX=1K timeout=40
#include <mpi-ext.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "../check.h"

#define MUST(call) CHECK_CLASS(call, MPI_SUCCESS)
enum { MASTERS = 3, BEHIND = 8, TAGS = 3, MOST = 64, MAX_BYTES = 100000 };

typedef struct {
  unsigned state;
} dice;
static unsigned roll(dice *d, unsigned n) { return (d->state = d->state * 1103515245u + 12345u) / 65536u % n; }

/* Message number i of a master: everybody works it out alike. */
typedef struct {
  int bytes, tag, comm, members;
  char in[MOST];
} message;

static int me, size, masters, total = 400;
static unsigned seed;
static MPI_Comm comms[2];

static message make(int master, int i)
{
  static const int most[] = {8, 8, 64, 700, 5000, 20000, 70000};
  dice d = {(unsigned)(master * 7919 + i * 104729 + 1) + seed * 2654435761u};
  for (int k = 0; k < 5; k++) roll(&d, 2);
  message m = {.tag = (int)roll(&d, TAGS), .comm = (int)roll(&d, 2)};
  m.bytes = (int)(2 * sizeof(int)) + (int)roll(&d, (unsigned)most[roll(&d, 7)]);
  unsigned density = 1 + roll(&d, 4), stride = 1 + roll(&d, 3);
  for (int r = (int)roll(&d, 2); r < size; r += (int)stride) {
    m.in[r] = (char)(roll(&d, density) == 0);
    m.members += m.in[r];
  }
  return m;
}

static void fill(int *b, int bytes, int master, int i)
{
  b[0] = master;
  b[1] = i;
  for (int k = 2 * (int)sizeof(int); k < bytes; k++) ((char *)b)[k] = (char)(i + k * 3 + master);
}

static void verify(const int *b, int bytes, int master, int i)
{
  CHECK(b[0] == master && b[1] == i);
  for (int k = 2 * (int)sizeof(int); k < bytes; k++)
    if (((const char *)b)[k] != (char)(i + k * 3 + master)) {
      CHECK(!"data");
      return;
    }
}

static MPIX_Rankset set_of(const message *m)
{
  int ranks[MOST], n = 0;
  MPIX_Rankset s;
  for (int r = 0; r < size; r++)
    if (m->in[r]) ranks[n++] = r;
  MUST(MPIX_Rankset_incl(comms[m->comm], n, ranks, &s));
  return s;
}

/* The next message of the master with this tag and communicator that this process is a member of, after number i; or total. */
static int next(int master, int tag, int comm, int i)
{
  while (++i < total) {
    message m = make(master, i);
    if (m.in[me] && m.tag == tag && m.comm == comm) return i;
  }
  return total;
}

/* The messages of one master, tag and communicator, which are in order. */
typedef struct {
  int at; /* number of the next one */
  int *buf;
  MPI_Request posted;
} stream;

static void check_one(stream *q, const int *b, const MPI_Status *st, int tag, int comm)
{
  int count, s = st->MPI_SOURCE;
  MPI_Get_count(st, MPI_BYTE, &count);
  CHECK(q->at < total && st->MPI_TAG == tag);
  if (q->at < total) CHECK(count == make(s, q->at).bytes);
  if (check_failures) {
    fprintf(stderr, "rank %d: number %d from %d, tag %d, communicator %d: %d bytes, begins with %d %d\n", me, q->at, s,
            tag, comm, count, b[0], b[1]);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  verify(b, count, s, q->at);
  q->at = next(s, tag, comm, q->at);
}

/* Takes one message if it is there: by a receive posted long before, or after a probe, or by a matching probe. */
static int take(stream q[MASTERS][2][TAGS], int s, int c, int t, dice *d)
{
  MPI_Status st;
  int flag, from = t == 0 ? MPI_ANY_SOURCE : s;
  stream *x = &q[s][c][t];
  if (t == 1) {
    if (x->posted == MPI_REQUEST_NULL) {
      if (x->at == total) return 0;
      MUST(MPI_Irecv(x->buf, MAX_BYTES, MPI_BYTE, s, t, comms[c], &x->posted));
    }
    MUST(MPI_Test(&x->posted, &flag, &st));
    if (flag) check_one(x, x->buf, &st, t, c);
  } else if (roll(d, 2)) {
    MPI_Message m;
    MUST(MPI_Improbe(from, t, comms[c], &flag, &m, &st));
    if (!flag) return 0;
    MUST(MPI_Mrecv(x->buf, MAX_BYTES, MPI_BYTE, &m, &st));
    check_one(&q[st.MPI_SOURCE][c][t], x->buf, &st, t, c);
  } else {
    MUST(MPI_Iprobe(from, t, comms[c], &flag, &st));
    if (!flag) return 0;
    MUST(MPI_Recv(x->buf, MAX_BYTES, MPI_BYTE, from, t, comms[c], &st));
    check_one(&q[st.MPI_SOURCE][c][t], x->buf, &st, t, c);
  }
  return flag;
}

/* What a master has on its way. */
typedef struct {
  MPI_Request r[BEHIND];
  int *b[BEHIND], i;
} window;

/* Sends the next message if there is room for it; the number of those that are neither sent nor complete. */
static int send_one(window *w, dice *d)
{
  int k = w->i % BEHIND, n, flag;
  if (w->i == total) {
    MUST(MPI_Testall(BEHIND, w->r, &flag, MPI_STATUSES_IGNORE));
    return !flag;
  }
  MUST(MPI_Test(&w->r[k], &flag, MPI_STATUS_IGNORE));
  if (!flag) return 1;
  message m = make(me, w->i);
  MPIX_Rankset s = set_of(&m);
  MUST(MPIX_Rankset_size(s, &n));
  CHECK(n == m.members);
  free(w->b[k]);
  w->b[k] = malloc((size_t)m.bytes);
  fill(w->b[k], m.bytes, me, w->i++);
  if (roll(d, 4))
    MUST(MPIX_Imcast(w->b[k], m.bytes, MPI_BYTE, s, m.tag, comms[m.comm], &w->r[k]));
  else
    MUST(MPIX_Ismcast(w->b[k], m.bytes, MPI_BYTE, s, m.tag, comms[m.comm], &w->r[k]));
  MUST(MPIX_Rankset_free(&s));
  return 1;
}

static void run(dice *d)
{
  stream q[MASTERS][2][TAGS];
  window w = {.i = me < masters ? 0 : total};
  int left = 0, unsent = 1;
  for (int k = 0; k < BEHIND; k++) w.r[k] = MPI_REQUEST_NULL;
  for (int s = 0; s < masters; s++)
    for (int k = 0; k < 2 * TAGS; k++)
      q[s][k % 2][k / 2] = (stream){next(s, k / 2, k % 2, -1), malloc(MAX_BYTES), MPI_REQUEST_NULL};
  for (int s = 0; s < masters; s++)
    for (int i = 0; i < total; i++) left += make(s, i).in[me];
  while (left > 0 || unsent > 0) {
    left -= take(q, (int)roll(d, (unsigned)masters), (int)roll(d, 2), (int)roll(d, TAGS), d);
    unsent = send_one(&w, d);
  }
  for (int s = 0; s < masters; s++)
    for (int k = 0; k < 2 * TAGS; k++) {
      CHECK(q[s][k % 2][k / 2].at == total && q[s][k % 2][k / 2].posted == MPI_REQUEST_NULL);
      free(q[s][k % 2][k / 2].buf);
    }
  for (int k = 0; k < BEHIND; k++) free(w.b[k]);
}

int main(int argc, char **argv)
{
  if (argc > 1) total = atoi(argv[1]);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  masters = size / 2 < MASTERS ? size / 2 : MASTERS;
  if (argc > 2) {
    seed = (unsigned)atoi(argv[2]);
    if (seed == 0) seed = (unsigned)time(NULL) % 1000000;
    MUST(MPI_Bcast(&seed, 1, MPI_UNSIGNED, 0, MPI_COMM_WORLD));
    if (me == 0) fprintf(stderr, "random: again with: %d %u\n", total, seed);
  }
  dice d = {(unsigned)me + 17 + seed};
  for (int k = 0; k < 2; k++) MUST(MPI_Comm_dup(MPI_COMM_WORLD, &comms[k]));
  run(&d);
  MUST(MPI_Barrier(MPI_COMM_WORLD));
  for (int k = 0; k < 2; k++) MUST(MPI_Comm_free(&comms[k]));
  MPI_Finalize();
  return check_status();
}
