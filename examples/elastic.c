/* elastic.c - counts prime numbers with a number of processes that changes while it runs, by commands from outside and by deaths.
 *
 *   mpicc -O2 elastic.c -o elastic && spxrun --detach -n 4 ./elastic 20000000
 *   spxctl resize . 2; spxctl resize . 6; spxctl kill . 3; spxctl wait .
 *
 * The numbers are dealt out in blocks. Whatever has happened, all processes meet at one point, where each tells what it has counted: that is the
 * checkpoint, and also what a new process has to know.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ulfm_dyprc.h>

enum { BLOCKS = 251, UNKNOWN = -1, ROUNDS = 4 /* between two meetings */ };

static MPI_Comm mworld; /* all processes; another one after each change */
static long count[BLOCKS], known[BLOCKS];

static int is_prime(long n)
{
  if (n < 4) return n > 1;
  if (n % 2 == 0) return 0;
  for (long d = 3; d * d <= n; d += 2)
    if (n % d == 0) return 0;
  return 1;
}

/* The n-th block that nobody has counted, or BLOCKS. */
static int missing(int n)
{
  int block = 0;
  for (; block < BLOCKS; block++)
    if (known[block] == UNKNOWN && n-- == 0) break;
  return block;
}

static void work(long limit, int rank, int size)
{
  for (int round = 0; round < ROUNDS; round++) {
    int block = missing(round * size + rank);
    if (block < BLOCKS) {
      long primes = 0;
      for (long n = block; n < limit; n += BLOCKS) primes += is_prime(n);
      count[block] = primes;
    }
    ulfm_dyprc_poll(mworld); /* commands are carried out here, by all at the same call */
  }
}

static void count_all(long limit, int newcomer)
{
  static int before;
  int rank, size;
  do {
    ulfm_dyprc_setjmp(mworld, newcomer); /* here all meet again after each change */
    MPI_Comm_rank(mworld, &rank);
    MPI_Comm_size(mworld, &size);
    if (rank == 0 && size != before) printf("%d processes\n", size);
    before = size;
    MPI_Allreduce(count, known, BLOCKS, MPI_LONG, MPI_MAX, mworld);
    memcpy(count, known, sizeof count);
    work(limit, rank, size);
  } while (missing(0) < BLOCKS);
}

int main(int argc, char **argv)
{
  int rank, size;
  long limit = argc > 1 ? atol(argv[1]) : 10000000, sum = 0;

  MPI_Init(&argc, &argv);
  int newcomer = ulfm_dyprc_merge_child(&mworld); /* true in a process that was added to those that run */
  for (int block = 0; block < BLOCKS; block++) count[block] = UNKNOWN;
  count_all(limit, newcomer);
  for (int block = 0; block < BLOCKS; block++) sum += known[block];
  MPI_Comm_rank(mworld, &rank);
  MPI_Comm_size(mworld, &size);
  if (rank == 0) printf("%ld primes below %ld, counted by %d processes at the end\n", sum, limit, size);
  MPI_Finalize();
  return 0;
}
