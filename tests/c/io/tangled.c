// run: n=1,2,4
/* A filetype whose extent is smaller than its data reach (a struct of which some parts have bounds of their own, as libraries
 * make for chunks of an array) is a view like any other while one copy of it is accessed. MPI-5.0, 15.3. */
#include "file.h"

enum { BLOCKS = 6, INTS = 8 };

/* Blocks of INTS ints, size of them apart; the extent ends after the first. */
static MPI_Datatype short_extent(void)
{
  MPI_Datatype block, list, t;
  int lengths[BLOCKS];
  MPI_Aint at[BLOCKS];
  OK(MPI_Type_contiguous(INTS, MPI_INT, &block));
  for (int i = 0; i < BLOCKS; i++) {
    lengths[i] = 1;
    at[i] = (MPI_Aint)(i * size + rank) * INTS * (MPI_Aint)sizeof(int);
  }
  OK(MPI_Type_create_hindexed(BLOCKS, lengths, at, block, &list));
  OK(MPI_Type_create_resized(list, 0, INTS * (MPI_Aint)sizeof(int), &t));
  OK(MPI_Type_commit(&t));
  MPI_Type_free(&block);
  MPI_Type_free(&list);
  return t;
}

static int value(int r, int i) { return r * 1000 + i; }

static void one_copy(MPI_File f, int together)
{
  int a[BLOCKS * INTS], b[BLOCKS * INTS];
  MPI_Datatype t = short_extent();
  OK(MPI_File_set_view(f, 0, MPI_INT, t, "native", MPI_INFO_NULL));
  for (int i = 0; i < BLOCKS * INTS; i++) a[i] = value(rank, i) + together;
  if (together)
    OK(MPI_File_write_at_all(f, 0, a, BLOCKS * INTS, MPI_INT, MPI_STATUS_IGNORE));
  else
    OK(MPI_File_write_at(f, 0, a, BLOCKS * INTS, MPI_INT, MPI_STATUS_IGNORE));
  memset(b, 0, sizeof b);
  MPI_Barrier(MPI_COMM_WORLD);
  OK(MPI_File_read_at_all(f, 0, b, BLOCKS * INTS, MPI_INT, MPI_STATUS_IGNORE));
  CHECK(memcmp(a, b, sizeof a) == 0);
  OK(MPI_File_set_view(f, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
  int whole[BLOCKS * INTS * 4];
  OK(MPI_File_read_at(f, 0, whole, size * BLOCKS * INTS, MPI_INT, MPI_STATUS_IGNORE));
  for (int i = 0; i < size * BLOCKS * INTS; i++) {
    int block = i / INTS, of = block % size;
    CHECK(whole[i] == value(of, block / size * INTS + i % INTS) + together);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Type_free(&t);
}

/* Two copies that lie across each other are written in order: on one process, so that it is known what comes last. */
static void two_copies(const char *name)
{
  MPI_File f;
  int a[4] = {1, 2, 3, 4}, b[4] = {0}, all[3];
  MPI_Datatype gap, t;
  OK(MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &f));
  OK(MPI_Type_vector(2, 1, 1, MPI_INT, &gap));
  OK(MPI_Type_create_resized(gap, 0, sizeof(int), &t));
  OK(MPI_Type_commit(&t));
  OK(MPI_File_set_view(f, 0, MPI_INT, t, "native", MPI_INFO_NULL));
  OK(MPI_File_set_atomicity(f, 1));
  OK(MPI_File_write_at_all(f, 0, a, 4, MPI_INT, MPI_STATUS_IGNORE));
  OK(MPI_File_set_view(f, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
  OK(MPI_File_read_at(f, 0, all, 3, MPI_INT, MPI_STATUS_IGNORE));
  CHECK(all[0] == 1 && all[1] == 3 && all[2] == 4);
  OK(MPI_File_set_view(f, 0, MPI_INT, t, "native", MPI_INFO_NULL));
  OK(MPI_File_read_at_all(f, 0, b, 4, MPI_INT, MPI_STATUS_IGNORE));
  CHECK(b[0] == 1 && b[1] == 3 && b[2] == 3 && b[3] == 4);
  OK(MPI_File_close(&f));
  MPI_Type_free(&gap);
  MPI_Type_free(&t);
}

int main(int argc, char **argv)
{
  start(&argc, &argv);
  MPI_File f = open_new(test_file("tangled"), MPI_INFO_NULL);
  one_copy(f, 1);
  one_copy(f, 0);
  OK(MPI_File_close(&f));
  const char *name = test_file("two");
  if (rank == 0) two_copies(name);
  MPI_Finalize();
  return check_status();
}
