/* Spawned from a part of a communicator, by spawned processes, by all at once, and while the threads of the parents talk; then all in
 * one communicator, with messages of all sizes between all. */
// run: n=1,4 timeout=40
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "../check.h"

static char *self;

static MPI_Comm spawn(const char *what, int n, int root, MPI_Comm comm)
{
  char *args[] = {(char *)what, NULL};
  MPI_Comm inter;
  MPI_Comm_spawn(self, args, n, MPI_INFO_NULL, root, comm, &inter, MPI_ERRCODES_IGNORE);
  return inter;
}

/* Everybody sends everybody messages of all sizes. */
static void talk(MPI_Comm c)
{
  int rank, size;
  static const int bytes[] = {0, 8, 100, 5000, 70000, 1000000};
  char *out = malloc(1000000), *in = malloc(1000000);
  MPI_Comm_rank(c, &rank);
  MPI_Comm_size(c, &size);
  for (int k = 0; k < 6; k++)
    for (int d = 1; d < size; d++) {
      int to = (rank + d) % size, from = (rank - d + size) % size, n;
      memset(out, rank * 7 + k, (size_t)bytes[k]);
      MPI_Status st;
      MPI_Sendrecv(out, bytes[k], MPI_CHAR, to, k, in, 1000000, MPI_CHAR, from, k, c, &st);
      MPI_Get_count(&st, MPI_CHAR, &n);
      int good = n == bytes[k];
      for (int i = 0; i < n; i += 97) good &= in[i] == (char)(from * 7 + k);
      CHECK(good);
    }
  free(out);
  free(in);
}

static void together(MPI_Comm *inter, int high, int want)
{
  MPI_Comm all;
  int size;
  MPI_Intercomm_merge(*inter, high, &all);
  MPI_Comm_size(all, &size);
  CHECK(size == want);
  talk(all);
  MPI_Comm_free(&all);
  MPI_Comm_disconnect(inter);
}

static void *chatter(void *arg)
{
  MPI_Comm c = *(MPI_Comm *)arg;
  int rank, size, x;
  MPI_Comm_rank(c, &rank);
  MPI_Comm_size(c, &size);
  for (int i = 0; i < 3000; i++) {
    MPI_Sendrecv(&i, 1, MPI_INT, (rank + 1) % size, 5, &x, 1, MPI_INT, (rank + size - 1) % size, 5, c,
                 MPI_STATUS_IGNORE);
    if (x != i) CHECK(x == i);
  }
  return NULL;
}

static void parents(void)
{
  int rank, size;
  MPI_Comm half, dup, inter;
  pthread_t t;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
  int n;
  MPI_Comm_size(half, &n);
  inter = spawn("leaf", 2, n - 1, half); /* both halves at once */
  together(&inter, rank % 2, n + 2);
  if (rank % 2 == 0) {
    inter = spawn("tree", 2, 0, half);
    together(&inter, 0, n + 2);
  }
  MPI_Comm_dup(MPI_COMM_WORLD, &dup);
  pthread_create(&t, NULL, chatter, &dup);
  for (int i = 0; i < 3; i++) {
    inter = spawn("leaf", 2, 0, MPI_COMM_SELF);
    together(&inter, 0, 3);
  }
  pthread_join(t, NULL);
  MPI_Comm_free(&dup);
  MPI_Comm_free(&half);
}

int main(int argc, char **argv)
{
  int level;
  MPI_Comm parent;
  self = argv[0];
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  MPI_Comm_get_parent(&parent);
  if (parent == MPI_COMM_NULL)
    parents();
  else {
    int local, remote;
    MPI_Comm_size(parent, &local);
    MPI_Comm_remote_size(parent, &remote);
    if (strcmp(argv[1], "tree") == 0) {
      MPI_Comm inter = spawn("leaf", 3, 1, MPI_COMM_WORLD);
      together(&inter, 1, 5);
    }
    together(&parent, 1, local + remote);
  }
  MPI_Finalize();
  return check_status();
}
