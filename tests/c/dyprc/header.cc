/* The header in C++: setjmp and longjmp over frames without destructors. */
// run: n=2 stdout~"^1 of 2 goes on"
#include <ulfm_dyprc.h>
#include <csignal>
#include <cstdio>

int main(int argc, char **argv)
{
  MPI_Init(&argc, &argv);
  static MPI_Comm mworld;
  static int newcomer = ulfm_dyprc_merge_child(&mworld);
  int rank, size;
  if (ulfm_dyprc_setjmp(mworld, newcomer)) {
    MPI_Comm_size(mworld, &size);
    std::printf("%d of 2 goes on\n", size);
    MPI_Finalize();
    return size != 1;
  }
  MPI_Comm_rank(mworld, &rank);
  if (rank == 0) std::raise(SIGKILL);
  for (;;) ulfm_dyprc_poll(mworld);
}
