/* plan.h - plans of collective operations: what Go compiles once and C runs.
 *
 * A plan is a flat array of steps (core/coll defines them and proves the schedules). It names no
 * address: buffers, datatypes, counts of v and w forms and the communicator are bound when it is
 * run, so that a cached plan serves every call with the same shape. Owner of a plan: the cache of
 * its communicator (capi/bodies/coll_cache.c) and each run of it. A run is driven by the thread
 * that waits for it (blocking), or by a poller (nonblocking, persistent). MPI-5.0 chapter 6.
 *
 * Failures: a run never stops half-way, since peers wait for its messages. After a peer's death or
 * a revocation it continues with empty messages in place of data (or, where a message carries no
 * data, with a byte), by which the peers detect it. Where all ranks must give the same amount, a
 * rank that finds another amount continues with messages of few bytes, which are of neither length.
 * So ranks that get only what that rank has had room for detect it, too. */
#ifndef SPX_PLAN_H
#define SPX_PLAN_H
#include "spx.h"

/* Values shared with core/coll. */
typedef enum {
  SPX_COLL_BARRIER,
  SPX_COLL_BCAST,
  SPX_COLL_GATHER,
  SPX_COLL_GATHERV,
  SPX_COLL_SCATTER,
  SPX_COLL_SCATTERV,
  SPX_COLL_ALLGATHER,
  SPX_COLL_ALLGATHERV,
  SPX_COLL_ALLTOALL,
  SPX_COLL_ALLTOALLV,
  SPX_COLL_ALLTOALLW,
  SPX_COLL_REDUCE,
  SPX_COLL_ALLREDUCE,
  SPX_COLL_REDUCE_SCATTER_BLOCK,
  SPX_COLL_REDUCE_SCATTER,
  SPX_COLL_SCAN,
  SPX_COLL_EXSCAN,
  SPX_COLL_NEIGHBOR_ALLGATHER,
  SPX_COLL_NEIGHBOR_ALLGATHERV,
  SPX_COLL_NEIGHBOR_ALLTOALL,
  SPX_COLL_NEIGHBOR_ALLTOALLV,
  SPX_COLL_NEIGHBOR_ALLTOALLW,
  SPX_COLL_COUNT
} spx_coll_kind;
enum { /* spx_step.op */
       SPX_P_SEND = 1,
       SPX_P_RECV,
       SPX_P_WAIT,
       SPX_P_COPY,
       SPX_P_REDUCE,
       SPX_P_POST,
       SPX_P_AWAIT,
       SPX_P_ROOM,
       SPX_P_THROUGH,
       SPX_P_COLLECT,
       SPX_P_FOLD /* in shared memory (share.h) */
};
enum { /* spx_step.flags, see core/coll.FlagLocal */
       SPX_PF_LOCAL = 1,
       SPX_PF_WAKE_ALL = 2,
       SPX_PF_WAKE_ROOT = 4,
       /* the length of the block stands before its place, whether it is there or not */
       SPX_PF_SHORT = 8,
       SPX_PF_LONG = 16,
       SPX_PF_WAKE_ONE = 32,
       SPX_PF_TAKE = 64, /* from a row; of a receive: whatever its length */
       SPX_PF_MOST = 128 /* of a receive: at most so many bytes */
};
/* spx_operand.buf */
enum { SPX_PB_SEND = 0, SPX_PB_RECV, SPX_PB_TEMP, SPX_PB_CELL = 254, SPX_PB_PART = 255 };
/* spx_operand.mode */
enum { SPX_PM_FIXED = 0, SPX_PM_INDEX, SPX_PM_PREFIX, SPX_PM_COUNT, SPX_PM_OWN, SPX_PM_ROW };
/* spx_operand.type */
enum { SPX_PT_BYTE = 0, SPX_PT_SEND, SPX_PT_RECV };
#define SPX_PLAN_REGIONS 64 /* a plan has no more; Go checks */

/* A piece of a buffer, see core/coll.Ref. */
typedef struct spx_operand {
  int64_t off;   /* bytes */
  int64_t count; /* elements */
  int32_t a, b;  /* blocks */
  uint8_t buf, mode, type, pad[5];
} spx_operand;

typedef struct spx_step {
  uint8_t op, flags;
  uint16_t pad;
  int32_t peer;
  /* SEND, RECV: number of the transfer; in shared memory: the tick, from the operation's first */
  int32_t slot;
  int32_t first, n; /* WAIT: waits[first .. first+n); in shared memory: ranks */
  int32_t pad2;
  spx_operand x, y;
} spx_step;

