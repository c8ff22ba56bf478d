/* Functions of a Fortran program that C calls, with its arguments. C's extra state is a struct with the functions and Fortran's extra state: of keyvals
   its value, of requests and data representations the variable itself, which the functions may change. */
#ifndef SPXF_CALLBACKS_H
#define SPXF_CALLBACKS_H

#include "f77.h"

typedef void spxf_copy_fn(MPI_Fint *handle, MPI_Fint *keyval, MPI_Aint *extra, MPI_Aint *in, MPI_Aint *out,
                          MPI_Fint *flag, MPI_Fint *ierror);
typedef void spxf_delete_fn(MPI_Fint *handle, MPI_Fint *keyval, MPI_Aint *value, MPI_Aint *extra, MPI_Fint *ierror);
typedef void spxf_query_fn(MPI_Aint *extra, MPI_Fint *status, MPI_Fint *ierror);
typedef void spxf_free_fn(MPI_Aint *extra, MPI_Fint *ierror);
typedef void spxf_cancel_fn(MPI_Aint *extra, MPI_Fint *complete, MPI_Fint *ierror);
typedef void spxf_conversion_fn(void *user, MPI_Fint *datatype, MPI_Fint *count, void *file, MPI_Offset *position,
                                MPI_Aint *extra, MPI_Fint *ierror);
typedef void spxf_conversion_c_fn(void *user, MPI_Fint *datatype, MPI_Count *count, void *file, MPI_Offset *position,
                                  MPI_Aint *extra, MPI_Fint *ierror);
typedef void spxf_extent_fn(MPI_Fint *datatype, MPI_Aint *extent, MPI_Aint *extra, MPI_Fint *ierror);

/* Attributes (attributes.c): what C is given for a value of Fortran's, or NULL when there is no memory; the value that Fortran sees of an attribute. */
void *spxf_box(MPI_Aint value);
int spxf_is_box(const void *attribute);
MPI_Aint spxf_unbox(void *attribute);
void spxf_box_free(void *attribute);

/* The extra state of a keyval; it lives as long as the process, because attributes may outlive the keyval. */
void *spxf_keyval(spxf_copy_fn *copy, spxf_delete_fn *delete, MPI_Aint extra);

/* What C is given for a function: MPI_COMM_NULL_COPY_FN and the like for Fortran's, else one that calls it. The old ones are those of MPI-1, with INTEGERs. */
MPI_Comm_copy_attr_function *spxf_comm_copy(spxf_copy_fn *copy);
MPI_Comm_delete_attr_function *spxf_comm_delete(spxf_delete_fn *delete);
MPI_Type_copy_attr_function *spxf_type_copy(spxf_copy_fn *copy);
MPI_Type_delete_attr_function *spxf_type_delete(spxf_delete_fn *delete);
MPI_Win_copy_attr_function *spxf_win_copy(spxf_copy_fn *copy);
MPI_Win_delete_attr_function *spxf_win_delete(spxf_delete_fn *delete);
MPI_Comm_copy_attr_function *spxf_old_copy(spxf_copy_fn *copy);
MPI_Comm_delete_attr_function *spxf_old_delete(spxf_delete_fn *delete);

struct spxf_grequest {
  spxf_query_fn *query;
  spxf_free_fn *release;
  spxf_cancel_fn *cancel;
  MPI_Aint *extra;
};
struct spxf_grequest *spxf_grequest(spxf_query_fn *query, spxf_free_fn *release, spxf_cancel_fn *cancel,
                                    MPI_Aint *extra);
int spxf_query(void *state, MPI_Status *status);
int spxf_release(void *state);
int spxf_cancel(void *state, int complete);

/* A data representation lives as long as the process. read and write are NULL for MPI_CONVERSION_FN_NULL. */
struct spxf_datarep {
  spxf_conversion_fn *read, *write;
  spxf_conversion_c_fn *read_c, *write_c; /* with large counts */
  spxf_extent_fn *extent;
  MPI_Aint *extra;
};
struct spxf_datarep *spxf_datarep(spxf_conversion_fn *read, spxf_conversion_fn *write, spxf_extent_fn *extent,
                                  MPI_Aint *extra);
struct spxf_datarep *spxf_datarep_c(spxf_conversion_c_fn *read, spxf_conversion_c_fn *write, spxf_extent_fn *extent,
                                    MPI_Aint *extra);
int spxf_read(void *user, MPI_Datatype datatype, int count, void *file, MPI_Offset position, void *state);
int spxf_write(void *user, MPI_Datatype datatype, int count, void *file, MPI_Offset position, void *state);
int spxf_read_c(void *user, MPI_Datatype datatype, MPI_Count count, void *file, MPI_Offset position, void *state);
int spxf_write_c(void *user, MPI_Datatype datatype, MPI_Count count, void *file, MPI_Offset position, void *state);
int spxf_extent(MPI_Datatype datatype, MPI_Aint *extent, void *state);

#endif
