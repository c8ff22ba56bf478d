/* net_long.h - bytes of long messages within a connection's stream of records: from the sender's
 * buffer and into the receiver's, with no copy in between. The lock is held. */
#ifndef SPX_NET_LONG_H
#define SPX_NET_LONG_H
#include "dp.h"

#define SPX_LONG_MOST   (1u << 20) /* bytes that follow one LONG record */
#define SPX_LONG_RUNS   62         /* pieces of memory in one system call, at most */
#define SPX_LONG_IOVECS (SPX_LONG_RUNS + 2)

struct iovec;

/* Bytes to be written from a sender's buffer. */
typedef struct {
  spx_request *r; /* the send; NULL: it is over, and zeros are written in place of its bytes */
  uint32_t left;  /* bytes; 0: none */
  uint32_t at;    /* their place: before out[at] */
  uint64_t to;    /* ends: the byte behind the last of that record */
  bool ends;      /* out[at] is a DATA record with the rest of the message */
  bool copies;    /* the kernel can not read the buffer */
} spx_long_out;

/* Bytes to be read into a receiver's buffer. */
typedef struct {
  uint32_t index, gen; /* the receive's descriptor: it may be gone */
  uint32_t left;
  bool copies; /* the kernel can not write to the buffer */
} spx_long_in;

typedef enum {
  SPX_LONG_NOT /* as DATA records, now at least */,
  SPX_LONG_WAITS /* for room */,
  SPX_LONG_MOVED
} spx_long_result;

/* Sends more of a stream, which has bytes left, from its buffer. */
SPX_HIDDEN spx_long_result spx_long_more(spx_tx *tx, spx_request *r);
/* The buffer of r must not be read any more. */
SPX_HIDDEN void spx_long_recall(spx_tx *tx, const spx_request *r);

/* The memory whose bytes are next; *covered: how many these are, all that are left or fewer. */
SPX_HIDDEN int spx_long_source(spx_long_out *o, struct iovec *v, uint64_t *covered);
/* n of them are written. */
SPX_HIDDEN void spx_long_written(spx_long_out *o, uint32_t n);

/* A LONG record of peer. False: it is not sound. */
SPX_HIDDEN bool spx_long_begins(spx_long_in *in, uint32_t peer, const spx_rec *rec);
/* The memory where the next bytes belong, as above; 0: they have to be read elsewhere, and handed
 * over. */
SPX_HIDDEN int spx_long_target(spx_long_in *in, uint32_t peer, struct iovec *v, uint64_t *covered);
/* n bytes have come there. */
SPX_HIDDEN void spx_long_read(spx_long_in *in, uint32_t peer, uint32_t n);
/* At most n bytes that have come elsewhere; how many of them were of the message. */
SPX_HIDDEN uint32_t spx_long_take(spx_long_in *in, uint32_t peer, const uint8_t *bytes, uint32_t n);
#endif
