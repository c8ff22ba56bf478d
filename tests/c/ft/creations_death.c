/* A process dies at each step of each collective creation: all others return, with what was to be made or an error that says why not, shrink, and go
 * on with the next; children of a spawn that came to nothing end. argv: the kind of creation, and which of the processes dies first. */
// run: n=8 args="spawn 6" spxrun="--with-ft" timeout=60
// run: n=8 args="spawn 0" spxrun="--with-ft" timeout=60
// run: n=7 args="spawn 3" spxrun="--with-ft" env=SPX_TRANSPORTS=tcp timeout=60
// run: n=8 args="multiple 5" spxrun="--with-ft" timeout=60
// run: n=8 args="port 2" spxrun="--with-ft" timeout=60
// run: n=8 args="port 5" spxrun="--with-ft" timeout=60
// run: n=8 args="dup 4" spxrun="--with-ft" timeout=60
// run: n=8 args="idup 6" spxrun="--with-ft" timeout=60
// run: n=8 args="split 6" spxrun="--with-ft" timeout=60
// run: n=8 args="create 4" spxrun="--with-ft" timeout=60
// run: n=8 args="group 0" spxrun="--with-ft" timeout=60
// run: n=8 args="fromgroup 6" spxrun="--with-ft" timeout=60
// run: n=8 args="inter 1" spxrun="--with-ft" timeout=60
// run: n=8 args="intergroups 4" spxrun="--with-ft" timeout=60
// run: n=8 args="window 6" spxrun="--with-ft" timeout=60
// run: n=8 args="allocate 3" spxrun="--with-ft" timeout=60
// run: n=8 args="allocate 0" spxrun="--with-ft" env=SPX_TRANSPORTS=tcp timeout=60
// run: n=8 args="file 6" spxrun="--with-ft" timeout=60
// run: n=8 args="file 0" spxrun="--with-ft" timeout=60
#include <dirent.h>
#include <mpi-ext.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "../check.h"

enum { LEFT = 3, CHILDREN = 3 };

static char *program, mark[32];
static MPI_Comm all, half; /* half: of two, for creations between groups */
static int rank, size, step;

static int class_of(int rc)
{
  int class = MPI_SUCCESS;
  if (rc != MPI_SUCCESS) MPI_Error_class(rc, &class);
  return class;
}

/* This process kills itself at the given step of what follows; without the library's help at once. */
static void arm(unsigned steps)
{
  int provided, i, n;
  MPI_T_cvar_handle h;
  MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
  if (steps == 0 || MPI_T_cvar_get_index("SPX_DIE_AFTER", &i) != MPI_SUCCESS) raise(SIGKILL);
  if (MPI_T_cvar_handle_alloc(i, NULL, &h, &n) != MPI_SUCCESS || MPI_T_cvar_write(h, &steps) != MPI_SUCCESS) abort();
}

/* ---- creations ------------------------------------------------------------------------------------------------- */

/* All that has been made is useless now to those who do not have it. */
static void drop(int rc, MPI_Comm made)
{
  if (rc != MPI_SUCCESS || made == MPI_COMM_NULL) return;
  MPI_Comm_set_errhandler(made, MPI_ERRORS_RETURN);
  MPIX_Comm_revoke(made);
  MPI_Comm_free(&made);
}

static int spawn(void)
{
  MPI_Comm made = MPI_COMM_NULL;
  char *argv[] = {mark, NULL};
  int rc = MPI_Comm_spawn(program, argv, CHILDREN, MPI_INFO_NULL, step % size, all, &made, MPI_ERRCODES_IGNORE);
  drop(rc, made);
  return rc;
}

static int multiple(void)
{
  MPI_Comm made = MPI_COMM_NULL;
  char *argv[] = {mark, NULL}, **argvs[] = {argv, argv}, *commands[] = {program, program};
  int n[] = {1, 2};
  MPI_Info info[] = {MPI_INFO_NULL, MPI_INFO_NULL};
  int rc = MPI_Comm_spawn_multiple(2, commands, argvs, n, info, 0, all, &made, MPI_ERRCODES_IGNORE);
  drop(rc, made);
  return rc;
}

static char port_name[MPI_MAX_PORT_NAME];

