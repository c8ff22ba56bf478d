/* limits.c - what the machine itself can do, without any MPI: lines "limit bytes microseconds" as rows.c prints them.
 *
 *   limits [-t MS] [-n RANKS] [-f FOLDER] [NAME ...]      NAMEs: those limits alone
 *
 *   handover   half a round trip of two processes in shared memory: a flag, and the data copied once, out of the sender's memory. Up to
 *              32 bytes: the data stand in the flag's line
 *   stream     one message of many from one process to another through a ring in shared memory
 *   memcpy     a copy within a process; memcpy2: while another process does the same
 *   cma        a copy out of another process's memory (process_vm_readv); cma2: while that one does the same
 *   futex      half a round trip of two sleepers
 *   meet       a barrier of RANKS processes on a counter in shared memory: spinning, or the better of sleeping and yielding
 *   loop-X     data of a datatype packed by a loop written for it, while another process does the same
 *   crowd      RANKS processes, more than processors, copy at once, each in memory of its own, as large as a rank's; the time for one
 *              copy of each
 *   crowd-pwrite, crowd-pread   the same with parts of one file in the page cache, for any number of processes: the kernel lets one
 *              process at a time write a file, whatever the part
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { BATCHES = 3, POOL = 32 << 20, SLOTS = 64, RING = 256 };

typedef struct line {
  _Atomic int64_t turn;
  char data[56];
} line;

typedef void body(size_t bytes, long first, long times);

/* What the two processes share. */
static struct {
  line side[2];        /* [0] is written by the parent, [1] by the helper */
  line arrived, round; /* of meet */
  line task, done;     /* the helper's: number of the task, of the last one that it has ended */
  _Atomic int64_t stop;
  body *serve;
  size_t bytes;
} * shared;
static int helping;           /* in the helper */
static char *pools[2], *mine; /* pools[k]: process k's; mine: where this one copies to */
static double batch = 4e-3;
static long pool = POOL;
static int ranks = 2, cpus, names;
static char **name;
static const char *folder = ".";
static pid_t parent, helper;

static char *slot(char *base, size_t bytes, long i)
{
  size_t stride = ((bytes + 63) & ~(size_t)63) + (bytes >= 4096 ? 64 : 0), n = (size_t)pool / stride;
  return base + (size_t)i % (n > SLOTS ? SLOTS : n < 1 ? 1 : n) * stride;
}

