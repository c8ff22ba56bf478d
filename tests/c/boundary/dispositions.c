/* What the application sees of signals is as if the Go runtime were not there: dispositions and the thread's mask after loading,
 * after MPI_Init and after many entries into Go; handlers that are installed later; no alternate stack; nobody sends SIGURG;
 * and the runtime's own threads take no signal of the application. */
// run: n=1,2
#include "boundary.h"
#include <signal.h>

static const int usual[] = {SIGHUP,  SIGINT,  SIGQUIT, SIGPIPE, SIGALRM,   SIGTERM, SIGUSR1,
                            SIGUSR2, SIGCHLD, SIGURG,  SIGPROF, SIGVTALRM, SIGIO};
enum { USUAL = sizeof usual / sizeof *usual };
static struct sigaction before[USUAL];

static void same(const char *when)
{
  sigset_t mask;
  stack_t stack;
  for (int i = 0; i < USUAL; i++) {
    struct sigaction now;
    sigaction(usual[i], NULL, &now);
    if (now.sa_handler != before[i].sa_handler || now.sa_flags != before[i].sa_flags)
      FAIL("%s: disposition of signal %d has changed", when, usual[i]);
  }
  sigprocmask(SIG_BLOCK, NULL, &mask);
  for (int s = 1; s < 64; s++)
    if (sigismember(&mask, s) == 1) FAIL("%s: signal %d is blocked", when, s);
  sigaltstack(NULL, &stack);
  if (!(stack.ss_flags & SS_DISABLE)) FAIL("%s: a signal stack is installed", when);
}

/* Every other thread has every signal of the application blocked. */
static void others_block(void)
{
  DIR *d = opendir("/proc/self/task");
  struct dirent *e;
  while ((e = readdir(d))) {
    char path[300], line[256];
    unsigned long long blocked = 0;
    if (atoi(e->d_name) == 0 || atoi(e->d_name) == (int)gettid()) continue;
    snprintf(path, sizeof path, "/proc/self/task/%s/status", e->d_name);
    FILE *f = fopen(path, "r");
    while (f && fgets(line, sizeof line, f)) sscanf(line, "SigBlk: %llx", &blocked);
    if (f) fclose(f);
    for (int i = 0; i < USUAL; i++)
      if (!(blocked >> (usual[i] - 1) & 1)) FAIL("thread %s would take signal %d", e->d_name, usual[i]);
    for (int s = SIGRTMIN; s <= SIGRTMAX; s++)
      if (!(blocked >> (s - 1) & 1)) FAIL("thread %s would take signal %d", e->d_name, s);
  }
  closedir(d);
}

static volatile int urgent, child;
static void on_urg(int sig) { urgent += sig == SIGURG; }
static void on_chld(int sig) { child += sig == SIGCHLD; }

int main(int argc, char **argv)
{
  (void)argc;
  (void)argv;
  for (int i = 0; i < USUAL; i++) sigaction(usual[i], NULL, &before[i]);
  CHECK(before[3].sa_handler == SIG_DFL); /* SIGPIPE */
  CHECK(before[9].sa_handler == SIG_DFL); /* SIGURG */
  same("after loading");
  MPI_Init(NULL, NULL);
  same("after MPI_Init");
  for (int i = 0; i < 300; i++) { /* garbage for Go to collect, and so a wish to preempt */
    MPI_Comm c;
    MPI_Comm_dup(MPI_COMM_SELF, &c);
    MPI_Comm_free(&c);
  }
  same("after entries into Go");
  others_block();
  signal(SIGURG, on_urg);
  signal(SIGCHLD, on_chld);
  for (int i = 0; i < 300; i++) {
    MPI_Comm c;
    MPI_Comm_dup(MPI_COMM_SELF, &c);
    MPI_Comm_free(&c);
  }
  if (urgent) FAIL("the library sent SIGURG %d times", urgent);
  if (system("true") != 0) FAIL("system");
  raise(SIGCHLD);
  raise(SIGURG);
  CHECK(urgent == 1);
  CHECK(child >= 1);
  MPI_Finalize();
  return 0;
}
