/* spx.h - the contract between the data plane (C), the shims (C) and the engine (Go).
 *
 * Go plans, C runs: Go creates every object and compiles datatypes and collectives into plans;
 * between entering and leaving an MPI call, what happens on shared memory is done in C. All objects
 * here live outside the Go heap. Locking: with spx_mt != 0 (MPI_THREAD_MULTIPLE) every public
 * function of the data plane takes spx_lock itself; it is never held while user code runs or while
 * Go is entered.
 */
#ifndef SPX_H
#define SPX_H
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "layout.h"
#include "mpi.h"
#include "objects.h"

/* ---- entering and leaving (boundary/runtime.c) ----
 * A generated shim checks its arguments by kind, then either calls a C body  int spx_c_NAME(...) or
 * fills a frame and enters Go by spx_go, which blocks asynchronous signals around the entry,
 * carries out call-outs (user functions that Go asks for) with no Go frame below and no lock held,
 * and raises the error, if any, through the error handler. */
#define SPX_MAX_ARGS 14
typedef union {
  int64_t i;
  uint64_t u;
  void *p;
  double d;
} spx_word;
typedef struct spx_frame {
  uint32_t fn; /* SPX_FN_*, see zz_functions.h */
  /* 1: the _c form: count arrays are MPI_Count, displacement arrays MPI_Aint */
  uint32_t wide;
  spx_word a[SPX_MAX_ARGS]; /* the arguments in the order of the C prototype: scalars widened to 64
                         bit (sign-extended), handles and pointers as they are (never as Go
                         pointers: MPI_IN_PLACE is 1) */
  int32_t err;              /* out: MPI error code */
  /* out: spx_kind of the object whose handler is called; 0: MPI_COMM_SELF's */
  uint32_t err_kind;
  void *err_handle; /* out: its handle */
  /* call-out asked for by Go; cont != 0 then, and the shim comes back with the same frame */
  uint32_t co;   /* SPX_CO_* */
  uint32_t cont; /* Go's continuation; 0: a new call */
  void *co_fn;
  spx_word co_a[8]; /* arguments for co_fn */
  int64_t co_ret;   /* what co_fn returned */
} spx_frame;
/* What a call-out calls (frame.co), and the arguments in frame.co_a; capi/callout.go has the same
 * for Go. */
enum {
  SPX_CO_COPY_ATTR =
      /* copy function: handle, keyval, extra_state, value in; co_a[6] gets the value, co_a[7] the
         flag */
  1,
  SPX_CO_DELETE_ATTR,     /* delete function: handle, keyval, value, extra_state */
  SPX_CO_GREQ_QUERY,      /* extra_state, status */
  SPX_CO_GREQ_FREE,       /* extra_state */
  SPX_CO_GREQ_CANCEL,     /* extra_state, complete */
  SPX_CO_DATAREP_EXTENT,  /* datatype, extra_state in; co_a[6] gets the extent */
  SPX_CO_DATAREP_CONVERT, /* userbuf, datatype, count, filebuf, position, extra_state, wide */
  SPX_CO_INTERNAL /* int64_t f(spx_word *co_a), a function of libspx's own: a wait that Go does not
                     sit below */
};
/* Entries that are not an MPI function: frame.fn is one of these (capi/internal.go). Their bodies
 * are found in the map internals; spx_go_internal raises nothing, but returns the error code and
 * leaves the detail text. */
