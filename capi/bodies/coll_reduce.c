/* coll_reduce.c - the reductions: MPI_Reduce, MPI_Allreduce, MPI_Reduce_scatter(_block), MPI_Scan,
 * MPI_Exscan, blocking, nonblocking and persistent, and MPI_Reduce_local. MPI-5.0 6.9 to 6.13. */
#include "coll.h"
#include "reduce.h"

const char *spx_type_title(const spx_type *t)
{
  return t->flags & SPX_T_PREDEFINED && t->basic ? spx_basics[t->basic].name : "a derived datatype";
}

const char *spx_op_title(const spx_op *op)
{
  static const struct {
    MPI_Op op;
    const char *name;
  } names[] = {{MPI_SUM, "MPI_SUM"},         {MPI_MIN, "MPI_MIN"},       {MPI_MAX, "MPI_MAX"},
               {MPI_PROD, "MPI_PROD"},       {MPI_BAND, "MPI_BAND"},     {MPI_BOR, "MPI_BOR"},
               {MPI_BXOR, "MPI_BXOR"},       {MPI_LAND, "MPI_LAND"},     {MPI_LOR, "MPI_LOR"},
               {MPI_LXOR, "MPI_LXOR"},       {MPI_MINLOC, "MPI_MINLOC"}, {MPI_MAXLOC, "MPI_MAXLOC"},
               {MPI_REPLACE, "MPI_REPLACE"}, {MPI_NO_OP, "MPI_NO_OP"}};
  for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
    if ((int)(intptr_t)names[i].op == op->predef) return names[i].name;
  return "op";
}

/* Why an operation can not be applied to a datatype. */
static int bad_op(spx_kind k, void *handle, const spx_op *op, const spx_type *t)
{
  const char *name = spx_op_title(op);
  if (op->predef == (int)(intptr_t)MPI_REPLACE || op->predef == (int)(intptr_t)MPI_NO_OP)
    return spx_raise(k, handle, MPI_ERR_OP, spx_fn_name[spx_fn],
                     "%s is for one-sided communication alone", name);
  return spx_raise(k, handle, MPI_ERR_OP, spx_fn_name[spx_fn],
                   "%s is not defined for %s; make an operation by MPI_Op_create", name,
                   spx_type_title(t));
}

/* With no elements any operation is accepted, as programs without data pass any. */
static int check_op(const spx_comm *comm, int64_t elements, const spx_op *op, const spx_type *t)
{
  if (SPX_LIKELY(spx_op_valid(op, t)) || elements == 0) return MPI_SUCCESS;
  return bad_op(SPX_K_COMM, (void *)(uintptr_t)comm->o.handle, op, t);
}

/* Fills c in, after the checks that all reductions share. recvbuf is NULL where the result does not
 * go. */
static int prepare(spx_coll *c, const void *sendbuf, void *recvbuf, int64_t count, spx_type *t,
                   spx_op *op)
{
  spx_comm *comm = c->comm;
  int err = check_op(comm, count, op, t);
  if (SPX_UNLIKELY(err != MPI_SUCCESS)) return err;
  if (SPX_UNLIKELY(sendbuf && sendbuf == recvbuf && count * t->size > 0))
    return SPX_COLL_FAIL(comm, MPI_ERR_BUFFER,
                         "sendbuf and recvbuf are the same memory; give MPI_IN_PLACE as sendbuf");
  c->op = op;
  c->key.commute = op->commute != 0;
  spx_coll_sends(c, sendbuf, count, t);
  spx_coll_receives(c, recvbuf, count, t);
  if (sendbuf == MPI_IN_PLACE) {
    c->key.in_place = 1;
    c->send = NULL;
  }
  return MPI_SUCCESS;
}

static int reduce(const void *sendbuf, void *recvbuf, int64_t count, spx_type *datatype, spx_op *op,
                  int root, spx_comm *comm, spx_how how)
{
  spx_coll c;
  spx_coll_on(&c, comm, SPX_COLL_REDUCE);
  int inter = spx_is_inter(comm), receives = inter ? root == MPI_ROOT : root == comm->rank;
  c.key.root = root;
  if (op && datatype) {
    int err = prepare(&c, sendbuf, receives ? recvbuf : NULL, count, datatype, op);
    if (SPX_UNLIKELY(err != MPI_SUCCESS)) return err;
  }
  return spx_collective(&c, how);
}

int spx_c_Reduce(const void *sendbuf, void *recvbuf, int64_t count, spx_type *datatype, spx_op *op,
                 int root, spx_comm *comm)
{
  return reduce(sendbuf, recvbuf, count, datatype, op, root, comm, SPX_BLOCKING);
}

