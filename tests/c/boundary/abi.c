/* What the binary interface tells of itself, at any time (MPI-5.0, 21.2 and 21.4.1). */
// run: n=1
#include "boundary.h"

static int value(MPI_Info info, const char *key)
{
  char text[MPI_MAX_INFO_VAL];
  int length = sizeof text, flag;
  MPI_Info_get_string(info, key, &length, text, &flag);
  if (!flag) FAIL("no key %s", key);
  return !strcmp(text, "true") ? 1 : !strcmp(text, "false") ? 0 : atoi(text);
}

static void ask(void)
{
  MPI_Info info;
  int major, minor, yes = 0, no = 1, set = 0;
  CHECK(MPI_Abi_get_version(&major, &minor) == MPI_SUCCESS && major == MPI_ABI_VERSION && minor == MPI_ABI_SUBVERSION);
  CHECK(MPI_Abi_get_info(&info) == MPI_SUCCESS);
  CHECK(value(info, "mpi_aint_size") == sizeof(MPI_Aint) && value(info, "mpi_count_size") == 8 &&
        value(info, "mpi_offset_size") == 8);
  MPI_Info_free(&info);
  CHECK(MPI_Abi_get_fortran_info(&info) == MPI_SUCCESS && info != MPI_INFO_NULL);
  CHECK(value(info, "mpi_integer_size") == sizeof(MPI_Fint) && value(info, "mpi_double_precision_size") == 8);
  CHECK(value(info, "mpi_real8_supported") == 1);
  MPI_Info_free(&info);
  CHECK(MPI_Abi_get_fortran_booleans(4, &yes, &no, &set) == MPI_SUCCESS && yes == 1 && no == 0 && set);
}

int main(int argc, char **argv)
{
  int t = 1, f = 0;
  ask();
  MPI_Init(&argc, &argv);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  ask();
  CHECK(MPI_Abi_set_fortran_info(MPI_INFO_ENV) == MPI_ERR_ABI);
  CHECK(MPI_Abi_set_fortran_booleans(4, &t, &f) == MPI_ERR_ABI);
  CHECK(MPI_Abi_get_fortran_booleans(3, &t, &f, &t) == MPI_ERR_ARG);
  MPI_Finalize();
  ask();
  return 0;
}
