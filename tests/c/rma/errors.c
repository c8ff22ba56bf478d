// run: n=2
// run: n=2 env=SPX_CMA=0
/* Wrong calls raise the right class on the window, leave it usable, and never hang. MPI-5.0, 12.6. */
#include "../check.h"
#include <stdlib.h>

static int rank, size;
static long memory[8];

static void creation(void)
{
  MPI_Win w;
  void *p;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  CHECK_CLASS(MPI_Win_create(memory, -1, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &w), MPI_ERR_SIZE);
  CHECK_CLASS(MPI_Win_create(memory, 8, 0, MPI_INFO_NULL, MPI_COMM_WORLD, &w), MPI_ERR_DISP);
  CHECK_CLASS(MPI_Win_allocate(8, -1, MPI_INFO_NULL, MPI_COMM_WORLD, &p, &w), MPI_ERR_DISP);
  CHECK_CLASS(MPI_Win_create(memory, 8, 1, MPI_INFO_NULL, MPI_COMM_NULL, &w), MPI_ERR_COMM);
  CHECK_CLASS(MPI_Win_allocate((MPI_Aint)1 << 45, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &p, &w), MPI_ERR_NO_MEM);
}

static void targets(MPI_Win w)
{
  long v = 0;
  MPI_Win_lock_all(0, w);
  CHECK_CLASS(MPI_Put(&v, 1, MPI_LONG, size, 0, 1, MPI_LONG, w), MPI_ERR_RANK);
  CHECK_CLASS(MPI_Put(&v, 1, MPI_LONG, -5, 0, 1, MPI_LONG, w), MPI_ERR_RANK);
  CHECK_CLASS(MPI_Put(&v, 1, MPI_LONG, 0, -1, 1, MPI_LONG, w), MPI_ERR_DISP);
  CHECK_CLASS(MPI_Put(&v, 1, MPI_LONG, 0, 8, 1, MPI_LONG, w), MPI_ERR_RMA_RANGE);
  CHECK_CLASS(MPI_Get(&v, 1, MPI_LONG, 1, 1000000, 1, MPI_LONG, w), MPI_ERR_RMA_RANGE);
  CHECK_CLASS(MPI_Get(&v, -1, MPI_LONG, 1, 0, 1, MPI_LONG, w), MPI_ERR_COUNT);
  CHECK_CLASS(MPI_Get(&v, 1, MPI_DATATYPE_NULL, 1, 0, 1, MPI_LONG, w), MPI_ERR_TYPE);
  CHECK_CLASS(MPI_Get(NULL, 1, MPI_LONG, 1, 0, 1, MPI_LONG, w), MPI_ERR_BUFFER);
  CHECK_CLASS(MPI_Accumulate(&v, 1, MPI_LONG, 1, 0, 1, MPI_LONG, MPI_MAXLOC, w), MPI_ERR_OP);
  CHECK_CLASS(MPI_Fetch_and_op(&v, &v, MPI_DOUBLE, 1, 0, MPI_BAND, w), MPI_ERR_OP);
  double d = 0;
  CHECK_CLASS(MPI_Compare_and_swap(&d, &d, &d, MPI_DOUBLE, 1, 0, w), MPI_ERR_TYPE);
  CHECK(MPI_Put(&v, 1, MPI_LONG, MPI_PROC_NULL, -1, 1, MPI_LONG, w) == MPI_SUCCESS);
  CHECK(MPI_Put(NULL, 0, MPI_LONG, 1, 8, 0, MPI_LONG, w) == MPI_SUCCESS);
  MPI_Request r;
  CHECK(MPI_Rget(&v, 1, MPI_LONG, MPI_PROC_NULL, 0, 1, MPI_LONG, w, &r) == MPI_SUCCESS);
  CHECK(MPI_Wait(&r, MPI_STATUS_IGNORE) == MPI_SUCCESS && r == MPI_REQUEST_NULL);
  MPI_Win_unlock_all(w);
}

