/* type.c - bodies of the datatype functions that need no engine: sizes and bounds, packing,
 * counting elements. MPI-5.0: 5.1.5, 5.1.7, 5.1.8, 5.1.11, 5.2, 5.3, 13.3. */
#include <string.h>
#include "check.h"
#include "basic.h"
#include "pack.h"
#include "runtime.h"

#define FN   spx_fn_name[spx_fn]
#define SELF 0, NULL

static void release(spx_obj *o) { spx_type_release((spx_type *)o); }

/* Predefined handles can be looked up from the start; handles.c has made its arrays before. */
__attribute__((constructor(102))) static void types_begin(void)
{
  spx_basic_init();
  spx_destructor[SPX_K_TYPE] = release;
}

int spx_c_Type_size(spx_type *datatype, spx_count_out size)
{
  spx_count_store(size, datatype->size);
  return MPI_SUCCESS;
}

int spx_c_Type_get_extent(spx_type *datatype, spx_count_out lb, spx_count_out extent)
{
  spx_count_store(lb, datatype->lb);
  spx_count_store(extent, datatype->extent);
  return MPI_SUCCESS;
}

int spx_c_Type_get_true_extent(spx_type *datatype, spx_count_out true_lb, spx_count_out true_extent)
{
  spx_count_store(true_lb, datatype->true_lb);
  spx_count_store(true_extent, datatype->true_extent);
  return MPI_SUCCESS;
}

/* ---- commit and free: the engine is entered for what is rare ---- */

/* Lets the engine carry a function out for a handle, and raises its error. */
static int by_engine(uint32_t fn, MPI_Datatype *datatype)
{
  spx_frame f = {.fn = fn, .a = {{.u = (uintptr_t)datatype}}};
  int err = spx_go_internal(&f);
  return err == MPI_SUCCESS ? err : spx_raise(SELF, err, FN, "%s", spx_detail_text());
}

int spx_c_Type_commit(MPI_Datatype *datatype)
{
  spx_type *t = (spx_type *)spx_get(SPX_K_TYPE, *datatype);
  if (!(t->flags & SPX_T_COMPILED) && !(t->flags & SPX_T_COMMITTED))
    return by_engine(SPX_IN_TYPE_COMMIT, datatype);
  t->flags |= SPX_T_COMMITTED;
  return MPI_SUCCESS;
}

int spx_c_Type_free(MPI_Datatype *datatype)
{
  spx_type *t = (spx_type *)spx_get(SPX_K_TYPE, *datatype);
  if (t->flags & (SPX_T_PREDEFINED | SPX_T_ATTRIBUTES))
    return by_engine(SPX_IN_TYPE_FREE, datatype);
  /* the engine's half goes when the engine is entered the next time */
  spx_retire(SPX_K_TYPE, &t->o);
  *datatype = MPI_DATATYPE_NULL;
  return MPI_SUCCESS;
}

/* ---- packing ---- */

static void *handle_of(const spx_comm *c) { return (void *)(uintptr_t)c->o.handle; }

/* Checks that count elements of each bytes fit between *position and the end of a buffer, and
 * returns how many bytes they are. Raises MPI_ERR_ARG for a position outside, and `full` when they
 * do not fit. */
static int room(void *comm, const char *buffer, int64_t count, int64_t each, int64_t size,
                int64_t position, int full, int64_t *bytes)
{
  if (position < 0 || position > size)
    return spx_raise(SPX_K_COMM, comm, MPI_ERR_ARG, FN,
                     "position = %lld is outside %s, which has %lld bytes", (long long)position,
                     buffer, (long long)size);
  if (__builtin_mul_overflow(count, each, bytes) || *bytes > size - position)
    return spx_raise(SPX_K_COMM, comm, full, FN,
                     "%lld elements of %lld bytes do not fit in %s: %s = %lld, position = %lld",
                     (long long)count, (long long)each, buffer,
                     buffer[0] == 'o' ? "outsize" : "insize", (long long)size, (long long)position);
  return MPI_SUCCESS;
}

int spx_c_Pack(const void *inbuf, int64_t incount, spx_type *datatype, void *outbuf,
               int64_t outsize, spx_count_out position, spx_comm *comm)
{
  int64_t bytes = 0, at = spx_count_get(position);
  int err =
      room(handle_of(comm), "outbuf", incount, datatype->size, outsize, at, MPI_ERR_ARG, &bytes);
  if (err || bytes == 0) return err;
  if ((uintptr_t)outbuf <= (uintptr_t)MPI_IN_PLACE)
    return spx_bad_buffer(SPX_K_COMM, handle_of(comm), "outbuf", outbuf);
  spx_pack(inbuf, incount, datatype, 0, bytes, (char *)outbuf + at);
  spx_count_store(position, at + bytes);
  return MPI_SUCCESS;
}

int spx_c_Unpack(const void *inbuf, int64_t insize, spx_count_out position, void *outbuf,
                 int64_t outcount, spx_type *datatype, spx_comm *comm)
{
  int64_t bytes = 0, at = spx_count_get(position);
  int err = room(handle_of(comm), "inbuf", outcount, datatype->size, insize, at, MPI_ERR_TRUNCATE,
                 &bytes);
  if (err || bytes == 0) return err;
  if ((uintptr_t)inbuf <= (uintptr_t)MPI_IN_PLACE)
    return spx_bad_buffer(SPX_K_COMM, handle_of(comm), "inbuf", inbuf);
  spx_unpack(outbuf, outcount, datatype, 0, bytes, (const char *)inbuf + at);
  spx_count_store(position, at + bytes);
  return MPI_SUCCESS;
}

