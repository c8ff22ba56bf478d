/* Ends of a program: exit statuses and messages of MPI_Abort, fatal errors, calls at the wrong time, and a missing MPI_Finalize. */
// run: n=1,2 args="abort 7" status=7 stderr~"MPI_Abort.*7"
// run: n=2 args="abort 0" status=1
// run: n=2 args="abort 256" status=1
// run: n=2 args="fatal" status=6 stderr~"MPI_Send on MPI_COMM_WORLD failed: MPI_ERR_RANK.*4242"
// run: n=1 args="early" status=16 stderr~"MPI_Comm_rank was called before MPI_Init"
// run: n=1 args="late" status=16 stderr~"MPI_Comm_rank was called after MPI_Finalize"
// run: n=1 args="twice" status=16 stderr~"MPI_Init failed.*second time"
// run: n=1 args="finalize-twice" status=16 stderr~"MPI_Finalize was called after MPI_Finalize"
// run: n=1 args="again" status=16 stderr~"MPI_Init failed.*after MPI_Finalize"
// run: n=1 args="any-time"
// run: n=1 args="exit-3" status=3
#include "boundary.h"

int main(int argc, char **argv)
{
  const char *how = argc > 1 ? argv[1] : "";
  int rank, flag, length;
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  if (!strcmp(how, "early")) MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Initialized(&flag);
  CHECK(!flag);
  MPI_Init(&argc, &argv);
  MPI_Initialized(&flag);
  CHECK(flag);
  if (!strcmp(how, "abort")) MPI_Abort(MPI_COMM_WORLD, atoi(argv[2]));
  if (!strcmp(how, "fatal")) MPI_Send(NULL, 0, MPI_INT, 4242, 0, MPI_COMM_WORLD);
  if (!strcmp(how, "twice")) MPI_Init(NULL, NULL);
  if (!strcmp(how, "exit-3")) exit(3);
  MPI_Finalized(&flag);
  CHECK(!flag);
  MPI_Finalize();
  MPI_Finalized(&flag);
  CHECK(flag);
  MPI_Initialized(&flag);
  CHECK(flag);
  MPI_Get_library_version(text, &length);
  CHECK(strstr(text, "libspx") && length == (int)strlen(text));
  if (!strcmp(how, "late")) MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (!strcmp(how, "finalize-twice")) MPI_Finalize();
  if (!strcmp(how, "again")) MPI_Init(NULL, NULL);
  return strcmp(how, "any-time") ? 5 : 0;
}
