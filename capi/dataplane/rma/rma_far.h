/* rma_far.h - requests on window memory over the network, between their origin (rma_far.c) and the
 * target (rma_far_target.c), and what a window has for both.
 */
#ifndef SPX_RMA_FAR_H
#define SPX_RMA_FAR_H
#include "basic.h"
#include "dp.h"
#include "rma_rows.h"

#define ROWS   512    /* of a request */
#define PIECE  65536u /* bytes of data in a request or an answer */
#define LONG   32768  /* from so many bytes on one run is a message of its own */
#define PAIR   64u    /* the longest predefined datatype, and room to spare */
#define SLOTS  4      /* requests that can come at a time without waiting for memory */
#define SERIES (1 << 20)
enum {
  TAG_ASK = 4,
  TAG_ANSWER = 16 /* and SERIES more; SERIES above it the data of a put: target and origin number by
                     themselves */
};

typedef enum { PUT, GET, PUT_LONG, GET_LONG, ACCUMULATE, FETCH, SWAP, LOCK, UNLOCK, KINDS } kind;

/* A request: n rows and then bytes of data follow. */
typedef struct {
  uint32_t what;  /* kind */
  int32_t tag;    /* of the answer, and of what a long get brings */
  uint32_t n;     /* rows */
  uint32_t bytes; /* data that follow; SWAP: the new value and the one that is expected */
  int32_t element,
      /* accumulates: number of the predefined datatype; a pair without a name: of its value and
         index */
      index;
  int32_t op; /* accumulates: handle; LOCK, UNLOCK: spx_held */
  uint32_t pad;
} ask;
#define ASK_MOST (sizeof(ask) + ROWS * sizeof(spx_rma_row) + PIECE)

/* An answer: bytes of data follow. */
typedef struct {
  int32_t error;
  uint32_t bytes;
} answer;

/* What a window has: of its origins a series of tags, else the target's. */
struct spx_win_far {
  spx_poller poller;
  spx_win *w;
  int32_t series; /* of tags */
  spx_request *slot[SLOTS];
  char *buf[SLOTS]; /* ASK_MOST each */
  struct job *jobs;
  struct lock_request *lock_requests;
  bool granting, again; /* lock requests are being looked at; and they are to be, once more */
};

static inline spx_type *bytes_type(void) { return &spx_basic_types[SPX_B_BYTE]; }
#endif