static double now(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void futex(_Atomic int64_t *word, int operation, int value)
{
  syscall(SYS_futex, word, operation, value, NULL, NULL, 0);
}

static int stopped(void) { return helping && atomic_load_explicit(&shared->stop, memory_order_relaxed); }

static void wait_for(int side, int64_t value, int sleeping)
{
  int64_t seen;
  while ((seen = atomic_load_explicit(&shared->side[side].turn, memory_order_acquire)) < value && !stopped()) {
    if (sleeping)
      futex(&shared->side[side].turn, FUTEX_WAIT, (int)seen);
    else
      __builtin_ia32_pause();
  }
}

static void set(int side, int64_t value, int sleeping)
{
  atomic_store_explicit(&shared->side[side].turn, value, memory_order_release);
  if (sleeping) futex(&shared->side[side].turn, FUTEX_WAKE, 1);
}

static int ascending(const void *a, const void *b)
{
  double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}

static int wanted(const char *limit)
{
  for (int i = 0; i < names; i++)
    if (!strcmp(name[i], limit)) return 1;
  return names == 0;
}

/* Calls run in batches that last long enough, and prints the median time of one operation. */
static void measure(const char *limit, body *run, size_t bytes, double operations)
{
  double seconds[BATCHES];
  long times = 1, first = 0;
  for (;;) {
    double start = now();
    run(bytes, first, times);
    double s = now() - start;
    first += times;
    if (s > 0.7 * batch) break;
    times = s < batch / 10 ? times * 8 : (long)((double)times * batch / s) + 1;
  }
  for (int b = 0; b < BATCHES; b++) {
    double start = now();
    run(bytes, first, times);
    seconds[b] = now() - start;
    first += times;
  }
  qsort(seconds, BATCHES, sizeof(double), ascending);
  printf("%s %zu %.4f\n", limit, bytes, seconds[BATCHES / 2] * 1e6 / (double)times / operations);
  fflush(stdout);
}

/* The helper does serve until end(). */
static void begin(body *serve, size_t bytes)
{
  shared->side[0].turn = shared->side[1].turn = 0;
  shared->stop = 0;
  shared->serve = serve;
  shared->bytes = bytes;
  atomic_fetch_add(&shared->task.turn, 1);
  futex(&shared->task.turn, FUTEX_WAKE, 1);
}

static void end(void)
{
  shared->stop = 1;
  while (shared->done.turn != shared->task.turn) {
    futex(&shared->side[0].turn, FUTEX_WAKE, 1); /* it may have been on its way to sleep */
    sched_yield();
  }
}

static void help(void)
{
  helping = 1;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  mine = mine + POOL + (1 << 20);
  for (int64_t task = 0;; task++) {
    while (shared->task.turn == task) futex(&shared->task.turn, FUTEX_WAIT, (int)task);
    shared->serve(shared->bytes, 0, LONG_MAX);
    shared->done.turn = task + 1;
  }
}

/* ---- two processes ---- */
static void fetch(size_t bytes, long i, int from)
{
  if (bytes > 32)
    memcpy(slot(mine, bytes, i), slot(pools[from], bytes, i), bytes);
  else
    memcpy(slot(mine, bytes, i), shared->side[from].data, bytes);
}

static void hand(size_t bytes, long i, int side, int sleeping)
{
  if (bytes <= 32) memcpy(shared->side[side].data, slot(pools[side], bytes, i), bytes);
  set(side, i + 1, sleeping);
}

static void handover(size_t bytes, long first, long times)
{
  for (long i = first; i < first + times; i++) {
    hand(bytes, i, 0, 0);
    wait_for(1, i + 1, 0);
    fetch(bytes, i, 1);
  }
}

static void handover_other(size_t bytes, long first, long times)
{
  for (long i = first; i < times && !stopped(); i++) {
    wait_for(0, i + 1, 0);
    fetch(bytes, i, 0);
    hand(bytes, i, 1, 0);
  }
}

static void sleepers(size_t bytes, long first, long times)
{
  for (long i = first; i < first + times; i++) {
    hand(bytes, i, 0, 1);
    wait_for(1, i + 1, 1);
  }
}

static void sleepers_other(size_t bytes, long first, long times)
{
  for (long i = first; i < times && !stopped(); i++) {
    wait_for(0, i + 1, 1);
    hand(bytes, i, 1, 1);
  }
}

/* The ring: cells of a line for up to 56 bytes, else of bytes behind a line. */
static size_t cell(size_t bytes) { return bytes <= 56 ? 64 : 64 + bytes; }

static void stream(size_t bytes, long first, long times)
{
  for (long i = first; i < first + times; i++) {
    line *c = (line *)(pools[0] + (size_t)(i % RING) * cell(bytes));
    if (i % (RING / 4) == 0) wait_for(1, i - RING + RING / 4, 0);
    memcpy(c->data, slot(mine, bytes, i), bytes);
    atomic_store_explicit(&c->turn, i + 1, memory_order_release);
  }
}

static void stream_other(size_t bytes, long first, long times)
{
  for (long i = first; i < times && !stopped(); i++) {
    line *c = (line *)(pools[0] + (size_t)(i % RING) * cell(bytes));
    while (atomic_load_explicit(&c->turn, memory_order_acquire) != i + 1) {
      if (stopped()) return;
      __builtin_ia32_pause();
    }
    memcpy(slot(mine, bytes, i), c->data, bytes);
    if ((i + 1) % (RING / 4) == 0) set(1, i + 1, 0);
  }
}

/* ---- copies ---- */
static void copy(size_t bytes, long first, long times)
{
  for (long i = first; i - first < times && !stopped(); i++) {
    memcpy(slot(mine, bytes, i), slot(pools[helping], bytes, i), bytes);
    __asm__ volatile("" : : : "memory");
  }
}

static void cma(size_t bytes, long first, long times)
{
  for (long i = first; i - first < times && !stopped(); i++) {
    struct iovec here = {slot(mine, bytes, i), bytes}, there = {slot(pools[!helping], bytes, i), bytes};
    if (process_vm_readv(helping ? parent : helper, &here, 1, &there, 1, 0) != (ssize_t)bytes) {
      fprintf(stderr, "limits: process_vm_readv: %s\n", strerror(errno));
      exit(1);
    }
  }
}

/* ---- loops over data with holes, as rows of types.c have them ---- */
typedef struct particle {
  double x;
  int kind, left_out;
  double y;
} particle;

static const char *spread(size_t bytes, long i) { return slot(pools[helping], 2 * bytes + 64, i); }

static void loop_vector8(size_t bytes, long first, long times)
{
  for (long i = first; i - first < times && !stopped(); i++) {
    const double *from = (const double *)spread(bytes, i);
    double *to = (double *)slot(mine, bytes, i);
    for (size_t k = 0; k < bytes / 8; k++) to[k] = from[2 * k];
    __asm__ volatile("" : : : "memory");
  }
}

static void loop_vector64(size_t bytes, long first, long times)
{
  for (long i = first; i - first < times && !stopped(); i++) {
    const char *from = spread(bytes, i);
    char *to = slot(mine, bytes, i);
    for (size_t k = 0; k < bytes / 64; k++) memcpy(to + 64 * k, from + 128 * k, 64);
    __asm__ volatile("" : : : "memory");
  }
}

static int displacements[POOL / 32];

static void loop_indexed(size_t bytes, long first, long times)
{
  for (long i = first; i - first < times && !stopped(); i++) {
    const double *from = (const double *)spread(bytes, i);
    char *to = slot(mine, bytes, i);
    for (size_t k = 0; k < bytes / 32; k++) memcpy(to + 32 * k, from + displacements[k], 32);
    __asm__ volatile("" : : : "memory");
  }
}

static void loop_struct(size_t bytes, long first, long times)
{
  for (long i = first; i - first < times && !stopped(); i++) {
    const particle *from = (const particle *)spread(bytes, i);
    char *to = slot(mine, bytes, i);
    for (size_t k = 0; k < bytes / 20; k++) {
      memcpy(to + 20 * k, &from[k].x, 12);
      memcpy(to + 20 * k + 12, &from[k].y, 8);
    }
    __asm__ volatile("" : : : "memory");
  }
}

/* ---- a barrier of many ---- */
static int how; /* 0: spin, 1: sleep, 2: yield */

static void meet(size_t bytes, long first, long times)
{
  (void)bytes;
  for (long i = first; i - first < times; i++) {
    int64_t round = shared->round.turn;
    if (atomic_fetch_add(&shared->arrived.turn, 1) == ranks - 1) {
      shared->arrived.turn = 0;
      shared->round.turn = round + 1;
      if (how == 1) futex(&shared->round.turn, FUTEX_WAKE, INT_MAX);
    } else
      while (shared->round.turn == round) {
        if (how == 0)
          __builtin_ia32_pause();
        else if (how == 1)
          futex(&shared->round.turn, FUTEX_WAIT, (int)round);
        else
          sched_yield();
      }
  }
}

static double meeting(void)
{
  pid_t others[1024];
  double best = 1e9;
  for (how = ranks > cpus; how <= (ranks > cpus ? 2 : 0); how++) {
    long times = 20;
    shared->arrived.turn = shared->round.turn = 0;
    for (int k = 0; k < ranks - 1; k++)
      if ((others[k] = fork()) == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        meet(0, 0, LONG_MAX);
        _exit(0);
      }
    for (int b = 0; b < BATCHES + 2; b++) {
      double start = now();
      meet(0, 0, times);
      double s = now() - start;
      if (b > 1 && s / (double)times < best) best = s / (double)times;
      if (s < batch) times = (long)((double)times * batch / s);
    }
    for (int k = 0; k < ranks - 1; k++) kill(others[k], SIGKILL);
    for (int k = 0; k < ranks - 1; k++) waitpid(others[k], NULL, 0);
  }
  return best;
}

/* ---- files ---- */
static int file;
static off_t part; /* where this process's part of the file begins */

static void file_write(size_t bytes, long first, long times)
{
  for (long i = first; i - first < times && !stopped(); i++)
    if (pwrite(file, slot(mine, bytes, i), bytes, part + (off_t)(i % 8 * (long)bytes)) < 0) exit(1);
}

static void file_read(size_t bytes, long first, long times)
{
  for (long i = first; i - first < times && !stopped(); i++)
    if (pread(file, slot(mine, bytes, i), bytes, part + (off_t)(i % 8 * (long)bytes)) < 0) exit(1);
}

static void open_file(void)
{
  char path[4096];
  snprintf(path, sizeof path, "%s/limits.data", folder);
  file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0666);
  unlink(path);
  if (file < 0) {
    fprintf(stderr, "limits: %s: %s\n", path, strerror(errno));
    exit(1);
  }
}

