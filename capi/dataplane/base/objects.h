/* objects.h - handles, and the descriptors behind them: what data plane, shims and engine know of a
 * communicator, a datatype, an operation, a request, a message, an error handler, a set of ranks.
 * Windows are in rma.h, and compiled datatypes in pack.h. All of them live outside the Go heap.
 */
#ifndef SPX_OBJECTS_H
#define SPX_OBJECTS_H
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "compiler.h"
#include "mpi.h"

/* ---- handles ----
 * A predefined handle has the value that the standard gives it (< 0x1000). Any other is
 *     kind << 27 | generation << 21 | index        (a positive int: MPI_Comm_toint and Fortran use
 * the same value) so that a freed handle differs from a live one. Objects of a kind lie in one
 * reserved array; the first member of each is spx_obj. */
typedef enum {
  SPX_K_COMM = 1,
  SPX_K_GROUP,
  SPX_K_TYPE,
  SPX_K_OP,
  SPX_K_ERRH,
  SPX_K_REQ,
  SPX_K_MSG,
  SPX_K_INFO,
  SPX_K_WIN,
  SPX_K_FILE,
  SPX_K_SESSION,
  SPX_K_RANKSET,
  SPX_K_CHECKPOINT,
  SPX_K_COUNT
} spx_kind;
#define SPX_H_INDEX_BITS 21
#define SPX_H_GEN_BITS   6

typedef struct spx_obj {
  uint32_t handle;      /* 0: free slot; else the handle's value */
  uint32_t next;        /* free list */
  _Atomic int32_t refs; /* +1 by the handle, +1 by each pending use; the slot is recycled at 0 */
  uint32_t go;          /* index of the Go side's object in its own table, 0: none */
} spx_obj;

SPX_HIDDEN extern spx_obj *spx_predef[SPX_K_COUNT][0x300]; /* by handle value */
SPX_HIDDEN extern char *spx_slab[SPX_K_COUNT];             /* base address of each kind's array */
/* slots of that, less one: a power of two, less one */
SPX_HIDDEN extern uint32_t spx_slab_mask[SPX_K_COUNT];
SPX_HIDDEN extern const uint32_t spx_slab_stride[SPX_K_COUNT];

/* Another thread may be enlarging the array: a thread that has an object's handle has seen the mask
 * that covers it. */
static inline uint32_t spx_slots_mask(spx_kind k)
{
  return __atomic_load_n(&spx_slab_mask[k], __ATOMIC_RELAXED);
}

/* The object behind a handle, or NULL when it is null, of another kind, never made, or freed. */
static inline spx_obj *spx_get(spx_kind k, const void *handle)
{
  uintptr_t v = (uintptr_t)handle;
  if (v < 0x300) return spx_predef[k][v];
  if ((v >> 27) != (uintptr_t)k) return NULL;
  spx_obj *o = (spx_obj *)(spx_slab[k] + (v & spx_slots_mask(k)) * (uintptr_t)spx_slab_stride[k]);
  return SPX_LIKELY(o->handle == (uint32_t)v) ? o : NULL;
}
/* A zeroed object with refs = 1 and a fresh handle, or NULL when 2^21 exist or there is no memory
 * or address space. Thread-safe. */
SPX_HIDDEN spx_obj *spx_new(spx_kind k);
/* The generation of what is first in its slot. */
SPX_HIDDEN extern uint32_t spx_first_generation;
/* Is notified of each new object, if it is not NULL (bodies/check_left.c). It is set once, before
 * MPI is used. */
SPX_HIDDEN extern void (*spx_made_now)(spx_kind k, uint32_t index);
/* Drops a reference. At 0 the kind's destructor runs and the slot is recycled with the next
 * generation. */
SPX_HIDDEN void spx_unref(spx_kind k, spx_obj *o);
/* Makes the handle invalid at once (MPI_X_free), and drops the handle's reference. */
SPX_HIDDEN void spx_retire(spx_kind k, spx_obj *o);
/* Makes the handle that a retired object had valid again, and keeps the object, until spx_unrevive.
 * Returns the handle. */
SPX_HIDDEN uint32_t spx_revive(spx_kind k, spx_obj *o);
SPX_HIDDEN void spx_unrevive(spx_kind k, spx_obj *o);
/* One more reference. */
SPX_HIDDEN void spx_ref(spx_obj *o);
/* Calls fn for every object of a kind that has a handle. No other thread may make or free one
 * meanwhile. */
