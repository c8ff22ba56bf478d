/* Calls of Fortran's functions from C (callbacks.h), and the functions that MPI predefines for Fortran. */
#include "callbacks.h"

struct keyval {
  spxf_copy_fn *copy;
  spxf_delete_fn *delete;
  MPI_Aint extra;
};

void *spxf_keyval(spxf_copy_fn *copy, spxf_delete_fn *delete, MPI_Aint extra)
{
  struct keyval *k = malloc(sizeof *k);
  if (k) *k = (struct keyval){copy, delete, extra};
  return k;
}

/* What a copy is: of the same kind as the original, a value of Fortran's or an address of C's. */
static int put_copy(void *in, MPI_Aint value, void *out)
{
  void *copy = spxf_is_box(in) ? spxf_box(value) : (void *)value;
  if (spxf_is_box(in) && !copy) return MPI_ERR_NO_MEM;
  *(void **)out = copy;
  return MPI_SUCCESS;
}

static int copy_to(MPI_Fint handle, int keyval, struct keyval *k, void *in, void *out, int *flag)
{
  MPI_Aint from = spxf_unbox(in), to = 0;
  MPI_Fint number = keyval, is = 0, err = MPI_SUCCESS;
  k->copy(&handle, &number, &k->extra, &from, &to, &is, &err);
  *flag = is != 0;
  if (is && err == MPI_SUCCESS) err = put_copy(in, to, out);
  return err;
}

static int delete_of(MPI_Fint handle, int keyval, struct keyval *k, void *value)
{
  MPI_Aint v = spxf_unbox(value);
  MPI_Fint number = keyval, err = MPI_SUCCESS;
  k->delete (&handle, &number, &v, &k->extra, &err);
  if (err == MPI_SUCCESS) spxf_box_free(value);
  return err;
}

#define OBJECT(object, type, convert)                                                                                  \
  static int object##_copy(type handle, int keyval, void *k, void *in, void *out, int *flag)                           \
  {                                                                                                                    \
    return copy_to(convert(handle), keyval, k, in, out, flag);                                                         \
  }                                                                                                                    \
  static int object##_delete(type handle, int keyval, void *value, void *k)                                            \
  {                                                                                                                    \
    return delete_of(convert(handle), keyval, k, value);                                                               \
  }

OBJECT(comm, MPI_Comm, MPI_Comm_toint)
OBJECT(type, MPI_Datatype, MPI_Type_toint)
OBJECT(win, MPI_Win, MPI_Win_toint)

/* MPI-1's functions get INTEGERs: 32 bits of the value, with its sign. */
static int old_copy(MPI_Comm comm, int keyval, void *state, void *in, void *out, int *flag)
{
  struct keyval *k = state;
  MPI_Fint handle = MPI_Comm_toint(comm), number = keyval, extra = (MPI_Fint)k->extra, from = (MPI_Fint)spxf_unbox(in),
           to = 0, is = 0, err = MPI_SUCCESS;
  ((void (*)(MPI_Fint *, MPI_Fint *, MPI_Fint *, MPI_Fint *, MPI_Fint *, MPI_Fint *, MPI_Fint *))k->copy)(
      &handle, &number, &extra, &from, &to, &is, &err);
  *flag = is != 0;
  if (is && err == MPI_SUCCESS) err = put_copy(in, to, out);
  return err;
}

static int old_delete(MPI_Comm comm, int keyval, void *value, void *state)
{
  struct keyval *k = state;
  MPI_Fint handle = MPI_Comm_toint(comm), number = keyval, extra = (MPI_Fint)k->extra, v = (MPI_Fint)spxf_unbox(value),
           err = MPI_SUCCESS;
  ((void (*)(MPI_Fint *, MPI_Fint *, MPI_Fint *, MPI_Fint *, MPI_Fint *))k->delete)(&handle, &number, &v, &extra, &err);
  if (err == MPI_SUCCESS) spxf_box_free(value);
  return err;
}

/* The predefined functions. A Fortran program passes their addresses; called by a program they do what they say. */
#define PREDEFINED(object, integer)                                                                                    \
  void mpi_##object##null_copy_fn_(MPI_Fint *h, MPI_Fint *k, integer *e, integer *in, integer *out, MPI_Fint *flag,    \
                                   MPI_Fint *ierror)                                                                   \
  {                                                                                                                    \
    (void)h, (void)k, (void)e, (void)in, (void)out;                                                                    \
    *flag = 0;                                                                                                         \
    *ierror = MPI_SUCCESS;                                                                                             \
  }                                                                                                                    \
  void mpi_##object##dup_fn_(MPI_Fint *h, MPI_Fint *k, integer *e, integer *in, integer *out, MPI_Fint *flag,          \
                             MPI_Fint *ierror)                                                                         \
  {                                                                                                                    \
    (void)h, (void)k, (void)e;                                                                                         \
    *out = *in;                                                                                                        \
    *flag = 1;                                                                                                         \
    *ierror = MPI_SUCCESS;                                                                                             \
  }                                                                                                                    \
  void mpi_##object##null_delete_fn_(MPI_Fint *h, MPI_Fint *k, integer *v, integer *e, MPI_Fint *ierror)               \
  {                                                                                                                    \
    (void)h, (void)k, (void)v, (void)e;                                                                                \
    *ierror = MPI_SUCCESS;                                                                                             \
  }

PREDEFINED(, MPI_Fint)
PREDEFINED(comm_, MPI_Aint)
PREDEFINED(type_, MPI_Aint)
PREDEFINED(win_, MPI_Aint)

void mpi_conversion_fn_null_(void *user, MPI_Fint *datatype, MPI_Fint *count, void *file, MPI_Offset *position,
                             MPI_Aint *extra, MPI_Fint *ierror)
{
  (void)user, (void)datatype, (void)count, (void)file, (void)position, (void)extra;
  *ierror = MPI_SUCCESS;
}

