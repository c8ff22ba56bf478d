/* io.c - the C side of MPI-IO: see io.h. */
#include "io.h"
#include "comm.h"
#include "coll.h"
#include "error.h"
#include "runtime.h"
#include <stdlib.h>

enum { IO_TAG = 1 };

static spx_type *byte_type(void) { return (spx_type *)spx_get(SPX_K_TYPE, MPI_BYTE); }

static int post(spx_comm *c, const spx_io_message *m, int sends, spx_request **r)
{
  void *data = (void *)m->data;
  if (sends)
    return spx_isend(data, m->bytes, byte_type(), (int)m->peer, IO_TAG, c, SPX_CTX_P2P, SPX_M_STANDARD, SPX_RF_INTERNAL,
                     r);
  return spx_irecv(data, m->bytes, byte_type(), (int)m->peer, IO_TAG, c, SPX_CTX_P2P, SPX_RF_INTERNAL, r);
}

static int exchange(spx_comm *c, const spx_io_message *sends, int nsends, const spx_io_message *recvs, int nrecvs)
{
  int n = nsends + nrecvs, err = MPI_SUCCESS, posted = 0;
  spx_request **r = calloc((size_t)n + 1, sizeof *r);
  if (!r) {
    spx_detail("no memory for the %d messages of a file operation", n);
    return MPI_ERR_NO_MEM;
  }
  for (; posted < n && !err; posted++) {
    int sending = posted >= nrecvs;
    err = post(c, sending ? &sends[posted - nrecvs] : &recvs[posted], sending, &r[posted]);
    if (err) r[posted] = NULL;
  }
  for (int i = 0; i < posted; i++) {
    if (!r[i]) continue;
    if (err) spx_cancel(r[i]); /* nobody may come any more */
    int e = spx_wait(r[i]);
    if (e && !err) {
      spx_request_detail(r[i]);
      err = e;
    }
    spx_request_free(r[i]);
  }
  free(r);
  return err;
}

typedef struct {
  spx_comm *c;
  const spx_io_message *sends, *recvs;
  int nsends, nrecvs, err;
} exchanged;

static void call_exchange(void *arg)
{
  exchanged *e = arg;
  e->err = exchange(e->c, e->sends, e->nsends, e->recvs, e->nrecvs);
}

int spx_io_exchange(spx_comm *c, const spx_io_message *sends, int nsends, const spx_io_message *recvs, int nrecvs)
{
  exchanged e = {.c = c, .sends = sends, .recvs = recvs, .nsends = nsends, .nrecvs = nrecvs};
  spx_off_own_stack(call_exchange, &e);
  return e.err;
}

typedef struct {
  spx_comm *c;
  const void *mine;
  void *all;
  int64_t bytes;
  int err;
} gathered;

static void call_gather(void *arg)
{
  gathered *g = arg;
  g->err = spx_inside_gather(g->c, g->mine, g->all, (size_t)g->bytes);
}

int spx_io_gather(spx_comm *c, const void *mine, void *all, int64_t bytes)
{
  spx_creation_step();
  gathered g = {.c = c, .mine = mine, .all = all, .bytes = bytes};
  spx_off_own_stack(call_gather, &g);
  return g.err;
}

int spx_io_counter_add(spx_counter *k, int64_t n, int64_t *before)
{
  spx_sigstate *s = spx_outer_signals;
  spx_signals_leave(s);
  int err = spx_counter_add(k, n, before);
  spx_signals_enter(s);
  return err;
}

void spx_io_counter_end(spx_counter *k, int together)
{
  spx_sigstate *s = spx_outer_signals;
  spx_signals_leave(s);
  spx_counter_end(k, together != 0);
  spx_signals_enter(s);
}

spx_request *spx_io_request(int64_t bytes)
{
  spx_request *r = (spx_request *)spx_new(SPX_K_REQ);
  if (!r) return NULL;
  r->kind = SPX_R_GO;
  r->flags = SPX_RF_ACTIVE;
  r->src = r->want_src = MPI_ANY_SOURCE;
  r->tag = r->want_tag = MPI_ANY_TAG;
  r->bytes = bytes;
  atomic_store_explicit(&r->done, 1, memory_order_release);
  return r;
}

void spx_io_inherit(spx_obj *file)
{
  spx_errh *e = spx_errh_of(SPX_K_FILE, NULL);
  spx_ref(&e->o);
  ((spx_plain *)file)->errh = e;
}

void spx_io_disown(spx_obj *file)
{
  spx_errh *e = ((spx_plain *)file)->errh;
  ((spx_plain *)file)->errh = NULL;
  if (e) spx_unref(SPX_K_ERRH, &e->o);
}

void spx_io_status(uintptr_t status, int64_t bytes)
{
  spx_status_set((MPI_Status *)status, MPI_ANY_SOURCE, MPI_ANY_TAG, SPX_KEEP_ERROR, bytes, 0);
}
