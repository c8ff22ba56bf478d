/* A collective in shared memory ends when one of its processes has died, whatever has come and gone before: a process dies that is connected with all of them, another one gets its number, and then one of theirs
 * dies before they begin. So many are dead then as were when they last looked. */
// run: n=3 spxrun="--with-ft"
#include <mpi.h>
#include <mpi-ext.h>
#include <signal.h>
#include <stdio.h>

static int rank;

static void check(int ok, const char *what)
{
  if (ok) return;
  fprintf(stderr, "rank %d: %s\n", rank, what);
  MPI_Abort(MPI_COMM_WORLD, 3);
}

static int class_of(int code)
{
  int class = MPI_SUCCESS;
  if (code != MPI_SUCCESS) MPI_Error_class(code, &class);
  return class;
}

static unsigned long long failures(void)
{
  int provided, index, count;
  unsigned long long n = 0;
  MPI_T_pvar_session session;
  MPI_T_pvar_handle handle;
  MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
  check(MPI_T_pvar_get_index("spx_failures", MPI_T_PVAR_CLASS_LEVEL, &index) == MPI_SUCCESS, "no spx_failures");
  MPI_T_pvar_session_create(&session);
  MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &count);
  check(MPI_T_pvar_read(session, handle, &n) == MPI_SUCCESS, "spx_failures cannot be read");
  MPI_T_pvar_session_free(&session);
  MPI_T_finalize();
  return n;
}

static MPI_Comm spawn(char *program, char *what)
{
  MPI_Comm child;
  char *argv[] = {what, NULL};
  check(MPI_Comm_spawn(program, argv, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &child, MPI_ERRCODES_IGNORE) == MPI_SUCCESS,
        "MPI_Comm_spawn");
  MPI_Comm_set_errhandler(child, MPI_ERRORS_RETURN);
  return child;
}

/* Returns when this process knows that one has died. */
static void hear_of(int which, MPI_Comm comm)
{
  int word;
  check(class_of(MPI_Recv(&word, 1, MPI_INT, which, 0, comm, MPI_STATUS_IGNORE)) == MPIX_ERR_PROC_FAILED,
        "a message of one that is dead");
}

static int sum(MPI_Comm comm)
{
  int one = 1, all = 0;
  return class_of(MPI_Allreduce(&one, &all, 1, MPI_INT, MPI_SUM, comm));
}

/* All of them have found that it is so. */
static int is_given_again(void)
{
  int dead = (int)failures(), most;
  MPI_Allreduce(&dead, &most, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  return most == 0;
}

/* The child ends. */
static void let_go(MPI_Comm *child)
{
  if (rank == 0) MPI_Send(&rank, 1, MPI_INT, 0, 0, *child);
  MPI_Comm_free(child);
}

static int be_child(MPI_Comm parent, const char *what)
{
  int word;
  if (what[0] == 'd') raise(SIGKILL);
  MPI_Comm_set_errhandler(parent, MPI_ERRORS_RETURN);
  MPI_Recv(&word, 1, MPI_INT, 0, 0, parent, MPI_STATUS_IGNORE);
  MPI_Finalize();
  return 0;
}

int main(int argc, char **argv)
{
  MPI_Comm parent, side, child;
  MPI_Init(&argc, &argv);
  MPI_Comm_get_parent(&parent);
  if (parent != MPI_COMM_NULL) return be_child(parent, argv[1]);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_dup(MPI_COMM_WORLD, &side);
  for (int i = 0; i < 20; i++) check(sum(side) == MPI_SUCCESS, "MPI_Allreduce");
  child = spawn(argv[0], "dies");
  hear_of(0, child);
  check(failures() == 1, "one has died");
  check(sum(side) == MPI_SUCCESS, "MPI_Allreduce, the child being dead");
  MPI_Comm_free(&child);
  MPI_Barrier(MPI_COMM_WORLD); /* a number is given again when no process holds it any more */
  child = spawn(argv[0], "lives");
  for (int i = 0; !is_given_again(); i++) {
    check(i < 100, "no new process gets the number of the dead one");
    let_go(&child);
    child = spawn(argv[0], "lives");
  }
  if (rank == 2) raise(SIGKILL);
  hear_of(2, MPI_COMM_WORLD);
  check(sum(side) == MPIX_ERR_PROC_FAILED, "a sum of one that is dead");
  if (rank == 0) printf("2 of 3 go on\n");
  let_go(&child);
  MPI_Finalize();
  return 0;
}
