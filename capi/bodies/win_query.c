/* win_query.c - what can be asked of windows and told to them: names, groups, shared memory, attached memory. MPI-5.0, 12.2 and 7.8. */
#include <stdlib.h>
#include <string.h>
#include "win.h"

int spx_win_flavor(uintptr_t handle) { return spx_win_of((MPI_Win)handle)->flavor; }

int spx_win_predefined(uintptr_t handle, int keyval, uintptr_t *value)
{
  spx_win *w = spx_win_of((MPI_Win)handle);
  void *v;
  switch (keyval) {
  case MPI_WIN_BASE: v = w->base; break;
  case MPI_WIN_SIZE: v = &w->bytes; break;
  case MPI_WIN_DISP_UNIT: v = &w->unit; break;
  case MPI_WIN_CREATE_FLAVOR: v = &w->flavor; break;
  case MPI_WIN_MODEL: v = &w->model; break;
  default: return 0;
  }
  *value = (uintptr_t)v;
  return 1;
}

int spx_c_Win_set_name(MPI_Win win, const char *win_name)
{
  spx_win *w = spx_win_of(win);
  size_t n = strnlen(win_name, sizeof w->name - 1);
  spx_lock();
  memcpy(w->name, win_name, n);
  w->name[n] = 0;
  spx_unlock();
  return MPI_SUCCESS;
}

int spx_c_Win_get_name(MPI_Win win, char *win_name, int *resultlen)
{
  static const char null[] = "MPI_WIN_NULL"; /* MPI-5.0, 8.8 */
  if (win == MPI_WIN_NULL) {
    memcpy(win_name, null, sizeof null);
    *resultlen = (int)sizeof null - 1;
    return MPI_SUCCESS;
  }
  spx_win *w = spx_win_of(win);
  spx_lock();
  size_t n = strlen(w->name);
  memcpy(win_name, w->name, n + 1);
  spx_unlock();
  *resultlen = (int)n;
  return MPI_SUCCESS;
}

int spx_c_Win_get_group(MPI_Win win, MPI_Group *group)
{
  spx_win *w = spx_win_of(win);
  *group = spx_win_group(w);
  return *group != MPI_GROUP_NULL ? MPI_SUCCESS : SPX_WIN_FAIL(w, MPI_ERR_NO_MEM, "%s", spx_detail_text());
}

/* Where this process reaches the memory of a rank by loads and stores; NULL: it does not, or there is none. */
static void *reached(const spx_win *w, int rank)
{
  const spx_target *t = &w->targets[rank];
  if (t->far || t->size == 0) return NULL;
  return rank == w->rank ? w->base : t->here;
}

/* The lowest rank with memory, for MPI_PROC_NULL. */
static int first_with_memory(const spx_win *w)
{
  for (int i = 0; i < w->size; i++)
    if (reached(w, i)) return i;
  return -1;
}

/* Windows of other flavors than shared ones give what can be reached by loads and stores: of a window that MPI_Win_create has made, that is a process's
 * own memory. What cannot be reached has size 0 (MPI-5.0, 13.2.3). */
int spx_c_Win_shared_query(MPI_Win win, int rank, MPI_Aint *size, spx_count_out disp_unit, void *baseptr)
{
  spx_win *w = spx_win_of(win);
  if (w->flavor == MPI_WIN_FLAVOR_DYNAMIC)
    return SPX_WIN_FAIL(w, MPI_ERR_RMA_FLAVOR,
                        "the window was made by MPI_Win_create_dynamic: its memory may be in many pieces");
  if (rank != MPI_PROC_NULL && (rank < 0 || rank >= w->size))
    return SPX_WIN_FAIL(w, MPI_ERR_RANK, "rank = %d is not a rank of the window (size %d)", rank, w->size);
  int r = rank == MPI_PROC_NULL ? first_with_memory(w) : rank;
  void *base = r < 0 ? NULL : reached(w, r);
  *size = base ? w->targets[r].size : 0;
  spx_count_store(disp_unit, r < 0 ? 1 : w->targets[r].unit);
  *(void **)baseptr = base;
  return MPI_SUCCESS;
}

/* ---- dynamic windows ----------------------------------------------------------------------------------------- */

static int must_be_dynamic(const spx_win *w)
{
  if (w->flavor == MPI_WIN_FLAVOR_DYNAMIC) return MPI_SUCCESS;
  return SPX_WIN_FAIL(w, MPI_ERR_RMA_FLAVOR, "the window was not made by MPI_Win_create_dynamic");
}

int spx_c_Win_attach(MPI_Win win, void *base, MPI_Aint size)
{
  spx_win *w = spx_win_of(win);
  int err = must_be_dynamic(w);
  if (err != MPI_SUCCESS) return err;
  if (size < 0) return SPX_WIN_FAIL(w, MPI_ERR_SIZE, "size = %lld is negative", (long long)size);
  if (size > 0 && (!base || base == MPI_IN_PLACE))
    return SPX_WIN_FAIL(w, MPI_ERR_BASE, "base is %s", base ? "MPI_IN_PLACE" : "NULL");
  uint64_t from = (uint64_t)(uintptr_t)base;
  spx_attached *a = malloc(sizeof *a);
  if (!a) return SPX_WIN_FAIL(w, MPI_ERR_NO_MEM, "no memory to attach more memory to the window");
  spx_lock();
  int overlap = 0;
  for (const spx_attached *b = w->attached; b; b = b->next)
    overlap |= from < b->base + b->size && b->base < from + (uint64_t)size;
  if (!overlap) {
    *a = (spx_attached){w->attached, from, (uint64_t)size};
    w->attached = a;
  }
  spx_unlock();
  if (!overlap) return MPI_SUCCESS;
  free(a);
  return SPX_WIN_FAIL(w, MPI_ERR_RMA_ATTACH,
                      "part of the %lld bytes at base = %p is attached already: MPI_Win_detach it first",
                      (long long)size, base);
}

int spx_c_Win_detach(MPI_Win win, const void *base)
{
  spx_win *w = spx_win_of(win);
  int err = must_be_dynamic(w);
  if (err != MPI_SUCCESS) return err;
  spx_lock();
  spx_attached **at = &w->attached;
  while (*at && (*at)->base != (uint64_t)(uintptr_t)base) at = &(*at)->next;
  spx_attached *found = *at;
  if (found) *at = found->next;
  spx_unlock();
  if (!found) return SPX_WIN_FAIL(w, MPI_ERR_BASE, "base = %p: no memory that begins there is attached", base);
  free(found);
  return MPI_SUCCESS;
}
