/* The functions that may be called at any time (MPI-5.0, 11.4.1): before MPI_Init, between, and after MPI_Finalize. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

#define CHECK(ok)                                                                                                      \
  do {                                                                                                                 \
    if (!(ok)) {                                                                                                       \
      printf("%s, line %d: %s\n", when, __LINE__, #ok);                                                                \
      bad = 1;                                                                                                         \
    }                                                                                                                  \
  } while (0)
static int bad;

static void anytime(const char *when, int initialized, int finalized)
{
  int flag, version, subversion, len, class;
  char text[MPI_MAX_LIBRARY_VERSION_STRING], value[MPI_MAX_INFO_VAL + 1];
  CHECK(MPI_Initialized(&flag) == MPI_SUCCESS && flag == initialized);
  CHECK(MPI_Finalized(&flag) == MPI_SUCCESS && flag == finalized);
  CHECK(MPI_Get_version(&version, &subversion) == MPI_SUCCESS && version == 5 && subversion == 0);
  CHECK(MPI_Abi_get_version(&version, &subversion) == MPI_SUCCESS && version == 1 && subversion == 0);
  CHECK(MPI_Get_library_version(text, &len) == MPI_SUCCESS && len == (int)strlen(text) &&
        strncmp(text, "libspx ", 7) == 0);
  CHECK(MPI_Error_class(MPI_ERR_TAG, &class) == MPI_SUCCESS && class == MPI_ERR_TAG);
  CHECK(MPI_Error_string(MPI_ERR_TAG, text, &len) == MPI_SUCCESS && strstr(text, "MPI_ERR_TAG"));
  MPI_Info info, copy;
  CHECK(MPI_Info_create(&info) == MPI_SUCCESS && info != MPI_INFO_NULL);
  CHECK(MPI_Info_set(info, "key", "value") == MPI_SUCCESS);
  CHECK(MPI_Info_dup(info, &copy) == MPI_SUCCESS);
  len = sizeof value;
  CHECK(MPI_Info_get_string(copy, "key", &len, value, &flag) == MPI_SUCCESS && flag && strcmp(value, "value") == 0);
  CHECK(MPI_Info_fromint(MPI_Info_toint(info)) == info && MPI_Info_f2c(MPI_Info_c2f(info)) == info);
  CHECK(MPI_Info_free(&info) == MPI_SUCCESS && info == MPI_INFO_NULL && MPI_Info_free(&copy) == MPI_SUCCESS);
  MPI_Status status, back;
  MPI_Fint f_status[MPI_F_STATUS_SIZE];
  MPI_F08_status f08_status;
  memset(&status, 0, sizeof status);
  CHECK(MPI_Status_set_source(&status, 3) == MPI_SUCCESS && MPI_Status_set_tag(&status, 4) == MPI_SUCCESS &&
        MPI_Status_set_error(&status, MPI_ERR_TRUNCATE) == MPI_SUCCESS);
  CHECK(MPI_Status_set_cancelled(&status, 1) == MPI_SUCCESS && MPI_Test_cancelled(&status, &flag) == MPI_SUCCESS &&
        flag == 1);
  CHECK(MPI_Status_get_source(&status, &len) == MPI_SUCCESS && len == 3 &&
        MPI_Status_get_tag(&status, &len) == MPI_SUCCESS && len == 4);
  CHECK(MPI_Status_c2f(&status, f_status) == MPI_SUCCESS && f_status[MPI_F_SOURCE] == 3 && f_status[MPI_F_TAG] == 4 &&
        f_status[MPI_F_ERROR] == MPI_ERR_TRUNCATE);
  CHECK(MPI_Status_f2f08(f_status, &f08_status) == MPI_SUCCESS && f08_status.MPI_TAG == 4);
  CHECK(MPI_Status_f082c(&f08_status, &back) == MPI_SUCCESS && memcmp(&back, &status, sizeof back) == 0);
  CHECK(MPI_Aint_diff(MPI_Aint_add((MPI_Aint)value, 10), (MPI_Aint)value) == 10);
  CHECK(MPI_Comm_toint(MPI_COMM_WORLD) == 257 && MPI_Comm_fromint(257) == MPI_COMM_WORLD &&
        MPI_Type_toint(MPI_INT) == 521);
  CHECK(MPI_Wtime() > 0 && MPI_Wtick() > 0 && MPI_Wtick() < 1);
}

int main(int argc, char **argv)
{
  anytime("before", 0, 0);
  MPI_Init(&argc, &argv);
  anytime("between", 1, 0);
  MPI_Finalize();
  anytime("after", 1, 1);
  return bad;
}
