/* talk.c - all processes talk to all, also with those that are spawned, and say over which connections.
 *   talk BYTES [CHILDREN]
 * Every pair exchanges messages of BYTES bytes, and an all-to-all runs; with CHILDREN, as many are spawned, and all do it again together. Then rank 0 of each host lists the connections
 * of its network namespace, which has no others: "HOST: LOCAL PEER". */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void stop(MPI_Comm comm, const char *what)
{
  fprintf(stderr, "talk: %s\n", what);
  MPI_Abort(comm, 3);
}

static void exchange(MPI_Comm comm, int bytes)
{
  int rank, n;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &n);
  unsigned char *out = malloc((size_t)bytes), *in = malloc((size_t)bytes);
  if (!out || !in) stop(comm, "no memory");
  for (int i = 1; i < n; i++) {
    int to = (rank + i) % n, from = (rank + n - i) % n;
    memset(out, 1 + rank, (size_t)bytes);
    MPI_Sendrecv(out, bytes, MPI_BYTE, to, 1, in, bytes, MPI_BYTE, from, 1, comm, MPI_STATUS_IGNORE);
    for (int k = 0; k < bytes; k += 997)
      if (in[k] != 1 + from) stop(comm, "a long message is wrong");
    if (in[bytes - 1] != 1 + from) stop(comm, "the end of a long message is wrong");
  }
  int *all = malloc(2 * (size_t)n * sizeof(int));
  if (!all) stop(comm, "no memory");
  for (int i = 0; i < n; i++) all[i] = 100 * rank + i;
  MPI_Alltoall(all, 1, MPI_INT, all + n, 1, MPI_INT, comm);
  for (int i = 0; i < n; i++)
    if (all[n + i] != 100 * i + rank) stop(comm, "the all-to-all is wrong");
  free(out);
  free(in);
  free(all);
}

static void list(MPI_Comm comm)
{
  MPI_Comm here;
  int first;
  char host[256], line[512], local[256], peer[256];
  MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &here);
  MPI_Comm_rank(here, &first);
  MPI_Comm_free(&here);
  MPI_Barrier(comm);
  if (first == 0) {
    gethostname(host, sizeof host);
    FILE *f = popen("ss -Htn state established", "r");
    while (f && fgets(line, sizeof line, f))
      if (sscanf(line, "%*s %*s %255s %255s", local, peer) == 2) printf("%s: %s %s\n", host, local, peer);
    if (f) pclose(f);
    fflush(stdout);
  }
  MPI_Barrier(comm);
}

int main(int argc, char **argv)
{
  MPI_Init(&argc, &argv);
  int bytes = atoi(argv[1]), children = argc > 2 ? atoi(argv[2]) : 0;
  MPI_Comm parent, with, all;
  MPI_Comm_get_parent(&parent);
  if (parent != MPI_COMM_NULL) {
    MPI_Intercomm_merge(parent, 1, &all);
    exchange(all, bytes);
    list(all);
    MPI_Finalize();
    return 0;
  }
  exchange(MPI_COMM_WORLD, bytes);
  all = MPI_COMM_WORLD;
  if (children > 0) {
    char *args[] = {argv[1], NULL};
    MPI_Comm_spawn(argv[0], args, children, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &with, MPI_ERRCODES_IGNORE);
    MPI_Intercomm_merge(with, 0, &all);
    exchange(all, bytes);
  }
  list(all);
  MPI_Finalize();
  return 0;
}
