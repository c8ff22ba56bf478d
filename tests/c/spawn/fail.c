/* What cannot be started, or dies while it starts, is an error with its codes at all parents: never a hang, and the job goes on. */
// run: n=1,3 timeout=30
// run: n=3 spxrun="--with-ft" timeout=30
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "../check.h"

static void refused(char *command, char **args, int n, MPI_Info info)
{
  MPI_Comm inter = MPI_COMM_NULL;
  int codes[4] = {-1, -1, -1, -1}, size;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  CHECK_CLASS(MPI_Comm_spawn(command, args, n, info, size - 1, MPI_COMM_WORLD, &inter, codes), MPI_ERR_SPAWN);
  for (int i = 0; i < n; i++) CHECK(codes[i] == MPI_ERR_SPAWN);
}

static void hint(char *key, char *value, char *self)
{
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, key, value);
  refused(self, MPI_ARGV_NULL, 2, info);
  MPI_Info_free(&info);
}

int main(int argc, char **argv)
{
  MPI_Comm parent;
  char *rank = getenv("SPX_RANK");
  if (argc > 1 && strcmp(argv[1], "exit") == 0 && rank && atoi(rank) == atoi(argv[2])) return 7;
  if (argc > 1 && strcmp(argv[1], "kill") == 0 && rank && atoi(rank) == atoi(argv[2])) abort();
  MPI_Init(&argc, &argv);
  MPI_Comm_get_parent(&parent);
  CHECK(parent == MPI_COMM_NULL);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  refused("/no/such/program", MPI_ARGV_NULL, 2, MPI_INFO_NULL);
  refused("no-such-program-anywhere", MPI_ARGV_NULL, 2, MPI_INFO_NULL);
  refused("/etc/passwd", MPI_ARGV_NULL, 1, MPI_INFO_NULL);
  refused("/bin/true", MPI_ARGV_NULL, 3, MPI_INFO_NULL);
  refused("/bin/false", MPI_ARGV_NULL, 1, MPI_INFO_NULL);
  char *first[] = {"exit", "0", NULL}, *last[] = {"exit", "3", NULL}, *killed[] = {"kill", "1", NULL};
  refused(argv[0], first, 4, MPI_INFO_NULL);
  refused(argv[0], last, 4, MPI_INFO_NULL);
  refused(argv[0], killed, 2, MPI_INFO_NULL);
  hint("host", "no-such-host.example", argv[0]);
  hint("wdir", "/no/such/folder", argv[0]);
  hint("arch", "vax", argv[0]);
  hint("soft", "5:8", argv[0]);
  hint("file", "/no/such/file", argv[0]);
  MPI_Comm inter;
  CHECK_CLASS(MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, -1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE),
              MPI_ERR_ARG);
  CHECK_CLASS(
      MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, 1000000, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE),
      MPI_ERR_SPAWN);
  int sum, one = 1, size;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  CHECK(sum == size);
  MPI_Finalize();
  return check_status();
}
