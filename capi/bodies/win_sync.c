/* win_sync.c - synchronisation: fence, post-start-complete-wait, locks, flush. MPI-5.0, 12.5.
 *
 * Operations are complete when their functions return, so closing an epoch means notifying the
 * peers, and only they have to be waited for. Messages travel on the window's own communicator. */
#include "coll.h"
#include "win.h"

enum { TAG_POST = 1, TAG_COMPLETE = 2 };
enum { PATIENT = 32 }; /* flushes in vain before the processor is given away */

static int fail_sync(const spx_win *w, const char *why)
{
  return SPX_WIN_FAIL(w, MPI_ERR_RMA_SYNC, "%s", why);
}

static int fail(const spx_win *w, int err)
{
  return SPX_WIN_FAIL(w, err, "%s", spx_rma_given_up(w) ? SPX_RMA_GIVEN_UP : spx_detail_text());
}

static int bad_assert(const spx_win *w, int assert, int allowed)
{
  if (SPX_LIKELY(!(assert & ~allowed))) return MPI_SUCCESS;
  return SPX_WIN_FAIL(w, MPI_ERR_ASSERT, "assert = %d has bits that mean nothing here", assert);
}

#define CHECK_ASSERT(w, assert, allowed)                                                           \
  do {                                                                                             \
    int bad_ = bad_assert(w, assert, allowed);                                                     \
    if (SPX_UNLIKELY(bad_ != MPI_SUCCESS)) return bad_;                                            \
  } while (0)

static int bad_rank(const spx_win *w, int rank)
{
  if (SPX_LIKELY((unsigned)rank < (unsigned)w->size)) return MPI_SUCCESS;
  return SPX_WIN_FAIL(w, MPI_ERR_RANK, "rank = %d is not a rank of the window (size %d)", rank,
                      w->size);
}

static spx_type *byte_type(void) { return (spx_type *)spx_get(SPX_K_TYPE, MPI_BYTE); }

int64_t spx_win_far(spx_word *a)
{
  if (a[1].i) return spx_rma_far_serve(a[0].p);
  spx_rma_far_end(a[0].p);
  return 0;
}

/* All processes of the window are here: an error class, with a detail text. Everything stored
 * before it is seen after it. */
static int barrier(spx_win *w)
{
  spx_coll c;
  spx_coll_on(&c, w->comm, SPX_COLL_BARRIER);
  spx_plan *p;
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  int err = spx_coll_plan(w->comm, &c.key, &p);
  if (err == MPI_SUCCESS) {
    err = spx_plan_run(p, &c);
    spx_plan_unref(p);
  }
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  return err;
}

/* ---- fence ---- */

int spx_c_Win_fence(int assert, MPI_Win win)
{
  spx_win *w = spx_win_of(win);
  CHECK_ASSERT(w, assert,
               MPI_MODE_NOSTORE | MPI_MODE_NOPUT | MPI_MODE_NOPRECEDE | MPI_MODE_NOSUCCEED);
  if (w->access > SPX_A_FENCE || w->exposed)
    return fail_sync(w, "another epoch is open on the window: complete it before a fence");
  if ((assert &MPI_MODE_NOPRECEDE) && w->access == SPX_A_FENCE)
    return fail_sync(
        w, "assert has MPI_MODE_NOPRECEDE, but operations were begun since the last fence");
  int err = barrier(w);
  w->access = assert &MPI_MODE_NOSUCCEED ? SPX_A_NONE : SPX_A_FENCE_OPEN;
  return err == MPI_SUCCESS ? err : fail(w, err);
}

/* ---- post, start, complete, wait ---- */

/* The ranks in the window of a group's members: *n of them in ranks (room for the window's size).
 * Raises. */
static int ranks_of(spx_win *w, MPI_Group group, int *ranks, int *n)
{
  spx_frame f = {.fn = SPX_IN_WIN_RANKS,
                 .a = {{.u = w->o.handle}, {.u = (uintptr_t)group}, {.p = ranks}, {.p = n}}};
  int err = spx_go_internal(&f);
  return err == MPI_SUCCESS ? err : fail(w, err);
}

