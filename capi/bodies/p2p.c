/* p2p.c - sending and receiving. MPI-5.0 3.2, 3.4, 3.6, 3.7, 3.10. The work is done by
 * dataplane/pt2pt/p2p.c. */
#include <stdlib.h>
#include <string.h>
#include "check.h"
#include "error.h"
#include "p2p.h"

#define RETURN(comm, call)                                                                         \
  do {                                                                                             \
    int rc_ = (call);                                                                              \
    return SPX_LIKELY(rc_ == MPI_SUCCESS) ? MPI_SUCCESS : spx_fail_on_comm(comm, rc_);             \
  } while (0)

int spx_c_Send(const void *buf, int64_t count, spx_type *datatype, int dest, int tag,
               spx_comm *comm)
{
  RETURN(comm, spx_send(buf, count, datatype, dest, tag, comm, SPX_CTX_P2P, SPX_M_STANDARD));
}
int spx_c_Bsend(const void *buf, int64_t count, spx_type *datatype, int dest, int tag,
                spx_comm *comm)
{
  RETURN(comm, spx_send(buf, count, datatype, dest, tag, comm, SPX_CTX_P2P, SPX_M_BUFFERED));
}
int spx_c_Ssend(const void *buf, int64_t count, spx_type *datatype, int dest, int tag,
                spx_comm *comm)
{
  RETURN(comm, spx_send(buf, count, datatype, dest, tag, comm, SPX_CTX_P2P, SPX_M_SYNC));
}
int spx_c_Rsend(const void *buf, int64_t count, spx_type *datatype, int dest, int tag,
                spx_comm *comm)
{
  RETURN(comm, spx_send(buf, count, datatype, dest, tag, comm, SPX_CTX_P2P, SPX_M_READY));
}
int spx_c_Recv(void *buf, int64_t count, spx_type *datatype, int source, int tag, spx_comm *comm,
               MPI_Status *status)
{
  spx_turn_begin();
  int rc = spx_recv(buf, count, datatype, source, tag, comm, SPX_CTX_P2P, status);
  spx_turn_end(SPX_TURN_RECV);
  RETURN(comm, rc);
}

/* ---- nonblocking ---- */

static int isend(const void *buf, int64_t count, spx_type *t, int dest, int tag, spx_comm *c,
                 spx_send_mode mode, MPI_Request *request)
{
  spx_request *r;
  int rc = spx_isend(buf, count, t, dest, tag, c, SPX_CTX_P2P, mode, 0, &r);
  if (SPX_UNLIKELY(rc != MPI_SUCCESS)) return spx_fail_on_comm(c, rc);
  *request = spx_request_handle(r);
  return MPI_SUCCESS;
}

int spx_c_Isend(const void *buf, int64_t count, spx_type *datatype, int dest, int tag,
                spx_comm *comm, MPI_Request *request)
{
  return isend(buf, count, datatype, dest, tag, comm, SPX_M_STANDARD, request);
}
int spx_c_Issend(const void *buf, int64_t count, spx_type *datatype, int dest, int tag,
                 spx_comm *comm, MPI_Request *request)
{
  return isend(buf, count, datatype, dest, tag, comm, SPX_M_SYNC, request);
}
int spx_c_Irsend(const void *buf, int64_t count, spx_type *datatype, int dest, int tag,
                 spx_comm *comm, MPI_Request *request)
{
  return isend(buf, count, datatype, dest, tag, comm, SPX_M_READY, request);
}

/* A buffer that is full is an error of the call, not of its completion: the message could not be
 * taken. */
int spx_c_Ibsend(const void *buf, int64_t count, spx_type *datatype, int dest, int tag,
                 spx_comm *comm, MPI_Request *request)
{
  spx_request *r;
  int rc = spx_isend(buf, count, datatype, dest, tag, comm, SPX_CTX_P2P, SPX_M_BUFFERED, 0, &r);
  if (rc == MPI_SUCCESS && atomic_load(&r->done) && r->error == MPI_ERR_BUFFER) {
    rc = r->error;
    spx_request_detail(r);
    spx_request_free(r);
  }
  if (rc != MPI_SUCCESS) return spx_fail_on_comm(comm, rc);
  *request = spx_request_handle(r);
  return MPI_SUCCESS;
}

