/* Buffers of sessions, communicators and the process (MPI-5.0, 4.6): the narrowest that is attached is used and the others are not
 * touched; automatic ones; flush and iflush; wrong use has its class. */
// run: n=2
#include "../check.h"
#include <stdlib.h>
#include <string.h>

enum { N = 1000, ROOM = 4 * (N * (int)sizeof(int) + MPI_BSEND_OVERHEAD) };
static int rank;

static MPI_Comm world_of(MPI_Session s, const char *tag)
{
  MPI_Group g, part;
  MPI_Comm c;
  int all[2] = {0, 1};
  MPI_Group_from_session_pset(s, "mpi://WORLD", &g);
  MPI_Group_incl(g, 2, all, &part); /* a group made from a session's is the session's too */
  MPI_Comm_create_from_group(part, tag, MPI_INFO_NULL, MPI_ERRORS_RETURN, &c);
  MPI_Group_free(&g);
  MPI_Group_free(&part);
  return c;
}

/* Whether a buffered send on c, which nobody has received yet, has written into buf. */
static int writes(MPI_Comm c, const char *buf)
{
  static char before[ROOM];
  int data[N], token = 0;
  for (int i = 0; i < N; i++) data[i] = i * 7 + rank;
  if (buf) memcpy(before, buf, ROOM);
  CHECK(MPI_Bsend(data, N, MPI_INT, 1 - rank, 5, c) == MPI_SUCCESS);
  int changed = buf && memcmp(before, buf, ROOM) != 0;
  MPI_Sendrecv(&token, 1, MPI_INT, 1 - rank, 6, &token, 1, MPI_INT, 1 - rank, 6, c, MPI_STATUS_IGNORE);
  MPI_Recv(data, N, MPI_INT, 1 - rank, 5, c, MPI_STATUS_IGNORE);
  CHECK(data[1] == 7 + 1 - rank && data[N - 1] == (N - 1) * 7 + 1 - rank);
  return changed;
}

static void flush_it(MPI_Session s, MPI_Comm c)
{
  MPI_Request r[2];
  CHECK(MPI_Session_flush_buffer(s) == MPI_SUCCESS && MPI_Comm_flush_buffer(c) == MPI_SUCCESS);
  CHECK(MPI_Session_iflush_buffer(s, &r[0]) == MPI_SUCCESS && MPI_Comm_iflush_buffer(c, &r[1]) == MPI_SUCCESS);
  CHECK(MPI_Waitall(2, r, MPI_STATUSES_IGNORE) == MPI_SUCCESS);
  CHECK(r[0] == MPI_REQUEST_NULL && r[1] == MPI_REQUEST_NULL);
}

static void layers(MPI_Session s, MPI_Comm c, MPI_Comm dup, MPI_Comm foreign)
{
  char *of_session = malloc(ROOM), *of_comm = malloc(ROOM), *of_process = malloc(ROOM);
  void *p;
  int size;
  MPI_Count large;
  memset(of_session, 0, ROOM), memset(of_comm, 0, ROOM), memset(of_process, 0, ROOM);
  CHECK(MPI_Buffer_attach(of_process, ROOM) == MPI_SUCCESS);
  CHECK(writes(c, of_process) && writes(foreign, of_process));
  CHECK(MPI_Session_attach_buffer(s, of_session, ROOM) == MPI_SUCCESS);
  CHECK_CLASS(MPI_Session_attach_buffer(s, of_comm, ROOM), MPI_ERR_BUFFER);
  CHECK(writes(c, of_session) && !writes(c, of_process) && !writes(c, of_comm));
  CHECK(writes(dup, of_session) && writes(foreign, of_process) && !writes(foreign, of_session));
  CHECK(MPI_Comm_attach_buffer_c(c, of_comm, ROOM) == MPI_SUCCESS);
  CHECK(writes(c, of_comm) && !writes(c, of_session) && writes(dup, of_session));
  flush_it(s, c);
  CHECK(MPI_Comm_detach_buffer_c(c, &p, &large) == MPI_SUCCESS && p == of_comm && large == ROOM);
  CHECK_CLASS(MPI_Comm_detach_buffer(c, &p, &size), MPI_ERR_BUFFER);
  CHECK(writes(c, of_session));
  CHECK(MPI_Session_detach_buffer(s, &p, &size) == MPI_SUCCESS && p == of_session && size == ROOM);
  CHECK_CLASS(MPI_Session_flush_buffer(s), MPI_ERR_BUFFER);
  CHECK(writes(c, of_process));
  CHECK(MPI_Buffer_detach(&p, &size) == MPI_SUCCESS && p == of_process && size == ROOM);
  free(of_session), free(of_comm), free(of_process);
}

static void automatic(MPI_Session s, MPI_Comm c, MPI_Comm foreign)
{
  void *p;
  MPI_Count size;
  int x = 0;
  CHECK_CLASS(MPI_Bsend(&x, 1, MPI_INT, 1 - rank, 1, c), MPI_ERR_BUFFER); /* none at all */
  CHECK(MPI_Session_attach_buffer_c(s, MPI_BUFFER_AUTOMATIC, 0) == MPI_SUCCESS);
  for (int i = 0; i < 20; i++) writes(c, NULL);
  CHECK_CLASS(MPI_Bsend(&x, 1, MPI_INT, 1 - rank, 1, foreign), MPI_ERR_BUFFER);
  CHECK(MPI_Session_detach_buffer_c(s, &p, &size) == MPI_SUCCESS && p == MPI_BUFFER_AUTOMATIC);
  CHECK(MPI_Session_attach_buffer(s, MPI_BUFFER_AUTOMATIC, 0) == MPI_SUCCESS); /* MPI_Session_finalize detaches it */
}

int main(void)
{
  MPI_Session s, other;
  CHECK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &s) == MPI_SUCCESS);
  CHECK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &other) == MPI_SUCCESS);
  MPI_Comm c = world_of(s, "one"), foreign = world_of(other, "two"), dup;
  MPI_Comm_rank(c, &rank);
  MPI_Comm_dup(c, &dup);
  layers(s, c, dup, foreign);
  automatic(s, c, foreign);
  MPI_Comm_free(&dup);
  MPI_Comm_free(&c);
  MPI_Comm_free(&foreign);
  MPI_Session_finalize(&s);
  MPI_Session_finalize(&other);
  return check_status();
}
