/* win.c - making windows: MPI_Win_create, _allocate, _allocate_shared, _create_dynamic. MPI-5.0, 12.2.
 *
 * The processes make a communicator for the window, tell each other what they bring, and agree on what it needs of the memory
 * file: cells for locks always, mailboxes where the kernel does not let every process read every other, and the window's own
 * memory when MPI allocates it. */
#include <stdlib.h>
#include <string.h>
#include "basic.h"
#include "error.h"
#include "win.h"

#define FN       spx_fn_name[spx_fn]
#define PAGE     4096
#define MOST     ((MPI_Aint)1 << 46) /* the sum over all processes has room in 63 bits */
#define PAGES(n) (((uint64_t)(n) + PAGE - 1) / PAGE * PAGE)

/* What a process brings. */
typedef struct {
  int64_t base, size, unit;
  int64_t apart; /* alloc_shared_noncontig */
} share;

static int allocates(int flavor) { return flavor == MPI_WIN_FLAVOR_ALLOCATE || flavor == MPI_WIN_FLAVOR_SHARED; }

#define fail(comm, code, ...) spx_raise(SPX_K_COMM, (void *)(uintptr_t)(comm)->o.handle, code, FN, __VA_ARGS__)

static spx_type *type(MPI_Datatype t) { return (spx_type *)spx_get(SPX_K_TYPE, t); }
static spx_op *op(MPI_Op o) { return (spx_op *)spx_get(SPX_K_OP, o); }

/* The greatest of all processes' values. */
static int greatest(spx_win *w, int64_t *value)
{
  int64_t mine = *value;
  return spx_c_Allreduce(&mine, value, 1, type(MPI_INT64_T), op(MPI_MAX), w->comm);
}

/* A communicator of the window's own, whose errors come back to us. */
static int own_comm(spx_win *w, spx_comm *comm)
{
  MPI_Comm made;
  uint32_t fn = spx_fn;
  int err = PMPI_Comm_split((MPI_Comm)(uintptr_t)comm->o.handle, 0, comm->rank, &made);
  spx_fn = fn;
  if (err != MPI_SUCCESS) return err;
  w->comm = (spx_comm *)spx_get(SPX_K_COMM, made);
  spx_errh *old = w->comm->errh;
  spx_ref(&spx_errors_return.o);
  w->comm->errh = &spx_errors_return;
  if (old) spx_unref(SPX_K_ERRH, &old->o);
  err = PMPI_Comm_group(made, &w->group);
  spx_fn = fn;
  return err;
}

/* Where the memory of each process is in the window's part of the file, behind the cells; its end. */
static uint64_t lay_out(spx_win *w, const share *all, uint64_t *at)
{
  uint64_t end = spx_win_control_bytes(w->size, w->boxed);
  if (!allocates(w->flavor)) return end;
  int apart = w->flavor == MPI_WIN_FLAVOR_ALLOCATE;
  for (int i = 0; i < w->size; i++) apart |= all[i].apart != 0;
  for (int i = 0; i < w->size; i++) {
    at[i] = end;
    end += apart ? PAGES(all[i].size) : (uint64_t)all[i].size;
  }
  return end;
}

/* Takes memory, at one process for all, and maps it. */
static int take_memory(spx_win *w, uint64_t bytes)
{
  int64_t head[2] = {0, 0};
  if (w->rank == 0) {
    uint64_t offset;
    head[0] = spx_file_take(bytes, &offset);
    head[1] = (int64_t)offset;
  }
  int err = spx_c_Bcast(head, 2, type(MPI_INT64_T), 0, w->comm);
  if (err != MPI_SUCCESS) return err;
  int64_t failed = head[0];
  if (!failed) {
    w->file_offset = (uint64_t)head[1];
    w->file_bytes = bytes;
    w->map = spx_file_map(w->file_offset, bytes);
    failed = w->map == NULL;
  }
  err = greatest(w, &failed);
  if (err != MPI_SUCCESS || !failed) return err;
  spx_detail("%llu bytes of memory for the window are not to be had: %s", (unsigned long long)bytes,
             strerror(head[0] ? (int)head[0] : 12));
  return MPI_ERR_NO_MEM;
}

