/* Limits of the shell (ulimit): the library keeps within them, and leaves them as they are; one that leaves it no room is named, and what it needs. The
 * program limits itself and starts once more, so that the library is loaded under the limit. */
// run: n=2 args="files 200" timeout=40
// run: n=2 args="files 1024" env="SPX_TRANSPORTS=tcp" timeout=40
// run: n=2 args="addresses 1600" timeout=40
// run: n=2 args="addresses 2048" env="SPX_TRANSPORTS=tcp" timeout=40
// run: n=1 args="addresses 800" status=1 stderr~"libspx: the limit on address space .ulimit -v. is 819200 KiB.*needs [0-9]+ KiB" timeout=40
// run: n=2 args="data 1024" timeout=40
// run: n=1 args="data 40" status=1 stderr~"libspx: the limit on data .ulimit -d. is 40960 KiB.*needs [0-9]+ KiB" timeout=40
// run: n=2 args="size 1" timeout=40
// run: n=2 args="locked 0" timeout=40
// run: n=1 args="memory 0" timeout=40
// run: n=1 args="launch 1" stderr~"spxrun: .*limit on the size of files .ulimit -f. is 1024 KiB.*needs [0-9]+ KiB" timeout=40
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include "../check.h"

static const struct {
  const char *name;
  int resource;
} limits[] = {
    {"addresses", RLIMIT_AS}, {"data", RLIMIT_DATA},      {"size", RLIMIT_FSIZE},
    {"launch", RLIMIT_FSIZE}, {"locked", RLIMIT_MEMLOCK},
};

/* The soft limit of files, in numbers; of all others both limits, in MiB. */
static int limit(char **argv)
{
  struct rlimit l;
  rlim_t n = (rlim_t)atol(argv[2]);
  if (strcmp(argv[1], "files") == 0) {
    getrlimit(RLIMIT_NOFILE, &l);
    CHECK(l.rlim_max > n);
    l.rlim_cur = n;
    CHECK(setrlimit(RLIMIT_NOFILE, &l) == 0);
  }
  for (unsigned i = 0; i < sizeof limits / sizeof *limits; i++)
    if (strcmp(argv[1], limits[i].name) == 0) {
      l.rlim_cur = l.rlim_max = n << 20;
      CHECK(setrlimit((__rlimit_resource_t)limits[i].resource, &l) == 0);
    }
  if (strcmp(argv[1], "launch") == 0) { /* spxrun itself: it fails, and says why */
    char launcher[64];
    int status = 0;
    snprintf(launcher, sizeof launcher, "/proc/%s/exe", getenv("SPX_AGENT"));
    if (fork() == 0) {
      execl(launcher, "spxrun", "-n", "2", "true", NULL);
      _exit(0);
    }
    wait(&status);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) != 0);
    return check_status();
  }
  execl(argv[0], argv[0], argv[1], argv[2], "again", NULL);
  return 127;
}

/* In a process of its own: this one has threads of the library already, which would be short of memory before it starts anew. */
static int limit_another(char **argv)
{
  int status;
  pid_t child = fork();
  if (child == 0) _exit(limit(argv));
  if (child < 0 || waitpid(child, &status, 0) != child) return 127;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void same_files(rlim_t n, const char *when)
{
  struct rlimit l;
  char command[80];
  getrlimit(RLIMIT_NOFILE, &l);
  if (l.rlim_cur != n) fprintf(stderr, "%s: %llu descriptors\n", when, (unsigned long long)l.rlim_cur);
  CHECK(l.rlim_cur == n);
  snprintf(command, sizeof command, "[ $(ulimit -S -n) = %llu ]", (unsigned long long)n); /* and so have children */
  CHECK(system(command) == 0);
}

/* Messages of all sizes, objects, and a window: what needs memory. */
static void use(int rank, int size)
{
  enum { N = 300000 };
  static int out[N], in[N];
  MPI_Win win;
  int *mem, peer = (rank + 1) % size;
  for (int n = 1; n <= N; n *= 4) {
    for (int i = 0; i < n; i++) out[i] = rank + i;
    MPI_Sendrecv(out, n, MPI_INT, peer, 1, in, n, MPI_INT, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < n; i++)
      if (in[i] != peer + i) {
        CHECK(in[i] == peer + i);
        break;
      }
  }
  MPI_Request all[1000];
  for (int i = 0; i < 1000; i++) MPI_Irecv(&in[i], 1, MPI_INT, peer, i, MPI_COMM_WORLD, &all[i]);
  for (int i = 0; i < 1000; i++) MPI_Send(&out[i], 1, MPI_INT, peer, i, MPI_COMM_WORLD);
  MPI_Waitall(1000, all, MPI_STATUSES_IGNORE);
  CHECK(MPI_Win_allocate(4 << 20, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &mem, &win) == MPI_SUCCESS);
  MPI_Win_fence(0, win);
  MPI_Put(out, 1000, MPI_INT, peer, 1000000, 1000, MPI_INT, win);
  MPI_Win_fence(0, win);
  CHECK(mem[1000000] == peer);
  MPI_Win_free(&win);
}

static unsigned long long meminfo(const char *key)
{
  char line[128];
  unsigned long long kb = 0;
  FILE *f = fopen("/proc/meminfo", "r");
  while (f && !kb && fgets(line, sizeof line, f))
    if (strncmp(line, key, strlen(key)) == 0) sscanf(line + strlen(key), ": %llu", &kb);
  if (f) fclose(f);
  return kb << 10;
}

/* More than the host has left, and less than what malloc refuses: an error, and no process that is ended when it is used. */
static void too_much(void)
{
  void *mem = NULL;
  MPI_Win win;
  MPI_Aint size = (MPI_Aint)(meminfo("MemAvailable") / 4 + meminfo("MemTotal") / 4 * 3);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  CHECK_CLASS(MPI_Alloc_mem(size, MPI_INFO_NULL, &mem), MPI_ERR_NO_MEM);
  CHECK_CLASS(MPI_Win_allocate(size, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &mem, &win), MPI_ERR_NO_MEM);
  CHECK_CLASS(MPI_Alloc_mem(20 << 20, MPI_INFO_NULL, &mem), MPI_SUCCESS);
  MPI_Free_mem(mem);
}

int main(int argc, char **argv)
{
  int rank, size, files = strcmp(argv[1], "files") == 0;
  rlim_t n = (rlim_t)atol(argv[2]);
  if (argc == 3) return limit_another(argv);
  if (files) same_files(n, "after loading");
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (files) same_files(n, "after MPI_Init");
  if (strcmp(argv[1], "memory") == 0) too_much();
  use(rank, size);
  if (files) same_files(n, "after communication");
  MPI_Finalize();
  return check_status();
}