enum {
  SPX_IN_FIRST = 0x10000,
  SPX_IN_ALONE = SPX_IN_FIRST,
  SPX_IN_START,
  /* after SPX_IN_START, when other processes of a system of clusters may die: a standby waits for a
     rank, all for the clusters that are to be complete */
  SPX_IN_ARRIVE,
  SPX_IN_STOP,
  SPX_IN_STOPPED,
  /* a0: gets how many connections have bytes in the hands of the engine (SPX_TLS=1) */
  SPX_IN_UNSETTLED,
  SPX_IN_SESSION_LEVEL,
  SPX_IN_FT /* deaths and control messages, capi/ft.go */,
  SPX_IN_PLAN /* a0: const spx_plan_key *, a1: spx_comm *, a2: gets the spx_plan * */,
  SPX_IN_TYPE_COMMIT, /* a0: MPI_Datatype * */
  SPX_IN_TYPE_FREE,   /* a0: MPI_Datatype * */
  SPX_IN_CONTEXTS,    /* a0: how many, a1: gets the first */
  SPX_IN_WIN_RANKS,   /* a0: MPI_Win, a1: MPI_Group, a2: gets its ranks there, a3: their number */
  SPX_IN_CHECK, /* a0, a1: const spx_diag_check * of this process and of another, a2: name of the
                   communicator: do they fit? All 0: says what is left */
  SPX_IN_SYSTEM_PLAN,   /* how IOPs are chosen may have changed */
  SPX_IN_SYSTEM_REFUSE, /* why a send (a0: 1) or a receive has no peer: refuse (system.c) */
  SPX_IN_EARLY,         /* a0: const char *: boundary/once.h */
  SPX_IN_TAKEOVER_DUE /* processes of the cluster have died, others meet, or another one is to keep
                         the copy (SPX_DUE_TAKEOVER) */
};
SPX_HIDDEN int spx_go_internal(spx_frame *f);
/* Every entry into Go is counted here (per process): tests and the bench read it. */
SPX_HIDDEN extern _Atomic uint64_t spx_go_entries;
SPX_HIDDEN int spx_go(spx_frame *f);

/* Raises CLASS on an object through its error handler: returns the code that the MPI function has
 * to return (or does not return: abort, or a longjmp of the user's). fmt describes the error:
 * argument, value, what to do. The text is kept per thread and is part of what
 * MPI_Error_string(code) gives. Error codes equal error classes, but for those made by
 * MPI_Add_error_code. Never call it with spx_lock held. handle may be invalid or null: then
 * MPI_COMM_SELF's handler. */
SPX_HIDDEN int spx_raise(spx_kind k, void *handle, int code, const char *function, const char *fmt,
                         ...) __attribute__((format(printf, 5, 6), cold));
/* Sets the detail text of this thread without raising; for bodies whose caller raises. */
SPX_HIDDEN void spx_detail(const char *fmt, ...) __attribute__((format(printf, 1, 2), cold));
/* This thread's detail text, "" when none: for  spx_raise(k, h, code, fn, "%s",
 * spx_detail_text()). */
SPX_HIDDEN const char *spx_detail_text(void);

/* Fatal: prints job, rank, call and the text once, then ends the job as MPI_Abort does. */
SPX_HIDDEN _Noreturn void spx_fatal(int code, const char *fmt, ...)
    __attribute__((format(printf, 2, 3), cold));

/* ---- process state (boundary/runtime.c) ---- */
enum { SPX_BEFORE_INIT = 0, SPX_INITIALIZED = 1, SPX_FINALIZED = 2 };
SPX_HIDDEN extern _Atomic int spx_state;
SPX_HIDDEN extern int spx_mt; /* 1: MPI_THREAD_MULTIPLE was given */
/* 1 in a child that was forked after the library was loaded */
SPX_HIDDEN extern int spx_forked;
SPX_HIDDEN extern SPX_TLS uint32_t spx_fn; /* function that this thread is in */
/* Not 0 when a shim must not go on as it is: SPX_ASIDE_*. */
SPX_HIDDEN extern int spx_aside;
enum { SPX_ASIDE_FORKED = 1, SPX_ASIDE_TRACED = 2, SPX_ASIDE_CHECKED = 4, SPX_ASIDE_REPLAY = 8 };
SPX_HIDDEN extern const char *const spx_fn_name[]; /* zz_functions.c */
/* the same: 1 << SPX_K_* of what it may give to the user */
SPX_HIDDEN extern const uint16_t spx_fn_makes[];
/* the same, SPX_DOES_*: reports what has arrived or is complete without waiting; requests a
 * message; does nothing with messages; sends, and does the same whatever has arrived; waits for a
 * message; sends and receives; is about a partitioned operation */
SPX_HIDDEN extern const uint8_t spx_fn_does[];
enum { SPX_DOES_OBSERVE = 1, SPX_DOES_ASK = 2, SPX_DOES_LOCAL = 4, SPX_DOES_SEND = 8 };
enum { SPX_DOES_AWAIT = 16, SPX_DOES_EXCHANGE = 32, SPX_DOES_PARTS = 64 };

