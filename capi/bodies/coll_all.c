/* coll_all.c - the collectives without a root that move data: MPI_Barrier, MPI_Allgather(v),
 * MPI_Alltoall(v,w), blocking, nonblocking and persistent. MPI-5.0 6.3, 6.7, 6.8, 6.12, 6.13. */
#include "coll.h"

static int alias(const spx_comm *c)
{
  return SPX_COLL_FAIL(
      c, MPI_ERR_BUFFER,
      "the send buffer and the receive buffer are the same memory; give MPI_IN_PLACE as sendbuf");
}

/* Of both sides in one buffer: a block is sent from where that of the same rank is received.
 * Displacements may keep all apart. */
static int blocks_alias(const spx_coll *c)
{
  for (int i = 0; i < c->comm->remote_size; i++) {
    if (!spx_array_at(c->scounts, i) || !spx_array_at(c->rcounts, i)) continue;
    const spx_type *s = c->stypes ? (const spx_type *)spx_get(SPX_K_TYPE, c->stypes[i]) : c->stype;
    const spx_type *r = c->rtypes ? (const spx_type *)spx_get(SPX_K_TYPE, c->rtypes[i]) : c->rtype;
    int64_t from = spx_array_at(c->sdispls, i) * (c->stypes ? 1 : s->extent);
    int64_t to = spx_array_at(c->rdispls, i) * (c->rtypes ? 1 : r->extent);
    if (s->size && r->size &&
        spx_coll_alias((const char *)c->send + from, s, (const char *)c->recv + to, r))
      return 1;
  }
  return 0;
}

/* Base-2 logarithm, rounded up, of the sum of counts in bytes: on it rests the choice of the
 * algorithm at all ranks. */
uint16_t spx_size_class(spx_counts counts, int n, int64_t size)
{
  uint64_t total = 0;
  for (int i = 0; i < n; i++) total += (uint64_t)spx_count_at(counts, i);
  total *= (uint64_t)size;
  return total <= 1 ? 0 : (uint16_t)(64 - __builtin_clzll(total - 1));
}

int spx_c_Barrier(spx_comm *comm)
{
  spx_coll c;
  spx_coll_on(&c, comm, SPX_COLL_BARRIER);
  return spx_collective(&c, SPX_BLOCKING);
}

int spx_c_Ibarrier(spx_comm *comm, MPI_Request *request)
{
  spx_coll c;
  spx_coll_on(&c, comm, SPX_COLL_BARRIER);
  return spx_collective(&c, SPX_NONBLOCKING(request));
}

int spx_c_Barrier_init(spx_comm *comm, MPI_Info info, MPI_Request *request)
{
  spx_coll c;
  spx_coll_on(&c, comm, SPX_COLL_BARRIER);
  (void)info;
  return spx_collective(&c, SPX_PERSISTENT(request));
}

static int allgather(const void *sendbuf, int64_t sendcount, spx_type *sendtype, void *recvbuf,
                     int64_t recvcount, spx_type *recvtype, spx_comm *comm, spx_how how)
{
  spx_coll c;
  spx_coll_on(&c, comm, SPX_COLL_ALLGATHER);
  spx_coll_receives(&c, recvbuf, recvcount, recvtype);
  if (sendbuf == MPI_IN_PLACE)
    c.key.in_place = 1;
  else
    spx_coll_sends(&c, sendbuf, sendcount, sendtype);
  if (c.send && c.key.scount * c.key.s[0] > 0 && !spx_is_inter(comm) &&
      spx_coll_alias(c.send, sendtype, spx_coll_at(recvbuf, comm->rank * recvcount, recvtype),
                     recvtype))
    return alias(comm);
  return spx_collective(&c, how);
}

int spx_c_Allgather(const void *sendbuf, int64_t sendcount, spx_type *sendtype, void *recvbuf,
                    int64_t recvcount, spx_type *recvtype, spx_comm *comm)
{
  return allgather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, SPX_BLOCKING);
}

int spx_c_Iallgather(const void *sendbuf, int64_t sendcount, spx_type *sendtype, void *recvbuf,
                     int64_t recvcount, spx_type *recvtype, spx_comm *comm, MPI_Request *request)
{
  return allgather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm,
                   SPX_NONBLOCKING(request));
}

