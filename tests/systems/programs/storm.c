/* storm ROLE KIND CLUSTER FOLDER PACE BYTES ORDER ORIGINS [LOOKS]: a program of the storm's systems (tests/systems/storm). ROLE: send numbers messages and sends them out of its cluster until there is a file "stop";
 * pass hands on what comes; take keeps it. KIND is what it does about deaths: transparent (it commits), notified (all repair), told (they go on among those that are left). CLUSTER is its own number;
 * PACE the microseconds between two messages, BYTES what a message has; ORDER what is to come in order: tag (all of one tag of a sender), sender (all of it), none. ORIGINS are those that send: "0:2,3:1", clusters and their ranks.
 * Before its first commit a process looks LOOKS times for messages, each 10 ms.
 *
 * What it does it says in FOLDER, as rank R of cluster C, and the I-th process that is that rank:
 *   at.C.R.I    "HOST PID GENERATION NUMBER": of those that send, how many sends have begun; of others, how many messages have come
 *   seen.C.R.I  "C R GENERATION NUMBER": how far those that send were when this process came to be that rank, if it is not what the one before was
 *   end.C.R.I   "sent GENERATION COUNT CLASS MAYBE..." (the class of the error that has ended it; those of which it is not known whether they were sent), "from C R GENERATION A-B ..." (what came), "bad AGAIN LATE DAMAGED BROKEN", "lost N" (spx_messages_lost);
 *               once more when MPI_Finalize is over, which waits for what is kept: until then it may not be known that an I/O process is gone for good */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <mpi-ext.h>
#include <mpi.h>
#include <mpisp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
  TAGS = 5,
  MOST = 30000,
  SLOTS = 16,
  BATCH = 16,
  LONGEST = 400000,
  MAYBES = 64,
  WATCH = 99,
  WORD = 77,
  WORDS = 78
};

typedef struct {
  int cluster, rank, generation, number;
} head;

static struct {
  int generation, number, error, maybes, maybe[MAYBES]; /* of what is sent */
  int given, stop, came, again, late, damaged, broken, words, heard;
  struct {
    head of; /* number: that there is one */
    int last[TAGS];
    unsigned char seen[(MOST + 7) / 8];
  } from[SLOTS];
} s;

static const char *kind, *folder, *order;
static int rank, size, cluster, pace, bytes, here, at;
static bool sends, passes;
static MPI_Comm side = MPI_COMM_NULL; /* for what its ranks say to each other */

static void fail(const char *what, int code)
{
  char text[MPI_MAX_ERROR_STRING] = "";
  int n;
  if (code != MPI_SUCCESS) MPI_Error_string(code, text, &n);
  fprintf(stderr, "storm: cluster %d, rank %d: %s %s\n", cluster, rank, what, text);
  MPI_Abort(MPI_COMM_WORLD, 3);
}

static bool is(const char *name) { return strcmp(kind, name) == 0; }

static int class_of(int code)
{
  int class = MPI_SUCCESS;
  if (code != MPI_SUCCESS) MPI_Error_class(code, &class);
  return class;
}

static char *file_of(const char *what, int c, int r, int i)
{
  static char name[4096];
  snprintf(name, sizeof name, "%s/%s.%d.%d.%d", folder, what, c, r, i);
  return name;
}

static void tell(int n)
{
  static char host[64];
  char line[128];
  if (!host[0]) gethostname(host, sizeof host - 1);
  int length = snprintf(line, sizeof line, "%-40s %8d %6d %8d\n", host, (int)getpid(), s.generation, n);
  if (pwrite(at, line, (size_t)length, 0) != length) fail(strerror(errno), MPI_SUCCESS);
}

/* How far the one that sends is; false: it has not begun. Who goes on where another process was does over again what that had done since it committed. */
static bool progress(int c, int r, int *generation, int *number)
{
  char host[64];
  int pid, g, n;
  bool any = false;
  for (int i = 0;; i++) {
    FILE *f = fopen(file_of("at", c, r, i), "r");
    if (!f) return any;
    if (fscanf(f, "%60s %d %d %d", host, &pid, &g, &n) == 4) {
      *number = any && *generation == g && *number > n ? *number : n;
      *generation = g;
      any = true;
    }
    fclose(f);
  }
}

/* This process is the rank now: it gets a number, and notes how far those are that send. */
static void come(const char *origins)
{
  for (here = 0; (at = open(file_of("at", cluster, rank, here), O_CREAT | O_EXCL | O_WRONLY, 0666)) < 0; here++)
    if (errno != EEXIST) fail(strerror(errno), MPI_SUCCESS);
  int taken;
  MPISP_Is_replacement(&taken);
  if (taken && is("transparent")) return; /* for who sends to it, it has been there all the time */
  FILE *f = fopen(file_of("seen", cluster, rank, here), "w");
  if (!f) fail(strerror(errno), MPI_SUCCESS);
  for (const char *p = origins; *p; p += strcspn(p, ",") + (strchr(p, ',') != NULL)) {
    int c, ranks, generation, number;
    if (sscanf(p, "%d:%d", &c, &ranks) != 2) fail("ORIGINS", MPI_SUCCESS);
    for (int r = 0; r < ranks; r++)
      if (progress(c, r, &generation, &number)) fprintf(f, "%d %d %d %d\n", c, r, generation, number);
  }
  fclose(f);
}