static void epochs(MPI_Win w)
{
  long v = 0;
  int flag;
  MPI_Group g;
  MPI_Request r;
  MPI_Win_get_group(w, &g);
  CHECK_CLASS(MPI_Put(&v, 1, MPI_LONG, 0, 0, 1, MPI_LONG, w), MPI_ERR_RMA_SYNC);
  CHECK_CLASS(MPI_Win_unlock(0, w), MPI_ERR_RMA_SYNC);
  CHECK_CLASS(MPI_Win_unlock_all(w), MPI_ERR_RMA_SYNC);
  CHECK_CLASS(MPI_Win_flush(0, w), MPI_ERR_RMA_SYNC);
  CHECK_CLASS(MPI_Win_complete(w), MPI_ERR_RMA_SYNC);
  CHECK_CLASS(MPI_Win_wait(w), MPI_ERR_RMA_SYNC);
  CHECK_CLASS(MPI_Win_test(w, &flag), MPI_ERR_RMA_SYNC);
  CHECK_CLASS(MPI_Win_fence(MPI_MODE_NOCHECK, w), MPI_ERR_ASSERT);
  CHECK_CLASS(MPI_Win_lock(7, 0, 0, w), MPI_ERR_LOCKTYPE);
  CHECK_CLASS(MPI_Win_lock(MPI_LOCK_SHARED, size, 0, w), MPI_ERR_RANK);
  CHECK_CLASS(MPI_Win_lock(MPI_LOCK_SHARED, 0, 1, w), MPI_ERR_ASSERT);
  CHECK(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, w) == MPI_SUCCESS);
  CHECK_CLASS(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, w), MPI_ERR_RMA_SYNC);
  CHECK_CLASS(MPI_Win_lock_all(0, w), MPI_ERR_RMA_SYNC);
  CHECK_CLASS(MPI_Win_fence(0, w), MPI_ERR_RMA_SYNC);
  CHECK_CLASS(MPI_Put(&v, 1, MPI_LONG, 1, 0, 1, MPI_LONG, w), MPI_ERR_RMA_SYNC);
  CHECK_CLASS(MPI_Win_flush(1, w), MPI_ERR_RMA_SYNC);
  CHECK_CLASS(MPI_Win_free(&w), MPI_ERR_RMA_SYNC);
  CHECK(MPI_Win_unlock(0, w) == MPI_SUCCESS);
  CHECK(MPI_Win_fence(0, w) == MPI_SUCCESS);
  CHECK_CLASS(MPI_Rput(&v, 1, MPI_LONG, 0, 0, 1, MPI_LONG, w, &r), MPI_ERR_RMA_SYNC);
  CHECK(MPI_Put(&v, 1, MPI_LONG, rank, 0, 1, MPI_LONG, w) == MPI_SUCCESS);
  CHECK_CLASS(MPI_Win_fence(MPI_MODE_NOPRECEDE, w), MPI_ERR_RMA_SYNC);
  CHECK_CLASS(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, w), MPI_ERR_RMA_SYNC);
  CHECK(MPI_Win_fence(MPI_MODE_NOSUCCEED, w) == MPI_SUCCESS);
  CHECK_CLASS(MPI_Win_attach(w, memory, 8), MPI_ERR_RMA_FLAVOR);
  MPI_Group_free(&g);
}

/* Only attached memory of a dynamic window can be reached, at its address. */
static void dynamic(void)
{
  MPI_Win w;
  CHECK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &w) == MPI_SUCCESS);
  MPI_Win_set_errhandler(w, MPI_ERRORS_RETURN);
  CHECK(MPI_Win_attach(w, memory, 4 * sizeof(long)) == MPI_SUCCESS);
  CHECK(MPI_Win_attach(w, memory + 4, 4 * sizeof(long)) == MPI_SUCCESS);
  CHECK_CLASS(MPI_Win_attach(w, memory + 1, 8), MPI_ERR_RMA_ATTACH);
  CHECK_CLASS(MPI_Win_detach(w, memory + 1), MPI_ERR_BASE);
  MPI_Aint there[2], here;
  MPI_Get_address(&memory[3], &here);
  MPI_Allgather(&here, 1, MPI_AINT, there, 1, MPI_AINT, MPI_COMM_WORLD);
  memory[3] = 0;
  MPI_Win_fence(0, w);
  long v = 70 + rank, got = -1;
  CHECK(MPI_Put(&v, 1, MPI_LONG, 1 - rank, there[1 - rank], 1, MPI_LONG, w) == MPI_SUCCESS);
  MPI_Win_fence(0, w);
  CHECK(memory[3] == 71 - rank);
  long both[2]; /* across two pieces of attached memory that lie side by side */
  CHECK(MPI_Get(both, 2, MPI_LONG, 1 - rank, there[1 - rank], 2, MPI_LONG, w) == MPI_SUCCESS && both[0] == v);
  CHECK(MPI_Get(both, 2, MPI_LONG, rank, there[rank], 2, MPI_LONG, w) == MPI_SUCCESS && both[0] == memory[3]);
  CHECK_CLASS(MPI_Get(&got, 1, MPI_LONG, 1 - rank, 8, 1, MPI_LONG, w), MPI_ERR_RMA_RANGE);
  CHECK_CLASS(MPI_Get(&got, 1, MPI_LONG, rank, 8, 1, MPI_LONG, w), MPI_ERR_RMA_RANGE);
  MPI_Win_fence(MPI_MODE_NOSUCCEED, w);
  CHECK(MPI_Win_detach(w, memory + 4) == MPI_SUCCESS);
  CHECK(MPI_Win_detach(w, memory) == MPI_SUCCESS);
  CHECK(MPI_Win_free(&w) == MPI_SUCCESS);
}

int main(int argc, char **argv)
{
  MPI_Win w, freed;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  creation();
  MPI_Win_create(memory, sizeof memory, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &w);
  MPI_Win_set_errhandler(w, MPI_ERRORS_RETURN);
  targets(w);
  MPI_Barrier(MPI_COMM_WORLD);
  epochs(w);
  freed = w;
  CHECK(MPI_Win_free(&w) == MPI_SUCCESS);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  CHECK_CLASS(MPI_Win_fence(0, freed), MPI_ERR_WIN);
  CHECK_CLASS(MPI_Win_fence(0, MPI_WIN_NULL), MPI_ERR_WIN);
  CHECK_CLASS(MPI_Win_free(&freed), MPI_ERR_WIN);
  dynamic();
  MPI_Finalize();
  return check_status();
}
