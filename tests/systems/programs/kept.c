/* Messages that are kept: what was sent to another cluster arrives there, once, though the I/O processes on its way die.
 *
 *   send COUNT BYTES            ranks that send COUNT messages each, as fast as they are taken
 *   receive COUNT FOLDER KILLS  ranks that receive until none comes any more; rank 0 kills I/O processes now and then, KILLS in all
 *   heir COUNT FOLDER           a rank that dies after a third of the messages; who takes its place receives the others
 *   share COUNT FOLDER KILLS N  ranks of several clusters that share what N ranks send: each message is counted in FOLDER/taken. Rank 0 kills as above; each waits for a moment with each message
 *   relay FOLDER SPX-IOP ARG... an I/O process: the relay, which can be found by its pid
 *   once FOLDER                 an I/O process of a user's, of which the first one dies at its first send
 *   slowly FOLDER               the same, and between MPI_Abort and its end it takes half a second
 *   stays FOLDER                sends a message, another one when its receiver has died and is back, and leaves; says whether the receiver had asked for that by then
 *   again FOLDER                its receiver, which dies when it has the first, and twice more
 */
#include <dirent.h>
#include <mpi-ext.h>
#include <mpi.h>
#include <mpisp.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static int rank, size, slow;

/* In the place of the system's: the time between MPI_Abort, which its peers can see, and its end, which its agent announces. */
void _exit(int status)
{
  if (slow) usleep(500000);
  syscall(SYS_exit_group, status);
  __builtin_unreachable();
}

typedef struct {
  int from, number;
} head;

static int send_all(int count, size_t bytes)
{
  char *b = calloc(1, bytes);
  int failed = 0;
  for (int i = 0; i < count; i++) {
    head h = {rank, i};
    memcpy(b, &h, sizeof h);
    memset(b + sizeof h, i, bytes - sizeof h);
    failed += MPI_Send(b, (int)bytes, MPI_BYTE, MPISP_CLUSTER_OUT, rank, MPI_COMM_WORLD) != MPI_SUCCESS;
  }
  free(b);
  printf("rank %d sent %d\n", rank, count - failed);
  return 0;
}

/* Ends one of the relays that have put their names into the folder; true: there was one. */
static int kill_one(const char *folder)
{
  char path[4096];
  DIR *d = opendir(folder);
  struct dirent *e;
  int done = 0;
  while (d && !done && (e = readdir(d))) {
    int pid = atoi(e->d_name);
    if (pid <= 1) continue;
    snprintf(path, sizeof path, "%s/%d", folder, pid);
    done = unlink(path) == 0 && kill(pid, SIGKILL) == 0;
  }
  if (d) closedir(d);
  return done;
}

/* The first process that puts this mark into the folder. */
static int marks(const char *folder, const char *name)
{
  char mark[4096];
  snprintf(mark, sizeof mark, "%s/%s", folder, name);
  int fd = open(mark, O_CREAT | O_EXCL | O_WRONLY, 0600);
  return fd >= 0 && close(fd) == 0;
}

static int is_first(const char *folder) { return marks(folder, "died"); }

static int is_marked(const char *folder, const char *name)
{
  char mark[4096];
  snprintf(mark, sizeof mark, "%s/%s", folder, name);
  return access(mark, F_OK) == 0;
}

