/* As mcast.c, between hosts of two processes: long messages are relayed, and go from host to host
 * in chains, in forks, and in parts, around a ring or doubling, also with little room for them. */
// sanitize: address,undefined thread
// timeout: 240
#define JOB_SOCKETS 1
#define JOB_HOSTS   2
#define main        all_ways
#include "mcast.c"
#undef main

static int deaths(int first, int n)
{
  int bad = 0;
  for (int k = first; k < first + n; k++) {
    victim = k % 7;
    victim_until = 5 + 11 * k;
    bad += run_job((job){.procs = 7, .killed = may_die}, body);
  }
  victim = -1;
  return bad;
}

/* Each host gets a part from the master, and the other parts from other hosts. */
static int in_parts(bool doubling, int first)
{
  setenv("SPX_MCAST_WAY", doubling ? "doubling" : "ring", 1);
  int bad = (full_or(1, doubling) && run_job((job){.procs = 9}, body)) +
            deaths(first, full_or(6, !doubling));
  setenv("SPX_MCAST_WAY", "auto", 1);
  return bad;
}

int main(void)
{
  int bad = 0;
  setenv("SPX_MCAST_CHAIN", "17K", 1);
  setenv("SPX_MCAST_FORK", "1", 1); /* chains */
  bad += (full_or(1, 0) && run_job((job){.procs = 6}, body)) + run_job((job){.procs = 9}, body) +
         deaths(0, full_or(6, 1));
  setenv("SPX_MCAST_FORK", "1G", 1);
  bad += run_job((job){.procs = 9}, body) + deaths(6, full_or(6, 1));
  bad += in_parts(false, 1) + in_parts(true, 8);
  setenv("SPX_MCAST_STAGING", "1M", 1); /* many find no room */
  bad += run_job((job){.procs = 8}, body);
  setenv("SPX_MCAST_WAY", "doubling", 1);
  bad += full_or(1, 0) && run_job((job){.procs = 8}, body);
  setenv("SPX_MCAST_WAY", "auto", 1);
  setenv("SPX_MCAST_FORK", "1", 1);
  victim = 2;
  victim_until = 60;
  bad += run_job((job){.procs = 8, .killed = may_die}, body);
  return bad != 0;
}
