/* coll_rooted.c - the collectives with a root that move data: MPI_Bcast, MPI_Gather(v),
 * MPI_Scatter(v), blocking, nonblocking and persistent. MPI-5.0 6.4 to 6.6, 6.12, 6.13. Arguments
 * that are not significant here have been dropped by the shim. */
#include "coll.h"

/* This process has the root's side of the operation. */
static int at_root(const spx_comm *c, int root)
{
  return spx_is_inter(c) ? root == MPI_ROOT : root == c->rank;
}
/* This process has the other side: all ranks on an intracommunicator, the root included. */
static int at_leaf(const spx_comm *c, int root) { return !spx_is_inter(c) || root >= 0; }

static int alias(const spx_comm *c, const char *function_hint)
{
  return SPX_COLL_FAIL(
      c, MPI_ERR_BUFFER,
      "the send buffer and this process's part of the receive buffer are the same memory; %s",
      function_hint);
}

static int bcast(void *buffer, int64_t count, spx_type *datatype, int root, spx_comm *comm,
                 spx_how how)
{
  spx_coll c;
  spx_coll_on(&c, comm, SPX_COLL_BCAST);
  c.key.root = root;
  if (datatype) spx_coll_receives(&c, buffer, count, datatype);
  return spx_collective(&c, how);
}

int spx_c_Bcast(void *buffer, int64_t count, spx_type *datatype, int root, spx_comm *comm)
{
  return bcast(buffer, count, datatype, root, comm, SPX_BLOCKING);
}

int spx_c_Ibcast(void *buffer, int64_t count, spx_type *datatype, int root, spx_comm *comm,
                 MPI_Request *request)
{
  return bcast(buffer, count, datatype, root, comm, SPX_NONBLOCKING(request));
}

int spx_c_Bcast_init(void *buffer, int64_t count, spx_type *datatype, int root, spx_comm *comm,
                     MPI_Info info, MPI_Request *request)
{
  (void)info;
  return bcast(buffer, count, datatype, root, comm, SPX_PERSISTENT(request));
}

static int gather(const void *sendbuf, int64_t sendcount, spx_type *sendtype, void *recvbuf,
                  int64_t recvcount, spx_type *recvtype, int root, spx_comm *comm, spx_how how)
{
  spx_coll c;
  spx_coll_on(&c, comm, SPX_COLL_GATHER);
  c.key.root = root;
  if (at_root(comm, root)) spx_coll_receives(&c, recvbuf, recvcount, recvtype);
  if (at_leaf(comm, root)) {
    if (sendbuf == MPI_IN_PLACE)
      c.key.in_place = 1;
    else
      spx_coll_sends(&c, sendbuf, sendcount, sendtype);
  }
  if (c.send && c.recv && c.key.scount * c.key.s[0] > 0 &&
      spx_coll_alias(c.send, sendtype, spx_coll_at(c.recv, comm->rank * recvcount, recvtype),
                     recvtype))
    return alias(comm, "give MPI_IN_PLACE as sendbuf");
  return spx_collective(&c, how);
}

int spx_c_Gather(const void *sendbuf, int64_t sendcount, spx_type *sendtype, void *recvbuf,
                 int64_t recvcount, spx_type *recvtype, int root, spx_comm *comm)
{
  return gather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm,
                SPX_BLOCKING);
}

int spx_c_Igather(const void *sendbuf, int64_t sendcount, spx_type *sendtype, void *recvbuf,
                  int64_t recvcount, spx_type *recvtype, int root, spx_comm *comm,
                  MPI_Request *request)
{
  return gather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm,
                SPX_NONBLOCKING(request));
}

int spx_c_Gather_init(const void *sendbuf, int64_t sendcount, spx_type *sendtype, void *recvbuf,
                      int64_t recvcount, spx_type *recvtype, int root, spx_comm *comm,
                      MPI_Info info, MPI_Request *request)
{
  (void)info;
  return gather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm,
                SPX_PERSISTENT(request));
}

static int gatherv(const void *sendbuf, int64_t sendcount, spx_type *sendtype, void *recvbuf,
                   spx_counts recvcounts, spx_counts displs, spx_type *recvtype, int root,
                   spx_comm *comm, spx_how how)
{
  spx_coll c;
  spx_coll_on(&c, comm, SPX_COLL_GATHERV);
  c.key.root = root;
  if (at_root(comm, root)) {
    spx_coll_receives(&c, recvbuf, 0, recvtype);
    c.rcounts = spx_array_of(recvcounts);
    c.rdispls = spx_array_of(displs);
  }
  if (at_leaf(comm, root)) {
    if (sendbuf == MPI_IN_PLACE)
      c.key.in_place = 1;
    else
      spx_coll_sends(&c, sendbuf, 0, sendtype), c.sown = sendcount;
  }
  if (c.send && c.recv && !spx_is_inter(comm) && c.sown * c.key.s[0] > 0 &&
      spx_coll_alias(c.send, sendtype,
                     spx_coll_at(c.recv, spx_count_at(displs, comm->rank), recvtype), recvtype))
    return alias(comm, "give MPI_IN_PLACE as sendbuf");
  return spx_collective(&c, how);
}

int spx_c_Gatherv(const void *sendbuf, int64_t sendcount, spx_type *sendtype, void *recvbuf,
                  spx_counts recvcounts, spx_counts displs, spx_type *recvtype, int root,
                  spx_comm *comm)
{
  return gatherv(sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, root, comm,
                 SPX_BLOCKING);
}

