/* copies_core.c and replay_core.c with hosts that die: the ranks of replay_sim.c run on hosts, and
 * the process that takes a rank over has nothing but a copy of its message log, on another host
 * (copies_hosts.h). Processes and hosts die at any moment, as long as of each rank the process or
 * one valid copy is left: no state is lost by that, and no message lost or duplicated. */
// sanitize: address,undefined
#define COPIES
#include "replay_sim.c"
