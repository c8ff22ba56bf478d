/* rma_accumulate.c - MPI_Accumulate, MPI_Get_accumulate, MPI_Fetch_and_op, MPI_Compare_and_swap.
 * MPI-5.0, 12.3.4 and 12.7.1.
 *
 * An accumulate holds the target's latch, so every two accumulates on a target are atomic with
 * respect to each other, whatever their types, and those of one origin are done in the order of its
 * calls. A long one releases the latch between pieces of whole elements, as the standard requires
 * no more. */
#include "basic.h"
#include "dp.h"
#include "plan.h"
#include "reduce.h"
#include "rma.h"

#define STEP       65536
#define STEP_SHORT 2048

spx_type *spx_rma_element(const spx_type *t)
{
  if (!t->basic || t->basic_mixed) return &spx_basic_types[SPX_B_BYTE];
  return &spx_basic_types[t->basic == SPX_B_CHAR ? SPX_B_SIGNED_CHAR : t->basic];
}

static spx_type *byte_type(void) { return &spx_basic_types[SPX_B_BYTE]; }

static bool is_plain(const spx_type *t) { return (t->flags & SPX_T_CONTIG) != 0; }

/* Elements of t lie in memory as in their packed form: false for pairs with a gap. */
static bool has_gaps(const spx_type *t) { return t->size != t->extent; }

int spx_rma_reduce(const void *in, void *inout, int64_t k, const spx_type *basic, const spx_op *op)
{
  if (SPX_LIKELY(!has_gaps(basic))) return spx_reduce(in, inout, k, basic, op);
  _Alignas(64) char a[2048], b[2048]; /* a gap is never as long as the data */
  int64_t each = (int64_t)sizeof a / basic->extent;
  for (int64_t done = 0, n; done < k; done += n) {
    n = k - done < each ? k - done : each;
    const char *x = (const char *)in + done * basic->size;
    char *y = (char *)inout + done * basic->size;
    spx_unpack(a, n, basic, 0, n * basic->size, x);
    spx_unpack(b, n, basic, 0, n * basic->size, y);
    int err = spx_reduce(a, b, n, basic, op);
    if (err != MPI_SUCCESS) return err;
    spx_pack(b, n, basic, 0, n * basic->size, y);
  }
  return MPI_SUCCESS;
}

/* One piece of m packed bytes from at, anything but plain memory on both sides; t and o: room for
 * them. */
static int piece(spx_win *w, int target, const spx_accumulate *a, const spx_type *basic, int64_t at,
                 int64_t m, char *t, char *o)
{
  int predef = a->op->predef, err = MPI_SUCCESS;
  bool replace = predef == (int)(intptr_t)MPI_REPLACE, no_op = predef == (int)(intptr_t)MPI_NO_OP;
  if (a->result_type || !(replace || no_op)) {
    err = spx_rma_move(w, target, false, a->addr, a->type, at, t, byte_type(), 0, m);
    if (err != MPI_SUCCESS) return err;
  }
  const char *in = o;
  if (!no_op) {
    if (is_plain(a->origin_type) && !a->result_type)
      in = (const char *)a->origin + at;
    else
      spx_pack(a->origin, 0, a->origin_type, at, at + m, o);
  }
  if (a->result_type) spx_unpack(a->result, 0, a->result_type, at, at + m, t);
  if (no_op) return MPI_SUCCESS;
  if (!replace) err = spx_rma_reduce(in, t, m / basic->size, basic, a->op);
  if (err != MPI_SUCCESS) return err;
  return spx_rma_move(w, target, true, a->addr, a->type, at, replace ? (char *)(uintptr_t)in : t,
                      byte_type(), 0, m);
}

/* The same where all is plain memory. */
static int piece_direct(const spx_accumulate *a, const spx_type *basic, int64_t at, int64_t m)
{
  char *mem = (char *)(uintptr_t)a->addr + at;
  if (a->result_type) memcpy((char *)a->result + at, mem, (size_t)m);
  if (a->op->predef == (int)(intptr_t)MPI_NO_OP) return MPI_SUCCESS;
  const char *o = (const char *)a->origin + at;
  if (a->op->predef == (int)(intptr_t)MPI_REPLACE) {
    memmove(mem, o, (size_t)m);
    return MPI_SUCCESS;
  }
  return spx_reduce(o, mem, m / basic->size, basic, a->op);
}