int spx_c_Irecv(void *buf, int64_t count, spx_type *datatype, int source, int tag, spx_comm *comm,
                MPI_Request *request)
{
  spx_request *r;
  int rc = spx_irecv(buf, count, datatype, source, tag, comm, SPX_CTX_P2P, 0, &r);
  if (SPX_UNLIKELY(rc != MPI_SUCCESS)) return spx_fail_on_comm(comm, rc);
  *request = spx_request_handle(r);
  return MPI_SUCCESS;
}

/* ---- send and receive ---- */

typedef struct {
  const void *buf;
  int64_t count;
  spx_type *type;
  int dest, tag;
  /* that of the message: another one than the receive's in systems of clusters (system.c) */
  spx_comm *comm;
} outgoing;

/* Finds the communicators of the two halves; *c is the receive's. */
static inline int resolve(outgoing *s, spx_comm **c, int *source, int tag)
{
  s->comm = *c;
  if (SPX_UNLIKELY(!spx_dest_ok(*c, s->dest)))
    SPX_TRY(spx_resolve_dest(&s->comm, &s->dest, "dest", s->tag));
  if (SPX_UNLIKELY(!spx_source_ok(*c, *source)))
    SPX_TRY(spx_resolve_source(c, source, "source", tag));
  return MPI_SUCCESS;
}

/* Receives and sends at once; the receive is posted first, so that a partner which does the same is
 * answered. */
static int sendrecv(outgoing *s, void *buf, int64_t count, spx_type *t, int source, int tag,
                    spx_comm *c, MPI_Status *status)
{
  spx_request *r;
  SPX_TRY(resolve(s, &c, &source, tag));
  spx_next_send = s->dest == MPI_PROC_NULL ? 0 : s->count * s->type->size;
  int rc = spx_irecv(buf, count, t, source, tag, c, SPX_CTX_P2P, SPX_RF_INTERNAL, &r);
  spx_next_send = 0;
  if (rc != MPI_SUCCESS) return spx_fail_on_comm(c, rc);
  spx_turn_begin();
  int sent =
      spx_send(s->buf, s->count, s->type, s->dest, s->tag, s->comm, SPX_CTX_P2P, SPX_M_STANDARD);
  if (SPX_UNLIKELY(sent != MPI_SUCCESS)) spx_cancel(r);
  rc = spx_wait(r);
  if (SPX_UNLIKELY(rc == MPIX_ERR_PROC_FAILED_PENDING)) {
    spx_cancel(r);
    spx_wait(r);
    rc = MPIX_ERR_PROC_FAILED;
  }
  if (status != MPI_STATUS_IGNORE || SPX_UNLIKELY(spx_is_origin(r->src)))
    spx_status_set(status, r->src, r->tag, SPX_KEEP_ERROR, r->bytes, 0);
  if (sent != MPI_SUCCESS) rc = sent;
  spx_request_free(r);
  spx_turn_end(SPX_TURN_SENDRECV);
  return rc == MPI_SUCCESS ? rc : spx_fail_on_comm(c, rc);
}

int spx_c_Sendrecv(const void *sendbuf, int64_t sendcount, spx_type *sendtype, int dest,
                   int sendtag, void *recvbuf, int64_t recvcount, spx_type *recvtype, int source,
                   int recvtag, spx_comm *comm, MPI_Status *status)
{
  outgoing s = {sendbuf, sendcount, sendtype, dest, sendtag, NULL};
  return sendrecv(&s, recvbuf, recvcount, recvtype, source, recvtag, comm, status);
}

/* A packed copy of what is to be sent: in small[] or from malloc, NULL when memory is out. */
static void *packed_copy(const void *buf, int64_t count, const spx_type *t, void *small,
                         size_t small_bytes)
{
  size_t n = (size_t)(count * t->size);
  void *copy = n <= small_bytes ? small : malloc(n);
  if (copy)
    spx_pack(buf, count, t, 0, (int64_t)n, copy);
  else
    spx_detail("no memory for a copy of %zu bytes", n);
  return copy;
}

