/* Processes that have other settings of the ways that messages take are told both, and the job ends. */
// run: n=2 env=SPX_TRANSPORTS=tcp args="SPX_CONNECTIONS topology:3" status=16 stderr~"must have the same SPX_CONNECTIONS, SPX_TOPOLOGY and SPX_TLS; this one has (SPX_CONNECTIONS=demand, but rank 1 of .* has SPX_CONNECTIONS=topology:3|SPX_CONNECTIONS=topology:3, but rank 0 of .* has SPX_CONNECTIONS=demand)"
// run: n=2 env=SPX_TRANSPORTS=tcp env=SPX_CONNECTIONS=topology args="SPX_TOPOLOGY 0,1" status=16 stderr~"this one has SPX_CONNECTIONS=topology:16.*, but rank . of .* has SPX_CONNECTIONS=topology:16"
// run: n=2 env=SPX_TRANSPORTS=tcp args="SPX_TLS 1" status=16 stderr~"must have the same SPX_CONNECTIONS, SPX_TOPOLOGY and SPX_TLS; this one has (SPX_CONNECTIONS=demand, but rank 1 of .* has SPX_CONNECTIONS=demand SPX_TLS=1|SPX_CONNECTIONS=demand SPX_TLS=1, but rank 0 of .* has SPX_CONNECTIONS=demand)"
// run: n=10 env=SPX_TRANSPORTS=tcp env=SPX_CONNECTIONS_MAX=6 args="SPX_CONNECTIONS_MAX 7" status=16 stderr~"this one has SPX_CONNECTIONS=demand SPX_CONNECTIONS_MAX=., but rank . of .* has SPX_CONNECTIONS=demand SPX_CONNECTIONS_MAX=."
// run: n=2 env=SPX_TRANSPORTS=tcp env=SPX_CONNECTIONS_MAX=6 args="SPX_CONNECTIONS_MAX 7"
// run: n=2 env=SPX_TRANSPORTS=tcp args="SPX_CONNECTIONS demand"
// run: n=2 env=SPX_TRANSPORTS=tcp args="SPX_TOPOLOGY 0,1"
#include <mpi.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
  const char *rank = getenv("SPX_RANK");
  if (argc != 3 || !rank) return 2;
  if (atoi(rank) == 1) setenv(argv[1], argv[2], 1);
  MPI_Init(NULL, NULL);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  return 0;
}
