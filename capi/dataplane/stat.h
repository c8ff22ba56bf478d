/* stat.h - what the data plane counts for the tool information interface (MPI-5.0, 16.3): plain counters of the process, written
 * with spx_lock held. Messages are counted in their communicators (spx_comm.counts), which are at hand on the short path. */
#ifndef SPX_STAT_H
#define SPX_STAT_H
#include "spx.h"

typedef struct spx_stats {
  uint64_t unexpected, unexpected_bytes;      /* messages that nobody had asked for yet; bytes copied aside for them */
  uint64_t unexpected_high;                   /* most of them at once, since the last look (shim/tool_pvar.c) */
  uint64_t announced;                         /* messages sent that are not eager */
  uint64_t gets, got_bytes;                   /* messages read out of the sender's memory */
  uint64_t streams, streamed_bytes;           /* messages sent as a stream */
  uint64_t connections, rings;                /* processes sent to; rings opened */
  uint64_t net_refused;                       /* connections ended because of what came */
  uint64_t net_open, net_opened, net_evicted; /* connections open now; made; closed because others were wanted */
  uint64_t net_relayed, net_again; /* frames of this process that others send on; times that some were sent again */
  uint64_t net_forwarded, net_forwarded_bytes; /* frames of others that this process has sent on */
  uint64_t yields, sleeps, wakeups;            /* while waiting; other processes woken */
  uint64_t sleep_ns;
  spx_counts_of gone; /* of communicators that are no more */
} spx_stats;
SPX_HIDDEN extern spx_stats spx_stat;

/* The sums over all communicators. */
SPX_HIDDEN void spx_stat_messages(spx_counts_of *sum);
/* A new communicator counts. */
SPX_HIDDEN void spx_stat_comm(spx_comm *c);
/* The communicator with this context, if it is a twin (SPX_C_TWIN) that has not been freed; else NULL. */
SPX_HIDDEN spx_comm *spx_twin_with_context(uint64_t ctx);
/* A communicator with this error handler that is not revoked, marked as revoked now; one more reference. NULL: there is none. */
SPX_HIDDEN spx_comm *spx_mark_revoked(const spx_errh *handler);
/* A communicator goes: its counts are added to those of the gone. */
SPX_HIDDEN void spx_stat_gone(spx_comm *c);

/* ---- events: what happened, told to the tool later, with no lock held ------------------------------------------ */
typedef enum { SPX_EV_UNEXPECTED = 0, SPX_EV_FAILURE, SPX_EV_GET, SPX_EVENTS } spx_event_kind;
#define SPX_EVENT_WORDS 4
typedef struct {
  spx_event_kind kind;
  int64_t at; /* ns, CLOCK_MONOTONIC */
  int64_t word[SPX_EVENT_WORDS];
} spx_event;
SPX_HIDDEN extern uint32_t spx_events_wanted;   /* bit of each kind that somebody listens to */
SPX_HIDDEN extern void (*spx_events_due)(void); /* called with no lock held when there are some */
/* Only when wanted: use spx_note. */
SPX_HIDDEN void spx_event_add(spx_event_kind kind, int64_t a, int64_t b, int64_t c, int64_t d);
/* Takes the oldest; false: none. */
SPX_HIDDEN bool spx_event_take(spx_event *e);
/* The number of events of a kind that found no room since the last call. */
SPX_HIDDEN uint64_t spx_event_lost(spx_event_kind kind);
SPX_HIDDEN int64_t spx_event_clock(void);

static inline void spx_note(spx_event_kind kind, int64_t a, int64_t b, int64_t c, int64_t d)
{
  if (SPX_UNLIKELY(spx_events_wanted & 1u << kind)) spx_event_add(kind, a, b, c, d);
}
#endif
