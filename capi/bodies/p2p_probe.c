/* p2p_probe.c - probing and matched receives. MPI-5.0 3.8. The work is done by
 * dataplane/pt2pt/probe.c. */
#include "p2p.h"

int spx_c_Probe(int source, int tag, spx_comm *comm, MPI_Status *status)
{
  int rc = spx_probe(source, tag, comm, SPX_CTX_P2P, status, NULL);
  return rc == MPI_SUCCESS ? rc : spx_fail_on_comm(comm, rc);
}

int spx_c_Iprobe(int source, int tag, spx_comm *comm, int *flag, MPI_Status *status)
{
  int rc = spx_iprobe(source, tag, comm, SPX_CTX_P2P, flag, status, NULL);
  return rc == MPI_SUCCESS ? rc : spx_fail_on_comm(comm, rc);
}

/* The handle for a message that was taken out of the queue; NULL comes from MPI_PROC_NULL. */
static int message_handle(spx_comm *c, void *unexpected, MPI_Message *message)
{
  if (!unexpected) {
    *message = MPI_MESSAGE_NO_PROC;
    return MPI_SUCCESS;
  }
  spx_message *m = (spx_message *)spx_new(SPX_K_MSG);
  if (!m) {
    spx_detail("no handle for another message, which is lost: receive by MPI_Mrecv what MPI_Mprobe "
               "has found");
    return spx_fail_on_comm(c, MPI_ERR_NO_MEM);
  }
  spx_ref(&c->o);
  m->unexpected = unexpected;
  m->comm = c;
  *message = (MPI_Message)(uintptr_t)m->o.handle;
  return MPI_SUCCESS;
}

int spx_c_Mprobe(int source, int tag, spx_comm *comm, MPI_Message *message, MPI_Status *status)
{
  void *unexpected = NULL;
  int rc = spx_probe(source, tag, comm, SPX_CTX_P2P, status, &unexpected);
  return rc == MPI_SUCCESS ? message_handle(comm, unexpected, message) : spx_fail_on_comm(comm, rc);
}

int spx_c_Improbe(int source, int tag, spx_comm *comm, int *flag, MPI_Message *message,
                  MPI_Status *status)
{
  void *unexpected = NULL;
  int rc = spx_iprobe(source, tag, comm, SPX_CTX_P2P, flag, status, &unexpected);
  if (rc != MPI_SUCCESS) return spx_fail_on_comm(comm, rc);
  return *flag ? message_handle(comm, unexpected, message) : MPI_SUCCESS;
}

/* Starts the receive of *message, which becomes MPI_MESSAGE_NULL. *c stays referenced by the
 * request alone. */
static int take(void *buf, int64_t count, spx_type *t, MPI_Message *message, spx_request **r,
                spx_comm **c)
{
  spx_message *m = (spx_message *)spx_get(SPX_K_MSG, *message);
  *c = m->comm;
  int rc = spx_imrecv(buf, count, t, m->unexpected, m->comm, 0, r);
  if (rc != MPI_SUCCESS) return rc;
  *message = MPI_MESSAGE_NULL;
  spx_retire(SPX_K_MSG, &m->o);
  return rc;
}

int spx_c_Mrecv(void *buf, int64_t count, spx_type *datatype, MPI_Message *message,
                MPI_Status *status)
{
  if (*message == MPI_MESSAGE_NO_PROC) {
    *message = MPI_MESSAGE_NULL;
    spx_status_set(status, MPI_PROC_NULL, MPI_ANY_TAG, SPX_KEEP_ERROR, 0, 0);
    return MPI_SUCCESS;
  }
  spx_request *r;
  spx_comm *c;
  int rc = take(buf, count, datatype, message, &r, &c);
  if (rc == MPI_SUCCESS) {
    rc = spx_wait(r);
    spx_status_set(status, r->src, r->tag, SPX_KEEP_ERROR, r->bytes, 0);
    spx_request_free(r);
    if (rc != MPI_SUCCESS) rc = spx_fail_on_comm(c, rc);
    spx_unref(SPX_K_COMM, &c->o);
    return rc;
  }
  return spx_fail_on_comm(c, rc);
}

int spx_c_Imrecv(void *buf, int64_t count, spx_type *datatype, MPI_Message *message,
                 MPI_Request *request)
{
  spx_request *r;
  spx_comm *c = spx_self;
  int rc;
  if (*message == MPI_MESSAGE_NO_PROC) {
    *message = MPI_MESSAGE_NULL;
    rc = spx_irecv(buf, count, datatype, MPI_PROC_NULL, MPI_ANY_TAG, c, SPX_CTX_P2P, 0, &r);
  } else {
    rc = take(buf, count, datatype, message, &r, &c);
    if (rc == MPI_SUCCESS) spx_unref(SPX_K_COMM, &c->o);
  }
  if (rc != MPI_SUCCESS) return spx_fail_on_comm(c, rc);
  *request = spx_request_handle(r);
  return MPI_SUCCESS;
}
