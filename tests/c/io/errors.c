// run: n=1,3
/* Each wrong call has its class, on all processes of a collective call; system errors too, a device that is full among them.
 * MPI-5.0, 15.7 and 15.8. */
#include "file.h"

#define NULL_INFO MPI_INFO_NULL, &f
#define NO_STATUS MPI_STATUS_IGNORE

static void opening(const char *name)
{
  MPI_File f = MPI_FILE_NULL;
  MPI_Comm w = MPI_COMM_WORLD;
  int x = 0;
  CHECK_CLASS(MPI_File_open(w, name, MPI_MODE_RDONLY, NULL_INFO), MPI_ERR_NO_SUCH_FILE);
  CHECK_CLASS(MPI_File_open(w, name, MPI_MODE_RDONLY | MPI_MODE_RDWR, NULL_INFO), MPI_ERR_AMODE);
  CHECK_CLASS(MPI_File_open(w, name, MPI_MODE_RDONLY | MPI_MODE_CREATE, NULL_INFO), MPI_ERR_AMODE);
  CHECK_CLASS(MPI_File_open(w, name, MPI_MODE_RDWR | MPI_MODE_SEQUENTIAL, NULL_INFO), MPI_ERR_AMODE);
  CHECK_CLASS(MPI_File_open(w, "/", MPI_MODE_RDWR, NULL_INFO), MPI_ERR_BAD_FILE);
  if (size > 1)
    CHECK_CLASS(MPI_File_open(w, name, rank ? MPI_MODE_RDONLY : MPI_MODE_WRONLY, NULL_INFO), MPI_ERR_NOT_SAME);
  CHECK(f == MPI_FILE_NULL);
  OK(MPI_File_open(w, name, MPI_MODE_WRONLY | MPI_MODE_CREATE | MPI_MODE_EXCL, NULL_INFO));
  CHECK_CLASS(MPI_File_read(f, &x, 1, MPI_INT, NO_STATUS), MPI_ERR_ACCESS);
  CHECK_CLASS(MPI_File_read_all(f, &x, 1, MPI_INT, NO_STATUS), MPI_ERR_ACCESS);
  OK(MPI_File_close(&f));
  CHECK_CLASS(MPI_File_open(w, name, MPI_MODE_WRONLY | MPI_MODE_CREATE | MPI_MODE_EXCL, NULL_INFO),
              MPI_ERR_FILE_EXISTS);
  OK(MPI_File_open(w, name, MPI_MODE_RDONLY, NULL_INFO));
  CHECK_CLASS(MPI_File_write(f, &x, 1, MPI_INT, NO_STATUS), MPI_ERR_READ_ONLY);
  CHECK_CLASS(MPI_File_set_size(f, 10), MPI_ERR_READ_ONLY);
  CHECK_CLASS(MPI_File_write_at_all(f, 0, &x, 1, MPI_INT, NO_STATUS), MPI_ERR_READ_ONLY);
  OK(MPI_File_close(&f));
  MPI_Barrier(w);
  if (rank == 0) {
    OK(MPI_File_delete(name, MPI_INFO_NULL));
    CHECK_CLASS(MPI_File_delete(name, MPI_INFO_NULL), MPI_ERR_NO_SUCH_FILE);
  }
  MPI_Barrier(w);
}

