/* comm.h - what the engine (capi/comm*.go, attr*.go) and the C side of communicators share:
 * descriptors, the engine's messages, and what MPI_Comm_get_attr reads without entering Go.
 * MPI-5.0, chapter 7. */
#ifndef SPX_COMM_H
#define SPX_COMM_H
#include "spx.h"

/* Predefined handles as numbers, for Go: cgo cannot read them from mpi.h, where they are
 * pointers. */
enum {
  SPX_HANDLE_COMM_NULL = 256,
  SPX_HANDLE_COMM_WORLD = 257,
  SPX_HANDLE_COMM_SELF = 258,
  SPX_HANDLE_GROUP_NULL = 264,
  SPX_HANDLE_GROUP_EMPTY = 265,
  SPX_HANDLE_INFO_NULL = 304,
  SPX_HANDLE_INFO_ENV = 305
};

/* ---- comm.c ---- */
/* Registers a predefined group or info object whose Go side has this index. 0: out of memory. */
SPX_HIDDEN int spx_plain_predefine(spx_kind k, int value, uint32_t go);
/* An array of n process indices that descriptors share; ranks_free drops one reference. NULL when
 * memory is out. ranks_hold, when the array has been filled, holds the processes (spx_peer_hold) as
 * long as the array lives. */
SPX_HIDDEN uint32_t *spx_ranks_new(uint32_t n);
SPX_HIDDEN void spx_ranks_hold(uint32_t *ranks);
SPX_HIDDEN uint32_t *spx_ranks_share(uint32_t *ranks);
SPX_HIDDEN void spx_ranks_free(uint32_t *ranks);
/* Fills in a descriptor, made by spx_new. It takes over peer and local (one reference each; the
 * same array for an intracommunicator). Makes c->inner for an intercommunicator. Returns 0, or
 * MPI_ERR_NO_MEM. */
SPX_HIDDEN int spx_comm_fill(spx_comm *c, int rank, int size, int remote_size, uint64_t ctx,
                             uint32_t *peer, uint32_t *local);
/* Gives a descriptor, and its inner one, the context that it was made without. */
SPX_HIDDEN void spx_comm_set_ctx(spx_comm *c, uint64_t ctx);
/* Gives a descriptor other processes and another context: what was pending on it has ended with
 * MPIX_ERR_REVOKED, what was on its way is dropped, and it is as new, but for its handle and what
 * the user has attached to it. It takes over peer and local as spx_comm_fill does. */
/* other processes alone */
SPX_HIDDEN void spx_comm_lists(spx_comm *c, uint32_t *peer, uint32_t *local);
SPX_HIDDEN void spx_comm_renew(spx_comm *c, int rank, uint64_t ctx, uint32_t *peer,
                               uint32_t *local);
/* A predefined communicator, MPI_COMM_WORLD (257) or MPI_COMM_SELF (258): registers it, zeroed, or
 * takes it out and frees it. */
SPX_HIDDEN spx_comm *spx_comm_predefine(int value, uint32_t flags);
SPX_HIDDEN void spx_comm_forget(int value);
/* To be called once, before the first communicator is made. */
SPX_HIDDEN void spx_comm_start(void);

/* The result of MPI_Comm_get_parent: the intercommunicator with the processes that have spawned
 * this one, until it is freed. */
SPX_HIDDEN extern MPI_Comm spx_parent;

/* A step of a creation: where tests end this process (SPX_DIE_AFTER). */
SPX_HIDDEN void spx_creation_step(void);

/* MPI_Comm_disconnect (capi/comm_create.go): c is about to go, with all its members. */
SPX_HIDDEN void spx_comm_part(spx_comm *c);
/* Something waits for a way to a process that may still want it. */
SPX_HIDDEN bool spx_anything_waits(void);

/* ---- comm_dup.c ---- */
/* MPI has ended: the contexts that are left count no more. */
SPX_HIDDEN void spx_comm_contexts_end(void);

/* ---- comm_idup.c ---- */
/* A neighbour in the tree along which a new context travels (core/comm, DupTree). */
typedef struct spx_edge {
  spx_comm *comm;
  int rank;
} spx_edge;
/* Begins the agreement on the context of made in the background: it comes from parent, or is ctx if
 * parent is NULL, and goes to the children. The request gives made its context before it completes.
 * Returns an MPI error code. */
SPX_HIDDEN int spx_idup_start(spx_comm *old, spx_comm *made, uint64_t ctx, const spx_edge *parent,
                              const spx_edge *children, int n, int tag, spx_request **request);

/* ---- attr.c ---- */
typedef struct spx_predef_attrs {
  int tag_ub, host, io, wtime_is_global;
  int appnum, universe_size; /* negative: not set */
  int lastusedcode;          /* filled in when it is first queried */
} spx_predef_attrs;
SPX_HIDDEN extern spx_predef_attrs spx_attr_values;
/* Keeps what MPI_Comm_get_attr reads in step with the engine. */
SPX_HIDDEN void spx_keyval_mark(int keyval, int live);
SPX_HIDDEN void spx_comm_attr_mark(spx_comm *c, int keyval, uintptr_t value, int present);
SPX_HIDDEN void spx_comm_attrs_free(spx_comm *c);
SPX_HIDDEN bool spx_comm_has_attrs(const spx_comm *c);
#endif
