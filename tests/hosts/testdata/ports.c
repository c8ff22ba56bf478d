/* Two jobs meet at a port. Arguments: accept or connect, a file for the port's name, how often they meet, and
 *   -            to the end
 *   die STEP     this job ends itself at that step: its first rank for odd ones, its last for even ones
 *   lives S      the other one does: what comes of it here. It is waited for S seconds at most
 * What is printed is said by rank 0. */
#include <dirent.h>
#include <mpi.h>
#include <mpi-ext.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { IN_CALL = 10 }; /* steps from here on are moments in the call that meets the other job */

static int rank, size, dies;
static const char *returns; /* seconds */
static char port[MPI_MAX_PORT_NAME];

static void step(int n)
{
  if (n == dies && rank == (n % 2 ? 0 : size - 1)) kill(getpid(), SIGKILL);
}

static void *at_a_moment(void *us)
{
  usleep((useconds_t)(intptr_t)us);
  kill(getpid(), SIGKILL);
  return NULL;
}

/* A kill while the next call is under way: each step waits twice as long as the one before. */
static void step_in_call(void)
{
  pthread_t t;
  if (dies < IN_CALL || rank != (dies % 2 ? 0 : size - 1)) return;
  pthread_create(&t, NULL, at_a_moment, (void *)(intptr_t)(250 << (dies - IN_CALL)));
}

static int class_of(int err)
{
  int class;
  MPI_Error_class(err, &class);
  return class;
}

static const char *name_of(int class)
{
  return class == MPI_SUCCESS            ? "MPI_SUCCESS"
         : class == MPI_ERR_PORT         ? "MPI_ERR_PORT"
         : class == MPIX_ERR_PROC_FAILED ? "MPIX_ERR_PROC_FAILED"
         : class == MPIX_ERR_REVOKED     ? "MPIX_ERR_REVOKED"
                                         : "another class";
}

static void write_port(const char *file)
{
  char beside[1024];
  snprintf(beside, sizeof beside, "%s.new", file);
  FILE *f = fopen(beside, "w");
  if (!f || fprintf(f, "%s\n", port) < 0 || fclose(f) != 0 || rename(beside, file) != 0) MPI_Abort(MPI_COMM_WORLD, 1);
}

static void read_port(const char *file)
{
  FILE *f;
  while (!(f = fopen(file, "r"))) usleep(1000);
  if (!fgets(port, sizeof port, f)) port[0] = 0;
  fclose(f);
  port[strcspn(port, "\n")] = 0;
}

static int files_of(pid_t pid)
{
  char path[64];
  int n = 0;
  snprintf(path, sizeof path, "/proc/%d/fd", pid);
  DIR *d = opendir(path);
  while (d && readdir(d)) n++;
  if (d) closedir(d);
  return n;
}

static int memory_of(pid_t pid)
{
  char path[64], line[256];
  int kb = 0;
  snprintf(path, sizeof path, "/proc/%d/status", pid);
  FILE *f = fopen(path, "r");
  while (f && fgets(line, sizeof line, f)) sscanf(line, "RssAnon: %d", &kb);
  if (f) fclose(f);
  return kb;
}

static void measure(int *out)
{
  out[0] = files_of(getpid());
  out[1] = memory_of(getpid());
  out[2] = files_of(getppid());
  out[3] = memory_of(getppid());
}

/* Memory of each that the one before it writes to. */
static int put(MPI_Comm all, int n, int me)
{
  MPI_Win win;
  int *base, err = MPI_Win_allocate(sizeof *base, sizeof *base, MPI_INFO_NULL, all, &base, &win);
  if (err != MPI_SUCCESS) return err;
  if (returns) MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
  *base = -1;
  if ((err = MPI_Win_fence(0, win)) != MPI_SUCCESS) return err;
  if ((err = MPI_Put(&me, 1, MPI_INT, (me + 1) % n, 0, 1, MPI_INT, win)) != MPI_SUCCESS) return err;
  if ((err = MPI_Win_fence(0, win)) != MPI_SUCCESS) return err;
  if (*base != (me + n - 1) % n) MPI_Abort(MPI_COMM_WORLD, 4);
  return MPI_Win_free(&win);
}

/* A collective over both groups. */
static int together(MPI_Comm all, int first)
{
  int n, me, sum = 0, err;
  MPI_Comm_size(all, &n);
  MPI_Comm_rank(all, &me);
  if ((err = MPI_Allreduce(&me, &sum, 1, MPI_INT, MPI_SUM, all)) != MPI_SUCCESS) return err;
  if (sum != n * (n - 1) / 2) MPI_Abort(MPI_COMM_WORLD, 3);
  step(6);
  return first ? put(all, n, me) : MPI_SUCCESS;
}

