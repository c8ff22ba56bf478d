/* Every mode of sending, blocking, nonblocking and persistent, to another process and to oneself, in sizes around the thresholds
 * between eager and announced messages, contiguous and strided, with every way of receiving (MPI-5.0, 3.4 to 3.10). */
// run: n=1,2,5 n.few=1,3 timeout=60
#include "../check.h"
#include <stdlib.h>
#include <string.h>

enum { BIG = 70000 };
static const int sizes[] = {0, 1, 3, 4, 5, 8, 100, 2040, 4090, 4100, 8190, BIG};
static int rank, size;
static char *room;

typedef enum { SEND, BSEND, SSEND, ISEND, IBSEND, ISSEND, SEND_INIT, SSEND_INIT, BSEND_INIT, SENDS } how_to_send;
typedef enum { RECV, IRECV, RECV_INIT, PROBE, MPROBE, IMPROBE, RECVS } how_to_receive;

static int value(int from, int to, int n, int i) { return from * 1000003 + to * 10007 + n * 31 + i; }

static void send(how_to_send how, const int *buf, int n, MPI_Datatype t, int to, int tag)
{
  MPI_Comm w = MPI_COMM_WORLD;
  MPI_Request r = MPI_REQUEST_NULL;
  switch (how) {
  case SEND: MPI_Send(buf, n, t, to, tag, w); break;
  case BSEND: MPI_Bsend(buf, n, t, to, tag, w); break;
  case SSEND: MPI_Ssend(buf, n, t, to, tag, w); break;
  case ISEND: MPI_Isend(buf, n, t, to, tag, w, &r); break;
  case IBSEND: MPI_Ibsend(buf, n, t, to, tag, w, &r); break;
  case ISSEND: MPI_Issend(buf, n, t, to, tag, w, &r); break;
  case SEND_INIT: MPI_Send_init(buf, n, t, to, tag, w, &r); break;
  case SSEND_INIT: MPI_Ssend_init(buf, n, t, to, tag, w, &r); break;
  default: MPI_Bsend_init(buf, n, t, to, tag, w, &r); break;
  }
  if (how >= SEND_INIT) MPI_Start(&r);
  MPI_Wait(&r, MPI_STATUS_IGNORE);
  if (how >= SEND_INIT) MPI_Request_free(&r);
}

static void receive(how_to_receive how, int *buf, int n, MPI_Datatype t, int from, int tag, MPI_Status *st)
{
  MPI_Comm w = MPI_COMM_WORLD;
  MPI_Request r = MPI_REQUEST_NULL;
  MPI_Message m;
  int flag = 0;
  switch (how) {
  case RECV: MPI_Recv(buf, n, t, from, tag, w, st); return;
  case IRECV: MPI_Irecv(buf, n, t, MPI_ANY_SOURCE, tag, w, &r); break;
  case RECV_INIT:
    MPI_Recv_init(buf, n, t, from, MPI_ANY_TAG, w, &r);
    MPI_Start(&r);
    break;
  case PROBE:
    MPI_Probe(from, MPI_ANY_TAG, w, st);
    CHECK(st->MPI_TAG == tag);
    MPI_Recv(buf, n, t, st->MPI_SOURCE, st->MPI_TAG, w, st);
    return;
  case MPROBE:
    MPI_Mprobe(MPI_ANY_SOURCE, tag, w, &m, st);
    MPI_Mrecv(buf, n, t, &m, st);
    CHECK(m == MPI_MESSAGE_NULL);
    return;
  default:
    while (!flag) MPI_Improbe(from, tag, w, &flag, &m, st);
    MPI_Imrecv(buf, n, t, &m, &r);
    break;
  }
  MPI_Wait(&r, st);
  if (how == RECV_INIT) MPI_Request_free(&r);
}

/* One message around the ring of processes (alone: to oneself), strided on one side or both. */
static void one(how_to_send s, how_to_receive h, int n, int strided)
{
  MPI_Datatype pairs;
  MPI_Status st;
  MPI_Request r = MPI_REQUEST_NULL;
  int to = (rank + 1) % size, from = (rank + size - 1) % size, tag = s * RECVS + h, count = -1;
  int step_out = strided & 1 ? 3 : 1, step_in = strided & 2 ? 3 : 1;
  int *out = malloc((size_t)(n * 3 + 1) * sizeof *out), *in = malloc((size_t)(n * 3 + 1) * sizeof *in);
  MPI_Type_vector(1, 1, 1, MPI_INT, &pairs);
  MPI_Datatype third;
  MPI_Type_create_resized(pairs, 0, 3 * sizeof(int), &third);
  MPI_Type_commit(&third);
  memset(in, 0xff, (size_t)(n * 3 + 1) * sizeof *in);
  for (int i = 0; i < n; i++) out[i * step_out] = value(rank, to, n, i);
  /* Who sends synchronously, or much, around a ring has to be ready to receive: even ranks send first. */
  int first = size > 1 && rank % 2 == 0 && !(rank == size - 1 && size % 2);
  if (size == 1 && (s == SSEND || s == ISSEND || s == SSEND_INIT)) {
    MPI_Irecv(in, n, step_in == 3 ? third : MPI_INT, from, tag, MPI_COMM_WORLD, &r);
    send(s, out, n, step_out == 3 ? third : MPI_INT, to, tag);
    MPI_Wait(&r, &st);
  } else if (size == 1 && s == ISEND) {
    MPI_Isend(out, n, step_out == 3 ? third : MPI_INT, to, tag, MPI_COMM_WORLD, &r);
    receive(h, in, n, step_in == 3 ? third : MPI_INT, from, tag, &st);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
  } else if (size == 1 && s == SEND_INIT) {
    MPI_Send_init(out, n, step_out == 3 ? third : MPI_INT, to, tag, MPI_COMM_WORLD, &r);
    MPI_Start(&r);
    receive(h, in, n, step_in == 3 ? third : MPI_INT, from, tag, &st);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    MPI_Request_free(&r);
  } else {
    if (first || size == 1) send(s, out, n, step_out == 3 ? third : MPI_INT, to, tag);
    receive(h, in, n, step_in == 3 ? third : MPI_INT, from, tag, &st);
    if (!first && size > 1) send(s, out, n, step_out == 3 ? third : MPI_INT, to, tag);
  }
  MPI_Get_count(&st, MPI_INT, &count);
  CHECK(st.MPI_SOURCE == from && st.MPI_TAG == tag && count == n);
  for (int i = 0; i < n; i++)
    if (in[i * step_in] != value(from, rank, n, i)) {
      CHECK(!"content");
      break;
    }
  if (step_in == 3 && n > 0) CHECK(in[1] == -1 && in[n * 3 - 1] == -1);
  MPI_Type_free(&pairs);
  MPI_Type_free(&third);
  free(out);
  free(in);
}

int main(int argc, char **argv)
{
  void *back;
  int n;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  n = BIG * (int)sizeof(int) + 4 * MPI_BSEND_OVERHEAD;
  room = malloc((size_t)n);
  MPI_Buffer_attach(room, n);
  for (how_to_send s = 0; s < SENDS; s++)
    for (how_to_receive h = 0; h < RECVS; h++)
      for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        one(s, h, sizes[k], (int)((k + s + h) % 4));
        if (s == BSEND || s == IBSEND || s == BSEND_INIT) MPI_Buffer_flush();
      }
  MPI_Buffer_detach(&back, &n);
  CHECK(back == room);
  free(room);
  MPI_Finalize();
  return check_status();
}
