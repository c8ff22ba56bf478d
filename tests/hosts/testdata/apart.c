/* Each rank says what it takes to be its host's and what the world's: with how many it shares memory, how many are in the host's process set, whether all clocks are one, and its pid.
 * Where clocks are said to be one, no rank leaves a barrier before another one has entered it. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Processes in the set of this host. */
static int of_host(void)
{
  MPI_Session session;
  MPI_Group group;
  int n, size = -1;
  MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
  MPI_Session_get_num_psets(session, MPI_INFO_NULL, &n);
  for (int i = 0; i < n; i++) {
    char name[MPI_MAX_PSET_NAME_LEN];
    int length = sizeof name;
    MPI_Session_get_nth_pset(session, MPI_INFO_NULL, i, &length, name);
    if (strncmp(name, "spx://host/", 11) != 0) continue;
    MPI_Group_from_session_pset(session, name, &group);
    MPI_Group_size(group, &size);
    MPI_Group_free(&group);
  }
  MPI_Session_finalize(&session);
  return size;
}

int main(int argc, char **argv)
{
  int rank, size, length, shared, flag, *global;
  char name[MPI_MAX_PROCESSOR_NAME];
  MPI_Comm host;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Get_processor_name(name, &length);
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
  MPI_Comm_size(host, &shared);
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_WTIME_IS_GLOBAL, &global, &flag);
  double entered = MPI_Wtime(), last;
  MPI_Barrier(MPI_COMM_WORLD);
  double left = MPI_Wtime();
  MPI_Allreduce(&entered, &last, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  if (*global && left < last) {
    fprintf(stderr, "rank %d leaves the barrier at %f, and one enters it at %f\n", rank, left, last);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  int pid = (int)getpid(), least, most;
  MPI_Allreduce(&pid, &least, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  MPI_Allreduce(&pid, &most, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  printf("rank %d of %d on %s shares with %d, %d in its set, clocks %s, pids %s\n", rank, size, name, shared, of_host(),
         flag && *global ? "one" : "apart", least == most ? "one" : "apart");
  MPI_Finalize();
  return 0;
}