void mpi_conversion_fn_null_c_(void *user, MPI_Fint *datatype, MPI_Count *count, void *file, MPI_Offset *position,
                               MPI_Aint *extra, MPI_Fint *ierror)
{
  (void)user, (void)datatype, (void)count, (void)file, (void)position, (void)extra;
  *ierror = MPI_SUCCESS;
}

#define CHOOSE(object, type, TYPE)                                                                                     \
  type##_copy_attr_function *spxf_##object##_copy(spxf_copy_fn *copy)                                                  \
  {                                                                                                                    \
    if (copy == mpi_##object##_null_copy_fn_) return TYPE##_NULL_COPY_FN;                                              \
    return object##_copy;                                                                                              \
  }                                                                                                                    \
  type##_delete_attr_function *spxf_##object##_delete(spxf_delete_fn *delete)                                          \
  {                                                                                                                    \
    (void)delete;                                                                                                      \
    return object##_delete;                                                                                            \
  }

CHOOSE(comm, MPI_Comm, MPI_COMM)
CHOOSE(type, MPI_Type, MPI_TYPE)
CHOOSE(win, MPI_Win, MPI_WIN)

MPI_Comm_copy_attr_function *spxf_old_copy(spxf_copy_fn *copy)
{
  if ((void *)copy == (void *)mpi_null_copy_fn_) return MPI_COMM_NULL_COPY_FN;
  return old_copy;
}

MPI_Comm_delete_attr_function *spxf_old_delete(spxf_delete_fn *delete)
{
  (void)delete;
  return old_delete;
}

struct spxf_grequest *spxf_grequest(spxf_query_fn *query, spxf_free_fn *release, spxf_cancel_fn *cancel,
                                    MPI_Aint *extra)
{
  struct spxf_grequest *g = malloc(sizeof *g);
  if (g) *g = (struct spxf_grequest){query, release, cancel, extra};
  return g;
}

int spxf_query(void *state, MPI_Status *status)
{
  struct spxf_grequest *g = state;
  MPI_Fint err = MPI_SUCCESS;
  g->query(g->extra, (MPI_Fint *)status, &err);
  return err;
}

int spxf_release(void *state)
{
  struct spxf_grequest *g = state;
  MPI_Fint err = MPI_SUCCESS;
  g->release(g->extra, &err);
  free(g);
  return err;
}

int spxf_cancel(void *state, int complete)
{
  struct spxf_grequest *g = state;
  MPI_Fint is = complete != 0, err = MPI_SUCCESS;
  g->cancel(g->extra, &is, &err);
  return err;
}

struct spxf_datarep *spxf_datarep(spxf_conversion_fn *read, spxf_conversion_fn *write, spxf_extent_fn *extent,
                                  MPI_Aint *extra)
{
  struct spxf_datarep *d = malloc(sizeof *d);
  if (d)
    *d = (struct spxf_datarep){.read = read == mpi_conversion_fn_null_ ? NULL : read,
                               .write = write == mpi_conversion_fn_null_ ? NULL : write,
                               .extent = extent,
                               .extra = extra};
  return d;
}

struct spxf_datarep *spxf_datarep_c(spxf_conversion_c_fn *read, spxf_conversion_c_fn *write, spxf_extent_fn *extent,
                                    MPI_Aint *extra)
{
  struct spxf_datarep *d = malloc(sizeof *d);
  if (d)
    *d = (struct spxf_datarep){.read_c = read == mpi_conversion_fn_null_c_ ? NULL : read,
                               .write_c = write == mpi_conversion_fn_null_c_ ? NULL : write,
                               .extent = extent,
                               .extra = extra};
  return d;
}

static int convert(spxf_conversion_fn *fn, void *user, MPI_Datatype datatype, int count, void *file,
                   MPI_Offset position, struct spxf_datarep *d)
{
  MPI_Fint type = MPI_Type_toint(datatype), n = count, err = MPI_SUCCESS;
  fn(user, &type, &n, file, &position, d->extra, &err);
  return err;
}

int spxf_read(void *user, MPI_Datatype datatype, int count, void *file, MPI_Offset position, void *state)
{
  return convert(((struct spxf_datarep *)state)->read, user, datatype, count, file, position, state);
}

int spxf_write(void *user, MPI_Datatype datatype, int count, void *file, MPI_Offset position, void *state)
{
  return convert(((struct spxf_datarep *)state)->write, user, datatype, count, file, position, state);
}

static int convert_c(spxf_conversion_c_fn *fn, void *user, MPI_Datatype datatype, MPI_Count count, void *file,
                     MPI_Offset position, struct spxf_datarep *d)
{
  MPI_Fint type = MPI_Type_toint(datatype), err = MPI_SUCCESS;
  fn(user, &type, &count, file, &position, d->extra, &err);
  return err;
}

int spxf_read_c(void *user, MPI_Datatype datatype, MPI_Count count, void *file, MPI_Offset position, void *state)
{
  return convert_c(((struct spxf_datarep *)state)->read_c, user, datatype, count, file, position, state);
}

int spxf_write_c(void *user, MPI_Datatype datatype, MPI_Count count, void *file, MPI_Offset position, void *state)
{
  return convert_c(((struct spxf_datarep *)state)->write_c, user, datatype, count, file, position, state);
}

int spxf_extent(MPI_Datatype datatype, MPI_Aint *extent, void *state)
{
  struct spxf_datarep *d = state;
  MPI_Fint type = MPI_Type_toint(datatype), err = MPI_SUCCESS;
  d->extent(&type, extent, d->extra, &err);
  return err;
}
