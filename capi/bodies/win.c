/* win.c - making windows: MPI_Win_create, _allocate, _allocate_shared, _create_dynamic. MPI-5.0, 12.2.
 *
 * The processes make a communicator for the window, tell each other what they bring, and agree on what it needs of the memory
 * file: cells for locks always, mailboxes where the kernel does not let every process read every other, and the window's own
 * memory when MPI allocates it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "basic.h"
#include "coll.h"
#include "comm.h"
#include "dp.h"
#include "error.h"
#include "net.h"
#include "win.h"

#define FN       spx_fn_name[spx_fn]
#define PAGE     4096
#define MOST     ((MPI_Aint)1 << 46) /* the sum over all processes has room in 63 bits */
#define PAGES(n) (((uint64_t)(n) + PAGE - 1) / PAGE * PAGE)

/* What a process brings. Rank 0 brings the window's context, too, and a plot of memory if it has one to spare. */
typedef struct {
  int64_t base, size, unit;
  int64_t flags;
  int64_t ctx, plot, plot_bytes;
} share;
enum { APART = 1 /* alloc_shared_noncontig */, POOR = 2 /* no memory for this process's part */ };

static int allocates(int flavor) { return flavor == MPI_WIN_FLAVOR_ALLOCATE || flavor == MPI_WIN_FLAVOR_SHARED; }

#define fail(comm, code, ...) spx_raise(SPX_K_COMM, (void *)(uintptr_t)(comm)->o.handle, code, FN, __VA_ARGS__)

/* ---- a communicator of the window's own ------------------------------------------------------------------------ */

/* It has the processes of comm, and the engine does not know it before it is revoked. Errors on it come back to us. */
static int own_comm(spx_win *w, const spx_comm *comm)
{
  w->comm = (spx_comm *)spx_new(SPX_K_COMM);
  if (!w->comm) return MPI_ERR_NO_MEM;
  uint32_t *ranks = spx_ranks_share(comm->local);
  w->comm->session = comm->session;
  w->comm->flags |= (comm->flags & SPX_C_FAR) | SPX_C_TWIN;
  spx_ref(&spx_errors_return.o);
  w->comm->errh = &spx_errors_return;
  return spx_comm_fill(w->comm, comm->rank, comm->size, comm->size, 0, ranks, ranks);
}

MPI_Group spx_win_group(spx_win *w)
{
  uintptr_t group = (uintptr_t)MPI_GROUP_NULL;
  spx_frame f = {.fn = SPX_IN_COMM_GROUP};
  f.a[0].p = w->comm;
  f.a[1].p = &group;
  return spx_go_internal(&f) == MPI_SUCCESS ? (MPI_Group)group : MPI_GROUP_NULL;
}

/* ---- memory ---------------------------------------------------------------------------------------------------- */

/* Does the process share memory with this one? */
static bool is_near(const spx_win *w, int rank) { return spx_is_near(w->comm->peer[rank]); }

/* Where the memory of each process is in the window's part of the file, behind the cells; its end. */
static uint64_t lay_out(spx_win *w, const share *all, uint64_t *at)
{
  uint64_t end = spx_win_control_bytes(w->size, w->boxed);
  if (!allocates(w->flavor)) return end;
  int apart = w->flavor == MPI_WIN_FLAVOR_ALLOCATE;
  for (int i = 0; i < w->size; i++) apart |= (all[i].flags & APART) != 0;
  for (int i = 0; i < w->size; i++) {
    at[i] = end;
    if (!is_near(w, i)) continue;
    end += apart ? PAGES(all[i].size) : (uint64_t)all[i].size;
  }
  return end;
}

/* The window has the context that rank 0 has brought. */
static void name(spx_win *w, uint64_t ctx)
{
  spx_comm_set_ctx(w->comm, ctx);
  spx_ctrl_expected(); /* others may have given the window up before this process knows of it */
}

/* Other processes may use the window, which this one has freed or never had, since a process has died: none of them is to wait for this one.
 * What they call next on the window that needs all, or this process, fails. */
static void give_up(spx_win *w, int err)
{
  if (err != MPIX_ERR_PROC_FAILED && err != MPIX_ERR_REVOKED) return;
  uint32_t fn = spx_fn;
  if (w->comm && w->comm->ctx) PMPIX_Comm_revoke((MPI_Comm)(uintptr_t)w->comm->o.handle);
  spx_fn = fn;
}

