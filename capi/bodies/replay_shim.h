/* replay_shim.h - transparent takeover beside the messages (dataplane/clusters/replay.h): the vault of a rank, what MPISP_Register and MPISP_Commit put into it, and how
 * a standby gets it. docs/systems.md. */
#ifndef SPX_REPLAY_SHIM_H
#define SPX_REPLAY_SHIM_H
#include "replay.h"

/* What capi/system.go knows of the system; no message log. procs, heals, iop: for s. own: this process's cluster has transparent takeover. standby: it has no rank yet, and begins
 * when it has. first: party of rank 0 of the cluster. An MPI error code. */
SPX_HIDDEN int spx_vault_begin(const spx_replay_setup *s, const uint32_t *procs, const bool *heals, const uint32_t *iop,
                               bool own, bool standby, uint32_t first);
/* There are more parties: these are all of them. An MPI error code. */
SPX_HIDDEN int spx_vault_grow(uint32_t parties, const uint32_t *procs, const bool *heals, const uint32_t *iop);
/* A process is that party now. */
SPX_HIDDEN void spx_vault_moved(uint32_t party, uint32_t proc);
/* In MPI_Init: standbys open the vaults of the ranks, which wait for that. base: the cluster's processes, ranks first; the last cold inherit the vaults, and nobody waits for them. An MPI error code, with a detail text. */
SPX_HIDDEN int spx_vault_meet(const spx_comm *base, int ranks, int cold);
/* This process, a standby, has taken a rank over. */
SPX_HIDDEN int spx_vault_take(int rank);
/* This process belongs to a cluster whose message logs have copies on other hosts, and keeps them for others (dataplane/clusters/copies.h). */
SPX_HIDDEN void spx_keep_copies(spx_comm *wire, int cold);
/* In MPI_Finalize: waits until nobody needs anything more of this process. */
SPX_HIDDEN void spx_vault_leave(void);
/* Waits until all that this process has sent was accepted. */
SPX_HIDDEN void spx_replay_settle(void);
#endif
