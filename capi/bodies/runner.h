/* runner.h - what a body of the engine waits for (capi/runner.go): functions that the shim calls
 * for it with no Go frame below, since a wait runs functions of the program, which may leave it by
 * longjmp. Their arguments are words; none is called from Go directly. */
#ifndef SPX_RUNNER_H
#define SPX_RUNNER_H
#include "spx.h"

/* Messages that are sent and received at once. The batch is C's memory and has the pending
 * requests: a wait that was left leaves requests behind, and the memory of their messages, Go's,
 * has to stay until they are complete. */
typedef struct spx_batch {
  spx_comm *comm;
  uint32_t ctx_kind;  /* SPX_CTX_* */
  int32_t n, nrecvs;  /* receives come first */
  int32_t begun, err; /* how many have been begun, and what the last has failed with */
  struct spx_batch_message {
    int64_t peer, tag, bytes; /* of a receive that is over: bytes that have come */
    uintptr_t data;
    spx_type *type; /* of memory of the program's, of which bytes is the count then; NULL: bytes */
    spx_request *r; /* NULL: not begun, or over */
  } m[];
} spx_batch;

/* For n messages, the first nrecvs to be received; the caller fills m. NULL: no memory. */
SPX_HIDDEN spx_batch *spx_batch_new(spx_comm *c, uint32_t ctx_kind, int nrecvs, int n);
/* Frees the batch if nothing of it is pending; cancel: ends first what can be ended here. False:
 * something is still pending. */
SPX_HIDDEN bool spx_batch_end(spx_batch *b, bool cancel);

/* Begins the messages, where that is sure not to wait. True: they are over, as short messages to
 * send are as a rule. */
SPX_HIDDEN bool spx_batch_begin(spx_batch *b);

/* a0: spx_batch *, a1: 1 to return at the first error. Sends and receives all, and waits. Returns
 * an MPI error code, with a detail text; if a1 is 0 nothing is pending then. */
SPX_HIDDEN int64_t spx_batch_wait(spx_word *a);
/* a0: spx_batch * for one operation, a1: what this process gives, a2: room for what all give, by
 * rank, a3: bytes of each, whole words. A collective of the batch's communicator. Returns an MPI
 * error code, with a detail text. */
SPX_HIDDEN int64_t spx_batch_gather(spx_word *a);
/* a0: spx_batch * for one operation, a1: const int64_t * of this process, a2: int64_t * that get
 * the greatest of each, a3: how many. The same. */
SPX_HIDDEN int64_t spx_batch_greatest(spx_word *a);
/* a0: spx_batch * for one operation, a1: the words of rank 0, which the other ranks get, a2: bytes,
 * whole words. The same. */
SPX_HIDDEN int64_t spx_batch_bcast(spx_word *a);
/* a0: spx_batch *: begins the messages, which may wait for room, and does not wait for them to be
 * over. Returns an MPI error code. */
SPX_HIDDEN int64_t spx_batch_post(spx_word *a);
/* a0: spx_comm *, a1: SPX_CTX_*, a2: tag, a3: int64_t *. Returns the source of a message with this
 * tag that has come, with its bytes; -1: none has. */
SPX_HIDDEN int64_t spx_batch_came(spx_word *a);
/* a0: what spx_ticket has returned before, a1: as spx_event_wait's a2: waits until something has
 * happened since. */
SPX_HIDDEN int64_t spx_ticket_wait(spx_word *a);
/* a0: const uint32_t *: waits until it is not 0, or a2, ns of CLOCK_MONOTONIC (0: no limit), has
 * passed, or a1, a communicator or NULL, is revoked or has lost a process. Returns the number.
 * spx_ring_self has to be called after it was set. */
SPX_HIDDEN int64_t spx_event_wait(spx_word *a);
/* spx_progress. */
SPX_HIDDEN int64_t spx_progress_made(spx_word *a);
#endif
