/* attr.c - MPI_Comm_get_attr without entering Go (MPI-5.0, 7.7 and 9.1.2): libraries call it before
 * every operation. The engine (core/attr) owns keyvals and attributes; here is a copy of what this
 * function needs. spx_lock guards it. */
#include <stdlib.h>
#include <string.h>
#include "comm.h"
#include "error.h"
#include "shim.h"

typedef struct spx_attrs {
  uint32_t n, cap;
  struct {
    int keyval;
    void *value;
  } at[];
} spx_attrs;

spx_predef_attrs spx_attr_values = {.tag_ub = SPX_TAG_UB,
                                    .host = MPI_PROC_NULL,
                                    .io = MPI_ANY_SOURCE,
                                    .appnum = -1,
                                    .universe_size = -1};

/* Live keyvals by their index, which is in the low 20 bits (core/attr). */
#define INDEX(keyval) ((uint32_t)(keyval)&0xfffff)
#define KIND(keyval)  ((keyval) >> 28)
enum { KIND_COMM = 1 };
static int *live;
static uint32_t nlive;

void spx_keyval_mark(int keyval, int is_live)
{
  uint32_t k = INDEX(keyval);
  spx_lock();
  if (k >= nlive) {
    uint32_t n = k + k / 2 + 64;
    int *p = realloc(live, n * sizeof *p);
    if (!p) spx_fatal(MPI_ERR_NO_MEM, "no memory for %u keyvals", n);
    memset(p + nlive, 0, (n - nlive) * sizeof *p);
    live = p;
    nlive = n;
  }
  live[k] = is_live ? keyval : 0;
  spx_unlock();
}

static spx_attrs *grown(spx_attrs *a)
{
  uint32_t cap = a ? a->cap * 2 : 4;
  spx_attrs *p = realloc(a, sizeof *p + cap * sizeof p->at[0]);
  if (!p) spx_fatal(MPI_ERR_NO_MEM, "no memory for %u attributes", cap);
  if (!a) p->n = 0;
  p->cap = cap;
  return p;
}

void spx_comm_attr_mark(spx_comm *c, int keyval, uintptr_t value, int present)
{
  spx_lock();
  spx_attrs *a = c->attrs;
  uint32_t i = 0, n = a ? a->n : 0;
  while (i < n && a->at[i].keyval != keyval) i++;
  if (present) {
    if (i == n) {
      if (!a || n == a->cap) c->attrs = a = grown(a);
      a->n = n + 1;
      a->at[i].keyval = keyval;
    }
    a->at[i].value = (void *)value;
  } else if (i < n) {
    a->at[i] = a->at[n - 1];
    a->n = n - 1;
  }
  spx_unlock();
}

void spx_comm_attrs_free(spx_comm *c)
{
  free(c->attrs);
  c->attrs = NULL;
}

bool spx_comm_has_attrs(const spx_comm *c) { return c->attrs && c->attrs->n > 0; }

/* A predefined attribute: the address of its value, NULL when it has none. */
static int *predefined(int keyval)
{
  spx_predef_attrs *v = &spx_attr_values;
  switch (keyval) {
  case MPI_TAG_UB: return &v->tag_ub;
  case MPI_HOST: return &v->host;
  case MPI_IO: return &v->io;
  case MPI_WTIME_IS_GLOBAL: return &v->wtime_is_global;
  case MPI_APPNUM: return v->appnum < 0 ? NULL : &v->appnum;
  case MPI_UNIVERSE_SIZE: return v->universe_size < 0 ? NULL : &v->universe_size;
  case MPI_LASTUSEDCODE: v->lastusedcode = spx_last_used_code(); return &v->lastusedcode;
  }
  return NULL;
}

static int get(spx_comm *c, int keyval, void *value, int *flag, const char *function)
{
  if (keyval >= MPI_TAG_UB && keyval <= MPI_UNIVERSE_SIZE) {
    int *v = predefined(keyval);
    if (v) *(void **)value = v;
    *flag = v != NULL;
    return MPI_SUCCESS;
  }
  *flag = 0;
  spx_lock();
  const spx_attrs *a = c->attrs;
  for (uint32_t i = 0, n = a ? a->n : 0; i < n; i++)
    if (a->at[i].keyval == keyval) {
      *(void **)value = a->at[i].value;
      *flag = 1;
      break;
    }
  int known = *flag || (keyval > 0 && INDEX(keyval) < nlive && live[INDEX(keyval)] == keyval &&
                        KIND(keyval) == KIND_COMM);
  spx_unlock();
  if (SPX_LIKELY(known)) return MPI_SUCCESS;
  return spx_raise(SPX_K_COMM, (void *)(uintptr_t)c->o.handle, MPI_ERR_KEYVAL, function,
                   "keyval %d is not one for communicators, or has been freed", keyval);
}

int spx_c_Comm_get_attr(spx_comm *comm, int comm_keyval, void *attribute_val, int *flag)
{
  return get(comm, comm_keyval, attribute_val, flag, "MPI_Comm_get_attr");
}

int spx_c_Attr_get(spx_comm *comm, int keyval, void *attribute_val, int *flag)
{
  return get(comm, keyval, attribute_val, flag, "MPI_Attr_get");
}
