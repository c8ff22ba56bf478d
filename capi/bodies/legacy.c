/* legacy.c - functions that MPI-3.0 removed and that no other function does as it is (MPI-2.2,
 * 15). */
#include "shim.h"

int spx_c_Type_extent(spx_type *datatype, MPI_Aint *extent)
{
  *extent = datatype->extent;
  return MPI_SUCCESS;
}
int spx_c_Type_lb(spx_type *datatype, MPI_Aint *displacement)
{
  *displacement = datatype->lb;
  return MPI_SUCCESS;
}
int spx_c_Type_ub(spx_type *datatype, MPI_Aint *displacement)
{
  *displacement = datatype->lb + datatype->extent;
  return MPI_SUCCESS;
}
