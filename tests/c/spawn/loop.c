/* Fifty times spawned and disconnected: no process, descriptor, mapping or memory stays behind. What is given back is used again:
 * without, the job's memory file would be full long before. */
// run: n=1 timeout=60
// run: n=2 args=4 timeout=60
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "../check.h"

enum { CYCLES = 50, WARM = 10 };

typedef struct {
  int fds, maps;
  long blocks;
} usage;

/* Descriptors and mappings of this process, and 512-byte blocks of the job's memory file. */
static usage look(void)
{
  usage u = {0};
  char line[4096];
  DIR *d = opendir("/proc/self/fd");
  for (struct dirent *e; d && (e = readdir(d));) {
    u.fds++;
    ssize_t n = readlinkat(dirfd(d), e->d_name, line, sizeof line - 1);
    struct stat st;
    if (n > 0 && (line[n] = 0, strncmp(line, "/memfd:spx-job", 14) == 0) && fstat(atoi(e->d_name), &st) == 0)
      u.blocks = st.st_blocks;
  }
  if (d) closedir(d);
  FILE *f = fopen("/proc/self/maps", "r");
  while (f && fgets(line, sizeof line, f)) u.maps += strstr(line, "memfd") != NULL;
  if (f) fclose(f);
  return u;
}

static void with_parent(MPI_Comm parent)
{
  int x, rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Recv(&x, 1, MPI_INT, 0, 0, parent, MPI_STATUS_IGNORE);
  x += rank;
  MPI_Send(&x, 1, MPI_INT, 0, 0, parent);
  MPI_Comm_disconnect(&parent);
}

static void cycle(char *self, int n, int i)
{
  MPI_Comm inter;
  int rank, x;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_spawn(self, MPI_ARGV_NULL, n, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE);
  for (int c = 0; rank == 0 && c < n; c++) {
    int big = i * 100;
    MPI_Send(&big, 1, MPI_INT, c, 0, inter);
    MPI_Recv(&x, 1, MPI_INT, c, 0, inter, MPI_STATUS_IGNORE);
    CHECK(x == i * 100 + c);
  }
  MPI_Comm_disconnect(&inter);
}

int main(int argc, char **argv)
{
  MPI_Comm parent;
  int n = argc > 1 ? atoi(argv[1]) : 3;
  usage before = {0}, after;
  MPI_Init(&argc, &argv);
  MPI_Comm_get_parent(&parent);
  if (parent != MPI_COMM_NULL) {
    with_parent(parent);
    MPI_Finalize();
    return check_status();
  }
  for (int i = 0; i < CYCLES; i++) {
    if (i == WARM) before = look();
    cycle(argv[0], n, i);
  }
  after = look();
  CHECK(after.fds == before.fds);
  CHECK(after.maps == before.maps);
  if (after.blocks >
      before.blocks + 16 * 1024 / 2) /* a few megabytes: rings of children that were quicker than the agent */
    fprintf(stderr, "blocks of the memory file: %ld, then %ld\n", before.blocks, after.blocks);
  CHECK(after.blocks <= before.blocks + 16 * 1024 / 2);
  MPI_Finalize();
  return check_status();
}
