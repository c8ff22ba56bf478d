/* Communicators, groups and info objects that come and go leave nothing behind. */
// run: n=1,4 args="500" args.few="80" timeout=60
// run: n=1,4 timeout=180 full=1
#include "../check.h"
#include <stdlib.h>
#include <string.h>

/* Resident memory of the process in KiB. */
static long resident(void)
{
  char line[256];
  long kb = 0;
  FILE *f = fopen("/proc/self/status", "r");
  while (f && fgets(line, sizeof line, f))
    if (strncmp(line, "VmRSS:", 6) == 0) kb = atol(line + 6);
  if (f) fclose(f);
  return kb;
}

static void round_of(int rank)
{
  MPI_Comm a, b, d;
  MPI_Group g, h;
  MPI_Info in;
  MPI_Request q;
  int zero = 0, sum;
  MPI_Comm_dup(MPI_COMM_WORLD, &a);
  MPI_Comm_split(a, rank % 2, 0, &b);
  MPI_Comm_idup(b, &d, &q);
  MPI_Wait(&q, MPI_STATUS_IGNORE);
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, b); /* its plan goes with the communicator */
  MPI_Comm_group(d, &g);
  MPI_Group_incl(g, 1, &zero, &h);
  MPI_Comm_get_info(a, &in);
  MPI_Info_free(&in);
  MPI_Group_free(&g);
  MPI_Group_free(&h);
  MPI_Comm_free(&a);
  MPI_Comm_free(&b);
  MPI_Comm_free(&d);
}

int main(int argc, char **argv)
{
  int rank, rounds = argc > 1 ? atoi(argv[1]) : 2000;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int k = 0; k < 1000; k++) round_of(rank);
  long before = resident();
  long grown = 0;
  for (int part = 0; part < 4; part++) { /* the engine's heap breathes by 2 or 3 MiB: the least of four counts */
    for (int k = 0; k < rounds; k++) round_of(rank);
    long now = resident() - before;
    if (part == 0 || now < grown) grown = now;
  }
  if (grown > 1024)
    fprintf(stderr, "rank %d: at least %ld KiB more after %d to %d rounds\n", rank, grown, rounds, 4 * rounds);
  CHECK(grown <= 1024);
  MPI_Finalize();
  return check_status();
}
