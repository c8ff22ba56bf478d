/* stream_number.h - over how many streams the long messages of a pair go.
 * docs/decisions/streams.md.
 *
 * Decides only: the state of the sockets, and the time, are arguments. Where a round trip is short
 * one stream carries the data, and nothing is tried. Else the rate of acknowledged bytes is
 * measured with the present number of streams and with twice as many, which are kept if the rate
 * has grown by a clear margin. A stream that was opened meanwhile may not be the reason, since a
 * young one becomes faster by itself: unless the sockets waited for their windows, the smaller
 * number is measured once more. Then the number rests, the longer the more often a trial was in
 * vain, and is tried again: with more, and whether fewer would do. */
#ifndef SPX_STREAM_NUMBER_H
#define SPX_STREAM_NUMBER_H
#include <stdbool.h>
#include <stdint.h>

enum {
  SPX_NUMBER_NEAR = 1000,       /* us: a shorter round trip needs one stream */
  SPX_NUMBER_SETTLE = 6,        /* round trips after a change, of which nothing is concluded */
  SPX_NUMBER_MEASURE = 10,      /* round trips that are measured */
  SPX_NUMBER_GAP = 8,           /* round trips without a look: nothing was to be sent in between */
  SPX_NUMBER_LEAST_GAP = 20000, /* us: and at least this */
  SPX_NUMBER_LEAST = 50000,     /* us that are measured, at least */
  SPX_NUMBER_WAIT = 100,        /* round trips that streams are waited for */
  SPX_NUMBER_TRIP = 1000000,    /* us: a longer round trip counts as this */
  SPX_NUMBER_GAIN = 15,         /* percent: what more streams must give */
  SPX_NUMBER_LOSS = 7,          /* percent: what fewer may cost */
};
#define SPX_NUMBER_FIRST_REST 5000000000ull /* ns */
#define SPX_NUMBER_MOST_REST  300000000000ull

/* The state of a pair's sockets since they were last sampled. */
typedef struct {
  uint64_t acked; /* bytes that the other end has acknowledged */
  uint64_t busy,
      /* us in which the connection had something under way; of these: it waited for a window or its
         buffer */
      held;
  uint32_t near, trip; /* us: the shortest round trip, 0: not known; the usual one */
  uint32_t open;       /* streams, the connection with them */
  uint32_t moving;     /* of these have part of a message */
} spx_streams_seen;

typedef enum {
  SPX_NUMBER_RESTS,
  SPX_NUMBER_BASE /* with those that there are */,
  SPX_NUMBER_MORE /* with twice as many */,
  SPX_NUMBER_AGAIN /* with the smaller number once more */,
  SPX_NUMBER_FEWER /* with half of them */
} spx_number_phase;

typedef struct {
  uint8_t phase;
  bool down;               /* the next rest is followed by a look whether fewer would do */
  bool held;               /* measured: the sockets waited for their windows */
  uint32_t use;            /* streams that messages go over now; 0: not begun, as 1 */
  uint32_t kept;           /* that is final */
  uint32_t tried;          /* the last number of SPX_NUMBER_MORE */
  uint64_t seen_at;        /* ns: the last look */
  uint64_t settle, waited; /* us: left; of the wait for streams to come or to be done */
  uint64_t us, bytes, busy, held_us;
  uint64_t base, more;  /* bytes in a second */
  uint64_t until, rest; /* ns */
} spx_number;

static inline uint32_t spx_number_use(const spx_number *s) { return s->use ? s->use : 1; }

/* So many may stay open. */
static inline uint32_t spx_number_keeps(const spx_number *s)
{
  uint32_t use = spx_number_use(s);
  return s->phase == SPX_NUMBER_AGAIN ? s->tried : s->kept > use ? s->kept : use;
}

/* Whether the sockets are to be sampled. Called when long messages are written. */
static inline bool spx_number_looks(const spx_number *s, uint64_t now) { return now >= s->until; }

static inline void spx_number_enter(spx_number *s, spx_number_phase phase, uint32_t use,
                                    uint64_t trip)
{
  s->phase = (uint8_t)phase;
  s->use = use;
  s->settle = SPX_NUMBER_SETTLE * trip;
  s->waited = s->us = s->bytes = s->busy = s->held_us = 0;
}

static inline void spx_number_rest(spx_number *s, uint64_t now, bool changed)
{
  s->phase = SPX_NUMBER_RESTS;
  s->use = s->kept;
  s->rest = changed || !s->rest                  ? SPX_NUMBER_FIRST_REST
            : s->rest < SPX_NUMBER_MOST_REST / 2 ? 2 * s->rest
                                                 : SPX_NUMBER_MOST_REST;
  s->until = now + s->rest;
}

