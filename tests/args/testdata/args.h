/* args.h - what the generated programs of tests/args share: the objects that right calls use, objects that were freed a moment
 * ago, and the loop that makes every call. A report file of each rank gets a line before and after every call, so that a
 * crash or a hang names its call; what the answers ought to be is known to args_test.go alone. */
#include <mpi.h>
#include <mpi-ext.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

/* A function: run(k) makes its call number k. 0 is the right call, what[k] is 'w' for a wrong one, 'r' for another right one,
 * 's' and 'p' for a wrong one with one and with two ranks only, 't' for a right one with two, 'a' for one with two that is right
 * at rank 0 and wrong above. */
typedef struct unit {
  const char *name;
  int (*run)(int k);
  const char *what;
  int ranks; /* 0: any number */
  int first; /* number of its call 0 */
} unit;

static int me, size, report = -1;
static MPI_Comm comm, self, cart, line, graph, dist, inter;
static MPI_Request never; /* a receive that nothing ends */
static MPI_Errhandler comm_errh, win_errh;
static MPI_Op user_op;
static MPI_Group group, self_group, other_group;
static MPI_Datatype uncommitted, vector, absolute;
static MPI_Info info;
static MPI_Session session;
static MPIX_Rankset set, other_set; /* me; of another communicator */
static MPIX_Checkpoint point;       /* with versions 3 and 4 of region 0, 64 bytes */
static unsigned char bits[8] = {1}, all_bits[8] = {255, 255, 255, 255, 255, 255, 255, 255};
static MPI_Win win, dwin, swin;
static MPI_File file, idle_file;
static MPI_Status status;
static int ckey, tkey, wkey;
static int rbuf[4096], sbuf[4096], winmem[4096];
static char packed[4096];
static char directory[512], filename[600];
static char program[4096], *programs[] = {program}, *arguments[] = {"child", NULL}, **argument_lists[] = {arguments};
static MPI_Info infos[1];
static char long_text[2 * MPI_MAX_PORT_NAME + 2 * MPI_MAX_INFO_VAL];

/* Arrays by the type of their elements: int (i_), MPI_Count (c_), MPI_Aint (m_). */
#define ARRAYS(name, ...)                                                                                              \
  static int i_##name[64] = {__VA_ARGS__};                                                                             \
  static MPI_Count c_##name[64] = {__VA_ARGS__};                                                                       \
  static MPI_Aint m_##name[64] = {__VA_ARGS__};
ARRAYS(ones, 1, 1, 1, 1, 1, 1, 1, 1)
ARRAYS(zeros, 0)
ARRAYS(twos, 2, 2, 2, 2)
ARRAYS(fours, 4, 4, 4, 4)
ARRAYS(fives, 5, 5, 5, 5)
ARRAYS(displs, 0, 1, 2, 3, 4, 5, 6, 7)
ARRAYS(bytes, 0, 4, 8, 12, 16, 20, 24, 28)
ARRAYS(negative, -5, -5, -5, -5, -5, -5, -5, -5)
static int i_zero_range[3] = {0, 0, 1}, i_nobody[1] = {MPI_PROC_NULL}, g_index[2], g_edges[2];
static int i_distribs[2] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC};
static int i_dargs[2] = {MPI_DISTRIBUTE_DFLT_DARG, MPI_DISTRIBUTE_DFLT_DARG};
static MPI_Datatype i_types[8], null_types[8], raw_types[8];

static void dummy(void) {}
static int gr_query(void *extra, MPI_Status *s)
{
  (void)extra;
  MPI_Status_set_elements(s, MPI_BYTE, 0);
  MPI_Status_set_cancelled(s, 0);
  return MPI_SUCCESS;
}
static int gr_free(void *extra) { return (void)extra, MPI_SUCCESS; }
static int gr_cancel(void *extra, int complete) { return (void)extra, (void)complete, MPI_SUCCESS; }
static int extent_fn(MPI_Datatype t, MPI_Aint *extent, void *extra) { return (void)t, (void)extra, *extent = 4, 0; }

static void say(const char *text)
{
  size_t n = strlen(text);
  while (n > 0) {
    ssize_t w = write(report, text, n);
    if (w < 0 && errno != EINTR) _exit(90);
    if (w > 0) n -= (size_t)w, text += w;
  }
}

/* Objects of the environment must be made without an error. */
static void must(int code, const char *what)
{
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING];
  int n;
  MPI_Error_string(code, text, &n);
  say("X ");
  say(what);
  say(": ");
  say(text);
  say("\n");
  _exit(91);
}
#define MUST(call) must(call, #call)