/* ---- data plane ----
 * Functions return an MPI error code (class) and leave a detail text by spx_detail; callers raise.
 * Buffers and counts have been checked. Ranks may be MPI_PROC_NULL and, for receives,
 * MPI_ANY_SOURCE. */
/* Maps and adopts the job's memory file; me is this process's index. Returns 0 or an errno. */
SPX_HIDDEN int spx_dp_attach(int memfd, uint32_t me);
SPX_HIDDEN void spx_dp_detach(void);
SPX_HIDDEN extern spx_seg *spx_segment;
SPX_HIDDEN extern uint32_t spx_me;
static inline spx_proc *spx_proc_of(uint32_t i)
{
  return (spx_proc *)((char *)spx_segment + spx_segment->proc_off + i * spx_segment->proc_stride);
}

SPX_HIDDEN int spx_send(const void *buf, int64_t count, spx_type *t, int dest, int tag, spx_comm *c,
                        uint32_t ctx_kind, spx_send_mode m);
SPX_HIDDEN int spx_recv(void *buf, int64_t count, spx_type *t, int src, int tag, spx_comm *c,
                        uint32_t ctx_kind, MPI_Status *st);
/* Nonblocking: *r gets a referenced request, complete or not. flags: SPX_RF_INTERNAL for requests
 * without a user handle's semantics. */
SPX_HIDDEN int spx_isend(const void *buf, int64_t count, spx_type *t, int dest, int tag,
                         spx_comm *c, uint32_t ctx_kind, spx_send_mode m, uint32_t flags,
                         spx_request **r);
/* Bytes of the message that this thread sends right after the receive that it starts now; 0: it is
 * not known to. */
SPX_HIDDEN extern SPX_TLS int64_t spx_next_send;
SPX_HIDDEN int spx_irecv(void *buf, int64_t count, spx_type *t, int src, int tag, spx_comm *c,
                         uint32_t ctx_kind, uint32_t flags, spx_request **r);
/* A request for a persistent send or receive, not active. Takes what spx_isend and spx_irecv take
 * (m is ignored for receives). */
SPX_HIDDEN int spx_persistent(spx_req_kind kind, void *buf, int64_t count, spx_type *t, int rank,
                              int tag, spx_comm *c, uint32_t ctx_kind, spx_send_mode m,
                              spx_request **r);
/* Starts a prepared (persistent) request: sends and receives here, other kinds by r->start. */
SPX_HIDDEN int spx_start(spx_request *r);
/* MPI_Iprobe, MPI_Improbe: *flag, and the status when found. matched: NULL, or gets the message
 * taken out of the queue (for spx_mrecv). */
SPX_HIDDEN int spx_iprobe(int src, int tag, spx_comm *c, uint32_t ctx_kind, int *flag,
                          MPI_Status *st, void **matched);
/* As spx_iprobe, but waits until there is one. */
SPX_HIDDEN int spx_probe(int src, int tag, spx_comm *c, uint32_t ctx_kind, MPI_Status *st,
                         void **matched);
/* Receives a message that spx_iprobe or spx_probe took out. */
SPX_HIDDEN int spx_imrecv(void *buf, int64_t count, spx_type *t, void *matched, spx_comm *c,
                          uint32_t flags, spx_request **r);
/* Multicasts: docs/multicast.md. The members of the set receive as from a send. */
typedef struct {
  const void *buf;
  int64_t count;
  spx_type *type;
  spx_rankset *set; /* of ranks of comm */
  int tag;
  spx_comm *comm;
  bool sync; /* complete when all members have received it */
} spx_mcast_args;
SPX_HIDDEN int spx_mcast(const spx_mcast_args *a);
/* A request for one, to be started with spx_start. flags: SPX_RF_PERSISTENT or 0. */
SPX_HIDDEN int spx_mcast_init(const spx_mcast_args *a, uint32_t flags, spx_request **r);
/* MPI_Cancel for sends and receives: marks; the request completes, cancelled or not. */
SPX_HIDDEN int spx_cancel(spx_request *r);
/* The detail text of a request that failed, for the caller to raise. */
SPX_HIDDEN void spx_request_detail(const spx_request *r);
/* Polls everything once: channels, pending sends, running collectives. Returns the number of
 * events. */
