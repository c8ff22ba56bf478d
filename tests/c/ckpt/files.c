/* Files as another job would find them: cut, with another byte, of another name, missing, half written. What is not as it should be is never
 * taken: an older version is. Then fewer processes restore what more have saved, and more what fewer have. */
// run: n=4 timeout=40 stderr~"checksum"
// run: n=4 args="1" timeout=40 stderr~"checksum"
#include <dirent.h>
#include <fcntl.h>
#include <mpi-ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "../check.h"

#define MUST(call) CHECK_CLASS(call, MPI_SUCCESS)
enum { N = 5000 };

static char dir[] = "spx-files-XXXXXX";
static int me, size, data[N];
static MPI_Info info;

static void fill(int version)
{
  for (int i = 0; i < N; i++) data[i] = version * 1000000 + me * 100000 + i;
}

static int is(int version)
{
  for (int i = 0; i < N; i++)
    if (data[i] != version * 1000000 + me * 100000 + i) return 0;
  return 1;
}

/* Does something with the file of a version and a rank, at rank 0. */
static void with_file(int version, int rank, void (*harm)(const char *path))
{
  MPI_Barrier(MPI_COMM_WORLD);
  if (me == 0) {
    DIR *d = opendir(dir);
    char wanted[64], path[512];
    int n = 0;
    snprintf(wanted, sizeof wanted, "-v%d-r%d-of%d.ckpt", version, rank, size);
    for (struct dirent *e; (e = readdir(d));)
      if (strstr(e->d_name, wanted)) {
        snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
        harm(path);
        n++;
      }
    closedir(d);
    CHECK(n == 1);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

static void cut(const char *path) { CHECK(truncate(path, 4000) == 0); }
static void empty(const char *path) { CHECK(truncate(path, 0) == 0); }
static void unlink_it(const char *path) { CHECK(unlink(path) == 0); }

static void flip(const char *path)
{
  char c;
  int fd = open(path, O_RDWR);
  CHECK(pread(fd, &c, 1, 12345) == 1);
  c ^= 1;
  CHECK(pwrite(fd, &c, 1, 12345) == 1);
  close(fd);
}

/* Rank 2's data under the name of rank 1's. */
static void swap_name(const char *path)
{
  char other[512];
  strcpy(other, path);
  strstr(other, "-r1-of")[2] = '2';
  CHECK(unlink(path) == 0 && link(other, path) == 0);
}

static void leave_half(const char *path)
{
  char half[600];
  snprintf(half, sizeof half, "%s.tmp", path);
  int fd = open(half, O_CREAT | O_WRONLY, 0600);
  CHECK(fd >= 0 && write(fd, "SPXCKPT1", 8) == 8);
  close(fd);
}

/* Versions 1 and 2 are written; something is done to version 2; so version 1 is restored by those that come then. */
static void harmed(void (*harm)(const char *path), int rank, int want)
{
  MPIX_Checkpoint c;
  int v = -1;
  MUST(MPIX_Checkpoint_create(MPI_COMM_WORLD, info, &c));
  MUST(MPIX_Checkpoint_register(c, 0, data, N, MPI_INT));
  for (v = 1; v <= 2; v++) {
    fill(v);
    MUST(MPIX_Checkpoint_save(c, v));
    MUST(MPIX_Checkpoint_commit(c));
  }
  MUST(MPIX_Checkpoint_free(&c));
  with_file(2, rank, harm);
  MUST(MPIX_Checkpoint_create(MPI_COMM_WORLD, info, &c));
  MUST(MPIX_Checkpoint_register(c, 0, data, N, MPI_INT));
  memset(data, 0, sizeof data);
  MUST(MPIX_Checkpoint_restore(c, MPIX_CHECKPOINT_NEWEST, &v));
  CHECK(v == want && is(want));
  CHECK_CLASS(MPIX_Checkpoint_restore(c, want == 1 ? 2 : 1, &v), want == 1 ? MPIX_ERR_CHECKPOINT : MPI_SUCCESS);
  MUST(MPIX_Checkpoint_delete(c, 1));
  MUST(MPIX_Checkpoint_free(&c));
  MPI_Barrier(MPI_COMM_WORLD);
  if (me == 0) { /* what was harmed stays, for who wants to know: not here */
    DIR *d = opendir(dir);
    char path[512];
    for (struct dirent *e; (e = readdir(d));) {
      CHECK(!strstr(e->d_name, ".tmp"));
      snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
      if (e->d_name[0] != '.') unlink(path);
    }
    closedir(d);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

/* The numbers 0 to TOTAL - 1, in blocks: saved by some processes, restored by others. */
static void redistribute(int from, int to)
{
  enum { TOTAL = 10007 };
  MPI_Comm few;
  MPIX_Checkpoint c;
  int n, v, rank;
  long *own = malloc(TOTAL * sizeof *own);
  MPI_Comm_split(MPI_COMM_WORLD, me < from ? 0 : MPI_UNDEFINED, 0, &few);
  if (few != MPI_COMM_NULL) {
    int first = (int)((long)TOTAL * me / from), end = (int)((long)TOTAL * (me + 1) / from);
    for (int i = first; i < end; i++) own[i - first] = 3L * i + 1;
    MUST(MPIX_Checkpoint_create(few, info, &c));
    MUST(MPIX_Checkpoint_register(c, 5, own, end - first, MPI_LONG));
    MUST(MPIX_Checkpoint_save(c, 1));
    MUST(MPIX_Checkpoint_commit(c));
    MUST(MPIX_Checkpoint_free(&c));
    MPI_Comm_free(&few);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Comm_split(MPI_COMM_WORLD, me < to ? 0 : MPI_UNDEFINED, -me, &few); /* in another order, too */
  if (few != MPI_COMM_NULL) {
    MPI_Comm_rank(few, &rank);
    int first = (int)((long)TOTAL * rank / to), end = (int)((long)TOTAL * (rank + 1) / to), num;
    MUST(MPIX_Checkpoint_create(few, info, &c));
    MUST(MPIX_Checkpoint_register(c, 5, own, end - first, MPI_LONG));
    if (from != to) CHECK_CLASS(MPIX_Checkpoint_restore(c, MPIX_CHECKPOINT_NEWEST, &v), MPIX_ERR_CHECKPOINT);
    MUST(MPIX_Checkpoint_restore_begin(c, MPIX_CHECKPOINT_NEWEST, &v, &n));
    CHECK(v == 1 && n == from);
    memset(own, 0, TOTAL * sizeof *own);
    for (int r = 0, at = 0; r < n; r++) { /* what rank r had of first to end */
      MPI_Count bytes;
      MUST(MPIX_Checkpoint_get_bytes(c, r, 5, &bytes));
      int has = (int)(bytes / (int)sizeof *own), low = first > at ? first : at, high = end < at + has ? end : at + has;
      if (low < high)
        MUST(MPIX_Checkpoint_fetch(c, r, 5, (low - at) * (MPI_Count)sizeof *own, own + (low - first), high - low,
                                   MPI_LONG));
      at += has;
    }
    MUST(MPIX_Checkpoint_restore_end(c));
    for (int i = first; i < end; i++) CHECK(own[i - first] == 3L * i + 1);
    MUST(MPIX_Checkpoint_save(c, 2)); /* and on it goes */
    MUST(MPIX_Checkpoint_commit(c));
    MUST(MPIX_Checkpoint_get_versions(c, 0, NULL, &num));
    CHECK(num == 2);
    MUST(MPIX_Checkpoint_delete(c, 1));
    MUST(MPIX_Checkpoint_delete(c, 2));
    MUST(MPIX_Checkpoint_free(&c));
    MPI_Comm_free(&few);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  free(own);
}

int main(int argc, char **argv)
{
  MPI_Init(&argc, &argv);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (me == 0) CHECK(mkdtemp(dir) != NULL);
  MPI_Bcast(dir, sizeof dir, MPI_CHAR, 0, MPI_COMM_WORLD);
  MPI_Info_create(&info);
  MPI_Info_set(info, "mpix_directory", dir);
  MPI_Info_set(info, "mpix_name", "my run");
  MPI_Info_set(info, "mpix_copies", argc > 1 ? argv[1] : "0");
  harmed(cut, 1, 1);
  harmed(empty, 0, 1);
  harmed(flip, 3, 1);
  harmed(unlink_it, 2, 1);
  harmed(swap_name, 1, 1);
  harmed(leave_half, 1, 2);
  redistribute(4, 4);
  redistribute(4, 2);
  redistribute(4, 3);
  redistribute(4, 1);
  redistribute(1, 4);
  redistribute(3, 4);
  if (me == 0) CHECK(rmdir(dir) == 0);
  MPI_Info_free(&info);
  MPI_Finalize();
  return check_status();
}
