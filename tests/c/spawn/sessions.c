/* Process sets of spawned processes, communicators from groups of parents and children without any communicator between, and
 * MPI_Comm_split_type; the World Model and a session side by side. */
// run: n=1,3 timeout=30
#include <stdlib.h>
#include <string.h>
#include "../check.h"

static MPI_Session session;

static void sets(int size)
{
  int n, members;
  MPI_Group g;
  MPI_Session_get_num_psets(session, MPI_INFO_NULL, &n);
  CHECK(n >= 2);
  MPI_Group_from_session_pset(session, "mpi://WORLD", &g);
  MPI_Group_size(g, &members);
  CHECK(members == size);
  MPI_Group_free(&g);
  MPI_Group_from_session_pset(session, "mpi://SELF", &g);
  MPI_Group_size(g, &members);
  CHECK(members == 1);
  MPI_Group_free(&g);
  for (int i = 0; i < n; i++) {
    char name[MPI_MAX_PSET_NAME_LEN], text[16];
    int len = sizeof name, there, room = sizeof text;
    MPI_Info info;
    MPI_Session_get_nth_pset(session, MPI_INFO_NULL, i, &len, name);
    MPI_Session_get_pset_info(session, name, &info);
    MPI_Info_get_string(info, "mpi_size", &room, text, &there);
    CHECK(there && atoi(text) == (strcmp(name, "mpi://SELF") == 0 ? 1 : size)); /* one host */
    MPI_Info_free(&info);
  }
}

static int split_size(MPI_Comm c, int type, const char *key, const char *value)
{
  MPI_Comm part;
  MPI_Info info;
  int n = 0;
  MPI_Info_create(&info);
  if (key) MPI_Info_set(info, key, value);
  MPI_Comm_split_type(c, type, 0, info, &part);
  if (part != MPI_COMM_NULL) {
    MPI_Comm_size(part, &n);
    MPI_Comm_free(&part);
  }
  MPI_Info_free(&info);
  return n;
}

static void parts(MPI_Comm all, int total, int size)
{
  CHECK(split_size(all, MPI_COMM_TYPE_SHARED, NULL, NULL) == total);
  CHECK(split_size(all, MPI_COMM_TYPE_HW_GUIDED, "mpi_hw_resource_type", "mpi_shared_memory") == total);
  CHECK(split_size(all, MPI_COMM_TYPE_HW_GUIDED, "mpi_hw_resource_type", "a toaster") == 0);
  CHECK(split_size(all, MPI_COMM_TYPE_HW_GUIDED, NULL, NULL) == 0);
  CHECK(split_size(all, MPI_COMM_TYPE_RESOURCE_GUIDED, "mpi_pset_name", "mpi://WORLD") == size);
  CHECK(split_size(all, MPI_COMM_TYPE_RESOURCE_GUIDED, "mpi_pset_name", "mpi://SELF") == 1);
  CHECK(split_size(all, MPI_COMM_TYPE_RESOURCE_GUIDED, "mpi_pset_name", "no://such") == 0);
  CHECK(split_size(all, MPI_UNDEFINED, NULL, NULL) == 0);
}

int main(int argc, char **argv)
{
  MPI_Comm parent, inter, all, other;
  MPI_Group local, remote, both;
  int rank, size, there, n, sum, one = 1;
  MPI_Init(&argc, &argv);
  MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_get_parent(&parent);
  int child = parent != MPI_COMM_NULL;
  inter = parent;
  if (!child) MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE);
  sets(size);
  MPI_Comm_remote_size(inter, &there);
  MPI_Comm_group(inter, &local);
  MPI_Comm_remote_group(inter, &remote);
  if (child)
    MPI_Group_union(remote, local, &both);
  else
    MPI_Group_union(local, remote, &both);
  MPI_Comm_create_from_group(both, "parents and children", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &all);
  MPI_Comm_size(all, &n);
  CHECK(n == size + there);
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, all);
  CHECK(sum == n);
  parts(all, n, size);
  MPI_Intercomm_create_from_groups(local, 0, remote, 0, "one beside the other", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL,
                                   &other);
  MPI_Comm_remote_size(other, &n);
  CHECK(n == there);
  MPI_Barrier(other);
  MPI_Comm_disconnect(&other);
  MPI_Comm_free(&all);
  MPI_Group_free(&local);
  MPI_Group_free(&remote);
  MPI_Group_free(&both);
  MPI_Comm_disconnect(&inter);
  MPI_Session_finalize(&session);
  MPI_Finalize();
  return check_status();
}
