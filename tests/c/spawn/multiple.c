/* MPI_Comm_spawn_multiple of different programs with different arguments and hints: each finds its own, its number, and its place. */
// run: n=1,2
// run: n=1 args="root" spxrun="--usize 9"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "../check.h"

enum { KINDS = 3 };
static const int procs[KINDS] = {1, 2, 3};

static int appnum(void)
{
  int *v, there;
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, &v, &there);
  return there ? *v : -1;
}

static void child(int argc, char **argv, MPI_Comm parent)
{
  int rank, size, k = appnum();
  char dir[4096];
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  CHECK(size == 5); /* the third program may be two or none: "soft" */
  CHECK(k == (rank == 0 ? 0 : rank <= 2 ? 1 : 2));
  CHECK(argc == 3 && atoi(argv[2]) == k && strcmp(argv[1], "with a blank") == 0);
  CHECK(getenv("COLOUR") && strcmp(getenv("COLOUR"), k == 1 ? "blue green" : "red") == 0);
  CHECK(getcwd(dir, sizeof dir) && (k != 0 || strcmp(dir, "/") == 0));
  MPI_Comm_disconnect(&parent);
}

int main(int argc, char **argv)
{
  MPI_Comm parent, inter;
  MPI_Init(&argc, &argv);
  MPI_Comm_get_parent(&parent);
  if (parent != MPI_COMM_NULL) {
    child(argc, argv, parent);
    MPI_Finalize();
    return check_status();
  }
  CHECK(appnum() == 0);
  if (argc > 1) {
    int *v, there;
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_UNIVERSE_SIZE, &v, &there);
    CHECK(there && *v == 9);
  }
  setenv("COLOUR", "red", 1);
  char path[4096], number[KINDS][4], *args[KINDS][3], **argvs[KINDS], *commands[KINDS];
  CHECK(realpath(argv[0], path) != NULL);
  MPI_Info infos[KINDS];
  int codes[6] = {-1, -1, -1, -1, -1, -1}, remote;
  for (int k = 0; k < KINDS; k++) {
    snprintf(number[k], sizeof number[k], "%d", k);
    args[k][0] = "with a blank";
    args[k][1] = number[k];
    args[k][2] = NULL;
    argvs[k] = args[k];
    commands[k] = path;
    MPI_Info_create(&infos[k]);
    MPI_Info_set(infos[k], "nobody_knows_this_key", "1");
  }
  MPI_Info_set(infos[0], "wdir", "/");
  MPI_Info_set(infos[0], "host", "localhost");
  MPI_Info_set(infos[1], "env", "COLOUR=blue green\nOTHER=1");
  MPI_Info_set(infos[2], "soft", "0:100:2");
  MPI_Comm_spawn_multiple(KINDS, commands, argvs, procs, infos, 0, MPI_COMM_WORLD, &inter, codes);
  for (int i = 0; i < 5; i++) CHECK(codes[i] == MPI_SUCCESS);
  CHECK(codes[5] == MPI_ERR_SPAWN);
  MPI_Comm_remote_size(inter, &remote);
  CHECK(remote == 5);
  for (int k = 0; k < KINDS; k++) MPI_Info_free(&infos[k]);
  MPI_Comm_disconnect(&inter);
  MPI_Finalize();
  return check_status();
}
