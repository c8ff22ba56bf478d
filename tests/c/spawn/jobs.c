/* Two jobs that were started apart find each other by a published name, connect, talk as if they were one, have windows over both,
 * disconnect, and connect again. The second job is an spxrun of its own, or a process without a launcher; it may use another number of processors, or talk in another way, than the first. */
// run: n=1,3 timeout=40
// run: n=2 timeout=40 env="SPX_CMA=0"
// run: n=2 args=alone timeout=40
// run: n=2 args=many timeout=60 full=1
// run: n=2 args=quick timeout=60
// run: n=1 args=bound timeout=40
// run: n=1 timeout=60 env=SPX_TRANSPORTS=tcp
// run: n=1 args=alone timeout=60 env=SPX_TRANSPORTS=tcp
#define _GNU_SOURCE
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "../check.h"
#include "crowd.h"

static char name[100];

/* This process, and what it starts, may use one processor. */
static void use_one_processor(void)
{
  cpu_set_t may, one;
  int k = 0;
  CPU_ZERO(&one);
  if (sched_getaffinity(0, sizeof may, &may) != 0) return;
  while (!CPU_ISSET(k, &may)) k++;
  CPU_SET(k, &one);
  sched_setaffinity(0, sizeof one, &one);
}

/* Starts the other job; the launcher is the program of our agent. */
static pid_t start_other(char *self, const char *how, const char *ranks)
{
  char launcher[64];
  pid_t p = fork();
  if (p != 0) return p;
  snprintf(launcher, sizeof launcher, "/proc/%s/exe", getenv("SPX_AGENT"));
  if (strcmp(how, "bound") == 0) use_one_processor();
  if (strcmp(how, "alone") == 0) {
    static const char *place[] = {
        "SPX_FD", "SPX_JOB", "SPX_PROC", "SPX_RANK", "SPX_SIZE", "SPX_AGENT", "OMPI_COMM_WORLD_SIZE"};
    for (unsigned i = 0; i < sizeof place / sizeof *place; i++) unsetenv(place[i]);
    execl(self, self, "client", how, name, NULL);
  }
  execl(launcher, "spxrun", "-n", ranks, self, "client", how, name, NULL);
  _exit(127);
}

enum { WORDS = 3000 };

/* One window over both jobs: messages of the window, locks, latches and mailboxes between all of both. Every process adds its rank + 1 to the
 * first word of each, under a lock and by accumulates; the rest is written by its left and read by its right neighbour. */
static void one_window(MPI_Win w, long *mem, int rank, int size)
{
  static long put[WORDS], got[WORDS];
  int right = (rank + 1) % size, left = (rank + size - 1) % size;
  long sum = (long)size * (size + 1) / 2, one = 1, me = rank + 1, ticket, bad = 0, now;
  MPI_Datatype every_second;
  MPI_Type_vector(WORDS / 2, 1, 2, MPI_LONG, &every_second);
  MPI_Type_commit(&every_second);
  for (int i = 0; i < WORDS; i++) mem[i] = 0, put[i] = rank * 100000 + i;
  MPI_Win_fence(0, w);
  for (int d = 0; d < size; d++) MPI_Accumulate(&me, 1, MPI_LONG, (rank + d) % size, 0, 1, MPI_LONG, MPI_SUM, w);
  MPI_Put(put, WORDS / 2, MPI_LONG, right, 1, 1, every_second, w);
  MPI_Win_fence(0, w);
  bad += mem[0] != sum;
  for (int i = 0; i < WORDS / 2 - 1; i++) bad += mem[1 + 2 * i] != left * 100000 + i || (i && mem[2 * i] != 0);
  MPI_Get(got, 1, every_second, right, 1, 1, every_second, w);
  MPI_Win_fence(0, w);
  for (int i = 0; i < WORDS / 2 - 1; i++) bad += got[2 * i] != rank * 100000 + i;
  CHECK(bad == 0);
  for (int round = 0; round < 20; round++) {
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, w); /* a counter that only a lock makes right */
    MPI_Get(&now, 1, MPI_LONG, 0, 2, 1, MPI_LONG, w);
    MPI_Win_flush(0, w);
    now++;
    MPI_Put(&now, 1, MPI_LONG, 0, 2, 1, MPI_LONG, w);
    MPI_Win_unlock(0, w);
    MPI_Win_lock_all(0, w);
    MPI_Fetch_and_op(&one, &ticket, MPI_LONG, size - 1, 4, MPI_SUM, w);
    MPI_Win_unlock_all(w);
    CHECK(ticket >= 0 && ticket < 20L * size);
  }
  MPI_Win_fence(0, w);
  if (rank == 0) CHECK(mem[2] == 20L * size);
  if (rank == size - 1) CHECK(mem[4] == 20L * size);
  MPI_Win_fence(0, w);
  MPI_Type_free(&every_second);
}

