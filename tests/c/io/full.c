// run: n=1,2,4 timeout=30
// run: n=4 timeout=30 env="SPX_CMA=0"
/* A device that becomes full in the middle of collective writing, one that is read-only, and files that may not be touched: every
 * process gets the class, nobody waits, and what had room is there. The device is a tmpfs of 1 MiB that the test mounts where only its own
 * processes see it: rank 0 makes a mount namespace, the others join it, and it ends with them. MPI-5.0, 15.7. */
#define _GNU_SOURCE
#include "file.h"
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>

enum { DEVICE = 1 << 20, MINE = 1 << 20 };

static char dir[256], name[300];

static int die(const char *what)
{
  fprintf(stderr, "rank %d: %s: %s\n", rank, what, strerror(errno));
  return 0;
}

static int make_device(void)
{
  if (unshare(CLONE_FS | CLONE_NEWNS)) return die("unshare");
  if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL)) return die("mount --make-rprivate");
  if (mount("spx-full", dir, "tmpfs", 0, "size=1m,mode=755")) return die("mount of a tmpfs");
  return 1;
}

static int join_device(long pid)
{
  char ns[64];
  snprintf(ns, sizeof ns, "/proc/%ld/ns/mnt", pid);
  int fd = open(ns, O_RDONLY | O_CLOEXEC);
  if (fd < 0 || unshare(CLONE_FS) || setns(fd, CLONE_NEWNS)) return die(ns);
  return !close(fd);
}

/* True on all, or false on all: this user may not mount. */
static int device(void)
{
  long pid = (long)getpid();
  snprintf(dir, sizeof dir, "%s", test_file("full"));
  snprintf(name, sizeof name, "%s/file", dir);
  if (rank == 0) CHECK(mkdir(dir, 0755) == 0);
  MPI_Bcast(&pid, 1, MPI_LONG, 0, MPI_COMM_WORLD);
  int ok = rank || make_device();
  MPI_Bcast(&ok, 1, MPI_INT, 0, MPI_COMM_WORLD);
  if (ok && rank) ok = join_device(pid);
  MPI_Allreduce(MPI_IN_PLACE, &ok, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  return ok;
}

static MPI_File open_mine(int mode)
{
  MPI_File f = MPI_FILE_NULL;
  OK(MPI_File_open(MPI_COMM_WORLD, name, mode, MPI_INFO_NULL, &f));
  return f;
}

static MPI_File interleaved(int block)
{
  MPI_File f = open_mine(MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE);
  MPI_Datatype some, t;
  OK(MPI_Type_contiguous(block, MPI_INT, &some));
  OK(MPI_Type_create_resized(some, 0, (MPI_Aint)sizeof(int) * block * (size + 1), &t)); /* with a hole */
  OK(MPI_Type_commit(&t));
  OK(MPI_File_set_view(f, (MPI_Offset)sizeof(int) * block * rank, MPI_INT, t, "native", MPI_INFO_NULL));
  MPI_Type_free(&some);
  MPI_Type_free(&t);
  return f;
}

/* What fits is written and read back; then more than fits, in every way of collective and independent access. */
static void full(int block)
{
  int n = MINE / (int)sizeof(int), small = DEVICE / 4 / size / (int)sizeof(int) / block * block;
  int *a = malloc(MINE), *b = malloc(MINE);
  for (int i = 0; i < n; i++) a[i] = rank * 7919 + i;
  MPI_File f = interleaved(block);
  OK(MPI_File_write_at_all(f, 0, a, small, MPI_INT, MPI_STATUS_IGNORE));
  CHECK_CLASS(MPI_File_write_at_all(f, small, a, n, MPI_INT, MPI_STATUS_IGNORE), MPI_ERR_NO_SPACE);
  memset(b, 0, MINE);
  OK(MPI_File_read_at_all(f, 0, b, small, MPI_INT, MPI_STATUS_IGNORE));
  CHECK(memcmp(a, b, (size_t)small * sizeof(int)) == 0);
  CHECK_CLASS(MPI_File_write_at(f, small, a, n, MPI_INT, MPI_STATUS_IGNORE), MPI_ERR_NO_SPACE);
  OK(MPI_File_seek(f, small, MPI_SEEK_SET));
  CHECK_CLASS(MPI_File_write_all_begin(f, a, n, MPI_INT), MPI_ERR_NO_SPACE);
  CHECK_CLASS(MPI_File_preallocate(f, 8 * DEVICE), MPI_ERR_NO_SPACE);
  MPI_Barrier(MPI_COMM_WORLD);
  OK(MPI_File_read_at_all(f, 0, b, small, MPI_INT, MPI_STATUS_IGNORE));
  CHECK(memcmp(a, b, (size_t)small * sizeof(int)) == 0);
  OK(MPI_File_close(&f));
  free(a);
  free(b);
}

static void read_only(void)
{
  MPI_File f = open_mine(MPI_MODE_RDWR | MPI_MODE_CREATE);
  OK(MPI_File_close(&f));
  if (rank == 0) CHECK(mount(NULL, dir, NULL, MS_REMOUNT | MS_RDONLY, NULL) == 0);
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK_CLASS(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDWR, MPI_INFO_NULL, &f), MPI_ERR_READ_ONLY);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) CHECK_CLASS(MPI_File_delete(name, MPI_INFO_NULL), MPI_ERR_READ_ONLY);
  f = open_mine(MPI_MODE_RDONLY);
  OK(MPI_File_close(&f));
  if (rank == 0) CHECK(mount(NULL, dir, NULL, MS_REMOUNT, NULL) == 0);
  MPI_Barrier(MPI_COMM_WORLD);
}

/* One rank may not open what the others may: all get its error, and no file. Only this thread becomes somebody else. */
static void forbidden(void)
{
  MPI_File f = open_mine(MPI_MODE_RDWR | MPI_MODE_CREATE);
  OK(MPI_File_close(&f));
  if (rank == 0) CHECK(chmod(name, 0600) == 0);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == size - 1) CHECK(syscall(SYS_setresuid, -1, 65534, -1) == 0);
  CHECK_CLASS(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDWR, MPI_INFO_NULL, &f), MPI_ERR_ACCESS);
  if (rank == size - 1) CHECK(syscall(SYS_setresuid, -1, 0, -1) == 0);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) OK(MPI_File_delete(name, MPI_INFO_NULL));
}

int main(int argc, char **argv)
{
  start(&argc, &argv);
  int may = device();
  if (may) {
    full(1);
    full(1000);
    full(100000);
    read_only();
    forbidden();
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) CHECK(umount2(dir, MNT_DETACH) == 0);
  } else
    CHECK(geteuid() != 0); /* who may not mount cannot have this tested */
  if (rank == 0) CHECK(rmdir(dir) == 0);
  MPI_Finalize();
  return check_status();
}
