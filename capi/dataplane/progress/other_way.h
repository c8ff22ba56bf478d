/* other_way.h - messages that go another way than from a sender to its receiver alone.
 *
 * Layer progress. In a system of clusters a message may be kept, and the place of a dead process be
 * taken by another one. Sends and receives use this table for that; clusters.c fills it in. Called
 * with spx_lock held, and only for requests and communicators with the flags that are named; never
 * on the short path. */
#ifndef SPX_OTHER_WAY_H
#define SPX_OTHER_WAY_H
#include "record.h"
#include "spx.h"

struct spx_unex;

typedef struct {
  /* Takes over the send r, of a communicator with SPX_C_REPLAY. False: it goes as any other. */
  bool (*sends)(spx_request *r);
  /* Another process takes the place of one that has died: its death is no error there. */
  bool (*replaced)(const spx_comm *c, uint32_t ctx_kind);
  /* The receive r goes on for that reason. */
  bool (*outlives)(const spx_request *r);
  /* The peer of r has died, which has SPX_RF_KEPT or SPX_RF_WORD. */
  void (*lost)(spx_request *r, int error);
  /* All of the send r, which has SPX_RF_KEPT, is with its receiver. */
  void (*fetched)(spx_request *r);
  /* Its receiver, or the successor of that, requests it again. */
  void (*asked)(spx_request *r, const spx_rec_cts *cts);
  /* A receive or a probe has found a message of a system: its number among those of its origin. */
  void (*numbered)(uint32_t number);
  /* A probe has found nothing: a message for it may have arrived, and wait until it is
   * requested. */
  void (*missed)(uint64_t ctx, int src);
  /* The receive r has matched a message that was only announced (spx_unex.word); it is dropped. */
  void (*taken)(const struct spx_unex *e, spx_request *r);
  void (*dropped)(const struct spx_unex *e);
  /* The receive r, which has SPX_RF_WORD, is about to complete. True: it begins again. */
  bool (*ends)(spx_request *r, int error);
  /* The value shown to the user for a source that is an origin (origin.h); for a status, which
   * keeps it. */
  int (*shown)(int32_t origin);
  int (*noted)(MPI_Status *st, int32_t origin);
  /* A blocking collective of a communicator with SPX_C_REPLAY is over: what it has sent is on its
   * way. */
  void (*collected)(void);
} spx_other_way;
SPX_HIDDEN extern const spx_other_way *spx_other; /* set at attach */
SPX_HIDDEN extern const spx_other_way spx_clusters_way;
#endif
