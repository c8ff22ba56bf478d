/* Processes without a launcher spawn: each starts an agent for that, which must live as long as the job, whatever the spawned ones do. */
// run: n=1 timeout=40
// run: n=3 timeout=40
// run: n=1 timeout=40 env="SPX_TRANSPORTS=tcp"
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "../check.h"

enum { WORLDS = 3, CHILDREN = 2 };

/* This program again, as a shell would start it. */
static int start_alone(char *self)
{
  extern char **environ;
  int status = 1;
  pid_t p = fork();
  if (p == 0) {
    for (int i = 0; environ[i];) {
      char name[64];
      size_t n = strcspn(environ[i], "=");
      int ours = (strncmp(environ[i], "SPX_", 4) == 0 || strncmp(environ[i], "OMPI_", 5) == 0) &&
                 strncmp(environ[i], "SPX_TRANSPORTS=", 15) != 0 && n < sizeof name;
      if (ours) snprintf(name, sizeof name, "%.*s", (int)n, environ[i]);
      if (!ours || unsetenv(name) != 0) i++;
    }
    execl(self, self, "parent", NULL);
    _exit(127);
  }
  CHECK(p > 0 && waitpid(p, &status, 0) == p);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  return check_status();
}

static void child(MPI_Comm parent, const char *how)
{
  int rank, got = -1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Recv(&got, 1, MPI_INT, 0, 1, parent, MPI_STATUS_IGNORE);
  MPI_Send(&got, 1, MPI_INT, 0, 2, parent);
  if (strcmp(how, "status") == 0 && rank == 1) { /* a spawned process that goes well, but for its exit status */
    MPI_Comm_disconnect(&parent);
    MPI_Finalize();
    exit(5);
  }
  MPI_Comm_disconnect(&parent);
}

/* Spawns, exchanges a message with each, and disconnects; the next world is made by the same agent. */
static void parent(char *self, char *how)
{
  MPI_Comm inter;
  char *args[] = {"child", how, NULL};
  int codes[CHILDREN] = {-1, -1}, n, got;
  CHECK_CLASS(MPI_Comm_spawn(self, args, CHILDREN, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter, codes), MPI_SUCCESS);
  MPI_Comm_remote_size(inter, &n);
  CHECK(n == CHILDREN && codes[0] == MPI_SUCCESS && codes[1] == MPI_SUCCESS);
  for (int i = 0; i < n; i++) {
    int x = 100 + i;
    MPI_Send(&x, 1, MPI_INT, i, 1, inter);
    MPI_Recv(&got, 1, MPI_INT, i, 2, inter, MPI_STATUS_IGNORE);
    CHECK(got == x);
  }
  MPI_Comm_disconnect(&inter);
}

int main(int argc, char **argv)
{
  MPI_Comm from, none;
  if (argc == 1) return start_alone(argv[0]);
  MPI_Init(&argc, &argv);
  MPI_Comm_get_parent(&from);
  if (from != MPI_COMM_NULL) {
    child(from, argv[2]);
  } else {
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    for (int i = 0; i < WORLDS; i++) parent(argv[0], "well");
    CHECK_CLASS(
        MPI_Comm_spawn("/bin/false", MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_SELF, &none, MPI_ERRCODES_IGNORE),
        MPI_ERR_SPAWN);
    parent(argv[0], "status");
    parent(argv[0], "well");
  }
  MPI_Finalize();
  return check_status();
}
