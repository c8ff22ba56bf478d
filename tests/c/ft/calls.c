/* What each call says when the process that it needs has died, and on a communicator that was revoked (ULFM 1.0, 2 to 4): point-to-point in all
 * modes, wildcards, probes, persistent requests, collectives, communicators, windows, files, intercommunicators. Calls that need living
 * processes alone succeed. */
// run: n=4 spxrun="--with-ft" timeout=60
// run: n=5 spxrun="--with-ft" env=SPX_TRANSPORTS=tcp timeout=60
#include <mpi-ext.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
#include "../check.h"

#define MUST(call)    CHECK_CLASS(call, MPI_SUCCESS)
#define FAILS(call)   CHECK_CLASS(call, MPIX_ERR_PROC_FAILED)
#define REVOKED(call) CHECK_CLASS(call, MPIX_ERR_REVOKED)
enum { LONG = 300000, COLLECTIVES = 14 };

static int me, n, dead, *data, *more;
static MPI_Comm world;

static int class_of(int rc)
{
  int class = MPI_SUCCESS;
  if (rc != MPI_SUCCESS) MPI_Error_class(rc, &class);
  return class;
}

static void wait_for_death(void)
{
  for (int size = 0; size == 0;) {
    MPI_Group failed;
    MUST(MPIX_Comm_get_failed(world, &failed));
    MPI_Group_size(failed, &size);
    MPI_Group_free(&failed);
  }
}

static int finish(MPI_Request r) { return MPI_Wait(&r, MPI_STATUS_IGNORE); }

/* Sends and receives whose partner is dead. */
static void partner(void)
{
  MPI_Request r;
  MPI_Message m;
  int flag;
  char room[1000 + MPI_BSEND_OVERHEAD];
  for (int count = 1; count <= LONG; count += LONG - 1) {
    FAILS(MPI_Send(data, count, MPI_INT, dead, 0, world));
    FAILS(MPI_Ssend(data, count, MPI_INT, dead, 0, world));
    FAILS(MPI_Rsend(data, count, MPI_INT, dead, 0, world));
    FAILS(MPI_Recv(data, count, MPI_INT, dead, 0, world, MPI_STATUS_IGNORE));
    FAILS(MPI_Sendrecv(data, count, MPI_INT, me, 0, more, count, MPI_INT, dead, 0, world, MPI_STATUS_IGNORE));
    MUST(MPI_Recv(data, count, MPI_INT, me, 0, world, MPI_STATUS_IGNORE)); /* its send half has been done */
    FAILS(MPI_Sendrecv_replace(data, count, MPI_INT, dead, 0, dead, 0, world, MPI_STATUS_IGNORE));
    MUST(MPI_Isend(data, count, MPI_INT, dead, 0, world, &r));
    FAILS(finish(r));
    MUST(MPI_Issend(data, count, MPI_INT, dead, 0, world, &r));
    FAILS(finish(r));
    MUST(MPI_Irecv(data, count, MPI_INT, dead, 0, world, &r));
    FAILS(finish(r));
    MUST(MPI_Send_init(data, count, MPI_INT, dead, 0, world, &r));
    MUST(MPI_Start(&r));
    FAILS(MPI_Wait(&r, MPI_STATUS_IGNORE));
    MUST(MPI_Request_free(&r));
    MUST(MPI_Recv_init(data, count, MPI_INT, dead, 0, world, &r));
    MUST(MPI_Start(&r));
    FAILS(MPI_Wait(&r, MPI_STATUS_IGNORE));
    MUST(MPI_Request_free(&r));
  }
  MUST(MPI_Buffer_attach(room, sizeof room));
  int class = class_of(MPI_Bsend(data, 1, MPI_INT, dead, 0, world));
  CHECK(class == MPI_SUCCESS || class == MPIX_ERR_PROC_FAILED); /* the message is the buffer's */
  void *back;
  int bytes;
  MUST(MPI_Buffer_detach(&back, &bytes));
  FAILS(MPI_Probe(dead, 0, world, MPI_STATUS_IGNORE));
  FAILS(MPI_Mprobe(dead, 0, world, &m, MPI_STATUS_IGNORE));
  FAILS(MPI_Iprobe(dead, 0, world, &flag, MPI_STATUS_IGNORE));
  FAILS(MPI_Improbe(dead, 0, world, &flag, &m, MPI_STATUS_IGNORE));
}