static void set_targets(spx_win *w, const share *all, const uint64_t *at)
{
  for (int i = 0; i < w->size; i++) {
    spx_target *t = &w->targets[i];
    t->proc = w->comm->peer[i];
    t->size = w->flavor == MPI_WIN_FLAVOR_DYNAMIC ? -1 : all[i].size;
    t->unit = all[i].unit;
    t->base = (uint64_t)all[i].base;
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

/* Does the kernel let all of us reach all of the others? */
static int ask_for_mail(spx_win *w)
{
  int64_t mail = 0;
  bool reached = w->flavor == MPI_WIN_FLAVOR_CREATE || w->flavor == MPI_WIN_FLAVOR_DYNAMIC;
  if (reached)
    for (int i = 0; i < w->size; i++)
      if (i != w->rank && !spx_may_read(w->comm->peer[i])) mail = 1;
  int err = greatest(w, &mail);
  w->mail = mail != 0;
  w->boxed = mail || (reached && w->size > 1 && w->size <= BOXES_MAX);
  return err;
}

static int set_up(spx_win *w, const share *mine)
{
  share *all = malloc((size_t)w->size * (sizeof *all + sizeof(uint64_t)));
  uint64_t *at = (uint64_t *)(all + w->size);
  w->targets = calloc((size_t)w->size, sizeof *w->targets);
  w->starts = malloc((size_t)w->size * sizeof *w->starts);
  w->waits = calloc((size_t)w->size, sizeof *w->waits);
  int64_t poor = !all || !w->targets || !w->starts || !w->waits;
  int err = greatest(w, &poor);
  if (err == MPI_SUCCESS && poor) {
    spx_detail("out of memory for a window");
    err = MPI_ERR_NO_MEM;
  }
  int words = (int)(sizeof *mine / 8);
  if (err == MPI_SUCCESS) err = spx_c_Allgather(mine, words, type(MPI_INT64_T), all, words, type(MPI_INT64_T), w->comm);
  if (err == MPI_SUCCESS) err = ask_for_mail(w);
  if (err == MPI_SUCCESS) err = take_memory(w, lay_out(w, all, at));
  if (err == MPI_SUCCESS) {
    set_targets(w, all, at);
    spx_win_control_set(w);
    if (w->boxed) spx_rma_serve(w);
    err = spx_win_barrier(w);
  }
  free(all);
  return err;
}

/* Frees what a window has; nobody uses it any more. */
static void destroy(spx_win *w)
{
  if (w->boxed && w->boxes) spx_rma_serve_end(w);
  if (w->map) spx_file_unmap(w->map, w->file_bytes);
  if (w->map && w->rank == 0) spx_file_drop(w->file_offset, w->file_bytes);
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

static int make(int flavor, void *base, MPI_Aint size, int64_t unit, MPI_Info info, spx_comm *comm, MPI_Win *win)
{
  *win = MPI_WIN_NULL;
  if (comm->flags & SPX_C_INTER) return fail(comm, MPI_ERR_COMM, "comm is an intercommunicator");
  if (comm->flags & SPX_C_FAR)
    return fail(comm, flavor == MPI_WIN_FLAVOR_SHARED ? MPI_ERR_RMA_SHARED : MPI_ERR_UNSUPPORTED_OPERATION,
                "comm has processes of several jobs, which share no memory; windows need one job: use MPI_Comm_spawn");
  if (size < 0) return fail(comm, MPI_ERR_SIZE, "size = %lld is negative", (long long)size);
  if (allocates(flavor) && size > MOST) return fail(comm, MPI_ERR_NO_MEM, "size is more memory than there can be");
  if (unit <= 0) return fail(comm, MPI_ERR_DISP, "disp_unit = %lld is not positive", (long long)unit);
  if (flavor == MPI_WIN_FLAVOR_CREATE && size > 0 && (!base || base == MPI_IN_PLACE))
    return fail(comm, MPI_ERR_BASE, "base is %s", base ? "MPI_IN_PLACE" : "NULL");
  spx_win *w = (spx_win *)spx_new(SPX_K_WIN);
  if (!w) return fail(comm, MPI_ERR_NO_MEM, "there is no room for another window");
  w->flavor = flavor;
  w->model = MPI_WIN_UNIFIED;
  w->base = base;
  w->bytes = size;
  w->unit = (int)unit;
  w->rank = comm->rank;
  w->size = comm->size;
  w->group = MPI_GROUP_NULL;
  w->errh = spx_initial_errh();
  spx_ref(&w->errh->o);
  int err = own_comm(w, comm); /* raises its own errors */
  if (err != MPI_SUCCESS) {
    destroy(w);
    return err;
  }
  share mine = {(int64_t)(uintptr_t)base, size, unit,
                flavor == MPI_WIN_FLAVOR_SHARED && info_is_true(info, "alloc_shared_noncontig")};
  err = set_up(w, &mine);
  if (err != MPI_SUCCESS) {
    char text[512];
    strncpy(text, spx_detail_text(), sizeof text - 1)[sizeof text - 1] = 0;
    destroy(w);
    return fail(comm, err, text);
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

int64_t spx_win_go(spx_word *a)
{
  spx_win *w = spx_win_of((MPI_Win)a[0].p);
  int err = spx_win_barrier(w);
  if (w->boxed && err == MPI_SUCCESS) { /* nobody looks at its mailbox when the memory goes */
    spx_rma_serve_end(w);
    w->boxed = 0;
    err = spx_win_barrier(w);
  }
  destroy(w); /* also when a member has failed: there is nothing more to be done with it */
  return err;
}
