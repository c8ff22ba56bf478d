/* dp.h - what the files of the data plane share among themselves. All functions here are called
 * with spx_lock held.
 *
 *   dataplane.c  attaches and detaches all of these
 *   segment.c    maps the memory file, settings
 *   handles.c    objects
 *   place.c      memory files, and the file of each peer
 *   ring.c       channels and rings: records
 *   match.c      posted receives and unexpected messages
 *   p2p.c        starting sends and receives
 *   deliver.c    handling of an arriving record
 *   get.c        large messages: get, or two-copy stream
 *   far.c        reading another process's memory
 *   copy.c       copies past the caches
 *   into.h       when those are faster
 *   wait.c       progress, waiting
 *   request.c    what all requests have in common
 *   bsend.c      buffered sends
 *   fail.c       deaths, revocation, control messages
 *   peers.c      processes that come and go; files of other jobs
 *   load.c       foreign load on our processors
 *   idle.h       how long to poll before sleeping
 *   lock.c       the lock, with MPI_THREAD_MULTIPLE
 *   net.c        records over sockets
 *   net_relay.c, net_close.c  fewer sockets than pairs
 *   mcast.c      messages to sets of processes
 *   diag.c       what this process waits for, published for diagnosis */
#ifndef SPX_DP_H
#define SPX_DP_H
#include <string.h>
#include <sys/types.h>
#include "into.h"
#include "mcast.h"
#include "net.h"
#include "origin.h"
#include "peers.h"
#include "place.h"
#include "record.h"
#include "ring.h"
#include <time.h>
#include "settings.h"
#include "spx.h"
#include "stat.h"
#include "transport.h"
#if __has_include("mpi-ext.h")
#include "mpi-ext.h"
#endif

/* ---- counting ---- */
/* Counts a message of n bytes that c has sent. */
static inline void spx_count_sent(const spx_comm *c, uint64_t n)
{
  spx_counts_of *k = &((spx_comm *)(uintptr_t)c)->counts;
  k->sent++;
  k->sent_bytes += n;
  spx_stat.sent++;
  spx_stat.sent_bytes += n;
}

/* The processor on which a process that we wake is to run, while this is set (under the lock): the
 * kernel's choice; another one than this thread's; spread evenly (spx_load_deal). */
typedef enum { SPX_RING_ANYWHERE, SPX_RING_AWAY, SPX_RING_EVENLY } spx_ring_where;
SPX_HIDDEN extern spx_ring_where spx_ring_to;
static inline void spx_bell_if_sleeping(spx_proc *p, uint32_t i)
{
  if (SPX_UNLIKELY(__atomic_load_n(&p->sleeping, __ATOMIC_RELAXED))) spx_ring_bell(i);
}

/* memmove by loops of this library, for sizes from SPX_COPY_MIN on: copy.c. */
SPX_HIDDEN void spx_copy_wide(void *to, const void *from, size_t n);

/* memmove. */
static inline void spx_copy(void *to, const void *from, size_t n)
{
  if (n >= spx_set.copy_min)
    spx_copy_wide(to, from, n);
  else
    memmove(to, from, n);
}

/* memcpy for the sizes of short messages, without a call. */
static inline void spx_copy_short(void *to, const void *from, uint64_t n)
{
  if (n == 8)
    memcpy(to, from, 8);
  else if (n <= 32) {
    const char *f = from;
    char *t = to;
    if (n >= 16) {
      char a[16], b[16];
      memcpy(a, f, 16);
      memcpy(b, f + n - 16, 16);
      memcpy(t, a, 16);
      memcpy(t + n - 16, b, 16);
    } else if (n >= 4) {
      uint64_t h = n >= 8 ? 8 : 4;
      char a[8], b[8];
      if (h == 8) {
        memcpy(a, f, 8);
        memcpy(b, f + n - 8, 8);
        memcpy(t, a, 8);
        memcpy(t + n - 8, b, 8);
      } else {
        memcpy(a, f, 4);
        memcpy(b, f + n - 4, 4);
        memcpy(t, a, 4);
        memcpy(t + n - 4, b, 4);
      }
    } else
      for (uint64_t i = 0; i < n; i++) t[i] = f[i];
  } else
    memcpy(to, from, n);
}

