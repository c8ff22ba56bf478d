/* kinds.h - records, requests and messages of layers above, which pass through sends, receives and
 * matching: tables by kind.
 *
 * Layer pt2pt. deliver.c and fail.c call the entries, with spx_lock held; dataplane.c fills the
 * tables in at attach. Eager messages, announced ones, DATA and their answers are not here. */
#ifndef SPX_KINDS_H
#define SPX_KINDS_H
#include "dp.h"

/* A record has arrived. False: no memory, it is delivered again. */
typedef bool spx_record_handler(uint32_t peer, const spx_rec *rec);
/* By kind of record, up to SPX_REC_LAST; NULL: none. */
SPX_HIDDEN extern spx_record_handler *const *spx_handlers;
SPX_HIDDEN spx_record_handler spx_mcast_on_record, spx_pass_on_aborted;

/* A request that is neither a send nor a receive, and has a descriptor (spx_id_new). */
typedef struct {
  void (*ends)(spx_request *r, int error);        /* with an error */
  void (*fetched)(spx_request *r, uint32_t peer); /* peer has all of it */
  void (*asked)(spx_request *r, uint32_t peer, const spx_rec_cts *cts, bool relays);
} spx_kind_ops;
/* By kind of request; NULL: none. */
SPX_HIDDEN extern const spx_kind_ops *spx_kinds[SPX_R_GO + 1];
SPX_HIDDEN extern const spx_kind_ops spx_mcast_kind;

/* Messages among the unexpected ones whose kind is above SPX_REC_RTS. */
typedef struct {
  void (*take)(spx_request *r, const spx_unex *e); /* the receive r has matched e */
  void (*drop)(const spx_unex *e);                 /* no receive will */
} spx_cast_ops;
SPX_HIDDEN extern const spx_cast_ops *spx_casts, spx_mcast_unexpected;
#endif
