/* rows.c - measures one MPI: prints a line "row bytes microseconds" for each row. The driver (bench/) runs the same binary
 * under several libraries in turn.
 *
 *   rows [-t MS] [-s SET] [-f FOLDER] [-d] [REGEX]     rows whose "name bytes" matches REGEX (default: all)
 *   rows -l RANKS [-s SET] [REGEX]                lists them, without MPI
 *
 * -t: how long one batch lasts (default 8); -f: where files go. SET: plain (preset), curve (ping-pong of many sizes), threads (with
 * MPI_THREAD_MULTIPLE).
 * -d: of two ranks, every batch is a line "row bytes microseconds distance": what a word takes from one processor to the other, before the batch
 * and after it the same; batches in which that changed have the distance 0.
 * A row is calibrated until a batch lasts about MS, then measured in BATCHES batches; the median batch is printed.
 * Every row checks its data once, so that no figure stands for a wrong result.
 */
#include <regex.h>
#include <time.h>
#include <unistd.h>
#include "rows.h"

enum { BATCHES = 3, POOL = 32 << 20 };

int rank, size;
char *out, *in;
size_t pool = POOL;
const char *folder = ".";
static double batch_ms = 8;
static int telling; /* -d, and two ranks */

double now(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

void compute(double seconds)
{
  for (double end = now() + seconds; now() < end;) {}
}

void failed(const row *r, size_t bytes)
{
  fprintf(stderr, "rows: %s of %zu bytes: wrong data on rank %d\n", r->name, bytes, rank);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

void fill(size_t bytes)
{
  if (bytes > pool) bytes = pool;
  for (size_t i = 0; i < bytes; i++) out[i] = pattern(rank, i);
  memset(in, 0, bytes);
}

/* Seconds of a batch, on rank 0: from when the first rank begins until the last has finished. */
static double batch(const row *r, size_t bytes, long times)
{
  double t[2], all[2];
  MPI_Barrier(MPI_COMM_WORLD);
  t[0] = -now();
  r->run(r, bytes, times);
  t[1] = now();
  MPI_Reduce(t, all, 2, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  return all[1] + all[0];
}

enum { SAME = 3 }; /* halves: distances are the same up to a factor of 1.5 */

static void print(const row *r, size_t bytes, double seconds, long times)
{
  printf("%s %zu %.4f", r->name, bytes, seconds * 1e6 / (double)times / r->per_call);
}

/* A batch, printed with the distance of the processors. */
static void told_batch(const row *r, size_t bytes, long times)
{
  double before = near_now(), seconds = batch(r, bytes, times), after = near_now();
  if (rank != 0) return;
  print(r, bytes, seconds, times);
  printf(" %.4f\n", 2 * before > SAME * after || 2 * after > SAME * before ? 0 : (before + after) / 2);
}

static int ascending(const void *a, const void *b)
{
  double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}

static void measure(const row *r, size_t bytes)
{
  long times = 1;
  double seconds[BATCHES];
  fill((size_t)size * bytes + 4096);
  MPI_Barrier(MPI_COMM_WORLD);
  if (r->open) r->open(r, bytes);
  r->run(r, bytes, 1);
  MPI_Barrier(MPI_COMM_WORLD);
  if (r->wrong && r->wrong(r, bytes)) failed(r, bytes);
  for (;;) {
    double s = batch(r, bytes, times), want = batch_ms / 1e3;
    long more = 0;
    if (rank == 0 && s < want * 0.7) more = s < want / 10 ? times * 8 : (long)((double)times * want / s) + 1;
    MPI_Bcast(&more, 1, MPI_LONG, 0, MPI_COMM_WORLD);
    if (more <= times) break;
    times = more;
  }
  for (int i = 0; i < BATCHES; i++)
    if (telling)
      told_batch(r, bytes, times);
    else
      seconds[i] = batch(r, bytes, times);
  if (r->close) r->close(r, bytes);
  if (rank == 0 && !telling) {
    qsort(seconds, BATCHES, sizeof(double), ascending);
    print(r, bytes, seconds[BATCHES / 2], times);
    printf("\n");
  }
  if (rank == 0) fflush(stdout);
}

typedef struct set {
  const char *name;
  const row *tables[8];
} set;

static const set sets[] = {{"plain", {p2p_rows, type_rows, coll_rows, rma_rows, file_rows, app_rows, NULL}},
                           {"curve", {curve_rows, NULL}},
                           {"threads", {thread_rows, NULL}}};

/* Calls visit for each row that is wanted with that many ranks. */
static void each(int ranks, const set *s, const char *expression, void (*visit)(const row *, size_t))
{
  regex_t re;
  char text[128];
  if (regcomp(&re, expression, REG_EXTENDED | REG_NOSUB)) {
    fprintf(stderr, "rows: %s is not a regular expression\n", expression);
    exit(2);
  }
  for (const row *const *t = s->tables; *t; t++)
    for (const row *r = *t; r->name; r++) {
      if (ranks < r->least || (r->most && ranks > r->most)) continue;
      for (int i = 0; i < 11 && (i == 0 || r->bytes[i]); i++) {
        snprintf(text, sizeof text, "%s %zu", r->name, r->bytes[i]);
        if (!regexec(&re, text, 0, NULL, 0)) visit(r, r->bytes[i]);
      }
    }
  regfree(&re);
}

static void list(const row *r, size_t bytes) { printf("%s %zu\n", r->name, bytes); }

int main(int argc, char **argv)
{
  const set *s = &sets[0];
  int threads, given, ranks = 0;
  for (int c; (c = getopt(argc, argv, "t:s:f:dl:")) != -1;) switch (c) {
    case 't': batch_ms = atof(optarg); break;
    case 's':
      for (s = sets; s < sets + 3 && strcmp(s->name, optarg) != 0;) s++;
      if (s == sets + 3) return 2;
      break;
    case 'f': folder = optarg; break;
    case 'd': telling = 1; break;
    case 'l': ranks = atoi(optarg); break;
    default: return 2;
    }
  const char *expression = optind < argc ? argv[optind] : "";
  if (ranks) {
    each(ranks, s, expression, list);
    return 0;
  }
  threads = s->tables[0] == thread_rows;
  MPI_Init_thread(&argc, &argv, threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &given);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (size > 4) pool = POOL / 4;
  if (size > 16) pool = POOL / 16;
  out = malloc(pool + 4096);
  in = malloc(pool + 4096);
  if (!out || !in || size < 2 || (threads && given != MPI_THREAD_MULTIPLE)) {
    fprintf(stderr, "rows: needs 2 ranks, %zu bytes on each, and the thread level\n", 2 * pool);
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  memset(out, 'o', pool); /* every page is there before anything is timed */
  memset(in, 'i', pool);
  telling = telling && size == 2;
  if (telling) near_open();
  each(size, s, expression, measure);
  free(out);
  free(in);
  MPI_Finalize();
  return 0;
}
