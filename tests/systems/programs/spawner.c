/* spawner SPAWNER HOST SCRIPT DIR: the cluster SPAWNER spawns SCRIPT on HOST twice, with the names of a file
 * each, when DIR/go1 and DIR/go2 are there. The script never calls MPI, so the spawns fail: what counts is
 * whether it ran. The other cluster waits for DIR/end. DIR/ready-CLUSTER is made after MPI_Init. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char path[4096];

static const char *in(const char *dir, const char *name)
{
  snprintf(path, sizeof path, "%s/%s", dir, name);
  return path;
}

static void await(const char *dir, const char *name)
{
  while (access(in(dir, name), F_OK) != 0) usleep(2000);
}

static void order(const char *host, char *script, char *file)
{
  MPI_Info info;
  MPI_Comm child;
  char *args[] = {file, NULL};
  MPI_Info_create(&info);
  MPI_Info_set(info, "host", host);
  MPI_Comm_spawn(script, args, 1, info, 0, MPI_COMM_SELF, &child, MPI_ERRCODES_IGNORE);
  MPI_Info_free(&info);
}

int main(int argc, char **argv)
{
  char mark[4096];
  const char *cluster = getenv("SPX_CLUSTER");
  if (argc < 5 || !cluster) return 2;
  MPI_Init(&argc, &argv);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  snprintf(mark, sizeof mark, "ready-%s", cluster);
  close(open(in(argv[4], mark), O_CREAT | O_WRONLY, 0666));
  for (int i = 1; i <= 2 && !strcmp(argv[1], cluster); i++) {
    snprintf(mark, sizeof mark, "go%d", i);
    await(argv[4], mark);
    snprintf(mark, sizeof mark, "%s/MARK-%d", argv[4], i);
    order(argv[2], argv[3], mark);
  }
  await(argv[4], "end");
  MPI_Finalize();
  return 0;
}
