/* A child that dies is told to its parents, and a parent to its children: calls on the intercommunicator end with MPIX_ERR_PROC_FAILED,
 * it can be revoked, agreed upon and shrunk, and those that are left can spawn again. Nobody hangs, whatever kind of call waits. */
// run: n=2 timeout=40
// run: n=2 args=parent timeout=40
// run: n=2 args=abort timeout=40 status=9 stdout~"survived"
// run: n=1 args=apart timeout=40 status=6 stdout~"the parent goes on" stderr~"MPI_ERR_RANK"
#define _GNU_SOURCE
#include <mpi-ext.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "../check.h"
#include "crowd.h"

/* Everybody waits for somebody who is dead. */
static void wait_for_the_dead(MPI_Comm inter, int dead)
{
  int x = 0;
  MPI_Request r;
  CHECK_CLASS(MPI_Recv(&x, 1, MPI_INT, dead, 0, inter, MPI_STATUS_IGNORE), MPIX_ERR_PROC_FAILED);
  CHECK_CLASS(MPI_Recv(&x, 1, MPI_INT, MPI_ANY_SOURCE, 0, inter, MPI_STATUS_IGNORE), MPIX_ERR_PROC_FAILED);
  CHECK_CLASS(MPI_Ssend(&x, 1, MPI_INT, dead, 0, inter), MPIX_ERR_PROC_FAILED);
  MPI_Irecv(&x, 1, MPI_INT, dead, 0, inter, &r);
  CHECK_CLASS(MPI_Wait(&r, MPI_STATUS_IGNORE), MPIX_ERR_PROC_FAILED);
}

static void go_on(MPI_Comm inter, int high, int want)
{
  MPI_Comm rest, all;
  MPI_Group failed;
  int n, flag = 1;
  MPIX_Comm_failure_ack(inter);
  MPIX_Comm_failure_get_acked(inter, &failed);
  MPI_Group_size(failed, &n);
  CHECK(n == 1);
  MPI_Group_free(&failed);
  MPIX_Comm_agree(inter, &flag); /* all have seen what they wanted to see */
  MPIX_Comm_revoke(inter);
  CHECK_CLASS(MPI_Barrier(inter), MPIX_ERR_REVOKED);
  MPIX_Comm_agree(inter, &flag);
  MPIX_Comm_shrink(inter, &rest);
  MPI_Intercomm_merge(rest, high, &all);
  MPI_Comm_size(all, &n);
  CHECK(n == want);
  MPI_Barrier(all);
  MPI_Comm_free(&all);
  MPI_Comm_disconnect(&rest);
}

static MPI_Comm spawn(char *self, char *how, int n)
{
  MPI_Comm inter;
  char *args[] = {how, NULL};
  MPI_Comm_spawn(self, args, n, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE);
  MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN);
  return inter;
}

/* MPI_Abort of children that are connected with us: they end, we are told. */
static void aborted(char *self, int rank)
{
  int x;
  MPI_Comm inter = spawn(self, "children-abort", 2);
  CHECK_CLASS(MPI_Recv(&x, 1, MPI_INT, 1, 0, inter, MPI_STATUS_IGNORE), MPIX_ERR_PROC_FAILED);
  CHECK_CLASS(MPI_Recv(&x, 1, MPI_INT, 0, 0, inter, MPI_STATUS_IGNORE), MPIX_ERR_PROC_FAILED);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) printf("survived\n");
}

/* Those that have disconnected are no more of our concern, also when an error that is fatal ends all that are connected with them, and
 * also when we have not had the time to leave MPI_Comm_disconnect yet. */
static void apart(char *self)
{
  MPI_Comm inter;
  for (int round = 0; round < 5; round++) {
    int pids[2];
    inter = spawn(self, "children-apart", 2);
    for (int i = 0; i < 2; i++) MPI_Recv(&pids[i], 1, MPI_INT, i, 0, inter, MPI_STATUS_IGNORE);
    pid_t busy = crowd_begin();
    MPI_Comm_disconnect(&inter);
    crowd_end(busy);
    for (int i = 0; i < 2; i++)
      while (kill(pids[i], 0) == 0) usleep(1000);
  }
  inter = spawn(self, "children-leave", 2);
  MPI_Comm_disconnect(&inter);
  printf("the parent goes on\n");
}

static void as_parent(char *self, const char *how, int rank)
{
  if (strcmp(how, "abort") == 0) {
    aborted(self, rank);
    return;
  }
  if (strcmp(how, "apart") == 0) {
    apart(self);
    return;
  }
  for (int i = 0; i < 3; i++) {
    if (strcmp(how, "child") == 0) {
      MPI_Comm inter = spawn(self, "children-one-dies", 3);
      wait_for_the_dead(inter, 1);
      go_on(inter, 0, 4);
    } else {
      MPI_Comm inter = spawn(self, "children-parent-dies", 2), *ptr = &inter;
      if (rank == 1) kill(getpid(), SIGKILL);
      MPIX_Comm_failure_ack(*ptr);
      int x;
      CHECK_CLASS(MPI_Recv(&x, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE), MPIX_ERR_PROC_FAILED);
      go_on(inter, 0, 3);
      return;
    }
  }
}

static void as_child(const char *how, MPI_Comm parent, int rank)
{
  int pid = getpid();
  MPI_Comm_set_errhandler(parent, MPI_ERRORS_RETURN);
  if (strcmp(how, "children-one-dies") == 0) {
    if (rank == 1) kill(pid, SIGKILL);
    int x;
    CHECK_CLASS(MPI_Recv(&x, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE), MPIX_ERR_PROC_FAILED);
    go_on(parent, 1, 4);
  } else if (strcmp(how, "children-parent-dies") == 0) {
    wait_for_the_dead(parent, 1);
    go_on(parent, 1, 3);
  } else if (strcmp(how, "children-abort") == 0) {
    if (rank == 1) MPI_Abort(MPI_COMM_WORLD, 9);
    pause();
  } else if (strcmp(how, "children-apart") == 0) {
    MPI_Send(&pid, 1, MPI_INT, 0, 0, parent);
    MPI_Comm_disconnect(&parent);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    if (rank == 0) MPI_Send(&pid, 1, MPI_INT, 99, 0, MPI_COMM_WORLD);
    pause();
  } else
    MPI_Comm_disconnect(&parent);
}

int main(int argc, char **argv)
{
  int rank;
  MPI_Comm parent;
  MPI_Init(&argc, &argv);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_get_parent(&parent);
  if (parent == MPI_COMM_NULL)
    as_parent(argv[0], argc > 1 ? argv[1] : "child", rank);
  else
    as_child(argv[1], parent, rank);
  MPI_Finalize();
  return check_status();
}
