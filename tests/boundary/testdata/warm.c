/* warm LOOP N: N rounds of a loop that must not enter Go, after as many rounds as make it warm. Each rank says how often it has
 * entered Go during the N rounds: what it took to make the objects depends on who was quicker. */
#include <mpi-ext.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size, rounds, all_rounds;

static void barrier(void) { MPI_Barrier(MPI_COMM_WORLD); }

static void pingpong(void)
{
  char b[8] = "abcdefg";
  if (rank == 0) {
    MPI_Send(b, 8, MPI_CHAR, 1, 5, MPI_COMM_WORLD);
    MPI_Recv(b, 8, MPI_CHAR, 1, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  } else if (rank == 1) {
    MPI_Recv(b, 8, MPI_CHAR, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(b, 8, MPI_CHAR, 0, 5, MPI_COMM_WORLD);
  }
}

static void nonblocking(void)
{
  static int out[8], in[8];
  MPI_Request r[16];
  for (int i = 0; i < 8; i++) {
    MPI_Irecv(&in[i], 1, MPI_INT, (rank + size - 1) % size, i, MPI_COMM_WORLD, &r[i]);
    MPI_Isend(&out[i], 1, MPI_INT, (rank + 1) % size, i, MPI_COMM_WORLD, &r[8 + i]);
  }
  MPI_Waitall(16, r, MPI_STATUSES_IGNORE);
}

/* Every collective operation, with arrays of counts that change from round to round; the nonblocking ones too. */
static void collectives(void)
{
  static int in[256], out[256], counts[16], displs[16], round;
  MPI_Request r[3];
  MPI_Comm c = MPI_COMM_WORLD;
  int root = 1 % size;
  round++;
  for (int i = 0; i < size; i++) counts[i] = 1 + (i + round) % 3, displs[i] = 4 * i;
  MPI_Bcast(in, 5, MPI_INT, root, c);
  MPI_Gather(in, 2, MPI_INT, out, 2, MPI_INT, root, c);
  MPI_Scatter(in, 2, MPI_INT, out, 2, MPI_INT, root, c);
  MPI_Allgather(in, 2, MPI_INT, out, 2, MPI_INT, c);
  MPI_Alltoall(in, 2, MPI_INT, out, 2, MPI_INT, c);
  MPI_Reduce(in, out, 3, MPI_INT, MPI_SUM, root, c);
  MPI_Allreduce(in, out, 3, MPI_INT, MPI_MAX, c);
  MPI_Reduce_scatter_block(in, out, 2, MPI_INT, MPI_SUM, c);
  MPI_Scan(in, out, 3, MPI_INT, MPI_SUM, c);
  MPI_Exscan(in, out, 3, MPI_INT, MPI_SUM, c);
  MPI_Gatherv(in, counts[rank], MPI_INT, out, counts, displs, MPI_INT, root, c);
  MPI_Scatterv(in, counts, displs, MPI_INT, out, counts[rank], MPI_INT, root, c);
  MPI_Ibarrier(c, &r[0]);
  MPI_Ibcast(in, 5, MPI_INT, root, c, &r[1]);
  MPI_Iallreduce(in, out, 3, MPI_INT, MPI_SUM, c, &r[2]);
  MPI_Waitall(3, r, MPI_STATUSES_IGNORE);
}

/* A short and a long multicast, to a set that exists, and received as any message. */
static void multicast(void)
{
  static MPIX_Rankset all;
  static char piece[40000], got[40000];
  MPI_Request r;
  int range[1][3] = {{0, size - 1, 1}};
  if (all == MPIX_RANKSET_NULL) MPIX_Rankset_range_incl(MPI_COMM_WORLD, 1, range, &all);
  if (rank == 0) {
    MPIX_Mcast(piece, 8, MPI_BYTE, all, 6, MPI_COMM_WORLD);
    MPIX_Imcast(piece, sizeof piece, MPI_BYTE, all, 6, MPI_COMM_WORLD, &r);
  }
  MPI_Recv(got, 8, MPI_BYTE, MPI_ANY_SOURCE, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Recv(got, sizeof got, MPI_BYTE, 0, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (rank == 0) MPI_Wait(&r, MPI_STATUS_IGNORE);
  if (++rounds == all_rounds) MPIX_Rankset_free(&all);
}

/* A file in long pieces, each rank its own: by explicit offset, by pointer, with and without a request, together. */
static void files(void)
{
  static MPI_File f = MPI_FILE_NULL;
  static char piece[4096];
  MPI_Request r;
  MPI_Status st;
  MPI_Offset at = rank * (MPI_Offset)sizeof piece;
  if (f == MPI_FILE_NULL) {
    MPI_File_open(MPI_COMM_WORLD, "warm-files.data", MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE,
                  MPI_INFO_NULL, &f);
    MPI_Datatype run, tile;
    MPI_Type_contiguous((int)sizeof piece, MPI_BYTE, &run);
    MPI_Type_create_resized(run, 0, size * (MPI_Aint)sizeof piece, &tile);
    MPI_Type_commit(&tile);
    MPI_File_set_view(f, at, MPI_BYTE, tile, "native", MPI_INFO_NULL);
    MPI_Type_free(&run);
    MPI_Type_free(&tile);
  }
  MPI_File_write_at(f, 0, piece, sizeof piece, MPI_BYTE, &st);
  MPI_File_iread_at(f, 0, piece, sizeof piece, MPI_BYTE, &r);
  MPI_Wait(&r, &st);
  MPI_File_read_at_all(f, 0, piece, sizeof piece, MPI_BYTE, &st);
  MPI_File_write(f, piece, sizeof piece, MPI_BYTE, &st);
  MPI_File_write_shared(f, piece, 16, MPI_BYTE, &st);
  if (++rounds == all_rounds) MPI_File_close(&f);
}

/* Every one-sided operation, and what closes epochs but groups. */
static void onesided(void)
{
  static MPI_Win win = MPI_WIN_NULL;
  static long *mine, one = 1, old, none;
  int to = (rank + 1) % size;
  if (win == MPI_WIN_NULL) MPI_Win_allocate(64, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &mine, &win);
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, to, 0, win);
  MPI_Put(&one, 1, MPI_LONG, to, 0, 1, MPI_LONG, win);
  MPI_Win_flush(to, win);
  MPI_Get(&old, 1, MPI_LONG, to, 0, 1, MPI_LONG, win);
  MPI_Win_unlock(to, win);
  MPI_Win_lock_all(0, win);
  MPI_Accumulate(&one, 1, MPI_LONG, to, 1, 1, MPI_LONG, MPI_SUM, win);
  MPI_Fetch_and_op(&one, &old, MPI_LONG, to, 2, MPI_MAX, win);
  MPI_Compare_and_swap(&one, &none, &old, MPI_LONG, to, 3, win);
  MPI_Win_unlock_all(win);
  MPI_Win_fence(0, win);
  MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
  if (++rounds == all_rounds) MPI_Win_free(&win);
}

/* How often this process has entered Go so far. */
static unsigned long long entered(void)
{
  static MPI_T_pvar_session session;
  static MPI_T_pvar_handle handle;
  static int index = -1, count, provided;
  unsigned long long n;
  if (index < 0) {
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    if (MPI_T_pvar_get_index("spx_engine_entries", MPI_T_PVAR_CLASS_COUNTER, &index) != MPI_SUCCESS)
      MPI_Abort(MPI_COMM_WORLD, 1);
    MPI_T_pvar_session_create(&session);
    MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &count);
    MPI_T_pvar_start(session, handle); /* an error where it is always on */
  }
  MPI_T_pvar_read(session, handle, &n);
  return n;
}

int main(int argc, char **argv)
{
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  void (*loop)(void) = !strcmp(argv[1], "barrier")       ? barrier
                       : !strcmp(argv[1], "pingpong")    ? pingpong
                       : !strcmp(argv[1], "collectives") ? collectives
                       : !strcmp(argv[1], "multicast")   ? multicast
                       : !strcmp(argv[1], "files")       ? files
                       : !strcmp(argv[1], "onesided")    ? onesided
                                                         : nonblocking;
  int more = atoi(argv[2]);
  all_rounds = 10 + more + 1; /* in the last one objects are freed */
  entered();
  for (int i = 0; i < 10; i++) loop();
  unsigned long long before = entered(), to_ask = entered() - before;
  for (int i = 0; i < more; i++) loop();
  unsigned long long after = entered();
  printf("rank %d: %llu\n", rank, after - before - 2 * to_ask);
  loop();
  MPI_Finalize();
  return 0;
}
