/* A message that goes through others without an announcement takes as many frames as its bytes need: an announcement, its answer and what follows them would each wait for every process on the way.
 * Eight ranks as if on four switches: each has a connection with the other one of its own and with one of each other switch, and sends to one that it has none with. What is counted is frames
 * against messages, where no way was lost and no connection made meanwhile. docs/connections.md. */
// run: n=8 env=SPX_TRANSPORTS=tcp env=SPX_CONNECTIONS=topology:0 env=SPX_TOPOLOGY=groups:4 timeout=60
#include <stdlib.h>
#include <string.h>
#include "../check.h"

enum { MESSAGES = 20, FRAME = 15 * 1024 /* bytes of messages that surely fit */, TRIES = 20 };

static int rank, size;
static MPI_T_pvar_session session;

static MPI_T_pvar_handle count(const char *name)
{
  MPI_T_pvar_handle h;
  int index, n;
  CHECK(MPI_T_pvar_get_index(name, MPI_T_PVAR_CLASS_COUNTER, &index) == MPI_SUCCESS);
  CHECK(MPI_T_pvar_handle_alloc(session, index, NULL, &h, &n) == MPI_SUCCESS);
  MPI_T_pvar_start(session, h);
  return h;
}

static long value(MPI_T_pvar_handle h)
{
  unsigned long long v = 0;
  CHECK(MPI_T_pvar_read(session, h, &v) == MPI_SUCCESS);
  return (long)v;
}

/* Each rank to the one half around, which is on another switch, and the other one there. */
static void exchange(int bytes, char *out, char *in)
{
  int to = (rank + size / 2 + (rank % 2 ? -1 : 1)) % size;
  for (int i = 0; i < MESSAGES; i++) {
    memset(out, rank + i, (size_t)bytes);
    MPI_Sendrecv(out, bytes, MPI_CHAR, to, i, in, bytes, MPI_CHAR, to, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int k = 0; k < bytes; k += 97) CHECK(in[k] == (char)(to + i));
  }
}

int main(int argc, char **argv)
{
  static const int lengths[] = {100, 5000, 12000, 40000, 60000};
  int provided;
  char *out = malloc(60000), *in = malloc(60000);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
  MPI_T_pvar_session_create(&session);
  MPI_T_pvar_handle relayed = count("spx_frames_relayed"), again = count("spx_frames_again"),
                    opened = count("spx_connections_opened");
  for (size_t k = 0; k < sizeof lengths / sizeof *lengths; k++) {
    int frames = (lengths[k] + FRAME - 1) / FRAME, still = 1;
    for (int try = 0; try < TRIES && still; try++) {
      MPI_Barrier(MPI_COMM_WORLD);
      long r = value(relayed), a = value(again), o = value(opened);
      exchange(lengths[k], out, in);
      r = value(relayed) - r;
      /* beside other work a process may stand still for so long that its messages go another way, or again */
      still = value(again) != a || value(opened) != o;
      if (!still) CHECK(r > 0 && r <= MESSAGES * frames + MESSAGES / 2); /* those of the barrier may be among them */
      MPI_Allreduce(MPI_IN_PLACE, &still, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    }
  }
  free(out);
  free(in);
  MPI_T_finalize();
  MPI_Finalize();
  return check_status();
}