/* ---- copy.c ---- */
/* memcpy to memory that will not be read soon. */
SPX_HIDDEN void spx_copy_past_cache(void *to, const void *from, size_t n);
/* memcpy of at least SPX_APART_MIN bytes, of a message of so many, to memory that another process
 * reads: past the caches where that takes far less time. What it has taken, if it was timed and no
 * trial: ns; else 0. */
SPX_HIDDEN uint64_t spx_copy_into(spx_into *into, void *to, const void *from, size_t n,
                                  uint64_t message);
/* Bytes of the last-level cache for each of so many processes of this host. */
SPX_HIDDEN uint64_t spx_cache_part(uint64_t users);

/* ---- match.c ---- */
/* A message that has arrived and matches no posted receive. */
enum { SPX_BY_EXACT = 0, SPX_BY_SRC, SPX_BY_TAG, SPX_BY_CTX, SPX_BY_COUNT };
typedef struct spx_unex {
  struct {
    struct spx_unex *next, *prev;
  } link[SPX_BY_COUNT];
  uint64_t ctx;
  int32_t src, tag;
  uint32_t proc, seq;
  uint16_t kind; /* spx_rec_kind: EAGER, EAGER_SYNC, RTS, MCAST, MCAST_RTS */
  /* the class of its block (spare.h), or that it is of the pool of short ones */
  uint16_t spare;
  uint32_t cost;       /* credit to give back */
  uint64_t bytes;      /* of the message */
  uint32_t index, gen; /* the sender's descriptor */
  uint64_t addr, type;
  spx_request *self; /* our own send that waits, or NULL */
  /* of a message that is kept (replay_long.c); a matching probe has taken it out */
  bool word, held;
  uint8_t data[];
} spx_unex;
SPX_HIDDEN extern uint64_t spx_unex_count;
SPX_HIDDEN extern uint64_t spx_posted_count;   /* receives that wait for their messages */
SPX_HIDDEN extern uint64_t spx_inbound_posted; /* of those: for messages of other clusters */
/* pollers that have to read the clock: no thread sleeps for long */
SPX_HIDDEN extern uint32_t spx_restless;
/* I/O processes send to a cluster in the context that its MPI_COMM_WORLD had first; it has another
 * one when a standby has taken a rank over. 0: it has not. */
SPX_HIDDEN extern uint64_t spx_inbound_from, spx_inbound_to;
static inline uint64_t spx_inbound(uint64_t ctx, int32_t src)
{
  if (SPX_LIKELY(!spx_is_origin(src)) || !spx_inbound_to || ctx - spx_inbound_from >= SPX_CTX_STEP)
    return ctx;
  return spx_inbound_to + (ctx - spx_inbound_from);
}
SPX_HIDDEN void spx_match_reset(void);
SPX_HIDDEN void spx_post(spx_request *r);
SPX_HIDDEN void spx_unpost(spx_request *r);
/* The posted receive that this message belongs to, taken out; or NULL. */
SPX_HIDDEN spx_request *spx_match_posted(uint64_t ctx, int32_t src, int32_t tag);
/* The oldest unexpected message for this receive (src, tag may be wildcards), left in; or NULL. */
SPX_HIDDEN spx_unex *spx_match_unexpected(uint64_t ctx, int32_t src, int32_t tag);
SPX_HIDDEN spx_unex *spx_unex_new(uint64_t payload); /* NULL: no memory */
SPX_HIDDEN void spx_unex_add(spx_unex *e);
SPX_HIDDEN void spx_unex_remove(spx_unex *e);
SPX_HIDDEN void spx_unex_free(spx_unex *e);
/* No message has come for a while: what was kept for them goes back to malloc. */
SPX_HIDDEN void spx_unex_rest(void);
/* Calls fn for each; fn may take the given one out. */
SPX_HIDDEN void spx_each_posted(void (*fn)(spx_request *, void *), void *arg);
SPX_HIDDEN void spx_each_unexpected(void (*fn)(spx_unex *, void *), void *arg);

/* ---- deliver.c ---- */
/* Handles one record; false: no memory, leave it where it is. */
SPX_HIDDEN bool spx_deliver(uint32_t peer, spx_rx *rx, const spx_rec *rec, uint32_t kind);
/* Completes or starts the receive r from the message e, which is out of the queues; frees e. */
SPX_HIDDEN void spx_take(spx_request *r, spx_unex *e);
/* Puts payload bytes into the receive r: all of a message of n bytes. */
SPX_HIDDEN void spx_receive_whole(spx_request *r, const void *data, uint64_t n);
/* The receive r has matched a message of n bytes, or a multicast. */
SPX_HIDDEN void spx_found(spx_request *r, int32_t src, int32_t tag, uint32_t peer, uint64_t n,
                          uint32_t number, bool cast);
