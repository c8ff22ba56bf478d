/* Round after round some processes end themselves at random moments while all agree and shrink; in every other round those that are left
 * spawn as many as have died, and go on with them. What is agreed upon is the same at all who are left, and respects everybody's word; shrunk
 * communicators are the same, in order, and work. argv: seed, rounds, and whether to spawn. A process that was spawned comes in where the others
 * are. */
// run: n=8 spxrun="--with-ft" args="1 7 shrink" timeout=60
// run: n=12 spxrun="--with-ft" args="2 10 shrink" timeout=60
// run: n=6 spxrun="--with-ft" args="3 5 spawn" timeout=60
// run: n=6 spxrun="--with-ft" args="4 3 shrink" env=SPX_TRANSPORTS=tcp timeout=60
#include <mpi-ext.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "../check.h"

static unsigned long long seed;
static int first_size, agreed;

static unsigned draw(void) { return (unsigned)((seed = seed * 6364136223846793005ull + 1442695040888963407ull) >> 33); }

static int class_of(int rc)
{
  int class = MPI_SUCCESS;
  if (rc != MPI_SUCCESS) MPI_Error_class(rc, &class);
  return class;
}

static int is_failure(int class) { return class == MPIX_ERR_PROC_FAILED || class == MPIX_ERR_REVOKED; }

/* Ends this process at most 3 ms from now, while it does something else. */
static int arm(void)
{
  struct itimerspec when = {.it_value = {0, 1000 + (long)(draw() % 3000000)}};
  struct sigevent how = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGKILL};
  timer_t t;
  if (timer_create(CLOCK_MONOTONIC, &how, &t) || timer_settime(t, 0, &when, NULL)) abort();
  return 1;
}

/* Agreements, while the round has its deaths. */
static void agreements(MPI_Comm comm, int rank)
{
  for (int k = 0; k < 40; k++) {
    int flag = ~(1 << (rank % 31));
    int class = class_of(MPIX_Comm_agree(comm, &flag));
    CHECK(class == MPI_SUCCESS || class == MPIX_ERR_PROC_FAILED);
    CHECK(!(flag & 1 << (rank % 31))); /* this process's word counts */
    agreed = flag;
  }
}

/* Those that are left; whoever dies meanwhile is left out by the next. */
static MPI_Comm shrink(MPI_Comm comm)
{
  MPI_Comm left, next;
  MPIX_Comm_revoke(comm);
  if (MPIX_Comm_shrink(comm, &left) != MPI_SUCCESS) MPI_Abort(comm, 3);
  MPI_Comm_free(&comm);
  for (;;) {
    MPI_Comm_set_errhandler(left, MPI_ERRORS_RETURN);
    int class = class_of(MPI_Barrier(left)), good = class == MPI_SUCCESS;
    CHECK(good || is_failure(class));
    if (!good) MPIX_Comm_revoke(left);
    MPIX_Comm_failure_ack(left);
    int agreed = class_of(MPIX_Comm_agree(left, &good));
    CHECK(agreed == MPI_SUCCESS || agreed == MPIX_ERR_PROC_FAILED);
    if (good && agreed == MPI_SUCCESS) return left;
    if (MPIX_Comm_shrink(left, &next) != MPI_SUCCESS) MPI_Abort(left, 4);
    MPI_Comm_free(&left);
    left = next;
  }
}

/* All have decided the same, and each rank is there once. */
static int consistent(MPI_Comm comm)
{
  int low, high, rank, size, sum = 0;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  if (class_of(MPI_Allreduce(&agreed, &low, 1, MPI_INT, MPI_MIN, comm))) return 0;
  if (class_of(MPI_Allreduce(&agreed, &high, 1, MPI_INT, MPI_MAX, comm))) return 0;
  if (class_of(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm))) return 0;
  CHECK(low == high);
  CHECK(sum == size * (size - 1) / 2);
  return 1;
}

static MPI_Comm grow(MPI_Comm comm, char **argv, int round)
{
  MPI_Comm inter, all;
  int size;
  char at[16], *args[] = {argv[1], argv[2], argv[3], at, NULL};
  MPI_Comm_size(comm, &size);
  if (size == first_size) return comm;
  snprintf(at, sizeof at, "%d", round);
  CHECK_CLASS(MPI_Comm_spawn(argv[0], args, first_size - size, MPI_INFO_NULL, 0, comm, &inter, MPI_ERRCODES_IGNORE),
              MPI_SUCCESS);
  CHECK_CLASS(MPI_Intercomm_merge(inter, 0, &all), MPI_SUCCESS);
  MPI_Comm_free(&inter);
  MPI_Comm_free(&comm);
  return all;
}

int main(int argc, char **argv)
{
  MPI_Comm comm, parent;
  int me, rank, size, round = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  int rounds = atoi(argv[2]), spawns = strcmp(argv[3], "spawn") == 0;
  MPI_Comm_get_parent(&parent);
  if (parent != MPI_COMM_NULL) {
    MPI_Intercomm_merge(parent, 1, &comm);
    MPI_Comm_free(&parent);
    round = atoi(argv[4]);
  } else
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_size(comm, &first_size);
  seed = strtoull(argv[1], NULL, 10) * 0x9e3779b97f4a7c15ull + (unsigned)me * 7777777ull + (unsigned)round * 31337ull;
  for (; round < rounds; round++) {
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int there = 1;
    CHECK_CLASS(MPIX_Comm_agree(comm, &there), MPI_SUCCESS); /* all of them have made it: now some may die */
    /* Two of them on average; rank 0 tells how it ends. */
    int dies = rank > 0 && draw() % (unsigned)size < 2 && arm();
    agreements(comm, rank);
    while (dies) pause(); /* the others may be shrinking by then */
    comm = shrink(comm);
    CHECK(consistent(comm));
    if (spawns) comm = grow(comm, argv, round + 1);
  }
  MPI_Comm_size(comm, &size);
  MPI_Comm_rank(comm, &rank);
  if (rank == 0) printf("%d of %d are left after %d rounds\n", size, first_size, rounds);
  CHECK(size >= 1 && (!spawns || size == first_size));
  MPI_Barrier(comm);
  MPI_Comm_free(&comm);
  MPI_Finalize();
  return check_status();
}
