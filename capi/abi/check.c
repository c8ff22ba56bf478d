/* check.c - words and raises what the checks of check.h have found: argument, value, what would be
 * right. */
#include "check.h"

#define FN spx_fn_name[spx_fn]

int spx_bad_state(void)
{
  if (spx_forked)
    spx_fatal(MPI_ERR_OTHER,
              "%s was called in a child process that was forked after the MPI library was loaded; "
              "such a process may "
              "only exec another program",
              FN);
  if (atomic_load(&spx_state) == SPX_FINALIZED)
    spx_fatal(MPI_ERR_OTHER,
              "%s was called after MPI_Finalize, which has to be the last call of MPI", FN);
  spx_fatal(
      MPI_ERR_OTHER,
      "%s was called before MPI_Init or MPI_Init_thread, which has to be the first call of MPI",
      FN);
}

int spx_unwritten(spx_kind k, void *h)
{
  return spx_raise(k, h, MPI_ERR_UNSUPPORTED_OPERATION, FN,
                   "%s is not supported by this version of libspx", FN);
}

static const struct {
  const char *a, *null_name;
  const void *null;
  int error;
} kinds[SPX_K_COUNT] = {
    [SPX_K_COMM] = {"a communicator", "MPI_COMM_NULL", MPI_COMM_NULL, MPI_ERR_COMM},
    [SPX_K_GROUP] = {"a group", "MPI_GROUP_NULL", MPI_GROUP_NULL, MPI_ERR_GROUP},
    [SPX_K_TYPE] = {"a datatype", "MPI_DATATYPE_NULL", MPI_DATATYPE_NULL, MPI_ERR_TYPE},
    [SPX_K_OP] = {"an operation", "MPI_OP_NULL", MPI_OP_NULL, MPI_ERR_OP},
    [SPX_K_ERRH] = {"an error handler", "MPI_ERRHANDLER_NULL", MPI_ERRHANDLER_NULL,
                    MPI_ERR_ERRHANDLER},
    [SPX_K_REQ] = {"a request", "MPI_REQUEST_NULL", MPI_REQUEST_NULL, MPI_ERR_REQUEST},
    [SPX_K_MSG] = {"a message", "MPI_MESSAGE_NULL", MPI_MESSAGE_NULL, MPI_ERR_REQUEST},
    [SPX_K_INFO] = {"an info object", "MPI_INFO_NULL", MPI_INFO_NULL, MPI_ERR_INFO},
    [SPX_K_WIN] = {"a window", "MPI_WIN_NULL", MPI_WIN_NULL, MPI_ERR_WIN},
    [SPX_K_FILE] = {"a file", "MPI_FILE_NULL", MPI_FILE_NULL, MPI_ERR_FILE},
    [SPX_K_SESSION] = {"a session", "MPI_SESSION_NULL", MPI_SESSION_NULL, MPI_ERR_SESSION},
    [SPX_K_RANKSET] = {"a set of ranks", "MPIX_RANKSET_NULL", MPIX_RANKSET_NULL, MPI_ERR_ARG},
    [SPX_K_CHECKPOINT] = {"a checkpoint object", "MPIX_CHECKPOINT_NULL", MPIX_CHECKPOINT_NULL,
                          MPI_ERR_ARG},
};

int spx_bad_handle(spx_kind k, void *h, spx_kind want, const char *arg, const void *value)
{
  uintptr_t v = (uintptr_t)value;
  int error = kinds[want].error;
  if (value == kinds[want].null)
    return spx_raise(k, h, error, FN, "%s is %s", arg, kinds[want].null_name);
  uintptr_t kind = v >> SPX_H_INDEX_BITS >> SPX_H_GEN_BITS;
  if (kind == (uintptr_t)want)
    return spx_raise(k, h, error, FN, "%s = 0x%lx is %s that was freed or never made", arg,
                     (unsigned long)v, kinds[want].a);
  if (kind > 0 && kind < SPX_K_COUNT)
    return spx_raise(k, h, error, FN, "%s = 0x%lx is not %s but %s", arg, (unsigned long)v,
                     kinds[want].a, kinds[kind].a);
  return spx_raise(k, h, error, FN, "%s = 0x%lx is not %s", arg, (unsigned long)v, kinds[want].a);
}

int spx_bad_type(spx_kind k, void *h, const char *arg, MPI_Datatype value)
{
  if (spx_get(SPX_K_TYPE, value))
    return spx_raise(k, h, MPI_ERR_TYPE, FN, "%s was not committed: call MPI_Type_commit first",
                     arg);
  return spx_bad_handle(k, h, SPX_K_TYPE, arg, value);
}

int spx_bad_null(spx_kind k, void *h, int error, const char *arg)
{
  return spx_raise(k, h, error, FN, "%s is NULL", arg);
}

int spx_bad_count(spx_kind k, void *h, const char *arg, int64_t value)
{
  return spx_bad_negative(k, h, MPI_ERR_COUNT, arg, value);
}

int spx_bad_negative(spx_kind k, void *h, int error, const char *arg, int64_t value)
{
  return spx_raise(k, h, error, FN, "%s = %lld is negative", arg, (long long)value);
}

int spx_bad_tag(spx_kind k, void *h, const char *arg, int value)
{
  if (value == MPI_ANY_TAG)
    return spx_raise(k, h, MPI_ERR_TAG, FN,
                     "%s is MPI_ANY_TAG, which only a receive or a probe may use", arg);
  return spx_raise(k, h, MPI_ERR_TAG, FN, "%s = %d is not a tag: tags are 0 to %d (MPI_TAG_UB)",
                   arg, value, SPX_TAG_UB);
}

