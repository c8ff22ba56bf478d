/* Memory allocation kinds (MPI-5.0, 12.4.3): what sessions ask for, what spxrun was asked for, what objects tell, and assertions. */
// run: n=2
// run: n=2 spxrun="-memory-alloc-kinds mpi:win_allocate,gpu" args="mpi,system,mpi:win_allocate"
#include "../check.h"
#include <string.h>

static void expect(MPI_Info info, const char *key, const char *want)
{
  char v[200] = "";
  int len = sizeof v, flag = 0;
  MPI_Info_get_string(info, key, &len, v, &flag);
  CHECK(flag == (want != NULL) && (!want || strcmp(v, want) == 0));
  if (want && strcmp(v, want) != 0) fprintf(stderr, "%s is \"%s\" instead of \"%s\"\n", key, v, want);
  MPI_Info_free(&info);
}

static MPI_Info with(const char *key, const char *value)
{
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, key, value);
  return info;
}

int main(int argc, char **argv)
{
  const char *kinds = "mpi_memory_alloc_kinds", *assert_kinds = "mpi_assert_memory_alloc_kinds";
  const char *world = argc > 1 ? argv[1] : "mpi,system";
  MPI_Session s, plain;
  MPI_Group g;
  MPI_Comm c;
  MPI_Win w;
  MPI_File f;
  MPI_Info in, out;
  int *mem;
  MPI_Init(&argc, &argv);
  in = with(kinds, "mpi:alloc_mem,gpu:device,system");
  MPI_Session_init(in, MPI_ERRORS_RETURN, &s);
  MPI_Info_free(&in);
  MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &plain);
  MPI_Session_get_info(s, &out);
  expect(out, kinds, "mpi,system,mpi:alloc_mem");
  MPI_Session_get_info(plain, &out);
  expect(out, kinds, world);
  MPI_Comm_get_info(MPI_COMM_WORLD, &out);
  expect(out, kinds, world);

  MPI_Group_from_session_pset(s, "mpi://WORLD", &g);
  MPI_Comm_create_from_group(g, "kinds", MPI_INFO_NULL, MPI_ERRORS_RETURN, &c);
  MPI_Group_free(&g);
  MPI_Comm_get_info(c, &out);
  expect(out, kinds, "mpi,system,mpi:alloc_mem");
  MPI_Comm_get_info(c, &out);
  expect(out, assert_kinds, NULL);
  in = with(assert_kinds, "system,mpi:alloc_mem");
  MPI_Comm_set_info(c, in);
  MPI_Info_free(&in);
  MPI_Comm_get_info(c, &out);
  expect(out, assert_kinds, "system,mpi:alloc_mem");
  in = with(assert_kinds, "gpu"); /* not supported: ignored */
  MPI_Comm_set_info(c, in);
  MPI_Info_free(&in);
  MPI_Comm_get_info(c, &out);
  expect(out, assert_kinds, "system,mpi:alloc_mem");

  MPI_Win_allocate(8, 1, MPI_INFO_NULL, c, &mem, &w);
  MPI_Win_get_info(w, &out);
  expect(out, kinds, "mpi,system,mpi:alloc_mem");
  MPI_Win_free(&w);
  MPI_File_open(MPI_COMM_SELF, "/dev/null", MPI_MODE_RDWR, MPI_INFO_NULL, &f);
  MPI_File_get_info(f, &out);
  expect(out, kinds, world);
  MPI_File_close(&f);

  MPI_Comm_free(&c);
  MPI_Session_finalize(&plain);
  MPI_Session_finalize(&s);
  MPI_Finalize();
  return check_status();
}
