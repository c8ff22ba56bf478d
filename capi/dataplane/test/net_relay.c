/* What traffic.c does, between processes in a ring of which neighbours alone are connected: the others' messages take two or three hops. */
// sources: segment.c net.c net_relay.c net_close.c peers.c settings.c stat.c handles.c ring.c match.c p2p.c deliver.c mcast.c mcast_wire.c get.c far.c copy.c wait.c lock.c load.c fail.c probe.c bsend.c pack.c pack_runs.c basic.c
// sanitize: address,undefined
// timeout: 240
#define JOB_SOCKETS 1
#define JOB_RELAYS  1
#define main        main_of_traffic
#include "traffic.c"
#undef main

int main(void)
{
  int bad = run_job((job){.procs = 4}, body) + run_job((job){.procs = 5}, body) + run_job((job){.procs = 7}, body);
  setenv("SPX_CREDIT", "4096", 1); /* nearly everything announced */
  setenv("SPX_EAGER_MAX", "1000", 1);
  (void)main_of_traffic;
  return bad + run_job((job){.procs = 6}, body) != 0;
}