/* Chooses the next step once the number to keep, and its rate, are known. */
static inline void spx_number_on(spx_number *s, uint64_t now, uint64_t trip, uint32_t most,
                                 bool changed)
{
  uint32_t twice = 2 * s->kept < most ? 2 * s->kept : most;
  if (s->down && s->kept > 1)
    spx_number_enter(s, SPX_NUMBER_FEWER, s->kept / 2, trip);
  else if (!s->down && twice > s->kept)
    spx_number_enter(s, SPX_NUMBER_MORE, twice, trip);
  else {
    s->down = !s->down;
    spx_number_rest(s, now, changed);
  }
}

/* The rate of a phase is known. */
static inline void spx_number_judge(spx_number *s, uint64_t now, uint64_t trip, uint32_t most)
{
  uint64_t rate = s->bytes * 1000000 / s->us;
  bool held = 2 * s->held_us >= s->busy && s->busy;
  uint32_t use = s->use;
  switch (s->phase) {
  case SPX_NUMBER_BASE:
    s->base = rate;
    s->held = held;
    spx_number_on(s, now, trip, most, false);
    return;
  case SPX_NUMBER_MORE:
    s->more = rate;
    s->tried = use;
    if (100 * rate >= (100 + SPX_NUMBER_GAIN) * s->base && !s->held) {
      spx_number_enter(s, SPX_NUMBER_AGAIN, s->kept, trip);
      return;
    }
    break;
  case SPX_NUMBER_AGAIN:
    if (rate > s->base) s->base = rate;
    held = s->held;
    use = s->tried;
    break;
  default:
    if (100 * rate >= (100 - SPX_NUMBER_LOSS) * s->base) {
      s->kept = use;
      s->base = rate;
      s->rest = 0;
      spx_number_on(s, now, trip, most, true);
    } else {
      s->down = false;
      spx_number_rest(s, now, false);
    }
    return;
  }
  if (100 * s->more >= (100 + SPX_NUMBER_GAIN) * s->base) {
    s->kept = use;
    s->base = s->more;
    s->held = held;
    s->rest = 0;
    spx_number_on(s, now, trip, most, true);
  } else {
    s->down = s->kept > 1;
    spx_number_rest(s, now, false);
  }
}

/* Processes a sample at `now`; at most so many streams. */
static inline void spx_number_saw(spx_number *s, uint64_t now, const spx_streams_seen *seen,
                                  uint32_t most)
{
  uint64_t trip = seen->trip < SPX_NUMBER_TRIP ? seen->trip : SPX_NUMBER_TRIP,
           us = (now - s->seen_at) / 1000;
  uint64_t gap =
      SPX_NUMBER_GAP * trip > SPX_NUMBER_LEAST_GAP ? SPX_NUMBER_GAP * trip : SPX_NUMBER_LEAST_GAP;
  s->seen_at = now;
  s->until = now + 500 * trip;
  if (!s->kept) s->kept = 1;
  if (s->kept > most) s->kept = most;
  if (seen->near < SPX_NUMBER_NEAR || trip == 0 || most < 2) {
    bool changed = s->kept > 1;
    s->kept = 1;
    s->down = false;
    spx_number_rest(s, now, changed);
    return;
  }
  if (s->phase == SPX_NUMBER_RESTS) {
    spx_number_enter(s, SPX_NUMBER_BASE, s->kept, trip);
    return;
  }
  if (us > gap) return;
  if (seen->open < s->use || seen->moving > s->use) {
    s->waited += us;
    if (s->waited < SPX_NUMBER_WAIT * trip) return;
    s->waited = 0;
    if (s->phase == SPX_NUMBER_BASE && seen->open < s->use) s->kept = seen->open;
    if (seen->open < s->use && seen->open >= s->kept &&
        (s->phase == SPX_NUMBER_BASE || seen->open > s->kept))
      s->use = seen->open; /* there are no more */
    else
      spx_number_rest(s, now, false);
    return;
  }
  if (s->settle) {
    s->settle -= us < s->settle ? us : s->settle;
    return;
  }
  s->us += us;
  s->bytes += seen->acked;
  s->busy += seen->busy;
  s->held_us += seen->held;
  if (s->us >= SPX_NUMBER_MEASURE * trip && s->us >= SPX_NUMBER_LEAST)
    spx_number_judge(s, now, trip, most);
}
#endif
