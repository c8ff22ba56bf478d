/* What threads.c does, between processes that are connected by sockets and share no channels. */
// sources: segment.c net.c net_relay.c net_close.c peers.c settings.c stat.c handles.c ring.c match.c p2p.c deliver.c mcast.c mcast_wire.c get.c far.c copy.c wait.c lock.c load.c fail.c probe.c bsend.c pack.c pack_runs.c basic.c
// sanitize: address,undefined thread
// timeout: 240
#define JOB_SOCKETS 1
#include "threads.c"
