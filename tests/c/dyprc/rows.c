/* Communicators that were made of the one of all processes: when a process dies, everybody gets out of them, also who waits there for one
 * that lives, but has gone back to the setjmp point already. Nobody polls. An error that is no failure goes where those
 * of MPI_COMM_WORLD go, and what is called in the wrong order is told. */
// run: n=9 timeout=40 stdout~"^2 of 9 left, in 7 recoveries"
// run: n=1 args=early status=16 stderr~"ulfm_dyprc_merge_child has not been called"
// run: n=2 args=error status=6 stderr~"MPI_ERR_RANK"
#include <ulfm_dyprc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static MPI_Comm mworld, row = MPI_COMM_NULL, column = MPI_COMM_NULL;
static int recoveries;

/* Everybody passes a number on in its row, then in its column. */
static void step(void)
{
  MPI_Comm both[] = {row, column};
  for (int k = 0; k < 2; k++) {
    int rank, size, x;
    MPI_Comm_rank(both[k], &rank);
    MPI_Comm_size(both[k], &size);
    if (size == 1) continue;
    if (rank > 0) MPI_Recv(&x, 1, MPI_INT, rank - 1, 0, both[k], MPI_STATUS_IGNORE);
    MPI_Send(&rank, 1, MPI_INT, (rank + 1) % size, 0, both[k]);
    if (rank == 0) MPI_Recv(&x, 1, MPI_INT, size - 1, 0, both[k], MPI_STATUS_IGNORE);
  }
}

static int recover(int argc, char **argv)
{
  int size = 9, rank;
  ulfm_dyprc_merge_child(&mworld);
  if (argc > 1) { /* error */
    MPI_Send(NULL, 0, MPI_INT, 7, 0, mworld);
    return 1;
  }
  while (size > 2) {
    if (ulfm_dyprc_setjmp(mworld, 0)) recoveries++;
    if (row != MPI_COMM_NULL) MPI_Comm_free(&row);
    if (column != MPI_COMM_NULL) MPI_Comm_free(&column);
    MPI_Comm_rank(mworld, &rank);
    MPI_Comm_size(mworld, &size);
    int wide = size > 4 ? 3 : 2;
    MPI_Comm_split(mworld, rank / wide, rank, &row);
    MPI_Comm_split(mworld, rank % wide, rank, &column);
    for (int i = 0; size > 2; i++) {
      if (i == 20 && rank == size - 1 - recoveries % 2) raise(SIGKILL);
      step();
    }
  }
  if (rank == 0) printf("%d of 9 left, in %d recoveries\n", size, recoveries);
  return 0;
}

int main(int argc, char **argv)
{
  MPI_Init(&argc, &argv);
  if (argc > 1 && strcmp(argv[1], "early") == 0) ulfm_dyprc_poll(mworld);
  int status = recover(argc, argv);
  MPI_Finalize();
  return status;
}
