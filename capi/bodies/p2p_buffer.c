/* p2p_buffer.c - attaching buffers for buffered sends, to the process, a session or a communicator.
 * MPI-5.0 4.6. The buffers are managed by dataplane/pt2pt/bsend.c. */
#include "bsend.h"
#include "p2p.h"

/* The owner of the buffer: an object of kind, or NULL for the process. */
typedef struct {
  spx_kind kind;
  spx_obj *o;
} owner;

static owner of_comm(spx_comm *c) { return (owner){SPX_K_COMM, &c->o}; }
static owner of_session(MPI_Session s) { return (owner){SPX_K_SESSION, spx_get(SPX_K_SESSION, s)}; }
static const owner of_process = {0, NULL};

static int done(owner w, int rc)
{
  void *on = w.o ? (void *)(uintptr_t)w.o->handle : NULL;
  return rc == MPI_SUCCESS
             ? rc
             : spx_raise(w.kind, on, rc, spx_fn_name[spx_fn], "%s", spx_detail_text());
}

static int attach(owner w, void *buffer, int64_t size)
{
  if (size > 0 && (!buffer || buffer == MPI_IN_PLACE)) {
    spx_detail("buffer is %s", buffer ? "MPI_IN_PLACE" : "NULL");
    return done(w, MPI_ERR_BUFFER);
  }
  return done(w, spx_buffer_attach(w.kind, w.o, buffer, size));
}

static int detach(owner w, void *buffer_addr, spx_count_out size)
{
  void *buf;
  int64_t n;
  int rc = spx_buffer_detach(w.o, &buf, &n);
  if (rc != MPI_SUCCESS) return done(w, rc);
  if (buffer_addr) *(void **)buffer_addr = buf;
  if (size.p) spx_count_store(size, n);
  return MPI_SUCCESS;
}

static int flush(owner w) { return done(w, spx_buffer_flush(w.o)); }

static int iflush(owner w, MPI_Request *request)
{
  spx_request *r;
  int rc = spx_buffer_iflush(w.o, &r);
  if (rc != MPI_SUCCESS) return done(w, rc);
  *request = spx_request_handle(r);
  return MPI_SUCCESS;
}

int spx_c_Buffer_attach(void *buffer, int64_t size) { return attach(of_process, buffer, size); }
int spx_c_Buffer_detach(void *buffer_addr, spx_count_out size)
{
  return detach(of_process, buffer_addr, size);
}
int spx_c_Buffer_flush(void) { return flush(of_process); }
int spx_c_Buffer_iflush(MPI_Request *request) { return iflush(of_process, request); }

int spx_c_Comm_attach_buffer(spx_comm *comm, void *buffer, int64_t size)
{
  return attach(of_comm(comm), buffer, size);
}
int spx_c_Comm_detach_buffer(spx_comm *comm, void *buffer_addr, spx_count_out size)
{
  return detach(of_comm(comm), buffer_addr, size);
}
int spx_c_Comm_flush_buffer(spx_comm *comm) { return flush(of_comm(comm)); }
int spx_c_Comm_iflush_buffer(spx_comm *comm, MPI_Request *request)
{
  return iflush(of_comm(comm), request);
}

int spx_c_Session_attach_buffer(MPI_Session session, void *buffer, int64_t size)
{
  return attach(of_session(session), buffer, size);
}
int spx_c_Session_detach_buffer(MPI_Session session, void *buffer_addr, spx_count_out size)
{
  return detach(of_session(session), buffer_addr, size);
}
int spx_c_Session_flush_buffer(MPI_Session session) { return flush(of_session(session)); }
int spx_c_Session_iflush_buffer(MPI_Session session, MPI_Request *request)
{
  return iflush(of_session(session), request);
}
