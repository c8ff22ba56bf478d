/* coll_neighbor.c - the neighbourhood collectives: MPI_Neighbor_allgather(v),
 * MPI_Neighbor_alltoall(v,w), blocking, nonblocking and persistent. The communicator's topology
 * defines the neighbours. MPI-5.0 9.6, 9.7, 9.8. */
#include "check.h"
#include "coll.h"

/* A communicator without topology has no neighbours, and in place is not defined here. A process
 * without neighbours has no buffers. */
static int check_topology(const spx_comm *c, const void *sendbuf, const void *recvbuf)
{
  void *h = (void *)(uintptr_t)c->o.handle;
  if (SPX_UNLIKELY(!(c->flags & SPX_C_TOPO)))
    return SPX_COLL_FAIL(
        c, MPI_ERR_TOPOLOGY,
        "the communicator has no topology: make one with MPI_Cart_create or MPI_Dist_graph_create");
  if (SPX_UNLIKELY(sendbuf == MPI_IN_PLACE))
    return spx_bad_buffer(SPX_K_COMM, h, "sendbuf", sendbuf);
  if (SPX_UNLIKELY(recvbuf == MPI_IN_PLACE))
    return spx_bad_buffer(SPX_K_COMM, h, "recvbuf", recvbuf);
  return MPI_SUCCESS;
}

/* MPI_Neighbor_allgather and MPI_Neighbor_alltoall, whose blocks are all alike. */
static int uniform(spx_coll_kind kind, const void *sendbuf, int64_t sendcount, spx_type *sendtype,
                   void *recvbuf, int64_t recvcount, spx_type *recvtype, spx_comm *comm,
                   spx_how how)
{
  spx_coll c;
  spx_coll_on(&c, comm, kind);
  SPX_TRY(check_topology(comm, sendbuf, recvbuf));
  spx_coll_sends(&c, sendbuf, sendcount, sendtype);
  spx_coll_receives(&c, recvbuf, recvcount, recvtype);
  return spx_collective(&c, how);
}

static int allgatherv(const void *sendbuf, int64_t sendcount, spx_type *sendtype, void *recvbuf,
                      spx_counts recvcounts, spx_counts displs, spx_type *recvtype, spx_comm *comm,
                      spx_how how)
{
  spx_coll c;
  spx_coll_on(&c, comm, SPX_COLL_NEIGHBOR_ALLGATHERV);
  SPX_TRY(check_topology(comm, sendbuf, recvbuf));
  spx_coll_sends(&c, sendbuf, 0, sendtype);
  c.sown = sendcount;
  spx_coll_receives(&c, recvbuf, 0, recvtype);
  c.rcounts = spx_array_of(recvcounts);
  c.rdispls = spx_array_of(displs);
  return spx_collective(&c, how);
}

static int alltoallv(const void *sendbuf, spx_counts sendcounts, spx_counts sdispls,
                     spx_type *sendtype, void *recvbuf, spx_counts recvcounts, spx_counts rdispls,
                     spx_type *recvtype, spx_comm *comm, spx_how how)
{
  spx_coll c;
  spx_coll_on(&c, comm, SPX_COLL_NEIGHBOR_ALLTOALLV);
  SPX_TRY(check_topology(comm, sendbuf, recvbuf));
  spx_coll_sends(&c, sendbuf, 0, sendtype);
  c.scounts = spx_array_of(sendcounts);
  c.sdispls = spx_array_of(sdispls);
  spx_coll_receives(&c, recvbuf, 0, recvtype);
  c.rcounts = spx_array_of(recvcounts);
  c.rdispls = spx_array_of(rdispls);
  return spx_collective(&c, how);
}

/* Displacements are addresses, whatever the counts are: the buffers may be MPI_BOTTOM. */
static int alltoallw(const void *sendbuf, spx_counts sendcounts, const MPI_Aint *sdispls,
                     const MPI_Datatype *sendtypes, void *recvbuf, spx_counts recvcounts,
                     const MPI_Aint *rdispls, const MPI_Datatype *recvtypes, spx_comm *comm,
                     spx_how how)
{
  spx_coll c;
  spx_coll_on(&c, comm, SPX_COLL_NEIGHBOR_ALLTOALLW);
  SPX_TRY(check_topology(comm, sendbuf, recvbuf));
  c.send = sendbuf;
  c.scounts = spx_array_of(sendcounts);
  c.sdispls = (spx_array){sdispls, 1};
  c.stypes = sendtypes;
  c.recv = recvbuf;
  c.rcounts = spx_array_of(recvcounts);
  c.rdispls = (spx_array){rdispls, 1};
  c.rtypes = recvtypes;
  return spx_collective(&c, how);
}
_Static_assert(sizeof(MPI_Aint) == 8, "arrays of displacements are wide");

int spx_c_Neighbor_allgather(const void *sendbuf, int64_t sendcount, spx_type *sendtype,
                             void *recvbuf, int64_t recvcount, spx_type *recvtype, spx_comm *comm)
{
  return uniform(SPX_COLL_NEIGHBOR_ALLGATHER, sendbuf, sendcount, sendtype, recvbuf, recvcount,
                 recvtype, comm, SPX_BLOCKING);
}

int spx_c_Ineighbor_allgather(const void *sendbuf, int64_t sendcount, spx_type *sendtype,
                              void *recvbuf, int64_t recvcount, spx_type *recvtype, spx_comm *comm,
                              MPI_Request *request)
{
  return uniform(SPX_COLL_NEIGHBOR_ALLGATHER, sendbuf, sendcount, sendtype, recvbuf, recvcount,
                 recvtype, comm, SPX_NONBLOCKING(request));
}

