/* A forked child may exec; any MPI call in it, MPI_Init too, says so and ends the child alone, but for MPI_T, which returns a code; system and popen work. */
// run: n=1,2 stderr~"MPI_Comm_rank.*fork" stderr~"MPI_Init.*fork"
#include "boundary.h"
#include <sys/wait.h>

static int run(void (*body)(void))
{
  int status;
  fflush(NULL);
  pid_t pid = fork();
  if (pid == 0) {
    alarm(10); /* a hang is a failure */
    body();
    exit(0); /* exit handlers too */
  }
  if (waitpid(pid, &status, 0) != pid) FAIL("waitpid");
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void nothing(void) {}
static void calls(void)
{
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
}
/* MPI_T raises nothing: its calls return a code. */
static void tools(void)
{
  int level, n;
  exit(MPI_T_init_thread(MPI_THREAD_SINGLE, &level) == MPI_T_ERR_NOT_ACCESSIBLE &&
               MPI_T_cvar_get_num(&n) == MPI_T_ERR_NOT_ACCESSIBLE
           ? 7
           : 1);
}
static void inits(void) { MPI_Init(NULL, NULL); }
static void execs(void) { execlp("sh", "sh", "-c", "exit 3", (char *)NULL); }

int main(int argc, char **argv)
{
  char line[64] = "";
  int before = run(inits);
  if (before == 0 || before >= 128)
    FAIL("MPI_Init in a child of a process that only loaded the library: status %d", before);
  MPI_Init(&argc, &argv);
  CHECK(run(nothing) == 0);
  CHECK(run(execs) == 3);
  CHECK(run(tools) == 7);
  int status = run(calls);
  if (status == 0 || status >= 128) FAIL("MPI_Comm_rank in a child: status %d", status);
  status = run(inits);
  if (status == 0 || status >= 128) FAIL("MPI_Init in a child: status %d", status);
  CHECK(WEXITSTATUS(system("exit 5")) == 5);
  FILE *p = popen("echo piped", "r");
  CHECK(p && fgets(line, sizeof line, p) && !strcmp(line, "piped\n"));
  pclose(p);
  int one = 1, sum = 0, size;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  CHECK(sum == size);
  MPI_Finalize();
  return 0;
}
