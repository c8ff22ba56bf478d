/* Ports, names and MPI_Comm_join inside one job, and what is wrong with their arguments: MPI_ERR_PORT, _NAME, _SERVICE. */
// run: n=2 timeout=30
// run: n=4 timeout=30
// run: n=2 env="SPX_CONNECT_TIMEOUT=0.2" args=impatient timeout=30
// run: n=2 args=narrow timeout=40
// run: n=3 args=closing timeout=40
// run: n=1 args=self timeout=20
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "../check.h"

static int rank, size;

static void errors(void)
{
  char port[MPI_MAX_PORT_NAME], other[MPI_MAX_PORT_NAME], name[64];
  MPI_Comm c;
  snprintf(name, sizeof name, "nobody has this name %d", rank);
  CHECK_CLASS(MPI_Lookup_name(name, MPI_INFO_NULL, port), MPI_ERR_NAME);
  CHECK_CLASS(MPI_Unpublish_name(name, MPI_INFO_NULL, "x"), MPI_ERR_SERVICE);
  CHECK_CLASS(MPI_Comm_connect("nonsense", MPI_INFO_NULL, 0, MPI_COMM_SELF, &c), MPI_ERR_PORT);
  CHECK_CLASS(MPI_Comm_accept("spx:0123456789abcdef:1", MPI_INFO_NULL, 0, MPI_COMM_SELF, &c), MPI_ERR_PORT);
  CHECK_CLASS(MPI_Comm_connect("spx:0123456789abcdef:1", MPI_INFO_NULL, 0, MPI_COMM_SELF, &c), MPI_ERR_PORT);
  CHECK_CLASS(MPI_Close_port("nonsense"), MPI_ERR_PORT);
  CHECK_CLASS(MPI_Open_port(MPI_INFO_NULL, port), MPI_SUCCESS);
  CHECK_CLASS(MPI_Open_port(MPI_INFO_NULL, other), MPI_SUCCESS);
  CHECK(strcmp(port, other) != 0);
  CHECK_CLASS(MPI_Publish_name(name, MPI_INFO_NULL, port), MPI_SUCCESS);
  CHECK_CLASS(MPI_Publish_name(name, MPI_INFO_NULL, other), MPI_ERR_SERVICE);
  CHECK_CLASS(MPI_Lookup_name(name, MPI_INFO_NULL, other), MPI_SUCCESS);
  CHECK(strcmp(port, other) == 0);
  CHECK_CLASS(MPI_Unpublish_name(name, MPI_INFO_NULL, port), MPI_SUCCESS);
  CHECK_CLASS(MPI_Close_port(port), MPI_SUCCESS);
  CHECK_CLASS(MPI_Close_port(port), MPI_ERR_PORT);
  CHECK_CLASS(MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &c), MPI_ERR_PORT);
}

/* The error of a root is all its group's. */
static void collective_error(void)
{
  MPI_Comm c;
  CHECK_CLASS(MPI_Comm_connect(rank == size - 1 ? "nonsense" : NULL, MPI_INFO_NULL, size - 1, MPI_COMM_WORLD, &c),
              MPI_ERR_PORT);
}

/* Even and odd ranks meet at a port, several times, while other messages are under way. */
static void halves(void)
{
  char port[MPI_MAX_PORT_NAME];
  MPI_Comm half, inter;
  int sum, n;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
  if (rank == 0) MPI_Open_port(MPI_INFO_NULL, port);
  MPI_Bcast(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, MPI_COMM_WORLD);
  for (int i = 0; i < 20; i++) {
    if (rank % 2 == 0)
      MPI_Comm_accept(port, MPI_INFO_NULL, 0, half, &inter);
    else
      MPI_Comm_connect(port, MPI_INFO_NULL, 0, half, &inter);
    MPI_Comm_remote_size(inter, &n);
    CHECK(n == size / 2);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, inter);
    int want = 0;
    for (int r = 1 - rank % 2; r < size; r += 2) want += r;
    CHECK(sum == want);
    MPI_Comm_disconnect(&inter);
  }
  if (rank == 0) MPI_Close_port(port);
  MPI_Comm_free(&half);
}

