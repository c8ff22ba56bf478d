/* An ordinary program: messages short and long, requests, collectives, a datatype, a window, a file. It has no mistake. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void messages(int rank, int size)
{
  int next = (rank + 1) % size, before = (rank + size - 1) % size;
  for (int n = 1; n <= 1 << 18; n *= 64) {
    double *out = malloc(n * sizeof *out), *in = malloc(n * sizeof *in);
    MPI_Request r[2];
    for (int i = 0; i < n; i++) out[i] = rank + i;
    MPI_Irecv(in, n, MPI_DOUBLE, before, n % 1000, MPI_COMM_WORLD, &r[0]);
    MPI_Isend(out, n, MPI_DOUBLE, next, n % 1000, MPI_COMM_WORLD, &r[1]);
    MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
    for (int i = 0; i < n; i++)
      if (in[i] != before + i) MPI_Abort(MPI_COMM_WORLD, 3);
    free(out);
    free(in);
  }
}

static void collectives(int rank, int size)
{
  int *all = malloc(size * sizeof *all), sum = 0;
  MPI_Allgather(&rank, 1, MPI_INT, all, 1, MPI_INT, MPI_COMM_WORLD);
  for (int i = 0; i < size; i++)
    if (all[i] != i) MPI_Abort(MPI_COMM_WORLD, 4);
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (sum != size * (size - 1) / 2) MPI_Abort(MPI_COMM_WORLD, 5);
  MPI_Bcast(all, size, MPI_INT, 0, MPI_COMM_WORLD);
  MPI_Barrier(MPI_COMM_WORLD);
  free(all);
}

static void datatype_and_window(int rank, int size)
{
  MPI_Datatype column;
  MPI_Win win;
  int *memory, table[4][4], value = 100 + rank;
  memset(table, 0, sizeof table);
  MPI_Type_vector(4, 1, 4, MPI_INT, &column);
  MPI_Type_commit(&column);
  MPI_Sendrecv(&table[0][0], 1, column, (rank + 1) % size, 1, &table[0][1], 1, column, (rank + size - 1) % size, 1,
               MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Type_free(&column);
  MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
  MPI_Win_fence(0, win);
  MPI_Put(&value, 1, MPI_INT, (rank + 1) % size, 0, 1, MPI_INT, win);
  MPI_Win_fence(0, win);
  if (*memory != 100 + (rank + size - 1) % size) MPI_Abort(MPI_COMM_WORLD, 6);
  MPI_Win_free(&win);
}

int main(int argc, char **argv)
{
  int rank, size;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  messages(rank, size);
  collectives(rank, size);
  datatype_and_window(rank, size);
  if (argc > 1 && rank == 1) { /* the mistakes that the tools must still find */
    volatile char *small = malloc(10);
    small[atoi(argv[1])] = 1;
    free((void *)small);
  }
  MPI_Finalize();
  if (rank == 0) printf("done\n");
  return 0;
}