/* A long message each way. */
static int exchange(MPI_Comm inter)
{
  enum { LONG = 300000 };
  static char sent[LONG], got[LONG];
  int n, err = MPI_Comm_remote_size(inter, &n);
  memset(sent, 'a' + rank, sizeof sent);
  step(3);
  if (err == MPI_SUCCESS && rank < n)
    err = MPI_Sendrecv(sent, LONG, MPI_CHAR, rank, 5, got, LONG, MPI_CHAR, rank, 5, inter, MPI_STATUS_IGNORE);
  if (err == MPI_SUCCESS && rank < n && (got[0] != 'a' + rank || got[LONG - 1] != 'a' + rank))
    MPI_Abort(MPI_COMM_WORLD, 2);
  step(4);
  return err;
}

/* Messages of both groups, and what can be made of them. The first error. */
static int talk(MPI_Comm inter, int high, int first)
{
  MPI_Comm all;
  int err = exchange(inter), made = 0, made_by_all;
  if (err == MPI_SUCCESS) err = MPI_Intercomm_merge(inter, high, &all);
  if (err == MPI_SUCCESS)
    made = 1;
  else
    MPIX_Comm_revoke(inter); /* others may wait for this one in there */
  step(5);
  /* Some may have made it although others have not. */
  MPI_Allreduce(&made, &made_by_all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  if (!made_by_all) {
    if (made) MPI_Comm_free(&all);
    return made ? MPIX_ERR_PROC_FAILED : err;
  }
  if ((err = together(all, first)) != MPI_SUCCESS) MPIX_Comm_revoke(all);
  int end = MPI_Comm_disconnect(&all);
  return err != MPI_SUCCESS ? err : end;
}

static int meet(int accepts, MPI_Comm *inter)
{
  MPI_Info info = MPI_INFO_NULL;
  if (returns) { /* the other one may never come */
    MPI_Info_create(&info);
    MPI_Info_set(info, "timeout", returns);
  }
  step_in_call();
  int err = accepts ? MPI_Comm_accept(port, info, 0, MPI_COMM_WORLD, inter)
                    : MPI_Comm_connect(port, info, 0, MPI_COMM_WORLD, inter);
  if (info != MPI_INFO_NULL) MPI_Info_free(&info);
  return err;
}

static int cycle(int accepts, int first)
{
  MPI_Comm inter;
  int err = meet(accepts, &inter);
  if (err != MPI_SUCCESS) return err;
  step(2);
  if (returns) MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN);
  err = talk(inter, !accepts, first);
  step(7);
  int end = MPI_Comm_disconnect(&inter);
  step(8);
  return err != MPI_SUCCESS ? err : end;
}

int main(int argc, char **argv)
{
  int err = MPI_SUCCESS, before[4], after[4], worst[4];
  if (argc < 5) return 2;
  int accepts = !strcmp(argv[1], "accept"), cycles = atoi(argv[3]);
  if (!strcmp(argv[4], "die")) dies = atoi(argv[5]);
  if (!strcmp(argv[4], "lives")) returns = argv[5];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (returns) MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  if (rank == 0 && accepts) {
    MPI_Open_port(MPI_INFO_NULL, port);
    write_port(argv[2]);
  } else if (rank == 0)
    read_port(argv[2]);
  MPI_Barrier(
      MPI_COMM_WORLD); /* who ends itself before the other job can know the port leaves nothing to be waited for */
  step(1);
  for (int i = 0; i < cycles && err == MPI_SUCCESS; i++) {
    if (i == (cycles < 100 ? cycles / 2 : 100)) measure(before);
    err = cycle(accepts, i == 0);
  }
  measure(after);
  step(9);
  if (returns) {
    int class = class_of(err), sum = 0;
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD); /* this job goes on */
    if (rank == 0) printf("%s %s\n", name_of(class), sum == size * (size - 1) / 2 ? "goes on" : "is broken");
  } else {
    for (int k = 0; k < 4; k++) after[k] -= before[k];
    MPI_Reduce(after, worst, 4, MPI_INT, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0)
      printf("%s: %d times; grown by %d files, %d KiB; agent: %d files, %d KiB\n", argv[1], cycles, worst[0], worst[1],
             worst[2], worst[3]);
  }
  if (rank == 0 && accepts) MPI_Close_port(port);
  MPI_Finalize();
  return 0;
}