SPX_HIDDEN int spx_progress(void);
/* The same, for callers that do not wait: it never yields. */
SPX_HIDDEN int spx_poll_brief(void);
/* Waits (spin, yield, park) until r->done. Returns r->error. Comes back also when the operation
 * failed, its communicator was revoked, or its peer died: those complete the request with the ULFM
 * class. */
SPX_HIDDEN int spx_wait(spx_request *r);
/* 1: r is a wildcard receive on a communicator with a failed member that was not acknowledged;
 * spx_wait would not wait for it. */
SPX_HIDDEN int spx_wait_blocked(const spx_request *r);
/* Waits until one event has happened since ticket was read (or deadline_ns of CLOCK_MONOTONIC
 * passed, 0: none). Read the ticket, test your condition, wait, repeat: no event is lost. */
SPX_HIDDEN uint32_t spx_ticket(void);
SPX_HIDDEN void spx_wait_event(uint32_t ticket, uint64_t deadline_ns);

/* A callback of an event in which this thread is was left by longjmp if its frame lies no lower
 * than this one. */
SPX_HIDDEN void spx_due_left(const void *frame);

/* The user's calls that wait begin and end with these (wait.c, "turns"): what the program does
 * after a call of a kind is learnt. */
typedef enum {
  SPX_TURN_OTHER,
  SPX_TURN_WAIT,
  SPX_TURN_WAITALL,
  SPX_TURN_RECV,
  SPX_TURN_SENDRECV,
  SPX_TURNS
} spx_turn;
SPX_HIDDEN extern bool spx_crowded; /* processes outnumber processors */
SPX_HIDDEN void spx_turn_taken(void);
SPX_HIDDEN void spx_turn_over(spx_turn kind);
static inline void spx_turn_begin(void)
{
  if (SPX_UNLIKELY(spx_crowded)) spx_turn_taken();
}
static inline void spx_turn_end(spx_turn kind)
{
  if (SPX_UNLIKELY(spx_crowded)) spx_turn_over(kind);
}
/* Registers a function that spx_progress calls while it is registered (collectives in progress). */
typedef struct spx_poller {
  int (*poll)(struct spx_poller *);
  struct spx_poller *next, **prev;
} spx_poller;
SPX_HIDDEN void spx_poller_add(spx_poller *p);
SPX_HIDDEN void spx_poller_del(spx_poller *p);
/* Completes a request: status fields must be set; done is stored last; frees it when
 * SPX_RF_FREED. */
SPX_HIDDEN void spx_complete(spx_request *r, int error);
/* Drops the handle's reference of a collected request (not persistent), as MPI_Wait does; the
 * handle is invalid then. */
SPX_HIDDEN void spx_request_free(spx_request *r);

/* ---- failures (dataplane/pt2pt/fail.c, place.c) ----
 * All of these are for the failure handling in ft/ and capi/. */
/* 1 when the agent has published the death of process i and it has been noticed here. */
SPX_HIDDEN int spx_proc_dead(uint32_t i);
/* 1 when process i will receive nothing any more: dead, after MPI_Finalize, or (of another host,
 * whose word of itself is not to be seen here) when the agent has published its end. */
SPX_HIDDEN int spx_proc_left(uint32_t i);
/* It is dead, or has called MPI_Abort and will be in a moment: where it is to be replaced, it has
 * not left. */
SPX_HIDDEN int spx_proc_dies(uint32_t i);
/* Process peer has left, and no message of it is in transit: senders to it, as I/O processes may
 * be, are notified that their messages will not be received. */
SPX_HIDDEN void spx_sends_in_vain(uint32_t peer);
/* Places that are those of dead processes: fewer when another process gets one. */
SPX_HIDDEN extern uint32_t spx_ndead;
/* Deaths noted so far: it only grows, so what it was can be compared with what it is. */
SPX_HIDDEN extern uint32_t spx_deaths;
/* Not 0 when a process has died, or a communicator was revoked: before that no caller need check
 * further. */
SPX_HIDDEN extern uint32_t spx_harm;
/* What is true after a failure alone, where every message passes: at most 10 instructions a message
 * (tests/boundary counts them). bench/faultfree measures what they cost by a library without
 * them. */