/* Counts it, and sets the lengths of r; returns how many bytes its buffer takes. */
SPX_HIDDEN uint64_t spx_accept(spx_request *r, uint64_t n);
/* Drops an unexpected message that will not be received. */
SPX_HIDDEN void spx_unex_drop(spx_unex *e);

/* ---- p2p.c ---- */
enum {
  SPX_RF_HOLDS = 32u /* has references on its communicator and type */,
  SPX_RF_BLOCKING = 64u /* on the caller's stack */,
  SPX_RF_AWAITED = 128u /* a thread sleeps until it is complete */,
  SPX_RF_PASS = 256u /* half of a message that is forwarded while it arrives: pass.c */,
  SPX_RF_PARTS = 512u /* send: requested in parts */,
  SPX_RF_MATCHED = 1024u /* receive: of a message that a probe had matched */,
  SPX_RF_FURTHER = 2048u /* the data may go over further streams: net_streams.c */,
  SPX_RF_KEPT =
      4096u /* send: announced, and complete when it was accepted where it goes: replay_long.c */,
  SPX_RF_WORD = 8192u /* receive: of such a message */,
  SPX_RF_HANDED = 16384u /* send: the kernel may still read the buffer: net_zero.c */,
  SPX_RF_OVER = 32768u /* and is complete as soon as it does not, with the error that it has */
};
/* Writes a send whose turn it is; false: no room now. Completes it when it can, also with an
 * error. */
SPX_HIDDEN bool spx_send_try(spx_request *r);
/* Puts a filled-in request on its way. Errors complete it. */
SPX_HIDDEN void spx_send_start(spx_request *r);
SPX_HIDDEN void spx_recv_start(spx_request *r);
/* Applies the receiver's answer to MPI_Cancel to the send r. */
SPX_HIDDEN void spx_cancel_answer(spx_request *r, bool forgotten);
/* A copy between two buffers of this process; the number of bytes. */
SPX_HIDDEN uint64_t spx_local_copy(const spx_request *from, spx_request *to);
/* Bytes that the buffer of a receive can take. */
static inline uint64_t spx_capacity(const spx_request *r)
{
  return (uint64_t)(r->count * r->type->size);
}
static inline bool spx_is_done(spx_request *r)
{
  return atomic_load_explicit(&r->done, memory_order_acquire) != 0;
}

/* ---- get.c ---- */
SPX_HIDDEN void spx_get_attach(void);
/* Gives r a descriptor: its index and generation; false: no memory. */
SPX_HIDDEN bool spx_id_new(spx_request *r, uint32_t *index, uint32_t *gen);
/* Whether cts requests the stream that the send r has begun. */
static inline bool spx_is_asked_by(const spx_request *r, const spx_rec_cts *cts)
{
  return r->out.to.index == cts->rx_index && r->out.to.gen == cts->rx_gen;
}
SPX_HIDDEN spx_request *spx_id_find(uint32_t index, uint32_t gen);
SPX_HIDDEN void spx_id_free(uint32_t index);
/* Frees the descriptor that r has, if any. */
SPX_HIDDEN void spx_id_drop(spx_request *r);
SPX_HIDDEN bool spx_id_shared(uint32_t index); /* the descriptor has a word in the memory file */
SPX_HIDDEN void spx_each_id(void (*fn)(spx_request *, void *), void *arg);
/* Fetches the message of an RTS into the matched receive r: by get, or by requesting DATA. */
SPX_HIDDEN void spx_fetch(spx_request *r, uint32_t peer, const spx_rec_rts *rts);
/* Fills in the announcement of the send r, of n bytes, for its receiver (p2p.c), and gives r a
 * descriptor. false: no memory. */