/* ---- many processes, each with its own data ---- */
static body *crowd_body;
static size_t crowd_bytes;

/* A process of the crowd: in each round does what is asked for. The memory is as large as rows.c gives a rank. */
static void member(int k)
{
  size_t bytes = (size_t)(ranks > 16 ? POOL / 16 : ranks > 4 ? POOL / 4 : POOL) + 2 * crowd_bytes + 4096;
  long first = 0;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  pools[0] = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  mine = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (pools[0] == MAP_FAILED || mine == MAP_FAILED) exit(1);
  memset(pools[0], 1, bytes);
  memset(mine, 1, bytes);
  pool = (long)bytes - 2 * (long)crowd_bytes - 4096;
  part = (off_t)k * 8 * (off_t)crowd_bytes;
  /* The pages are there; crowd() has them written back before it measures. */
  if (crowd_body == file_read) file_write(crowd_bytes, 0, 8);
  if (crowd_body != copy) crowd_body(crowd_bytes, 0, 8);
  for (int64_t round = 0;; round++) {
    if (atomic_fetch_add(&shared->arrived.turn, 1) == ranks - 1) futex(&shared->arrived.turn, FUTEX_WAKE, 1);
    while (shared->round.turn == round) futex(&shared->round.turn, FUTEX_WAIT, (int)round);
    crowd_body(crowd_bytes, first, shared->task.turn);
    first += shared->task.turn;
  }
}

