/* A process dies at each step of each collective creation: all others return, with what was to be made or an error that says why not, shrink, and go
 * on with the next; children of a spawn that came to nothing end. Who has a window frees it, also where others have not got it. argv: the kind of
 * creation, which of the processes dies first, and "two" when another one dies in the same creation, at another step, or "timed" when
 * it dies at some moment towards the end: in the last round, which may end differently at different processes. */
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
// run: n=8 args="shared 5" spxrun="--with-ft" timeout=60
// run: n=8 args="dynamic 2" spxrun="--with-ft" timeout=60
// run: n=8 args="dynamic 6" spxrun="--with-ft" env=SPX_TRANSPORTS=tcp timeout=60
// run: n=8 args="window 5" spxrun="--with-ft" env=SPX_CMA=0 timeout=60
// run: n=8 args="bytype 6" spxrun="--with-ft" timeout=60
// run: n=8 args="cart 4" spxrun="--with-ft" timeout=60
// run: n=8 args="graph 6" spxrun="--with-ft" timeout=60
// run: n=8 args="adjacent 3" spxrun="--with-ft" timeout=60
// run: n=8 args="session 5" spxrun="--with-ft" timeout=60
// run: n=8 args="join 3" spxrun="--with-ft" timeout=60
// run: n=16 args="window 9 timed" n.few=8 args.few="window 5 timed" spxrun="--with-ft" env=SPX_TRANSPORTS=tcp timeout=60
// run: n=16 n.few=8 args="allocate 1 timed" spxrun="--with-ft" env=SPX_CMA=0 timeout=60
// run: n=13 args="split 6 two" spxrun="--with-ft" timeout=60
// run: n=13 args="window 4 two" spxrun="--with-ft" timeout=60
// run: n=13 args="file 5 two" spxrun="--with-ft" timeout=60
// run: n=13 args="spawn 7 two" spxrun="--with-ft" timeout=60
// run: n=8 args="file 6" spxrun="--with-ft" timeout=60
// run: n=8 args="file 0" spxrun="--with-ft" timeout=60
#include <dirent.h>
#include <mpi-ext.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>
#include "../check.h"

enum { LEFT = 3, CHILDREN = 3 };

static char *program, mark[32];
static MPI_Comm all, half, host; /* half: of two, for creations between groups; host: of those that share memory */
static double made_at;           /* when a creation had returned */
static int rank, size, step, line = -1; /* line: a socket, to the next rank or from the one before */

static int class_of(int rc)
{
  int class = MPI_SUCCESS;
  if (rc != MPI_SUCCESS) MPI_Error_class(rc, &class);
  return class;
}

