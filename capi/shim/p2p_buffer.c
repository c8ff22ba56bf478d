/* p2p_buffer.c - attaching buffers for buffered sends, to the process or to a communicator. MPI-5.0 3.6.
 * The buffers are managed by dataplane/bsend.c. */
#include "bsend.h"
#include "p2p.h"

static int done(const spx_comm *c, int rc) { return rc == MPI_SUCCESS ? rc : spx_p2p_fail(c ? c : spx_self, rc); }

static int attach(spx_comm *c, void *buffer, int64_t size)
{
  if (size > 0 && (!buffer || buffer == MPI_IN_PLACE)) {
    spx_detail("buffer is %s", buffer ? "MPI_IN_PLACE" : "NULL");
    return spx_p2p_fail(c ? c : spx_self, MPI_ERR_BUFFER);
  }
  return done(c, spx_buffer_attach(c, buffer, size));
}

static int detach(spx_comm *c, void *buffer_addr, spx_count_out size)
{
  void *buf;
  int64_t n;
  int rc = spx_buffer_detach(c, &buf, &n);
  if (rc != MPI_SUCCESS) return done(c, rc);
  if (buffer_addr) *(void **)buffer_addr = buf;
  if (size.p) spx_count_store(size, n);
  return MPI_SUCCESS;
}

static int iflush(spx_comm *c, MPI_Request *request)
{
  spx_request *r;
  int rc = spx_buffer_iflush(c, &r);
  if (rc != MPI_SUCCESS) return done(c, rc);
  *request = spx_request_handle(r);
  return MPI_SUCCESS;
}

int spx_c_Buffer_attach(void *buffer, int64_t size) { return attach(NULL, buffer, size); }
int spx_c_Buffer_detach(void *buffer_addr, spx_count_out size) { return detach(NULL, buffer_addr, size); }
int spx_c_Buffer_flush(void) { return done(NULL, spx_buffer_flush(NULL)); }
int spx_c_Buffer_iflush(MPI_Request *request) { return iflush(NULL, request); }
int spx_c_Comm_attach_buffer(spx_comm *comm, void *buffer, int64_t size) { return attach(comm, buffer, size); }
int spx_c_Comm_detach_buffer(spx_comm *comm, void *buffer_addr, spx_count_out size)
{
  return detach(comm, buffer_addr, size);
}
int spx_c_Comm_flush_buffer(spx_comm *comm) { return done(comm, spx_buffer_flush(comm)); }
int spx_c_Comm_iflush_buffer(spx_comm *comm, MPI_Request *request) { return iflush(comm, request); }