/* Each process goes through all rounds of a creation, also after a failure: then none that has not seen it waits for one that has. */
static int first_of(int err, int next) { return err != MPI_SUCCESS ? err : next; }

/* Memory that the leader takes for all who share it, when what it had to spare is not enough: head gets an errno, the place, the size. A
 * leader that has seen a failure takes none. */
static int take_memory(spx_win *w, spx_comm *comm, uint64_t bytes, int64_t head[3], int64_t *all)
{
  int64_t mine[3] = {head[0], head[1], head[2]};
  if (w->rank == w->leader && !mine[0] && ((uint64_t)head[2] < bytes || w->elsewhere)) {
    uint64_t offset, got;
    mine[0] = spx_plot_take(bytes, &offset, &got);
    mine[1] = (int64_t)offset;
    mine[2] = (int64_t)got;
  }
  int err = spx_inside_gather(comm, mine, all, sizeof mine);
  if (err == MPI_SUCCESS) memcpy(head, all + 3 * w->leader, sizeof mine);
  if (err != MPI_SUCCESS && w->rank == w->leader && !mine[0] && mine[1] != head[1]) { /* for destroy */
    w->file_offset = (uint64_t)mine[1];
    w->file_bytes = (uint64_t)mine[2];
  }
  return err;
}

/* The window's memory lies in the file of the leader's job. */
static char *map_part(spx_win *w, const spx_comm *comm)
{
  uint32_t there;
  const spx_file *f = w->rank == w->leader ? &spx_own : spx_place(comm->peer[w->leader], &there);
  w->guest = f != &spx_own;
  if (!w->guest) return spx_plot_map(w->file_offset, w->file_bytes);
  void *p = mmap(NULL, w->file_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, f->fd, (off_t)w->file_offset);
  return p == MAP_FAILED ? NULL : p;
}

/* Maps the window's memory, at all processes or at none. err: what has failed before. */
static int get_memory(spx_win *w, spx_comm *comm, const share *first, uint64_t bytes, int64_t *room, int err)
{
  int64_t head[3] = {0, 0, 0};
  if (err == MPI_SUCCESS) {
    head[1] = first->plot;
    head[2] = first->plot_bytes;
  } else
    head[0] = ECANCELED;
  err = first_of(err, take_memory(w, comm, bytes, head, room));
  int64_t failed = err != MPI_SUCCESS ? ECANCELED : head[0];
  if (!failed) {
    w->file_offset = (uint64_t)head[1];
    w->file_bytes = (uint64_t)head[2];
    w->used = bytes;
    w->map = map_part(w, comm);
    failed = w->map == NULL ? ENOMEM : 0;
  }
  err = first_of(err, spx_inside_greatest(comm, &failed));
  if (err != MPI_SUCCESS || !failed) return err;
  if (failed == ECANCELED) {
    spx_detail("another process cannot make the window: a process has failed");
    return MPIX_ERR_PROC_FAILED;
  }
  spx_detail("no memory for the %llu bytes of the window: %s", (unsigned long long)bytes, strerror((int)failed));
  return MPI_ERR_NO_MEM;
}

static void set_targets(spx_win *w, const share *all, const uint64_t *at)
{
  for (int i = 0; i < w->size; i++) {
    spx_target *t = &w->targets[i];
    t->proc = w->comm->peer[i];
    t->size = w->flavor == MPI_WIN_FLAVOR_DYNAMIC ? -1 : all[i].size;
    t->unit = all[i].unit;
    t->far = !is_near(w, i);
    t->base = t->far ? 0 : (uint64_t)all[i].base;
    if (t->far) continue;
    if (allocates(w->flavor)) {
      t->here = w->map + at[i];
      t->base = (uint64_t)(uintptr_t)t->here;
    }
  }
  if (w->targets[w->rank].here) w->base = w->targets[w->rank].here;
}

enum {
  BOXES_MAX = 64
}; /* processes that get mailboxes also when the kernel lets them reach each other: for short runs */

/* Others reach the memory by the kernel, or by mail. */
static int is_reached(const spx_win *w)
{
  return w->flavor == MPI_WIN_FLAVOR_CREATE || w->flavor == MPI_WIN_FLAVOR_DYNAMIC;
}

/* Does the kernel keep any of us from reaching any of the others? Asked when all have been heard of: one that is not yet in MPI cannot be
 * reached either. */
