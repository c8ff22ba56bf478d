/* primes_ft.c - primes.c, which goes on when processes are killed.
 *
 *   mpicc -O2 primes_ft.c -o primes_ft && spxrun -n 4 ./primes_ft 3000000 kill
 *
 * The numbers are dealt out in blocks. After its blocks every process tells all others what it has counted. When somebody has died on the way, those
 * that are left agree on that, make a communicator without the dead, and deal out the blocks that are missing. With "kill" the last process ends
 * itself on the way; any other may be killed as well, at any time: spxctl kill . 1
 */
#include <mpi-ext.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCKS = 251 /* odd: each has as many odd numbers as even ones */, UNKNOWN = -1 };

static long count[BLOCKS], known[BLOCKS]; /* by this process; by all */
static MPI_Comm team;
static int rank, size;

static int is_prime(long n)
{
  if (n < 4) return n > 1;
  if (n % 2 == 0) return 0;
  for (long d = 3; d * d <= n; d += 2)
    if (n % d == 0) return 0;
  return 1;
}

static long count_block(int block, long limit)
{
  long primes = 0;
  for (long n = block; n < limit; n += BLOCKS) primes += is_prime(n);
  return primes;
}

/* Of the blocks that nobody has counted, every size-th is this process's. */
static void work(long limit, int victim)
{
  for (int block = 0, missing = 0; block < BLOCKS; block++) {
    if (known[block] != UNKNOWN || missing++ % size != rank) continue;
    count[block] = count_block(block, limit);
    if (victim) raise(SIGKILL);
  }
}

/* All learn what any of them has counted; whoever sees that somebody has died wakes the others. True if it was done, and then at all of them. */
static int share(void)
{
  int done = MPI_Allreduce(count, known, BLOCKS, MPI_LONG, MPI_MAX, team) == MPI_SUCCESS;
  if (!done) MPIX_Comm_revoke(team);
  MPIX_Comm_agree(team, &done);
  return done;
}

/* The same team without the dead. */
static void regroup(void)
{
  MPI_Comm left;
  if (MPIX_Comm_shrink(team, &left) != MPI_SUCCESS) MPI_Abort(MPI_COMM_WORLD, 1);
  MPI_Comm_free(&team);
  team = left;
  MPI_Comm_rank(team, &rank);
  MPI_Comm_size(team, &size);
  if (rank == 0) printf("somebody has died: %d processes go on\n", size);
}

int main(int argc, char **argv)
{
  int regroups = 0;
  long limit = argc > 1 ? atol(argv[1]) : 3000000, sum = 0;

  MPI_Init(&argc, &argv);
  MPI_Comm_dup(MPI_COMM_WORLD, &team);
  MPI_Comm_set_errhandler(team, MPI_ERRORS_RETURN); /* errors come back: a death is one of them */
  MPI_Comm_rank(team, &rank);
  MPI_Comm_size(team, &size);
  int victim = argc > 2 && strcmp(argv[2], "kill") == 0 && rank > 0 && rank == size - 1;
  for (int block = 0; block < BLOCKS; block++) count[block] = known[block] = UNKNOWN;
  work(limit, victim);
  while (!share()) {
    regroup();
    regroups++;
    if (share()) work(limit, 0); /* what the dead had counted and told nobody */
  }
  for (int block = 0; block < BLOCKS; block++) sum += known[block];
  if (rank == 0)
    printf("%ld primes below %ld, counted by %d processes after %d recoveries\n", sum, limit, size, regroups);
  MPI_Comm_free(&team);
  MPI_Finalize();
  return 0;
}