static int port(void)
{
  MPI_Comm made = MPI_COMM_NULL;
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, "timeout", "1"); /* the other side may have given up before it came to the port */
  int rc =
      rank % 2 ? MPI_Comm_connect(port_name, info, 0, half, &made) : MPI_Comm_accept(port_name, info, 0, half, &made);
  MPI_Info_free(&info);
  drop(rc, made);
  return class_of(rc) == MPI_ERR_PORT ? MPI_SUCCESS : rc;
}

static int duplicate(void)
{
  MPI_Comm made = MPI_COMM_NULL;
  int rc = MPI_Comm_dup(all, &made);
  drop(rc, made);
  return rc;
}

static int idup(void)
{
  MPI_Comm made = MPI_COMM_NULL;
  MPI_Request r;
  int rc = MPI_Comm_idup(all, &made, &r);
  if (rc == MPI_SUCCESS) rc = MPI_Wait(&r, MPI_STATUS_IGNORE);
  drop(rc, made);
  return rc;
}

static int split(void)
{
  MPI_Comm made = MPI_COMM_NULL;
  int rc = MPI_Comm_split(all, rank % 2, -rank, &made);
  drop(rc, made);
  return rc;
}

static int create(void)
{
  MPI_Comm made = MPI_COMM_NULL;
  MPI_Group g;
  MPI_Comm_group(all, &g);
  int rc = MPI_Comm_create(all, g, &made);
  MPI_Group_free(&g);
  drop(rc, made);
  return rc;
}

static int group(void)
{
  MPI_Comm made = MPI_COMM_NULL;
  MPI_Group g;
  MPI_Comm_group(all, &g);
  int rc = MPI_Comm_create_group(all, g, 5, &made);
  MPI_Group_free(&g);
  drop(rc, made);
  return rc;
}

static int fromgroup(void)
{
  MPI_Comm made = MPI_COMM_NULL;
  MPI_Group g;
  char tag[32];
  snprintf(tag, sizeof tag, "step %d", step);
  MPI_Comm_group(all, &g);
  int rc = MPI_Comm_create_from_group(g, tag, MPI_INFO_NULL, MPI_ERRORS_RETURN, &made);
  MPI_Group_free(&g);
  drop(rc, made);
  return rc;
}

static int inter(void)
{
  MPI_Comm made = MPI_COMM_NULL, merged = MPI_COMM_NULL;
  int rc = MPI_Intercomm_create(half, 0, all, 1 - rank % 2, 7, &made);
  if (rc == MPI_SUCCESS) MPI_Comm_set_errhandler(made, MPI_ERRORS_RETURN);
  int ok = rc == MPI_SUCCESS; /* some may have failed, and do not come to the next */
  MPIX_Comm_agree(all, &ok);
  int merge = ok ? MPI_Intercomm_merge(made, rank % 2, &merged) : rc;
  drop(merge, merged);
  drop(rc, made);
  return ok ? merge : rc;
}

static int intergroups(void)
{
  MPI_Comm made = MPI_COMM_NULL;
  MPI_Group whole, mine, theirs;
  char tag[32];
  snprintf(tag, sizeof tag, "two %d", step);
  MPI_Comm_group(all, &whole);
  int odd[1][3] = {{1, (size - 1) % 2 ? size - 1 : size - 2, 2}};
  MPI_Group_range_incl(whole, 1, odd, rank % 2 ? &mine : &theirs);
  MPI_Group_range_excl(whole, 1, odd, rank % 2 ? &theirs : &mine);
  int rc = MPI_Intercomm_create_from_groups(mine, 0, theirs, 0, tag, MPI_INFO_NULL, MPI_ERRORS_RETURN, &made);
  MPI_Group_free(&whole);
  MPI_Group_free(&mine);
  MPI_Group_free(&theirs);
  drop(rc, made);
  return rc;
}

/* A window that not all have got is not freed: that is collective. */
static int window(void)
{
  static long memory[16];
  MPI_Win made;
  return MPI_Win_create(memory, sizeof memory, 1, MPI_INFO_NULL, all, &made);
}

static int allocate(void)
{
  void *base;
  MPI_Win made;
  return MPI_Win_allocate(3000000, 1, MPI_INFO_NULL, all, &base, &made);
}

static int file(void)
{
  MPI_File made;
  int rc = MPI_File_open(all, mark, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &made);
  if (rc == MPI_SUCCESS) MPI_File_close(&made);
  return rc;
}