#ifdef SPX_WITHOUT_FAILURES
#define SPX_FAILED(x) 0
#else
#define SPX_FAILED(x) SPX_UNLIKELY(x)
#endif
/* Number of dead members of c (local and remote). */
SPX_HIDDEN int spx_comm_failures(const spx_comm *c);
/* Call after setting c->revoked: pending operations of c (but those of SPX_CTX_FT) complete with
 * MPIX_ERR_REVOKED. */
SPX_HIDDEN void spx_comm_revoked(spx_comm *c);
/* Call when c is freed: messages for it that were not received are dropped. */
SPX_HIDDEN void spx_comm_dropped(uint64_t ctx);
/* MPI_COMM_WORLD has another context from now on: what I/O processes send, and have sent, belongs
 * to that. */
SPX_HIDDEN void spx_inbound_move(uint64_t from, uint64_t to);
/* A short message to process i outside all communicators; it waits in a queue if there is no room.
 * Lost if i is dead. At most SPX_CTRL_MAX bytes. */
#define SPX_CTRL_MAX (1u << 20)
SPX_HIDDEN int spx_ctrl_send(uint32_t i, const void *bytes, uint32_t n);
/* Takes the oldest control message that has arrived: returns its size and *from, or -1 when there
 * is none. When the size is more than max, nothing is taken: come again with more. */
SPX_HIDDEN int64_t spx_ctrl_recv(void *buf, uint32_t max, uint32_t *from);
/* Called with no lock held, out of any call that makes progress or waits, when control messages
 * have arrived or a death has been noticed. It may enter Go, complete requests and send control
 * messages. It is not entered again from below itself. */
SPX_HIDDEN extern void (*spx_ft_hook)(void);
/* Communicators that have a part in the failure protocols here. */
SPX_HIDDEN extern uint32_t spx_ft_parts;
/* Control messages for communicators that this process does not have yet: 0: there are none; 1:
 * some; 2: some, and it has a new communicator since the hook looked. */
SPX_HIDDEN extern int spx_ctrl_early;
/* The hook will be called if a message has come before its communicator: this process has a new
 * one, which can be found by its context. */
SPX_HIDDEN void spx_ctrl_expected(void);

/* Wakes process i if it sleeps. */
SPX_HIDDEN void spx_ring_bell(uint32_t i);
/* Wakes this process's own waiters (from another thread). */
SPX_HIDDEN void spx_ring_self(void);
/* Status words: source, tag, error (SPX_KEEP_ERROR: left as it is), and the private ones (bytes,
 * cancelled). st may be MPI_STATUS_IGNORE. */
#define SPX_KEEP_ERROR (-1)
SPX_HIDDEN void spx_status_set(MPI_Status *st, int src, int tag, int error, int64_t bytes,
                               int cancelled);
static inline int64_t spx_status_bytes(const MPI_Status *st)
{
  return (int64_t)((uint64_t)(uint32_t)st->MPI_internal[0] | (uint64_t)(uint32_t)st->MPI_internal[1]
                                                                 << 32);
}
static inline int spx_status_cancelled(const MPI_Status *st) { return st->MPI_internal[2] & 1; }

/* ---- peers (dataplane/transport/peers.c) ----
 * Processes that come and go. A peer is held as long as a communicator contains it: its index is
 * not given to another process before all have released it. */
SPX_HIDDEN void spx_peer_hold(uint32_t i);
/* A communicator that holds it is about to release it, as soon as all its members are ready to
 * (MPI_Comm_disconnect). */
SPX_HIDDEN void spx_peer_part(uint32_t i);
/* 0 when process i has no communicator any more that leads here, or is about to disconnect the last
 * one. 1 also when it cannot be known: i is on another host. */
SPX_HIDDEN int spx_peer_holds_us(uint32_t i);
/* parted: spx_peer_part was called for it. */
SPX_HIDDEN void spx_peer_release(uint32_t i, int parted);
/* Adopts the memory file of another job, in which this process is the external process number me.
 * It stays. Returns an MPI error code. */
