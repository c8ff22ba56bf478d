/* file.h - for the tests of files: a name of one's own, and comparisons. */
#ifndef FILE_H
#define FILE_H
#include "../check.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank, size;

/* A name that is the same on all processes and nobody else's; in the folder for temporary files. */
static inline const char *test_file(const char *what)
{
  static char name[512];
  long id = (long)(MPI_Wtime() * 1e9) ^ (long)getpid() << 40; /* there may be several with this pid */
  MPI_Bcast(&id, 1, MPI_LONG, 0, MPI_COMM_WORLD);
  const char *dir = getenv("TEST_FILES"); /* that all hosts see (tests/hosts) */
  if (!dir) dir = getenv("TMPDIR");
  snprintf(name, sizeof name, "%s/spx-io-%s-%ld", dir ? dir : "/tmp", what, id);
  return name;
}

static inline void start(int *argc, char ***argv)
{
  MPI_Init(argc, argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
}

#define OK(call) CHECK_CLASS(call, MPI_SUCCESS)

static inline MPI_File open_new(const char *name, MPI_Info info)
{
  MPI_File f = MPI_FILE_NULL;
  OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE, info, &f));
  return f;
}

static inline int count_of(const MPI_Status *st, MPI_Datatype t)
{
  int n = -1;
  MPI_Get_count(st, t, &n);
  return n;
}
#endif