/* Sends a message without content, and does not wait for it. */
static int tell(spx_win *w, int rank, int tag)
{
  spx_request *r;
  int err = spx_isend(NULL, 0, byte_type(), rank, tag, w->comm, SPX_CTX_P2P, SPX_M_STANDARD,
                      SPX_RF_INTERNAL, &r);
  if (err != MPI_SUCCESS) return err;
  MPI_Request h = (MPI_Request)(uintptr_t)r->o.handle;
  if (atomic_load_explicit(&r->done, memory_order_acquire)) err = r->error;
  if (err != MPI_SUCCESS) spx_request_detail(r);
  spx_c_Request_free(&h);
  return err;
}

static void drop_waits(spx_win *w)
{
  for (int i = 0; i < w->nwaits; i++) {
    if (!w->waits[i]) continue;
    if (!atomic_load_explicit(&w->waits[i]->done, memory_order_acquire)) spx_cancel(w->waits[i]);
    spx_request_free(w->waits[i]);
    w->waits[i] = NULL;
  }
  w->nwaits = 0;
  w->exposed = 0;
}

int spx_c_Win_post(MPI_Group group, int assert, MPI_Win win)
{
  spx_win *w = spx_win_of(win);
  CHECK_ASSERT(w, assert, MPI_MODE_NOCHECK | MPI_MODE_NOSTORE | MPI_MODE_NOPUT);
  if (w->exposed)
    return fail_sync(w, "an exposure epoch is open: end it with MPI_Win_wait or MPI_Win_test");
  if (w->access == SPX_A_FENCE) return fail_sync(w, "a fence epoch is open on the window");
  int n, *ranks = spx_temp_get((size_t)w->size * sizeof *ranks);
  if (!ranks) return SPX_WIN_FAIL(w, MPI_ERR_NO_MEM, "no memory for a group");
  int err = ranks_of(w, group, ranks, &n);
  if (err != MPI_SUCCESS) {
    spx_temp_put(ranks, (size_t)w->size * sizeof *ranks);
    return err;
  }
  if (w->access == SPX_A_FENCE_OPEN) w->access = SPX_A_NONE;
  w->exposed = 1;
  w->nwaits = 0;
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  for (int i = 0; i < n && err == MPI_SUCCESS; i++) {
    err = spx_irecv(NULL, 0, byte_type(), ranks[i], TAG_COMPLETE, w->comm, SPX_CTX_P2P,
                    SPX_RF_INTERNAL, &w->waits[w->nwaits]);
    if (err == MPI_SUCCESS) w->nwaits++;
  }
  for (int i = 0; i < n && err == MPI_SUCCESS && !(assert &MPI_MODE_NOCHECK); i++)
    err = tell(w, ranks[i], TAG_POST);
  spx_temp_put(ranks, (size_t)w->size * sizeof *ranks);
  if (err == MPI_SUCCESS) return MPI_SUCCESS;
  err = fail(w, err);
  return err;
}

int spx_c_Win_start(MPI_Group group, int assert, MPI_Win win)
{
  spx_win *w = spx_win_of(win);
  CHECK_ASSERT(w, assert, MPI_MODE_NOCHECK);
  if (w->access > SPX_A_FENCE_OPEN)
    return fail_sync(w, "another access epoch is open on the window");
  int n, err = ranks_of(w, group, w->starts, &n);
  if (err != MPI_SUCCESS) return err;
  for (int i = 0; i < n && err == MPI_SUCCESS && !(assert &MPI_MODE_NOCHECK); i++)
    err = spx_recv(NULL, 0, byte_type(), w->starts[i], TAG_POST, w->comm, SPX_CTX_P2P,
                   MPI_STATUS_IGNORE);
  w->access = SPX_A_PSCW;
  w->nstarts = n;
  for (int i = 0; i < n; i++) w->targets[w->starts[i]].started = 1;
  return err == MPI_SUCCESS ? err : fail(w, err);
}

int spx_c_Win_complete(MPI_Win win)
{
  spx_win *w = spx_win_of(win);
  if (w->access != SPX_A_PSCW) return fail_sync(w, "there was no MPI_Win_start");
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  int err = MPI_SUCCESS;
  for (int i = 0; i < w->nstarts; i++) {
    int e = tell(w, w->starts[i], TAG_COMPLETE);
    if (e != MPI_SUCCESS) err = e;
    w->targets[w->starts[i]].started = 0;
  }
  w->nstarts = 0;
  w->access = SPX_A_NONE;
  return err == MPI_SUCCESS ? err : fail(w, err);
}