static void die(int signal_number)
{
  (void)signal_number;
  raise(SIGKILL);
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

/* Or towards the end of the time that it takes when no process dies. */
static void arm_timed(double seconds)
{
  long us = (long)(seconds * 1e6 * (0.7 + rand() % 100 * 0.0035));
  struct itimerval at = {.it_value = {.tv_usec = us > 0 ? us % 1000000 : 1}};
  signal(SIGALRM, die);
  setitimer(ITIMER_REAL, &at, NULL);
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

static void is_fair(int rc)
{
  int class = class_of(rc);
  CHECK(class == MPI_SUCCESS || class == MPIX_ERR_PROC_FAILED || class == MPIX_ERR_REVOKED);
}

/* Used and freed by all who have it: none waits there for one that has not got it, or has died. */
static int use(int rc, MPI_Win win, int ranks, int has_memory)
{
  made_at = MPI_Wtime();
  if (rc != MPI_SUCCESS) return rc;
  long word = rank;
  MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
  is_fair(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
  is_fair(MPI_Win_lock_all(0, win));
  for (int i = 0; i < ranks && has_memory; i++) is_fair(MPI_Put(&word, 1, MPI_LONG, i, 0, 1, MPI_LONG, win));
  is_fair(MPI_Win_unlock_all(win));
  rc = MPI_Win_free(&win);
  CHECK(win == MPI_WIN_NULL);
  return rc;
}

static int window(void)
{
  static long memory[16];
  MPI_Win made;
  int rc = MPI_Win_create(memory, sizeof memory, 1, MPI_INFO_NULL, all, &made);
  return use(rc, made, size, 1);
}

static int allocate(void)
{
  void *base;
  MPI_Win made;
  int rc = MPI_Win_allocate(3000000, 1, MPI_INFO_NULL, all, &base, &made);
  return use(rc, made, size, 1);
}

static int shared(void)
{
  void *base;
  MPI_Win made;
  int rc = MPI_Win_allocate_shared(100000, 1, MPI_INFO_NULL, host, &base, &made);
  return use(rc, made, 0, 0);
}

static int dynamic(void)
{
  MPI_Win made;
  int rc = MPI_Win_create_dynamic(MPI_INFO_NULL, all, &made);
  return use(rc, made, size, 0);
}

static int bytype(void)
{
  MPI_Comm made = MPI_COMM_NULL;
  int rc = MPI_Comm_split_type(all, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &made);
  drop(rc, made);
  return rc;
}

static int cart(void)
{
  MPI_Comm made = MPI_COMM_NULL;
  int rc = MPI_Cart_create(all, 1, &size, (int[]){1}, 1, &made);
  drop(rc, made);
  return rc;
}

/* Each process says what the next one receives from. */
static int graph(void)
{
  MPI_Comm made = MPI_COMM_NULL;
  int source = (rank + 1) % size, degree = 1, to[] = {rank};
  int rc = MPI_Dist_graph_create(all, 1, &source, &degree, to, MPI_UNWEIGHTED, MPI_INFO_NULL, 1, &made);
  drop(rc, made);
  return rc;
}

static int adjacent(void)
{
  MPI_Comm made = MPI_COMM_NULL;
  int from[] = {(rank + 1) % size}, to[] = {(rank + size - 1) % size};
  int rc = MPI_Dist_graph_create_adjacent(all, 1, from, MPI_UNWEIGHTED, 1, to, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &made);
  drop(rc, made);
  return rc;
}

/* The living of a session's processes. */
static int session(void)
{
  MPI_Session s;
  MPI_Comm made = MPI_COMM_NULL;
  MPI_Group world, living, both;
  char tag[32];
  snprintf(tag, sizeof tag, "session %d", step);
  int rc = MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &s);
  if (rc != MPI_SUCCESS) return rc;
  CHECK_CLASS(MPI_Group_from_session_pset(s, "mpi://WORLD", &world), MPI_SUCCESS);
  MPI_Comm_group(all, &living);
  MPI_Group_intersection(world, living, &both);
  rc = MPI_Comm_create_from_group(both, tag, MPI_INFO_NULL, MPI_ERRORS_RETURN, &made);
  drop(rc, made);
  MPI_Group_free(&world);
  MPI_Group_free(&living);
  MPI_Group_free(&both);
  MPI_Session_finalize(&s);
  return rc;
}

/* Two and two, over a connection of their own. */
static int join(void)
{
  MPI_Comm made = MPI_COMM_NULL;
  if (line < 0) return MPI_SUCCESS; /* a last one alone */
  int rc = MPI_Comm_join(line, &made);
  drop(rc, made);
  return rc;
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
             {"shared", shared},
             {"dynamic", dynamic},
             {"bytype", bytype},
             {"cart", cart},
             {"graph", graph},
             {"adjacent", adjacent},
             {"session", session},
             {"join", join},
             {"file", file}};

static int make(const char *kind)
{
  for (unsigned i = 0; i < sizeof kinds / sizeof *kinds; i++)
    if (strcmp(kinds[i].name, kind) == 0) return kinds[i].call();
  abort();
}

/* How long a creation takes in which no process dies. */
static double time_of(const char *kind)
{
  int rc = MPI_SUCCESS;
  double began = 0;
  for (int i = 0; i < 3 && rc == MPI_SUCCESS; i++) {
    began = MPI_Wtime();
    rc = make(kind);
  }
  CHECK(rc == MPI_SUCCESS);
  if (made_at < began) made_at = MPI_Wtime();
  MPI_Barrier(all);
  return made_at - began;
}

/* ---- one after another ----------------------------------------------------------------------------------------- */

/* The living, when those that had to die have. */
static void go_on(int deaths)
{
  MPI_Comm next;
  for (int left = size - deaths; size > left;) {
    CHECK_CLASS(MPIX_Comm_shrink(all, &next), MPI_SUCCESS);
    MPI_Comm_set_errhandler(next, MPI_ERRORS_RETURN);
    MPI_Comm_size(next, &size);
    MPI_Comm_free(&all);
    all = next;
  }
  MPI_Comm_rank(all, &rank);
}

/* Ranks 0 and 1, 2 and 3, ... have a connection. */
static void connect_two(void)
{
  struct sockaddr_un at = {.sun_family = AF_UNIX};
  int listener = socket(AF_UNIX, SOCK_STREAM, 0);
  if (line >= 0) close(line);
  line = -1;
  snprintf(at.sun_path + 1, sizeof at.sun_path - 1, "%s.%d.%d", mark, step, rank / 2);
  socklen_t n = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(at.sun_path + 1));
  if (rank % 2 == 0) CHECK(bind(listener, (void *)&at, n) == 0 && listen(listener, 1) == 0);
  MPI_Barrier(all);
  if (rank % 2) {
    CHECK(connect(listener, (void *)&at, n) == 0);
    line = listener;
    return;
  }
  if (rank + 1 < size) line = accept(listener, NULL, NULL);
  close(listener);
}

/* What is not yet the creation: no process dies in it. */
static void prepare(const char *kind)
{
  MPI_Comm_split(all, rank % 2, rank, &half);
  MPI_Comm_set_errhandler(half, MPI_ERRORS_RETURN);
  if (rank == 0) MPI_Open_port(MPI_INFO_NULL, port_name);
  MPI_Bcast(port_name, sizeof port_name, MPI_CHAR, 0, all);
  MPI_Comm_split_type(all, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &host);
  MPI_Comm_set_errhandler(host, MPI_ERRORS_RETURN);
  if (strcmp(kind, "join") == 0) connect_two();
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
  srand((unsigned)getpid());
  int pid = getpid(), victim = atoi(argv[2]), deaths = argc > 3 && strcmp(argv[3], "two") == 0 ? 2 : 1;
  bool timed = argc > 3 && strcmp(argv[3], "timed") == 0;
  MPI_Comm_dup(MPI_COMM_WORLD, &all);
  MPI_Comm_set_errhandler(all, MPI_ERRORS_RETURN);
  MPI_Bcast(&pid, 1, MPI_INT, 0, all);
  snprintf(mark, sizeof mark, "creation.%d", pid);
  MPI_Comm_rank(all, &rank);
  MPI_Comm_size(all, &size);
  for (; size > LEFT; victim += 2, step++) {
    prepare(argv[1]);
    int second = deaths == 2 && rank == (victim + 3) % size, dies = second || rank == victim % size;
    double took = timed ? time_of(argv[1]) : 0;
    if (dies && timed)
      arm_timed(took);
    else if (dies)
      arm((unsigned)(second ? step * 3 % 5 : step));
    int rc = make(argv[1]), class = class_of(rc);
    if (dies) raise(SIGKILL); /* there are no more steps */
    int fair = class == MPI_SUCCESS || class == MPIX_ERR_PROC_FAILED || class == MPIX_ERR_REVOKED;
    fair |=
        class == MPI_ERR_OTHER && strcmp(argv[1], "join") == 0; /* a connection that has ended: it may be anybody's */
    if (!fair) {
      char why[MPI_MAX_ERROR_STRING];
      int n;
      MPI_Error_string(rc, why, &n);
      fprintf(stderr, "rank %d, step %d: %s\n", rank, step, why);
    }
    CHECK(fair);
    go_on(deaths);
  }
  if (rank == 0) wait_for_children();
  unlink(mark);
  MPI_Barrier(all);
  if (rank == 0) printf("%d are left\n", size);
  MPI_Finalize();
  return check_status();
}
