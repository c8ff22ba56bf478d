/* aborted send DIR: rank 0 dies while a long message of its is on its way; then rank 1 sends a short one. aborted receive DIR posted|found [kept]: the long message
 * was never sent: whoever was receiving it, or had only found it, gets that of rank 1. kept: an I/O process may have had the whole of it; then it arrives. */
#include <mpi.h>
#include <mpisp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "../../c/check.h"

enum { LONG = 64 << 20 };

static const char *dir;

static char *path(const char *name)
{
  static char text[1024];
  snprintf(text, sizeof text, "%s/%s", dir, name);
  return text;
}

static void make(const char *name)
{
  FILE *f = fopen(path(name), "w");
  CHECK(f != NULL);
  if (f) fclose(f);
}

static int exists(const char *name) { return access(path(name), F_OK) == 0; }

int main(int argc, char **argv)
{
  int rank, flag = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  dir = argv[2];
  char *buf = malloc(LONG);
  MPI_Request r;
  MPI_Status st;
  if (strcmp(argv[1], "send") == 0 && rank == 0) {
    memset(buf, 1, LONG);
    MPI_Isend(buf, LONG, MPI_BYTE, MPISP_CLUSTER_OUT, 1, MPI_COMM_WORLD, &r);
    while (!exists("begun")) MPI_Test(&r, &flag, MPI_STATUS_IGNORE);
    make("dying");
    raise(SIGKILL);
  } else if (strcmp(argv[1], "send") == 0) {
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Recv(buf, 1, MPI_BYTE, 0, 9, MPI_COMM_WORLD, &st); /* fails when rank 0 has died */
    CHECK(exists("dying"));
    MPI_Send("short", 5, MPI_BYTE, MPISP_CLUSTER_OUT, 2, MPI_COMM_WORLD);
  } else {
    volatile char *first = buf;
    int bytes, from;
    memset(buf, 0, LONG);
    if (strcmp(argv[3], "posted") == 0) {
      MPI_Irecv(buf, LONG, MPI_BYTE, MPISP_CLUSTER_IN, MPI_ANY_TAG, MPI_COMM_WORLD, &r);
      while (!*first && !flag) MPI_Test(&r, &flag, &st); /* one that is kept may be there in one piece */
      make("begun");
      while (!exists("dying")) usleep(1000); /* takes nothing meanwhile: so the message can not be through */
      if (!flag) MPI_Wait(&r, &st);
    } else {
      MPI_Probe(MPISP_CLUSTER_IN, 1, MPI_COMM_WORLD, &st);
      make("begun");
      while (!exists("dying")) usleep(1000);
      MPI_Probe(MPISP_CLUSTER_IN, 2, MPI_COMM_WORLD, &st);
      MPI_Recv(buf, LONG, MPI_BYTE, MPISP_CLUSTER_IN, MPI_ANY_TAG, MPI_COMM_WORLD, &st);
    }
    MPI_Get_count(&st, MPI_BYTE, &bytes);
    MPISP_Status_get_rank(&st, &from);
    if (argc > 4 && st.MPI_TAG == 1) {
      CHECK(bytes == LONG && from == 0 && buf[0] == 1 && memcmp(buf, buf + 1, LONG - 1) == 0);
      MPI_Recv(buf, LONG, MPI_BYTE, MPISP_CLUSTER_IN, MPI_ANY_TAG, MPI_COMM_WORLD, &st);
      MPI_Get_count(&st, MPI_BYTE, &bytes);
      MPISP_Status_get_rank(&st, &from);
    }
    CHECK(st.MPI_TAG == 2 && bytes == 5 && from == 1 && memcmp(buf, "short", 5) == 0);
    MPI_Recv(buf, LONG, MPI_BYTE, MPISP_CLUSTER_IN, MPI_ANY_TAG, MPI_COMM_WORLD, &st);
    CHECK(st.MPI_SOURCE == MPI_PROC_NULL);
    printf("short\n");
  }
  free(buf);
  MPI_Finalize();
  return check_failures != 0;
}