/* Any source may be the dead one, until that has been acknowledged; the request stays. */
static void wildcards(void)
{
  MPI_Request r;
  int got = -1, num, right = (me + 1) % (n - 1), left = (me + n - 2) % (n - 1);
  FAILS(MPI_Recv(&got, 1, MPI_INT, MPI_ANY_SOURCE, 1, world, MPI_STATUS_IGNORE));
  FAILS(MPI_Probe(MPI_ANY_SOURCE, 1, world, MPI_STATUS_IGNORE));
  MUST(MPI_Irecv(&got, 1, MPI_INT, MPI_ANY_SOURCE, 2, world, &r));
  CHECK_CLASS(MPI_Wait(&r, MPI_STATUS_IGNORE), MPIX_ERR_PROC_FAILED_PENDING);
  CHECK(r != MPI_REQUEST_NULL);
  MUST(MPIX_Comm_ack_failed(world, 1, &num));
  CHECK(num == 1);
  MUST(MPI_Send(NULL, 0, MPI_INT, left, 3, world)); /* now it may come */
  MUST(MPI_Recv(NULL, 0, MPI_INT, right, 3, world, MPI_STATUS_IGNORE));
  MUST(MPI_Send(&me, 1, MPI_INT, right, 2, world));
  MUST(MPI_Wait(&r, MPI_STATUS_IGNORE));
  CHECK(got == left && r == MPI_REQUEST_NULL);
}

static int collective(int k, MPI_Comm c)
{
  MPI_Request r;
  switch (k) {
  case 0: return MPI_Barrier(c);
  case 1: return MPI_Allreduce(data, more, 8, MPI_INT, MPI_SUM, c);
  case 2: return MPI_Allgather(data, 8, MPI_INT, more, 8, MPI_INT, c);
  case 3: return MPI_Alltoall(data, 8, MPI_INT, more, 8, MPI_INT, c);
  case 4: return MPI_Reduce_scatter_block(data, more, 8, MPI_INT, MPI_SUM, c);
  case 5: return MPI_Ibarrier(c, &r) == MPI_SUCCESS ? finish(r) : MPIX_ERR_PROC_FAILED;
  case 6:
    return MPI_Iallreduce(data, more, LONG, MPI_INT, MPI_SUM, c, &r) == MPI_SUCCESS ? finish(r) : MPIX_ERR_PROC_FAILED;
  case 7: return MPI_Allreduce(data, more, LONG, MPI_INT, MPI_SUM, c); /* until here nobody can succeed */
  case 8: return MPI_Bcast(data, LONG, MPI_INT, 0, c);
  case 9: return MPI_Bcast(data, 8, MPI_INT, dead, c);
  case 10: return MPI_Reduce(data, more, 8, MPI_INT, MPI_SUM, 0, c);
  case 11: return MPI_Gather(data, 8, MPI_INT, more, 8, MPI_INT, 0, c);
  case 12: return MPI_Scatter(data, 8, MPI_INT, more, 8, MPI_INT, 0, c);
  default: return MPI_Scan(data, more, 8, MPI_INT, MPI_SUM, c);
  }
}

