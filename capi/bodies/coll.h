/* coll.h - what the bodies of the collectives share: the call's shape, how it is to be run, and the
 * cache of plans. */
#ifndef SPX_COLL_H
#define SPX_COLL_H
#include <string.h>
#include "plan.h"
#include "shim.h"

/* How a collective is run: request NULL: to its end; else as a request, active at once or
 * persistent. */
typedef struct spx_how {
  MPI_Request *request;
  int persistent;
} spx_how;
#define SPX_BLOCKING             ((spx_how){NULL, 0})
#define SPX_NONBLOCKING(request) ((spx_how){(request), 0})
#define SPX_PERSISTENT(request)  ((spx_how){(request), 1})

/* Runs c, whose members are filled in, with the plan for its key: raises errors on the communicator
 * and returns the code. */
SPX_HIDDEN int spx_collective(const spx_coll *c, spx_how how);

/* The plan for a key on a communicator, with a reference for the caller; *plan: NULL on error
 * (returned). */
SPX_HIDDEN int spx_coll_plan(spx_comm *c, const spx_plan_key *key, spx_plan **plan);

/* Drops the plans of a communicator that is freed. */
SPX_HIDDEN void spx_coll_comm_free(spx_comm *c);

/* ---- coll_inside.c: what other functions need; of words of 8 bytes; each returns an error code,
 * with a detail text ---- */
/* all: bytes of every process, in the order of ranks. */
SPX_HIDDEN int spx_inside_gather(spx_comm *comm, const void *mine, void *all, size_t bytes);
/* The same as a request, which goes on by itself and collects its error by r->finish. */
SPX_HIDDEN int spx_inside_gather_begin(spx_comm *comm, const void *mine, void *all, size_t bytes,
                                       spx_request **r);
/* The greatest of each of n values. _begin: as spx_inside_gather_begin. */
SPX_HIDDEN int spx_inside_greatest_of(spx_comm *comm, const int64_t *mine, int64_t *all, int n);
SPX_HIDDEN int spx_inside_greatest_begin(spx_comm *comm, const int64_t *mine, int64_t *all, int n,
                                         spx_request **r);
/* Broadcasts from rank 0. */
SPX_HIDDEN int spx_inside_bcast(spx_comm *comm, void *data, size_t bytes);
SPX_HIDDEN int spx_inside_bcast_begin(spx_comm *comm, void *data, size_t bytes, spx_request **r);

/* Raises on the communicator, with the name of the MPI function. */
#define SPX_COLL_FAIL(comm, code, ...)                                                             \
  spx_raise(SPX_K_COMM, (void *)(uintptr_t)(comm)->o.handle, (code), spx_fn_name[spx_fn],          \
            __VA_ARGS__)

/* Puts a datatype's measures into a key. */
static inline void spx_key_type(int64_t out[4], uint8_t *contig, const spx_type *t)
{
  out[0] = t->size;
  out[1] = t->extent;
  out[2] = t->true_lb;
  out[3] = t->true_extent;
  *contig = (t->flags & SPX_T_CONTIG) != 0;
}

static inline void spx_coll_sends(spx_coll *c, const void *buf, int64_t count, spx_type *t)
{
  c->send = buf;
  c->key.scount = count;
  c->stype = t;
  spx_key_type(c->key.s, &c->key.s_contig, t);
}

static inline void spx_coll_receives(spx_coll *c, void *buf, int64_t count, spx_type *t)
{
  c->recv = buf;
  c->key.rcount = count;
  c->rtype = t;
  spx_key_type(c->key.r, &c->key.r_contig, t);
}

/* Cleared in pieces that become plain stores: at once it would be one instruction that takes 20
 * ns. */
static inline void spx_coll_on(spx_coll *c, spx_comm *comm, spx_coll_kind kind)
{
  enum { PIECE = 64, WHOLE = sizeof *c / PIECE };
  _Static_assert(WHOLE == 4, "as many as are written down here");
  char *at = (char *)c;
  memset(at, 0, PIECE);
  memset(at + PIECE, 0, PIECE);
  memset(at + 2 * PIECE, 0, PIECE);
  memset(at + 3 * PIECE, 0, PIECE);
  memset(at + WHOLE * PIECE, 0, sizeof *c - WHOLE * PIECE);
  c->comm = comm;
  c->key.kind = (uint8_t)kind;
}

/* Elements of s at a and of r at b begin with the same byte. At one address there may be data of
 * both without any in common, as the even and the odd columns of a matrix. */
static inline int spx_coll_alias(const void *a, const spx_type *s, const void *b, const spx_type *r)
{
  return (uintptr_t)a + (uint64_t)s->true_lb == (uintptr_t)b + (uint64_t)r->true_lb;
}
static inline const char *spx_coll_at(const void *buf, int64_t elements, const spx_type *t)
{
  return (const char *)buf + elements * t->extent;
}

static inline spx_array spx_array_of(spx_counts c) { return (spx_array){c.p, c.wide}; }
/* Base-2 logarithm, rounded up, of the sum of counts in bytes (core/coll.Args.SizeClass). */
SPX_HIDDEN uint16_t spx_size_class(spx_counts counts, int n, int64_t size);
static inline int spx_is_inter(const spx_comm *c) { return (c->flags & SPX_C_INTER) != 0; }
#endif