/* Stores count * each as a size. */
static int store_size(void *comm, int64_t count, int64_t each, spx_count_out size)
{
  int64_t bytes;
  if (__builtin_mul_overflow(count, each, &bytes))
    return spx_raise(SPX_K_COMM, comm, MPI_ERR_COUNT, FN,
                     "%lld elements of %lld bytes are more bytes than 63 bits can count",
                     (long long)count, (long long)each);
  spx_count_store(size, bytes);
  return MPI_SUCCESS;
}

int spx_c_Pack_size(int64_t incount, spx_type *datatype, spx_comm *comm, spx_count_out size)
{
  return store_size(handle_of(comm), incount, datatype->size, size);
}

/* ---- external32 ---- */

static int check_external(const char *datarep, const spx_type *t, int64_t count)
{
  if (!datarep || strcmp(datarep, "external32") != 0)
    return spx_raise(SELF, MPI_ERR_ARG, FN,
                     "datarep is \"%s\"; only \"external32\" is possible here",
                     datarep ? datarep : "(null)");
  if (!(t->flags & SPX_T_COMMITTED))
    return spx_raise(SELF, MPI_ERR_TYPE, FN,
                     "datatype was not committed: call MPI_Type_commit first");
  if (count < 0)
    return spx_raise(SELF, MPI_ERR_COUNT, FN, "the count is %lld; it may not be negative",
                     (long long)count);
  return MPI_SUCCESS;
}

int spx_c_Pack_external_size(const char *datarep, int64_t incount, spx_type *datatype,
                             spx_count_out size)
{
  int err = check_external(datarep, datatype, incount);
  return err ? err : store_size(MPI_COMM_SELF, incount, spx_external_size(datatype), size);
}

int spx_c_Pack_external(const char *datarep, const void *inbuf, int64_t incount, spx_type *datatype,
                        void *outbuf, int64_t outsize, spx_count_out position)
{
  int64_t bytes = 0, at = spx_count_get(position);
  int err = check_external(datarep, datatype, incount);
  if (!err)
    err = room(MPI_COMM_SELF, "outbuf", incount, spx_external_size(datatype), outsize, at,
               MPI_ERR_ARG, &bytes);
  if (err || bytes == 0) return err;
  if ((uintptr_t)outbuf <= (uintptr_t)MPI_IN_PLACE) return spx_bad_buffer(SELF, "outbuf", outbuf);
  spx_external_pack(inbuf, incount, datatype, (char *)outbuf + at);
  spx_count_store(position, at + bytes);
  return MPI_SUCCESS;
}

int spx_c_Unpack_external(const char datarep[], const void *inbuf, int64_t insize,
                          spx_count_out position, void *outbuf, int64_t outcount,
                          spx_type *datatype)
{
  int64_t bytes = 0, at = spx_count_get(position);
  int err = check_external(datarep, datatype, outcount);
  if (!err)
    err = room(MPI_COMM_SELF, "inbuf", outcount, spx_external_size(datatype), insize, at,
               MPI_ERR_TRUNCATE, &bytes);
  if (err || bytes == 0) return err;
  if ((uintptr_t)inbuf <= (uintptr_t)MPI_IN_PLACE) return spx_bad_buffer(SELF, "inbuf", inbuf);
  spx_external_unpack(outbuf, outcount, datatype, (const char *)inbuf + at);
  spx_count_store(position, at + bytes);
  return MPI_SUCCESS;
}

/* ---- elements ---- */

/* Elements of several basic types, or of pairs, can only be separated in a compiled datatype. */
static int check_countable(const spx_type *t)
{
  bool simple = !t->basic_mixed && spx_basics[t->basic].cls != SPX_BC_PAIR;
  if (!simple && !(t->flags & SPX_T_COMMITTED))
    return spx_raise(SELF, MPI_ERR_TYPE, FN,
                     "datatype was not committed: call MPI_Type_commit first");
  return MPI_SUCCESS;
}

int spx_c_Get_elements(const MPI_Status *status, spx_type *datatype, spx_count_out count)
{
  int err = check_countable(datatype);
  if (err) return err;
  int64_t n = spx_type_elements(datatype, spx_status_bytes(status));
  spx_count_store(count, n < 0 ? MPI_UNDEFINED : n);
  return MPI_SUCCESS;
}

int spx_c_Status_set_elements(MPI_Status *status, spx_type *datatype, int64_t count)
{
  int err = check_countable(datatype);
  if (err) return err;
  if (count < 0)
    return spx_raise(SELF, MPI_ERR_COUNT, FN, "count is %lld; it may not be negative",
                     (long long)count);
  int64_t bytes = spx_type_bytes(datatype, count);
  if (bytes < 0)
    return spx_raise(SELF, MPI_ERR_COUNT, FN, "%lld elements are more bytes than 63 bits can count",
                     (long long)count);
  status->MPI_internal[0] = (int)(uint32_t)bytes;
  status->MPI_internal[1] = (int)(uint32_t)((uint64_t)bytes >> 32);
  return MPI_SUCCESS;
}