static bool stopped(void)
{
  char name[4096];
  snprintf(name, sizeof name, "%s/stop", folder);
  return access(name, F_OK) == 0;
}

/* Is it because one has died? */
static bool is_death(int code)
{
  int class = class_of(code);
  return class == MPIX_ERR_PROC_FAILED || class == MPIX_ERR_PROC_FAILED_PENDING || class == MPIX_ERR_REVOKED;
}

static void repair(void)
{
  int n, code = MPISP_Repair(&n);
  if (code != MPI_SUCCESS) fail("mending:", code);
}

/* All make it together. If a process dies meanwhile some may have it and others not: then it stays revoked for those that have it, and all make it again (docs/systems.md). */
static void make_side(void)
{
  int revoked = 1;
  if (side != MPI_COMM_NULL) MPIX_Comm_is_revoked(side, &revoked);
  while (revoked) {
    if (side != MPI_COMM_NULL) MPI_Comm_free(&side);
    int code = MPI_Comm_dup(MPI_COMM_WORLD, &side);
    revoked = code != MPI_SUCCESS;
    if (!revoked) break;
    if (!is_death(code) || !is("notified")) fail("MPI_Comm_dup:", code);
    side = MPI_COMM_NULL;
    repair();
  }
  MPI_Comm_set_errhandler(side, MPI_ERRORS_RETURN);
}

/* All that live meet: in notified mode others have taken the ranks of the dead, or else they are done without. */
static void mend(void)
{
  if (is("notified")) {
    repair();
    make_side();
    return;
  }
  MPI_Comm left;
  MPIX_Comm_revoke(side);
  int code = MPIX_Comm_shrink(side, &left);
  if (code != MPI_SUCCESS) fail("mending:", code);
  MPI_Comm_free(&side);
  side = left;
  MPI_Comm_set_errhandler(side, MPI_ERRORS_RETURN);
}

static int mark(int n, int i) { return n * 7 + i; }

static int length_of(int n)
{
  int ints = bytes / (int)sizeof(int);
  return n % 3 == 0 || ints < 8 ? 8 : ints;
}

static int *message(int n)
{
  static int data[LONGEST / sizeof(int)];
  head h = {cluster, rank, s.generation, n};
  memcpy(data, &h, sizeof h);
  for (int i = sizeof h / sizeof(int); i < length_of(n); i++) data[i] = mark(n, i);
  return data;
}

/* One batch of messages. */
static void give(void)
{
  for (int i = 0; i < BATCH; i++) {
    if (s.error || s.number >= MOST) {
      usleep((unsigned)pace);
      continue;
    }
    tell(s.number + 1);
    int code =
        MPI_Send(message(s.number), length_of(s.number), MPI_INT, MPISP_CLUSTER_OUT, s.number % TAGS, MPI_COMM_WORLD);
    if (class_of(code) == MPIX_ERR_REVOKED) {
      if (s.maybes == MAYBES) fail("revoked too often", code);
      s.maybe[s.maybes++] = s.number;
    } else if (code != MPI_SUCCESS && class_of(code) != MPIX_ERR_PROC_FAILED) {
      fail("sending:", code);
    } else if (code != MPI_SUCCESS) {
      s.error = class_of(code);
      continue;
    }
    s.number++;
    usleep((unsigned)pace);
  }
}

static void send_all(void)
{
  for (bool done = false; !done;) {
    int any = 0;
    if (!s.given) { /* else who goes on from the commit has given it: it is here that it goes on */
      give();
      s.given = 1;
      s.stop = stopped(); /* before the commit: who goes on from there tells the others the same */
      if (is("transparent")) MPISP_Commit();
    }
    s.given = 0;
    int code = MPI_Allreduce(&s.stop, &any, 1, MPI_INT, MPI_MAX, side);
    if (code == MPI_SUCCESS && any) code = MPI_Barrier(side), done = code == MPI_SUCCESS;
    if (code == MPI_SUCCESS) continue;
    if (!is_death(code)) fail("all of them:", code);
    mend();
  }
}