/* Temporary memory: fixed bytes, and per_unit for each unit of the sum of the receive counts.
 * Negative: offsets count from the end of that part. */
typedef struct spx_region {
  int64_t fixed, per_unit;
} spx_region;

/* What a plan depends on. Compared bytewise: fill it from zero. */
typedef struct spx_plan_key {
  uint8_t kind, in_place, commute;
  uint8_t persistent; /* ranks may start it in different orders: no shared memory */
  uint8_t s_contig, r_contig;
  uint16_t size_class; /* see core/coll.Args */
  int32_t root, pad2;
  int64_t scount, rcount;
  int64_t s[4], r[4]; /* size, extent, true_lb, true_extent */
} spx_plan_key;

typedef struct spx_plan {
  spx_plan_key key;
  _Atomic int32_t refs; /* the cache's, and one a run */
  uint32_t nsteps, nslots, nregions;
  uint32_t
      nprefix;    /* number of the caller's receive counts whose running sums are needed, 0: none */
  uint32_t ticks; /* of shared memory */
  uint32_t signature; /* of posts; 0: none */
  bool small_slots;   /* cells are small slots (share.h) */
  uint16_t choice;    /* the choice and its reason: spx_comm.chosen */
  int64_t limit;      /* bytes: of SPX_PF_SHORT */
  int64_t unit;       /* bytes that a unit of the counts stands for in SPX_PT_BYTE, SPX_PM_PREFIX */
  uint64_t used;      /* clock of the cache */
  struct spx_run *idle; /* a run kept for the next time */
  spx_step *steps;      /* these lie behind the plan, in one allocation */
  int32_t *waits;
  spx_region *regions;
  char algorithm[32];
} spx_plan;

/* Counts or displacements of the caller: int, or 64 bit when wide. */
typedef struct spx_array {
  const void *p;
  int wide;
} spx_array;

/* The arguments of a run. Unused members are 0. */
typedef struct spx_coll {
  spx_plan_key key;
  const char *name; /* of the MPI function, for messages */
  spx_comm *comm;
  const void *send;
  void *recv;
  spx_type *stype, *rtype;
  spx_op *op;
  int64_t sown, rown; /* own counts of the v forms; elsewhere they are in the key */
  spx_array scounts, rcounts, sdispls, rdispls;
  /* w forms: displacements are in bytes. Not read where sheld or rheld is there */
  const MPI_Datatype *stypes, *rtypes;
  spx_type *const *sheld, *const *rheld; /* w forms behind a request: the objects, which the caller
                                            may free before the end */
} spx_coll;

typedef struct spx_run spx_run;

/* An empty plan with room for its parts, refs = 1; NULL: out of memory. */
SPX_HIDDEN spx_plan *spx_plan_new(uint32_t nsteps, uint32_t nwaits, uint32_t nslots,
                                  uint32_t nregions);
SPX_HIDDEN void spx_plan_unref(spx_plan *p);
SPX_HIDDEN size_t spx_plan_bytes(const spx_plan *p); /* about its memory */
static inline void spx_plan_ref(spx_plan *p)
{
  if (SPX_UNLIKELY(spx_mt))
    atomic_fetch_add_explicit(&p->refs, 1, memory_order_relaxed);
  else
    atomic_store_explicit(&p->refs, atomic_load_explicit(&p->refs, memory_order_relaxed) + 1,
                          memory_order_relaxed);
}

/* Runs a plan to its end: the operation's error code; a detail text is left when there is one.
 * Consumes no reference. */
SPX_HIDDEN int spx_plan_run(spx_plan *p, const spx_coll *c);
/* Starts a plan: *r gets a request for MPI_Wait. The caller's arrays are copied, and its datatypes
 * held. */
SPX_HIDDEN int spx_plan_start(spx_plan *p, const spx_coll *c, spx_request **r);
/* A persistent request, not active; spx_start starts it. */
SPX_HIDDEN int spx_plan_init(spx_plan *p, const spx_coll *c, spx_request **r);

/* Temporary memory of the process: kept between uses, up to a bound. */
SPX_HIDDEN void *spx_temp_get(size_t bytes); /* NULL: out of memory */
SPX_HIDDEN void spx_temp_put(void *p, size_t bytes);

static inline int64_t spx_array_at(spx_array a, int64_t i)
{
  return a.wide ? ((const int64_t *)a.p)[i] : ((const int32_t *)a.p)[i];
}
#endif
