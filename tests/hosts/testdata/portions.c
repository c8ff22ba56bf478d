/* portions.c - what becomes of messages that go over further streams when something else happens. Who starts it sets SPX_STREAMS to more than 1. Two ranks, but with the last:
 *   finalize   rank 0 has sent, and finalizes while its bytes are on their way; rank 1 gets all of them
 *   receiver   rank 1 is killed while a message comes; rank 0 is told
 *   sender     rank 0 is killed while its message goes; rank 1 is told
 *   revoked    the communicator of a message is revoked while that goes; later messages are right
 *   truncated  messages are longer than their receives; later ones are right
 *   evicted    any number of ranks, each sending to all others in turn, with fewer connections than there are others */
#include <mpi-ext.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LONG (32 << 20)
#define WARM (4 << 20)
#define MORE                                                                                                           \
  (256 << 20) /* more than sockets hold: the message is not over for its sender before its receiver has read */

static int rank, size;
static unsigned char *out, *in;

typedef struct {
  MPI_T_pvar_session session;
  MPI_T_pvar_handle handle;
} counter;

static counter count(const char *name)
{
  counter c;
  int provided, index, n;
  MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
  MPI_T_pvar_session_create(&c.session);
  MPI_T_pvar_get_index(name, MPI_T_PVAR_CLASS_COUNTER, &index);
  MPI_T_pvar_handle_alloc(c.session, index, NULL, &c.handle, &n);
  MPI_T_pvar_start(c.session, c.handle);
  return c;
}

static unsigned long long value(counter c)
{
  unsigned long long v;
  MPI_T_pvar_read(c.session, c.handle, &v);
  return v;
}

static void fill(int from, int to, int round, size_t n)
{
  for (size_t i = 0; i < n; i++) out[i] = (unsigned char)(1 + (i * 7 + (i >> 9) + from * 5 + to * 3 + round) % 255);
}

/* The first n bytes are right: those of a message of `from`. */
static int right(int from, int to, int round, size_t n)
{
  for (size_t i = 0; i < n; i++)
    if (in[i] != (unsigned char)(1 + (i * 7 + (i >> 9) + from * 5 + to * 3 + round) % 255)) {
      printf("round %d, from %d to %d: byte %zu is wrong\n", round, from, to, i);
      return 0;
    }
  return 1;
}

static int exchange(int to, int from, int round, int n)
{
  fill(rank, to, round, (size_t)n);
  memset(in, 0, (size_t)n);
  MPI_Sendrecv(out, n, MPI_BYTE, to, 1, in, n, MPI_BYTE, from, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  return right(from, rank, round, (size_t)n);
}

/* Messages both ways until both have made further streams. */
static void warm(void)
{
  counter made = count("spx_streams_opened");
  for (int all = 0, round = 0; !all; round++) {
    if (!exchange(!rank, !rank, round, WARM) || round == 500) MPI_Abort(MPI_COMM_WORLD, 1);
    int mine = value(made) > 0;
    MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
  }
}

static int class_of(int err)
{
  int class;
  MPI_Error_class(err, &class);
  return class;
}

/* Until a message that goes, or comes, has used a further stream. */
static void await_part(MPI_Request *r, counter further, const unsigned char *last)
{
  for (int done = 0; !done && (rank == 0 ? value(further) == 0 : !*(const volatile unsigned char *)last);)
    if (MPI_Test(r, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS || done) {
      printf("rank %d: the message was over before anything could happen to it\n", rank);
      MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

static void killed(int victim)
{
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  unsigned char *all = calloc(1, MORE);
  if (rank == 0) memset(all, 1, MORE);
  MPI_Barrier(MPI_COMM_WORLD);
  counter further = count("spx_bytes_further");
  MPI_Request r;
  int err = rank == 0 ? MPI_Isend(all, MORE, MPI_BYTE, 1, 1, MPI_COMM_WORLD, &r)
                      : MPI_Irecv(all, MORE, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &r);
  if (rank == victim) {
    await_part(&r, further, &all[MORE - 1]);
    raise(SIGKILL);
  }
  if (err == MPI_SUCCESS) err = MPI_Wait(&r, MPI_STATUS_IGNORE);
  printf("told: %d\n", class_of(err) == MPIX_ERR_PROC_FAILED);
}

static void revoked(void)
{
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  unsigned char *most = calloc(1, MORE);
  if (rank == 0) memset(most, 1, MORE);
  counter further = count("spx_bytes_further");
  MPI_Request r;
  if (rank == 0) {
    MPI_Isend(most, MORE, MPI_BYTE, 1, 1, comm, &r);
    await_part(&r, further, &most[MORE - 1]);
    MPIX_Comm_revoke(comm);
  } else
    MPI_Irecv(most, MORE, MPI_BYTE, 0, 1, comm, &r);
  int is = class_of(MPI_Wait(&r, MPI_STATUS_IGNORE)) == MPIX_ERR_REVOKED, good = 1, all;
  for (int round = 0; round < 6; round++) good &= exchange(!rank, !rank, round, WARM);
  is &= good;
  MPI_Reduce(&is, &all, 1, MPI_INT, MPI_LAND, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("revoked: %d\n", all);
  MPI_Comm_free(&comm);
}

static void truncated(void)
{
  int good = 1, all;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  for (int round = 0; round < 10; round++) {
    int n = WARM - round * 400001;
    if (rank == 0) {
      fill(0, 1, round, WARM);
      MPI_Send(out, WARM, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
    } else {
      memset(in, 0, WARM);
      int err = MPI_Recv(in, n, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      good &= class_of(err) == (round ? MPI_ERR_TRUNCATE : MPI_SUCCESS) && right(0, 1, round, (size_t)n);
      for (int i = n; i < WARM; i++) good &= in[i] == 0;
    }
    good &= exchange(!rank, !rank, round, 1 << 20);
  }
  MPI_Reduce(&good, &all, 1, MPI_INT, MPI_LAND, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("truncated: %d\n", all);
}

static void evicted(void)
{
  counter made = count("spx_streams_opened");
  int good = 1, all;
  for (int round = 0; round < 30; round++) {
    int by = 1 + round * 7 % (size - 1);
    good &= exchange((rank + by) % size, (rank - by + size) % size, round, 600000 + round * 100003 % (1 << 21));
  }
  MPI_Reduce(&good, &all, 1, MPI_INT, MPI_LAND, 0, MPI_COMM_WORLD);
  unsigned long long sum, mine = value(made);
  MPI_Reduce(&mine, &sum, 1, MPI_UNSIGNED_LONG_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("all right: %d, over streams: %d\n", all, sum > 0);
}

int main(int argc, char **argv)
{
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const char *how = argc > 1 ? argv[1] : "";
  out = malloc(LONG);
  in = malloc(LONG);
  if (!strcmp(how, "evicted")) {
    evicted();
    MPI_Finalize();
    return 0;
  }
  warm();
  if (!strcmp(how, "finalize")) {
    if (rank == 0) {
      fill(0, 1, 7, LONG);
      MPI_Send(out, LONG, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
    } else {
      memset(in, 0, LONG);
      MPI_Recv(in, LONG, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      printf("all there: %d\n", right(0, 1, 7, LONG));
    }
  }
  if (!strcmp(how, "receiver")) killed(1);
  if (!strcmp(how, "sender")) killed(0);
  if (!strcmp(how, "revoked")) revoked();
  if (!strcmp(how, "truncated")) truncated();
  MPI_Finalize();
  return 0;
}