static int end_exposure(spx_win *w)
{
  int err = MPI_SUCCESS;
  for (int i = 0; i < w->nwaits; i++)
    if (w->waits[i]->error != MPI_SUCCESS) {
      err = w->waits[i]->error;
      spx_request_detail(w->waits[i]);
    }
  drop_waits(w);
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  return err == MPI_SUCCESS ? err : fail(w, err);
}

int spx_c_Win_wait(MPI_Win win)
{
  spx_win *w = spx_win_of(win);
  if (!w->exposed) return fail_sync(w, "there was no MPI_Win_post");
  for (int i = 0; i < w->nwaits; i++) spx_wait(w->waits[i]);
  return end_exposure(w);
}

int spx_c_Win_test(MPI_Win win, int *flag)
{
  spx_win *w = spx_win_of(win);
  *flag = 0;
  if (!w->exposed) return fail_sync(w, "there was no MPI_Win_post");
  spx_progress();
  for (int i = 0; i < w->nwaits; i++)
    if (!atomic_load_explicit(&w->waits[i]->done, memory_order_acquire)) return MPI_SUCCESS;
  *flag = 1;
  return end_exposure(w);
}

/* ---- locks ---- */

int spx_c_Win_lock(int lock_type, int rank, int assert, MPI_Win win)
{
  spx_win *w = spx_win_of(win);
  if (lock_type != MPI_LOCK_SHARED && lock_type != MPI_LOCK_EXCLUSIVE)
    return SPX_WIN_FAIL(w, MPI_ERR_LOCKTYPE,
                        "lock_type = %d is neither MPI_LOCK_SHARED nor MPI_LOCK_EXCLUSIVE",
                        lock_type);
  CHECK_ASSERT(w, assert, MPI_MODE_NOCHECK);
  if (w->access > SPX_A_FENCE_OPEN && w->access != SPX_A_LOCK)
    return fail_sync(w, "another access epoch is open on the window");
  if (w->exposed)
    return fail_sync(
        w, "an exposure epoch is open on the window: its memory cannot be locked as well");
  spx_held how = assert &MPI_MODE_NOCHECK          ? SPX_HELD_UNCHECKED
                 : lock_type == MPI_LOCK_EXCLUSIVE ? SPX_HELD_EXCLUSIVE
                                                   : SPX_HELD_SHARED;
  if (rank != MPI_PROC_NULL) {
    int err = bad_rank(w, rank);
    if (err != MPI_SUCCESS) return err;
    if (w->targets[rank].held) return fail_sync(w, "this process has locked the rank already");
    if (how != SPX_HELD_UNCHECKED) err = spx_win_lock(w, rank, how);
    if (SPX_UNLIKELY(err != MPI_SUCCESS)) return fail(w, err);
    w->targets[rank].held = (uint8_t)how;
  }
  w->access = SPX_A_LOCK;
  w->locks++;
  return MPI_SUCCESS;
}

/* Publishes now and then that this process is in MPI, and notices deaths. A program that flushes
 * repeatedly and only polls one place, or does nothing in between, waits for a peer: it yields the
 * processor where ranks outnumber processors. Others keep it: they wait for no peer, and a switch
 * of processes costs as much as fifty operations. */
static void look_around(spx_win *w)
{
  if (w->am || w->far || (++w->vain > PATIENT && w->vain % 4 == 0))
    spx_progress();
  else if (++w->quiet % 64 == 0)
    spx_poll_brief();
}

static void release(spx_win *w, int rank)
{
  spx_win_unlock(w, rank, (spx_held)w->targets[rank].held);
  w->targets[rank].held = SPX_HELD_NOT;
}

/* The end of an epoch reports targets that have failed meanwhile. */
static int check_alive(const spx_win *w, int rank)
{
  if (SPX_LIKELY(!spx_ndead) || !spx_proc_dead(w->targets[rank].proc)) return MPI_SUCCESS;
  return SPX_WIN_FAIL(w, MPIX_ERR_PROC_FAILED, "rank %d of the window has failed", rank);
}