SPX_HIDDEN bool spx_announce(spx_request *r, uint64_t n, spx_rec_rts *rts);
/* The same, but requests DATA only if the sender's memory can not be read. */
SPX_HIDDEN void spx_fetch_now(spx_request *r, uint32_t peer, const spx_rec_rts *rts);
SPX_HIDDEN void spx_stream_start(spx_request *r, const spx_rec_cts *cts, int32_t ask);
/* One that pauses flows on, if it may. */
SPX_HIDDEN int spx_stream_resume(spx_request *r);
/* All of the announced send r is with its receiver. */
SPX_HIDDEN void spx_send_fetched(spx_request *r);
SPX_HIDDEN void spx_stream_data(uint32_t peer, const spx_rec *rec);
/* The receive with this descriptor, if a stream comes for it; else NULL. */
SPX_HIDDEN spx_request *spx_stream_to(uint32_t index, uint32_t gen);
/* Receives that have requested DATA and have received none yet. spx_get_impatient, called when
 * there are some, gets those that have waited long enough; at_once: all, since the caller is about
 * to sleep. */
SPX_HIDDEN extern spx_request *spx_asked;
SPX_HIDDEN int spx_get_impatient(bool at_once);
/* The receive r, which may be one of those, will not complete by DATA. */
SPX_HIDDEN void spx_asked_forget(spx_request *r);

/* ---- what SPX_CHECK=1 sends between hosts (bodies/check_coll.c); NULL: it is not on ---- */
SPX_HIDDEN extern void (*spx_check_arrived)(uint32_t peer, const spx_rec *rec);

/* ---- bsend.c ---- */
/* Copies a buffered send into the attached buffer and sends from there; completes r. */
SPX_HIDDEN void spx_bsend_start(spx_request *r);
/* The request that sends for the buffered send r, which is complete; NULL when that is complete
 * too. */
SPX_HIDDEN spx_request *spx_bsend_sender(const spx_request *r);

