// run: n=1,2,4
/* Every form of data access: explicit offsets, individual, shared and ordered pointers; blocking, nonblocking, split. Each process
 * writes its own ints and reads those of its neighbour. MPI-5.0, 15.4. */
#include "file.h"

enum { N = 1000 };

static void fill(int *a, int of, int round)
{
  for (int i = 0; i < N; i++) a[i] = of * 1000000 + round * 10000 + i;
}

static void same(const int *a, int of, int round)
{
  int wrong = 0;
  for (int i = 0; i < N; i++) wrong += a[i] != of * 1000000 + round * 10000 + i;
  CHECK(wrong == 0);
}

static void write_at(MPI_File f, MPI_Offset at, int *a, int round, MPI_Status *st)
{
  MPI_Request r;
  switch (round) {
  case 0: OK(MPI_File_write_at(f, at, a, N, MPI_INT, st)); break;
  case 1: OK(MPI_File_write_at_all_c(f, at, a, N, MPI_INT, st)); break;
  case 2:
    OK(MPI_File_iwrite_at(f, at, a, N, MPI_INT, &r));
    OK(MPI_Wait(&r, st));
    break;
  default: OK(MPI_File_write_at_all_begin(f, at, a, N, MPI_INT)); OK(MPI_File_write_at_all_end(f, a, st));
  }
}

static void read_at(MPI_File f, MPI_Offset at, int *a, int round, MPI_Status *st)
{
  MPI_Request r;
  switch (round) {
  case 0: OK(MPI_File_read_at(f, at, a, N, MPI_INT, st)); break;
  case 1: OK(MPI_File_read_at_all(f, at, a, N, MPI_INT, st)); break;
  case 2:
    OK(MPI_File_iread_at_all(f, at, a, N, MPI_INT, &r));
    OK(MPI_Wait(&r, st));
    CHECK(r == MPI_REQUEST_NULL);
    break;
  default: OK(MPI_File_read_at_all_begin_c(f, at, a, N, MPI_INT)); OK(MPI_File_read_at_all_end(f, a, st));
  }
}

