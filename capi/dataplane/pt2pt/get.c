/* clang-format off: the table below */
/* get.c - messages that are announced (RTS) and fetched by their receiver.
 *
 * The sender's descriptor is an index and a generation; descriptors below SPX_SDESC_PER_PROC also
 * have a word in the memory file: generation << 1 | 1 while the buffer may be read. The receiver
 * copies with process_vm_readv, then looks at the word and at the sender's state again: only if
 * both are unchanged was the copy good. DONE completes the send. Where reading is forbidden, or the
 * data lie in short pieces (far.c), the receiver answers CTS and the sender streams DATA records
 * through the ring. It also does so up to SPX_STREAM_MAX, which depends on how many processes share
 * a processor: two copies through a ring that stays in the cache are faster than one by the kernel,
 * which looks up every page (up to SPX_STREAM_BOTH while this process has an announced message of
 * its own: then both have to take turns for it anyway; but where the two processors share no cache,
 * one copy by the kernel is less than the two that each of them makes then). But a sender that
 * computes does not stream: if nothing comes for a while, the receiver goes and gets the message
 * after all. The descriptor's word says which of them was first.
 *
 * The states of a send and of a receive (SPX_S_*), and what moves them. "Complete" frees the
 * descriptor and retracts its word.
 *
 *   send     event                                     next     action
 *   NONE     short, with credit and room               EAGER    EAGER; complete
 *            long, or without credit                   SENT     descriptor; RTS
 *            synchronous and short                     SENT     descriptor; EAGER_SYNC
 *            no room in the pair                       QUEUED   behind what waits there (pair.c)
 *            to this process, no receive posted        SELF     unexpected; or a copy: EAGER
 *   QUEUED   there is room                             as from NONE
 *   SENT     ACK; DONE                                 NONE     complete
 *            CTS, the receiver has not read it all     STREAM   retract the word; from byte 0 on
 *            CTS, it has                               SENT     none: DONE follows
 *            CANCELLED, forgotten                      NONE     as cancelled; "too late": stays
 *   STREAM   room in the pair                          STREAM   DATA, LONG; count out.at up
 *            all before out.end written, the last      NONE     complete
 *            all before out.end written, not the last  PAUSED   none (requested in parts)
 *            DONE: the receiver did not wait           NONE     out of the pair's queue; complete
 *   STREAM, PAUSED   CTS, a further part               STREAM   raise out.end
 *   EAGER    MPI_Cancel                                RECALL   descriptor; CANCEL; pending again
 *   RECALL   CANCELLED                                 NONE     complete, as cancelled or as it was
 *   KEPT, PARKED: by clusters (replay_long.c; bodies/system.c)
 *
 *   receive  event                                     next     action
 *   POSTED   EAGER                                     NONE     copy; complete
 *            RTS, the memory is to be read at once     NONE     read; DONE; complete
 *            RTS, it cannot be read                    DATA     descriptor; CTS
 *            RTS, a stream is faster                   ASKED    descriptor; CTS; set asked.due
 *            RTS, the sender is dead                   DATA     descriptor: fails when published
 *   ASKED    DATA                                      DATA     as DATA there
 *            asked.due, read while the word is live    NONE     retract the word; DONE; complete
 *            asked.due, the sender was first           DATA     none: its DATA come
 *   DATA     DATA, LONG                                DATA     store; count in.at up
 *            DATA, the last                            NONE     complete
 *            ABORTED: it was never sent (pass.c)       POSTED   as if nothing had come
 *
 *   all      the peer dies, the communicator is        NONE     out of all queues; complete with
 *            revoked, or the peer has left (fail.c)             the error, RECALL as it was
 */
/* clang-format on */
#define _GNU_SOURCE
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <time.h>
#include "dp.h"
#include "far.h"
#include "get.h"
#include "rma.h"
#include "ways.h"

#define CHUNK       (4u << 20) /* bytes between looks at the sender's word */
#define PATIENCE_NS 30000      /* how long a sender may take to begin its stream */
#define LOOK_EVERY  16         /* rounds of progress between looks at the clock */
#define REMEMBERED  8          /* messages for which it is remembered that one met one of ours */