int spx_c_Allgather_init(const void *sendbuf, int64_t sendcount, spx_type *sendtype, void *recvbuf,
                         int64_t recvcount, spx_type *recvtype, spx_comm *comm, MPI_Info info,
                         MPI_Request *request)
{
  (void)info;
  return allgather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm,
                   SPX_PERSISTENT(request));
}

static int allgatherv(const void *sendbuf, int64_t sendcount, spx_type *sendtype, void *recvbuf,
                      spx_counts recvcounts, spx_counts displs, spx_type *recvtype, spx_comm *comm,
                      spx_how how)
{
  spx_coll c;
  spx_coll_on(&c, comm, SPX_COLL_ALLGATHERV);
  spx_coll_receives(&c, recvbuf, 0, recvtype);
  c.rcounts = spx_array_of(recvcounts);
  c.rdispls = spx_array_of(displs);
  c.key.size_class = spx_size_class(recvcounts, comm->remote_size, recvtype->size);
  if (sendbuf == MPI_IN_PLACE)
    c.key.in_place = 1;
  else
    spx_coll_sends(&c, sendbuf, 0, sendtype), c.sown = sendcount;
  if (c.send && !spx_is_inter(comm) && c.sown * c.key.s[0] > 0 &&
      spx_coll_alias(c.send, sendtype,
                     spx_coll_at(recvbuf, spx_count_at(displs, comm->rank), recvtype), recvtype))
    return alias(comm);
  return spx_collective(&c, how);
}

int spx_c_Allgatherv(const void *sendbuf, int64_t sendcount, spx_type *sendtype, void *recvbuf,
                     spx_counts recvcounts, spx_counts displs, spx_type *recvtype, spx_comm *comm)
{
  return allgatherv(sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm,
                    SPX_BLOCKING);
}

int spx_c_Iallgatherv(const void *sendbuf, int64_t sendcount, spx_type *sendtype, void *recvbuf,
                      spx_counts recvcounts, spx_counts displs, spx_type *recvtype, spx_comm *comm,
                      MPI_Request *request)
{
  return allgatherv(sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm,
                    SPX_NONBLOCKING(request));
}

int spx_c_Allgatherv_init(const void *sendbuf, int64_t sendcount, spx_type *sendtype, void *recvbuf,
                          spx_counts recvcounts, spx_counts displs, spx_type *recvtype,
                          spx_comm *comm, MPI_Info info, MPI_Request *request)
{
  (void)info;
  return allgatherv(sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm,
                    SPX_PERSISTENT(request));
}

static int alltoall(const void *sendbuf, int64_t sendcount, spx_type *sendtype, void *recvbuf,
                    int64_t recvcount, spx_type *recvtype, spx_comm *comm, spx_how how)
{
  spx_coll c;
  spx_coll_on(&c, comm, SPX_COLL_ALLTOALL);
  spx_coll_receives(&c, recvbuf, recvcount, recvtype);
  if (sendbuf == MPI_IN_PLACE)
    c.key.in_place = 1;
  else
    spx_coll_sends(&c, sendbuf, sendcount, sendtype);
  if (c.send && c.key.scount * c.key.s[0] > 0 &&
      spx_coll_alias(c.send, sendtype, recvbuf, recvtype))
    return alias(comm);
  return spx_collective(&c, how);
}

int spx_c_Alltoall(const void *sendbuf, int64_t sendcount, spx_type *sendtype, void *recvbuf,
                   int64_t recvcount, spx_type *recvtype, spx_comm *comm)
{
  return alltoall(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, SPX_BLOCKING);
}

int spx_c_Ialltoall(const void *sendbuf, int64_t sendcount, spx_type *sendtype, void *recvbuf,
                    int64_t recvcount, spx_type *recvtype, spx_comm *comm, MPI_Request *request)
{
  return alltoall(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm,
                  SPX_NONBLOCKING(request));
}

int spx_c_Alltoall_init(const void *sendbuf, int64_t sendcount, spx_type *sendtype, void *recvbuf,
                        int64_t recvcount, spx_type *recvtype, spx_comm *comm, MPI_Info info,
                        MPI_Request *request)
{
  (void)info;
  return alltoall(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm,
                  SPX_PERSISTENT(request));
}

