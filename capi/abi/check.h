/* check.h - the argument checks that the generated shims make. Each test is a comparison or two,
 * inline; what is wrong is worked out, worded and raised in check.c, out of the way of correct
 * programs. */
#ifndef SPX_CHECK_H
#define SPX_CHECK_H
#include "shim.h"
#include "trace.h"

/* Every function but those that may be called at any time begins with this. traced: the same call,
 * which is written down (trace.h). */
#define SPX_ENTER(f, traced)                                                                       \
  do {                                                                                             \
    spx_fn = (f);                                                                                  \
    if (SPX_UNLIKELY(atomic_load_explicit(&spx_state, memory_order_relaxed) != SPX_INITIALIZED ||  \
                     spx_aside)) {                                                                 \
      spx_way way_ = spx_find_way();                                                               \
      if (way_ == SPX_WAY_BAD) return spx_bad_state();                                             \
      spx_site = __builtin_return_address(0);                                                      \
      if (way_ == SPX_WAY_TRACED) return traced;                                                   \
    }                                                                                              \
  } while (0)
/* The same for those that begin MPI, or are not traced and make something. */
#define SPX_ENTER_ALWAYS(f)                                                                        \
  do {                                                                                             \
    spx_fn = (f);                                                                                  \
    spx_site = __builtin_return_address(0);                                                        \
  } while (0)
#define SPX_CHECK(ok, bad)                                                                         \
  do {                                                                                             \
    if (SPX_UNLIKELY(!(ok))) return bad;                                                           \
  } while (0)
#define SPX_TRY(call)                                                                              \
  do {                                                                                             \
    int err_ = (call);                                                                             \
    if (SPX_UNLIKELY(err_ != MPI_SUCCESS)) return err_;                                            \
  } while (0)

#define SPX_COLD SPX_HIDDEN __attribute__((cold, noinline))

/* k, h: the object on which the error is raised. arg: the name of the argument in the standard. */
SPX_COLD int spx_bad_state(void);
SPX_COLD int spx_unwritten(spx_kind k, void *h);
SPX_COLD int spx_bad_handle(spx_kind k, void *h, spx_kind want, const char *arg, const void *value);
SPX_COLD int spx_bad_type(spx_kind k, void *h, const char *arg, MPI_Datatype value);
SPX_COLD int spx_bad_null(spx_kind k, void *h, int error, const char *arg);
SPX_COLD int spx_bad_count(spx_kind k, void *h, const char *arg, int64_t value);
SPX_COLD int spx_bad_negative(spx_kind k, void *h, int error, const char *arg, int64_t value);
SPX_COLD int spx_bad_tag(spx_kind k, void *h, const char *arg, int value);
SPX_COLD int spx_bad_buffer(spx_kind k, void *h, const char *arg, const void *value);
SPX_COLD int spx_bad_rank(const spx_comm *c, const char *arg, int value);
SPX_COLD int spx_bad_root(const spx_comm *c, int root);
/* Ranks that are none of the communicator's: system.c. They become one of another communicator,
 * which takes the place of *c, or an error is raised. The first two leave what sends and receives
 * at once to its body, which calls the others. */
SPX_COLD int spx_other_dest(spx_comm **c, int *dest, const char *arg, int tag);
SPX_COLD int spx_other_source(spx_comm **c, int *source, const char *arg, int tag);
SPX_COLD int spx_resolve_dest(spx_comm **c, int *dest, const char *arg, int tag);
SPX_COLD int spx_resolve_source(spx_comm **c, int *source, const char *arg, int tag);
/* Called by who is no member of the communicator, as an I/O process of its worlds. */
SPX_COLD int spx_bad_member(const spx_comm *c);

/* Checks of arrays: MPI_SUCCESS, or the code of the error that they raised. */
SPX_HIDDEN int spx_check_counts(spx_kind k, void *h, const char *arg, const void *counts, int n,
                                int wide);
SPX_HIDDEN int spx_check_types(spx_kind k, void *h, const char *arg, const MPI_Datatype *types,
                               const void *counts, int n, int wide);
SPX_HIDDEN int spx_check_requests(int n, MPI_Request const *requests);
SPX_HIDDEN int spx_check_requests_or_null(int n, MPI_Request const *requests);
/* A buffer described by an array of counts may be NULL when there is nothing in it, and is
 * MPI_BOTTOM when the data of each block are at an address: that of its displacement (displs.p
 * NULL: 0) and its datatype together. */
SPX_HIDDEN int spx_buffers_ok(const void *buf, spx_counts counts, spx_counts displs, int n,
                              const spx_type *t);
/* The same with a type for each entry, of which those with elements were checked before, and
 * displacements in bytes. */
SPX_HIDDEN int spx_buffers_of_types_ok(const void *buf, spx_counts counts, spx_counts displs, int n,
                                       const MPI_Datatype *types);

static inline int spx_committed(const spx_type *t) { return t && (t->flags & SPX_T_COMMITTED); }

/* NULL is MPI_BOTTOM: right with a type that is made of addresses, or when nothing is there. */
static inline int spx_buffer_ok(const void *buf, int64_t count, const spx_type *t)
{
  return SPX_LIKELY((uintptr_t)buf > (uintptr_t)MPI_IN_PLACE) || count == 0 || t->size == 0 ||
         (!buf && (t->flags & SPX_T_ABSOLUTE));
}

static inline int spx_in_place_ok(const spx_comm *c) { return !(c->flags & SPX_C_INTER); }

static inline int spx_tag_ok(int tag) { return (uint32_t)tag <= SPX_TAG_UB; }

/* Ranks of the group that messages go to and come from. */
static inline int spx_dest_ok(const spx_comm *c, int rank)
{
  return (uint32_t)rank < (uint32_t)c->remote_size || rank == MPI_PROC_NULL;
}
static inline int spx_source_ok(const spx_comm *c, int rank)
{
  return spx_dest_ok(c, rank) || (rank == MPI_ANY_SOURCE && c->rank >= 0);
}

/* Rooted collectives. On an intercommunicator the group of the root passes MPI_ROOT or
 * MPI_PROC_NULL (MPI-5.0, 6.2.3). */
static inline int spx_root_ok(const spx_comm *c, int root)
{
  return (uint32_t)root < (uint32_t)c->remote_size ||
         ((c->flags & SPX_C_INTER) && (root == MPI_ROOT || root == MPI_PROC_NULL));
}
static inline int spx_at_root(const spx_comm *c, int root)
{
  return c->flags & SPX_C_INTER ? root == MPI_ROOT : root == c->rank;
}
static inline int spx_at_leaf(const spx_comm *c, int root)
{
  return !(c->flags & SPX_C_INTER) || root >= 0;
}
static inline int spx_takes_part(const spx_comm *c, int root)
{
  return !(c->flags & SPX_C_INTER) || root != MPI_PROC_NULL;
}
/* Names for messages: of an operation ("MPI_SUM"; "op" of one that MPI_Op_create made), and of a
 * datatype ("MPI_INT", "a derived datatype"). */
SPX_HIDDEN const char *spx_op_title(const spx_op *op);
SPX_HIDDEN const char *spx_type_title(const spx_type *t);
#endif
