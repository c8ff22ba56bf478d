/* What MPI-3 removed and old programs call (mpi-legacy.h). Addresses and extents are INTEGERs here: they do not fit on machines of 64 bits; then the routine fails
   with MPI_ERR_ARG instead of cutting them off. Compiled twice, as zz_f77.c is. */
#include "f77.h"

#include <limits.h>

static int fits(MPI_Aint value, MPI_Fint *into)
{
  if (value < INT_MIN || value > INT_MAX) return MPI_ERR_ARG;
  *into = (MPI_Fint)value;
  return MPI_SUCCESS;
}

void F77(address)(void *location, MPI_Fint *address, MPI_Fint *ierror)
{
  MPI_Aint a = 0;
  *ierror = CALL(Get_address)(spxf_buffer(location), &a);
  if (*ierror == MPI_SUCCESS) *ierror = fits(a, address);
}

void F77(type_extent)(MPI_Fint *datatype, MPI_Fint *extent, MPI_Fint *ierror)
{
  MPI_Aint lb = 0, e = 0;
  *ierror = CALL(Type_get_extent)(MPI_Type_fromint(*datatype), &lb, &e);
  if (*ierror == MPI_SUCCESS) *ierror = fits(e, extent);
}

void F77(type_lb)(MPI_Fint *datatype, MPI_Fint *displacement, MPI_Fint *ierror)
{
  MPI_Aint lb = 0, e = 0;
  *ierror = CALL(Type_get_extent)(MPI_Type_fromint(*datatype), &lb, &e);
  if (*ierror == MPI_SUCCESS) *ierror = fits(lb, displacement);
}

void F77(type_ub)(MPI_Fint *datatype, MPI_Fint *displacement, MPI_Fint *ierror)
{
  MPI_Aint lb = 0, e = 0;
  *ierror = CALL(Type_get_extent)(MPI_Type_fromint(*datatype), &lb, &e);
  if (*ierror == MPI_SUCCESS) *ierror = fits(lb + e, displacement);
}

void F77(type_hvector)(MPI_Fint *count, MPI_Fint *blocklength, MPI_Fint *stride, MPI_Fint *oldtype, MPI_Fint *newtype,
                       MPI_Fint *ierror)
{
  MPI_Datatype made = MPI_DATATYPE_NULL;
  *ierror = CALL(Type_create_hvector)(*count, *blocklength, *stride, MPI_Type_fromint(*oldtype), &made);
  if (*ierror == MPI_SUCCESS) *newtype = MPI_Type_toint(made);
}

void F77(type_hindexed)(MPI_Fint *count, MPI_Fint *blocklengths, MPI_Fint *displacements, MPI_Fint *oldtype,
                        MPI_Fint *newtype, MPI_Fint *ierror)
{
  MPI_Datatype made = MPI_DATATYPE_NULL;
  SPXF_ARRAY(MPI_Aint, at, *count);
  for (int i = 0; i < n_at; i++) at[i] = displacements[i];
  *ierror = CALL(Type_create_hindexed)(*count, blocklengths, at, MPI_Type_fromint(*oldtype), &made);
  if (*ierror == MPI_SUCCESS) *newtype = MPI_Type_toint(made);
  SPXF_FREE(at);
}

void F77(type_struct)(MPI_Fint *count, MPI_Fint *blocklengths, MPI_Fint *displacements, MPI_Fint *types,
                      MPI_Fint *newtype, MPI_Fint *ierror)
{
  MPI_Datatype made = MPI_DATATYPE_NULL;
  SPXF_ARRAY(MPI_Aint, at, *count);
  SPXF_ARRAY(MPI_Datatype, c_types, *count);
  for (int i = 0; i < n_at; i++) at[i] = displacements[i], c_types[i] = MPI_Type_fromint(types[i]);
  *ierror = CALL(Type_create_struct)(*count, blocklengths, at, c_types, &made);
  if (*ierror == MPI_SUCCESS) *newtype = MPI_Type_toint(made);
  SPXF_FREE(c_types);
  SPXF_FREE(at);
}

void F77(errhandler_set)(MPI_Fint *comm, MPI_Fint *errhandler, MPI_Fint *ierror)
{
  *ierror = CALL(Comm_set_errhandler)(MPI_Comm_fromint(*comm), MPI_Errhandler_fromint(*errhandler));
}

void F77(errhandler_get)(MPI_Fint *comm, MPI_Fint *errhandler, MPI_Fint *ierror)
{
  MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
  *ierror = CALL(Comm_get_errhandler)(MPI_Comm_fromint(*comm), &handler);
  if (*ierror == MPI_SUCCESS) *errhandler = MPI_Errhandler_toint(handler);
}