static int ask_for_mail(spx_win *w, spx_comm *comm, int err)
{
  int64_t mail = 0;
  if (!is_reached(w)) return err;
  for (int i = 0; err == MPI_SUCCESS && i < w->size; i++)
    if (i != w->rank && is_near(w, i) && !spx_may_read(comm->peer[i])) mail = 1;
  err = first_of(err, spx_inside_greatest(comm, &mail));
  w->mail = mail != 0;
  w->boxed = mail || (w->size > 1 && w->size <= BOXES_MAX);
  return err;
}

/* What this process needs by itself. Where memory is out the others will learn of it. */
static void prepare(spx_win *w, const spx_comm *comm, share *mine)
{
  w->targets = calloc((size_t)w->size, sizeof *w->targets);
  w->starts = malloc((size_t)w->size * sizeof *w->starts);
  w->waits = calloc((size_t)w->size, sizeof *w->waits);
  int poor = !w->targets || !w->starts || !w->waits || own_comm(w, comm) != MPI_SUCCESS;
  if (!poor && w->rank == 0) {
    mine->ctx = (int64_t)spx_comm_context();
    poor = mine->ctx == 0;
    name(w, (uint64_t)mine->ctx);
  }
  if (poor) mine->flags |= POOR;
  if (!poor && w->rank == 0 && !w->elsewhere) mine->plot_bytes = (int64_t)spx_plot_spare((uint64_t *)&mine->plot);
}

static int is_rich(const spx_win *w, const share *all)
{
  int64_t flags = 0;
  for (int i = 0; i < w->size; i++) flags |= all[i].flags;
  if (!(flags & POOR)) return MPI_SUCCESS;
  spx_detail("no memory for a window");
  return MPI_ERR_NO_MEM;
}

/* The window is made by what all bring; err: that could not be heard. */
static int put_together(spx_win *w, spx_comm *comm, const share *all, uint64_t *at, int64_t *room, int err)
{
  if (err == MPI_SUCCESS) err = is_rich(w, all);
  if (err == MPI_SUCCESS && w->rank != 0) name(w, (uint64_t)all[0].ctx);
  err = ask_for_mail(w, comm, err);
  err = get_memory(w, comm, &all[0], err == MPI_SUCCESS ? lay_out(w, all, at) : 0, room, err);
  if (err == MPI_SUCCESS) {
    set_targets(w, all, at);
    spx_win_control_set(w);
    if (w->boxed) spx_rma_serve(w);
  }
  if (SPX_LIKELY(!w->elsewhere)) return err;
  int64_t failed = err != MPI_SUCCESS ? err : spx_rma_far_serve(w);
  err = first_of(err, spx_inside_greatest(comm, &failed));
  if (err == MPI_SUCCESS && failed)
    spx_detail(failed == MPI_ERR_NO_MEM ? "no memory for a window" : "another process cannot make the window");
  return first_of(err, (int)failed);
}

static int set_up(spx_win *w, spx_comm *comm, share *mine)
{
  share *all = malloc((size_t)w->size * (sizeof *all + 4 * sizeof(uint64_t)));
  if (!all) {
    spx_detail("no memory for a window");
    return MPI_ERR_NO_MEM;
  }
  uint64_t *at = (uint64_t *)(all + w->size);
  prepare(w, comm, mine);
  int err = spx_inside_gather(comm, mine, all, sizeof *mine);
  err = put_together(w, comm, all, at, (int64_t *)(at + w->size), err);
  if (mine->plot_bytes && w->file_offset != (uint64_t)mine->plot)
    spx_plot_give((uint64_t)mine->plot, (uint64_t)mine->plot_bytes, NULL, 0);
  free(all);
  return err;
}

/* Frees what a window has; nobody uses it any more. together: all processes have said so. */
static void destroy(spx_win *w, int together)
{
  if (w->boxed && w->boxes) spx_rma_serve_end(w);
  spx_rma_far_end(w);
  if (w->rank == w->leader && w->file_bytes) {
    if (together)
      spx_plot_give(w->file_offset, w->file_bytes, w->map, w->used);
    else
      spx_file_drop(w->file_offset, w->file_bytes);
  }
  if (w->map && w->guest)
    spx_file_unmap(w->map, w->file_bytes);
  else if (w->map)
    spx_plot_unmap(w->map, w->file_offset, w->file_bytes, together);
  for (spx_attached *a = w->attached, *next; a; a = next) {
    next = a->next;
    free(a);
  }
  uint32_t fn = spx_fn;
  if (w->group && w->group != MPI_GROUP_NULL) PMPI_Group_free(&w->group);
  if (w->comm) spx_retire(SPX_K_COMM, &w->comm->o);
  spx_fn = fn;
  if (w->errh) spx_unref(SPX_K_ERRH, &w->errh->o);
  free(w->targets);
  free(w->starts);
  free(w->waits);
  spx_retire(SPX_K_WIN, &w->o);
}

