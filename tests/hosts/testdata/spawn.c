/* Spawning in a job of several hosts. Arguments: the root, how many, and what: a list of hosts (info key "host"), or
 *   -             on any hosts
 *   fails LIST    the same, but with error handlers that return: what comes of it, of a program that is called so
 *   lost LIST     child 0 kills the agent of its host before it calls MPI_Init
 *   abort LIST    the last child ends itself and the last parent, and nobody else
 * With the arguments "other SPXRUN", a job of one host, started by that, connects with this one.
 * Parents and children say where they are. */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char host[64];

static void together(MPI_Comm inter, int child, int rank, int size)
{
  int n, me, sum;
  MPI_Comm all;
  MPI_Intercomm_merge(inter, child, &all);
  MPI_Comm_size(all, &n);
  MPI_Comm_rank(all, &me);
  MPI_Allreduce(&me, &sum, 1, MPI_INT, MPI_SUM, all);
  printf("%s %d of %d on %s: sum %s\n", child ? "child" : "parent", rank, size, host,
         sum == n * (n - 1) / 2 ? "right" : "wrong");
  MPI_Comm_free(&all);
}

/* The last child calls MPI_Abort on a communicator of itself and the last parent, on another host. */
static void abort_some(MPI_Comm inter, int child, int rank, int size)
{
  int n, me, chosen;
  MPI_Comm all, some;
  MPI_Intercomm_merge(inter, child, &all);
  MPI_Comm_size(all, &n);
  MPI_Comm_rank(all, &me);
  chosen = rank == size - 1;
  MPI_Comm_set_errhandler(all, MPI_ERRORS_RETURN);
  MPI_Comm_split(all, chosen, me, &some);
  if (chosen && child) MPI_Abort(some, 9);
  if (chosen)
    for (;;) pause(); /* until it is ended from afar */
  while (MPI_Barrier(all) == MPI_SUCCESS) {}
  printf("%s %d on %s has survived\n", child ? "child" : "parent", rank, host);
}

/* A job of one host connects with this one. */
static int other_job(char **argv, const char *port)
{
  char mine[MPI_MAX_PORT_NAME], line[MPI_MAX_PORT_NAME + 1024];
  MPI_Comm inter;
  int rank, class, status = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (port) {
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Error_class(MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter), &class);
    printf("other job: %s\n",
           class == MPI_ERR_UNSUPPORTED_OPERATION ? "MPI_ERR_UNSUPPORTED_OPERATION" : "another class");
  } else if (rank == 0) {
    MPI_Open_port(MPI_INFO_NULL, mine);
    snprintf(line, sizeof line,
             "unset SPX_FD SPX_JOB SPX_PROC SPX_RANK SPX_SIZE SPX_AGENT; '%s' -n 1 '%s' other - '%s'", argv[2], argv[0],
             mine);
    status = system(line);
    printf("job of several hosts: %d\n", status);
    MPI_Close_port(mine);
  }
  MPI_Finalize();
  return status != 0;
}

int main(int argc, char **argv)
{
  int rank, size, err, class = 0, codes[64], failed = 0;
  MPI_Comm parent, inter = MPI_COMM_NULL;
  gethostname(host, sizeof host - 1);
  const char *what = argc > 3 ? argv[3] : "-", *list = argc > 4 ? argv[4] : what;
  int quiet = !strcmp(what, "fails") || !strcmp(what, "lost");
  if (getenv("LOST") && !strcmp(getenv("SPX_RANK"), "0")) {
    kill(getppid(), SIGKILL);
    pause();
  }
  MPI_Init(&argc, &argv);
  if (argc > 2 && !strcmp(argv[1], "other")) return other_job(argv, argc > 3 ? argv[3] : NULL);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_get_parent(&parent);
  if (parent == MPI_COMM_NULL) {
    int root = atoi(argv[1]), n = atoi(argv[2]);
    MPI_Info info;
    MPI_Info_create(&info);
    if (strcmp(list, "-")) MPI_Info_set(info, "host", list);
    if (!strcmp(what, "lost")) MPI_Info_set(info, "env", "LOST=1");
    if (quiet) MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    err = MPI_Comm_spawn(argc > 5 ? argv[5] : argv[0], argv + 1, n, info, root, MPI_COMM_WORLD, &inter, codes);
    MPI_Info_free(&info);
    MPI_Error_class(err, &class);
    for (int i = 0; i < n; i++) failed += codes[i] == MPI_ERR_SPAWN;
    if (quiet) {
      printf("parent %d: %s, %d codes\n", rank, class == MPI_ERR_SPAWN ? "MPI_ERR_SPAWN" : "another class", failed);
      char text[MPI_MAX_ERROR_STRING];
      int len;
      MPI_Error_string(err, text, &len);
      if (rank == root) fprintf(stderr, "%s\n", text);
      MPI_Finalize();
      return 0;
    }
  } else
    inter = parent;
  if (!strcmp(what, "abort")) {
    abort_some(inter, parent != MPI_COMM_NULL, rank, size);
  } else {
    together(inter, parent != MPI_COMM_NULL, rank, size);
    MPI_Comm_disconnect(&inter);
  }
  MPI_Finalize();
  return 0;
}