static MPI_Comm dup_of(MPI_Comm c)
{
  MPI_Comm d;
  MUST(MPI_Comm_dup(c, &d));
  return d;
}
static MPI_Group group_of(MPI_Comm c)
{
  MPI_Group g;
  MUST(MPI_Comm_group(c, &g));
  return g;
}
static MPI_Datatype type_of(MPI_Datatype t)
{
  MPI_Datatype d;
  MUST(MPI_Type_dup(t, &d));
  return d;
}
static MPI_Info info_made(void)
{
  MPI_Info i;
  MUST(MPI_Info_create(&i));
  MUST(MPI_Info_set(i, "key", "value"));
  return i;
}
static MPI_Op op_made(void)
{
  MPI_Op o;
  MUST(MPI_Op_create((MPI_User_function *)(uintptr_t)dummy, 1, &o));
  return o;
}
static MPI_Errhandler errh_made(void)
{
  MPI_Errhandler e;
  MUST(MPI_Comm_create_errhandler((MPI_Comm_errhandler_function *)(uintptr_t)dummy, &e));
  return e;
}
static MPI_Errhandler win_errh_made(void)
{
  MPI_Errhandler e;
  MUST(MPI_Win_create_errhandler((MPI_Win_errhandler_function *)(uintptr_t)dummy, &e));
  return e;
}
static MPI_Errhandler file_errh_made(void)
{
  MPI_Errhandler e;
  MUST(MPI_File_create_errhandler((MPI_File_errhandler_function *)(uintptr_t)dummy, &e));
  return e;
}
static MPI_Errhandler session_errh_made(void)
{
  MPI_Errhandler e;
  MUST(MPI_Session_create_errhandler((MPI_Session_errhandler_function *)(uintptr_t)dummy, &e));
  return e;
}
static MPI_Win win_made(void)
{
  MPI_Win w;
  MUST(MPI_Win_create(winmem, sizeof winmem, 4, MPI_INFO_NULL, comm, &w));
  MUST(MPI_Win_set_errhandler(w, MPI_ERRORS_RETURN));
  return w;
}
static MPI_File file_made(void)
{
  MPI_File f;
  MUST(MPI_File_open(comm, filename, MPI_MODE_RDWR, MPI_INFO_NULL, &f));
  return f;
}
static MPI_Session session_made(void)
{
  MPI_Session s;
  MUST(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &s));
  return s;
}
static MPIX_Rankset set_made(MPI_Comm c)
{
  MPIX_Rankset s;
  MUST(MPIX_Rankset_incl(c, 1, &me, &s));
  return s;
}
static MPIX_Checkpoint point_made(void)
{
  static char kept[64];
  MPIX_Checkpoint c;
  MUST(MPIX_Checkpoint_create(comm, MPI_INFO_NULL, &c));
  MUST(MPIX_Checkpoint_register(c, 0, kept, 64, MPI_CHAR));
  for (int v = 3; v <= 4; v++) {
    MUST(MPIX_Checkpoint_save(c, v));
    MUST(MPIX_Checkpoint_commit(c));
  }
  return c;
}
static MPIX_Checkpoint point_restoring(void)
{
  MPIX_Checkpoint c = point_made();
  int v, n;
  MUST(MPIX_Checkpoint_restore_begin(c, 4, &v, &n));
  return c;
}
static MPI_Request post_recv(int count)
{
  MPI_Request r;
  MUST(MPI_Irecv(rbuf + 64, count, MPI_INT, me, 7, comm, &r));
  return r;
}
static MPI_Request post_send(int count, int nobody)
{
  MPI_Request r = MPI_REQUEST_NULL;
  if (!nobody) MUST(MPI_Isend(sbuf, count, MPI_INT, me, 7, comm, &r));
  return r;
}
/* The receive of post_recv completes, or never will. */
static void done(MPI_Request *r, int nobody)
{
  if (nobody) MUST(MPI_Cancel(r));
  MUST(MPI_Wait(r, MPI_STATUS_IGNORE));
}
/* The message of post_send is taken. */
static void take(MPI_Request *r)
{
  if (*r != MPI_REQUEST_NULL) MUST(MPI_Recv(rbuf, 8, MPI_INT, me, 7, comm, MPI_STATUS_IGNORE));
  MUST(MPI_Wait(r, MPI_STATUS_IGNORE));
}
/* A receive whose message is there; MPI_Wait ends it. */
static MPI_Request active(void)
{
  MPI_Request r;
  MUST(MPI_Irecv(rbuf, 1, MPI_INT, me, 8, comm, &r));
  MUST(MPI_Send(sbuf, 1, MPI_INT, me, 8, comm));
  return r;
}
static MPI_Request persistent(void)
{
  MPI_Request r;
  MUST(MPI_Recv_init(rbuf, 1, MPI_INT, MPI_PROC_NULL, 8, comm, &r));
  return r;
}
static MPI_Request generalized(void)
{
  MPI_Request r;
  MUST(MPI_Grequest_start(gr_query, gr_free, gr_cancel, NULL, &r));
  return r;
}
static MPI_Message message_made(int count)
{
  MPI_Message m;
  MPI_Request r;
  MUST(MPI_Isend(sbuf, count, MPI_INT, me, 9, comm, &r));
  MUST(MPI_Request_free(&r));
  MUST(MPI_Mprobe(me, 9, comm, &m, MPI_STATUS_IGNORE));
  return m;
}
/* A partitioned send of two partitions and its receive, both started. */
static void partitioned(MPI_Request *s, MPI_Request *r)
{
  MUST(MPI_Psend_init(sbuf, 2, 1, MPI_INT, me, 10, comm, MPI_INFO_NULL, s));
  MUST(MPI_Precv_init(rbuf, 2, 1, MPI_INT, me, 10, comm, MPI_INFO_NULL, r));
  MUST(MPI_Start(s));
  MUST(MPI_Start(r));
}
static void partitioned_rest(MPI_Request *s, MPI_Request *r)
{
  MUST(MPI_Pready(1, *s));
  MUST(MPI_Wait(s, MPI_STATUS_IGNORE));
  MUST(MPI_Wait(r, MPI_STATUS_IGNORE));
  MUST(MPI_Request_free(s));
  MUST(MPI_Request_free(r));
}
static void partitioned_end(MPI_Request *s, MPI_Request *r)
{
  MUST(MPI_Pready(0, *s));
  partitioned_rest(s, r);
}
/* A partitioned send of one partition and its receive: started, completed, freed. */
static void partitioned_once(MPI_Request *s, MPI_Request *r)
{
  MUST(MPI_Start(s));
  MUST(MPI_Start(r));
  MUST(MPI_Pready(0, *s));
  MUST(MPI_Wait(s, MPI_STATUS_IGNORE));
  MUST(MPI_Wait(r, MPI_STATUS_IGNORE));
  MUST(MPI_Request_free(s));
  MUST(MPI_Request_free(r));
}
static void attach(void) { MUST(MPI_Buffer_attach(malloc(1 << 16), 1 << 16)); }
static void detach(void)
{
  void *p;
  int n;
  MUST(MPI_Buffer_detach(&p, &n));
  free(p);
}
static void release(MPI_Request *r)
{
  if (*r != MPI_REQUEST_NULL) MUST(MPI_Wait(r, MPI_STATUS_IGNORE));
}
static void start_release(MPI_Request *r)
{
  MUST(MPI_Start(r));
  MUST(MPI_Wait(r, MPI_STATUS_IGNORE));
  MUST(MPI_Request_free(r));
}

