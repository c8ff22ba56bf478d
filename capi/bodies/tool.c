/* tool.c - beginning and end of the tool information interface, its handles and strings. MPI-5.0, 16.3.3 to 16.3.5. */
#include "tool.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int begun; /* calls of MPI_T_init_thread that no MPI_T_finalize has answered */

int spx_tool_enter(void)
{
  pthread_mutex_lock(&lock);
  return begun ? MPI_SUCCESS : spx_tool_leave(MPI_T_ERR_NOT_INITIALIZED);
}

int spx_tool_leave(int code)
{
  pthread_mutex_unlock(&lock);
  return code;
}

int spx_c_T_init_thread(int required, int *provided)
{
  if (!provided || required < MPI_THREAD_SINGLE || required > MPI_THREAD_MULTIPLE) return MPI_T_ERR_INVALID;
  pthread_mutex_lock(&lock);
  begun++;
  *provided = required;
  return spx_tool_leave(MPI_SUCCESS);
}

/* ---- handles --------------------------------------------------------------------------------------------------- */

#define INDEX_BITS 20
#define GEN_BITS   7

typedef struct {
  void *object; /* NULL: free */
  uint32_t gen;
} slot;
static struct {
  slot *slots;
  uint32_t used, cap;
} tables[SPX_TH_COUNT];

void *spx_tool_handle(spx_tool_kind k, void *object)
{
  uint32_t i = 0;
  while (i < tables[k].used && tables[k].slots[i].object) i++;
  if (i == 1u << INDEX_BITS) return NULL;
  if (i == tables[k].cap) {
    uint32_t cap = i ? 2 * i : 16;
    slot *s = realloc(tables[k].slots, cap * sizeof *s);
    if (!s) return NULL;
    memset(s + i, 0, (cap - i) * sizeof *s);
    tables[k].slots = s;
    tables[k].cap = cap;
  }
  slot *s = &tables[k].slots[i];
  if (i == tables[k].used) tables[k].used++;
  s->object = object;
  s->gen = (s->gen + 1) & ((1u << GEN_BITS) - 1);
  return (void *)((uintptr_t)k << (INDEX_BITS + GEN_BITS) | (uintptr_t)s->gen << INDEX_BITS | i);
}

static slot *slot_of(spx_tool_kind k, const void *handle)
{
  uintptr_t h = (uintptr_t)handle, i = h & ((1u << INDEX_BITS) - 1);
  if (h >> (INDEX_BITS + GEN_BITS) != (uintptr_t)k || i >= tables[k].used) return NULL;
  slot *s = &tables[k].slots[i];
  return s->object && s->gen == (h >> INDEX_BITS & ((1u << GEN_BITS) - 1)) ? s : NULL;
}

void *spx_tool_find(spx_tool_kind k, const void *handle)
{
  slot *s = slot_of(k, handle);
  return s ? s->object : NULL;
}

void spx_tool_forget(spx_tool_kind k, const void *handle)
{
  slot *s = slot_of(k, handle);
  if (s) s->object = NULL;
}

void spx_tool_each(spx_tool_kind k, void (*fn)(void *, void *, void *), void *arg)
{
  for (uint32_t i = 0; i < tables[k].used; i++) {
    slot *s = &tables[k].slots[i];
    if (s->object)
      fn((void *)((uintptr_t)k << (INDEX_BITS + GEN_BITS) | (uintptr_t)s->gen << INDEX_BITS | i), s->object, arg);
  }
}

/* ---- end ------------------------------------------------------------------------------------------------------- */

static void forget_cvar(void *handle, void *object, void *arg)
{
  (void)arg;
  spx_tool_forget(SPX_TH_CVAR, handle);
  free(object);
}

/* The last call frees what the tool has left; a later MPI_T_init_thread begins anew. What was written stays written. */
int spx_c_T_finalize(void)
{
  SPX_TOOL_ENTER;
  if (--begun == 0) {
    spx_tool_each(SPX_TH_CVAR, forget_cvar, NULL);
    spx_tool_pvars_end();
    spx_tool_events_end();
  }
  return spx_tool_leave(MPI_SUCCESS);
}

/* ---- strings --------------------------------------------------------------------------------------------------- */

void spx_tool_string(const char *s, char *to, int *len)
{
  if (!len) return;
  if (to && *len > 0) {
    size_t n = strlen(s);
    if (n > (size_t)*len - 1) n = (size_t)*len - 1;
    memcpy(to, s, n);
    to[n] = 0;
  }
  *len = (int)strlen(s) + 1;
}