int spx_c_Ireduce(const void *sendbuf, void *recvbuf, int64_t count, spx_type *datatype, spx_op *op,
                  int root, spx_comm *comm, MPI_Request *request)
{
  return reduce(sendbuf, recvbuf, count, datatype, op, root, comm, SPX_NONBLOCKING(request));
}

int spx_c_Reduce_init(const void *sendbuf, void *recvbuf, int64_t count, spx_type *datatype,
                      spx_op *op, int root, spx_comm *comm, MPI_Info info, MPI_Request *request)
{
  (void)info;
  return reduce(sendbuf, recvbuf, count, datatype, op, root, comm, SPX_PERSISTENT(request));
}

static int allreduce(const void *sendbuf, void *recvbuf, int64_t count, spx_type *datatype,
                     spx_op *op, spx_comm *comm, spx_how how)
{
  spx_coll c;
  spx_coll_on(&c, comm, SPX_COLL_ALLREDUCE);
  int err = prepare(&c, sendbuf, recvbuf, count, datatype, op);
  return SPX_LIKELY(err == MPI_SUCCESS) ? spx_collective(&c, how) : err;
}

int spx_c_Allreduce(const void *sendbuf, void *recvbuf, int64_t count, spx_type *datatype,
                    spx_op *op, spx_comm *comm)
{
  return allreduce(sendbuf, recvbuf, count, datatype, op, comm, SPX_BLOCKING);
}

int spx_c_Iallreduce(const void *sendbuf, void *recvbuf, int64_t count, spx_type *datatype,
                     spx_op *op, spx_comm *comm, MPI_Request *request)
{
  return allreduce(sendbuf, recvbuf, count, datatype, op, comm, SPX_NONBLOCKING(request));
}

int spx_c_Allreduce_init(const void *sendbuf, void *recvbuf, int64_t count, spx_type *datatype,
                         spx_op *op, spx_comm *comm, MPI_Info info, MPI_Request *request)
{
  (void)info;
  return allreduce(sendbuf, recvbuf, count, datatype, op, comm, SPX_PERSISTENT(request));
}

static int reduce_scatter_block(const void *sendbuf, void *recvbuf, int64_t recvcount,
                                spx_type *datatype, spx_op *op, spx_comm *comm, spx_how how)
{
  spx_coll c;
  spx_coll_on(&c, comm, SPX_COLL_REDUCE_SCATTER_BLOCK);
  int err = prepare(&c, sendbuf, recvbuf, recvcount, datatype, op);
  return SPX_LIKELY(err == MPI_SUCCESS) ? spx_collective(&c, how) : err;
}

int spx_c_Reduce_scatter_block(const void *sendbuf, void *recvbuf, int64_t recvcount,
                               spx_type *datatype, spx_op *op, spx_comm *comm)
{
  return reduce_scatter_block(sendbuf, recvbuf, recvcount, datatype, op, comm, SPX_BLOCKING);
}

int spx_c_Ireduce_scatter_block(const void *sendbuf, void *recvbuf, int64_t recvcount,
                                spx_type *datatype, spx_op *op, spx_comm *comm,
                                MPI_Request *request)
{
  return reduce_scatter_block(sendbuf, recvbuf, recvcount, datatype, op, comm,
                              SPX_NONBLOCKING(request));
}

int spx_c_Reduce_scatter_block_init(const void *sendbuf, void *recvbuf, int64_t recvcount,
                                    spx_type *datatype, spx_op *op, spx_comm *comm, MPI_Info info,
                                    MPI_Request *request)
{
  (void)info;
  return reduce_scatter_block(sendbuf, recvbuf, recvcount, datatype, op, comm,
                              SPX_PERSISTENT(request));
}

static int reduce_scatter(const void *sendbuf, void *recvbuf, spx_counts recvcounts,
                          spx_type *datatype, spx_op *op, spx_comm *comm, spx_how how)
{
  spx_coll c;
  spx_coll_on(&c, comm, SPX_COLL_REDUCE_SCATTER);
  int64_t total = 0;
  for (int i = 0; i < comm->size; i++) total += spx_count_at(recvcounts, i);
  int err = check_op(comm, total, op, datatype);
  if (SPX_LIKELY(err == MPI_SUCCESS)) err = prepare(&c, sendbuf, recvbuf, 0, datatype, op);
  if (SPX_UNLIKELY(err != MPI_SUCCESS)) return err;
  c.rcounts = spx_array_of(recvcounts);
  c.key.size_class = spx_size_class(recvcounts, comm->size, datatype->size);
  if (SPX_UNLIKELY(c.send && c.send == recvbuf && total * datatype->size > 0))
    return SPX_COLL_FAIL(comm, MPI_ERR_BUFFER,
                         "sendbuf and recvbuf are the same memory; give MPI_IN_PLACE as sendbuf");
  return spx_collective(&c, how);
}