int spx_c_Igatherv(const void *sendbuf, int64_t sendcount, spx_type *sendtype, void *recvbuf,
                   spx_counts recvcounts, spx_counts displs, spx_type *recvtype, int root,
                   spx_comm *comm, MPI_Request *request)
{
  return gatherv(sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, root, comm,
                 SPX_NONBLOCKING(request));
}

int spx_c_Gatherv_init(const void *sendbuf, int64_t sendcount, spx_type *sendtype, void *recvbuf,
                       spx_counts recvcounts, spx_counts displs, spx_type *recvtype, int root,
                       spx_comm *comm, MPI_Info info, MPI_Request *request)
{
  (void)info;
  return gatherv(sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, root, comm,
                 SPX_PERSISTENT(request));
}

static int scatter(const void *sendbuf, int64_t sendcount, spx_type *sendtype, void *recvbuf,
                   int64_t recvcount, spx_type *recvtype, int root, spx_comm *comm, spx_how how)
{
  spx_coll c;
  spx_coll_on(&c, comm, SPX_COLL_SCATTER);
  c.key.root = root;
  if (at_root(comm, root)) spx_coll_sends(&c, sendbuf, sendcount, sendtype);
  if (at_leaf(comm, root)) {
    if (recvbuf == MPI_IN_PLACE)
      c.key.in_place = 1;
    else
      spx_coll_receives(&c, recvbuf, recvcount, recvtype);
  }
  if (c.send && c.recv && c.key.scount * c.key.s[0] > 0 &&
      spx_coll_alias(spx_coll_at(c.send, comm->rank * sendcount, sendtype), sendtype, c.recv,
                     recvtype))
    return alias(comm, "give MPI_IN_PLACE as recvbuf");
  return spx_collective(&c, how);
}

int spx_c_Scatter(const void *sendbuf, int64_t sendcount, spx_type *sendtype, void *recvbuf,
                  int64_t recvcount, spx_type *recvtype, int root, spx_comm *comm)
{
  return scatter(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm,
                 SPX_BLOCKING);
}

int spx_c_Iscatter(const void *sendbuf, int64_t sendcount, spx_type *sendtype, void *recvbuf,
                   int64_t recvcount, spx_type *recvtype, int root, spx_comm *comm,
                   MPI_Request *request)
{
  return scatter(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm,
                 SPX_NONBLOCKING(request));
}

int spx_c_Scatter_init(const void *sendbuf, int64_t sendcount, spx_type *sendtype, void *recvbuf,
                       int64_t recvcount, spx_type *recvtype, int root, spx_comm *comm,
                       MPI_Info info, MPI_Request *request)
{
  (void)info;
  return scatter(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm,
                 SPX_PERSISTENT(request));
}

static int scatterv(const void *sendbuf, spx_counts sendcounts, spx_counts displs,
                    spx_type *sendtype, void *recvbuf, int64_t recvcount, spx_type *recvtype,
                    int root, spx_comm *comm, spx_how how)
{
  spx_coll c;
  spx_coll_on(&c, comm, SPX_COLL_SCATTERV);
  c.key.root = root;
  if (at_root(comm, root)) {
    spx_coll_sends(&c, sendbuf, 0, sendtype);
    c.scounts = spx_array_of(sendcounts);
    c.sdispls = spx_array_of(displs);
  }
  if (at_leaf(comm, root)) {
    if (recvbuf == MPI_IN_PLACE)
      c.key.in_place = 1;
    else
      spx_coll_receives(&c, recvbuf, 0, recvtype), c.rown = recvcount;
  }
  if (c.send && c.recv && !spx_is_inter(comm) && c.rown * c.key.r[0] > 0 &&
      spx_coll_alias(spx_coll_at(c.send, spx_count_at(displs, comm->rank), sendtype), sendtype,
                     c.recv, recvtype))
    return alias(comm, "give MPI_IN_PLACE as recvbuf");
  return spx_collective(&c, how);
}

int spx_c_Scatterv(const void *sendbuf, spx_counts sendcounts, spx_counts displs,
                   spx_type *sendtype, void *recvbuf, int64_t recvcount, spx_type *recvtype,
                   int root, spx_comm *comm)
{
  return scatterv(sendbuf, sendcounts, displs, sendtype, recvbuf, recvcount, recvtype, root, comm,
                  SPX_BLOCKING);
}

int spx_c_Iscatterv(const void *sendbuf, spx_counts sendcounts, spx_counts displs,
                    spx_type *sendtype, void *recvbuf, int64_t recvcount, spx_type *recvtype,
                    int root, spx_comm *comm, MPI_Request *request)
{
  return scatterv(sendbuf, sendcounts, displs, sendtype, recvbuf, recvcount, recvtype, root, comm,
                  SPX_NONBLOCKING(request));
}

int spx_c_Scatterv_init(const void *sendbuf, spx_counts sendcounts, spx_counts displs,
                        spx_type *sendtype, void *recvbuf, int64_t recvcount, spx_type *recvtype,
                        int root, spx_comm *comm, MPI_Info info, MPI_Request *request)
{
  (void)info;
  return scatterv(sendbuf, sendcounts, displs, sendtype, recvbuf, recvcount, recvtype, root, comm,
                  SPX_PERSISTENT(request));
}
