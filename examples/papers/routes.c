/* routes.c - all ranks but two send numbered messages to each other, through each other; meanwhile those two, which relay, kill themselves (docs/papers.md, S5.3, S5.8).
 *
 *     SPX_TRANSPORTS=tcp SPX_TOPOLOGY=groups:4 SPX_CONNECTIONS=topology:0 spxrun --with-ft -n 12 ./routes */
#include <mpi-ext.h>
#include <signal.h>
#include <stdio.h>
#include "counters.h"

enum { ROUNDS = 400, DIES = 100 };

static int is_victim(int rank) { return rank == 1 || rank == 5; }

int main(int argc, char **argv)
{
  int rank, size, wrong = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  counter relayed = count_from_here("spx_frames_relayed", MPI_T_PVAR_CLASS_COUNTER);
  int *in = calloc((size_t)size, sizeof *in), *out = calloc((size_t)size, sizeof *out);
  MPI_Request *requests = malloc(2 * (size_t)size * sizeof *requests);
  for (int round = 0; round < ROUNDS; round++) {
    int n = 0, both = round < DIES; /* those that die take part until then */
    if (!both && is_victim(rank)) raise(SIGKILL);
    for (int r = 0; r < size; r++) {
      if (r == rank || (!both && is_victim(r))) continue;
      out[r] = rank * ROUNDS + round;
      MPI_Irecv(&in[r], 1, MPI_INT, r, 0, MPI_COMM_WORLD, &requests[n++]);
      MPI_Isend(&out[r], 1, MPI_INT, r, 0, MPI_COMM_WORLD, &requests[n++]);
    }
    wrong += MPI_Waitall(n, requests, MPI_STATUSES_IGNORE) != MPI_SUCCESS && !both;
    for (int r = 0; r < size && (!both || round < DIES - 1);
         r++) /* of the last round of the dead not all may have come */
      if (r != rank && (both || !is_victim(r))) wrong += in[r] != r * ROUNDS + round;
  }
  long long own[2] = {counted(relayed), wrong}, all[2];
  MPI_Comm left;
  MPIX_Comm_shrink(MPI_COMM_WORLD, &left);
  MPI_Reduce(own, all, 2, MPI_LONG_LONG, MPI_SUM, 0, left);
  if (rank == 0) {
    MPI_Comm_size(left, &size);
    printf("%d ranks are left; of %d rounds of messages, each to all: %lld lost, doubled or out of order\n", size,
           ROUNDS, all[1]);
    printf("messages that others have sent on: %s\n", all[0] ? "yes" : "none");
  }
  MPI_Comm_free(&left);
  free(in), free(out), free(requests);
  MPI_T_finalize();
  MPI_Finalize();
  return 0;
}
