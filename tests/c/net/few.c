/* A process may have far fewer connections than there are processes, and all talk with all: messages go through others then, and connections are not made anew for each of them. With each message by
 * itself, and in collectives; where some processes compute for long meanwhile, too. What is counted is connections against messages: it does not depend on how fast anything is. docs/connections.md. */
// run: n=24 args="pairs 20" env=SPX_TRANSPORTS=tcp env=SPX_CONNECTIONS_MAX=8 timeout=200
// run: n=24 args="alltoall 60" env=SPX_TRANSPORTS=tcp env=SPX_CONNECTIONS_MAX=8 timeout=200
// run: n=64 args="pairs 10" env=SPX_TRANSPORTS=tcp env=SPX_CONNECTIONS_MAX=8 timeout=300 full=1
// run: n=64 args="alltoall 40" env=SPX_TRANSPORTS=tcp env=SPX_CONNECTIONS_MAX=8 timeout=300 full=1
// run: n=20 args="pairs 20" env=SPX_TRANSPORTS=tcp env=SPX_CONNECTIONS_MAX=6 timeout=200 full=1
// run: n=16 args="near 400" env=SPX_TRANSPORTS=tcp env=SPX_CONNECTIONS_MAX=8 timeout=120
#include <stdlib.h>
#include <string.h>
#include "../check.h"

static int rank, size;
static MPI_T_pvar_session session;

static MPI_T_pvar_handle count(const char *name)
{
  MPI_T_pvar_handle h;
  int index, n;
  CHECK(MPI_T_pvar_get_index(name, MPI_T_PVAR_CLASS_COUNTER, &index) == MPI_SUCCESS);
  CHECK(MPI_T_pvar_handle_alloc(session, index, NULL, &h, &n) == MPI_SUCCESS);
  MPI_T_pvar_start(session, h);
  return h;
}

/* Of all ranks together. */
static long value(MPI_T_pvar_handle h)
{
  unsigned long long v = 0;
  long mine, all;
  CHECK(MPI_T_pvar_read(session, h, &v) == MPI_SUCCESS);
  mine = (long)v;
  MPI_Allreduce(&mine, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  return all;
}

/* A message to each other rank, and one from each. */
static long pairs(int round)
{
  for (int step = 1; step < size; step++) {
    int to = (rank + step) % size, from = (rank + size - step) % size, out[4] = {rank, to, round, step}, in[4];
    MPI_Sendrecv(out, 4, MPI_INT, to, round, in, 4, MPI_INT, from, round, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(in[0] == from && in[1] == rank && in[2] == round && in[3] == step);
  }
  return size - 1;
}

/* As many messages as its algorithm needs: the binary logarithm of the ranks at least. */
static long alltoall(int round)
{
  int *out = malloc((size_t)size * sizeof *out), *in = malloc((size_t)size * sizeof *in);
  long messages = 0;
  for (int i = 0; i < size; i++) out[i] = rank * 1000 + i + round;
  MPI_Alltoall(out, 1, MPI_INT, in, 1, MPI_INT, MPI_COMM_WORLD);
  for (int i = 0; i < size; i++) CHECK(in[i] == i * 1000 + rank + round);
  for (int all = 1; all < size; all *= 2) messages++;
  free(out);
  free(in);
  return messages;
}

/* With four ranks alone, whom the connections suffice for. */
static long near(int round)
{
  const int with[] = {1, 5, size - 1, size - 5};
  for (int k = 0; k < 4; k++) {
    int to = (rank + with[k]) % size, from = (rank + size - with[k]) % size, out[2] = {rank, round}, in[2];
    MPI_Sendrecv(out, 2, MPI_INT, to, k, in, 2, MPI_INT, from, k, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(in[0] == from && in[1] == round);
  }
  return 4;
}

int main(int argc, char **argv)
{
  int provided;
  CHECK(argc == 3);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
  MPI_T_pvar_session_create(&session);
  MPI_T_pvar_handle opened = count("spx_connections_opened"), relayed = count("spx_frames_relayed");
  long (*exchange)(int) = !strcmp(argv[1], "pairs") ? pairs : !strcmp(argv[1], "near") ? near : alltoall;
  int rounds = atoi(argv[2]);
  double began = 0;
  long messages = 0, before = 0;
  for (int round = 0; round < rounds; round++) {
    if (round == rounds / 4) { /* whom a process is connected with has settled */
      before = value(opened);
      began = MPI_Wtime();
    }
    long n = exchange(round);
    if (round >= rounds / 4) messages += n * size;
  }
  double took = MPI_Wtime() - began;
  long made = value(opened) - before, through = value(relayed);
  if (rank == 0)
    printf("%ld messages, %ld ends of connections made meanwhile, %ld frames through others, %.0f messages a second\n",
           messages, made, through, (double)messages / took);
  CHECK(made * 2 < messages); /* each message by a connection of its own would be two ends */
  CHECK(exchange == near || through > 0);
  MPI_T_pvar_session_free(&session);
  MPI_T_finalize();
  MPI_Finalize();
  return check_status();
}