static int info_is_true(MPI_Info info, const char *key)
{
  char value[8] = "";
  int n = sizeof value, found = 0;
  if (info == MPI_INFO_NULL) return 0;
  uint32_t fn = spx_fn;
  PMPI_Info_get_string(info, key, &n, value, &found);
  spx_fn = fn;
  return found && strcmp(value, "true") == 0;
}

/* Some process does not share memory with this one; then each of them has one that does not. */
static bool is_elsewhere(const spx_comm *comm)
{
  for (int i = 0; (comm->flags & SPX_C_FAR) && i < comm->size; i++)
    if (!spx_is_near(comm->peer[i])) return true;
  return false;
}

static int find_leader(const spx_comm *comm)
{
  int i = 0;
  while (i != comm->rank && !spx_is_near(comm->peer[i])) i++;
  return i;
}

static int make(int flavor, void *base, MPI_Aint size, int64_t unit, MPI_Info info, spx_comm *comm, MPI_Win *win)
{
  *win = MPI_WIN_NULL;
  if (comm->flags & SPX_C_INTER)
    return fail(comm, MPI_ERR_COMM, "comm is an intercommunicator; a window needs an intracommunicator");
  if ((comm->flags & SPX_C_FAR) && flavor == MPI_WIN_FLAVOR_SHARED)
    return fail(comm, MPI_ERR_RMA_SHARED, "comm has processes of several jobs or hosts; memory is shared within a job");
  if (size < 0) return fail(comm, MPI_ERR_SIZE, "size = %lld is negative", (long long)size);
  if (allocates(flavor) && size > MOST)
    return fail(comm, MPI_ERR_NO_MEM, "size = %lld: at most %lld bytes are possible", (long long)size, (long long)MOST);
  if (unit <= 0) return fail(comm, MPI_ERR_DISP, "disp_unit = %lld is not positive", (long long)unit);
  if (flavor == MPI_WIN_FLAVOR_CREATE && size > 0 && (!base || base == MPI_IN_PLACE))
    return fail(comm, MPI_ERR_BASE, "base is %s", base ? "MPI_IN_PLACE" : "NULL");
  spx_win *w = (spx_win *)spx_new(SPX_K_WIN);
  if (!w)
    return fail(comm, MPI_ERR_NO_MEM,
                "there is no room for another window (at most %u exist): free those that are not used any more",
                1u << SPX_H_INDEX_BITS);
  w->flavor = flavor;
  w->model = MPI_WIN_UNIFIED;
  w->base = base;
  w->bytes = size;
  w->unit = (int)unit;
  w->rank = comm->rank;
  w->size = comm->size;
  w->elsewhere = is_elsewhere(comm);
  w->leader = w->elsewhere ? find_leader(comm) : 0;
  w->group = MPI_GROUP_NULL;
  w->errh = spx_initial_errh();
  spx_ref(&w->errh->o);
  share mine = {.base = (int64_t)(uintptr_t)base, .size = size, .unit = unit};
  if (flavor == MPI_WIN_FLAVOR_SHARED && info_is_true(info, "alloc_shared_noncontig")) mine.flags = APART;
  int err = set_up(w, comm, &mine);
  if (err != MPI_SUCCESS) {
    char text[512];
    strncpy(text, spx_detail_text(), sizeof text - 1)[sizeof text - 1] = 0;
    give_up(w, err); /* the last round of a creation may end differently at different processes */
    destroy(w, 0);
    return fail(comm, err, "%s", text);
  }
  *win = (MPI_Win)(uintptr_t)w->o.handle;
  if (info == MPI_INFO_NULL) return MPI_SUCCESS;
  uint32_t fn = spx_fn;
  err = PMPI_Win_set_info(*win, info);
  spx_fn = fn;
  return err;
}