/* Handles of objects that were freed just now. */
#define GONE(name, type, make, drop)                                                                                   \
  static type gone_##name(void)                                                                                        \
  {                                                                                                                    \
    type x = make, old = x;                                                                                            \
    MUST(drop(&x));                                                                                                    \
    return old;                                                                                                        \
  }
GONE(COMMUNICATOR, MPI_Comm, dup_of(comm), MPI_Comm_free)
GONE(GROUP, MPI_Group, group_of(comm), MPI_Group_free)
GONE(DATATYPE, MPI_Datatype, type_of(MPI_INT), MPI_Type_free)
GONE(OPERATION, MPI_Op, op_made(), MPI_Op_free)
GONE(ERRHANDLER, MPI_Errhandler, errh_made(), MPI_Errhandler_free)
GONE(INFO, MPI_Info, info_made(), MPI_Info_free)
GONE(WINDOW, MPI_Win, win_made(), MPI_Win_free)
GONE(FILE, MPI_File, file_made(), MPI_File_close)
GONE(SESSION, MPI_Session, session_made(), MPI_Session_finalize)
GONE(RANKSET, MPIX_Rankset, set_made(comm), MPIX_Rankset_free)
GONE(CHECKPOINT, MPIX_Checkpoint, point_made(), MPIX_Checkpoint_free)
GONE(REQUEST, MPI_Request, persistent(), MPI_Request_free)
static MPI_Message gone_MESSAGE(void)
{
  MPI_Message m = message_made(1), old = m;
  MUST(MPI_Mrecv(rbuf, 1, MPI_INT, &m, MPI_STATUS_IGNORE));
  return old;
}
static int gone_ckey(void)
{
  int k, old;
  MUST(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &k, NULL));
  old = k;
  MUST(MPI_Comm_free_keyval(&k));
  return old;
}
static char *name_made(const char *what)
{
  static char text[700];
  static int n;
  snprintf(text, sizeof text, "%s.%s%d.%d", filename, what, me, n++);
  return text;
}
static char *file_there(const char *what)
{
  char *name = name_made(what);
  close(open(name, O_CREAT | O_RDWR, 0600));
  return name;
}
/* A port of rank 0. */
static char port[MPI_MAX_PORT_NAME];
static void open_port(int rank)
{
  if (me == rank) MUST(MPI_Open_port(MPI_INFO_NULL, port));
}
static void shared_port(void)
{
  open_port(0);
  MUST(MPI_Bcast(port, sizeof port, MPI_CHAR, 0, comm));
}
static void close_port(int rank)
{
  if (me == rank) MUST(MPI_Close_port(port));
}
static char *service_made(void) { return name_made("service") + strlen(directory); }

