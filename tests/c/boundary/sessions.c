/* The Sessions Model alone, beside the World Model, and one after another (MPI-5.0, 12.3). */
// run: n=1,2,4
// run: n=2 args="world"
// run: n=2 args="end-in-session" status=1
#include "boundary.h"

static void use(MPI_Session s, const char *pset, int expect)
{
  MPI_Group group;
  MPI_Comm comm;
  MPI_Info info;
  int one = 1, sum = 0, size, length = 0, flag;
  char text[64];
  CHECK(MPI_Group_from_session_pset(s, pset, &group) == MPI_SUCCESS);
  MPI_Group_size(group, &size);
  if (expect > 0) CHECK(size == expect);
  CHECK(MPI_Session_get_pset_info(s, pset, &info) == MPI_SUCCESS);
  length = sizeof text;
  MPI_Info_get_string(info, "mpi_size", &length, text, &flag);
  CHECK(flag && atoi(text) == size);
  MPI_Info_free(&info);
  CHECK(MPI_Comm_create_from_group(group, "libspx.sessions", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm) == MPI_SUCCESS);
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
  CHECK(sum == size);
  MPI_Comm_free(&comm);
  MPI_Group_free(&group);
}

static void names(MPI_Session s)
{
  int n, found = 0;
  CHECK(MPI_Session_get_num_psets(s, MPI_INFO_NULL, &n) == MPI_SUCCESS && n >= 2);
  for (int i = 0; i < n; i++) {
    int length = 0;
    char name[MPI_MAX_PSET_NAME_LEN];
    CHECK(MPI_Session_get_nth_pset(s, MPI_INFO_NULL, i, &length, NULL) == MPI_SUCCESS && length > 1);
    CHECK(MPI_Session_get_nth_pset(s, MPI_INFO_NULL, i, &length, name) == MPI_SUCCESS);
    CHECK((int)strlen(name) + 1 == length);
    found += !strcmp(name, "mpi://WORLD") + !strcmp(name, "mpi://SELF");
  }
  CHECK(found == 2);
  MPI_Info info;
  char level[MPI_MAX_INFO_VAL];
  int length = sizeof level, flag;
  CHECK(MPI_Session_get_info(s, &info) == MPI_SUCCESS);
  MPI_Info_get_string(info, "thread_level", &length, level, &flag);
  CHECK(flag && !strcmp(level, "MPI_THREAD_SERIALIZED"));
  MPI_Info_free(&info);
}

static void bad(MPI_Session s)
{
  MPI_Group group;
  MPI_Session other = MPI_SESSION_NULL;
  MPI_Info info;
  int length = 10;
  char name[64];
  CHECK(MPI_Group_from_session_pset(s, "mpi://MOON", &group) == MPI_ERR_ARG);
  CHECK(MPI_Session_get_nth_pset(s, MPI_INFO_NULL, 99, &length, name) == MPI_ERR_ARG);
  MPI_Info_create(&info);
  MPI_Info_set(info, "thread_level", "MPI_THREAD_MANY");
  CHECK(MPI_Session_init(info, MPI_ERRORS_RETURN, &other) == MPI_ERR_INFO_VALUE);
  MPI_Info_free(&info);
}

int main(int argc, char **argv)
{
  const char *how = argc > 1 ? argv[1] : "";
  MPI_Session a, b;
  int flag, size = 0;
  if (!strcmp(how, "world")) {
    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
  }
  for (int round = 0; round < 3; round++) {
    CHECK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &a) == MPI_SUCCESS);
    CHECK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &b) == MPI_SUCCESS && a != b);
    MPI_Initialized(&flag);
    CHECK(flag == !strcmp(how, "world"));
    names(a);
    bad(b);
    use(a, "mpi://SELF", 1);
    use(b, "mpi://WORLD", size);
    if (!strcmp(how, "end-in-session")) return 0;
    CHECK(MPI_Session_finalize(&a) == MPI_SUCCESS && a == MPI_SESSION_NULL);
    use(b, "mpi://world", size); /* names of sets do not distinguish case */
    CHECK(MPI_Session_finalize(&b) == MPI_SUCCESS);
  }
  if (!strcmp(how, "world")) {
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
  }
  MPI_Finalized(&flag);
  CHECK(flag == !strcmp(how, "world"));
  return 0;
}