int spx_c_Reduce_scatter(const void *sendbuf, void *recvbuf, spx_counts recvcounts,
                         spx_type *datatype, spx_op *op, spx_comm *comm)
{
  return reduce_scatter(sendbuf, recvbuf, recvcounts, datatype, op, comm, SPX_BLOCKING);
}

int spx_c_Ireduce_scatter(const void *sendbuf, void *recvbuf, spx_counts recvcounts,
                          spx_type *datatype, spx_op *op, spx_comm *comm, MPI_Request *request)
{
  return reduce_scatter(sendbuf, recvbuf, recvcounts, datatype, op, comm, SPX_NONBLOCKING(request));
}

int spx_c_Reduce_scatter_init(const void *sendbuf, void *recvbuf, spx_counts recvcounts,
                              spx_type *datatype, spx_op *op, spx_comm *comm, MPI_Info info,
                              MPI_Request *request)
{
  (void)info;
  return reduce_scatter(sendbuf, recvbuf, recvcounts, datatype, op, comm, SPX_PERSISTENT(request));
}

/* MPI_Scan and MPI_Exscan. */
static int prefix(spx_coll_kind kind, const void *sendbuf, void *recvbuf, int64_t count,
                  spx_type *datatype, spx_op *op, spx_comm *comm, spx_how how)
{
  spx_coll c;
  spx_coll_on(&c, comm, kind);
  if (SPX_UNLIKELY(spx_is_inter(comm)))
    return SPX_COLL_FAIL(comm, MPI_ERR_COMM,
                         "comm is an intercommunicator, for which this is not defined");
  int err = prepare(&c, sendbuf, recvbuf, count, datatype, op);
  return SPX_LIKELY(err == MPI_SUCCESS) ? spx_collective(&c, how) : err;
}

static int scan(const void *sendbuf, void *recvbuf, int64_t count, spx_type *datatype, spx_op *op,
                spx_comm *comm, spx_how how)
{
  return prefix(SPX_COLL_SCAN, sendbuf, recvbuf, count, datatype, op, comm, how);
}

int spx_c_Scan(const void *sendbuf, void *recvbuf, int64_t count, spx_type *datatype, spx_op *op,
               spx_comm *comm)
{
  return scan(sendbuf, recvbuf, count, datatype, op, comm, SPX_BLOCKING);
}

int spx_c_Iscan(const void *sendbuf, void *recvbuf, int64_t count, spx_type *datatype, spx_op *op,
                spx_comm *comm, MPI_Request *request)
{
  return scan(sendbuf, recvbuf, count, datatype, op, comm, SPX_NONBLOCKING(request));
}

int spx_c_Scan_init(const void *sendbuf, void *recvbuf, int64_t count, spx_type *datatype,
                    spx_op *op, spx_comm *comm, MPI_Info info, MPI_Request *request)
{
  (void)info;
  return scan(sendbuf, recvbuf, count, datatype, op, comm, SPX_PERSISTENT(request));
}

static int exscan(const void *sendbuf, void *recvbuf, int64_t count, spx_type *datatype, spx_op *op,
                  spx_comm *comm, spx_how how)
{
  return prefix(SPX_COLL_EXSCAN, sendbuf, recvbuf, count, datatype, op, comm, how);
}

int spx_c_Exscan(const void *sendbuf, void *recvbuf, int64_t count, spx_type *datatype, spx_op *op,
                 spx_comm *comm)
{
  return exscan(sendbuf, recvbuf, count, datatype, op, comm, SPX_BLOCKING);
}

int spx_c_Iexscan(const void *sendbuf, void *recvbuf, int64_t count, spx_type *datatype, spx_op *op,
                  spx_comm *comm, MPI_Request *request)
{
  return exscan(sendbuf, recvbuf, count, datatype, op, comm, SPX_NONBLOCKING(request));
}

int spx_c_Exscan_init(const void *sendbuf, void *recvbuf, int64_t count, spx_type *datatype,
                      spx_op *op, spx_comm *comm, MPI_Info info, MPI_Request *request)
{
  (void)info;
  return exscan(sendbuf, recvbuf, count, datatype, op, comm, SPX_PERSISTENT(request));
}

int spx_c_Reduce_local(const void *inbuf, void *inoutbuf, int64_t count, spx_type *datatype,
                       spx_op *op)
{
  if (count > 0 && !spx_op_valid(op, datatype)) return bad_op(0, NULL, op, datatype);
  if (inbuf && inbuf == inoutbuf && count * datatype->size > 0)
    return spx_raise(0, NULL, MPI_ERR_BUFFER, spx_fn_name[spx_fn],
                     "inbuf and inoutbuf are the same memory");
  int err = spx_reduce(inbuf, inoutbuf, count, datatype, op);
  return err == MPI_SUCCESS ? err
                            : spx_raise(0, NULL, err, spx_fn_name[spx_fn], "%s", spx_detail_text());
}