int spx_c_Win_unlock(int rank, MPI_Win win)
{
  spx_win *w = spx_win_of(win);
  if (w->access != SPX_A_LOCK) return fail_sync(w, "there was no MPI_Win_lock");
  if (rank != MPI_PROC_NULL) {
    int err = bad_rank(w, rank);
    if (err != MPI_SUCCESS) return err;
    if (!w->targets[rank].held) return fail_sync(w, "this process has not locked the rank");
    release(w, rank);
  }
  if (--w->locks == 0) w->access = SPX_A_NONE;
  look_around(w);
  return rank == MPI_PROC_NULL ? MPI_SUCCESS : check_alive(w, rank);
}

int spx_c_Win_lock_all(int assert, MPI_Win win)
{
  spx_win *w = spx_win_of(win);
  CHECK_ASSERT(w, assert, MPI_MODE_NOCHECK);
  if (w->access > SPX_A_FENCE_OPEN)
    return fail_sync(w, "another access epoch is open on the window");
  if (w->exposed)
    return fail_sync(
        w, "an exposure epoch is open on the window: its memory cannot be locked as well");
  spx_held how = assert &MPI_MODE_NOCHECK ? SPX_HELD_UNCHECKED : SPX_HELD_SHARED;
  for (int i = 0; i < w->size; i++) {
    if (spx_ndead && spx_proc_dead(w->targets[i].proc)) continue; /* operations on it fail */
    int err = how == SPX_HELD_UNCHECKED ? MPI_SUCCESS : spx_win_lock(w, i, how);
    if (err == MPIX_ERR_PROC_FAILED) continue;
    w->targets[i].held = (uint8_t)how;
  }
  w->access = SPX_A_LOCK_ALL;
  return MPI_SUCCESS;
}

int spx_c_Win_unlock_all(MPI_Win win)
{
  spx_win *w = spx_win_of(win);
  if (w->access != SPX_A_LOCK_ALL) return fail_sync(w, "there was no MPI_Win_lock_all");
  int err = MPI_SUCCESS, dead = -1;
  for (int i = 0; i < w->size; i++) {
    if (w->targets[i].held) release(w, i);
    if (spx_ndead && spx_proc_dead(w->targets[i].proc)) dead = i;
  }
  w->access = SPX_A_NONE;
  look_around(w);
  if (SPX_UNLIKELY(dead >= 0)) err = check_alive(w, dead);
  return err;
}

/* ---- flush and sync ---- */

static int flush(spx_win *w, int rank)
{
  if (w->access != SPX_A_LOCK && w->access != SPX_A_LOCK_ALL)
    return fail_sync(w, "no lock is held: flush is for passive target epochs");
  if (rank != MPI_PROC_NULL) {
    int err = bad_rank(w, rank);
    if (err != MPI_SUCCESS) return err;
    if (w->access == SPX_A_LOCK && !w->targets[rank].held)
      return fail_sync(w, "this process has not locked the rank");
  }
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  look_around(w);
  return rank == MPI_PROC_NULL ? MPI_SUCCESS : check_alive(w, rank);
}

static int flush_all(spx_win *w)
{
  if (w->access != SPX_A_LOCK && w->access != SPX_A_LOCK_ALL)
    return fail_sync(w, "no lock is held: flush is for passive target epochs");
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  look_around(w);
  for (int i = 0; SPX_UNLIKELY(spx_ndead) && i < w->size; i++) {
    int err = w->targets[i].held ? check_alive(w, i) : MPI_SUCCESS;
    if (err != MPI_SUCCESS) return err;
  }
  return MPI_SUCCESS;
}

int spx_c_Win_flush(int rank, MPI_Win win) { return flush(spx_win_of(win), rank); }
int spx_c_Win_flush_local(int rank, MPI_Win win) { return flush(spx_win_of(win), rank); }
int spx_c_Win_flush_all(MPI_Win win) { return flush_all(spx_win_of(win)); }
int spx_c_Win_flush_local_all(MPI_Win win) { return flush_all(spx_win_of(win)); }

int spx_c_Win_sync(MPI_Win win)
{
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  look_around(spx_win_of(win));
  return MPI_SUCCESS;
}