static int alltoallv(const void *sendbuf, spx_counts sendcounts, spx_counts sdispls,
                     spx_type *sendtype, void *recvbuf, spx_counts recvcounts, spx_counts rdispls,
                     spx_type *recvtype, spx_comm *comm, spx_how how)
{
  spx_coll c;
  spx_coll_on(&c, comm, SPX_COLL_ALLTOALLV);
  spx_coll_receives(&c, recvbuf, 0, recvtype);
  c.rcounts = spx_array_of(recvcounts);
  c.rdispls = spx_array_of(rdispls);
  if (sendbuf == MPI_IN_PLACE)
    c.key.in_place = 1;
  else {
    spx_coll_sends(&c, sendbuf, 0, sendtype);
    c.scounts = spx_array_of(sendcounts);
    c.sdispls = spx_array_of(sdispls);
  }
  if (SPX_UNLIKELY(c.send && c.send == recvbuf) && blocks_alias(&c)) return alias(comm);
  return spx_collective(&c, how);
}

int spx_c_Alltoallv(const void *sendbuf, spx_counts sendcounts, spx_counts sdispls,
                    spx_type *sendtype, void *recvbuf, spx_counts recvcounts, spx_counts rdispls,
                    spx_type *recvtype, spx_comm *comm)
{
  return alltoallv(sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype,
                   comm, SPX_BLOCKING);
}

int spx_c_Ialltoallv(const void *sendbuf, spx_counts sendcounts, spx_counts sdispls,
                     spx_type *sendtype, void *recvbuf, spx_counts recvcounts, spx_counts rdispls,
                     spx_type *recvtype, spx_comm *comm, MPI_Request *request)
{
  return alltoallv(sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype,
                   comm, SPX_NONBLOCKING(request));
}

int spx_c_Alltoallv_init(const void *sendbuf, spx_counts sendcounts, spx_counts sdispls,
                         spx_type *sendtype, void *recvbuf, spx_counts recvcounts,
                         spx_counts rdispls, spx_type *recvtype, spx_comm *comm, MPI_Info info,
                         MPI_Request *request)
{
  (void)info;
  return alltoallv(sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype,
                   comm, SPX_PERSISTENT(request));
}

static int alltoallw(const void *sendbuf, spx_counts sendcounts, spx_counts sdispls,
                     const MPI_Datatype *sendtypes, void *recvbuf, spx_counts recvcounts,
                     spx_counts rdispls, const MPI_Datatype *recvtypes, spx_comm *comm, spx_how how)
{
  spx_coll c;
  spx_coll_on(&c, comm, SPX_COLL_ALLTOALLW);
  c.recv = recvbuf;
  c.rcounts = spx_array_of(recvcounts);
  c.rdispls = spx_array_of(rdispls);
  c.rtypes = recvtypes;
  if (sendbuf == MPI_IN_PLACE)
    c.key.in_place = 1;
  else {
    c.send = sendbuf;
    c.scounts = spx_array_of(sendcounts);
    c.sdispls = spx_array_of(sdispls);
    c.stypes = sendtypes;
  }
  if (SPX_UNLIKELY(c.send && c.send == recvbuf) && blocks_alias(&c)) return alias(comm);
  return spx_collective(&c, how);
}

int spx_c_Alltoallw(const void *sendbuf, spx_counts sendcounts, spx_counts sdispls,
                    const MPI_Datatype sendtypes[], void *recvbuf, spx_counts recvcounts,
                    spx_counts rdispls, const MPI_Datatype recvtypes[], spx_comm *comm)
{
  return alltoallw(sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes,
                   comm, SPX_BLOCKING);
}

int spx_c_Ialltoallw(const void *sendbuf, spx_counts sendcounts, spx_counts sdispls,
                     const MPI_Datatype sendtypes[], void *recvbuf, spx_counts recvcounts,
                     spx_counts rdispls, const MPI_Datatype recvtypes[], spx_comm *comm,
                     MPI_Request *request)
{
  return alltoallw(sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes,
                   comm, SPX_NONBLOCKING(request));
}

int spx_c_Alltoallw_init(const void *sendbuf, spx_counts sendcounts, spx_counts sdispls,
                         const MPI_Datatype sendtypes[], void *recvbuf, spx_counts recvcounts,
                         spx_counts rdispls, const MPI_Datatype recvtypes[], spx_comm *comm,
                         MPI_Info info, MPI_Request *request)
{
  (void)info;
  return alltoallw(sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes,
                   comm, SPX_PERSISTENT(request));
}