/* Two processes that call MPI_Comm_join have a socket between them. */
static int joined(void)
{
  static int n;
  struct sockaddr_un a = {.sun_family = AF_UNIX};
  int pid = getpid(), fd = socket(AF_UNIX, SOCK_STREAM, 0), other = fd;
  MPI_Bcast(&pid, 1, MPI_INT, 0, comm);
  snprintf(a.sun_path + 1, sizeof a.sun_path - 1, "spx-args-%d-%d", pid, n++);
  socklen_t len = (socklen_t)(sizeof a.sun_family + 1 + strlen(a.sun_path + 1));
  if (me == 0 && (bind(fd, (void *)&a, len) || listen(fd, 1))) _exit(92);
  MPI_Barrier(comm);
  if (me == 0) {
    other = accept(fd, NULL, NULL);
    close(fd);
  } else if (connect(fd, (void *)&a, len))
    _exit(93);
  MPI_Barrier(comm);
  return other;
}

#include "tools.h"

static void late(int sig)
{
  (void)sig;
  say("H\n");
  _exit(94);
}

/* What a process that was spawned does. */
static int child(void)
{
  MPI_Comm parent;
  MPI_Comm_get_parent(&parent);
  if (parent == MPI_COMM_NULL) return 0;
  MPI_Comm_disconnect(&parent);
  MPI_Finalize();
  return 1;
}