static void joined(void)
{
  struct sockaddr_un at = {.sun_family = AF_UNIX};
  MPI_Comm inter;
  int fd = -1, listener = -1, x = rank;
  if (rank > 1) return;
  snprintf(at.sun_path + 1, sizeof at.sun_path - 1, "test of %s", getenv("SPX_JOB"));
  if (rank == 0) {
    listener = socket(AF_UNIX, SOCK_STREAM, 0);
    CHECK(bind(listener, (struct sockaddr *)&at, sizeof at) == 0 && listen(listener, 1) == 0);
    MPI_Send(&x, 1, MPI_INT, 1, 1, MPI_COMM_WORLD);
    fd = accept(listener, NULL, NULL);
    close(listener);
  } else {
    MPI_Recv(&x, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    fd = socket(AF_UNIX, SOCK_STREAM, 0);
    CHECK(connect(fd, (struct sockaddr *)&at, sizeof at) == 0);
  }
  x = rank;
  for (int i = 0; i < 3; i++) {
    CHECK_CLASS(MPI_Comm_join(fd, &inter), MPI_SUCCESS);
    int got = -1;
    MPI_Sendrecv(&x, 1, MPI_INT, 0, 0, &got, 1, MPI_INT, 0, 0, inter, MPI_STATUS_IGNORE);
    CHECK(got == 1 - rank);
    MPI_Comm_disconnect(&inter);
    char c = 'x'; /* the socket is as it was */
    CHECK(write(fd, &c, 1) == 1 && read(fd, &c, 1) == 1 && c == 'x');
  }
  close(fd);
  CHECK_CLASS(MPI_Comm_join(fd, &inter), MPI_ERR_ARG);
}

/* One side gives up again and again, until the other comes: when one has met somebody, so has the other, and the same. */
static void narrow(void)
{
  char port[MPI_MAX_PORT_NAME], limit[16];
  MPI_Info info;
  MPI_Comm c;
  if (rank == 0) MPI_Open_port(MPI_INFO_NULL, port);
  MPI_Bcast(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, MPI_COMM_WORLD);
  MPI_Info_create(&info);
  for (int i = 0; i < 60; i++) {
    int impatient = (rank + i) % 2, tries = 0, got = -1, err;
    snprintf(limit, sizeof limit, "%g", 0.0002 * (1 + i % 7));
    if (impatient) MPI_Info_set(info, "timeout", limit);
    MPI_Barrier(MPI_COMM_WORLD);
    do {
      err = rank == 0 ? MPI_Comm_accept(port, impatient ? info : MPI_INFO_NULL, 0, MPI_COMM_SELF, &c)
                      : MPI_Comm_connect(port, impatient ? info : MPI_INFO_NULL, 0, MPI_COMM_SELF, &c);
      if (err != MPI_SUCCESS) CHECK_CLASS(err, MPI_ERR_PORT);
    } while (err != MPI_SUCCESS && impatient && ++tries < 20000);
    CHECK(err == MPI_SUCCESS);
    if (err != MPI_SUCCESS) MPI_Abort(MPI_COMM_WORLD, 3);
    MPI_Sendrecv(&i, 1, MPI_INT, 0, 0, &got, 1, MPI_INT, 0, 0, c, MPI_STATUS_IGNORE);
    CHECK(got == i);
    MPI_Comm_disconnect(&c);
  }
  MPI_Info_free(&info);
  if (rank == 0) MPI_Close_port(port);
}

/* A port is closed while others accept and connect there: each pair has met, or has MPI_ERR_PORT, and nobody waits for ever. */
static void closing(void)
{
  char port[MPI_MAX_PORT_NAME];
  MPI_Comm c;
  for (int i = 0; i < 30; i++) {
    int met[2] = {0, 0}, all[2], x = 0;
    if (rank == 0) MPI_Open_port(MPI_INFO_NULL, port);
    MPI_Bcast(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, MPI_COMM_WORLD);
    if (rank == 0) {
      if (i % 3) MPI_Recv(&x, 1, MPI_INT, 1 + i % 2, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      CHECK_CLASS(MPI_Close_port(port), MPI_SUCCESS);
    } else {
      if (i % 3 && rank == 1 + i % 2) MPI_Send(&x, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
      int err = rank == 1 ? MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &c)
                          : MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &c);
      met[rank - 1] = err == MPI_SUCCESS;
      if (err == MPI_SUCCESS)
        MPI_Comm_disconnect(&c);
      else
        CHECK_CLASS(err, MPI_ERR_PORT);
    }
    MPI_Allreduce(met, all, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK(all[0] == all[1]);
  }
}

struct side {
  const char *port;
  int err;
};
static void *accepting(void *arg)
{
  struct side *s = arg;
  MPI_Comm c;
  s->err = MPI_Comm_accept(s->port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &c);
  return NULL;
}

/* A process that connects with itself: an error on both sides. */
static void with_itself(void)
{
  char port[MPI_MAX_PORT_NAME];
  pthread_t t;
  MPI_Comm c;
  MPI_Open_port(MPI_INFO_NULL, port);
  struct side s = {port, MPI_SUCCESS};
  pthread_create(&t, NULL, accepting, &s);
  CHECK_CLASS(MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &c), MPI_ERR_COMM);
  pthread_join(t, NULL);
  CHECK_CLASS(s.err, MPI_ERR_COMM);
  MPI_Close_port(port);
}

static void impatient(void)
{
  char port[MPI_MAX_PORT_NAME];
  MPI_Comm c;
  MPI_Info info;
  if (rank != 0) return;
  MPI_Open_port(MPI_INFO_NULL, port);
  CHECK_CLASS(MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &c), MPI_ERR_PORT);
  MPI_Info_create(&info);
  MPI_Info_set(info, "timeout", "0.1");
  CHECK_CLASS(MPI_Comm_accept(port, info, 0, MPI_COMM_SELF, &c), MPI_ERR_PORT);
  MPI_Info_set(info, "timeout", "0.001");
  for (int i = 0; i < 50; i++) { /* the one has given up before the other comes */
    CHECK_CLASS(MPI_Comm_connect(port, info, 0, MPI_COMM_SELF, &c), MPI_ERR_PORT);
    CHECK_CLASS(MPI_Comm_accept(port, info, 0, MPI_COMM_SELF, &c), MPI_ERR_PORT);
  }
  MPI_Info_set(info, "timeout", "soon");
  CHECK_CLASS(MPI_Comm_accept(port, info, 0, MPI_COMM_SELF, &c), MPI_ERR_INFO_VALUE);
  MPI_Info_free(&info);
  MPI_Close_port(port);
}

int main(int argc, char **argv)
{
  int level;
  const char *what = argc > 1 ? argv[1] : "";
  MPI_Init_thread(&argc, &argv, strcmp(what, "self") == 0 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  if (strcmp(what, "impatient") == 0)
    impatient();
  else if (strcmp(what, "narrow") == 0)
    narrow();
  else if (strcmp(what, "closing") == 0)
    closing();
  else if (strcmp(what, "self") == 0)
    with_itself();
  else {
    errors();
    MPI_Barrier(MPI_COMM_WORLD);
    collective_error();
    halves();
    joined();
  }
  MPI_Finalize();
  return check_status();
}