static spx_type *bytes_type(void) { return (spx_type *)spx_get(SPX_K_TYPE, MPI_BYTE); }

int spx_c_Sendrecv_replace(void *buf, int64_t count, spx_type *datatype, int dest, int sendtag,
                           int source, int recvtag, spx_comm *comm, MPI_Status *status)
{
  char small[1024];
  void *copy = packed_copy(buf, count, datatype, small, sizeof small);
  if (!copy) return spx_fail_on_comm(comm, MPI_ERR_NO_MEM);
  outgoing s = {copy, count * datatype->size, bytes_type(), dest, sendtag, NULL};
  int rc = sendrecv(&s, buf, count, datatype, source, recvtag, comm, status);
  if (copy != small) free(copy);
  return rc;
}

/* ---- nonblocking send and receive: a request over two ---- */

typedef struct {
  spx_poller poller;
  spx_request *both, *send, *recv;
  void *copy;
} pair;

static int poll_pair(spx_poller *poller)
{
  pair *p = (pair *)poller;
  spx_request *s = p->send, *r = p->recv, *both = p->both;
  if (!atomic_load_explicit(&s->done, memory_order_acquire) ||
      !atomic_load_explicit(&r->done, memory_order_acquire))
    return 0;
  int error = r->error ? r->error : s->error;
  both->src = r->src;
  both->tag = r->tag;
  both->bytes = r->bytes;
  spx_poller_del(poller);
  spx_request_free(s);
  spx_request_free(r);
  free(p->copy);
  free(p);
  spx_complete(both, error);
  return 1;
}

static int isendrecv(outgoing *s, void *copy, void *buf, int64_t count, spx_type *t, int source,
                     int tag, spx_comm *c, MPI_Request *request)
{
  int err = resolve(s, &c, &source, tag);
  if (SPX_UNLIKELY(err != MPI_SUCCESS)) {
    free(copy);
    return err;
  }
  pair *p = calloc(1, sizeof *p);
  spx_request *both = p ? (spx_request *)spx_new(SPX_K_REQ) : NULL;
  int rc = both ? spx_irecv(buf, count, t, source, tag, c, SPX_CTX_P2P, SPX_RF_INTERNAL, &p->recv)
                : MPI_ERR_NO_MEM;
  if (rc == MPI_SUCCESS)
    rc = spx_isend(s->buf, s->count, s->type, s->dest, s->tag, s->comm, SPX_CTX_P2P, SPX_M_STANDARD,
                   SPX_RF_INTERNAL, &p->send);
  if (rc != MPI_SUCCESS) {
    if (p && p->recv) {
      spx_cancel(p->recv);
      spx_request_free(p->recv);
    }
    if (both) spx_request_free(both);
    free(p);
    free(copy);
    return spx_fail_on_comm(c, rc);
  }
  both->kind = SPX_R_GO;
  both->flags = SPX_RF_ACTIVE;
  both->comm = c;
  p->poller.poll = poll_pair;
  p->both = both;
  p->copy = copy;
  *request = spx_request_handle(both);
  spx_poller_add(&p->poller);
  spx_progress();
  return MPI_SUCCESS;
}

int spx_c_Isendrecv(const void *sendbuf, int64_t sendcount, spx_type *sendtype, int dest,
                    int sendtag, void *recvbuf, int64_t recvcount, spx_type *recvtype, int source,
                    int recvtag, spx_comm *comm, MPI_Request *request)
{
  outgoing s = {sendbuf, sendcount, sendtype, dest, sendtag, NULL};
  return isendrecv(&s, NULL, recvbuf, recvcount, recvtype, source, recvtag, comm, request);
}

int spx_c_Isendrecv_replace(void *buf, int64_t count, spx_type *datatype, int dest, int sendtag,
                            int source, int recvtag, spx_comm *comm, MPI_Request *request)
{
  void *copy = packed_copy(buf, count, datatype, NULL, 0);
  if (!copy && count * datatype->size > 0) return spx_fail_on_comm(comm, MPI_ERR_NO_MEM);
  outgoing s = {copy, count * datatype->size, bytes_type(), dest, sendtag, NULL};
  return isendrecv(&s, copy, buf, count, datatype, source, recvtag, comm, request);
}
