// broken.c - a failed assertion ends the process, and prints its place and its condition.
#define _GNU_SOURCE
#include <sys/wait.h>
#include "job.h"

/* Runs in a process of its own; returns its status, and what it has written to stderr. */
static int status_of(bool holds, char *text, size_t size)
{
  int ends[2], status;
  CHECK(pipe(ends) == 0);
  pid_t pid = fork();
  if (pid == 0) {
    dup2(ends[1], 2);
    SPX_ASSERT(holds);
    _exit(0);
  }
  close(ends[1]);
  size_t at = 0;
  for (ssize_t n; (n = read(ends[0], text + at, size - 1 - at)) > 0;) at += (size_t)n;
  text[at] = 0;
  close(ends[0]);
  CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
  return WEXITSTATUS(status);
}

int main(void)
{
  char text[1024];
  CHECK(status_of(true, text, sizeof text) == 0 && text[0] == 0);
  CHECK(status_of(false, text, sizeof text) == 99); /* by spx_fatal (job.h) */
  CHECK(strstr(text, "broken.c:") && strstr(text, "\"holds\" does not hold"));
  return 0;
}
