/* Spawning, merging, and what the spawned processes see of themselves. */
// run: n=1,3
#include "../check.h"
int main(int argc, char **argv)
{
  MPI_Comm parent, inter, all;
  MPI_Init(&argc, &argv);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_get_parent(&parent);
  int child = parent != MPI_COMM_NULL;
  if (!child) {
    int codes[4] = {-1, -1, -1, -1};
    MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, 4, MPI_INFO_NULL, size - 1, MPI_COMM_WORLD, &inter, codes);
    for (int i = 0; i < 4; i++) CHECK(codes[i] == MPI_SUCCESS);
  } else {
    inter = parent;
    CHECK(size == 4);
  }
  int remote;
  MPI_Comm_remote_size(inter, &remote);
  if (!child) CHECK(remote == 4);
  MPI_Intercomm_merge(inter, child, &all);
  int n, me, sum, mine;
  MPI_Comm_size(all, &n);
  MPI_Comm_rank(all, &me);
  CHECK(n == size + remote);
  mine = me;
  MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, all);
  CHECK(sum == n * (n - 1) / 2);
  MPI_Comm_free(&all);
  MPI_Comm_disconnect(&inter);
  if (child) {
    MPI_Comm_get_parent(&parent);
    CHECK(parent == MPI_COMM_NULL);
  }
  MPI_Finalize();
  return check_status();
}
