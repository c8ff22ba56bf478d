/* What a link carries whose relays deal out: deal ROLE MS. ROLE: first (a cluster of one rank, which sends) or second (one of several ranks, each of which takes what it is dealt);
 * the link leads both ways. Each figure is that of at least MS milliseconds, by the clock of the one that sends. Lines:
 *
 *   latency BYTES MICROSECONDS       half of a round trip to whichever rank has the message, which sends it back
 *   rate BYTES PER_SECOND            messages by MPI_Isend, about WINDOW of them on their way at once
 *   send BYTES PER_SECOND            the same by MPI_Send
 *   computing GAP MICROSECONDS       a round trip of 8 bytes, when the sender computes for GAP microseconds right after each send
 */
#include <mpi.h>
#include <mpisp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
  WINDOW = 64,
  EVERY = 8,
  LONGEST = 32768,
  TAG_DATA = 1,
  TAG_ASKS = 2,
  TAG_BOUNCE = 3,
  TAG_ANSWER = 4,
  TAG_END = 5
};
static const int sizes[] = {8, 512, 4096, LONGEST};
static char *buf[WINDOW];

static void receive_answer(void)
{
  MPI_Recv(buf[0], LONGEST, MPI_BYTE, MPISP_CLUSTER_IN, TAG_ANSWER, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void compute(double seconds)
{
  for (double start = MPI_Wtime(); MPI_Wtime() - start < seconds;) continue;
}

static void bounce(int bytes, int messages, double gap)
{
  for (int i = 0; i < messages; i++) {
    MPI_Send(buf[1], bytes, MPI_BYTE, MPISP_CLUSTER_OUT, TAG_BOUNCE, MPI_COMM_WORLD);
    if (gap > 0) compute(gap);
    receive_answer();
  }
}

/* Each EVERY-th one asks for an answer. */
static void stream(int bytes, int messages, int blocking)
{
  MPI_Request r[WINDOW];
  for (int i = 0; i < WINDOW; i++) r[i] = MPI_REQUEST_NULL;
  int answered = 0;
  for (int i = 0; i < messages; i++) {
    for (; i - answered >= WINDOW; answered += EVERY) receive_answer();
    int tag = i % EVERY == EVERY - 1 ? TAG_ASKS : TAG_DATA;
    MPI_Request *at = &r[i % WINDOW];
    MPI_Wait(at, MPI_STATUS_IGNORE);
    if (blocking)
      MPI_Send(buf[i % WINDOW], bytes, MPI_BYTE, MPISP_CLUSTER_OUT, tag, MPI_COMM_WORLD);
    else
      MPI_Isend(buf[i % WINDOW], bytes, MPI_BYTE, MPISP_CLUSTER_OUT, tag, MPI_COMM_WORLD, at);
  }
  for (; answered < messages; answered += EVERY) receive_answer();
  MPI_Waitall(WINDOW, r, MPI_STATUSES_IGNORE);
}

typedef struct {
  enum { BOUNCE, STREAM, SENDS } kind;
  int bytes, unit;
  double gap;
} figure;

static double run(const figure *f, int messages)
{
  double start = MPI_Wtime();
  if (f->kind == BOUNCE)
    bounce(f->bytes, messages, f->gap);
  else
    stream(f->bytes, messages, f->kind == SENDS);
  return MPI_Wtime() - start;
}

/* So many messages, multiples of the unit, that it takes long enough: seconds for each. */
static double measure(figure f, double seconds)
{
  for (int messages = f.unit;; messages *= 2) {
    double took = run(&f, messages);
    if (took >= seconds) return took / messages;
    if (took < seconds / 8) messages *= 2;
  }
}

static void lead(double seconds)
{
  for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    int n = sizes[i];
    printf("latency %d %.3f\n", n, 1e6 * measure((figure){BOUNCE, n, 1, 0}, seconds) / 2);
    printf("rate %d %.1f\n", n, 1 / measure((figure){STREAM, n, 4 * WINDOW, 0}, seconds));
    printf("send %d %.1f\n", n, 1 / measure((figure){SENDS, n, 4 * WINDOW, 0}, seconds));
  }
  for (int gap = 100; gap <= 10000; gap *= 10)
    printf("computing %d %.1f\n", gap, 1e6 * measure((figure){BOUNCE, 8, 1, 1e-6 * gap}, seconds));
  MPI_Send(NULL, 0, MPI_BYTE, MPISP_CLUSTER_OUT, TAG_END, MPI_COMM_WORLD);
}

static void follow(int rank, int size)
{
  for (;;) {
    MPI_Status s;
    int n;
    MPI_Recv(buf[0], LONGEST, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &s);
    MPI_Get_count(&s, MPI_BYTE, &n);
    if (s.MPI_TAG == TAG_BOUNCE) MPI_Send(buf[0], n, MPI_BYTE, MPISP_CLUSTER_OUT, TAG_ANSWER, MPI_COMM_WORLD);
    if (s.MPI_TAG == TAG_ASKS) MPI_Send(NULL, 0, MPI_BYTE, MPISP_CLUSTER_OUT, TAG_ANSWER, MPI_COMM_WORLD);
    if (s.MPI_TAG != TAG_END) continue;
    for (int r = 0; r < size && s.MPI_SOURCE == MPISP_CLUSTER_IN; r++)
      if (r != rank) MPI_Send(NULL, 0, MPI_BYTE, r, TAG_END, MPI_COMM_WORLD);
    return;
  }
}

int main(int argc, char **argv)
{
  int rank, size;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (argc != 3) return 2;
  for (int i = 0; i < WINDOW; i++) buf[i] = calloc(1, LONGEST);
  if (strcmp(argv[1], "first") == 0)
    lead(atof(argv[2]) / 1000);
  else
    follow(rank, size);
  MPI_Finalize();
  return 0;
}