/* Of a clock that is never set. */
static inline uint64_t spx_now_ns(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* A clock that is cheap to read: of the processor where there is one, else ns. */
static inline uint64_t spx_cycles(void)
{
#ifdef __x86_64__
  return __builtin_ia32_rdtsc();
#else
  return spx_now_ns();
#endif
}

/* ---- wait.c ---- */
SPX_HIDDEN int spx_poll(bool all); /* one round of progress; all: poll every sender */
/* Called when the agent has published a death; the number of things that happened. Set at
 * attach. */
SPX_HIDDEN extern int (*spx_on_deaths)(void);
SPX_HIDDEN void spx_idle_attach(void);
/* One step of waiting after an empty round: spin, yield or park. bell: read before the caller
 * tested its condition. */
typedef struct {
  uint32_t empty;       /* rounds */
  uint32_t spent;       /* their weight: idle.h */
  bool looks;           /* the thread is counted among those that look for messages: wait.c */
  uint32_t visits;      /* of waiting threads, when this one last thought of sleeping */
  uint64_t looked;      /* ns: the last reading of the clock; 0: none since something happened */
  uint64_t since;       /* ns: when it first thought of sleeping; 0: it has not */
  spx_request *request; /* the request waited for; NULL: any event */
} spx_idle;
SPX_HIDDEN void spx_idle_step(spx_idle *w, uint32_t bell);
static inline void spx_idle_again(spx_idle *w) /* something has happened */
{
  w->empty = w->spent = 0;
  w->looked = 0;
}
SPX_HIDDEN bool spx_idle_parks(const spx_idle *w); /* the next step will park */
/* Work that must be done with no lock held: the failure hook, requests freed before they were
 * complete. */
enum {
  SPX_DUE_HOOK = 1,
  SPX_DUE_REAP = 2,
  SPX_DUE_PLAN = 4 /* runs of plans that call user functions: plan.c */,
  SPX_DUE_EVENTS = 8 /* events to report to tools */,
  SPX_DUE_TAKEOVER = 16 /* processes have died, and standbys may take their places: replay.h */
};
SPX_HIDDEN extern void (*spx_plan_due)(void), (*spx_takeover_due)(void);
SPX_HIDDEN extern int spx_due;
SPX_HIDDEN void spx_run_due(void);
SPX_HIDDEN extern uint64_t spx_events; /* written under the lock, read without */
/* threads that sleep until anything happens; under the lock */
SPX_HIDDEN extern int spx_event_sleepers;
static inline void spx_happened(int n)
{
  __atomic_store_n(&spx_events, __atomic_load_n(&spx_events, __ATOMIC_RELAXED) + (uint64_t)n,
                   __ATOMIC_RELAXED);
  if (SPX_UNLIKELY(spx_event_sleepers && n)) spx_ring_self();
}

/* ---- request.c ---- */
/* Takes a request that was freed before it completed and whose finish has to be called, or NULL. If
 * more are left, the next one is due (SPX_DUE_REAP): one at a time, since its finish may call a
 * function of the program that leaves by longjmp. */
SPX_HIDDEN spx_request *spx_take_freed(void);
/* Finishes and releases it. No lock is held. */
SPX_HIDDEN void spx_drop_freed(spx_request *r);

/* ---- lock.c: spx_lock, with MPI_THREAD_MULTIPLE ---- */
SPX_HIDDEN bool spx_lock_is_mine(void);
/* Whether other threads wait for the lock. */
SPX_HIDDEN bool spx_lock_wanted(void);
/* Releases the lock however often it is held; returns what spx_lock_return needs. pass: the first
 * waiting thread gets it now. */
SPX_HIDDEN int spx_lock_leave(bool pass);
SPX_HIDDEN void spx_lock_return(int depth);

SPX_HIDDEN extern uint32_t spx_ranks_here; /* processes of the job that live on this host */

/* ---- load.c ---- */
/* The thread was off its processor until now: did processes outside this job run there? now: ns of
 * CLOCK_MONOTONIC. */
SPX_HIDDEN bool spx_load_foreign(uint64_t now);
/* Leaves a processor that another process of this job uses too, if there is one for each. */
SPX_HIDDEN void spx_load_spread(uint64_t now);
/* The same where ranks outnumber processors: leaves one that has two ranks more than another. */
SPX_HIDDEN void spx_load_level(uint64_t now);
/* The processors that a process may use, as the kernel has them. */
typedef struct {
  uint64_t words[16];
} spx_load_place;
/* Keeps a process that sleeps from this thread's processor, where it would run at once, and in this
 * thread's place, or from those that have their part of spx_load_deal, until spx_load_let_go.
 * False: it may come anywhere. */
SPX_HIDDEN bool spx_load_place_at(uint32_t peer, spx_ring_where where, spx_load_place *was);
/* n processes that may sleep will be woken up, evenly (spx_ring_to), for something that each has to
 * do, and this one, too. */
SPX_HIDDEN void spx_load_deal(uint32_t n);
/* This process is about to sleep: it publishes on which processor. */
SPX_HIDDEN void spx_load_note(void);
SPX_HIDDEN void spx_load_let_go(uint32_t peer, const spx_load_place *was);
/* Requests short time slices from the kernel for this thread, or the usual ones. */
SPX_HIDDEN void spx_load_slice(bool is_short);

/* ---- fail.c ---- */
SPX_HIDDEN bool spx_ctrl_piece(uint32_t peer, spx_rx *rx, const spx_rec *rec);
/* The error of an operation on c with process peer (SPX_NO_PEER: any source) that can not even
 * start; 0: none. */
#define SPX_NO_PEER UINT32_MAX
SPX_HIDDEN int spx_comm_error(const spx_comm *c, uint32_t ctx_kind, uint32_t peer);
/* Of systems of clusters: a send that its receiver's death would end, and that is no part of
 * anything here any more. True: it goes on elsewhere, later. */
SPX_HIDDEN extern bool (*spx_send_parks)(spx_request *r);
/* Request states (spx_request.state): what a send or receive waits for. */
enum {
  SPX_S_NONE = 0,
  SPX_S_QUEUED, /* send: room */
  SPX_S_SENT,   /* send: ACK, DONE or CTS */
  SPX_S_STREAM, /* send: flows as DATA */
  /* send: waits for the request of its next part or, if forwarded while it arrives, for more
   * data */
  SPX_S_PAUSED,
  SPX_S_SELF,   /* send to ourselves: its receive */
  SPX_S_POSTED, /* receive: a message */
  SPX_S_DATA,   /* receive: DATA */
  SPX_S_ASKED,  /* receive: the first DATA, or to get the message itself */
  SPX_S_PARKED, /* send to other clusters: an I/O process */
  SPX_S_KEPT,   /* the same: to be accepted where it goes (replay.c) */
  SPX_S_EAGER,  /* send: complete; r->out.number names the record (for MPI_Cancel) */
  SPX_S_RECALL  /* send: was complete, MPI_Cancel has requested that the receiver drop it */
};
#endif
