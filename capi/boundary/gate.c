/* gate.c - a process that a debugger is to attach to from the beginning waits in MPI_Init until the
 * launcher releases it: until no process has the pipe that SPX_GATE names open for writing. The
 * death of a launcher releases it, too. */
#define _GNU_SOURCE
#include "gate.h"
#include <errno.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

void spx_gate_wait(void)
{
  const char *text = secure_getenv("SPX_GATE");
  char *end, byte;
  if (!text || !*text) return;
  long fd = strtol(text, &end, 10);
  if (*end || fd < 0) return;
  /* the debugger is no ancestor of this process, nor named to the kernel */
  prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
  ssize_t n;
  do n = read((int)fd, &byte, 1);
  while (n > 0 || (n < 0 && errno == EINTR));
  if (n == 0) close((int)fd);
  prctl(PR_SET_PTRACER, 0, 0, 0, 0); /* it has attached, or will not: an attached tracer stays */
  unsetenv("SPX_GATE");              /* programs that this one starts have no such pipe */
}
