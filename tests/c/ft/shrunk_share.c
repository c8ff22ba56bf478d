// run: n=4 args=4106 spxrun="--with-ft" timeout=90
// run: n=12 args=60 spxrun="--with-ft"
// Communicators that MPIX_Comm_shrink has made have shared memory for their collectives as all others have: where those of a communicator of
// the same size from MPI_Comm_split send no messages, theirs send none. (How many ranks share memory depends on the machine: with a processor for
// each of more than 8 ranks, messages are taken.) So many of them (args; there are 4,096 places) are made and freed before a death.
#include <mpi.h>
#include <mpi-ext.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CALLS = 50 };

static MPI_T_pvar_session session;
static MPI_T_pvar_handle sent;
static int rank, quiet; /* collectives of this many ranks send no messages here */

static void check(int ok, const char *what)
{
  if (ok) return;
  fprintf(stderr, "rank %d: %s\n", rank, what);
  MPI_Abort(MPI_COMM_WORLD, 3);
}

static void open_counter(void)
{
  int provided, index, count;
  check(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) == MPI_SUCCESS, "MPI_T_init_thread");
  check(MPI_T_pvar_get_index("spx_messages_sent", MPI_T_PVAR_CLASS_COUNTER, &index) == MPI_SUCCESS, "no such variable");
  MPI_T_pvar_session_create(&session);
  MPI_T_pvar_handle_alloc(session, index, NULL, &sent, &count);
  MPI_T_pvar_start(session, MPI_T_PVAR_ALL_HANDLES);
}

static long long messages(void)
{
  unsigned long long n = 0;
  check(MPI_T_pvar_read(session, sent, &n) == MPI_SUCCESS, "MPI_T_pvar_read");
  return (long long)n;
}

/* Sums over a communicator; returns how many messages that took this rank. */
static long long use(MPI_Comm comm)
{
  int n, one = 1, sum = 0;
  MPI_Comm_size(comm, &n);
  long long before = messages();
  for (int i = 0; i < CALLS; i++) {
    check(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm) == MPI_SUCCESS, "MPI_Allreduce");
    check(sum == n, "a wrong sum");
  }
  return messages() - before;
}

static void use_shrunken(MPI_Comm comm)
{
  long long sent_now = use(comm);
  check(!quiet || sent_now == 0, "collectives of a shrunken communicator have sent messages");
}

/* What collectives of n - 1 and of n ranks do on this machine, with communicators that no death has made. */
static int without_messages(int n)
{
  MPI_Comm fewer, same;
  MPI_Comm_split(MPI_COMM_WORLD, rank == n - 1, 0, &fewer);
  MPI_Comm_dup(MPI_COMM_WORLD, &same);
  long long most, mine = use(fewer) + use(same);
  MPI_Allreduce(&mine, &most, 1, MPI_LONG_LONG, MPI_MAX, MPI_COMM_WORLD);
  MPI_Comm_free(&fewer);
  MPI_Comm_free(&same);
  return most == 0;
}

static MPI_Comm shrink(MPI_Comm comm)
{
  MPI_Comm made;
  check(MPIX_Comm_shrink(comm, &made) == MPI_SUCCESS, "MPIX_Comm_shrink");
  return made;
}

int main(int argc, char **argv)
{
  int n, size;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &n);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  open_counter();
  quiet = without_messages(n);
  int made_before = atoi(argv[1]);
  for (int i = 0; i < made_before; i++) {
    MPI_Comm made = shrink(MPI_COMM_WORLD);
    if (i % 500 == 0 || i >= made_before - 10) use_shrunken(made);
    MPI_Comm_free(&made);
  }
  if (rank == n - 1) raise(SIGKILL);
  MPI_Comm left = shrink(MPI_COMM_WORLD);
  for (MPI_Comm_size(left, &size); size == n; MPI_Comm_size(left, &size)) { /* the death was not known yet */
    MPI_Comm_free(&left);
    left = shrink(MPI_COMM_WORLD);
  }
  use_shrunken(left);
  MPI_Comm again = shrink(left);
  use_shrunken(again);
  MPI_Comm_free(&left);
  use_shrunken(again);
  MPI_Comm_rank(again, &rank);
  if (rank == 0) printf("%d of %d go on\n", size, n);
  MPI_Comm_free(&again);
  MPI_T_pvar_handle_free(session, &sent);
  MPI_T_pvar_session_free(&session);
  MPI_T_finalize();
  MPI_Finalize();
  return 0;
}
