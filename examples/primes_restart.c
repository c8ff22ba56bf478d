/* primes_restart.c - primes.c, which goes on where it was when it is started again.
 *
 *   mpicc -O2 primes_restart.c -o primes_restart && spxrun -n 4 ./primes_restart saved 3000000 kill
 *
 * The processes save now and then how far they are, in files of a directory. However the program ends before its time (a time limit, kill -9, power),
 * the next one begins with what the files have, also with another number of processes. With "kill" the last process ends itself on the way.
 */
#include <mpi-ext.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
  STEP = 20000,
  EVERY = 8 /* steps between two checkpoints */,
  DEATH = 60 /* the step after which "kill" kills */,
  KEEP = 0
};

typedef struct {
  long next, primes; /* the first number that nobody has looked at; primes that this process has found */
} progress;

static int is_prime(long n)
{
  if (n < 4) return n > 1;
  if (n % 2 == 0) return 0;
  for (long d = 3; d * d <= n; d += 2)
    if (n % d == 0) return 0;
  return 1;
}

/* What the newest checkpoint has: the sum of what its processes had found goes to rank 0. Nothing, if there is none. */
static progress restore(MPIX_Checkpoint saved, int rank)
{
  progress p = {0, 0}, *old;
  int versions, version, size;
  MPIX_Checkpoint_get_versions(saved, 0, NULL, &versions);
  if (versions == 0) return p;
  MPIX_Checkpoint_restore_begin(saved, MPIX_CHECKPOINT_NEWEST, &version, &size);
  old = calloc((size_t)size, sizeof *old);
  for (int r = 0; r < size; r++) MPIX_Checkpoint_fetch(saved, r, KEEP, 0, &old[r], 2, MPI_LONG);
  MPIX_Checkpoint_restore_end(saved);
  p.next = old[0].next;
  for (int r = 0; r < size && rank == 0; r++) p.primes += old[r].primes;
  if (rank == 0) printf("goes on at %ld, as %d processes have left it\n", p.next, size);
  free(old);
  return p;
}

/* What is done needs no checkpoints. */
static void clear(MPIX_Checkpoint saved)
{
  int versions[8], n;
  MPIX_Checkpoint_get_versions(saved, 8, versions, &n);
  for (int i = 0; i < n; i++) MPIX_Checkpoint_delete(saved, versions[i]);
}

int main(int argc, char **argv)
{
  int rank, size;
  long limit = argc > 2 ? atol(argv[2]) : 3000000, all = 0;
  MPI_Info info;
  MPIX_Checkpoint saved;

  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  int victim = argc > 3 && strcmp(argv[3], "kill") == 0 && rank == size - 1;
  MPI_Info_create(&info);
  MPI_Info_set(info, "mpix_directory", argc > 1 ? argv[1] : "saved");
  MPI_Info_set(info, "mpix_copies", "0"); /* in files alone, not in the memory of others */
  MPIX_Checkpoint_create(MPI_COMM_WORLD, info, &saved);
  MPI_Info_free(&info);

  progress p = restore(saved, rank);
  MPIX_Checkpoint_register(saved, KEEP, &p, 2, MPI_LONG);
  for (int step = 1; p.next < limit; step++) {
    long end = p.next + STEP < limit ? p.next + STEP : limit;
    long share = (end - p.next + size - 1) / size, from = p.next + rank * share;
    for (long n = from; n < from + share && n < end; n++) p.primes += is_prime(n);
    p.next = end;
    if (victim && step == DEATH) raise(SIGKILL);
    if (step % EVERY) continue;
    MPIX_Checkpoint_save(saved, (int)(p.next / STEP));
    MPIX_Checkpoint_commit(saved);
  }
  MPI_Reduce(&p.primes, &all, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("%ld primes below %ld, counted by %d processes at the end\n", all, limit, size);
  clear(saved);
  MPIX_Checkpoint_free(&saved);
  MPI_Finalize();
  return 0;
}
