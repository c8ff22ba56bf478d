/* rma.c - Put, Get, Accumulate and their kin: what is wrong is found here, the data are moved by
 * dataplane/rma_*.c. MPI-5.0, 12.3.
 *
 * The operations are complete when they return. Those with a request give one that is complete. */
#include "basic.h"
#include "check.h"
#include "dp.h"
#include "win.h"

typedef enum { ANY_EPOCH, PASSIVE /* MPI_Rput and its kin: locks only */ } epochs;

static int fail(const spx_win *w, int err) { return SPX_WIN_FAIL(w, err, "%s", spx_detail_text()); }

/* An operation on a target may begin now: MPI_SUCCESS, or the error, raised. */
static int check_epoch(spx_win *w, int rank, epochs which)
{
  const spx_target *t = &w->targets[rank];
  switch (w->access) {
  case SPX_A_LOCK_ALL: return MPI_SUCCESS;
  case SPX_A_LOCK:
    if (SPX_LIKELY(t->held)) return MPI_SUCCESS;
    return SPX_WIN_FAIL(w, MPI_ERR_RMA_SYNC, "rank %d is not locked by this process", rank);
  case SPX_A_FENCE_OPEN:
  case SPX_A_FENCE:
    if (which == PASSIVE) break;
    w->access = SPX_A_FENCE;
    return MPI_SUCCESS;
  case SPX_A_PSCW:
    if (which == PASSIVE) break;
    if (SPX_LIKELY(t->started)) return MPI_SUCCESS;
    return SPX_WIN_FAIL(w, MPI_ERR_RMA_SYNC, "rank %d is not in the group of MPI_Win_start", rank);
  default: break;
  }
  if (which == PASSIVE && w->access != SPX_A_NONE)
    return SPX_WIN_FAIL(w, MPI_ERR_RMA_SYNC,
                        "operations with a request are for passive target epochs (MPI_Win_lock)");
  return SPX_WIN_FAIL(
      w, MPI_ERR_RMA_SYNC,
      "no access epoch is open: call MPI_Win_fence, MPI_Win_start or MPI_Win_lock first");
}

/* The bytes that count elements of t touch, from their buffer's address: [*lo, *hi). False:
 * none. */
static bool span(int64_t count, const spx_type *t, int64_t *lo, int64_t *hi)
{
  if (count == 0 || t->size == 0) return false;
  int64_t last = (count - 1) * t->extent;
  *lo = t->true_lb + (last < 0 ? last : 0);
  *hi = t->true_lb + t->true_extent + (last > 0 ? last : 0);
  return true;
}

/* The address of a displacement at the target, if the range is in the window. Raises. */
static int check_range(const spx_win *w, int rank, int64_t disp, int64_t count, const spx_type *t,
                       uint64_t *addr)
{
  const spx_target *p = &w->targets[rank];
  int64_t at = disp * p->unit, lo, hi;
  *addr = p->base + (uint64_t)at;
  if (!span(count, t, &lo, &hi)) return MPI_SUCCESS;
  if (SPX_LIKELY(p->size >= 0)) {
    if (SPX_LIKELY(at <= p->size && at + lo >= 0 && at + hi <= p->size)) return MPI_SUCCESS;
    return SPX_WIN_FAIL(
        w, MPI_ERR_RMA_RANGE,
        "target_disp = %lld (times %lld), target_count = %lld: bytes %lld to %lld of the window at "
        "rank %d, which has %lld",
        (long long)disp, (long long)p->unit, (long long)count, (long long)(at + lo),
        (long long)(at + hi), rank, (long long)p->size);
  }
  if (rank != w->rank)
    return MPI_SUCCESS; /* the target's kernel or the target itself will report an error */
  uint64_t from = *addr + (uint64_t)lo;
  spx_lock();
  bool found = spx_win_attached(w, from, (uint64_t)(hi - lo));
  spx_unlock();
  if (found) return MPI_SUCCESS;
  return SPX_WIN_FAIL(w, MPI_ERR_RMA_RANGE,
                      "address 0x%llx is not in memory attached to the window",
                      (unsigned long long)from);
}