int spx_bad_buffer(spx_kind k, void *h, const char *arg, const void *value)
{
  if (value == MPI_IN_PLACE)
    return spx_raise(k, h, MPI_ERR_BUFFER, FN, "%s is MPI_IN_PLACE, which is not allowed here",
                     arg);
  return spx_raise(k, h, MPI_ERR_BUFFER, FN, "%s is NULL, but there are data to be moved", arg);
}

int spx_bad_rank(const spx_comm *c, const char *arg, int value)
{
  void *h = (void *)(uintptr_t)c->o.handle;
  if (value == MPI_ANY_SOURCE)
    return spx_raise(SPX_K_COMM, h, MPI_ERR_RANK, FN,
                     "%s is MPI_ANY_SOURCE, which only a receive or a probe may use", arg);
  return spx_raise(SPX_K_COMM, h, MPI_ERR_RANK, FN,
                   "%s = %d is not a rank of the communicator's %sgroup (size %d)", arg, value,
                   c->flags & SPX_C_INTER ? "remote " : "", c->remote_size);
}

int spx_bad_root(const spx_comm *c, int root)
{
  void *h = (void *)(uintptr_t)c->o.handle;
  return spx_raise(SPX_K_COMM, h, MPI_ERR_ROOT, FN,
                   "root = %d is not a rank of the communicator's %sgroup (size %d)", root,
                   c->flags & SPX_C_INTER ? "remote " : "", c->remote_size);
}

int spx_check_counts(spx_kind k, void *h, const char *arg, const void *counts, int n, int wide)
{
  if (SPX_UNLIKELY(!counts && n > 0)) return spx_bad_null(k, h, MPI_ERR_ARG, arg);
  spx_counts c = {counts, wide};
  for (int i = 0; i < n; i++)
    if (SPX_UNLIKELY(spx_count_at(c, i) < 0))
      return spx_raise(k, h, MPI_ERR_COUNT, FN, "%s[%d] = %lld is negative", arg, i,
                       (long long)spx_count_at(c, i));
  return MPI_SUCCESS;
}

int spx_check_types(spx_kind k, void *h, const char *arg, const MPI_Datatype *types,
                    const void *counts, int n, int wide)
{
  if (SPX_UNLIKELY(!types && n > 0)) return spx_bad_null(k, h, MPI_ERR_ARG, arg);
  spx_counts c = {counts, wide};
  for (int i = 0; i < n; i++) {
    if (spx_count_at(c, i) == 0 ||
        SPX_LIKELY(spx_committed((spx_type *)spx_get(SPX_K_TYPE, types[i]))))
      continue;
    const char *why = spx_get(SPX_K_TYPE, types[i])
                          ? "was not committed: call MPI_Type_commit first"
                      : types[i] == MPI_DATATYPE_NULL ? "is MPI_DATATYPE_NULL"
                                                      : "is not a datatype";
    return spx_raise(k, h, MPI_ERR_TYPE, FN, "%s[%d] %s", arg, i, why);
  }
  return MPI_SUCCESS;
}

static int check_requests(int n, MPI_Request const *requests, int null_ok)
{
  if (SPX_UNLIKELY(!requests && n > 0))
    return spx_bad_null(0, NULL, MPI_ERR_REQUEST, "array_of_requests");
  for (int i = 0; i < n; i++) {
    if (SPX_LIKELY(spx_get(SPX_K_REQ, requests[i]) || (null_ok && requests[i] == MPI_REQUEST_NULL)))
      continue;
    return spx_raise(0, NULL, MPI_ERR_REQUEST, FN, "array_of_requests[%d] = 0x%lx %s", i,
                     (unsigned long)(uintptr_t)requests[i],
                     requests[i] == MPI_REQUEST_NULL
                         ? "is MPI_REQUEST_NULL"
                         : "is not a request: it was freed, has completed, or was never made");
  }
  return MPI_SUCCESS;
}

int spx_check_requests(int n, MPI_Request const *requests)
{
  return check_requests(n, requests, 0);
}
int spx_check_requests_or_null(int n, MPI_Request const *requests)
{
  return check_requests(n, requests, 1);
}

/* Elements that begin so many bytes from buf, which is MPI_IN_PLACE or below, can be there:
 * SPX_T_ABSOLUTE with a displacement. */
static int block_ok(const void *buf, int64_t count, uint64_t displ, const spx_type *t)
{
  return count == 0 || t->size == 0 || (!buf && displ + (uint64_t)t->true_lb >= SPX_LEAST_ADDRESS);
}

int spx_buffers_ok(const void *buf, spx_counts counts, spx_counts displs, int n, const spx_type *t)
{
  if (SPX_LIKELY((uintptr_t)buf > (uintptr_t)MPI_IN_PLACE)) return 1;
  for (int i = 0; i < n; i++) {
    uint64_t displ = displs.p ? (uint64_t)spx_count_at(displs, i) * (uint64_t)t->extent : 0;
    if (!block_ok(buf, spx_count_at(counts, i), displ, t)) return 0;
  }
  return 1;
}

int spx_buffers_of_types_ok(const void *buf, spx_counts counts, spx_counts displs, int n,
                            const MPI_Datatype *types)
{
  if (SPX_LIKELY((uintptr_t)buf > (uintptr_t)MPI_IN_PLACE)) return 1;
  for (int i = 0; i < n; i++) {
    int64_t count = spx_count_at(counts, i);
    if (count == 0) continue;
    if (!block_ok(buf, count, (uint64_t)spx_count_at(displs, i),
                  (spx_type *)spx_get(SPX_K_TYPE, types[i])))
      return 0;
  }
  return 1;
}