int spx_c_Neighbor_allgather_init(const void *sendbuf, int64_t sendcount, spx_type *sendtype,
                                  void *recvbuf, int64_t recvcount, spx_type *recvtype,
                                  spx_comm *comm, MPI_Info info, MPI_Request *request)
{
  (void)info;
  return uniform(SPX_COLL_NEIGHBOR_ALLGATHER, sendbuf, sendcount, sendtype, recvbuf, recvcount,
                 recvtype, comm, SPX_PERSISTENT(request));
}

int spx_c_Neighbor_allgatherv(const void *sendbuf, int64_t sendcount, spx_type *sendtype,
                              void *recvbuf, spx_counts recvcounts, spx_counts displs,
                              spx_type *recvtype, spx_comm *comm)
{
  return allgatherv(sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm,
                    SPX_BLOCKING);
}

int spx_c_Ineighbor_allgatherv(const void *sendbuf, int64_t sendcount, spx_type *sendtype,
                               void *recvbuf, spx_counts recvcounts, spx_counts displs,
                               spx_type *recvtype, spx_comm *comm, MPI_Request *request)
{
  return allgatherv(sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm,
                    SPX_NONBLOCKING(request));
}

int spx_c_Neighbor_allgatherv_init(const void *sendbuf, int64_t sendcount, spx_type *sendtype,
                                   void *recvbuf, spx_counts recvcounts, spx_counts displs,
                                   spx_type *recvtype, spx_comm *comm, MPI_Info info,
                                   MPI_Request *request)
{
  (void)info;
  return allgatherv(sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm,
                    SPX_PERSISTENT(request));
}

int spx_c_Neighbor_alltoall(const void *sendbuf, int64_t sendcount, spx_type *sendtype,
                            void *recvbuf, int64_t recvcount, spx_type *recvtype, spx_comm *comm)
{
  return uniform(SPX_COLL_NEIGHBOR_ALLTOALL, sendbuf, sendcount, sendtype, recvbuf, recvcount,
                 recvtype, comm, SPX_BLOCKING);
}

int spx_c_Ineighbor_alltoall(const void *sendbuf, int64_t sendcount, spx_type *sendtype,
                             void *recvbuf, int64_t recvcount, spx_type *recvtype, spx_comm *comm,
                             MPI_Request *request)
{
  return uniform(SPX_COLL_NEIGHBOR_ALLTOALL, sendbuf, sendcount, sendtype, recvbuf, recvcount,
                 recvtype, comm, SPX_NONBLOCKING(request));
}

int spx_c_Neighbor_alltoall_init(const void *sendbuf, int64_t sendcount, spx_type *sendtype,
                                 void *recvbuf, int64_t recvcount, spx_type *recvtype,
                                 spx_comm *comm, MPI_Info info, MPI_Request *request)
{
  (void)info;
  return uniform(SPX_COLL_NEIGHBOR_ALLTOALL, sendbuf, sendcount, sendtype, recvbuf, recvcount,
                 recvtype, comm, SPX_PERSISTENT(request));
}

int spx_c_Neighbor_alltoallv(const void *sendbuf, spx_counts sendcounts, spx_counts sdispls,
                             spx_type *sendtype, void *recvbuf, spx_counts recvcounts,
                             spx_counts rdispls, spx_type *recvtype, spx_comm *comm)
{
  return alltoallv(sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype,
                   comm, SPX_BLOCKING);
}

int spx_c_Ineighbor_alltoallv(const void *sendbuf, spx_counts sendcounts, spx_counts sdispls,
                              spx_type *sendtype, void *recvbuf, spx_counts recvcounts,
                              spx_counts rdispls, spx_type *recvtype, spx_comm *comm,
                              MPI_Request *request)
{
  return alltoallv(sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype,
                   comm, SPX_NONBLOCKING(request));
}

int spx_c_Neighbor_alltoallv_init(const void *sendbuf, spx_counts sendcounts, spx_counts sdispls,
                                  spx_type *sendtype, void *recvbuf, spx_counts recvcounts,
                                  spx_counts rdispls, spx_type *recvtype, spx_comm *comm,
                                  MPI_Info info, MPI_Request *request)
{
  (void)info;
  return alltoallv(sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype,
                   comm, SPX_PERSISTENT(request));
}

int spx_c_Neighbor_alltoallw(const void *sendbuf, spx_counts sendcounts, const MPI_Aint sdispls[],
                             const MPI_Datatype sendtypes[], void *recvbuf, spx_counts recvcounts,
                             const MPI_Aint rdispls[], const MPI_Datatype recvtypes[],
                             spx_comm *comm)
{
  return alltoallw(sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes,
                   comm, SPX_BLOCKING);
}

int spx_c_Ineighbor_alltoallw(const void *sendbuf, spx_counts sendcounts, const MPI_Aint sdispls[],
                              const MPI_Datatype sendtypes[], void *recvbuf, spx_counts recvcounts,
                              const MPI_Aint rdispls[], const MPI_Datatype recvtypes[],
                              spx_comm *comm, MPI_Request *request)
{
  return alltoallw(sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes,
                   comm, SPX_NONBLOCKING(request));
}

int spx_c_Neighbor_alltoallw_init(const void *sendbuf, spx_counts sendcounts,
                                  const MPI_Aint sdispls[], const MPI_Datatype sendtypes[],
                                  void *recvbuf, spx_counts recvcounts, const MPI_Aint rdispls[],
                                  const MPI_Datatype recvtypes[], spx_comm *comm, MPI_Info info,
                                  MPI_Request *request)
{
  (void)info;
  return alltoallw(sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes,
                   comm, SPX_PERSISTENT(request));
}