/* All checks of an operation's target. */
static inline int check_target(spx_win *w, int rank, int64_t disp, int64_t count, const spx_type *t,
                               epochs which, uint64_t *addr)
{
  if (SPX_UNLIKELY((unsigned)rank >= (unsigned)w->size))
    return SPX_WIN_FAIL(w, MPI_ERR_RANK, "target_rank = %d is not a rank of the window (size %d)",
                        rank, w->size);
  if (SPX_UNLIKELY(disp < 0 && w->flavor != MPI_WIN_FLAVOR_DYNAMIC))
    return SPX_WIN_FAIL(w, MPI_ERR_DISP, "target_disp = %lld is negative", (long long)disp);
  int err = check_epoch(w, rank, which);
  if (SPX_UNLIKELY(err != MPI_SUCCESS)) return err;
  if (SPX_UNLIKELY(spx_ndead) && spx_proc_dead(w->targets[rank].proc))
    return SPX_WIN_FAIL(w, MPIX_ERR_PROC_FAILED, "rank %d of the window has failed", rank);
  return check_range(w, rank, disp, count, t, addr);
}

/* Both sides of a transfer have the same amount of data. */
static int check_sizes(const spx_win *w, int64_t here, int64_t there)
{
  if (SPX_LIKELY(here == there)) return MPI_SUCCESS;
  return SPX_WIN_FAIL(w, MPI_ERR_TRUNCATE,
                      "%lld bytes of data at the origin, but %lld at the target: counts and "
                      "datatypes must describe as many",
                      (long long)here, (long long)there);
}

/* A request that is complete. Its status is empty, as that of a collective. */
static int completed(const spx_win *w, MPI_Request *request)
{
  spx_request *r = (spx_request *)spx_new(SPX_K_REQ);
  if (!r)
    return SPX_WIN_FAIL(
        w, MPI_ERR_NO_MEM,
        "there is no room for another request (at most %u exist): complete some, or free them",
        1u << SPX_H_INDEX_BITS);
  r->kind = SPX_R_COLL;
  r->flags = SPX_RF_ACTIVE;
  r->src = MPI_ANY_SOURCE;
  r->tag = MPI_ANY_TAG;
  atomic_store_explicit(&r->done, 1, memory_order_release);
  *request = (MPI_Request)(uintptr_t)r->o.handle;
  return MPI_SUCCESS;
}

/* ---- put and get ---- */

/* The target's memory at disp, when an operation on n bytes of it is right and the memory is mapped
 * here; NULL: look closer. */
static inline void *direct(const spx_win *w, int rank, int64_t disp, int64_t n)
{
  if (SPX_UNLIKELY((unsigned)rank >= (unsigned)w->size || (uint64_t)disp >> 48 ||
                   (uint64_t)n >> 48))
    return NULL;
  const spx_target *t = &w->targets[rank];
  int64_t at = disp * t->unit;
  bool open = w->access == SPX_A_LOCK_ALL || (w->access == SPX_A_LOCK && t->held);
  if (SPX_UNLIKELY(!open || !t->here || spx_ndead || (uint64_t)at >> 48 || at + n > t->size))
    return NULL;
  return t->here + at;
}

/* Elements that lie in memory as they are, one behind the other. */
static inline bool is_array(const spx_type *t)
{
  const uint32_t want = SPX_T_CONTIG | SPX_T_PREDEFINED;
  return (t->flags & want) == want && t->basic != SPX_B_CHAR;
}

/* A program that polls one place again and again waits for a peer; see look_around (win_sync.c). */
static inline void looks(spx_win *w, uint64_t addr)
{
  if (addr == w->looked) return;
  w->looked = addr;
  w->vain = 0;
}
static inline void acts(spx_win *w) { w->vain = 0; }

static inline int transfer(spx_win *w, bool put, void *buf, int64_t count, spx_type *type, int rank,
                           int64_t disp, int64_t tcount, spx_type *ttype, epochs which)
{
  if (SPX_UNLIKELY(rank == MPI_PROC_NULL)) return MPI_SUCCESS;
  uint64_t addr = 0;
  int64_t n = count * type->size;
  int err = check_target(w, rank, disp, tcount, ttype, which, &addr);
  if (SPX_LIKELY(err == MPI_SUCCESS)) err = check_sizes(w, n, tcount * ttype->size);
  if (SPX_UNLIKELY(err != MPI_SUCCESS)) return err;
  if (put)
    acts(w);
  else
    looks(w, addr);
  if (SPX_LIKELY(w->targets[rank].here && (type->flags & ttype->flags & SPX_T_CONTIG) &&
                 (uint64_t)n <= 32)) {
    spx_copy_short(put ? (void *)(uintptr_t)addr : buf, put ? buf : (void *)(uintptr_t)addr,
                   (uint64_t)n);
    return MPI_SUCCESS;
  }
  err = spx_rma_move(w, rank, put, addr, ttype, 0, buf, type, 0, n);
  return SPX_LIKELY(err == MPI_SUCCESS) ? err : fail(w, err);
}