static void explicit_offsets(MPI_File f)
{
  int a[N], next = (rank + 1) % size;
  MPI_Status st;
  for (int round = 0; round < 4; round++) {
    fill(a, rank, round);
    write_at(f, rank * (MPI_Offset)sizeof a, a, round, &st);
    CHECK(count_of(&st, MPI_INT) == N);
    MPI_Barrier(MPI_COMM_WORLD);
    memset(a, 0, sizeof a);
    read_at(f, next * (MPI_Offset)sizeof a, a, round, &st);
    CHECK(count_of(&st, MPI_INT) == N);
    same(a, next, round);
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

/* Each process sees every size-th block of 10 ints: two phases are worth it. */
static void interleaved_view(MPI_File f)
{
  MPI_Datatype block, mine;
  MPI_Type_contiguous(10, MPI_INT, &block);
  MPI_Type_create_resized(block, 0, size * 10 * (MPI_Aint)sizeof(int), &mine);
  MPI_Type_commit(&mine);
  MPI_Type_free(&block);
  OK(MPI_File_set_view(f, rank * 10 * (MPI_Offset)sizeof(int), MPI_INT, mine, "native", MPI_INFO_NULL));
  MPI_Type_free(&mine);
}

static void individual_pointers(MPI_File f)
{
  int a[N], b[N];
  MPI_Status st;
  MPI_Offset at;
  MPI_Request r;
  for (int round = 0; round < 3; round++) {
    fill(a, rank, round);
    OK(MPI_File_seek(f, round * N, MPI_SEEK_SET));
    if (round == 0) {
      OK(MPI_File_write_all(f, a, N, MPI_INT, &st));
    } else if (round == 1) {
      OK(MPI_File_write(f, a, N, MPI_INT, &st));
    } else {
      OK(MPI_File_write_all_begin(f, a, N, MPI_INT));
      OK(MPI_File_write_all_end(f, a, &st));
    }
    CHECK(count_of(&st, MPI_INT) == N);
    OK(MPI_File_get_position(f, &at));
    CHECK(at == (round + 1) * N);
    OK(MPI_File_seek(f, -N, MPI_SEEK_CUR));
    if (round == 0) {
      OK(MPI_File_read_all(f, b, N, MPI_INT, &st));
    } else if (round == 1) {
      OK(MPI_File_iread(f, b, N, MPI_INT, &r));
      OK(MPI_Wait(&r, &st));
    } else {
      OK(MPI_File_read_all_begin(f, b, N, MPI_INT));
      OK(MPI_File_read_all_end(f, b, &st));
    }
    CHECK(count_of(&st, MPI_INT) == N);
    same(b, rank, round);
  }
}

static void ends_and_positions(MPI_File f)
{
  int b[N];
  MPI_Status st;
  MPI_Offset bytes, disp, at;
  OK(MPI_File_get_byte_offset(f, 25, &disp));
  CHECK(disp == (MPI_Offset)sizeof(int) * (rank * 10 + 2 * size * 10 + 5));
  MPI_Barrier(MPI_COMM_WORLD);
  OK(MPI_File_get_size(f, &bytes));
  CHECK(bytes == 3 * (MPI_Offset)sizeof b * size);
  OK(MPI_File_seek(f, 0, MPI_SEEK_END));
  OK(MPI_File_get_position(f, &at));
  CHECK(at == 3 * N);
  OK(MPI_File_seek(f, -5, MPI_SEEK_END));
  OK(MPI_File_read(f, b, N, MPI_INT, &st));
  CHECK(count_of(&st, MPI_INT) == 5);
  CHECK(b[4] == rank * 1000000 + 2 * 10000 + N - 1);
  CHECK_CLASS(MPI_File_seek(f, -1, MPI_SEEK_SET), MPI_ERR_ARG);
}

static void shared_pointer(MPI_File f)
{
  int a[N];
  MPI_Status st;
  MPI_Offset at;
  MPI_Request r;
  OK(MPI_File_set_view(f, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
  OK(MPI_File_set_size(f, 0));
  fill(a, rank, 1);
  OK(MPI_File_write_ordered(f, a, N, MPI_INT, &st));
  fill(a, rank, 2);
  OK(MPI_File_write_ordered_begin(f, a, N, MPI_INT));
  OK(MPI_File_write_ordered_end(f, a, &st));
  fill(a, rank, 3);
  if (rank % 2) {
    OK(MPI_File_write_shared(f, a, N, MPI_INT, &st));
  } else {
    OK(MPI_File_iwrite_shared(f, a, N, MPI_INT, &r));
    OK(MPI_Wait(&r, &st));
  }
  CHECK(count_of(&st, MPI_INT) == N);
  MPI_Barrier(MPI_COMM_WORLD);
  OK(MPI_File_get_position_shared(f, &at));
  CHECK(at == 3 * N * size);
  OK(MPI_File_seek_shared(f, 0, MPI_SEEK_SET));
  OK(MPI_File_read_ordered(f, a, N, MPI_INT, &st));
  same(a, rank, 1);
  OK(MPI_File_read_ordered_begin(f, a, N, MPI_INT));
  OK(MPI_File_read_ordered_end(f, a, &st));
  same(a, rank, 2);
  OK(MPI_File_read_shared(f, a, N, MPI_INT, &st));
  int of = a[0] / 1000000, seen = 1 << of, all = 0;
  same(a, of, 3);
  MPI_Allreduce(&seen, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  CHECK(all == (1 << size) - 1); /* everybody has another one's */
  OK(MPI_File_read_shared(f, a, N, MPI_INT, &st));
  CHECK(count_of(&st, MPI_INT) == 0);
}

int main(int argc, char **argv)
{
  start(&argc, &argv);
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, "cb_buffer_size", "4096"); /* many rounds */
  MPI_Info_set(info, "cb_nodes", "3");
  const char *name = test_file("access");
  MPI_File f = open_new(name, info);
  MPI_Info_free(&info);
  explicit_offsets(f);
  OK(MPI_File_set_size(f, 0));
  interleaved_view(f);
  individual_pointers(f);
  ends_and_positions(f);
  shared_pointer(f);
  int on = 0;
  OK(MPI_File_set_atomicity(f, 1));
  OK(MPI_File_get_atomicity(f, &on));
  CHECK(on == 1);
  OK(MPI_File_set_view(f, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
  explicit_offsets(f);
  OK(MPI_File_preallocate(f, 1000000));
  MPI_Offset bytes;
  OK(MPI_File_get_size(f, &bytes));
  CHECK(bytes == 1000000);
  OK(MPI_File_sync(f));
  OK(MPI_File_close(&f));
  CHECK(f == MPI_FILE_NULL);
  CHECK(access(name, F_OK) != 0); /* deleted on close */
  MPI_Finalize();
  return check_status();
}
