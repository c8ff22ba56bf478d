/* Fifty times, and a thousand times, spawned and disconnected: no process, descriptor, thread, mapping or memory stays behind, here or in the
 * job's agent. What is given back is used again: without, the job's memory file would be full long before. argv: children, cycles. */
// run: n=1 args="3 50" args.few="3 12" timeout=60
// run: n=2 args=4 timeout=60 full=1
// run: n=1 args="1 200" timeout=60 full=1
// run: n=1 args="1 1000" timeout=150 full=1
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "../check.h"

/* What may be more by chance: threads of the Go runtime, descriptors of the last children, memory between two collections of garbage. */
enum { THREADS = 4, CHILD_FDS = 8, GROWTH_KB = 8192 };

typedef struct {
  int fds, maps, threads;
  long blocks, kb; /* kb: of private memory, which is nobody else's and in no file */
  int agent_fds, agent_threads;
  long agent_kb;
} usage;

static long status_of(const char *pid, const char *word)
{
  char name[64], line[256];
  long n = -1;
  snprintf(name, sizeof name, "/proc/%s/status", pid);
  FILE *f = fopen(name, "r");
  while (f && fgets(line, sizeof line, f))
    if (strncmp(line, word, strlen(word)) == 0) n = atol(line + strlen(word));
  if (f) fclose(f);
  CHECK(n >= 0);
  return n;
}

static void look_at_agent(usage *u)
{
  char name[64];
  const char *agent = getenv("SPX_AGENT");
  snprintf(name, sizeof name, "/proc/%s/fd", agent);
  DIR *d = opendir(name);
  while (d && readdir(d)) u->agent_fds++;
  if (d) closedir(d);
  u->agent_threads = (int)status_of(agent, "Threads:");
  u->agent_kb = status_of(agent, "RssAnon:");
}

/* Descriptors and mappings of this process, and 512-byte blocks of the job's memory file. */
static usage look(void)
{
  usage u = {.threads = (int)status_of("self", "Threads:"), .kb = status_of("self", "RssAnon:")};
  look_at_agent(&u);
  char line[4096];
  DIR *d = opendir("/proc/self/fd");
  for (struct dirent *e; d && (e = readdir(d));) {
    u.fds++;
    ssize_t n = readlinkat(dirfd(d), e->d_name, line, sizeof line - 1);
    struct stat st;
    if (n > 0 && (line[n] = 0, strncmp(line, "/memfd:spx-job", 14) == 0) && fstat(atoi(e->d_name), &st) == 0)
      u.blocks = st.st_blocks;
  }
  if (d) closedir(d);
  FILE *f = fopen("/proc/self/maps", "r");
  while (f && fgets(line, sizeof line, f)) u.maps += strstr(line, "memfd") != NULL;
  if (f) fclose(f);
  return u;
}

static void with_parent(MPI_Comm parent)
{
  int x, rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Recv(&x, 1, MPI_INT, 0, 0, parent, MPI_STATUS_IGNORE);
  x += rank;
  MPI_Send(&x, 1, MPI_INT, 0, 0, parent);
  MPI_Comm_disconnect(&parent);
}

static void cycle(char *self, int n, int i)
{
  MPI_Comm inter;
  int rank, x;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_spawn(self, MPI_ARGV_NULL, n, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE);
  for (int c = 0; rank == 0 && c < n; c++) {
    int big = i * 100;
    MPI_Send(&big, 1, MPI_INT, c, 0, inter);
    MPI_Recv(&x, 1, MPI_INT, c, 0, inter, MPI_STATUS_IGNORE);
    CHECK(x == i * 100 + c);
  }
  MPI_Comm_disconnect(&inter);
}

int main(int argc, char **argv)
{
  MPI_Comm parent;
  int n = argc > 1 ? atoi(argv[1]) : 3, cycles = argc > 2 ? atoi(argv[2]) : 50;
  usage before = {0}, after;
  MPI_Init(&argc, &argv);
  MPI_Comm_get_parent(&parent);
  if (parent != MPI_COMM_NULL) {
    with_parent(parent);
    MPI_Finalize();
    return check_status();
  }
  for (int i = 0; i < cycles; i++) {
    if (i == cycles / 5) before = look();
    cycle(argv[0], n, i);
  }
  after = look();
  CHECK(after.fds == before.fds);
  CHECK(after.maps <=
        before.maps +
            n); /* children that come before the last ones are gone have other numbers: a view of each is kept */
  CHECK(after.threads <= before.threads + THREADS && after.agent_threads <= before.agent_threads + THREADS);
  CHECK(after.agent_fds <= before.agent_fds + CHILD_FDS * n);
  CHECK(after.kb <= before.kb + GROWTH_KB && after.agent_kb <= before.agent_kb + GROWTH_KB);
  if (check_status() != 0)
    fprintf(stderr, "descriptors %d, %d threads %d, %d kB %ld, %ld; of the agent %d, %d %d, %d %ld, %ld\n", before.fds,
            after.fds, before.threads, after.threads, before.kb, after.kb, before.agent_fds, after.agent_fds,
            before.agent_threads, after.agent_threads, before.agent_kb, after.agent_kb);
  if (after.blocks >
      before.blocks + 16 * 1024 / 2) /* a few megabytes: rings of children that were quicker than the agent */
    fprintf(stderr, "blocks of the memory file: %ld, then %ld\n", before.blocks, after.blocks);
  CHECK(after.blocks <= before.blocks + 16 * 1024 / 2);
  MPI_Finalize();
  return check_status();
}