static int stay(const char *folder)
{
  int flag, n = 0;
  MPI_Send(&n, 1, MPI_INT, MPISP_CLUSTER_OUT, 0, MPI_COMM_WORLD);
  for (int rounds = 0; rounds < 500; rounds += is_marked(folder, "back")) { /* then half a second: it hears of that */
    MPI_Iprobe(MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    usleep(1000);
  }
  MPI_Send(&n, 1, MPI_INT, MPISP_CLUSTER_OUT, 0, MPI_COMM_WORLD);
  marks(folder, "leaves");
  MPI_Finalize();
  printf("the sender has left: %s\n", is_marked(folder, "asks") ? "asked for" : "not asked for");
  return 0;
}

static int come_again(const char *folder)
{
  int n, got = 0;
  MPI_Status st;
  if (is_first(folder)) {
    MPI_Recv(&n, 1, MPI_INT, MPISP_CLUSTER_IN, 0, MPI_COMM_WORLD, &st);
    raise(SIGKILL);
  }
  if (marks(folder, "again") || marks(folder, "and again")) raise(SIGKILL); /* numbers of processes come round */
  marks(folder, "back");
  while (!is_marked(folder, "leaves")) usleep(1000);
  usleep(300000);
  marks(folder, "asks");
  do {
    MPI_Recv(&n, 1, MPI_INT, MPISP_CLUSTER_IN, 0, MPI_COMM_WORLD, &st);
    got += st.MPI_SOURCE != MPI_PROC_NULL;
  } while (st.MPI_SOURCE != MPI_PROC_NULL);
  printf("its receiver has got %d\n", got);
  return 0;
}

static int inherit(int count, const char *folder)
{
  enum { MOST = 4 << 20 };
  int dies = is_first(folder) ? count / 3 : -1, got = 0, last = -1, late = 0;
  char *b = malloc(MOST);
  for (;;) {
    MPI_Status st;
    int bytes;
    head h;
    MPI_Recv(b, MOST, MPI_BYTE, MPISP_CLUSTER_IN, MPI_ANY_TAG, MPI_COMM_WORLD, &st);
    if (st.MPI_SOURCE == MPI_PROC_NULL) break;
    MPI_Get_count(&st, MPI_BYTE, &bytes);
    memcpy(&h, b, sizeof h);
    for (int i = sizeof h; i < bytes; i++) late += b[i] != (char)h.number;
    late += h.number <= last;
    last = h.number;
    if (++got == dies) raise(SIGKILL);
  }
  free(b);
  printf("the heir received %d of %d, the last was %d; %d out of order\n", got, count, last, late);
  return 0;
}

static int receive_all(int count, const char *folder, int kills)
{
  enum { SENDERS = 64 };
  char *seen = calloc(SENDERS, (size_t)count);
  int got = 0, twice = 0, wrong = 0, late = 0, last[SENDERS], killed = 0;
  for (int i = 0; i < SENDERS; i++) last[i] = -1;
  for (;;) {
    MPI_Status st;
    int bytes;
    MPI_Probe(MPISP_CLUSTER_IN, MPI_ANY_TAG, MPI_COMM_WORLD, &st);
    if (st.MPI_SOURCE == MPI_PROC_NULL) break;
    MPI_Get_count(&st, MPI_BYTE, &bytes);
    char *b = malloc((size_t)bytes);
    MPI_Recv(b, bytes, MPI_BYTE, MPISP_CLUSTER_IN, st.MPI_TAG, MPI_COMM_WORLD, &st);
    head h;
    memcpy(&h, b, sizeof h);
    for (size_t i = sizeof h; i < (size_t)bytes; i++) wrong += b[i] != (char)h.number;
    free(b);
    if (h.from < 0 || h.from >= SENDERS || h.number < 0 || h.number >= count) {
      wrong++;
      continue;
    }
    char *s = &seen[h.from * count + h.number];
    twice += *s;
    got += !*s;
    *s = 1;
    late += h.number < last[h.from];
    last[h.from] = h.number;
    if (rank == 0 && killed < kills && got % 7 == 0 && got < count) /* later there may be nothing left to relay */
      killed += kill_one(folder);
  }
  printf("rank %d received %d, %d twice, %d wrong, %d out of order, %d killed\n", rank, got, twice, wrong, late,
         killed);
  free(seen);
  return twice + wrong;
}

static int share(int count, const char *folder, int kills, int senders)
{
  char name[4096];
  size_t all = (size_t)count * (size_t)senders;
  snprintf(name, sizeof name, "%s/taken", folder);
  int fd = open(name, O_CREAT | O_RDWR, 0600);
  if (fd < 0 || ftruncate(fd, (off_t)all) != 0) return 3;
  unsigned char *taken = mmap(NULL, all, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (taken == MAP_FAILED) return 3;
  int got = 0, killed = 0, wrong = 0;
  for (;;) {
    MPI_Status st;
    struct {
      head h;
      char rest[200];
    } b;
    MPI_Recv(&b, sizeof b, MPI_BYTE, MPISP_CLUSTER_IN, MPI_ANY_TAG, MPI_COMM_WORLD, &st);
    if (st.MPI_SOURCE == MPI_PROC_NULL) break;
    if (b.h.from < 0 || b.h.from >= senders || b.h.number < 0 || b.h.number >= count) {
      wrong++;
      continue;
    }
    __atomic_fetch_add(&taken[(size_t)b.h.from * (size_t)count + (size_t)b.h.number], 1, __ATOMIC_RELAXED);
    got++;
    usleep(100);
    if (rank == 0 && killed < kills && got % 20 == 0) killed += kill_one(folder);
  }
  printf("cluster %s rank %d took %d, %d wrong, %d killed\n", getenv("SPX_CLUSTER"), rank, got, wrong, killed);
  return wrong;
}

static int once(const char *folder)
{
  for (int sent = 0;; sent++) {
    MPI_Status st;
    char b[65536];
    MPI_Recv(b, sizeof b, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &st);
    if (st.MPI_SOURCE == MPI_PROC_NULL) return 0;
    int bytes;
    MPI_Get_count(&st, MPI_BYTE, &bytes);
    if (is_first(folder)) {
      if (slow) MPI_Abort(MPI_COMM_SELF, 3);
      raise(SIGKILL);
    }
    MPI_Send(b, bytes, MPI_BYTE, 0, st.MPI_TAG, MPI_COMM_WORLD);
  }
}

static void relay(const char *folder, char **program)
{
  char path[4096];
  snprintf(path, sizeof path, "%s/%d", folder, (int)getpid());
  int fd = open(path, O_CREAT | O_WRONLY, 0600);
  if (fd >= 0) close(fd);
  execv(program[0], program);
  _exit(99);
}

int main(int argc, char **argv)
{
  if (argc > 3 && strcmp(argv[1], "relay") == 0) relay(argv[2], argv + 3);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  int rc = 2;
  if (strcmp(argv[1], "send") == 0) rc = send_all(atoi(argv[2]), (size_t)atol(argv[3]));
  if (strcmp(argv[1], "receive") == 0) rc = receive_all(atoi(argv[2]), argv[3], atoi(argv[4]));
  if (strcmp(argv[1], "heir") == 0) rc = inherit(atoi(argv[2]), argv[3]);
  if (strcmp(argv[1], "share") == 0) rc = share(atoi(argv[2]), argv[3], atoi(argv[4]), atoi(argv[5]));
  if (strcmp(argv[1], "stays") == 0) return stay(argv[2]);
  if (strcmp(argv[1], "again") == 0) rc = come_again(argv[2]);
  slow = strcmp(argv[1], "slowly") == 0;
  if (slow || strcmp(argv[1], "once") == 0) rc = once(argv[2]);
  fflush(stdout);
  MPI_Finalize();
  return rc;
}