static void windows(MPI_Comm all, int rank, int size)
{
  static long mine[WORDS];
  long *mem;
  MPI_Win w;
  CHECK_CLASS(MPI_Win_create(mine, sizeof mine, sizeof *mine, MPI_INFO_NULL, all, &w), MPI_SUCCESS);
  one_window(w, mine, rank, size);
  MPI_Win_free(&w);
  for (int i = 0; i < 3; i++) { /* memory that a job has given back is zeroed for the next window */
    CHECK_CLASS(MPI_Win_allocate(sizeof mine, sizeof *mem, MPI_INFO_NULL, all, &mem, &w), MPI_SUCCESS);
    one_window(w, mem, rank, size);
    MPI_Win_free(&w);
  }
  MPI_Errhandler eh;
  MPI_Comm_get_errhandler(all, &eh);
  MPI_Comm_set_errhandler(all, MPI_ERRORS_RETURN);
  CHECK_CLASS(MPI_Win_allocate_shared(8, 1, MPI_INFO_NULL, all, &mem, &w), MPI_ERR_RMA_SHARED);
  MPI_Comm_set_errhandler(all, eh);
  MPI_Errhandler_free(&eh);
}

/* Messages of all sizes between all of both groups, and collectives over the merged communicator. */
static void talk(MPI_Comm inter, int high)
{
  static const int bytes[] = {0, 1, 64, 5000, 70000, 2000000};
  int rank, size, remote;
  MPI_Comm all;
  char *out = malloc(2000000), *in = malloc(2000000);
  MPI_Intercomm_merge(inter, high, &all);
  MPI_Comm_rank(all, &rank);
  MPI_Comm_size(all, &size);
  MPI_Comm_remote_size(inter, &remote);
  for (int k = 0; k < 6; k++)
    for (int d = 1; d < size; d++) {
      int to = (rank + d) % size, from = (rank - d + size) % size, n, good;
      MPI_Status st;
      memset(out, rank * 31 + k, (size_t)bytes[k]);
      MPI_Sendrecv(out, bytes[k], MPI_CHAR, to, k, in, 2000000, MPI_CHAR, from, k, all, &st);
      MPI_Get_count(&st, MPI_CHAR, &n);
      good = n == bytes[k];
      for (int i = 0; i < n; i += 101) good &= in[i] == (char)(from * 31 + k);
      CHECK(good);
    }
  for (int n = 1; n <= 100000; n *= 100) {
    int *a = malloc((size_t)n * sizeof *a), *b = malloc((size_t)n * sizeof *b), good = 1;
    for (int i = 0; i < n; i++) a[i] = rank + i;
    MPI_Allreduce(a, b, n, MPI_INT, MPI_SUM, all);
    for (int i = 0; i < n; i++) good &= b[i] == size * (size - 1) / 2 + size * i;
    MPI_Bcast(a, n, MPI_INT, size - 1, all);
    for (int i = 0; i < n; i++) good &= a[i] == size - 1 + i;
    CHECK(good);
    free(a);
    free(b);
  }
  for (int root = 0; root < size; root++) {
    int mine[2] = {rank, rank + 1}, each[64], good = 1;
    MPI_Allgather(mine, 2, MPI_INT, each, 2, MPI_INT, all);
    for (int i = 0; i < size; i++) good &= each[2 * i] == i && each[2 * i + 1] == i + 1;
    MPI_Gather(mine, 1, MPI_INT, each, 1, MPI_INT, root, all);
    for (int i = 0; rank == root && i < size; i++) good &= each[i] == i;
    MPI_Alltoall(each, 1, MPI_INT, each + 32, 1, MPI_INT, all);
    CHECK(good);
  }
  windows(all, rank, size);
  MPI_Comm dup, half;
  MPI_Comm_dup(all, &dup);
  MPI_Comm_split(dup, rank % 2, rank, &half);
  MPI_Barrier(half);
  MPI_Comm_free(&half);
  MPI_Comm_free(&dup);
  MPI_Comm_free(&all);
  MPI_Barrier(inter);
  free(out);
  free(in);
}

