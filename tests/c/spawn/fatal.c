/* A spawned process that is killed while it says why it cannot meet its parents ends nothing: neither the job, nor with a status that the job gets. */
// run: n=1 timeout=30
// run: n=1 spxrun="--with-ft" timeout=30
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "../check.h"

/* In write(2, ...), for which there is no room. */
static bool is_writing(pid_t pid)
{
  char path[64], text[128] = "";
  snprintf(path, sizeof path, "/proc/%d/syscall", (int)pid);
  int fd = open(path, O_RDONLY);
  if (fd < 0) return false;
  bool is = read(fd, text, sizeof text - 1) > 0 && strncmp(text, "1 0x2 ", 6) == 0;
  close(fd);
  return is;
}

/* Rank 0 does not find its parents, and cannot say so: nobody reads its standard error. */
static int lost(char **argv)
{
  int ends[2];
  if (pipe(ends) != 0) return 9;
  fcntl(ends[1], F_SETFL, O_NONBLOCK);
  for (char block[4096] = ""; write(ends[1], block, sizeof block) > 0;) {}
  fcntl(ends[1], F_SETFL, 0);
  dup2(ends[1], 2);
  setenv("SPX_PARENT", "nobody", 1);
  pid_t pid = getpid();
  int fd = open(argv[1], O_WRONLY);
  if (fd < 0 || write(fd, &pid, sizeof pid) != sizeof pid) return 9;
  close(fd);
  execv(argv[0], argv);
  return 9;
}

/* Rank 1 kills it when it is about to, and ends before MPI_Init. */
static int kills(const char *file)
{
  pid_t pid = 0;
  int fd = open(file, O_RDONLY);
  if (fd < 0 || read(fd, &pid, sizeof pid) != sizeof pid) return 9;
  while (!is_writing(pid)) usleep(1000);
  kill(pid, SIGKILL);
  return 7;
}

int main(int argc, char **argv)
{
  char *rank = getenv("SPX_RANK");
  if (argc > 1 && atoi(rank) == 1) return kills(argv[1]);
  if (argc > 1 && strcmp(getenv("SPX_PARENT"), "nobody") != 0) return lost(argv);
  MPI_Init(&argc, &argv);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  char *args[] = {"fifo", NULL};
  MPI_Comm inter;
  int codes[2] = {0, 0};
  CHECK(mkfifo(args[0], 0600) == 0);
  CHECK_CLASS(MPI_Comm_spawn(argv[0], args, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, codes), MPI_ERR_SPAWN);
  CHECK(codes[0] == MPI_ERR_SPAWN && codes[1] == MPI_ERR_SPAWN);
  unlink(args[0]);
  MPI_Finalize();
  return check_status();
}
