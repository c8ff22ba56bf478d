/* Many ranks on many hosts, of which some are lost: all sum up, again and again, until it fails; those who are left revoke, shrink, agree, and spawn as many as are missing, wherever there
 * are places; and all collectives are right, with all of them. Rank 0 prints what has come about and when, in seconds from the return of MPI_Init:
 *   all N are there         they have summed up
 *   M are left              and have summed up, too
 *   all N are there again
 *   collectives with a root on N
 *   all collectives on N
 * and, of all ranks together, "memory ... MiB, sockets ..., descriptors ... at most".
 * Arguments: "grown" ends when all are there again. */
#include "../../gates/testdata/collectives.h"
#include <dirent.h>
#include <mpi-ext.h>
#include <time.h>
#include <unistd.h>

static double begin;

static void say(const char *text, int n)
{
  if (rank != 0) return;
  printf("%8.2f s: ", MPI_Wtime() - begin);
  printf(text, n);
  puts("");
  fflush(stdout);
}

static int summed(void)
{
  int sum = 0, err = MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm);
  if (err == MPI_SUCCESS) CHECK(sum == size * (size - 1) / 2);
  return err;
}

/* What the processes of comm have, together and at most. */
static void resources(void)
{
  double mine[2] = {0, 0}, most[2], all[2];
  char line[256], name[300], to[64];
  FILE *f = fopen("/proc/self/smaps_rollup", "r");
  CHECK(f != NULL);
  while (fgets(line, sizeof line, f)) {
    double kb;
    if (sscanf(line, "Pss: %lf", &kb) == 1) mine[0] = kb / 1024;
  }
  fclose(f);
  DIR *d = opendir("/proc/self/fd");
  CHECK(d != NULL);
  for (struct dirent *e; (e = readdir(d));) {
    snprintf(name, sizeof name, "/proc/self/fd/%s", e->d_name);
    ssize_t n = readlink(name, to, sizeof to - 1);
    mine[1] += n > 7 && !memcmp(to, "socket:", 7);
  }
  closedir(d);
  MPI_Reduce(mine, all, 2, MPI_DOUBLE, MPI_SUM, 0, comm);
  MPI_Reduce(mine, most, 2, MPI_DOUBLE, MPI_MAX, 0, comm);
  if (rank == 0)
    printf("memory %.0f MiB, of a rank %.1f at most; sockets %.0f, of a rank %.0f at most\n", all[0], most[0], all[1],
           most[1]);
  fflush(stdout);
}

static void use(MPI_Comm next)
{
  if (comm != MPI_COMM_NULL) MPI_Comm_free(&comm);
  comm = next;
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  prepare();
}

/* Those who are left. */
static void shrink(void)
{
  int fine;
  do {
    MPI_Comm next;
    MPIX_Comm_revoke(comm);
    CHECK(MPIX_Comm_shrink(comm, &next) == MPI_SUCCESS);
    use(next);
    fine = summed() == MPI_SUCCESS;
    if (!fine) MPIX_Comm_revoke(comm);
    if (MPIX_Comm_agree(comm, &fine) != MPI_SUCCESS) fine = 0;
  } while (!fine);
}

static void collectives(void)
{
  rooted(0);
  rooted(size - 1);
  say("collectives with a root on %d", size);
  symmetric();
  others();
  say("all collectives on %d", size);
  resources();
}

int main(int argc, char **argv)
{
  MPI_Comm parent, next;
  comm = MPI_COMM_NULL;
  MPI_Init(&argc, &argv);
  begin = MPI_Wtime();
  MPI_Comm_get_parent(&parent);
  if (parent == MPI_COMM_NULL) {
    MPI_Comm_dup(MPI_COMM_WORLD, &next);
    use(next);
    int all = size;
    CHECK(summed() == MPI_SUCCESS);
    say("all %d are there", size);
    resources();
    while (summed() == MPI_SUCCESS)
      nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL); /* a processor is for many of them */
    shrink();
    say("%d are left", size);
    CHECK(MPI_Comm_spawn(argv[0], argv + 1, all - size, MPI_INFO_NULL, 0, comm, &parent, MPI_ERRCODES_IGNORE) ==
          MPI_SUCCESS);
    MPI_Intercomm_merge(parent, 0, &next);
  } else
    MPI_Intercomm_merge(parent, 1, &next);
  MPI_Comm_free(&parent);
  use(next);
  CHECK(summed() == MPI_SUCCESS);
  say("all %d are there again", size);
  if (argc < 2 || strcmp(argv[1], "grown") != 0) collectives();
  MPI_Finalize();
  return 0;
}
