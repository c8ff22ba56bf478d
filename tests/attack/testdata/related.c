/* Each process exchanges long messages with its neighbours, and writes into and reads from a window of theirs, and checks what it has got. Then it says who it is, who its agent and its parent are, and how many messages
 * it has read out of their senders' memory. "spawn": with two more that it has spawned; "accept FILE", "connect FILE": with the processes of another job. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LONG = 1 << 20, ROUNDS = 5 };

static int wrong;

static int value(int from, int round, int i) { return from * 1000003 + round * 101 + i; }

static void messages(MPI_Comm comm, int rank, int size)
{
  int *out = malloc(LONG * sizeof *out), *in = malloc(LONG * sizeof *in);
  for (int round = 0; round < ROUNDS; round++)
    for (int by = 1; by < size; by++) {
      int to = (rank + by) % size, from = (rank - by + size) % size;
      for (int i = 0; i < LONG; i++) out[i] = value(rank, round, i);
      memset(in, 0, LONG * sizeof *in);
      MPI_Sendrecv(out, LONG, MPI_INT, to, 1, in, LONG, MPI_INT, from, 1, comm, MPI_STATUS_IGNORE);
      for (int i = 0; i < LONG; i++) wrong += in[i] != value(from, round, i);
    }
  free(out);
  free(in);
}

static void window(MPI_Comm comm, int rank, int size)
{
  int *mine = calloc((size_t)size * 2, sizeof *mine), *got = calloc((size_t)size, sizeof *got),
      *words = calloc((size_t)size, sizeof *words);
  MPI_Win w;
  MPI_Win_create(mine, (MPI_Aint)(2 * (size_t)size * sizeof *mine), sizeof *mine, MPI_INFO_NULL, comm, &w);
  mine[size + rank] = 7000 + rank;
  MPI_Win_fence(0, w);
  for (int to = 0; to < size; to++) {
    words[to] = 100 * to + rank;
    MPI_Put(&words[to], 1, MPI_INT, to, rank, 1, MPI_INT, w);
    MPI_Get(&got[to], 1, MPI_INT, to, size + to, 1, MPI_INT, w);
  }
  MPI_Win_fence(0, w);
  for (int r = 0; r < size; r++) wrong += mine[r] != 100 * rank + r || got[r] != 7000 + r;
  MPI_Win_free(&w);
  free(mine);
  free(got);
  free(words);
}

static void meet(const char *how, const char *file, MPI_Comm *other)
{
  char port[MPI_MAX_PORT_NAME] = "", name[512];
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (strcmp(how, "accept") == 0) {
    if (rank == 0) {
      MPI_Open_port(MPI_INFO_NULL, port);
      snprintf(name, sizeof name, "%s.new", file);
      FILE *f = fopen(name, "w");
      if (!f || fputs(port, f) < 0 || fclose(f) != 0 || rename(name, file) != 0) MPI_Abort(MPI_COMM_WORLD, 2);
    }
    MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, other);
    return;
  }
  for (FILE *f = NULL; rank == 0 && !f;) {
    f = fopen(file, "r"); /* the other job says when it is there */
    if (f && !fgets(port, sizeof port, f)) MPI_Abort(MPI_COMM_WORLD, 2);
    if (f) fclose(f);
    if (!f) usleep(10000);
  }
  MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, other);
}

int main(int argc, char **argv)
{
  int rank, size, provided, index, n;
  unsigned long long gets = 0;
  MPI_T_pvar_session session;
  MPI_T_pvar_handle counter;
  MPI_Comm other, comm = MPI_COMM_WORLD;
  MPI_Init(&argc, &argv);
  MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
  MPI_T_pvar_session_create(&session);
  MPI_T_pvar_get_index("spx_gets", MPI_T_PVAR_CLASS_COUNTER, &index);
  MPI_T_pvar_handle_alloc(session, index, NULL, &counter, &n);
  MPI_T_pvar_start(session, counter);
  MPI_Comm_get_parent(&other);
  if (argc > 2)
    meet(argv[1], argv[2], &other);
  else if (argc > 1 && other == MPI_COMM_NULL)
    MPI_Comm_spawn(argv[0], &argv[1], 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &other, MPI_ERRCODES_IGNORE);
  if (other != MPI_COMM_NULL) MPI_Intercomm_merge(other, 0, &comm);
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  messages(comm, rank, size);
  window(comm, rank, size);
  MPI_T_pvar_read(session, counter, &gets);
  const char *agent = getenv("SPX_AGENT");
  printf("pid %d agent %s parent %d gets %llu wrong %d\n", (int)getpid(), agent ? agent : "0", (int)getppid(), gets,
         wrong);
  fflush(stdout);
  MPI_Barrier(comm);
  MPI_T_finalize();
  MPI_Finalize();
  return wrong != 0;
}
