/* Messages go through others, and all ranks compute for long between them: that a receiver acknowledges nothing while the sender does not look either is no reason to connect with it. What is counted is connections. docs/connections.md. */
// run: n=6 env=SPX_TRANSPORTS=tcp env=SPX_CONNECTIONS=topology:0 env=SPX_TOPOLOGY=groups:3 timeout=60
#include <time.h>
#include "../check.h"

enum { ROUNDS = 3, COMPUTES_MS = 600 };

int main(int argc, char **argv)
{
  int rank, size, provided, index, n;
  MPI_T_pvar_session session;
  MPI_T_pvar_handle opened;
  unsigned long long before, after;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
  MPI_T_pvar_session_create(&session);
  CHECK(MPI_T_pvar_get_index("spx_connections_opened", MPI_T_PVAR_CLASS_COUNTER, &index) == MPI_SUCCESS);
  CHECK(MPI_T_pvar_handle_alloc(session, index, NULL, &opened, &n) == MPI_SUCCESS);
  MPI_T_pvar_start(session, opened);
  MPI_Request r[16];
  int in[16], out[16];
  for (int round = 0; round <= ROUNDS; round++) {
    MPI_Barrier(MPI_COMM_WORLD);
    if (round == 1) MPI_T_pvar_read(session, opened, &before);
    for (int i = 0; i < size; i++) {
      out[i] = rank * 1000 + round;
      MPI_Isend(&out[i], 1, MPI_INT, i, round, MPI_COMM_WORLD, &r[i]);
    }
    struct timespec long_one = {0, COMPUTES_MS * 1000000L};
    if (round > 0) nanosleep(&long_one, NULL);
    for (int i = 0; i < size; i++) {
      MPI_Recv(&in[i], 1, MPI_INT, i, round, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      CHECK(in[i] == i * 1000 + round);
    }
    MPI_Waitall(size, r, MPI_STATUSES_IGNORE);
  }
  MPI_T_pvar_read(session, opened, &after);
  long mine = (long)(after - before), all;
  MPI_Allreduce(&mine, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) printf("%ld ends of connections made\n", all);
  CHECK(all <= size); /* each of the three rounds could make two for each rank; some rank may have been late */
  MPI_T_pvar_session_free(&session);
  MPI_T_finalize();
  MPI_Finalize();
  return check_status();
}
