/* Jobs that share no host find each other by a published name.
 *   keep SERVICE FILE TIMES   the last rank opens a port, publishes it, makes FILE, is met so often, waits for FILE.end, and takes the name back
 *   find SERVICE WORD         rank 0 looks the name up, and sends the number to who is there
 *   claim SERVICE             rank 0 publishes the name, and says what came of it
 * The file of a name service may follow, which an info key names then. Errors are printed, with their class. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static MPI_Info where = MPI_INFO_NULL; /* the name service */

static void tell(const char *what, int err)
{
  char text[MPI_MAX_ERROR_STRING] = "";
  int class, n;
  MPI_Error_class(err, &class);
  if (err != MPI_SUCCESS) MPI_Error_string(err, text, &n);
  printf("%s: %s %s\n", what,
         class == MPI_SUCCESS          ? "MPI_SUCCESS"
         : class == MPI_ERR_NAME       ? "MPI_ERR_NAME"
         : class == MPI_ERR_SERVICE    ? "MPI_ERR_SERVICE"
         : class == MPI_ERR_PORT       ? "MPI_ERR_PORT"
         : class == MPI_ERR_INFO_VALUE ? "MPI_ERR_INFO_VALUE"
                                       : "another class",
         text);
  fflush(stdout);
}

static void await(const char *file)
{
  char end[1024];
  snprintf(end, sizeof end, "%s.end", file);
  while (access(end, F_OK) != 0) usleep(5000);
}

static void keep(const char *service, const char *file, int times)
{
  char port[MPI_MAX_PORT_NAME];
  int err = MPI_Open_port(MPI_INFO_NULL, port);
  if (err == MPI_SUCCESS) err = MPI_Publish_name(service, where, port);
  tell("published", err);
  if (err != MPI_SUCCESS) return;
  fclose(fopen(file, "w"));
  for (int i = 0, failed = 0; i < times; i++) {
    MPI_Comm other;
    int word = 0;
    err = MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &other);
    if (err != MPI_SUCCESS) { /* the host is lost that was to answer: the next one is asked */
      tell("accepts again", err);
      if (++failed > 3) return;
      i--;
      continue;
    }
    MPI_Recv(&word, 1, MPI_INT, 0, 0, other, MPI_STATUS_IGNORE);
    printf("received %d\n", word);
    fflush(stdout);
    MPI_Comm_disconnect(&other);
  }
  await(file);
  tell("taken back", MPI_Unpublish_name(service, where, port));
  MPI_Close_port(port);
}

static void find(const char *service, int word)
{
  char port[MPI_MAX_PORT_NAME];
  MPI_Comm other;
  int err = MPI_Lookup_name(service, where, port);
  tell("found", err);
  if (err != MPI_SUCCESS) return;
  err = MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &other);
  tell("connected", err);
  if (err != MPI_SUCCESS) return;
  MPI_Send(&word, 1, MPI_INT, 0, 0, other);
  MPI_Comm_disconnect(&other);
}

static void claim(const char *service)
{
  char port[MPI_MAX_PORT_NAME];
  int err = MPI_Open_port(MPI_INFO_NULL, port);
  if (err == MPI_SUCCESS) err = MPI_Publish_name(service, where, port);
  tell("published", err);
}

int main(int argc, char **argv)
{
  int rank, size;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  int words = argc < 2 ? argc : strcmp(argv[1], "keep") == 0 ? 5 : strcmp(argv[1], "find") == 0 ? 4 : 3;
  if (argc > words) {
    MPI_Info_create(&where);
    MPI_Info_set(where, "name_server", argv[words]);
  }
  if (argc > 4 && strcmp(argv[1], "keep") == 0) {
    if (rank == size - 1)
      keep(argv[2], argv[3], atoi(argv[4]));
    else
      await(argv[3]);
  } else if (rank == 0 && argc > 3 && strcmp(argv[1], "find") == 0)
    find(argv[2], atoi(argv[3]));
  else if (rank == 0 && argc > 2)
    claim(argv[2]);
  if (where != MPI_INFO_NULL) MPI_Info_free(&where);
  MPI_Finalize();
  return 0;
}
