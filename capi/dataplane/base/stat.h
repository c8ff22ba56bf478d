/* stat.h - what the data plane counts for the tool information interface (MPI-5.0, 16.3) and for
 * observers outside the process (docs/live.md): plain counters of the process (spx_counters in
 * layout.h), written with spx_lock held. Messages are counted for their communicators, too. */
#ifndef SPX_STAT_H
#define SPX_STAT_H
#include "spx.h"

/* The counters of this process: in its row of the memory file, where other processes can read them;
 * in private memory while there is no memory file. */
SPX_HIDDEN extern spx_counters *spx_counted;
#define spx_stat (*spx_counted)
/* From now on they are at this place (spx_stat_place), and at one that outlives the memory file
 * (spx_stat_keep), with all that was counted. */
SPX_HIDDEN void spx_stat_place(spx_counters *at);
SPX_HIDDEN void spx_stat_keep(void);

/* Grows with all that this process does for MPI: as long as it is the same, the process is in none
 * of its calls, or sleeps in one. The agent adds up the same (shm/pulse.go). */
static inline uint64_t spx_stat_moves(void)
{
  return spx_stat.sent + spx_stat.received + spx_stat.collectives + spx_stat.sleeps +
         spx_stat.idle_ns + spx_stat.polls;
}

/* A new communicator counts. */
SPX_HIDDEN void spx_stat_comm(spx_comm *c);
/* The communicator with this context, if it is a lightweight duplicate (SPX_C_LITE_DUP) that has
 * not been freed; else NULL. */
SPX_HIDDEN spx_comm *spx_lite_dup_with_context(uint64_t ctx);
/* The handles of the communicators that standbys inherit (spx_comm.parent), at most max; returns
 * how many there are. */
SPX_HIDDEN uint32_t spx_comms_of(uint32_t *handles, uint32_t max);
/* A communicator with this error handler (NULL: one that standbys inherit) that is not revoked,
 * marked as revoked now; one more reference. NULL: there is none. */
SPX_HIDDEN spx_comm *spx_mark_revoked(const spx_errh *handler);
/* A communicator goes. */
SPX_HIDDEN void spx_stat_gone(spx_comm *c);

/* ---- events: what happened, reported to the tool later, with no lock held ---- */
typedef enum {
  SPX_EV_UNEXPECTED = 0,
  SPX_EV_FAILURE,
  SPX_EV_GET,
  SPX_EV_CHOSEN,
  SPX_EVENTS
} spx_event_kind;
#define SPX_EVENT_WORDS 4
typedef struct {
  spx_event_kind kind;
  int64_t at; /* ns, CLOCK_MONOTONIC */
  int64_t word[SPX_EVENT_WORDS];
} spx_event;
SPX_HIDDEN extern uint32_t spx_events_wanted;   /* bit of each kind that a tool subscribes to */
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

/* ---- traces (abi/trace.c) ---- Callbacks for every message; NULL: no trace. number: of the
 * message, between the two processes; cast: of a multicast. Called with spx_lock held. */
typedef struct spx_tracer {
  /* before the receiver can see it */
  void (*sent)(uint32_t peer, uint64_t ctx, int tag, uint64_t bytes, uint32_t number, bool cast);
  void (*got)(const spx_request *r, uint64_t bytes, uint32_t number, bool cast);
  void (*died)(uint32_t peer);
} spx_tracer;
SPX_HIDDEN extern const spx_tracer *spx_tracer_now;
#endif
