/* Versions that are begun to be saved: the memory may be changed at once, and what was there is what counts when they are committed. One that is not
 * committed gives way to the next, to going back to another, and is no obstacle to attaching and freeing. argv: "files", and "only" for no copies in memory. */
// run: n=1,2,5
// run: n=4 args="files" timeout=40
// run: n=3 args="files only" timeout=40
// run: n=4 env=SPX_TRANSPORTS=tcp
#include <mpi-ext.h>
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "../check.h"

#define MUST(call) CHECK_CLASS(call, MPI_SUCCESS)
enum { N = 300000 };

static int me, size;
static int data[N];

static void fill(int version)
{
  for (int i = 0; i < N; i++) data[i] = version * 7919 + me * 1009 + i;
}

static int is(int version)
{
  int good = 1;
  for (int i = 0; i < N; i++) good = good && data[i] == version * 7919 + me * 1009 + i;
  return good;
}

static void begin(MPIX_Checkpoint c, int version)
{
  fill(version);
  MUST(MPIX_Checkpoint_save_begin(c, version));
  fill(-1);
}

/* All messages of the program pass those of the copies. */
static void meanwhile(void)
{
  int sum;
  MUST(MPI_Allreduce(&me, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
  CHECK(sum == size * (size - 1) / 2);
}

static void goes_back(MPIX_Checkpoint c, int version)
{
  int restored = -1;
  fill(-2);
  MUST(MPIX_Checkpoint_restore(c, version, &restored));
  CHECK(is(restored) && (version == MPIX_CHECKPOINT_NEWEST || restored == version));
}

int main(int argc, char **argv)
{
  char dir[] = "spx-begin-XXXXXX";
  int files = argc > 1, only = argc > 2, versions[4], n;
  MPI_Info info;
  MPI_Comm other;
  MPIX_Checkpoint c;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Info_create(&info);
  if (files) {
    if (me == 0) CHECK(mkdtemp(dir) != NULL);
    MPI_Bcast(dir, sizeof dir, MPI_CHAR, 0, MPI_COMM_WORLD);
    MPI_Info_set(info, "mpix_directory", dir);
  }
  if (only) MPI_Info_set(info, "mpix_copies", "0");
  MUST(MPIX_Checkpoint_create(MPI_COMM_WORLD, info, &c));
  MUST(MPIX_Checkpoint_register(c, 1, data, N, MPI_INT));
  for (int v = 1; v <= 4; v++) {
    begin(c, v);
    for (int k = 0; k < v; k++) meanwhile();
    MUST(MPIX_Checkpoint_commit(c));
  }
  CHECK_CLASS(MPIX_Checkpoint_commit(c), MPI_ERR_ARG);
  CHECK_CLASS(MPIX_Checkpoint_save_begin(c, 4), MPI_ERR_ARG);
  goes_back(c, MPIX_CHECKPOINT_NEWEST);
  CHECK(is(4));
  goes_back(c, 3);

  begin(c, 5); /* given up by another */
  begin(c, 6);
  meanwhile();
  MUST(MPIX_Checkpoint_commit(c));
  begin(c, 7);
  fill(8);
  MUST(MPIX_Checkpoint_save(c, 8));
  MUST(MPIX_Checkpoint_commit(c));
  goes_back(c, MPIX_CHECKPOINT_NEWEST);
  CHECK(is(8));

  begin(c, 9); /* by going back */
  goes_back(c, 6);
  begin(c, 10); /* by other processes, or the same on another communicator; rank 0 comes late */
  if (me == 0) usleep(20000);
  MUST(MPI_Comm_dup(MPI_COMM_WORLD, &other));
  MUST(MPIX_Checkpoint_attach(other, c));
  MUST(MPIX_Checkpoint_get_versions(c, 4, versions, &n));
  CHECK(n >= 1 && versions[n - 1] == 6);
  goes_back(c, 6);
  begin(c, 11);
  MUST(MPIX_Checkpoint_commit(c));
  goes_back(c, 11);
  if (files) { /* what a later job finds */
    MUST(MPIX_Checkpoint_free(&c));
    MUST(MPIX_Checkpoint_create(other, info, &c));
    MUST(MPIX_Checkpoint_register(c, 1, data, N, MPI_INT));
    goes_back(c, 11);
  }
  begin(c, 12);
  MUST(MPIX_Checkpoint_free(&c));
  MPI_Barrier(MPI_COMM_WORLD);
  if (files && me == 0) {
    DIR *d = opendir(dir);
    for (struct dirent *e; d && (e = readdir(d));)
      if (e->d_name[0] != '.') {
        char path[512];
        snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
        CHECK(unlink(path) == 0);
      }
    CHECK(closedir(d) == 0 && rmdir(dir) == 0);
  }
  MPI_Comm_free(&other);
  MPI_Info_free(&info);
  MPI_Finalize();
  return check_status();
}