/* Who sees the failure revokes, so that nobody waits for who has left the operation. */
static void collectives(MPI_Comm *comms)
{
  for (int k = 0; k < COLLECTIVES; k++) {
    int class = class_of(collective(k, comms[k])), flag = 1;
    CHECK(class == MPIX_ERR_PROC_FAILED || class == MPIX_ERR_REVOKED || (k > 7 && class == MPI_SUCCESS));
    if (class != MPI_SUCCESS) MUST(MPIX_Comm_revoke(comms[k]));
    MUST(MPIX_Comm_failure_ack(comms[k]));
    class = class_of(MPIX_Comm_agree(comms[k], &flag)); /* works, revoked or not */
    CHECK((class == MPI_SUCCESS || class == MPIX_ERR_PROC_FAILED) && flag == 1);
    MUST(MPI_Comm_free(&comms[k]));
  }
}

static void communicators(MPI_Comm *comms)
{
  MPI_Comm made = MPI_COMM_NULL;
  for (int k = 0; k < 3; k++) {
    int class = class_of(k == 0   ? MPI_Comm_dup(comms[k], &made)
                         : k == 1 ? MPI_Comm_split(comms[k], me % 2, 0, &made)
                                  : MPI_Cart_create(comms[k], 1, &n, &n, 0, &made));
    CHECK(class == MPIX_ERR_PROC_FAILED || class == MPIX_ERR_REVOKED);
    CHECK(made == MPI_COMM_NULL);
    MUST(MPIX_Comm_revoke(comms[k]));
    MUST(MPI_Comm_free(&comms[k]));
  }
}

static void window(MPI_Win win)
{
  int class = class_of(MPI_Win_lock(MPI_LOCK_SHARED, dead, 0, win));
  if (class == MPI_SUCCESS) { /* then what follows in the epoch says it */
    int put = class_of(MPI_Put(data, 1, MPI_INT, dead, 0, 1, MPI_INT, win));
    int ended = class_of(MPI_Win_unlock(dead, win));
    class = put != MPI_SUCCESS ? put : ended;
  }
  CHECK(class == MPIX_ERR_PROC_FAILED);
  FAILS(MPI_Win_fence(0, win));
}

static void file(MPI_File f)
{
  int class = class_of(MPI_File_write_at(f, me * 4, data, 1, MPI_INT, MPI_STATUS_IGNORE));
  CHECK(class == MPI_SUCCESS); /* needs nobody */
  class = class_of(MPI_File_write_at_all(f, me * 4, data, 1, MPI_INT, MPI_STATUS_IGNORE));
  CHECK(class == MPIX_ERR_PROC_FAILED || class == MPIX_ERR_REVOKED);
}

/* Everything but what ULFM leaves usable; what was pending ends. */
static void revoked(MPI_Comm c)
{
  MPI_Request r, pending[3];
  MPI_Comm made;
  MPI_Group g;
  int flag = 3, size, other = me == 0 ? 1 : 0;
  MUST(MPI_Irecv(data, 1, MPI_INT, other, 5, c, &pending[0]));
  MUST(MPI_Irecv(data + 1, 1, MPI_INT, MPI_ANY_SOURCE, 6, c, &pending[1]));
  MUST(MPI_Issend(more, LONG, MPI_INT, other, 7, c, &pending[2]));
  if (me == 0) MUST(MPIX_Comm_revoke(c)); /* the others hear it by waiting */
  for (int k = 0; k < 3; k++) REVOKED(MPI_Wait(&pending[k], MPI_STATUS_IGNORE));
  MUST(MPIX_Comm_is_revoked(c, &flag));
  CHECK(flag == 1);
  REVOKED(MPI_Send(data, 1, MPI_INT, me, 0, c));
  REVOKED(MPI_Recv(data, 1, MPI_INT, other, 0, c, MPI_STATUS_IGNORE));
  REVOKED(MPI_Probe(other, 0, c, MPI_STATUS_IGNORE));
  REVOKED(MPI_Iprobe(other, 0, c, &flag, MPI_STATUS_IGNORE));
  int class = class_of(MPI_Isend(data, 1, MPI_INT, me, 0, c, &r));
  CHECK_CLASS(class == MPI_SUCCESS ? finish(r) : class, MPIX_ERR_REVOKED);
  REVOKED(MPI_Barrier(c));
  REVOKED(MPI_Bcast(data, 1, MPI_INT, 0, c));
  REVOKED(MPI_Comm_dup(c, &made));
  REVOKED(MPI_Comm_split(c, 0, 0, &made));
  class = class_of(MPI_Ibarrier(c, &r));
  CHECK_CLASS(class == MPI_SUCCESS ? finish(r) : class, MPIX_ERR_REVOKED);
  MUST(MPI_Comm_size(c, &size));
  MUST(MPI_Comm_group(c, &g));
  MUST(MPI_Group_free(&g));
  flag = 7;
  MUST(MPIX_Comm_failure_ack(c));
  class = class_of(MPIX_Comm_agree(c, &flag));
  CHECK((class == MPI_SUCCESS || class == MPIX_ERR_PROC_FAILED) && flag == 7);
  MUST(MPIX_Comm_shrink(c, &made));
  MUST(MPI_Barrier(made));
  MUST(MPI_Comm_size(made, &size));
  CHECK(size == n - 1);
  MUST(MPI_Comm_free(&made));
  MUST(MPI_Comm_free(&c));
}