SPX_HIDDEN void spx_each_handle(spx_kind k, void (*fn)(spx_obj *, void *), void *arg);
/* What has to be freed with an object of a kind, or NULL; set once at start. Called with no handle
 * lock held, but maybe from inside the data plane: it must not enter Go, wait or raise. */
SPX_HIDDEN extern void (*spx_destructor[SPX_K_COUNT])(spx_obj *);
/* Objects whose slot is gone and that had a Go side (o.go != 0): takes one out of the list; 0 when
 * there is none. The engine empties the list when it makes objects. */
SPX_HIDDEN int spx_freed_pop(uint32_t *kind, uint32_t *go);

/* ---- error handlers ---- */
typedef struct spx_errh {
  spx_obj o;
  /* 0 user function, else the value of the predefined handle (ARE_FATAL 321, ABORT 322, RETURN
   * 323) */
  int mode;
  int of; /* SPX_K_COMM, SPX_K_WIN, SPX_K_FILE or SPX_K_SESSION: what fn takes */
  /* handles that the user has from MPI_*_create_errhandler and _get_errhandler and has not freed */
  _Atomic int held;
  void (*fn)(void *handle_ptr, int *code, ...);
} spx_errh;

/* ---- datatypes ---- */
enum {
  SPX_T_CONTIG = 1u /* count elements at buf are count * size bytes at buf */,
  SPX_T_PREDEFINED = 2u,
  SPX_T_COMMITTED = 4u,
  SPX_T_ABSOLUTE = 8u,   /* made of addresses: goes with MPI_BOTTOM */
  SPX_T_COMPILED = 16u,  /* layout and typed are there, committed or not */
  SPX_T_ATTRIBUTES = 32u /* it has had attributes: MPI_Type_free asks the engine */
};
/* below it no data of a program are: what is meant from there on is an address */
#define SPX_LEAST_ADDRESS 65536u
/* dataplane/datatype/pack.h: the compiled form, run by the packer */
typedef struct spx_layout spx_layout;
typedef struct spx_type {
  spx_obj o;
  uint32_t flags;
  uint16_t basic;       /* predefined: SPX_B_*; derived of one basic type only: that one; else 0 */
  uint16_t basic_mixed; /* 1 when several basic types are in it */
  int64_t size;         /* bytes of data */
  int64_t lb, extent, true_lb, true_extent;
  const spx_layout *layout; /* NULL when SPX_T_CONTIG */
  /* several basic types or a pair: the same with the basic type of every run; else NULL */
  const spx_layout *typed;
} spx_type;

/* ---- operations ---- */
typedef struct spx_op {
  spx_obj o;
  int predef; /* value of the predefined handle, or 0 */
  int commute;
  int wide; /* fn is an MPI_User_function_c */
  void *fn;
} spx_op;

/* ---- communicators ---- */
#define SPX_TAG_UB                                                                                 \
  0x3fffffff /* MPI_TAG_UB: the largest tag of the application; the engine uses others in its own  \
                context */
enum {
  SPX_C_INTER = 1u,
  SPX_C_WORLD = 2u,
  SPX_C_SELF = 4u,
  SPX_C_TOPO = 8u,
  SPX_C_FAR = 16u /* with processes of other jobs or hosts: no common memory file */,
  SPX_C_LITE_DUP = 32u /* made by MPI_Comm_dup without the engine, which may not know it yet */,
  SPX_C_HINTS = 64u /* has hints that a duplicate gets */,
  SPX_C_IOP = 128u /* a world in the eyes of an I/O process, which is no member */,
  SPX_C_REPLAY =
      256u /* transparent takeover: its messages travel as frames (dataplane/clusters/replay.h) */,
  SPX_C_APART = 512u /* as SPX_C_FAR, but of the processes that had the ranks first where successors
                        on other hosts repeat the same calls: those take the same ways */
};
/* Context ids are 64 bit and never reused: the creating leader's process number and its counter,
 * times SPX_CTX_STEP. ctx + one of these is what a message carries. */