typedef struct {
  spx_request *r; /* NULL: free */
  uint32_t gen, next;
  bool sends;
} descriptor;
static descriptor *ids;
static uint32_t ids_n, ids_used, ids_free; /* ids_free: index + 1 */
static uint32_t sending;                   /* of them: announced messages of this process */
SPX_TLS int64_t spx_next_send;

static uint64_t *shared_word(uint32_t proc, uint32_t index)
{
  uint32_t there;
  spx_file *f = spx_place(proc, &there);
  return (uint64_t *)(f->base + spx_head(f)->sdesc_off + there * spx_head(f)->sdesc_row) + index;
}

static uint64_t live_word(uint32_t gen) { return (uint64_t)gen << 1 | 1; }

void spx_get_attach(void)
{
  free(ids);
  ids = NULL;
  ids_n = ids_used = ids_free = sending = 0;
}

/* The buffer may not be read any more, but the descriptor stays. */
static void retract(uint32_t index)
{
  if (spx_id_shared(index))
    __atomic_store_n(shared_word(spx_me, index), (uint64_t)ids[index].gen << 1, __ATOMIC_SEQ_CST);
}

bool spx_get_first_to_end(uint32_t proc, uint32_t index, uint32_t gen)
{
  uint64_t live = live_word(gen);
  return !spx_id_shared(index) ||
         __atomic_compare_exchange_n(shared_word(proc, index), &live, (uint64_t)gen << 1, false,
                                     __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

bool spx_id_shared(uint32_t index) { return index < SPX_SDESC_PER_PROC; }

bool spx_id_new(spx_request *r, uint32_t *index, uint32_t *gen)
{
  if (!ids_free && ids_used == ids_n) {
    uint32_t n = ids_n ? ids_n * 2 : 64;
    descriptor *more = realloc(ids, n * sizeof *more);
    if (!more) return false;
    memset(more + ids_n, 0, (n - ids_n) * sizeof *more);
    for (uint32_t i = ids_n; i < n; i++) more[i].gen = (uint32_t)spx_count_from(32, 2);
    ids = more;
    ids_n = n;
  }
  uint32_t i = ids_free ? ids_free - 1 : ids_used++;
  if (ids_free) ids_free = ids[i].next;
  descriptor *d = &ids[i];
  d->r = r;
  d->gen++;
  d->sends = r->kind == SPX_R_SEND;
  sending += d->sends;
  if (spx_id_shared(i))
    __atomic_store_n(shared_word(spx_me, i), live_word(d->gen), __ATOMIC_RELEASE);
  r->id_slot = i + 1;
  r->id_gen = d->gen;
  *index = i;
  *gen = d->gen;
  return true;
}

spx_request *spx_id_find(uint32_t index, uint32_t gen)
{
  return index < ids_used && ids[index].gen == gen ? ids[index].r : NULL;
}

void spx_id_free(uint32_t index)
{
  descriptor *d = &ids[index];
  retract(index);
  sending -= d->sends;
  d->r = NULL;
  d->next = ids_free;
  ids_free = index + 1;
}

static void stop_waiting_for_data(spx_request *r);

void spx_id_drop(spx_request *r)
{
  if (!r->id_slot) return;
  if (r->state == SPX_S_ASKED) stop_waiting_for_data(r);
  spx_id_free(r->id_slot - 1);
  r->id_slot = 0;
}

void spx_each_id(void (*fn)(spx_request *, void *), void *arg)
{
  for (uint32_t i = 0; i < ids_used; i++)
    if (ids[i].r) fn(ids[i].r, arg);
}

/* ---- get ---- */

typedef enum {
  GET_DONE,
  GET_REFUSED /* not possible here: stream instead */,
  GET_DEAD,
  GET_RETRACTED
} get_result;

/* May and can we read that process? Its nonce proves that the pid means the same process here as
 * there. */
bool spx_may_read(uint32_t peer)
{
  spx_rx *rx = &spx_rxs[peer];
  if (rx->cma == 0) {
    spx_proc *p = spx_home(peer);
    uint64_t addr = __atomic_load_n(&p->cma_nonce_addr, __ATOMIC_ACQUIRE), nonce = 0;
    if (!spx_set.cma)
      rx->cma = 2;
    else if (addr == 0)
      return false; /* not published yet: ask again next time */
    else {
      pid_t pid = spx_pid_of(peer);
      rx->cma =
          pid && spx_read_exactly(pid, &nonce, addr, sizeof nonce) && nonce == p->cma_nonce ? 1 : 2;
    }
  }
  return rx->cma == 1;
}

static bool can_get(uint32_t peer, const spx_rec_rts *rts)
{
  return (rts->addr || rts->type) && spx_id_shared(rts->index) && spx_may_read(peer);
}

static get_result still_valid(uint32_t peer, const spx_rec_rts *rts, uint32_t incarnation)
{
  spx_proc *p = spx_proc_of(peer);
  if (__atomic_load_n(&p->incarnation, __ATOMIC_ACQUIRE) != incarnation ||
      __atomic_load_n(&p->agent_state, __ATOMIC_ACQUIRE) == SPX_AGENT_DEAD)
    return GET_DEAD;
  return __atomic_load_n(shared_word(peer, rts->index), __ATOMIC_ACQUIRE) == live_word(rts->gen)
             ? GET_DONE
             : GET_RETRACTED;
}

static get_result read_all(spx_request *r, uint32_t peer, const spx_rec_rts *rts, spx_far *far)
{
  uint32_t incarnation = __atomic_load_n(&spx_proc_of(peer)->incarnation, __ATOMIC_ACQUIRE);
  int err = spx_far_open(far, spx_pid_of(peer), rts->addr, rts->type);
  get_result state = rts->type ? still_valid(peer, rts, incarnation) : GET_DONE;
  uint64_t n = (uint64_t)r->bytes;
  for (uint64_t at = 0, done = 0; state == GET_DONE && err == 0 && at < n; at += done) {
    err = spx_far_read(far, r, at, n - at < CHUNK ? n - at : CHUNK, &done);
    state = still_valid(peer, rts, incarnation);
  }
  if (state != GET_DONE || err == 0) return state;
  if (err == ESRCH) return GET_DEAD;
  if (err == EPERM) spx_rxs[peer].cma = 2;
  return GET_REFUSED; /* memory that the kernel can not read for us; the sender itself can */
}

/* How long messages of an exchange go where ranks share processors. */
static spx_ways *ways(void) { return (spx_ways *)spx_segment->way_cost; }
_Static_assert(offsetof(spx_seg, way_gets) - offsetof(spx_seg, way_cost) ==
                       offsetof(spx_ways, gets) &&
                   offsetof(spx_seg, way_tried) - offsetof(spx_seg, way_cost) ==
                       offsetof(spx_ways, tried),
               "spx_ways");

/* How messages in one direction go where each rank has a processor, by their length: where short
 * ones are in the caches, long ones are not, and the kernel's copy has a cost of its own, however
 * short it is. NULL: by length alone, or they are sent at once. */
static spx_ways *ways_alone(uint64_t bytes)
{
  enum { KINDS = 4, SHORT = 64 << 10, TIMES = 8 };
  _Static_assert(sizeof((spx_seg *)0)->way_alone == KINDS * sizeof(spx_ways), "spx_ways");
  uint32_t kind = 0;
  if (spx_crowded || spx_set.stream_max != SPX_STREAM_ALONE || bytes <= spx_set.eager_max)
    return NULL;
  for (uint64_t most = SHORT; kind < KINDS - 1 && bytes > most; most *= TIMES) kind++;
  return (spx_ways *)spx_segment->way_alone + kind;
}

spx_ways *spx_get_timed(const spx_request *r, uint64_t bytes)
{
  if (!(r->type->flags & SPX_T_CONTIG)) return NULL;
  if (!spx_crowded) return ways_alone(bytes);
  return bytes >= spx_set.apart_get ? ways() : NULL;
}

static get_result get(spx_request *r, uint32_t peer, const spx_rec_rts *rts)
{
  if (!can_get(peer, rts)) return GET_REFUSED;
  spx_ways *timed = rts->type ? NULL : spx_get_timed(r, (uint64_t)r->bytes);
  uint64_t start = timed ? spx_now_ns() : 0;
  spx_far far;
  get_result result = read_all(r, peer, rts, &far);
  spx_far_close(&far);
  if (timed && result == GET_DONE)
    spx_ways_took(timed, SPX_WAY_GET, (uint64_t)r->bytes, spx_now_ns() - start);
  return result;
}

/* Has the sender's end been reported here already? It is not reported again: what waits for it now
 * would wait for ever. */
static bool known_gone(uint32_t peer)
{
  return spx_places[peer].dead ||
         __atomic_load_n(&spx_proc_of(peer)->agent_state, __ATOMIC_ACQUIRE) == SPX_AGENT_EXITED;
}

/* The sender is gone, but its death is not published yet: the receive fails when the agent
 * publishes it, so that no error is returned before the failure that it reports can be queried. */
static void await_death(spx_request *r, uint32_t peer)
{
  uint32_t index, gen;
  if (known_gone(peer) || !spx_id_new(r, &index, &gen))
    spx_complete(r, MPIX_ERR_PROC_FAILED);
  else {
    r->in = (spx_coming){0};
    r->state = SPX_S_DATA;
  }
}

/* May a message come over several streams? Those of multicasts are forwarded while they arrive,
 * from their beginning. */
static int32_t may_be_further(const spx_request *r, uint32_t peer)
{
  bool may = spx_set.streams != 1 && spx_rxs[peer].conn && r->kind == SPX_R_RECV &&
             !(r->flags & SPX_RF_PASS);
  return may && !spx_net_sealed ? SPX_CTS_FURTHER : 0;
}

/* False if the receive is over instead; it may be freed then. */
static bool ask_for_data(spx_request *r, uint32_t peer, const spx_rec_rts *rts)
{
  spx_rec_cts cts = {.index = rts->index, .gen = rts->gen, .bytes = (uint64_t)r->bytes};
  r->in = (spx_coming){0};
  /* the announcement came before the sender died, and the receive is posted only now */
  bool gone = known_gone(peer);
  if (gone || !spx_id_new(r, &cts.rx_index, &cts.rx_gen)) {
    spx_complete(r, gone ? MPIX_ERR_PROC_FAILED : MPI_ERR_NO_MEM);
    return false;
  }
  r->state = SPX_S_DATA;
  int32_t how = r->comm ? may_be_further(r, peer) : SPX_CTS_RELAY; /* relays have no communicator */
  r->flags =
      how == SPX_CTS_FURTHER ? r->flags | SPX_RF_FURTHER : r->flags & ~(uint32_t)SPX_RF_FURTHER;
  spx_tx_put(peer, SPX_REC_CTS, (spx_rec_words){.cts.how = how}, &cts, sizeof cts);
  return true;
}

static void finish_get(spx_request *r, uint32_t peer, const spx_rec_rts *rts)
{
  spx_rec_id id = {.index = rts->index, .gen = rts->gen};
  spx_tx_put(peer, SPX_REC_DONE, SPX_REC_PLAIN, &id, sizeof id);
  spx_stat.gets++;
  spx_stat.got_bytes += (uint64_t)r->bytes;
  spx_note(SPX_EV_GET, peer, r->bytes, 0, 0);
  spx_complete(r, r->error);
}

/* ---- asked for DATA, and ready to get it ourselves ---- */

spx_request *spx_asked;
static uint32_t asked_rounds;

static void wait_for_data(spx_request *r, const spx_rec_rts *rts)
{
  r->state = SPX_S_ASKED;
  r->asked = (spx_asking){.due = spx_now_ns() + PATIENCE_NS,
                          .addr = rts->addr,
                          .type = rts->type,
                          .of = {rts->index, rts->gen},
                          .pieces = spx_rxs[r->peer].pieces};
  r->next = spx_asked;
  spx_asked = r;
}

static void stop_waiting_for_data(spx_request *r)
{
  spx_request **p = &spx_asked;
  while (*p != r) p = &(*p)->next;
  *p = r->next;
  r->in = (spx_coming){0};
  r->state = SPX_S_DATA;
}

void spx_asked_forget(spx_request *r)
{
  if (r->state == SPX_S_ASKED) stop_waiting_for_data(r);
}

int spx_get_impatient(bool at_once)
{
  if (!at_once && ++asked_rounds % LOOK_EVERY) return 0;
  uint64_t now = at_once ? UINT64_MAX : spx_now_ns();
  for (spx_request *r = spx_asked, *next; r; r = next) {
    next = r->next;
    if (r->asked.due > now) continue;
    if (!at_once &&
        /* it streams something else to us: this one's turn will come */
        r->asked.pieces != spx_rxs[r->peer].pieces) {
      r->asked.pieces = spx_rxs[r->peer].pieces;
      r->asked.due = now + PATIENCE_NS;
      continue;
    }
    spx_rec_rts rts = {.index = r->asked.of.index,
                       .gen = r->asked.of.gen,
                       .addr = r->asked.addr,
                       .type = r->asked.type};
    uint32_t peer = r->peer;
    stop_waiting_for_data(r);
    if (get(r, peer, &rts) != GET_DONE || !spx_get_first_to_end(peer, rts.index, rts.gen))
      continue;     /* it has begun to stream, or is dead: both are reported in other ways */
    spx_id_drop(r); /* no DATA will be sent to it */
    r->state = SPX_S_NONE;
    finish_get(r, peer, &rts);
    return 1; /* the list may have changed */
  }
  return 0;
}

/* The same of a message in one direction. Trials are seldom, since where the kernel copies slowly
 * one of them takes as long as several messages; and one of a few messages looks at the clock. */
static bool is_better_alone(const spx_request *r, uint64_t longest)
{
  enum { LOOKS = 16, SELDOM = 8 };
  static uint32_t messages;
  spx_ways *w = spx_crowded ? NULL : spx_get_timed(r, (uint64_t)r->bytes);
  if (!w) return false;
  if (++messages % LOOKS) return __atomic_load_n(&w->gets, __ATOMIC_RELAXED);
  return spx_ways_next(w, spx_now_ns(), SELDOM * longest, SPX_WAYS_AT_ONCE);
}

/* Is a long message got although it might be streamed, because both processes send? One of them may
 * complete its part before the other begins: so what counts is whether a few of the last messages
 * overlapped. Where ranks share processors, the copies are compared (ways.h). Where they do not,
 * messages are got if the processors share no cache, as the times of copies show (into.h); every so
 * often a stream is requested nevertheless, and both sides see whether this still holds. */
static bool is_better_got(const spx_request *r, uint32_t peer, bool both)
{
  spx_tx *tx = &spx_txs[peer];
  if (both)
    tx->met = REMEMBERED;
  else if (tx->met > 0)
    tx->met--;
  uint64_t longest = 1000 * spx_set.apart_trial;
  if (!tx->met) return is_better_alone(r, longest);
  if (spx_crowded) return spx_ways_next(ways(), spx_now_ns(), longest, SPX_WAYS_IN_TURN);
  if (!spx_into_apart(&tx->into) && !tx->apart_there)
    /* what one of them sees counts for both: a mixture takes longer than either way */
    return false;
  uint64_t now = spx_now_ns();
  if (now - tx->asked < longest) return true;
  tx->asked = now;
  return false;
}

void spx_fetch(spx_request *r, uint32_t peer, const spx_rec_rts *rts)
{
  /* A CMA read of many segments is slower than packing; use it only if the sender does not
   * progress. A sender with a message of its own from this process progresses anyway. */
  bool both = sending || spx_next_send > (int64_t)spx_set.eager_max;
  bool stream =
      (uint64_t)r->bytes <= (both ? spx_set.stream_both : spx_set.stream_max) || rts->type;
  if (stream && !rts->type && (uint64_t)r->bytes >= spx_set.apart_get &&
      is_better_got(r, peer, both))
    stream = false;
  if ((uint64_t)r->bytes > spx_set.eager_max && stream && can_get(peer, rts)) {
    if (ask_for_data(r, peer, rts)) wait_for_data(r, rts);
    return;
  }
  spx_fetch_now(r, peer, rts);
}

void spx_fetch_now(spx_request *r, uint32_t peer, const spx_rec_rts *rts)
{
  get_result result = r->bytes == 0 ? GET_DONE : get(r, peer, rts);
  switch (result) {
  case GET_REFUSED: ask_for_data(r, peer, rts); break;
  case GET_DEAD: await_death(r, peer); break;
  case GET_RETRACTED: spx_complete(r, MPIX_ERR_REVOKED); break;
  case GET_DONE: finish_get(r, peer, rts); break;
  }
}
