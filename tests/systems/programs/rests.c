/* rests: the ranks meet once, and end. A standby that ends because all of them have is still there when its agent ends it, and dies of that: as it may be on a busy machine. It says so. */
#include <errno.h>
#include <mpi.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static sem_t asked;
static bool has_rank;

static void on_term(int signal)
{
  (void)signal;
  sem_post(&asked);
}

/* The library's as well: with it a standby ends in MPI_Init. */
void _exit(int status)
{
  static const char said[] = "a standby was told to end\n";
  struct timespec limit;
  clock_gettime(CLOCK_REALTIME, &limit);
  limit.tv_sec += 20;
  int err = has_rank ? -1 : sem_timedwait(&asked, &limit);
  while (!has_rank && err != 0 && errno == EINTR) err = sem_timedwait(&asked, &limit);
  if (err == 0 && write(1, said, sizeof said - 1) > 0) {
    signal(SIGTERM, SIG_DFL);
    raise(SIGTERM);
  }
  for (;;) syscall(SYS_exit_group, status);
}

int main(int argc, char **argv)
{
  sem_init(&asked, 0, 0);
  signal(SIGTERM, on_term);
  MPI_Init(&argc, &argv);
  has_rank = true;
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  return 0;
}