enum {
  SPX_CTX_P2P = 0,
  SPX_CTX_COLL = 1,
  SPX_CTX_ENGINE = 2 /* the Go engine's own messages */,
  SPX_CTX_FT = 3,
  SPX_CTX_PART = 4 /* partitioned communication: what a sender publishes to its receiver */,
  SPX_CTX_PART_DATA = 5 /* its data */,
  SPX_CTX_SET = 6 /* collectives over sets of ranks */,
  SPX_CTX_STEP = 8
};
typedef struct {
  uint64_t sent, sent_bytes, received, received_bytes;
} spx_counts_of;            /* messages of this process, those of collectives included */
#define SPX_COMM_CHOICES 22 /* kinds of collectives: SPX_COLL_COUNT */
typedef struct spx_comm {
  spx_obj o;
  int32_t rank, size;  /* in the local group */
  int32_t remote_size; /* intercommunicator: size of the remote group; else size */
  uint32_t flags;
  uint64_t ctx; /* not known before an MPI_Comm_idup is complete: 0 */
  /* destination rank -> process index (remote group of an intercommunicator) */
  uint32_t *peer;
  uint32_t *local; /* local rank -> process index; == peer unless SPX_C_INTER */
  /* with a virtual topology (SPX_C_TOPO): number of this process's neighbours */
  int32_t indegree, outdegree;
  _Atomic uint32_t revoked;
  /* acknowledged failures: wildcard receives are allowed again (ULFM) */
  _Atomic uint32_t failed_seen;
  uint32_t coll_seq; /* number of collectives started: their tag (plan_run.h) */
  uint32_t traced;   /* blocking ones that were written down (abi/trace.c) */
  spx_counts_of counts;
  struct spx_comm *counted_next, **counted_prev; /* list of those that count (stat.c) */
  struct spx_errh *errh;
  void *plans; /* cache of compiled collectives, owned by coll.c */
  /* shared memory for collectives, attached on first use (dataplane/coll/share.h) */
  struct spx_share *share;
  /* intercommunicator: a communicator without a handle over the local group, context ctx +
   * SPX_CTX_STEP */
  struct spx_comm *inner;
  struct spx_attrs *attrs; /* values for MPI_Comm_get_attr, owned by bodies/attr.c */
  uint32_t session;        /* handle of the session that its group comes from; 0: the World Model */
  /* behind MPISP_CLUSTER_OUT: the I/O processes, by their number (bodies/system.c) */
  struct spx_comm *outbound;
  /* an outbound channel, or a world of an I/O process: the handle that errors are raised on */
  uint32_t stands_for;
  /* In a cluster with standbys (capi/takeover.go): its parent and its number among the
   * communicators made of that, by which a process that takes a rank over finds it. */
  uint32_t parent,
      /* handle of the communicator that it was made of (0: it is not inherited), and its number
         among that one's */
      birth;
  uint32_t births;    /* communicators made of this one so far */
  uint32_t inherited; /* of them, those that were made before this process had its rank */
  char name[MPI_MAX_OBJECT_NAME];
  /* What was chosen for the last call of each collective: core/coll.Choice, the algorithm in the
   * low byte, the reason in the high one; by spx_coll_kind (bodies/coll_cache.c). Tools look at it
   * at any time. */
  uint16_t chosen[SPX_COMM_CHOICES];
} spx_comm;
SPX_HIDDEN extern spx_comm *spx_world, *spx_self; /* NULL before MPI_Init and after MPI_Finalize */
/* The handle that errors of operations on c are raised on. */
static inline void *spx_comm_handle(const spx_comm *c)
{
  return (void *)(uintptr_t)(SPX_UNLIKELY(c->stands_for) ? c->stands_for : c->o.handle);
}

/* ---- requests ---- */
typedef enum {
  SPX_R_SEND = 1,
  SPX_R_RECV,
  SPX_R_COLL,
  SPX_R_GREQ,
  SPX_R_IDUP,
  SPX_R_PART_SEND,
  SPX_R_PART_RECV,
  SPX_R_MCAST,
  SPX_R_GO /* completed by the engine */
} spx_req_kind;
enum {
  SPX_RF_PERSISTENT = 1u,
  SPX_RF_ACTIVE = 2u,
  SPX_RF_CANCELLED = 4u,
  SPX_RF_FREED = 8u /* MPI_Request_free before completion */,
  SPX_RF_INTERNAL = 16u
};
typedef enum { SPX_M_STANDARD = 0, SPX_M_SYNC, SPX_M_READY, SPX_M_BUFFERED } spx_send_mode;

/* What a send or a receive holds while it is under way: one of the four that follow, by its kind
 * and its state (SPX_S_*: dp.h, and the table in get.c). In another state than those given it means
 * nothing. */
typedef struct {
  uint32_t index, gen;
} spx_name; /* a descriptor of another process */
/* A send, in all its states. Written by p2p.c and get.c, by bsend.c (serial), and by what makes
 * sends of its own: plans, multicasts, clusters. */