int spx_c_Put(const void *origin_addr, int64_t origin_count, spx_type *origin_datatype,
              int target_rank, MPI_Aint target_disp, int64_t target_count,
              spx_type *target_datatype, MPI_Win win)
{
  return transfer(spx_win_of(win), true, (void *)(uintptr_t)origin_addr, origin_count,
                  origin_datatype, target_rank, target_disp, target_count, target_datatype,
                  ANY_EPOCH);
}

int spx_c_Get(void *origin_addr, int64_t origin_count, spx_type *origin_datatype, int target_rank,
              MPI_Aint target_disp, int64_t target_count, spx_type *target_datatype, MPI_Win win)
{
  return transfer(spx_win_of(win), false, origin_addr, origin_count, origin_datatype, target_rank,
                  target_disp, target_count, target_datatype, ANY_EPOCH);
}

int spx_c_Rput(const void *origin_addr, int64_t origin_count, spx_type *origin_datatype,
               int target_rank, MPI_Aint target_disp, int64_t target_count,
               spx_type *target_datatype, MPI_Win win, MPI_Request *request)
{
  spx_win *w = spx_win_of(win);
  int err = transfer(w, true, (void *)(uintptr_t)origin_addr, origin_count, origin_datatype,
                     target_rank, target_disp, target_count, target_datatype, PASSIVE);
  return err == MPI_SUCCESS ? completed(w, request) : err;
}

int spx_c_Rget(void *origin_addr, int64_t origin_count, spx_type *origin_datatype, int target_rank,
               MPI_Aint target_disp, int64_t target_count, spx_type *target_datatype, MPI_Win win,
               MPI_Request *request)
{
  spx_win *w = spx_win_of(win);
  int err = transfer(w, false, origin_addr, origin_count, origin_datatype, target_rank, target_disp,
                     target_count, target_datatype, PASSIVE);
  return err == MPI_SUCCESS ? completed(w, request) : err;
}

/* ---- accumulates ---- */

enum { AT_ONCE = 65536 }; /* bytes for which a latch is held */

static bool is_op(const spx_op *op, MPI_Op which) { return op->predef == (int)(intptr_t)which; }

/* op is defined for the elements of t (MPI-5.0, 12.3.4). Raises. */
static int check_op(const spx_win *w, const spx_op *op, const spx_type *t)
{
  if (!op->predef)
    return SPX_WIN_FAIL(
        w, MPI_ERR_OP, "op was made by MPI_Op_create; accumulates take predefined operations only");
  if (t->size == 0) return MPI_SUCCESS;
  if (is_op(op, MPI_REPLACE) || is_op(op, MPI_NO_OP)) return MPI_SUCCESS;
  if (!t->basic || t->basic_mixed)
    return SPX_WIN_FAIL(w, MPI_ERR_TYPE,
                        "the datatype is not made of one predefined datatype alone");
  if (spx_op_valid(op, spx_rma_element(t))) return MPI_SUCCESS;
  return SPX_WIN_FAIL(w, MPI_ERR_OP,
                      "%s is not defined for %s; take one that is, of the predefined operations",
                      spx_op_title(op), spx_type_title(t));
}

/* Elements at the origin and in the result are those of the target. */
static int check_elements(const spx_win *w, const spx_type *t, const spx_type *target)
{
  if (t->size == 0 || target->size == 0) return MPI_SUCCESS;
  if (!t->basic || !target->basic || spx_basics[t->basic].size == spx_basics[target->basic].size)
    return MPI_SUCCESS;
  return SPX_WIN_FAIL(
      w, MPI_ERR_TYPE,
      "the datatypes of origin and target are made of different predefined datatypes");
}

static int accumulate(spx_win *w, spx_accumulate *a, int64_t count, int64_t rcount, int rank,
                      int64_t disp, epochs which)
{
  if (rank == MPI_PROC_NULL) return MPI_SUCCESS;
  int err = check_op(w, a->op, a->type);
  bool no_op = is_op(a->op, MPI_NO_OP);
  if (no_op && !a->result_type)
    return SPX_WIN_FAIL(w, MPI_ERR_OP, "op is MPI_NO_OP, which only fetching operations may use");
  if (err == MPI_SUCCESS) err = check_target(w, rank, disp, a->count, a->type, which, &a->addr);
  if (err == MPI_SUCCESS && !no_op)
    err = check_sizes(w, count * a->origin_type->size, a->count * a->type->size);
  if (err == MPI_SUCCESS && !no_op && count > 0) err = check_elements(w, a->origin_type, a->type);
  if (err == MPI_SUCCESS && a->result_type)
    err = check_sizes(w, rcount * a->result_type->size, a->count * a->type->size);
  if (err != MPI_SUCCESS) return err;
  if (no_op)
    looks(w, a->addr);
  else
    acts(w);
  err = spx_rma_accumulate(w, rank, a);
  return err == MPI_SUCCESS ? err : fail(w, err);
}

