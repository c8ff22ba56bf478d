/* A fault outside Go ends the process by its signal, as if nobody had listened; a handler of the application's own is called. */
// run: n=1 args="segv" status=139
// run: n=1 args="segv-before" status=139
// run: n=1 args="fpe" status=136
// run: n=1 args="kill" status=139
// run: n=1 args="pipe" status=141
// run: n=1 args="own"
// run: n=1 args="buffer 8" status=139 stderr~"MPI_Sendrecv: SIGSEGV at address.*buffer"
// run: n=1 args="buffer 3000" status=139 stderr~"MPI_Sendrecv: SIGSEGV at address.*buffer"
#include "boundary.h"
#include <setjmp.h>
#include <signal.h>
#include <sys/resource.h>

static sigjmp_buf out;
static void own(int sig) { siglongjmp(out, sig); }

int main(int argc, char **argv)
{
  const char *how = argc > 1 ? argv[1] : "";
  struct rlimit none = {0, 0};
  volatile int *nowhere = (volatile int *)8, zero = 0;
  setrlimit(RLIMIT_CORE, &none);
  if (!strcmp(how, "segv-before")) *nowhere = 1;
  MPI_Init(&argc, &argv);
  MPI_Barrier(MPI_COMM_WORLD);
  if (!strcmp(how, "segv")) *nowhere = 1;
  if (!strcmp(how, "fpe")) zero = 100 / zero;
  if (!strcmp(how, "buffer")) { /* a buffer that is not memory */
    static char in[4000];
    char *out = (char *)12288;
    MPI_Sendrecv(out, atoi(argv[2]), MPI_CHAR, 0, 1, in, sizeof in, MPI_CHAR, 0, 1, MPI_COMM_SELF, MPI_STATUS_IGNORE);
  }
  if (!strcmp(how, "kill")) kill(getpid(), SIGSEGV);
  if (!strcmp(how, "pipe")) {
    int p[2];
    if (pipe(p)) return 8;
    close(p[0]);
    if (write(p[1], "x", 1) < 0) return 7;
  }
  if (!strcmp(how, "own")) {
    signal(SIGSEGV, own);
    if (!sigsetjmp(out, 1)) *nowhere = 1;
    MPI_Comm c;
    MPI_Comm_dup(MPI_COMM_WORLD, &c);
    MPI_Comm_free(&c);
    MPI_Finalize();
    return 0;
  }
  return 6;
}
