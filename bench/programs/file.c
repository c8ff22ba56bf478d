/* file.c - rows: a file of all ranks. bytes: of each rank in a call. The file is in the page cache: what is measured is the library. */
#include <unistd.h>
#include "rows.h"

static MPI_File file;
static char name[4096];
static MPI_Datatype view;

enum { OWN_PART, INTERLEAVED, PIECE = 4096, CALLS = 8 };

static void file_open(const row *r, size_t bytes)
{
  snprintf(name, sizeof name, "%s/rows.data", folder);
  MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &file);
  MPI_File_set_size(file, 0);
  if (r->arg == INTERLEAVED) {
    MPI_Datatype piece;
    MPI_Type_contiguous(PIECE, MPI_BYTE, &piece);
    MPI_Type_create_resized(piece, 0, (MPI_Aint)PIECE * size, &view);
    MPI_Type_commit(&view);
    MPI_Type_free(&piece);
    MPI_File_set_view(file, (MPI_Offset)rank * PIECE, MPI_BYTE, view, "native", MPI_INFO_NULL);
  }
  for (int i = 0; i < CALLS; i++) {
    MPI_Offset at = (MPI_Offset)i * (MPI_Offset)bytes;
    if (r->arg == OWN_PART) at += (MPI_Offset)rank * CALLS * (MPI_Offset)bytes;
    MPI_File_write_at_all(file, at, out, (int)bytes, MPI_BYTE, MPI_STATUS_IGNORE);
  }
  MPI_File_sync(file);
  MPI_Barrier(MPI_COMM_WORLD);
}

static void file_close(const row *r, size_t bytes)
{
  (void)bytes;
  MPI_File_close(&file);
  if (r->arg == INTERLEAVED) MPI_Type_free(&view);
  if (rank == 0) unlink(name);
}

static MPI_Offset at(const row *r, size_t bytes, long i)
{
  MPI_Offset o = (MPI_Offset)(i % CALLS) * (MPI_Offset)bytes;
  return r->arg == OWN_PART ? o + (MPI_Offset)rank * CALLS * (MPI_Offset)bytes : o;
}

static void write_own(const row *r, size_t bytes, long times)
{
  for (long i = 0; i < times; i++)
    MPI_File_write_at(file, at(r, bytes, i), slot(out, bytes, i), (int)bytes, MPI_BYTE, MPI_STATUS_IGNORE);
}

static void read_own(const row *r, size_t bytes, long times)
{
  for (long i = 0; i < times; i++)
    MPI_File_read_at(file, at(r, bytes, i), slot(in, bytes, i), (int)bytes, MPI_BYTE, MPI_STATUS_IGNORE);
}

static void write_all(const row *r, size_t bytes, long times)
{
  for (long i = 0; i < times; i++)
    MPI_File_write_at_all(file, at(r, bytes, i), slot(out, bytes, i), (int)bytes, MPI_BYTE, MPI_STATUS_IGNORE);
}

static void read_all(const row *r, size_t bytes, long times)
{
  for (long i = 0; i < times; i++)
    MPI_File_read_at_all(file, at(r, bytes, i), slot(in, bytes, i), (int)bytes, MPI_BYTE, MPI_STATUS_IGNORE);
}

static int read_wrong(const row *r, size_t bytes)
{
  (void)r;
  for (size_t i = 0; i < bytes; i++)
    if (in[i] != pattern(rank, i)) return 1;
  return 0;
}

/* What was written is read back. */
static int write_wrong(const row *r, size_t bytes)
{
  MPI_File_read_at(file, at(r, bytes, 0), in, (int)bytes, MPI_BYTE, MPI_STATUS_IGNORE);
  return read_wrong(r, bytes);
}

#define OWN(NAME, RUN, WRONG)                                                                                          \
  {                                                                                                                    \
    NAME, RUN, WRONG, 1, 2, 16, {4096, 65536, 1048576}, file_open, file_close, OWN_PART                                \
  }
#define TOGETHER(NAME, RUN, WRONG)                                                                                     \
  {                                                                                                                    \
    NAME, RUN, WRONG, 1, 2, 16, {65536, 1048576}, file_open, file_close, INTERLEAVED                                   \
  }

const row file_rows[] = {OWN("file-write", write_own, write_wrong),
                         OWN("file-read", read_own, read_wrong),
                         TOGETHER("file-write_all", write_all, write_wrong),
                         TOGETHER("file-read_all", read_all, read_wrong),
                         {0}};
