/* A member that does not receive: who asks why the master stands still is told of it, by spxctl waits and spxctl queues. Rank 2 asks, as often as it
 * takes, and lets the member receive then. */
// run: n=4 timeout=60
#include <mpi-ext.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "../check.h"

#define MUST(call) CHECK_CLASS(call, MPI_SUCCESS)
enum { BYTES = 70001, LATE = 1, ASKS = 2, RECEIVES = 3 };

/* What spxctl, which is beside the launcher, says of this job. */
static const char *ask(const char *what)
{
  static char text[8192];
  char exe[512], line[1024];
  snprintf(line, sizeof line, "/proc/%d/exe", (int)getppid());
  ssize_t n = readlink(line, exe, sizeof exe - 1);
  if (n < 0) n = 0;
  exe[n] = 0;
  if (strrchr(exe, '/')) *strrchr(exe, '/') = 0;
  char job[17] = ""; /* the first eight bytes of its id, as a number */
  for (int i = 0; i < 8; i++) memcpy(job + 2 * i, getenv("SPX_JOB") + 14 - 2 * i, 2);
  snprintf(line, sizeof line, "%s/spxctl %s %s 2>&1", exe, what, job);
  FILE *f = popen(line, "r");
  if (!f) return "";
  size_t got = fread(text, 1, sizeof text - 1, f);
  text[got] = 0;
  pclose(f);
  return text;
}

static void until(const char *what, const char *first, const char *second)
{
  const char *text = "";
  for (double end = MPI_Wtime() + 40; MPI_Wtime() < end;) {
    text = ask(what);
    const char *at = strstr(text, first);
    if (at && strstr(at, second)) return;
  }
  fprintf(stderr, "spxctl %s says:\n%s", what, text);
  CHECK(!"what it should");
}

int main(int argc, char **argv)
{
  int me, ranks[] = {LATE, RECEIVES};
  static char b[BYTES];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  if (me == 0) {
    MPIX_Rankset set;
    MUST(MPIX_Rankset_incl(MPI_COMM_WORLD, 2, ranks, &set));
    MUST(MPIX_Smcast(b, BYTES, MPI_BYTE, set, 5, MPI_COMM_WORLD));
    MUST(MPIX_Rankset_free(&set));
  } else if (me == ASKS) {
    until("waits", "MPIX_Smcast(send: count=70001", "dest=1, tag=5");
    until("queues", "message of 70001 bytes to rank 1, tag 5", "");
    MUST(MPI_Send(NULL, 0, MPI_BYTE, LATE, 6, MPI_COMM_WORLD));
  } else {
    if (me == LATE) MUST(MPI_Recv(NULL, 0, MPI_BYTE, ASKS, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    MUST(MPI_Recv(b, BYTES, MPI_BYTE, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  }
  MPI_Finalize();
  return check_status();
}
