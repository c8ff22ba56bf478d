/* Multicasts with MPIX_MCAST_ORDERED are received in the order of the master's plain sends, and of its other multicasts: each member takes messages in the
 * order in which they can be received, with any tag, and compares. Short ones, announced ones, to sets that differ each time, by two masters at
 * once that are members of each other's sets. */
// run: n=2,4,7 timeout=60
// run: n=5 env=SPX_TRANSPORTS=tcp timeout=60
// run: n=5 env=SPX_CREDIT=8K env=SPX_EAGER_MAX=512 timeout=60
// run: n=4 args="full" timeout=60
#include <mpi-ext.h>
#include <stdlib.h>
#include <string.h>
#include "../check.h"

#define MUST(call) CHECK_CLASS(call, MPI_SUCCESS)
enum { TOTAL = 600, LONG = 40000, MASTERS = 2, BEHIND = 64 };

static int me, size, masters;

typedef struct {
  enum { PLAIN, MANY, ORDERED } kind;
  int bytes, in[64];
} message;

static unsigned roll(unsigned *s, unsigned n) { return (*s = *s * 1103515245u + 12345u) / 65536u % n; }

/* Message i of a master: everybody works it out alike. */
static message make(int master, int i)
{
  unsigned s = (unsigned)(master * 7919 + i * 104729 + 3);
  for (int k = 0; k < 5; k++) roll(&s, 2);
  static const int bytes[] = {8, 8, 200, 3000, LONG};
  message m = {.kind = (int)roll(&s, 3), .bytes = bytes[roll(&s, 5)]};
  int one = (int)roll(&s, (unsigned)size);
  for (int r = 0; r < size; r++) m.in[r] = r != master && (m.kind == PLAIN ? r == one : roll(&s, 2) == 0);
  return m;
}

static void send_one(int i, int *b, MPI_Request *r)
{
  message m = make(me, i);
  int ranks[64], n = 0;
  b[0] = me;
  b[1] = i;
  for (int k = 0; k < size; k++)
    if (m.in[k]) ranks[n++] = k;
  *r = MPI_REQUEST_NULL;
  if (m.kind == PLAIN) {
    if (n) MUST(MPI_Isend(b, m.bytes, MPI_BYTE, ranks[0], i, MPI_COMM_WORLD, r));
    return;
  }
  MPIX_Rankset set;
  MUST(MPIX_Rankset_incl(MPI_COMM_WORLD, n, ranks, &set));
  if (m.kind == ORDERED) MUST(MPIX_Rankset_set_flags(set, MPIX_MCAST_ORDERED));
  MUST(MPIX_Imcast(b, m.bytes, MPI_BYTE, set, i, MPI_COMM_WORLD, r));
  MUST(MPIX_Rankset_free(&set));
}

/* What this process has had of each master: the last message of each kind. */
static int last[MASTERS][3];

static void receive_one(const int *b, const MPI_Status *st)
{
  int master = st->MPI_SOURCE, i = st->MPI_TAG, n, *l = last[master];
  message m = make(master, i);
  MPI_Get_count(st, MPI_BYTE, &n);
  CHECK(b[0] == master && b[1] == i && n == m.bytes && m.in[me]);
  CHECK(i > l[m.kind] && i > l[ORDERED]);                    /* its own kind, and all that is ordered */
  CHECK(m.kind != ORDERED || (i > l[PLAIN] && i > l[MANY])); /* and if it is ordered, all */
  if (check_failures) {
    fprintf(stderr, "rank %d: message %d of %d, kind %d, after plain %d, multicast %d, ordered %d\n", me, i, master,
            m.kind, l[PLAIN], l[MANY], l[ORDERED]);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  l[m.kind] = i;
}

int main(int argc, char **argv)
{
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  masters = size > 2 ? MASTERS : 1;
  int left = 0, sent = 0, mine = me < masters ? TOTAL : 0, *in = malloc(LONG);
  char *out = calloc(BEHIND, LONG);
  MPI_Request r[BEHIND];
  for (int k = 0; k < BEHIND; k++) r[k] = MPI_REQUEST_NULL;
  for (int s = 0; s < masters; s++) {
    for (int k = 0; k < 3; k++) last[s][k] = -1;
    for (int i = 0; i < TOTAL; i++) left += make(s, i).in[me];
  }
  int first = argc > 1; /* all are sent, as far as they may be on their way, before anything is received */
  while (left > 0 || sent < mine) {
    int flag, k = sent % BEHIND;
    MPI_Status st;
    if (sent < mine) {
      MUST(MPI_Test(&r[k], &flag, MPI_STATUS_IGNORE));
      if (flag) {
        send_one(sent++, (int *)(void *)(out + (size_t)k * LONG), &r[k]);
        if (first && sent < BEHIND) continue;
      }
    }
    if (left == 0) continue;
    MUST(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &st));
    if (!flag) continue;
    MUST(MPI_Recv(in, LONG, MPI_BYTE, st.MPI_SOURCE, st.MPI_TAG, MPI_COMM_WORLD, &st));
    receive_one(in, &st);
    left--;
  }
  MUST(MPI_Waitall(BEHIND, r, MPI_STATUSES_IGNORE));
  free(in);
  free(out);
  MPI_Finalize();
  return check_status();
}