/* Even ranks and odd ones. The dead is in one of the groups. */
static void intercommunicator(MPI_Comm inter)
{
  int there, flag = 1, size, remote;
  MPI_Comm left;
  MPI_Comm_remote_size(inter, &there);
  if (me % 2 != dead % 2) {
    FAILS(MPI_Send(data, LONG, MPI_INT, dead / 2, 0, inter));
    FAILS(MPI_Recv(data, 1, MPI_INT, dead / 2, 0, inter, MPI_STATUS_IGNORE));
  }
  MUST(MPIX_Comm_failure_ack(inter));
  int class = class_of(MPIX_Comm_agree(inter, &flag));
  CHECK(class == MPI_SUCCESS || class == MPIX_ERR_PROC_FAILED);
  MUST(MPIX_Comm_shrink(inter, &left));
  MPI_Comm_size(left, &size);
  MPI_Comm_remote_size(left, &remote);
  CHECK(size + remote == n - 1);
  MUST(MPI_Barrier(left));
  MUST(MPI_Comm_free(&left));
  MUST(MPI_Comm_free(&inter));
}

int main(int argc, char **argv)
{
  MPI_Comm comms[COLLECTIVES + 4], half, inter;
  MPI_Win win;
  MPI_File f;
  char name[] = "spx-ft-XXXXXX";
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Comm_size(MPI_COMM_WORLD, &n);
  MPI_Comm_dup(MPI_COMM_WORLD, &world);
  MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN);
  dead = n - 1;
  data = calloc(LONG, sizeof *data);
  more = calloc(LONG, sizeof *more);
  for (int k = 0; k < COLLECTIVES + 4; k++) MPI_Comm_dup(world, &comms[k]);
  MPI_Comm_split(world, me % 2, me, &half);
  MUST(MPI_Intercomm_create(half, 0, world, me % 2 ? 0 : 1, 9, &inter));
  MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN);
  MPI_Win_create(data, LONG * (MPI_Aint)sizeof *data, sizeof *data, MPI_INFO_NULL, world, &win);
  MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
  if (me == 0) close(mkstemp(name));
  MPI_Bcast(name, sizeof name, MPI_CHAR, 0, world);
  MUST(MPI_File_open(world, name, MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &f));
  MPI_Barrier(world);
  if (me == dead) raise(SIGKILL);
  wait_for_death();
  partner();
  wildcards();
  collectives(comms);
  communicators(comms + COLLECTIVES);
  window(win);
  file(f);
  revoked(comms[COLLECTIVES + 3]);
  intercommunicator(inter);
  if (me == 0) unlink(name);
  free(data);
  free(more);
  MPI_Finalize();
  return check_status();
}
