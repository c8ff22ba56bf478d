/* counter.h - a number that the processes of a communicator share: the shared file pointer
 * (MPI-5.0, 15.4.4).
 *
 * Rank 0 keeps it: in a line of its job's memory file, which the processes that share that file map
 * when they first need it, so that an addition is one instruction. The other processes, and all
 * when there was no memory, send requests to rank 0, which answers in its progress. The number is
 * no window: making one costs exchanges and memory at all processes, and most files never use the
 * number. Here one process makes it, the peers need its place, which fits into an exchange that
 * they have anyway, and any of them may use it alone.
 *
 * A process that has the memory continues when rank 0 has died; at the other processes each use
 * fails then. */
#ifndef SPX_COUNTER_H
#define SPX_COUNTER_H
#include "spx.h"

typedef struct spx_counter {
  /* private to the owner of the counter, which uses no tags from SPX_COUNTER_ASK on */
  spx_comm *comm;
  /* rank 0's, and where it is mapped: changed by atomic additions; NULL: not here, or not yet */
  int64_t *number;
  int64_t place;                     /* as spx_counter_make gave it */
  char *map;                         /* not of rank 0: what is mapped for it */
  int64_t own;                       /* rank 0: the number, when it is in no memory file */
  int32_t series;                    /* of tags of answers */
  struct spx_counter_server *server; /* rank 0, when there are requests */
} spx_counter;

enum {
  SPX_COUNTER_ASK = 2,
  SPX_COUNTER_REMOTE = -1,
  SPX_COUNTER_BY_MESSAGE = 0, /* places; other values are offsets in rank 0's memory file */
  SPX_COUNTER_NOWHERE = -1    /* rank 0 has no memory to answer: its peers cannot use the number */
};

/* Rank 0 of comm: makes a number that is 0. *place is for the other ranks. NULL: no memory. */
SPX_HIDDEN spx_counter *spx_counter_make(spx_comm *comm, int64_t *place);
/* The other ranks: the number that rank 0 has made. NULL: no memory. */
SPX_HIDDEN spx_counter *spx_counter_join(spx_comm *comm, int64_t place);
/* The request to rank 0, with tag SPX_COUNTER_ASK, from a process without the memory: the addend,
 * and the tag of the answer, which is the former value. */
typedef struct {
  int64_t n, tag;
} spx_counter_question;
/* Adds n; *before: the former value. An error class, with a detail text; none at rank 0.
 * SPX_COUNTER_REMOTE: *q is to be sent to rank 0. */
SPX_HIDDEN int spx_counter_add(spx_counter *k, int64_t n, int64_t *before, spx_counter_question *q);
/* Rank 0, while the other ranks wait for it elsewhere. */
SPX_HIDDEN void spx_counter_set(spx_counter *k, int64_t value);
/* This process needs it no more. together: nor does any other. It does not wait: answers that are
 * on their way go on. */
SPX_HIDDEN void spx_counter_end(spx_counter *k, bool together);
#endif