/* One round of the crowd, in which each does it times times: seconds. */
static double crowd_round(long times)
{
  double start = now();
  shared->task.turn = times;
  shared->arrived.turn = 0;
  atomic_fetch_add(&shared->round.turn, 1);
  futex(&shared->round.turn, FUTEX_WAKE, INT_MAX);
  for (int64_t n; (n = shared->arrived.turn) < ranks;) futex(&shared->arrived.turn, FUTEX_WAIT, (int)n);
  return now() - start;
}

static void crowd(const char *limit, body *run, const size_t *sizes)
{
  pid_t members[1024];
  int64_t task = shared->task.turn;
  if (!wanted(limit) || (run == copy && ranks <= cpus)) return;
  for (; *sizes; sizes++) {
    double seconds[BATCHES];
    long times = 1;
    crowd_body = run;
    crowd_bytes = *sizes;
    shared->arrived.turn = shared->round.turn = 0;
    for (int k = 0; k < ranks; k++)
      if ((members[k] = fork()) == 0) member(k);
    for (int64_t n; (n = shared->arrived.turn) < ranks;) futex(&shared->arrived.turn, FUTEX_WAIT, (int)n);
    if (run != copy && fdatasync(file)) exit(1);
    for (double s; (s = crowd_round(times)) < 1.4 * batch;)
      times = s < batch / 5 ? times * 8 : (long)((double)times * 2 * batch / s) + 1;
    for (int b = 0; b < BATCHES; b++) seconds[b] = crowd_round(times);
    for (int k = 0; k < ranks; k++) kill(members[k], SIGKILL);
    for (int k = 0; k < ranks; k++) waitpid(members[k], NULL, 0);
    qsort(seconds, BATCHES, sizeof(double), ascending);
    printf("%s %zu %.4f\n", limit, *sizes, seconds[BATCHES / 2] * 1e6 / (double)times);
    fflush(stdout);
  }
  shared->task.turn = task;
}

