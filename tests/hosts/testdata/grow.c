/* A program that grows and shrinks as rank 0 reads from its standard input, and survives the loss of what it has got:
 *   spawn N LIST   N more processes on these hosts (info key "host"; -: anywhere) join the others
 *   where          all say on which hosts they are, and add something up
 *   leave          those that were spawned end
 *   end            all do
 * Each line is answered by one of rank 0's; when processes have died, by "left N", and then by its own. Nobody must die while others are spawned. */
#include <mpi-ext.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LINE = 256, NAME = 64 };
static MPI_Comm all; /* the first processes before those that were spawned, in their order */
static int rank, size, spawned;

static void use(MPI_Comm next)
{
  if (all != MPI_COMM_NULL) MPI_Comm_free(&all);
  all = next;
  MPI_Comm_set_errhandler(all, MPI_ERRORS_RETURN);
  MPI_Comm_rank(all, &rank);
  MPI_Comm_size(all, &size);
}

static void say(const char *text)
{
  if (rank == 0) puts(text);
  fflush(stdout);
}

/* Who lives goes on. */
static void recover(void)
{
  MPI_Comm next;
  char text[NAME];
  MPIX_Comm_revoke(all);
  MPIX_Comm_shrink(all, &next);
  use(next);
  snprintf(text, sizeof text, "left %d", size);
  say(text);
}

/* Has it worked for all? Who knows that it has not calls back those who still wait in it. */
static int agreed(int err)
{
  int fine = err == MPI_SUCCESS;
  if (!fine) MPIX_Comm_revoke(all);
  err = MPIX_Comm_agree(all, &fine);
  return fine && err == MPI_SUCCESS;
}

static int where(void)
{
  char mine[NAME] = "", *names = malloc((size_t)size * NAME), *text = malloc((size_t)size * NAME + LINE);
  int sum = 0, at;
  gethostname(mine, sizeof mine - 1);
  int err = MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, all);
  if (err == MPI_SUCCESS) err = MPI_Gather(mine, NAME, MPI_CHAR, names, NAME, MPI_CHAR, 0, all);
  int fine = agreed(err);
  at = sprintf(text, "%d, sum %s:", size, sum == size * (size - 1) / 2 ? "right" : "wrong");
  for (int i = 0; rank == 0 && fine && i < size; i++) at += sprintf(text + at, " %s", names + (size_t)i * NAME);
  if (fine) say(text);
  free(names);
  free(text);
  return fine;
}

static int spawn(int n, char *list, char *program)
{
  MPI_Comm inter, next;
  MPI_Info info;
  MPI_Info_create(&info);
  if (strcmp(list, "-")) MPI_Info_set(info, "host", list);
  int err = MPI_Comm_spawn(program, MPI_ARGV_NULL, n, info, 0, all, &inter, MPI_ERRCODES_IGNORE);
  MPI_Info_free(&info);
  if (err != MPI_SUCCESS) {
    char text[MPI_MAX_ERROR_STRING + 16] = "failed: ";
    int len;
    MPI_Error_string(err, text + 8, &len);
    say(text);
    return 1;
  }
  if (MPI_Intercomm_merge(inter, 0, &next) != MPI_SUCCESS) return 0;
  MPI_Comm_free(&inter);
  use(next);
  return where();
}

static int leave(void)
{
  MPI_Comm next;
  if (MPI_Comm_split(all, spawned, rank, &next) != MPI_SUCCESS) return 0;
  use(next);
  if (spawned) {
    MPI_Comm_free(&all);
    MPI_Finalize();
    exit(0);
  }
  return where();
}

int main(int argc, char **argv)
{
  MPI_Comm parent, next;
  MPI_Init(&argc, &argv);
  all = MPI_COMM_NULL;
  MPI_Comm_get_parent(&parent);
  if (parent == MPI_COMM_NULL) {
    MPI_Comm_dup(MPI_COMM_WORLD, &next);
    use(next);
    where();
  } else {
    spawned = 1;
    MPI_Intercomm_merge(parent, 1, &next);
    MPI_Comm_free(&parent);
    use(next);
    if (!where()) recover();
  }
  for (;;) {
    char line[LINE] = "end", list[LINE];
    int n, fine;
    if (rank == 0) fgets(line, sizeof line, stdin);
    do {
      fine = agreed(MPI_Bcast(line, sizeof line, MPI_CHAR, 0, all));
      if (!fine) recover();
    } while (!fine);
    if (!strncmp(line, "end", 3)) break;
    if (sscanf(line, "spawn %d %200s", &n, list) == 2) {
      if (!spawn(n, list, argv[0])) recover();
    } else
      while (!(strncmp(line, "leave", 5) ? where() : leave())) recover();
  }
  MPI_Comm_free(&all);
  MPI_Finalize();
  return 0;
}