int spx_c_Accumulate(const void *origin_addr, int64_t origin_count, spx_type *origin_datatype,
                     int target_rank, MPI_Aint target_disp, int64_t target_count,
                     spx_type *target_datatype, spx_op *op, MPI_Win win)
{
  spx_win *w = spx_win_of(win);
  spx_accumulate a = {origin_addr, origin_datatype, NULL,         NULL,
                      0,           target_datatype, target_count, op};
  if (SPX_LIKELY(origin_datatype == target_datatype && origin_count == target_count &&
                 is_array(target_datatype))) {
    void *mem = direct(w, target_rank, target_disp, target_count * target_datatype->size);
    if (SPX_LIKELY(mem && target_count * target_datatype->size <= AT_ONCE &&
                   !is_op(op, MPI_NO_OP)) &&
        spx_rma_at_once(w, &w->cells[target_rank].accumulate, mem, origin_addr, NULL, target_count,
                        target_datatype, op)) {
      acts(w);
      return MPI_SUCCESS;
    }
  }
  return accumulate(w, &a, origin_count, 0, target_rank, target_disp, ANY_EPOCH);
}

int spx_c_Raccumulate(const void *origin_addr, int64_t origin_count, spx_type *origin_datatype,
                      int target_rank, MPI_Aint target_disp, int64_t target_count,
                      spx_type *target_datatype, spx_op *op, MPI_Win win, MPI_Request *request)
{
  spx_win *w = spx_win_of(win);
  spx_accumulate a = {origin_addr, origin_datatype, NULL,         NULL,
                      0,           target_datatype, target_count, op};
  int err = accumulate(w, &a, origin_count, 0, target_rank, target_disp, PASSIVE);
  return err == MPI_SUCCESS ? completed(w, request) : err;
}

/* Origin arguments mean nothing with MPI_NO_OP; the shims leave them to us. */
static int check_origin(const spx_win *w, const void *addr, int64_t count, spx_type *t,
                        const spx_op *op)
{
  if (is_op(op, MPI_NO_OP)) return MPI_SUCCESS;
  if (!t)
    return SPX_WIN_FAIL(
        w, MPI_ERR_TYPE,
        "origin_datatype is not a datatype: MPI_DATATYPE_NULL, freed, or never made");
  if (!(t->flags & SPX_T_COMMITTED))
    return SPX_WIN_FAIL(w, MPI_ERR_TYPE,
                        "origin_datatype was not committed: call MPI_Type_commit first");
  if (count < 0)
    return SPX_WIN_FAIL(w, MPI_ERR_COUNT, "origin_count = %lld is negative", (long long)count);
  if (!spx_buffer_ok(addr, count, t))
    return spx_bad_buffer(SPX_K_WIN, (void *)(uintptr_t)w->o.handle, "origin_addr", addr);
  return MPI_SUCCESS;
}

int spx_c_Get_accumulate(const void *origin_addr, int64_t origin_count, spx_type *origin_datatype,
                         void *result_addr, int64_t result_count, spx_type *result_datatype,
                         int target_rank, MPI_Aint target_disp, int64_t target_count,
                         spx_type *target_datatype, spx_op *op, MPI_Win win)
{
  spx_win *w = spx_win_of(win);
  int err = check_origin(w, origin_addr, origin_count, origin_datatype, op);
  if (err != MPI_SUCCESS) return err;
  spx_accumulate a = {origin_addr, origin_datatype, result_addr,  result_datatype,
                      0,           target_datatype, target_count, op};
  return accumulate(w, &a, origin_count, result_count, target_rank, target_disp, ANY_EPOCH);
}

int spx_c_Rget_accumulate(const void *origin_addr, int64_t origin_count, spx_type *origin_datatype,
                          void *result_addr, int64_t result_count, spx_type *result_datatype,
                          int target_rank, MPI_Aint target_disp, int64_t target_count,
                          spx_type *target_datatype, spx_op *op, MPI_Win win, MPI_Request *request)
{
  spx_win *w = spx_win_of(win);
  int err = check_origin(w, origin_addr, origin_count, origin_datatype, op);
  if (err != MPI_SUCCESS) return err;
  spx_accumulate a = {origin_addr, origin_datatype, result_addr,  result_datatype,
                      0,           target_datatype, target_count, op};
  err = accumulate(w, &a, origin_count, result_count, target_rank, target_disp, PASSIVE);
  return err == MPI_SUCCESS ? completed(w, request) : err;
}

