/* Process sets of a session: each name that is listed has a group; the host's has the processes that share its memory, in the
 * order of the world; that of a named cluster all of the world. MPI-5.0 12.3. */
// run: n=1,3
// run: n=2 env=SPX_CLUSTER=front-end.1
#include "../check.h"
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
  MPI_Session s;
  MPI_Group world, g;
  int n, size, relation, hosts = 0, clusters = 0, host_len;
  const char *cluster = getenv("SPX_CLUSTER");
  char host[MPI_MAX_PROCESSOR_NAME], named[128] = "", want[MPI_MAX_PROCESSOR_NAME + 16], name[MPI_MAX_PSET_NAME_LEN];
  MPI_Init(&argc, &argv);
  MPI_Get_processor_name(host, &host_len);
  snprintf(want, sizeof want, "spx://host/%s", host);
  if (cluster) snprintf(named, sizeof named, "spx://cluster/%s", cluster);
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &s);
  MPI_Session_get_num_psets(s, MPI_INFO_NULL, &n);
  CHECK(n == 3 + (cluster != NULL));
  for (int i = 0; i < n; i++) {
    int len = sizeof name, self;
    MPI_Session_get_nth_pset(s, MPI_INFO_NULL, i, &len, name);
    CHECK(MPI_Group_from_session_pset(s, name, &g) == MPI_SUCCESS);
    MPI_Group_size(g, &size);
    MPI_Group_compare(g, world, &relation);
    self = strcmp(name, "mpi://SELF") == 0;
    CHECK(self ? size == 1 : relation == MPI_IDENT);
    hosts += strcmp(name, want) == 0;
    clusters += strcmp(name, named) == 0;
    MPI_Group_free(&g);
  }
  CHECK(hosts == 1);
  CHECK(clusters == (cluster != NULL));
  CHECK_CLASS(MPI_Group_from_session_pset(s, "spx://cluster/", &g), MPI_ERR_ARG);
  CHECK_CLASS(MPI_Group_from_session_pset(s, "spx://cluster/another", &g), MPI_ERR_ARG);
  CHECK_CLASS(MPI_Group_from_session_pset(s, "spx://host/", &g), MPI_ERR_ARG);
  CHECK_CLASS(MPI_Group_from_session_pset(s, "spx://host/no such host", &g), MPI_ERR_ARG);
  CHECK_CLASS(MPI_Session_get_nth_pset(s, MPI_INFO_NULL, n, &size, name), MPI_ERR_ARG);
  MPI_Session_finalize(&s);
  MPI_Group_free(&world);
  MPI_Finalize();
  return check_status();
}