typedef struct {
  uint64_t serial; /* MPI_Bsend: the same in the user's request and in the one that sends for it */
  uint64_t at;     /* STREAM, PAUSED: the next byte to be written; the transport counts it up */
  /* STREAM, PAUSED: the byte before which to stop; further streams take from it (net_streams.c) */
  uint64_t end;
  spx_name to;     /* STREAM, PAUSED, KEPT: the receive */
  uint32_t number; /* SENT, EAGER and later: of the record in its pair, for MPI_Cancel and traces */
} spx_sending;
/* A receive that waits for a message: POSTED. Written by match.c. */
typedef struct {
  uint64_t order; /* of posting, among all of this process */
} spx_posted;
/* A receive whose data come: DATA. Written by get.c, by mcast_staging.c (block), by net_streams.c
 * (beside). */
typedef struct {
  uint64_t at;     /* bytes that have come, from the beginning of the message on */
  uint64_t beside; /* SPX_RF_FURTHER: bytes that have come by further streams, from its end on */
  void *block;     /* it is copied out of shared memory: from this block */
} spx_coming;
/* A receive that has asked for DATA and may still read the sender's memory itself: ASKED. Written
 * by get.c. */
typedef struct {
  uint64_t due;        /* ns: when it does so */
  uint64_t addr, type; /* the sender's buffer and datatype, as announced (spx_rec_rts) */
  spx_name of;         /* the send */
  uint32_t pieces;     /* DATA records of the pair when `due` was set */
} spx_asking;
typedef struct spx_request {
  spx_obj o;
  uint16_t kind;
  uint16_t mode; /* spx_send_mode */
  uint32_t flags;
  _Atomic uint32_t done; /* 1 when complete: the last store of the thread that completes it */
  int32_t error;         /* MPI error code of the operation */
  int32_t src, tag;      /* receive: wanted, then found; send: destination and tag */
  int64_t bytes;         /* received (or sent) payload bytes */
  void *buf;
  int64_t count;
  spx_type *type; /* referenced while pending */
  spx_comm *comm; /* referenced while pending */
  uint64_t ctx;
  uint32_t peer;  /* process index */
  uint32_t state; /* protocol state, private to the data plane */
  void *priv;     /* protocol data, private to the data plane, plan run of a collective, ... */
  struct spx_request *next, *prev, *bin_next, *bin_prev; /* queues of the data plane */
  /* its descriptor: index + 1, 0: none; generation (get.c) */
  uint32_t id_slot, id_gen;
  union {
    spx_sending out;
    spx_posted posted;
    spx_coming in;
    spx_asking asked;
  };
  int32_t want_src, want_tag; /* receive: as asked for (src and tag then hold what was found) */
  /* receive: bytes of the message, more than bytes when it was truncated */
  uint64_t full;
  int32_t as; /* send: the source that the message has */
  uint32_t ctx_kind;
  /* Other kinds than SPX_R_SEND and SPX_R_RECV. start: what MPI_Start does with a persistent one.
   * finish: called once, with no lock held, when a complete operation is collected (or, if it was
   * freed before, when it completes); may fill st's fields (spx_status_set) and returns the error
   * code. cancel: what MPI_Cancel does. release: the request's memory goes. Each may be NULL.
   * finish of a generalized request may call user code: it may longjmp. */
  int (*start)(struct spx_request *);
  int (*finish)(struct spx_request *, MPI_Status *st);
  int (*cancel)(struct spx_request *);
  void (*release)(struct spx_request *);
  struct spx_attached
      *attached; /* valid when release is set accordingly: bodies/request_attach.c */
} spx_request;

/* ---- matched messages (MPI_Mprobe) ---- */
typedef struct spx_message {
  spx_obj o;
  void *unexpected;
  spx_comm *comm;
} spx_message;
/* ---- objects that only the engine knows ---- */
typedef struct spx_plain {
  spx_obj o;
  struct spx_errh *errh; /* here also in spx_win */
  uint32_t session;      /* group: handle of the session that it comes from, or 0 */
} spx_plain;             /* group, info, win, file, session */

/* ---- sets of ranks (MPIX_Rankset) ---- */
typedef struct spx_rankset {
  spx_obj o;
  uint64_t ctx; /* of the communicator whose ranks they are */
  uint32_t n;
  int self;        /* this process is one of them */
  uint32_t flags;  /* MPIX_MCAST_* */
  int32_t *ranks;  /* ascending */
  uint32_t *procs; /* the process indices of its members, its own included, ascending */
} spx_rankset;
#endif