int spx_c_Win_create(void *base, MPI_Aint size, int64_t disp_unit, MPI_Info info, spx_comm *comm, MPI_Win *win)
{
  return make(MPI_WIN_FLAVOR_CREATE, base, size, disp_unit, info, comm, win);
}

static int allocate(int flavor, MPI_Aint size, int64_t disp_unit, MPI_Info info, spx_comm *comm, void *baseptr,
                    MPI_Win *win)
{
  int err = make(flavor, NULL, size, disp_unit, info, comm, win);
  if (err == MPI_SUCCESS) *(void **)baseptr = spx_win_of(*win)->base;
  return err;
}

int spx_c_Win_allocate(MPI_Aint size, int64_t disp_unit, MPI_Info info, spx_comm *comm, void *baseptr, MPI_Win *win)
{
  return allocate(MPI_WIN_FLAVOR_ALLOCATE, size, disp_unit, info, comm, baseptr, win);
}

int spx_c_Win_allocate_shared(MPI_Aint size, int64_t disp_unit, MPI_Info info, spx_comm *comm, void *baseptr,
                              MPI_Win *win)
{
  return allocate(MPI_WIN_FLAVOR_SHARED, size, disp_unit, info, comm, baseptr, win);
}

int spx_c_Win_create_dynamic(MPI_Info info, spx_comm *comm, MPI_Win *win)
{
  return make(MPI_WIN_FLAVOR_DYNAMIC, NULL, 0, 1, info, comm, win);
}

/* ---- freeing: the engine deletes attributes first (capi/win.go) ---------------------------------------------- */

int spx_win_may_go(uintptr_t handle)
{
  spx_win *w = spx_win_of((MPI_Win)handle);
  if (!w) {
    spx_detail("win is MPI_WIN_NULL or has been freed");
    return MPI_ERR_WIN;
  }
  if (!spx_win_busy(w)) return MPI_SUCCESS;
  spx_detail("an epoch is open on the window: complete it first");
  return MPI_ERR_RMA_SYNC;
}

/* All processes of the window are here, and will not touch its memory again. Every process goes through all rounds, whoever has
 * failed. */
static int farewell(spx_win *w)
{
  enum { TAG_FREE = 3 };
  if (w->comm->plans) return spx_win_barrier(w);
  spx_type *byte = (spx_type *)spx_get(SPX_K_TYPE, MPI_BYTE);
  int err = MPI_SUCCESS;
  for (int d = 1; d < w->size; d *= 2) {
    int to = (w->rank + d) % w->size, from = (w->rank - d + w->size) % w->size;
    int e = spx_send(NULL, 0, byte, to, TAG_FREE, w->comm, SPX_CTX_P2P, SPX_M_STANDARD);
    int f = spx_recv(NULL, 0, byte, from, TAG_FREE, w->comm, SPX_CTX_P2P, MPI_STATUS_IGNORE);
    if (err == MPI_SUCCESS) err = e != MPI_SUCCESS ? e : f;
  }
  return err;
}

int64_t spx_win_go(spx_word *a)
{
  spx_win *w = spx_win_of((MPI_Win)a[0].p);
  int err = farewell(w);
  if (w->boxed || w->far) { /* no process is asked for anything, nor looks at its mailbox, when the memory goes */
    if (w->boxed) spx_rma_serve_end(w);
    w->boxed = 0;
    int again = farewell(w);
    if (err == MPI_SUCCESS) err = again;
  }
  give_up(w, err);                /* the dead has not told who was there */
  destroy(w, err == MPI_SUCCESS); /* also when a member has failed: there is nothing more to be done with it */
  return err;
}

int spx_c_Win_free(MPI_Win *win)
{
  spx_win *w = spx_win_of(*win);
  if (w->o.go) { /* the engine knows it, and maybe attributes of it */
    spx_frame frame = {.fn = spx_fn, .a = {{.u = (uintptr_t)win}}};
    return spx_go(&frame);
  }
  spx_word handle = {.p = *win};
  int err = spx_win_may_go((uintptr_t)*win);
  if (err != MPI_SUCCESS) return SPX_WIN_FAIL(w, err, "%s", spx_detail_text());
  err = (int)spx_win_go(&handle);
  *win = MPI_WIN_NULL;
  if (err == MPI_SUCCESS) return err;
  return spx_raise(0, NULL, err, FN,
                   "a process of the window has failed, or has not got the window; it is freed all the same");
}
