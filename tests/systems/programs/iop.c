/* An I/O process of a user's: what comes in goes on to the rank that the tag names, modulo the size of the other cluster; in order, by plain MPI calls. */
#include <mpi.h>
#include <mpisp.h>
#include <stdio.h>
#include <stdlib.h>
#include "../../c/check.h"

int main(int argc, char **argv)
{
  MPI_Init(&argc, &argv);
  int worlds, rank, size, flag;
  MPISP_World_count(&worlds);
  CHECK(worlds == 2);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  CHECK_CLASS(MPI_Barrier(MPI_COMM_WORLD), MPI_ERR_COMM);
  MPI_Comm none;
  CHECK_CLASS(MPI_Comm_dup(MPI_COMM_WORLD, &none), MPI_ERR_COMM);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  CHECK(rank == MPISP_CLUSTER_OUT);
  MPI_Comm to;
  MPISP_World_get(1, &to);
  MPI_Comm_size(to, &size);
  MPI_Comm_set_errhandler(to, MPI_ERRORS_RETURN);
  CHECK_ERROR(MPI_Send(&flag, 0, MPI_INT, size, 0, MPI_COMM_WORLD), MPI_ERR_RANK,
              "is no rank of the cluster that messages go to");
  CHECK_ERROR(MPI_Recv(&flag, 0, MPI_INT, 0, 0, to, MPI_STATUS_IGNORE), MPI_ERR_RANK,
              "source = 0: this I/O process does not receive from that cluster");
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  CHECK_ERROR(MPISP_World_get(2, &none), MPI_ERR_ARG, "index = 2; this process is a member of 2 worlds, from 0");
  CHECK_ERROR(MPISP_Bind(2), MPI_ERR_ARG, "index = 2; this process is a member of 2 worlds, from 0");
  CHECK(MPISP_Bind(0) == MPI_SUCCESS);
  CHECK_ERROR(MPI_Send(&flag, 0, MPI_INT, 0, 0, MPI_COMM_WORLD), MPI_ERR_RANK,
              "dest = 0: this I/O process does not send to that cluster");
  CHECK(MPISP_Bind(-1) == MPI_SUCCESS);
  CHECK_CLASS(MPI_Send(&flag, 0, MPI_INT, MPISP_CLUSTER_OUT, 0, MPI_COMM_WORLD), MPI_ERR_RANK);
  MPI_Group group;
  int members;
  MPI_Comm_group(to, &group);
  MPI_Group_size(group, &members);
  CHECK(members == size);
  MPI_Group_free(&group);
  int messages = 0, room = 0;
  MPI_Request *sent = NULL; /* all are kept: none may hold up those behind it */
  char **buf = NULL;
  for (;;) {
    MPI_Status st;
    int bytes, cluster, origin;
    MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &st);
    if (st.MPI_SOURCE == MPI_PROC_NULL) break;
    MPI_Get_count(&st, MPI_BYTE, &bytes);
    if (messages == room) {
      room = 2 * room + 64;
      sent = realloc(sent, (size_t)room * sizeof *sent);
      buf = realloc(buf, (size_t)room * sizeof *buf);
    }
    buf[messages] = malloc((size_t)bytes + 1);
    MPI_Recv(buf[messages], bytes, MPI_BYTE, st.MPI_SOURCE, st.MPI_TAG, MPI_COMM_WORLD, &st);
    MPISP_Status_get_cluster(&st, &cluster);
    MPISP_Status_get_rank(&st, &origin);
    CHECK(cluster == 0 && origin == st.MPI_SOURCE);
    MPI_Isend(buf[messages], bytes, MPI_BYTE, st.MPI_TAG % size, st.MPI_TAG, MPI_COMM_WORLD, &sent[messages]);
    messages++;
  }
  MPI_Waitall(messages, sent, MPI_STATUSES_IGNORE);
  for (int i = 0; i < messages; i++) free(buf[i]);
  free(buf);
  free(sent);
  int self = 0;
  MPI_Bcast(&self, 1, MPI_INT, 0, MPI_COMM_SELF);
  if (check_failures) fprintf(stderr, "after %d messages\n", messages);
  MPI_Finalize();
  return check_failures != 0;
}
