/* status.c - accessors of MPI_Status (MPI-5.0, 3.2.5, 3.8.4, 13.3) and its Fortran forms (19.3.5).
 *
 * The three forms have the same eight ints: source, tag, error, and the private words
 * (spx_status_bytes). A Fortran status is an array of them, MPI_F08_status a struct of them. */
#include <string.h>
#include "check.h"

int spx_c_Status_get_source(const MPI_Status *status, int *source)
{
  *source = status->MPI_SOURCE;
  return MPI_SUCCESS;
}
int spx_c_Status_get_tag(const MPI_Status *status, int *tag)
{
  *tag = status->MPI_TAG;
  return MPI_SUCCESS;
}
int spx_c_Status_get_error(const MPI_Status *status, int *error)
{
  *error = status->MPI_ERROR;
  return MPI_SUCCESS;
}
int spx_c_Status_set_source(MPI_Status *status, int source)
{
  status->MPI_SOURCE = source;
  return MPI_SUCCESS;
}
int spx_c_Status_set_tag(MPI_Status *status, int tag)
{
  status->MPI_TAG = tag;
  return MPI_SUCCESS;
}
int spx_c_Status_set_error(MPI_Status *status, int error)
{
  status->MPI_ERROR = error;
  return MPI_SUCCESS;
}
int spx_c_Test_cancelled(const MPI_Status *status, int *flag)
{
  *flag = spx_status_cancelled(status);
  return MPI_SUCCESS;
}
int spx_c_Status_set_cancelled(MPI_Status *status, int flag)
{
  status->MPI_internal[2] = (status->MPI_internal[2] & ~1) | (flag != 0);
  return MPI_SUCCESS;
}

_Static_assert(sizeof(MPI_Status) == MPI_F_STATUS_SIZE * sizeof(MPI_Fint), "MPI_Status");
_Static_assert(sizeof(MPI_F08_status) == sizeof(MPI_Status), "MPI_F08_status");

/* Copies a status from one form to another. MPI_STATUS_IGNORE has no contents to copy. */
static int convert(void *to, const char *to_name, const void *from, const char *from_name)
{
  if (!from) return spx_bad_null(0, NULL, MPI_ERR_ARG, from_name);
  if (!to) return spx_bad_null(0, NULL, MPI_ERR_ARG, to_name);
  memcpy(to, from, sizeof(MPI_Status));
  return MPI_SUCCESS;
}
#define CONVERT(to, from) convert(to, #to, from, #from)

int spx_c_Status_c2f(const MPI_Status *c_status, MPI_Fint *f_status)
{
  return CONVERT(f_status, c_status);
}
int spx_c_Status_f2c(const MPI_Fint *f_status, MPI_Status *c_status)
{
  return CONVERT(c_status, f_status);
}
int spx_c_Status_c2f08(const MPI_Status *c_status, MPI_F08_status *f08_status)
{
  return CONVERT(f08_status, c_status);
}
int spx_c_Status_f082c(const MPI_F08_status *f08_status, MPI_Status *c_status)
{
  return CONVERT(c_status, f08_status);
}
int spx_c_Status_f2f08(const MPI_Fint *f_status, MPI_F08_status *f08_status)
{
  return CONVERT(f08_status, f_status);
}
int spx_c_Status_f082f(const MPI_F08_status *f08_status, MPI_Fint *f_status)
{
  return CONVERT(f_status, f08_status);
}
