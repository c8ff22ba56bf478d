/* As traffic.c, between processes in a ring of which neighbours alone are connected: messages
 * between others take two or three hops. */
// sanitize: address,undefined
// timeout: 240
#define JOB_SOCKETS 1
#define JOB_RELAYS  1
#define main        main_of_traffic
#include "traffic.c"
#undef main

int main(void)
{
  int bad = run_job((job){.procs = 4}, body) + run_job((job){.procs = 5}, body) +
            run_job((job){.procs = 7}, body);
  setenv("SPX_CREDIT", "4096", 1); /* nearly everything announced */
  setenv("SPX_EAGER_MAX", "1000", 1);
  (void)main_of_traffic;
  return bad + run_job((job){.procs = 6}, body) != 0;
}