static void note(const int *data, int count, int tag)
{
  head h;
  memcpy(&h, data, sizeof h);
  if (count < 8 || h.number < 0 || h.number >= MOST || tag != h.number % TAGS) {
    s.damaged++;
    return;
  }
  bool wrong = count != length_of(h.number);
  for (int i = sizeof h / sizeof(int); i < count; i++) wrong |= data[i] != mark(h.number, i);
  s.damaged += wrong;
  int k = 0;
  while (k < SLOTS && s.from[k].of.number &&
         (s.from[k].of.cluster != h.cluster || s.from[k].of.rank != h.rank || s.from[k].of.generation != h.generation))
    k++;
  if (k == SLOTS) fail("too many that send", MPI_SUCCESS);
  if (!s.from[k].of.number) {
    s.from[k].of = (head){h.cluster, h.rank, h.generation, 1};
    for (int i = 0; i < TAGS; i++) s.from[k].last[i] = -1;
  }
  unsigned char *byte = &s.from[k].seen[h.number / 8], bit = (unsigned char)(1 << h.number % 8);
  if (*byte & bit) {
    s.again++;
    fprintf(stderr, "storm: cluster %d, rank %d: message %d of rank %d of cluster %d comes again\n", cluster, rank,
            h.number, h.rank, h.cluster);
  }
  *byte |= bit;
  int *last = &s.from[k].last[strcmp(order, "tag") == 0 ? h.number % TAGS : 0];
  if (strcmp(order, "none") != 0 && h.number < *last) {
    s.late++;
    fprintf(stderr, "storm: cluster %d, rank %d: message %d of rank %d of cluster %d comes behind %d\n", cluster, rank,
            h.number, h.rank, h.cluster, *last);
  }
  if (h.number > *last) *last = h.number;
}

/* A message has come: it is handed on, and now and then the next rank hears of it, which takes such words when they are there. */
static void take(const int *data, MPI_Status *st)
{
  int count, flag;
  MPI_Get_count(st, MPI_INT, &count);
  note(data, count, st->MPI_TAG);
  tell(++s.came);
  if (passes && !s.error) {
    int code = MPI_Send(data, count, MPI_INT, MPISP_CLUSTER_OUT, st->MPI_TAG, MPI_COMM_WORLD);
    if (class_of(code) == MPIX_ERR_REVOKED) {
      mend();
    } else if (class_of(code) == MPIX_ERR_PROC_FAILED) {
      s.error = class_of(code);
    } else if (code != MPI_SUCCESS) {
      fail("handing on:", code);
    }
  }
  if (!is("transparent") || s.came % BATCH) return;
  if (size > 1) {
    MPI_Send(&s.came, 1, MPI_INT, (rank + 1) % size, WORD, side);
    s.words++;
    for (;;) {
      int word;
      MPI_Iprobe(MPI_ANY_SOURCE, WORD, side, &flag, MPI_STATUS_IGNORE);
      if (!flag) break;
      MPI_Recv(&word, 1, MPI_INT, MPI_ANY_SOURCE, WORD, side, MPI_STATUS_IGNORE);
      s.heard++;
    }
  }
  MPISP_Commit();
}

static void take_transparently(void)
{
  static int data[LONGEST / sizeof(int)];
  int words;
  for (MPI_Status st;;) {
    int code = MPI_Recv(data, LONGEST / sizeof(int), MPI_INT, MPISP_CLUSTER_IN, MPI_ANY_TAG, MPI_COMM_WORLD, &st);
    if (code != MPI_SUCCESS && class_of(code) != MPIX_ERR_PROC_FAILED) fail("receiving:", code);
    if (code != MPI_SUCCESS) {
      s.broken++;
      continue;
    }
    if (st.MPI_SOURCE == MPI_PROC_NULL) break;
    take(data, &st);
  }
  if (size == 1) return;
  MPI_Sendrecv(&s.words, 1, MPI_INT, (rank + 1) % size, WORDS, &words, 1, MPI_INT, (rank + size - 1) % size, WORDS,
               side, MPI_STATUS_IGNORE);
  for (int word; s.heard < words; s.heard++) MPI_Recv(&word, 1, MPI_INT, MPI_ANY_SOURCE, WORD, side, MPI_STATUS_IGNORE);
}

