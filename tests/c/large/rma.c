/* One-sided communication of more than 2^31 elements, and at displacements above 2^31. MPI-5.0, chapter 12. */
// run: n=2 timeout=120 alone=1 full=1
#define _GNU_SOURCE
#include "large.h"

int main(int argc, char **argv)
{
  int me, other;
  MPI_Win win;
  MPI_Request r;
  MPI_Init(&argc, &argv);
  small_memory();
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  other = 1 - me;
  char *memory = large(N), *here = large(N);
  fill(memory, N, 5 + 2 * me);
  fill(here, N, 1);
  MPI_Win_create_c(memory, N, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
  MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
  MPI_Win_fence(0, win);
  if (me == 0) CHECK(MPI_Put_c(here, N, MPI_BYTE, 1, 0, N, MPI_BYTE, win) == MPI_SUCCESS);
  MPI_Win_fence(0, win);
  if (me == 1) CHECK(same(memory, N, 1));
  MPI_Win_fence(0, win);
  if (me == 1) CHECK(MPI_Get_c(here, N, MPI_BYTE, 0, 0, N, MPI_BYTE, win) == MPI_SUCCESS && same(here, N, 5));
  MPI_Win_fence(0, win);
  fill(memory, N, 5 + 2 * me);
  fill(here, N, 1);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock_all(0, win);
  /* Bytes at the end of the window; one more would be outside. */
  CHECK(MPI_Put_c(here, 3, MPI_BYTE, other, N - 3, 3, MPI_BYTE, win) == MPI_SUCCESS);
  CHECK_CLASS(MPI_Put_c(here, 3, MPI_BYTE, other, N - 2, 3, MPI_BYTE, win), MPI_ERR_RMA_RANGE);
  CHECK_CLASS(MPI_Put_c(here, N, MPI_BYTE, other, 1, N, MPI_BYTE, win), MPI_ERR_RMA_RANGE);
  MPI_Win_flush(other, win);
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK(!memcmp(memory + N - 3, here, 3));
  MPI_Barrier(MPI_COMM_WORLD);
  if (me == 0) {
    CHECK(MPI_Rput_c(here, N, MPI_BYTE, 1, 0, N, MPI_BYTE, win, &r) == MPI_SUCCESS);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    MPI_Win_flush(1, win);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (me == 1) CHECK(same(memory, N, 1));
  fill(memory, N, 3);
  MPI_Barrier(MPI_COMM_WORLD);
  if (me == 0) CHECK(MPI_Accumulate_c(here, N, MPI_BYTE, 1, 0, N, MPI_BYTE, MPI_BOR, win) == MPI_SUCCESS);
  MPI_Win_flush_all(win);
  MPI_Barrier(MPI_COMM_WORLD);
  if (me == 1) {
    CHECK((unsigned char)memory[77] == (pattern(1, 77) | pattern(3, 77)));
    CHECK((unsigned char)memory[N - 1] == (pattern(2, N - 1) | pattern(4, N - 1)));
  }
  MPI_Win_unlock_all(win);
  MPI_Win_free(&win);

  /* A unit of displacement larger than an int holds. */
  MPI_Win_create_c(memory, N, (MPI_Aint)1 << 31, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
  void *attribute;
  int flag;
  MPI_Win_get_attr(win, MPI_WIN_DISP_UNIT, &attribute, &flag);
  MPI_Win_fence(0, win);
  MPI_Put_c(here, 1, MPI_BYTE, other, 1, 1, MPI_BYTE, win);
  MPI_Win_fence(0, win);
  CHECK(memory[(int64_t)1 << 31] == here[0]);
  MPI_Win_free(&win);
  MPI_Finalize();
  return check_status();
}