static const struct {
  const char *name;
  int (*call)(void);
} kinds[] = {{"spawn", spawn},
             {"multiple", multiple},
             {"port", port},
             {"dup", duplicate},
             {"idup", idup},
             {"split", split},
             {"create", create},
             {"group", group},
             {"fromgroup", fromgroup},
             {"inter", inter},
             {"intergroups", intergroups},
             {"window", window},
             {"allocate", allocate},
             {"file", file}};

static int make(const char *kind)
{
  for (unsigned i = 0; i < sizeof kinds / sizeof *kinds; i++)
    if (strcmp(kinds[i].name, kind) == 0) return kinds[i].call();
  abort();
}

/* ---- one after another ----------------------------------------------------------------------------------------- */

/* The living, when the one that had to die has. */
static void go_on(void)
{
  MPI_Comm next;
  for (int before = size; size == before;) {
    CHECK_CLASS(MPIX_Comm_shrink(all, &next), MPI_SUCCESS);
    MPI_Comm_set_errhandler(next, MPI_ERRORS_RETURN);
    MPI_Comm_size(next, &size);
    MPI_Comm_free(&all);
    all = next;
  }
  MPI_Comm_rank(all, &rank);
}

/* What is not yet the creation: no process dies in it. */
static void prepare(void)
{
  MPI_Comm_split(all, rank % 2, rank, &half);
  MPI_Comm_set_errhandler(half, MPI_ERRORS_RETURN);
  if (rank == 0) MPI_Open_port(MPI_INFO_NULL, port_name);
  MPI_Bcast(port_name, sizeof port_name, MPI_CHAR, 0, all);
  int ok = 1;
  CHECK_CLASS(MPIX_Comm_agree(all, &ok), MPI_SUCCESS);
}

static int is_child(const char *pid)
{
  char path[300], line[4096];
  snprintf(path, sizeof path, "/proc/%s/cmdline", pid);
  FILE *f = fopen(path, "r");
  size_t n = f ? fread(line, 1, sizeof line - 1, f) : 0;
  if (f) fclose(f);
  line[n] = 0;
  char *arg = n ? memchr(line, 0, n) : NULL;
  return arg && strcmp(arg + 1, mark) == 0;
}

/* Returns when no child is left. */
static void wait_for_children(void)
{
  for (int n = 1; n > 0; usleep(10000)) {
    DIR *d = opendir("/proc");
    n = 0;
    for (struct dirent *e; (e = readdir(d));) n += e->d_name[0] >= '1' && e->d_name[0] <= '9' && is_child(e->d_name);
    closedir(d);
  }
}

/* A child ends when its parents have given it up, or are no more. */
static int as_child(MPI_Comm parent)
{
  MPI_Comm_set_errhandler(parent, MPI_ERRORS_RETURN);
  int class = class_of(MPI_Barrier(parent));
  CHECK(class == MPIX_ERR_PROC_FAILED || class == MPIX_ERR_REVOKED);
  MPI_Finalize();
  return check_status();
}

int main(int argc, char **argv)
{
  MPI_Comm parent;
  MPI_Init(&argc, &argv);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN);
  MPI_Comm_get_parent(&parent);
  if (parent != MPI_COMM_NULL) return as_child(parent);
  program = argv[0];
  int pid = getpid(), victim = atoi(argv[2]);
  MPI_Comm_dup(MPI_COMM_WORLD, &all);
  MPI_Comm_set_errhandler(all, MPI_ERRORS_RETURN);
  MPI_Bcast(&pid, 1, MPI_INT, 0, all);
  snprintf(mark, sizeof mark, "creation.%d", pid);
  MPI_Comm_rank(all, &rank);
  MPI_Comm_size(all, &size);
  for (; size > LEFT; victim += 2, step++) {
    prepare();
    int dies = rank == victim % size;
    if (dies) arm((unsigned)step);
    int rc = make(argv[1]), class = class_of(rc);
    if (dies) raise(SIGKILL); /* there are no more steps */
    int fair = class == MPI_SUCCESS || class == MPIX_ERR_PROC_FAILED || class == MPIX_ERR_REVOKED;
    if (!fair) {
      char why[MPI_MAX_ERROR_STRING];
      int n;
      MPI_Error_string(rc, why, &n);
      fprintf(stderr, "rank %d, step %d: %s\n", rank, step, why);
    }
    CHECK(fair);
    go_on();
  }
  if (rank == 0) wait_for_children();
  unlink(mark);
  MPI_Barrier(all);
  if (rank == 0) printf("%d are left\n", size);
  MPI_Finalize();
  return check_status();
}