static void arguments(const char *name)
{
  MPI_File f = open_new(name, MPI_INFO_NULL);
  double x[2] = {1, 2};
  CHECK_CLASS(MPI_File_read_at(f, -1, x, 1, MPI_INT, NO_STATUS), MPI_ERR_ARG);
  CHECK_CLASS(MPI_File_write(f, x, -1, MPI_INT, NO_STATUS), MPI_ERR_COUNT);
  CHECK_CLASS(MPI_File_write(f, x, 1, MPI_DATATYPE_NULL, NO_STATUS), MPI_ERR_TYPE);
  CHECK_CLASS(MPI_File_seek(f, 0, 7), MPI_ERR_ARG);
  CHECK_CLASS(MPI_File_set_size(f, -1), MPI_ERR_ARG);
  if (size > 1) CHECK_CLASS(MPI_File_set_size(f, rank), MPI_ERR_NOT_SAME);
  CHECK_CLASS(MPI_File_set_view(f, 0, MPI_INT, MPI_INT, "no such", MPI_INFO_NULL), MPI_ERR_UNSUPPORTED_DATAREP);
  CHECK_CLASS(MPI_File_set_view(f, -5, MPI_INT, MPI_INT, "native", MPI_INFO_NULL), MPI_ERR_ARG);
  CHECK_CLASS(MPI_File_read_all_end(f, x, NO_STATUS), MPI_ERR_IO);
  OK(MPI_File_write_all_begin(f, x, 1, MPI_DOUBLE));
  CHECK_CLASS(MPI_File_read_all_end(f, x, NO_STATUS), MPI_ERR_IO);
  CHECK_CLASS(MPI_File_write_all(f, x, 1, MPI_DOUBLE, NO_STATUS), MPI_ERR_IO);
  CHECK_CLASS(MPI_File_write_all_end(f, x + 1, NO_STATUS), MPI_ERR_BUFFER);
  OK(MPI_File_write_all_end(f, x, NO_STATUS));
  /* One process's wrong argument is everybody's error. */
  OK(MPI_File_set_view(f, 0, MPI_DOUBLE, MPI_DOUBLE, "native", MPI_INFO_NULL));
  CHECK_CLASS(MPI_File_write_at_all(f, 0, x, 1, rank == size - 1 ? MPI_INT : MPI_DOUBLE, NO_STATUS), MPI_ERR_ARG);
  MPI_File old = f;
  OK(MPI_File_close(&f));
  CHECK_CLASS(MPI_File_close(&f), MPI_ERR_FILE);
  CHECK_CLASS(MPI_File_write(old, x, 1, MPI_DOUBLE, NO_STATUS), MPI_ERR_FILE);
}

/* /dev/full has no space. With interleaved ranges the aggregators see it, with separate ones each process does. */
static void no_space(void)
{
  MPI_File f;
  int x[100] = {0};
  MPI_Datatype mine;
  OK(MPI_File_open(MPI_COMM_WORLD, "/dev/full", MPI_MODE_WRONLY, NULL_INFO));
  CHECK_CLASS(MPI_File_write_at(f, 0, x, 100, MPI_INT, NO_STATUS), MPI_ERR_NO_SPACE);
  CHECK_CLASS(MPI_File_write_at_all(f, rank * 400, x, 100, MPI_INT, NO_STATUS), MPI_ERR_NO_SPACE);
  CHECK_CLASS(MPI_File_write_at_all(f, 0, x, rank ? 0 : 100, MPI_INT, NO_STATUS), MPI_ERR_NO_SPACE);
  MPI_Type_create_resized(MPI_INT, 0, size * (MPI_Aint)sizeof(int), &mine);
  MPI_Type_commit(&mine);
  OK(MPI_File_set_view(f, rank * (MPI_Offset)sizeof(int), MPI_INT, mine, "native", MPI_INFO_NULL));
  CHECK_CLASS(MPI_File_write_all(f, x, 100, MPI_INT, NO_STATUS), MPI_ERR_NO_SPACE);
  MPI_Type_free(&mine);
  OK(MPI_File_close(&f));
}

static void sequential(const char *name)
{
  MPI_File f;
  int x = rank;
  MPI_Offset bytes;
  OK(MPI_File_open(MPI_COMM_WORLD, name,
                   MPI_MODE_WRONLY | MPI_MODE_CREATE | MPI_MODE_SEQUENTIAL | MPI_MODE_DELETE_ON_CLOSE, NULL_INFO));
  CHECK_CLASS(MPI_File_write(f, &x, 1, MPI_INT, NO_STATUS), MPI_ERR_UNSUPPORTED_OPERATION);
  CHECK_CLASS(MPI_File_write_at(f, 0, &x, 1, MPI_INT, NO_STATUS), MPI_ERR_UNSUPPORTED_OPERATION);
  CHECK_CLASS(MPI_File_seek(f, 0, MPI_SEEK_SET), MPI_ERR_UNSUPPORTED_OPERATION);
  CHECK_CLASS(MPI_File_seek_shared(f, 0, MPI_SEEK_SET), MPI_ERR_UNSUPPORTED_OPERATION);
  OK(MPI_File_write_shared(f, &x, sizeof x, MPI_BYTE, NO_STATUS));
  OK(MPI_File_write_ordered(f, &x, 1, MPI_INT, NO_STATUS));
  OK(MPI_File_get_size(f, &bytes));
  CHECK(bytes == 2 * size * (MPI_Offset)sizeof(int));
  OK(MPI_File_close(&f));
}

int main(int argc, char **argv)
{
  start(&argc, &argv);
  const char *name = test_file("errors");
  opening(name);
  arguments(name);
  no_space();
  sequential(name);
  MPI_Finalize();
  return check_status();
}