/* The other job has gone as soon as it can, while one of us is slow: it finds it all the same. */
static void slow_server(char *self)
{
  char port[MPI_MAX_PORT_NAME];
  MPI_Comm other;
  int rank, x = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) {
    MPI_Open_port(MPI_INFO_NULL, port);
    MPI_Publish_name(name, MPI_INFO_NULL, port);
  }
  for (int round = 0; round < 5; round++) {
    int status = 0;
    pid_t p = rank == 0 ? start_other(self, "quick", "1") : crowd_begin();
    MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &other);
    if (rank == 0) {
      MPI_Recv(&x, 1, MPI_INT, 0, 0, other, MPI_STATUS_IGNORE);
      CHECK(x == 42 && waitpid(p, &status, 0) == p && status == 0);
    } else
      crowd_end(p);
    MPI_Comm_free(&other);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  if (rank == 0) {
    MPI_Unpublish_name(name, MPI_INFO_NULL, port);
    MPI_Close_port(port);
  }
}

static void client(const char *how)
{
  char port[MPI_MAX_PORT_NAME];
  MPI_Comm server;
  int times = strcmp(how, "many") == 0 ? 1 : 3;
  MPI_Lookup_name(name, MPI_INFO_NULL, port);
  if (strcmp(how, "quick") == 0) {
    int x = 42;
    MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &server);
    MPI_Send(&x, 1, MPI_INT, 0, 0, server);
    MPI_Comm_free(&server);
    return;
  }
  for (int i = 0; i < times; i++) {
    MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &server);
    talk(server, 1);
    MPI_Comm_disconnect(&server);
  }
}

static void server(char *self, const char *how)
{
  char port[MPI_MAX_PORT_NAME];
  MPI_Comm other;
  int rank, jobs = strcmp(how, "many") == 0 ? 20 : 1, times = jobs > 1 ? 1 : 3;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) {
    MPI_Open_port(MPI_INFO_NULL, port);
    MPI_Publish_name(name, MPI_INFO_NULL, port);
  }
  for (int j = 0; j < jobs; j++) {
    pid_t p = rank == 0 ? start_other(self, how, strcmp(how, "bound") == 0 ? "1" : "2") : 0;
    for (int i = 0; i < times; i++) {
      MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &other);
      talk(other, 0);
      MPI_Comm_disconnect(&other);
    }
    int status = 0;
    if (p) CHECK(waitpid(p, &status, 0) == p && status == 0);
  }
  if (rank == 0) {
    MPI_Unpublish_name(name, MPI_INFO_NULL, port);
    MPI_Close_port(port);
  }
}

int main(int argc, char **argv)
{
  int is_client = argc > 2 && strcmp(argv[1], "client") == 0;
  const char *how = is_client ? argv[2] : argc > 1 ? argv[1] : "spxrun";
  MPI_Init(&argc, &argv);
  snprintf(name, sizeof name, "%s", is_client ? argv[3] : "");
  if (!is_client) snprintf(name, sizeof name, "test service of %s", getenv("SPX_JOB"));
  if (is_client)
    client(how);
  else if (strcmp(how, "quick") == 0)
    slow_server(argv[0]);
  else
    server(argv[0], how);
  MPI_Finalize();
  return check_status();
}
