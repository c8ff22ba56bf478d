/* io.c - the C side of MPI-IO: see io.h. */
#include "io.h"
#include "error.h"

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
