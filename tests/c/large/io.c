/* Files: more than 2^31 bytes in one call, from a file that takes no room on the disk; offsets and file types above 2^32.
 * MPI-5.0, chapter 15. */
// run: n=2 timeout=120 alone=1 full=1
#define _GNU_SOURCE
#include "large.h"

int main(int argc, char **argv)
{
  char name[256], *buf;
  int me, small;
  MPI_File f;
  MPI_Status s;
  MPI_Count large_count;
  MPI_Request r;
  MPI_Offset offset, beyond = ((MPI_Offset)1 << 33) + 5;
  MPI_Init(&argc, &argv);
  small_memory();
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  /* In memory, where reading what was never written takes no pages: on a disk it fills the cache with zeros. */
  const char *dir = access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm";
  snprintf(name, sizeof name, "%s/spx-large-%d", dir, (int)getpid());
  MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD);
  buf = large(N);
  CHECK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL,
                      &f) == MPI_SUCCESS);
  CHECK(MPI_File_set_size(f, beyond + 100) == MPI_SUCCESS);
  CHECK(MPI_File_get_size(f, &offset) == MPI_SUCCESS && offset == beyond + 100);

  /* N bytes in one call: zeros, but for what was written at both ends. */
  if (me == 0) {
    CHECK(MPI_File_write_at_c(f, 0, "begin", 5, MPI_BYTE, &s) == MPI_SUCCESS);
    CHECK(MPI_File_write_at_c(f, N - 3, "end", 3, MPI_BYTE, &s) == MPI_SUCCESS);
    CHECK(MPI_File_write_at_c(f, beyond, "beyond", 6, MPI_BYTE, &s) == MPI_SUCCESS);
  }
  MPI_File_sync(f);
  MPI_Barrier(MPI_COMM_WORLD);
  if (me == 0) {
    fill(buf, N, 1);
    CHECK(MPI_File_read_at_c(f, 0, buf, N, MPI_BYTE, &s) == MPI_SUCCESS);
    CHECK(MPI_Get_count_c(&s, MPI_BYTE, &large_count) == MPI_SUCCESS && large_count == N);
    CHECK(MPI_Get_count(&s, MPI_BYTE, &small) == MPI_SUCCESS && small == MPI_UNDEFINED);
    CHECK(!memcmp(buf + N - 3, "end", 3) && buf[N - 4] == 0 && buf[REPEAT - 1] == 0);
  } else {
    fill(buf, N, 1);
    CHECK(MPI_File_iread_at_c(f, 0, buf, N, MPI_BYTE, &r) == MPI_SUCCESS);
    MPI_Wait(&r, &s);
    CHECK(MPI_Get_elements_c(&s, MPI_BYTE, &large_count) == MPI_SUCCESS && large_count == N);
    CHECK(!memcmp(buf + N - 3, "end", 3));
  }
  CHECK(MPI_File_read_at_all_c(f, beyond, buf, 6, MPI_BYTE, &s) == MPI_SUCCESS && !memcmp(buf, "beyond", 6));

  /* A view whose second tile begins above 2^33. */
  MPI_Datatype tile;
  MPI_Count extent;
  MPI_Type_create_resized_c(MPI_BYTE, 0, beyond, &tile);
  MPI_Type_commit(&tile);
  CHECK(MPI_File_get_type_extent_c(f, tile, &extent) == MPI_SUCCESS && extent == beyond);
  CHECK(MPI_File_set_view(f, 1, MPI_BYTE, tile, "native", MPI_INFO_NULL) == MPI_SUCCESS);
  CHECK(MPI_File_get_byte_offset(f, 1, &offset) == MPI_SUCCESS && offset == beyond + 1);
  memset(buf, 0, 8);
  CHECK(MPI_File_read_at_c(f, 0, buf, 2, MPI_BYTE, &s) == MPI_SUCCESS && !memcmp(buf, "ee", 2));
  MPI_Type_free(&tile);
  MPI_File_close(&f);
  MPI_Finalize();
  return check_status();
}