/* ---- one element ---- */

int spx_c_Fetch_and_op(const void *origin_addr, void *result_addr, spx_type *datatype,
                       int target_rank, MPI_Aint target_disp, spx_op *op, MPI_Win win)
{
  spx_win *w = spx_win_of(win);
  void *mem = is_array(datatype) ? direct(w, target_rank, target_disp, datatype->size) : NULL;
  if (SPX_LIKELY(mem && origin_addr != result_addr &&
                 (uintptr_t)origin_addr > (uintptr_t)MPI_IN_PLACE) &&
      spx_rma_at_once(w, &w->cells[target_rank].accumulate, mem, origin_addr, result_addr, 1,
                      datatype, op)) {
    if (is_op(op, MPI_NO_OP))
      looks(w, (uintptr_t)mem);
    else
      acts(w);
    return MPI_SUCCESS;
  }
  if (SPX_UNLIKELY(target_rank == MPI_PROC_NULL)) return MPI_SUCCESS;
  if (SPX_UNLIKELY(!(datatype->flags & SPX_T_PREDEFINED)))
    return SPX_WIN_FAIL(w, MPI_ERR_TYPE, "datatype is not a predefined datatype");
  uint64_t addr = 0;
  int err = check_origin(w, origin_addr, 1, datatype, op);
  if (err == MPI_SUCCESS) err = check_op(w, op, datatype);
  if (err == MPI_SUCCESS)
    err = check_target(w, target_rank, target_disp, 1, datatype, ANY_EPOCH, &addr);
  if (SPX_UNLIKELY(err != MPI_SUCCESS)) return err;
  err = spx_rma_fetch_op(w, target_rank, addr, origin_addr, result_addr, spx_rma_element(datatype),
                         op);
  return SPX_LIKELY(err == MPI_SUCCESS) ? err : fail(w, err);
}

/* MPI-5.0, 12.3.4: integers, logicals, bytes and the multi-language types. */
static bool may_compare(const spx_type *t)
{
  if (!(t->flags & SPX_T_PREDEFINED) || !t->basic || t->size > 64) return false;
  switch (spx_basics[spx_rma_element(t)->basic].group) {
  case SPX_BG_C_INTEGER:
  case SPX_BG_FORTRAN_INTEGER:
  case SPX_BG_LOGICAL:
  case SPX_BG_MULTI:
  case SPX_BG_BYTE: return true;
  default: return false;
  }
}

/* A swap that did not come off has only looked. */
static inline void swapped(spx_win *w, uint64_t addr, const void *compare, const void *result,
                           uint64_t n)
{
  if (memcmp(compare, result, n) == 0)
    acts(w);
  else
    looks(w, addr);
}

int spx_c_Compare_and_swap(const void *origin_addr, const void *compare_addr, void *result_addr,
                           spx_type *datatype, int target_rank, MPI_Aint target_disp, MPI_Win win)
{
  spx_win *w = spx_win_of(win);
  if (!may_compare(datatype))
    return SPX_WIN_FAIL(
        w, MPI_ERR_TYPE,
        "datatype is not a predefined integer, logical, byte or multi-language type");
  void *mem = direct(w, target_rank, target_disp, datatype->size);
  if (SPX_LIKELY(mem && spx_rma_swap_at_once(w, &w->cells[target_rank].accumulate, mem, origin_addr,
                                             compare_addr, result_addr, datatype->size))) {
    swapped(w, (uintptr_t)mem, compare_addr, result_addr, (uint64_t)datatype->size);
    return MPI_SUCCESS;
  }
  if (target_rank == MPI_PROC_NULL) return MPI_SUCCESS;
  uint64_t addr = 0;
  int err = check_target(w, target_rank, target_disp, 1, datatype, ANY_EPOCH, &addr);
  if (err != MPI_SUCCESS) return err;
  err =
      spx_rma_compare_swap(w, target_rank, addr, origin_addr, compare_addr, result_addr, datatype);
  if (err != MPI_SUCCESS) return fail(w, err);
  swapped(w, addr, compare_addr, result_addr, (uint64_t)datatype->size);
  return MPI_SUCCESS;
}
