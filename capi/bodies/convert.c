/* convert.c - handles as integers (MPI-5.0, 19.3.4 and 20.3.3), addresses, and the version.
 *
 * A handle's value is a positive int that Fortran and MPI_X_toint use as it is, so that nothing is
 * kept in a table. Any value is accepted and given back, valid or not: the next call that uses the
 * handle reports what is wrong with it. */
#include "shim.h"

static inline int to_int(const void *handle) { return (int)(uintptr_t)handle; }
static inline void *to_handle(int value) { return (void *)(uintptr_t)(unsigned)value; }

int spx_c_Comm_toint(MPI_Comm handle) { return to_int(handle); }
MPI_Comm spx_c_Comm_fromint(int value) { return to_handle(value); }
MPI_Fint spx_c_Comm_c2f(MPI_Comm handle) { return to_int(handle); }
MPI_Comm spx_c_Comm_f2c(MPI_Fint value) { return to_handle(value); }

int spx_c_Errhandler_toint(MPI_Errhandler handle) { return to_int(handle); }
MPI_Errhandler spx_c_Errhandler_fromint(int value) { return to_handle(value); }
MPI_Fint spx_c_Errhandler_c2f(MPI_Errhandler handle) { return to_int(handle); }
MPI_Errhandler spx_c_Errhandler_f2c(MPI_Fint value) { return to_handle(value); }

int spx_c_File_toint(MPI_File handle) { return to_int(handle); }
MPI_File spx_c_File_fromint(int value) { return to_handle(value); }
MPI_Fint spx_c_File_c2f(MPI_File handle) { return to_int(handle); }
MPI_File spx_c_File_f2c(MPI_Fint value) { return to_handle(value); }

int spx_c_Group_toint(MPI_Group handle) { return to_int(handle); }
MPI_Group spx_c_Group_fromint(int value) { return to_handle(value); }
MPI_Fint spx_c_Group_c2f(MPI_Group handle) { return to_int(handle); }
MPI_Group spx_c_Group_f2c(MPI_Fint value) { return to_handle(value); }

int spx_c_Info_toint(MPI_Info handle) { return to_int(handle); }
MPI_Info spx_c_Info_fromint(int value) { return to_handle(value); }
MPI_Fint spx_c_Info_c2f(MPI_Info handle) { return to_int(handle); }
MPI_Info spx_c_Info_f2c(MPI_Fint value) { return to_handle(value); }

int spx_c_Message_toint(MPI_Message handle) { return to_int(handle); }
MPI_Message spx_c_Message_fromint(int value) { return to_handle(value); }
MPI_Fint spx_c_Message_c2f(MPI_Message handle) { return to_int(handle); }
MPI_Message spx_c_Message_f2c(MPI_Fint value) { return to_handle(value); }

int spx_c_Op_toint(MPI_Op handle) { return to_int(handle); }
MPI_Op spx_c_Op_fromint(int value) { return to_handle(value); }
MPI_Fint spx_c_Op_c2f(MPI_Op handle) { return to_int(handle); }
MPI_Op spx_c_Op_f2c(MPI_Fint value) { return to_handle(value); }

int spx_c_Request_toint(MPI_Request handle) { return to_int(handle); }
MPI_Request spx_c_Request_fromint(int value) { return to_handle(value); }
MPI_Fint spx_c_Request_c2f(MPI_Request handle) { return to_int(handle); }
MPI_Request spx_c_Request_f2c(MPI_Fint value) { return to_handle(value); }

int spx_c_Session_toint(MPI_Session handle) { return to_int(handle); }
MPI_Session spx_c_Session_fromint(int value) { return to_handle(value); }
MPI_Fint spx_c_Session_c2f(MPI_Session handle) { return to_int(handle); }
MPI_Session spx_c_Session_f2c(MPI_Fint value) { return to_handle(value); }

int spx_c_Win_toint(MPI_Win handle) { return to_int(handle); }
MPI_Win spx_c_Win_fromint(int value) { return to_handle(value); }
MPI_Fint spx_c_Win_c2f(MPI_Win handle) { return to_int(handle); }
MPI_Win spx_c_Win_f2c(MPI_Fint value) { return to_handle(value); }

int spx_c_Type_toint(MPI_Datatype handle) { return to_int(handle); }
MPI_Datatype spx_c_Type_fromint(int value) { return to_handle(value); }
MPI_Fint spx_c_Type_c2f(MPI_Datatype handle) { return to_int(handle); }
MPI_Datatype spx_c_Type_f2c(MPI_Fint value) { return to_handle(value); }

/* Addresses are plain integers here (MPI-5.0, 5.1.5): MPI_BOTTOM is 0. */
int spx_c_Get_address(const void *location, MPI_Aint *address)
{
  *address = (MPI_Aint)location;
  return MPI_SUCCESS;
}
MPI_Aint spx_c_Aint_add(MPI_Aint base, MPI_Aint disp)
{
  return (MPI_Aint)((uintptr_t)base + (uintptr_t)disp);
}
MPI_Aint spx_c_Aint_diff(MPI_Aint addr1, MPI_Aint addr2)
{
  return (MPI_Aint)((uintptr_t)addr1 - (uintptr_t)addr2);
}

int spx_c_Get_version(int *version, int *subversion)
{
  *version = MPI_VERSION;
  *subversion = MPI_SUBVERSION;
  return MPI_SUCCESS;
}
int spx_c_Abi_get_version(int *abi_major, int *abi_minor)
{
  *abi_major = MPI_ABI_VERSION;
  *abi_minor = MPI_ABI_SUBVERSION;
  return MPI_SUCCESS;
}
