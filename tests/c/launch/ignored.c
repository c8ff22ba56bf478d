/* Signals that are ignored when spxrun starts are ignored in its ranks, and no others: as without a launcher. The program starts an spxrun of its own,
 * whose ranks look before any library has been loaded (.preinit_array), and again after MPI_Init. */
// run: n=1 args=none timeout=60
// run: n=1 args=usual timeout=60
// run: n=1 args=all timeout=60
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "../check.h"

enum { SIGNALS = 64 };

static uint64_t at_start;

static uint64_t ignored(void)
{
  uint64_t set = 0;
  struct sigaction a;
  for (int s = 1; s <= SIGNALS; s++)
    if (sigaction(s, NULL, &a) == 0 && !(a.sa_flags & SA_SIGINFO) && a.sa_handler == SIG_IGN) set |= 1ull << (s - 1);
  return set;
}

static void look(void) { at_start = ignored(); }
__attribute__((section(".preinit_array"), used)) static void (*const first)(void) = look;

/* What a shell's trap '' or nohup makes of this process, which becomes spxrun. */
static int launch(const char *self, const char *which)
{
  static const int usual[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGPIPE, SIGUSR1, SIGTSTP, SIGXFSZ, 40};
  char launcher[64], set[20];
  if (strcmp(which, "usual") == 0)
    for (unsigned i = 0; i < sizeof usual / sizeof *usual; i++) signal(usual[i], SIG_IGN);
  for (int s = 1; s <= SIGNALS && strcmp(which, "all") == 0; s++) signal(s, SIG_IGN);
  snprintf(set, sizeof set, "%llx", (unsigned long long)ignored());
  snprintf(launcher, sizeof launcher, "/proc/%s/exe", getenv("SPX_AGENT"));
  execl(launcher, "spxrun", "-n", "2", self, "rank", set, NULL);
  perror(launcher);
  return 127;
}

int main(int argc, char **argv)
{
  if (argc == 2) return launch(argv[0], argv[1]);
  uint64_t want = strtoull(argv[2], NULL, 16);
  if (at_start != want)
    fprintf(stderr, "%#llx instead of %#llx\n", (unsigned long long)at_start, (unsigned long long)want);
  CHECK(at_start == want);
  MPI_Init(&argc, &argv);
  CHECK(ignored() == want);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  CHECK(ignored() == want);
  return check_status();
}
