/* What a link between two processes can do: stream ROLE MS WHAT. ROLE: direct (2 ranks of one job), first or second (clusters of one rank, with a link that
 * leads both ways). WHAT: all, or short (up to 4 KiB, without depth). Each figure is that of at least MS milliseconds, by the clock of the one that sends. Lines:
 *
 *   latency BYTES MICROSECONDS    half of a round trip
 *   rate BYTES PER_SECOND         messages in one direction, WINDOW of them at most, and 32 MiB, on their way at once; each half window is answered
 *   send BYTES PER_SECOND         the same by MPI_Send, up to 4 KiB
 *   depth BYTES D PER_SECOND      the same, with at most D on their way: each is answered by itself
 */
#include <mpi.h>
#include <mpisp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A run is so many windows at least: what it takes to fill the way, and to empty it, counts little. */
enum { PER_RUN = 4, WINDOW = 64, SIZES = 8, TAG_DATA = 1, TAG_ANSWER = 2, TAG_ORDER = 3 };
enum { KIND_END, KIND_BOUNCE, KIND_STREAM, KIND_SENDS };
static const int sizes[SIZES] = {8, 64, 512, 4096, 32768, 262144, 1048576, 8388608};
enum { LONGEST = 8388608, SHORT = 4096, DEPTHS = 5 };
static const int depths[DEPTHS] = {1, 2, 4, 8, 16}, deep_sizes[] = {4096, 262144, 1048576};

typedef struct {
  int kind, bytes, messages, window, answer_every;
} order;

static int to, from;
static char *buf[WINDOW];

static void stream_out(const order *o)
{
  MPI_Request r[WINDOW];
  for (int i = 0; i < o->window; i++) r[i] = MPI_REQUEST_NULL;
  int answered = 0;
  for (int i = 0; i < o->messages; i++) {
    while (i - answered >= o->window) {
      MPI_Recv(NULL, 0, MPI_BYTE, from, TAG_ANSWER, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      answered += o->answer_every;
    }
    if (o->kind == KIND_SENDS) {
      MPI_Send(buf[i % o->window], o->bytes, MPI_BYTE, to, TAG_DATA, MPI_COMM_WORLD);
      continue;
    }
    MPI_Wait(&r[i % o->window], MPI_STATUS_IGNORE);
    MPI_Isend(buf[i % o->window], o->bytes, MPI_BYTE, to, TAG_DATA, MPI_COMM_WORLD, &r[i % o->window]);
  }
  for (; answered < o->messages; answered += o->answer_every)
    MPI_Recv(NULL, 0, MPI_BYTE, from, TAG_ANSWER, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Waitall(o->window, r, MPI_STATUSES_IGNORE);
}

static void stream_in(const order *o)
{
  for (int i = 0; i < o->messages; i++) {
    MPI_Recv(buf[i % o->window], o->bytes, MPI_BYTE, from, TAG_DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if ((i + 1) % o->answer_every == 0) MPI_Send(NULL, 0, MPI_BYTE, to, TAG_ANSWER, MPI_COMM_WORLD);
  }
}

static void bounce(const order *o, int first)
{
  for (int i = 0; i < o->messages; i++) {
    if (first) MPI_Send(buf[0], o->bytes, MPI_BYTE, to, TAG_DATA, MPI_COMM_WORLD);
    MPI_Recv(buf[1], o->bytes, MPI_BYTE, from, TAG_DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (!first) MPI_Send(buf[1], o->bytes, MPI_BYTE, to, TAG_DATA, MPI_COMM_WORLD);
  }
}

static double run(order o)
{
  MPI_Send(&o, sizeof o, MPI_BYTE, to, TAG_ORDER, MPI_COMM_WORLD);
  MPI_Recv(NULL, 0, MPI_BYTE, from, TAG_ORDER, MPI_COMM_WORLD, MPI_STATUS_IGNORE); /* it is ready */
  double start = MPI_Wtime();
  if (o.kind == KIND_BOUNCE)
    bounce(&o, 1);
  else if (o.kind != KIND_END)
    stream_out(&o);
  return MPI_Wtime() - start;
}

/* So many messages, multiples of `unit`, that it takes long enough: seconds for each. */
static double measure(order o, int unit, double seconds)
{
  for (o.messages = unit;; o.messages *= 2) {
    double took = run(o);
    if (took >= seconds) return took / o.messages;
    if (took < seconds / 8) o.messages *= 2;
  }
}

static void lead(double seconds, int all)
{
  for (int i = 0; i < SIZES && (all || sizes[i] <= SHORT); i++) {
    int n = sizes[i], window = (32 << 20) / n < WINDOW ? (32 << 20) / n : WINDOW;
    order stream = {KIND_STREAM, n, 0, window, window / 2}, sends = {KIND_SENDS, n, 0, window, window / 2};
    printf("latency %d %.3f\n", n, 1e6 * measure((order){KIND_BOUNCE, n, 0, 2, 1}, 1, seconds) / 2);
    printf("rate %d %.1f\n", n, 1 / measure(stream, PER_RUN * window, seconds));
    if (n <= SHORT) printf("send %d %.1f\n", n, 1 / measure(sends, PER_RUN * window, seconds));
  }
  for (unsigned k = 0; all && k < sizeof deep_sizes / sizeof *deep_sizes; k++)
    for (int d = 0; d < DEPTHS; d++)
      printf("depth %d %d %.1f\n", deep_sizes[k], depths[d],
             1 / measure((order){KIND_STREAM, deep_sizes[k], 0, depths[d], 1}, PER_RUN * depths[d], seconds));
  run((order){KIND_END, 0, 0, 0, 0});
}

static void follow(void)
{
  for (;;) {
    order o;
    MPI_Recv(&o, sizeof o, MPI_BYTE, from, TAG_ORDER, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(NULL, 0, MPI_BYTE, to, TAG_ORDER, MPI_COMM_WORLD);
    if (o.kind == KIND_END) break;
    if (o.kind == KIND_BOUNCE)
      bounce(&o, 0);
    else
      stream_in(&o);
  }
}

int main(int argc, char **argv)
{
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (argc != 4) return 2;
  int direct = strcmp(argv[1], "direct") == 0;
  to = direct ? 1 - rank : MPISP_CLUSTER_OUT;
  from = direct ? 1 - rank : MPISP_CLUSTER_IN;
  for (int i = 0; i < WINDOW; i++) {
    int room = i < (32 << 20) / LONGEST ? LONGEST : i < 32 ? 1048576 : 524288;
    buf[i] = malloc((size_t)room);
    memset(buf[i], i, (size_t)room);
  }
  if (direct ? rank == 0 : strcmp(argv[1], "first") == 0)
    lead(atof(argv[2]) / 1000, strcmp(argv[3], "all") == 0);
  else
    follow();
  MPI_Finalize();
  return 0;
}