static void environment(void)
{
  int one = 1, yes = 1, no = 0, other = size - 1 - me;
  g_index[0] = 1;
  g_index[1] = 2;
  g_edges[0] = size - 1;
  memset(long_text, 'x', sizeof long_text - 1);
  MUST(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  MUST(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
  comm = dup_of(MPI_COMM_WORLD);
  self = dup_of(MPI_COMM_SELF);
  MUST(MPI_Cart_create(comm, 1, &size, &yes, 0, &cart));
  MUST(MPI_Cart_create(comm, 1, &size, &no, 0, &line));
  MUST(MPI_Graph_create(comm, size, g_index, g_edges, 0, &graph));
  MUST(MPI_Dist_graph_create_adjacent(comm, 1, &other, MPI_UNWEIGHTED, 1, &other, MPI_UNWEIGHTED, MPI_INFO_NULL, 0,
                                      &dist));
  inter = MPI_COMM_NULL;
  if (size == 2) MUST(MPI_Intercomm_create(self, 0, comm, other, 3, &inter));
  group = group_of(comm);
  self_group = group_of(self);
  MUST(MPI_Group_incl(group, 1, &other, &other_group));
  int first = 0;
  MUST(MPIX_Rankset_incl(comm, 1, &me, &set));
  MUST(MPIX_Rankset_incl(self, 1, &first, &other_set));
  point = point_made();
  comm_errh = errh_made();
  win_errh = win_errh_made();
  user_op = op_made();
  MUST(MPI_Irecv(rbuf, 1, MPI_INT, me, 99, comm, &never));
  MUST(MPI_Type_contiguous(3, MPI_INT, &uncommitted));
  MUST(MPI_Type_vector(2, 1, 2, MPI_INT, &vector));
  MUST(MPI_Type_commit(&vector));
  MPI_Aint there;
  MUST(MPI_Get_address(rbuf, &there));
  MUST(MPI_Type_create_hindexed(1, &one, &there, MPI_INT, &absolute));
  MUST(MPI_Type_commit(&absolute));
  for (int i = 0; i < 8; i++) {
    i_types[i] = MPI_INT;
    null_types[i] = MPI_DATATYPE_NULL;
    raw_types[i] = uncommitted;
  }
  info = info_made();
  infos[0] = info;
  session = session_made();
  MUST(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &ckey, NULL));
  MUST(MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, MPI_TYPE_NULL_DELETE_FN, &tkey, NULL));
  MUST(MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, MPI_WIN_NULL_DELETE_FN, &wkey, NULL));
  win = win_made();
  MUST(MPI_Win_create_dynamic(MPI_INFO_NULL, comm, &dwin));
  MUST(MPI_Win_set_errhandler(dwin, MPI_ERRORS_RETURN));
  void *shared;
  MUST(MPI_Win_allocate_shared(64, 4, MPI_INFO_NULL, comm, &shared, &swin));
  MUST(MPI_Win_set_errhandler(swin, MPI_ERRORS_RETURN));
  MUST(MPI_File_open(comm, filename, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
  idle_file = file_made();
  MUST(MPI_File_set_size(file, 65536));
  MPI_Request r = post_send(1, 0);
  MUST(MPI_Recv(rbuf, 1, MPI_INT, me, 7, comm, &status));
  release(&r);
}

static int tell(int number, const char *when, unit *u, int k)
{
  char line[64], text[MPI_MAX_ERROR_STRING];
  struct itimerval limit = {.it_value = {20, 0}};
  int class = 0, n;
  snprintf(line, sizeof line, "B %d %s\n", number, when);
  say(line);
  setitimer(ITIMER_REAL, &limit, NULL);
  int rc = u->run(k);
  *text = 0;
  if (rc != MPI_SUCCESS) {
    if (MPI_Error_class(rc, &class) != MPI_SUCCESS) class = -1;
    if (MPI_Error_string(rc, text, &n) != MPI_SUCCESS) strcpy(text, "MPI_Error_string fails");
  }
  for (char *c = text; *c; c++)
    if (*c == '\n') *c = ' ';
  snprintf(line, sizeof line, "E %d %d ", rc, class);
  say(line);
  say(text);
  say("\n");
  return rc;
}

static void all(unit *units, int n, int from)
{
  for (int u = 0; u < n; u++) {
    int cases = (int)strlen(units[u].what);
    if (units[u].first + cases <= from || (units[u].ranks && units[u].ranks != size)) continue;
    int fails = units[u].what[0] == 'f';
    if (!tell(units[u].first, "first", &units[u], 0) == fails) continue;
    for (int k = 1; k < cases; k++) {
      char what = units[u].what[k];
      if (units[u].first + k < from || (what == 's' && size != 1) ||
          ((what == 'p' || what == 't' || what == 'a') && size != 2))
        continue;
      int rc = tell(units[u].first + k, "call", &units[u], k);
      if (!rc != (what == 'r' || what == 't' || (what == 'a' && me == 0)))
        _exit(95); /* what it has left behind is unknown: a new process goes on */
      if (!tell(units[u].first + k, "after", &units[u], 0) == fails) _exit(96);
    }
  }
}

static unit units[];
static const int unit_count;
int main(int argc, char **argv)
{
  MPI_Init(&argc, &argv);
  if (child()) return 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  snprintf(directory, sizeof directory, "%s", argv[1]);
  snprintf(filename, sizeof filename, "%s/data", directory);
  char name[700];
  snprintf(name, sizeof name, "%s/report.%d", directory, me);
  if (readlink("/proc/self/exe", program, sizeof program - 1) < 0) return 1;
  report = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
  signal(SIGALRM, late);
  environment();
  all(units, unit_count, atoi(argv[2]));
  struct itimerval off = {{0, 0}, {0, 0}};
  setitimer(ITIMER_REAL, &off, NULL);
  done(&never, 1);
  MPI_File_close(&file);
  MPI_File_close(&idle_file);
  MPI_Win_free(&win);
  MPI_Win_free(&dwin);
  MPI_Win_free(&swin);
  MPI_Session_finalize(&session);
  MPI_Finalize();
  say("D\n");
  return 0;
}
