/* tasks.c - a master gives tasks to workers by multicast: each task to another set of them, which nobody makes a communicator for. The workers wait for
 * whatever comes, from whomever, and send a result back; one with tag STOP ends them.
 *
 *     mpicc tasks.c -o tasks && spxrun -n 9 ./tasks [tasks] */
#include <mpi-ext.h>
#include <stdio.h>
#include <stdlib.h>

enum { TASK = 1, STOP = 2, RESULT = 3, NUMBERS = 1000 };

static void work(void)
{
  double task[NUMBERS];
  MPI_Status st;
  for (;;) {
    int n;
    MPI_Recv(task, NUMBERS, MPI_DOUBLE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &st);
    if (st.MPI_TAG == STOP) return;
    MPI_Get_count(&st, MPI_DOUBLE, &n);
    double sum = 0;
    for (int i = 0; i < n; i++) sum += task[i];
    MPI_Send(&sum, 1, MPI_DOUBLE, st.MPI_SOURCE, RESULT, MPI_COMM_WORLD);
  }
}

/* Workers 1, 1 + stride, 1 + 2 * stride ...: for every task others. */
static MPIX_Rankset choose(int workers, int stride, int *n)
{
  int range[1][3] = {{1, workers, stride}};
  MPIX_Rankset set;
  MPIX_Rankset_range_incl(MPI_COMM_WORLD, 1, range, &set);
  MPIX_Rankset_size(set, n);
  return set;
}

int main(int argc, char **argv)
{
  int rank, size, results = 0, wrong = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (size < 2) {
    fprintf(stderr, "tasks: needs a master and a worker: spxrun -n 2 or more\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  if (rank > 0)
    work();
  else {
    int tasks = argc > 1 ? atoi(argv[1]) : 1000, n;
    double task[NUMBERS], sum, start = MPI_Wtime();
    for (int t = 0; t < tasks; t++) {
      MPIX_Rankset set = choose(size - 1, 1 + t % (size - 1), &n);
      for (int i = 0; i < NUMBERS; i++) task[i] = t + i;
      MPIX_Mcast(task, NUMBERS, MPI_DOUBLE, set, TASK, MPI_COMM_WORLD);
      MPIX_Rankset_free(&set);
      for (int k = 0; k < n; k++, results++) {
        MPI_Recv(&sum, 1, MPI_DOUBLE, MPI_ANY_SOURCE, RESULT, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        wrong += sum != NUMBERS * (double)t + NUMBERS * (NUMBERS - 1) / 2.0;
      }
    }
    printf("tasks: %d tasks, %d results, %d of them wrong, %.1f us a task\n", tasks, results, wrong,
           (MPI_Wtime() - start) * 1e6 / tasks);
    MPIX_Rankset all = choose(size - 1, 1, &n);
    MPIX_Mcast(task, 0, MPI_DOUBLE, all, STOP, MPI_COMM_WORLD);
    MPIX_Rankset_free(&all);
  }
  MPI_Finalize();
  return wrong != 0;
}