/* Receives, and hears of deaths meanwhile, by a receive of what is never sent. */
static void take_all(void)
{
  static int data[LONGEST / sizeof(int)], never;
  MPI_Request q[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  for (bool over = false;;) {
    MPI_Status st;
    int which, code = MPI_SUCCESS;
    if (q[0] == MPI_REQUEST_NULL && !over)
      code = MPI_Irecv(data, LONGEST / sizeof(int), MPI_INT, MPISP_CLUSTER_IN, MPI_ANY_TAG, MPI_COMM_WORLD, &q[0]);
    if (q[1] == MPI_REQUEST_NULL && code == MPI_SUCCESS && is("notified") && !over)
      code = MPI_Irecv(&never, 1, MPI_INT, MPI_ANY_SOURCE, WATCH, side, &q[1]);
    if (code == MPI_SUCCESS && !over) {
      code = MPI_Waitany(2, q, &which, &st);
      if (which == 0 && class_of(code) == MPIX_ERR_PROC_FAILED) { /* who brought it has died */
        s.broken++;
        continue;
      }
      if (code == MPI_SUCCESS && which == 0) {
        over = st.MPI_SOURCE == MPI_PROC_NULL;
        if (!over) take(data, &st);
      }
    } else if (code == MPI_SUCCESS) { /* the others may need it yet */
      if (q[1] != MPI_REQUEST_NULL) {
        MPI_Cancel(&q[1]);
        MPI_Wait(&q[1], MPI_STATUS_IGNORE);
      }
      code = MPI_Barrier(side);
      if (code == MPI_SUCCESS) return;
    }
    if (code == MPI_SUCCESS) continue;
    if (!is_death(code)) fail("receiving:", code);
    mend();
    over = false;
    if (q[0] != MPI_REQUEST_NULL) { /* it has ended, perhaps with a message */
      code = MPI_Wait(&q[0], &st);
      if (code == MPI_SUCCESS && st.MPI_SOURCE != MPI_PROC_NULL) take(data, &st);
    }
    if (q[1] != MPI_REQUEST_NULL) MPI_Wait(&q[1], MPI_STATUS_IGNORE);
  }
}

static MPI_T_pvar_session session;
static MPI_T_pvar_handle counter;

/* From here on spx_messages_lost is counted: a handle counts from when it was started. */
static void count_lost(void)
{
  int provided, index, count;
  MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
  if (MPI_T_pvar_get_index("spx_messages_lost", MPI_T_PVAR_CLASS_COUNTER, &index) != MPI_SUCCESS ||
      MPI_T_pvar_session_create(&session) != MPI_SUCCESS ||
      MPI_T_pvar_handle_alloc(session, index, NULL, &counter, &count) != MPI_SUCCESS ||
      MPI_T_pvar_start(session, counter) != MPI_SUCCESS)
    fail("spx_messages_lost cannot be counted", MPI_SUCCESS);
}

static unsigned long long lost(void)
{
  unsigned long long n = 0;
  if (MPI_T_pvar_read(session, counter, &n) != MPI_SUCCESS) fail("spx_messages_lost cannot be read", MPI_SUCCESS);
  return n;
}

static void say(void)
{
  FILE *f = fopen(file_of("end", cluster, rank, here), "w");
  if (!f) fail(strerror(errno), MPI_SUCCESS);
  if (sends) {
    fprintf(f, "sent %d %d %d", s.generation, s.number, s.error);
    for (int i = 0; i < s.maybes; i++) fprintf(f, " %d", s.maybe[i]);
    fprintf(f, "\n");
  }
  for (int k = 0; k < SLOTS && s.from[k].of.number; k++) {
    fprintf(f, "from %d %d %d", s.from[k].of.cluster, s.from[k].of.rank, s.from[k].of.generation);
    for (int i = 0, first = -1; i <= MOST; i++) {
      bool there = i < MOST && s.from[k].seen[i / 8] >> i % 8 & 1;
      if (there && first < 0) first = i;
      if (!there && first >= 0) fprintf(f, " %d-%d", first, i - 1), first = -1;
    }
    fprintf(f, "\n");
  }
  fprintf(f, "bad %d %d %d %d\nlost %llu\n", s.again, s.late, s.damaged, s.broken, lost());
  fclose(f);
}

static void say_lost(void)
{
  FILE *f = fopen(file_of("end", cluster, rank, here), "a");
  if (f) {
    fprintf(f, "lost %llu\n", lost());
    fclose(f);
  }
}

int main(int argc, char **argv)
{
  if (argc < 9) return 2;
  sends = strcmp(argv[1], "send") == 0, passes = strcmp(argv[1], "pass") == 0;
  kind = argv[2], cluster = atoi(argv[3]), folder = argv[4], pace = atoi(argv[5]), bytes = atoi(argv[6]),
  order = argv[7];
  if (bytes > LONGEST) return 2;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  make_side();
  count_lost();
  come(argv[8]);
  s.generation = here;
  if (is("transparent")) {
    for (int i = argc > 9 ? atoi(argv[9]) : 0, flag; i > 0; i--) {
      MPI_Iprobe(MPI_ANY_SOURCE, WATCH, side, &flag, MPI_STATUS_IGNORE);
      usleep(10000);
    }
    MPISP_Register(&s, sizeof s, MPI_BYTE);
    MPISP_Commit();
  }
  tell(sends ? s.number : s.came);
  if (sends)
    send_all();
  else if (is("transparent"))
    take_transparently();
  else
    take_all();
  say();
  MPI_Finalize();
  if (sends) say_lost();
  return 0;
}
