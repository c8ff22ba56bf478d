/* farm.c - a master gives tasks to workers, and all of them may be killed, one after another: also the master.
 *
 *     mpicc -O2 farm.c -o farm && spxrun --with-ft -n 8 ./farm 400 kill
 *
 * Whoever has done a task remembers its result. When a process dies, the others hear it at their next message: the error handler revokes the
 * communicator, so that nobody waits in it any more, and jumps back to the point where all shrink it, tell each other which results they have,
 * and go on: the lowest rank is the master. A task is done again only if all who had its result are dead. With "kill", processes end themselves
 * on the way, a worker at its first task and a master in turn, until two are left. At the end the master does all tasks itself, and compares.
 */
#include <mpi-ext.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 10000, TASK = 1, STOP = 2, RESULT = 3, EACH = 20 /* results that a master gets before it is killed */ };
enum { UNKNOWN = -1 };

typedef struct answer {
  long task, value;
} answer;

static MPI_Comm team;
static MPI_Errhandler handler;
static jmp_buf again;
static long result[MOST], others[MOST]; /* static: they keep their values when the program jumps back */
static int tasks, first_size, deaths, recoveries, rank, size, wrong;

static void on_error(MPI_Comm *comm, int *code, ...)
{
  int class, length;
  char text[MPI_MAX_ERROR_STRING];
  MPI_Error_class(*code, &class);
  if (class == MPIX_ERR_PROC_FAILED || class == MPIX_ERR_PROC_FAILED_PENDING || class == MPIX_ERR_REVOKED) {
    MPIX_Comm_revoke(*comm);
    longjmp(again, 1);
  }
  MPI_Error_string(*code, text, &length);
  fprintf(stderr, "farm: %s\n", text);
  MPI_Abort(*comm, 1);
}

/* Steps to 1 by Collatz' rule, summed over some numbers: it takes long for some tasks. */
static long compute(long task)
{
  long steps = 0;
  for (long n = task * 50 + 1; n <= task * 50 + 50; n++)
    for (long k = n; k != 1; steps++) k = k % 2 ? 3 * k + 1 : k / 2;
  return steps;
}

static int dead(void) { return first_size - size; }

/* Ends this process, if its turn has come: the last worker and the master in turn. */
static void perhaps_die(void)
{
  if (dead() < deaths && rank == (dead() % 2 ? 0 : size - 1)) raise(SIGKILL);
}

static void work(void)
{
  MPI_Status st;
  for (;;) {
    answer a;
    MPI_Recv(&a.task, 1, MPI_LONG, 0, MPI_ANY_TAG, team, &st);
    if (st.MPI_TAG == STOP) return;
    result[a.task] = a.value = compute(a.task);
    perhaps_die();
    MPI_Send(&a, 2, MPI_LONG, 0, RESULT, team);
  }
}

/* The next task that nobody has done, from *next on; none: tasks. While there are deaths to come, some are kept for later. */
static long choose(long *next)
{
  int end = tasks * (dead() + 1) / (deaths + 1);
  while (*next < end && result[*next] != UNKNOWN) ++*next;
  return *next < end ? (*next)++ : tasks;
}

static void lead(void)
{
  long next = 0, task;
  int busy = 0, done = 0;
  for (int worker = 1; worker < size && (task = choose(&next)) < tasks; worker++, busy++)
    MPI_Send(&task, 1, MPI_LONG, worker, TASK, team);
  while (busy > 0) {
    MPI_Status st;
    answer a;
    MPI_Recv(&a, 2, MPI_LONG, MPI_ANY_SOURCE, RESULT, team, &st);
    result[a.task] = a.value;
    if (++done == EACH) perhaps_die();
    if ((task = choose(&next)) < tasks)
      MPI_Send(&task, 1, MPI_LONG, st.MPI_SOURCE, TASK, team);
    else
      busy--;
  }
  while ((task = choose(&next)) < tasks) result[task] = compute(task); /* all workers are dead */
  for (int worker = 1; worker < size; worker++) MPI_Send(&task, 1, MPI_LONG, worker, STOP, team);
}

/* All who are left know what any of them does. */
static void meet(void)
{
  MPI_Comm_set_errhandler(team, handler);
  MPI_Comm_rank(team, &rank);
  MPI_Comm_size(team, &size);
  MPI_Allreduce(result, others, tasks, MPI_LONG, MPI_MAX, team);
  memcpy(result, others, sizeof result);
}

int main(int argc, char **argv)
{
  int all_done = 1;
  tasks = argc > 1 ? atoi(argv[1]) : 400;
  if (tasks < 1 || tasks > MOST) tasks = MOST;
  for (int t = 0; t < MOST; t++) result[t] = UNKNOWN;
  MPI_Init(&argc, &argv);
  MPI_Comm_dup(MPI_COMM_WORLD, &team);
  MPI_Comm_size(team, &first_size);
  if (argc > 2 && strcmp(argv[2], "kill") == 0) deaths = first_size - 2;
  MPI_Comm_create_errhandler(on_error, &handler);
  if (setjmp(again)) {
    MPI_Comm left;
    if (MPIX_Comm_shrink(team, &left) != MPI_SUCCESS) MPI_Abort(MPI_COMM_WORLD, 1);
    MPI_Comm_free(&team);
    team = left;
    recoveries++;
  }
  meet();
  if (rank == 0)
    lead();
  else
    work();
  MPIX_Comm_agree(team, &all_done); /* nobody leaves before it is certain that nobody needs him */
  if (rank == 0) {
    for (int t = 0; t < tasks; t++) wrong += result[t] != compute(t);
    printf("farm: %d tasks, %d wrong; %d processes are left after %d recoveries\n", tasks, wrong, size, recoveries);
  }
  MPI_Errhandler_free(&handler);
  MPI_Comm_free(&team);
  MPI_Finalize();
  return wrong != 0;
}
