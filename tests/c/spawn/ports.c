/* Ports, names and MPI_Comm_join inside one job, and what is wrong with their arguments: MPI_ERR_PORT, _NAME, _SERVICE. */
// run: n=2 timeout=30
// run: n=4 timeout=30
// run: n=2 env="SPX_CONNECT_TIMEOUT=0.2" args=impatient timeout=30
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
  MPI_Info_set(info, "timeout", "soon");
  CHECK_CLASS(MPI_Comm_accept(port, info, 0, MPI_COMM_SELF, &c), MPI_ERR_INFO_VALUE);
  MPI_Info_free(&info);
  MPI_Close_port(port);
}

int main(int argc, char **argv)
{
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  if (argc > 1)
    impatient();
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