SPX_HIDDEN int spx_file_adopt(int memfd, uint32_t me, uint64_t job);
/* Releases the files of jobs that have ended. Not between spx_file_adopt and spx_peer_place. */
SPX_HIDDEN void spx_files_sweep(void);
/* The head of an adopted file; NULL: there is none of that job. */
SPX_HIDDEN spx_seg *spx_file_of(uint64_t job);
/* The number i in our own file stands for the process there of an adopted file. */
SPX_HIDDEN void spx_peer_place(uint32_t i, uint64_t job, uint32_t there);
/* The number i, in its incarnation life, stands for a process of another job that is reached over
 * the network, and that knows this process as the incarnation our_life of a number in its own job's
 * files. Any thread. */
SPX_HIDDEN void spx_peer_abroad(uint32_t i, uint32_t life, uint32_t our_life);
/* The epoch of what is sent to process i: low bits of this process's incarnation in the files of
 * i's job. */
SPX_HIDDEN uint16_t spx_epoch_at(uint32_t i);
/* Publishes this process's state in all files: SPX_OWNER_*. */
SPX_HIDDEN void spx_publish_owner(uint32_t state);
/* Do this process and i use each other's memory? Both give the same answer, and so do all processes
 * of a group of which each is near all others. A process of a job that talks over the network
 * within a host (SPX_TRANSPORTS=tcp) is near no other one: not even an external process, whose
 * messages come through memory. */
SPX_HIDDEN bool spx_is_near(uint32_t i);
/* 1: i is a process of another job, and this one has met it. */
SPX_HIDDEN int spx_peer_is_far(uint32_t i);

/* ---- packer (dataplane/datatype/pack.c) ----
 * Moves bytes [from, to) of the packed form of count elements of t at buf. Runs at memory speed for
 * vectors. */
SPX_HIDDEN void spx_pack(const void *buf, int64_t count, const spx_type *t, int64_t from,
                         int64_t to, void *packed);
SPX_HIDDEN void spx_unpack(void *buf, int64_t count, const spx_type *t, int64_t from, int64_t to,
                           const void *packed);
/* Copies n packed bytes, from from_at on, to to_at on of other memory (copy_typed.c). */
SPX_HIDDEN void spx_copy_typed(void *to, int64_t to_count, const spx_type *tt, int64_t to_at,
                               const void *from, int64_t from_count, const spx_type *ft,
                               int64_t from_at, int64_t n);
/* The memory runs behind bytes [from, to) as iovecs, at most max of them; returns how many, *done
 * how many bytes they cover. */
struct iovec;
SPX_HIDDEN int spx_iovecs(const void *buf, int64_t count, const spx_type *t, int64_t from,
                          int64_t to, struct iovec *iov, int max, int64_t *done);
/* The number of basic elements in bytes of the packed form of t (MPI_Get_elements): -1 when the
 * last one is not whole. */
SPX_HIDDEN int64_t spx_type_elements(const spx_type *t, int64_t bytes);
/* The reverse: bytes of the first n basic elements (MPI_Status_set_elements); -1 when 63 bits do
 * not hold them. */
SPX_HIDDEN int64_t spx_type_bytes(const spx_type *t, int64_t n);
/* Frees what the compiled form of t holds: the destructor of SPX_K_TYPE calls it. */
SPX_HIDDEN void spx_type_release(spx_type *t);

/* ---- reductions (dataplane/datatype/reduce.c) ----
 * inout[i] = in[i] op inout[i], as MPI_Reduce_local: 0, MPI_ERR_OP when op is not defined for t.
 * User functions are called with the caller's type handle; they may not longjmp. */
SPX_HIDDEN int spx_reduce(const void *in, void *inout, int64_t count, const spx_type *t,
                          const spx_op *op);
SPX_HIDDEN int spx_op_valid(const spx_op *op, const spx_type *t);

/* The predefined datatypes by number, in the order of the table spx_basics
 * (dataplane/datatype/basic.h). */
#define SPX_BASIC_MAX 128

SPX_HIDDEN void spx_lock_slow(void);
SPX_HIDDEN void spx_unlock_slow(void);
static inline void spx_lock(void)
{
  if (SPX_UNLIKELY(spx_mt)) spx_lock_slow();
}
static inline void spx_unlock(void)
{
  if (SPX_UNLIKELY(spx_mt)) spx_unlock_slow();
}
#endif