static void crowds(void)
{
  static const size_t copied[] = {4096, 65536, 524288, 1048576, 0}, filed[] = {4096, 65536, 1048576, 0};
  if (ranks > 64) return;
  crowd("crowd", copy, copied);
  crowd("crowd-pwrite", file_write, filed);
  crowd("crowd-pread", file_read, filed);
}

static void all(const char *limit, body *run, body *other, double operations, const size_t *sizes)
{
  if (!wanted(limit)) return;
  for (; *sizes; sizes++) {
    if (other) begin(other, *sizes);
    measure(limit, run, *sizes, operations);
    if (other) end();
  }
}

static void copies(void)
{
  static const size_t copied[] = {8,      1024,   2048,   4096,   8192,    16384,   32768, 65536,
                                  131072, 200000, 262144, 524288, 1048576, 4194304, 0};
  all("memcpy", copy, NULL, 1, copied);
  all("memcpy2", copy, copy, 1, copied);
  all("cma", cma, NULL, 1, copied + 1);
  all("cma2", cma, cma, 1, copied + 1);
}

static void twos(void)
{
  static const size_t handed[] = {8,     64,    512,    1024,   2048,   4096,    8192,    16384,
                                  32768, 65536, 131072, 200000, 262144, 1048576, 4194304, 0},
                      streamed[] = {8, 64, 1024, 8192, 0}, slept[] = {8, 0};
  if (cpus > 1) {
    if (names) all("near", handover, handover_other, 2, slept);
    all("handover", handover, handover_other, 2, handed);
    if (wanted("stream"))
      for (const size_t *s = streamed; *s; s++) {
        memset(pools[0], 0, (RING + 1) * cell(*s));
        begin(stream_other, *s);
        measure("stream", stream, *s, 1);
        end();
      }
  }
  all("futex", sleepers, sleepers_other, 2, slept);
}

static void loops(void)
{
  static const size_t packed[] = {960, 61440, 983040, 0};
  for (int i = 0; i < POOL / 32; i++) displacements[i] = 8 * i + i * 7 % 4;
  all("loop-vector8", loop_vector8, loop_vector8, 1, packed);
  all("loop-vector64", loop_vector64, loop_vector64, 1, packed);
  all("loop-indexed", loop_indexed, loop_indexed, 1, packed);
  all("loop-struct", loop_struct, loop_struct, 1, packed);
}

int main(int argc, char **argv)
{
  for (int c; (c = getopt(argc, argv, "t:n:f:")) != -1;) switch (c) {
    case 't': batch = atof(optarg) * 1e-3; break;
    case 'n': ranks = atoi(optarg); break;
    case 'f': folder = optarg; break;
    default: return 2;
    }
  name = argv + optind, names = argc - optind;
  cpus = (int)sysconf(_SC_NPROCESSORS_ONLN);
  if (ranks < 2 || ranks > 1024) return 2;
  shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  char *memory = mmap(NULL, 4 * (POOL + (1 << 20)), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED || memory == MAP_FAILED) return 1;
  for (int k = 0; k < 2; k++) pools[k] = memory + k * (POOL + (1 << 20));
  mine = memory + 2 * (POOL + (1 << 20));
  memset(memory, 1, 4 * (POOL + (1 << 20)));
  open_file();
  parent = getpid();
  if ((helper = fork()) == 0) help();
  copies();
  twos();
  loops();
  kill(helper, SIGKILL);
  waitpid(helper, NULL, 0);
  crowds();
  if (wanted("meet")) printf("meet 0 %.4f\n", meeting() * 1e6);
  return 0;
}