static int in_pieces(spx_win *w, int target, const spx_accumulate *a, const spx_type *basic,
                     char *room, int64_t step)
{
  int64_t n = a->count * a->type->size;
  int err = MPI_SUCCESS;
  step -= step % basic->size;
  for (int64_t at = 0, m; at < n && err == MPI_SUCCESS; at += m) {
    m = n - at < step ? n - at : step;
    spx_latch(w, &w->cells[target].accumulate);
    err =
        room ? piece(w, target, a, basic, at, m, room, room + step) : piece_direct(a, basic, at, m);
    spx_unlatch(&w->cells[target].accumulate);
  }
  return err;
}

int spx_rma_accumulate(spx_win *w, int target, const spx_accumulate *a)
{
  if (SPX_UNLIKELY(w->targets[target].far)) return spx_rma_far_accumulate(w, target, a);
  const spx_type *basic = spx_rma_element(a->type);
  bool no_op = a->op->predef == (int)(intptr_t)MPI_NO_OP;
  bool direct = (w->targets[target].here || target == w->rank) && is_plain(a->type) &&
                !has_gaps(basic) && (no_op || is_plain(a->origin_type)) &&
                (!a->result_type || is_plain(a->result_type));
  if (direct && !(a->result_type && !no_op && a->result == a->origin))
    return in_pieces(w, target, a, basic, NULL, STEP);
  _Alignas(64) char own[2 * STEP_SHORT];
  if (a->count * a->type->size <= STEP_SHORT)
    return in_pieces(w, target, a, basic, own, STEP_SHORT);
  char *room = spx_temp_get(2 * STEP);
  int err = room ? in_pieces(w, target, a, basic, room, STEP)
                 : in_pieces(w, target, a, basic, own, STEP_SHORT);
  if (room) spx_temp_put(room, 2 * STEP);
  return err;
}

bool spx_rma_at_once(const spx_win *w, uint32_t *latch, void *mem, const void *origin, void *result,
                     int64_t n, const spx_type *t, const spx_op *op)
{
  spx_red_fn fn = spx_reduce_kernel(op, t);
  bool replace = op->predef == (int)(intptr_t)MPI_REPLACE;
  if (SPX_UNLIKELY(!fn && !replace && op->predef != (int)(intptr_t)MPI_NO_OP)) return false;
  uint64_t m = (uint64_t)(n * t->size);
  spx_latch(w, latch);
  if (result) spx_copy_short(result, mem, m);
  if (SPX_LIKELY(fn != NULL))
    fn(origin, mem, n);
  else if (replace)
    spx_copy_short(mem, origin, m);
  spx_unlatch(latch);
  return true;
}

bool spx_rma_swap_at_once(const spx_win *w, uint32_t *latch, void *mem, const void *origin,
                          const void *compare, void *result, int64_t bytes)
{
#define SWAP(T)                                                                                    \
  {                                                                                                \
    typedef T __attribute__((aligned(1), may_alias)) A;                                            \
    T want = *(const A *)compare, with = *(const A *)origin, now;                                  \
    spx_latch(w, latch);                                                                           \
    now = *(A *)mem;                                                                               \
    if (now == want) *(A *)mem = with;                                                             \
    spx_unlatch(latch);                                                                            \
    *(A *)result = now;                                                                            \
    return true;                                                                                   \
  }
  if (bytes == 8) SWAP(uint64_t)
  if (bytes == 4) SWAP(uint32_t)
#undef SWAP
  return false;
}

int spx_rma_fetch_op(spx_win *w, int target, uint64_t addr, const void *origin, void *result,
                     spx_type *t, const spx_op *op)
{
  spx_accumulate a = {.origin = origin, .origin_type = t, .result = result, .result_type = t};
  a.addr = addr;
  a.type = t;
  a.count = 1;
  a.op = op;
  return spx_rma_accumulate(w, target, &a);
}

int spx_rma_compare_swap(spx_win *w, int target, uint64_t addr, const void *origin,
                         const void *compare, void *result, spx_type *t)
{
  if (SPX_UNLIKELY(w->targets[target].far))
    return spx_rma_far_swap(w, target, addr, origin, compare, result, t);
  char now[64], want[64], with[64];
  uint64_t n = (uint64_t)t->size;
  memcpy(want, compare, n);
  memcpy(with, origin, n);
  uint32_t *latch = &w->cells[target].accumulate;
  spx_latch(w, latch);
  int err = spx_rma_move(w, target, false, addr, t, 0, now, t, 0, (int64_t)n);
  if (err == MPI_SUCCESS && memcmp(now, want, n) == 0)
    err = spx_rma_move(w, target, true, addr, t, 0, with, t, 0, (int64_t)n);
  spx_unlatch(latch);
  if (err == MPI_SUCCESS) memcpy(result, now, n);
  return err;
}
