/* main.c - spx-iop: options, and what the worlds of this process are. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include "relay.h"

static const char usage[] =
    "usage: spx-iop [options], as an I/O process of a system of clusters (spxrun --system)\n"
    "  --route same     a message of rank r goes to rank r modulo the size of the other cluster "
    "(the default)\n"
    "          spread   to the next rank in turn\n"
    "          tag      to rank tag modulo the size\n"
    "          demand   to the rank that has the fewest messages waiting for it\n"
    "  --to one         where a link leads to several clusters: a message goes to one of them, in "
    "turn (the default)\n"
    "       all         to all of them\n"
    "  --queue BYTES    held at most, when more is on its way senders wait (default: 64M; K, M, G "
    "may follow)\n"
    "  --verbose        says what it is joined to and, at the end, how much it has handed on\n";

void relay_fail(const char *format, ...)
{
  va_list args;
  va_start(args, format);
  fprintf(stderr, "spx-iop: ");
  vfprintf(stderr, format, args);
  fprintf(stderr, "\n");
  va_end(args);
  int up = 0;
  MPI_Initialized(&up);
  if (up) MPI_Abort(MPI_COMM_SELF, 1);
  exit(2);
}

static MPI_Count bytes_of(const char *text)
{
  char *end;
  long long n = strtoll(text, &end, 10);
  const char *unit = *end ? strchr("KkMmGg", *end) : NULL;
  if (unit) {
    n <<= 10 * (1 + (unit - "KkMmGg") / 2);
    end++;
  }
  if (n < 1 || *end || end == text)
    relay_fail("--queue %s: a number of bytes, as 1000000 or 64M", text);
  return n;
}

static int one_of(const char *option, const char *value, const char *const *names)
{
  for (int i = 0; names[i]; i++)
    if (strcmp(value, names[i]) == 0) return i;
  relay_fail("%s %s: no such value\n%s", option, value, usage);
}

static void options(relay *r, int argc, char **argv)
{
  static const char *const routes[] = {"same", "spread", "tag", "demand", NULL}, *const tos[] = {
                                                                                     "one", "all",
                                                                                     NULL};
  for (int i = 1; i < argc; i++) {
    const char *value = i + 1 < argc ? argv[i + 1] : "";
    if (strcmp(argv[i], "--help") == 0) {
      fputs(usage, stdout);
      exit(0);
    }
    if (strcmp(argv[i], "--verbose") == 0) {
      r->verbose = true;
      continue;
    }
    if (strcmp(argv[i], "--route") == 0)
      r->route = (route_kind)one_of(argv[i], value, routes);
    else if (strcmp(argv[i], "--to") == 0)
      r->copy = one_of(argv[i], value, tos) == 1;
    else if (strcmp(argv[i], "--queue") == 0)
      r->limit = bytes_of(value);
    else
      relay_fail("%s: no such option\n%s", argv[i], usage);
    i++;
  }
}

/* A hint of a world, "" when it has none. */
static void hint(MPI_Info info, const char *key, char *value, int size)
{
  int flag;
  MPI_Info_get_string(info, key, &size, value, &flag);
  if (!flag) *value = 0;
}

void relay_ask_heals(world *w)
{
  MPI_Info info;
  char value[16], *dead, *rest;
  int size = 0, flag;
  MPI_Comm_get_info(w->comm, &info);
  hint(info, "spx_heals", value, sizeof value);
  w->heals = strcmp(value, "true") == 0;
  memset(w->lost, 0, (size_t)w->size * sizeof *w->lost);
  MPI_Info_get_string(info, "spx_dead", &size, NULL, &flag);
  if (flag && size > 1 && (dead = malloc((size_t)size))) {
    MPI_Info_get_string(info, "spx_dead", &size, dead, &flag);
    for (char *p = strtok_r(dead, ",", &rest); p; p = strtok_r(NULL, ",", &rest))
      if (atoi(p) < w->size) w->lost[atoi(p)] = true;
    free(dead);
  }
  MPI_Info_free(&info);
}

static void look(relay *r, int i)
{
  world *w = &r->world[i];
  MPI_Info info;
  char value[1024], direction[16], *rest;
  MPISP_World_get(i, &w->comm);
  MPI_Comm_size(w->comm, &w->size);
  w->waiting = calloc((size_t)w->size, sizeof *w->waiting);
  w->lost = calloc((size_t)w->size, sizeof *w->lost);
  if (!w->waiting || !w->lost) relay_fail("no memory");
  MPI_Comm_get_info(w->comm, &info);
  hint(info, "spx_index", value, sizeof value);
  w->cluster = atoi(value);
  hint(info, "spx_direction", direction, sizeof direction);
  hint(info, "spx_to", value, sizeof value);
  for (char *p = strtok_r(value, ",", &rest); p && w->tos < WORLDS_MAX;
       p = strtok_r(NULL, ",", &rest))
    w->to[w->tos++] = atoi(p);
  relay_ask_heals(w);
  MPI_Comm_set_errhandler(w->comm, MPI_ERRORS_RETURN);
  if (strcmp(direction, "out") != 0 && w->tos == 0)
    relay_fail("what comes from cluster %d is for no cluster: a relay needs links with both ends",
               w->cluster);
  if (r->verbose)
    fprintf(stderr,
            "spx-iop: world %d is cluster %d, of %d processes (%s%s); what comes from there goes "
            "to %d\n",
            i, w->cluster, w->size, direction, w->heals ? ", replaced when they die" : "", w->tos);
  MPI_Info_free(&info);
}

int main(int argc, char **argv)
{
  static relay r = {.limit = 64 << 20};
  options(&r, argc, argv);
  MPI_Init(&argc, &argv);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank >= 0) relay_fail("this process is no I/O process of a system of clusters\n%s", usage);
  MPISP_World_count(&r.worlds);
  if (r.worlds > WORLDS_MAX) relay_fail("%d clusters; %d are possible", r.worlds, WORLDS_MAX);
  for (int i = 0; i < r.worlds; i++) look(&r, i);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  relay_run(&r);
  if (r.verbose) {
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    fprintf(stderr, "spx-iop: %ld messages; at most %lld bytes were held, and %ld KiB resident\n",
            r.passed, (long long)r.most, used.ru_maxrss);
  }
  MPI_Finalize();
  return 0;
}
