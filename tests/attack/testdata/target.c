/* Each rank says where it listens. Then, for each line that rank 0 reads, all exchange messages and check them; rank 0 says what was wrong, how many descriptors a
 * rank has open and how much memory it has at most, how long a short exchange takes, and which calls all ranks have refused. */
#include <arpa/inet.h>
#include <dirent.h>
#include <mpi.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum { KINDS = 5, SHORT = 51 };
static const char *const kinds[KINDS] = {"strangers", "version", "old", "keyless", "slow"};
static MPI_T_pvar_session session;
static MPI_T_pvar_handle counters[KINDS];

static void say_where(void)
{
  struct sockaddr_storage at;
  socklen_t length = sizeof at;
  char text[INET6_ADDRSTRLEN];
  if (getsockname(atoi(getenv("SPX_LISTEN")), (struct sockaddr *)&at, &length) != 0) exit(3);
  printf("%s %s ", getenv("SPX_JOB"), getenv("SPX_PROC"));
  if (at.ss_family == AF_INET6) {
    const struct sockaddr_in6 *a = (const struct sockaddr_in6 *)&at;
    printf("[%s]:%d", inet_ntop(AF_INET6, &a->sin6_addr, text, sizeof text), ntohs(a->sin6_port));
  } else {
    const struct sockaddr_in *a = (const struct sockaddr_in *)&at;
    printf("%s:%d", inet_ntop(AF_INET, &a->sin_addr, text, sizeof text), ntohs(a->sin_port));
  }
  printf(" %d\n", (int)getpid());
  fflush(stdout);
}

static long descriptors(void)
{
  DIR *dir = opendir("/proc/self/fd");
  long n = 0;
  while (readdir(dir)) n++;
  closedir(dir);
  return n - 3; /* ".", "..", and the folder */
}

/* Kilobytes that are in memory. */
static long memory(void)
{
  long total, resident = 0;
  FILE *f = fopen("/proc/self/statm", "r");
  if (fscanf(f, "%ld %ld", &total, &resident) != 2) exit(3);
  fclose(f);
  return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

static long exchange(int rank, int n)
{
  enum { LONG = 100000 };
  int *out = malloc((size_t)n * LONG * sizeof *out), *in = calloc((size_t)n * LONG, sizeof *in);
  long wrong = 0;
  for (int round = 0; round < 200; round++) {
    int length = round % 20 == 0 ? LONG : 1 + round;
    for (int i = 0; i < n * length; i++) out[i] = rank * 1000003 + i + round;
    MPI_Alltoall(out, length, MPI_INT, in, length, MPI_INT, MPI_COMM_WORLD);
    for (int r = 0; r < n; r++)
      for (int i = 0; i < length; i++) wrong += in[r * length + i] != r * 1000003 + rank * length + i + round;
  }
  free(out);
  free(in);
  return wrong;
}

static int by_time(const void *a, const void *b)
{
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Microseconds that a barrier takes: the median. */
static long latency(void)
{
  double took[SHORT];
  for (int i = 0; i < SHORT; i++) {
    double began = MPI_Wtime();
    MPI_Barrier(MPI_COMM_WORLD);
    took[i] = MPI_Wtime() - began;
  }
  qsort(took, SHORT, sizeof *took, by_time);
  return (long)(took[SHORT / 2] * 1e6);
}

static void begin_counting(void)
{
  int level;
  MPI_T_init_thread(MPI_THREAD_SINGLE, &level);
  MPI_T_pvar_session_create(&session);
  for (int k = 0; k < KINDS; k++) {
    char name[64];
    int index, count;
    snprintf(name, sizeof name, "spx_refused_%s", kinds[k]);
    if (MPI_T_pvar_get_index(name, MPI_T_PVAR_CLASS_COUNTER, &index) != MPI_SUCCESS ||
        MPI_T_pvar_handle_alloc(session, index, NULL, &counters[k], &count) != MPI_SUCCESS || count != 1)
      exit(4);
    MPI_T_pvar_start(session, counters[k]);
  }
}

int main(int argc, char **argv)
{
  int rank, n, more = 1;
  char line[64];
  say_where();
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &n);
  begin_counting();
  for (;;) {
    if (rank == 0) more = fgets(line, sizeof line, stdin) != NULL;
    MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (!more) break;
    long mine[4] = {exchange(rank, n), descriptors(), memory(), latency()}, most[4];
    unsigned long long refused[KINDS], all[KINDS];
    for (int k = 0; k < KINDS; k++) MPI_T_pvar_read(session, counters[k], &refused[k]);
    MPI_Reduce(mine, most, 4, MPI_LONG, MPI_MAX, 0, MPI_COMM_WORLD);
    MPI_Reduce(refused, all, KINDS, MPI_UNSIGNED_LONG_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank != 0) continue;
    printf("wrong %ld descriptors %ld memory %ld barrier %ld", most[0], most[1], most[2], most[3]);
    for (int k = 0; k < KINDS; k++) printf(" %s %llu", kinds[k], all[k]);
    printf("\n");
    fflush(stdout);
  }
  MPI_T_pvar_session_free(&session);
  MPI_T_finalize();
  MPI_Finalize();
  return 0;
}
