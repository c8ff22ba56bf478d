/* steps TURNS OUTPUT: counts the instructions of short paths, one by one.
 *
 * The processor's trap flag raises SIGTRAP after each instruction, and the handler notes where the
 * next one is. That needs no counters of the processor (virtual machines have none), no other
 * process that traces (containers may forbid it), and counts the same every time: what interrupts a
 * process does not count. Two ranks take turns by the file TURNS, which both map, so that each path
 * is measured when what it waits for is there already: a receive that is posted, a message that has
 * come, a member that has arrived. Of many rounds the one with the fewest instructions counts; how
 * many the usual one has, and the longest, is told too.
 *
 * Writes into OUTPUT.RANK "path NAME ROUNDS FEWEST USUAL MOST", and for the round with the fewest
 * "at NAME OFFSET TIMES" for each address in the library at which an instruction was carried out.
 * Instructions elsewhere (the C library, the linker's stubs of the program) are not counted: which
 * ones these are is the processor's and the distribution's choice. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <mpi.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

enum { WARM = 40, ROUNDS = 15, ROOM = 1 << 16 };

static int rank;
static FILE *output;
static struct {
  atomic_long ready, done;
  _Atomic pid_t process[2];
} * turns;
static long turn; /* of both, counted alike */
static char sent[8] = "abcdefg", got[8];
static long in = 1, out;
static MPI_Request posted;

static uintptr_t seen[ROOM], fewest[ROOM];
static volatile long taken;
static uintptr_t base, low, high; /* of the library's code */

static void on_trap(int number, siginfo_t *info, void *context)
{
  (void)number, (void)info;
  if (taken < ROOM) seen[taken] = (uintptr_t)((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
  taken = taken + 1;
}

/* The next instruction but one is the first that traps. */
#define STEP()                                                                                                         \
  __asm__ volatile("leaq -128(%%rsp), %%rsp\n\tpushfq\n\torq $0x100, (%%rsp)\n\tpopfq\n\tleaq 128(%%rsp), %%rsp" ::    \
                       : "memory", "cc")
#define RUN()                                                                                                          \
  __asm__ volatile("leaq -128(%%rsp), %%rsp\n\tpushfq\n\tandq $~0x100, (%%rsp)\n\tpopfq\n\tleaq 128(%%rsp), %%rsp" ::  \
                       : "memory", "cc")

static int find(struct dl_phdr_info *m, size_t size, void *data)
{
  (void)size;
  for (int i = 0; i < m->dlpi_phnum; i++) {
    const ElfW(Phdr) *p = &m->dlpi_phdr[i];
    uintptr_t at = m->dlpi_addr + p->p_vaddr;
    if (p->p_type == PT_LOAD && p->p_flags & PF_X && (uintptr_t)data >= at && (uintptr_t)data < at + p->p_memsz) {
      base = m->dlpi_addr;
      low = at;
      high = at + p->p_memsz;
      return 1;
    }
  }
  return 0;
}

static void say(atomic_long *where) { atomic_store(where, turn); }

static void hear(atomic_long *where)
{
  while (atomic_load(where) < turn) sched_yield();
}

static void post(void) { MPI_Irecv(got, 8, MPI_BYTE, 0, 3, MPI_COMM_WORLD, &posted); }
static void wait_posted(void) { MPI_Wait(&posted, MPI_STATUS_IGNORE); }
static void send_short(void) { MPI_Send(sent, 8, MPI_BYTE, 1, 3, MPI_COMM_WORLD); }
static void receive(void) { MPI_Recv(got, 8, MPI_BYTE, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE); }
static void barrier(void) { MPI_Barrier(MPI_COMM_WORLD); }
static void allreduce(void) { MPI_Allreduce(&in, &out, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD); }

/* One path: the rank that is counted makes the call after the other one has said that it is ready. */
static const struct path {
  const char *name;
  int counted;
  void (*call)(void);
  void (*before)(void);   /* what the other one does before it says so */
  void (*at_last)(void);  /* and after the call */
  void (*together)(void); /* it says so and then does this, without waiting: a moment later it has arrived */
} paths[] = {
    {"send", 0, send_short, post, wait_posted, NULL},         {"receive", 1, receive, send_short, NULL, NULL},
    {"barrier-first", 0, barrier, NULL, NULL, barrier},       {"barrier-second", 1, barrier, NULL, NULL, barrier},
    {"allreduce-first", 0, allreduce, NULL, NULL, allreduce}, {"allreduce-second", 1, allreduce, NULL, NULL, allreduce},
};

static long long busy_ns(clockid_t clock)
{
  struct timespec t;
  return clock_gettime(clock, &t) == 0 ? t.tv_sec * 1000000000LL + t.tv_nsec : 0;
}

/* Waits until the other one has had a processor for so long that it stands in the call, however busy the machine is. */
static void let_arrive(void)
{
  clockid_t clock;
  if (clock_getcpuclockid(turns->process[1 - rank], &clock) != 0) return;
  for (long long since = busy_ns(clock); busy_ns(clock) - since < 500000;)
    nanosleep(&(struct timespec){0, 100000}, NULL);
}

static int by_number(const void *a, const void *b)
{
  long x = *(const long *)a, y = *(const long *)b;
  return (x > y) - (x < y);
}

static int by_address(const void *a, const void *b)
{
  uintptr_t x = *(const uintptr_t *)a, y = *(const uintptr_t *)b;
  return (x > y) - (x < y);
}

/* Makes the call and returns how many instructions it has taken in the library; they are in seen. */
static long count(void (*call)(void))
{
  taken = 0;
  STEP();
  call();
  RUN();
  long n = 0;
  for (long i = 0; i < taken && i < ROOM; i++)
    if (seen[i] >= low && seen[i] < high) seen[n++] = seen[i];
  return taken <= ROOM ? n : taken;
}

static void other(const struct path *p)
{
  if (p->before) p->before();
  say(&turns->ready);
  if (p->together) p->together();
  hear(&turns->done);
  if (p->at_last) p->at_last();
}

static void counted(const struct path *p)
{
  static long counts[ROUNDS];
  long least = ROOM;
  for (int i = 0; i < WARM + ROUNDS; i++) {
    turn++;
    hear(&turns->ready);
    if (p->together) let_arrive();
    if (i < WARM) {
      p->call();
    } else {
      long n = counts[i - WARM] = count(p->call);
      if (n < least) {
        least = n;
        memcpy(fewest, seen, (size_t)n * sizeof *seen);
      }
    }
    say(&turns->done);
  }
  qsort(counts, ROUNDS, sizeof *counts, by_number);
  fprintf(output, "path %s %d %ld %ld %ld\n", p->name, ROUNDS, counts[0], counts[ROUNDS / 2], counts[ROUNDS - 1]);
  if (least == ROOM) return;
  qsort(fewest, (size_t)least, sizeof *fewest, by_address);
  for (long i = 0, n; i < least; i += n) {
    for (n = 1; i + n < least && fewest[i + n] == fewest[i];) n++;
    fprintf(output, "at %s %lx %ld\n", p->name, (unsigned long)(fewest[i] - base), n);
  }
}

int main(int argc, char **argv)
{
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  int fd = open(argv[1], O_RDWR);
  turns = mmap(NULL, sizeof *turns, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (turns == MAP_FAILED) {
    perror(argv[1]);
    return 1;
  }
  turns->process[rank] = getpid();
  char name[4096];
  snprintf(name, sizeof name, "%s.%d", argv[2], rank);
  output = fopen(name, "w");
  if (!output) {
    perror(name);
    return 1;
  }
  struct sigaction a = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO};
  sigemptyset(&a.sa_mask);
  sigaction(SIGTRAP, &a, NULL);
  /* A function of the library, not the stub by which this program calls it. */
  void *in_library = dlsym(RTLD_DEFAULT, "PMPI_Barrier");
  if (!in_library || !dl_iterate_phdr(find, in_library)) {
    fprintf(stderr, "steps: the library's code is not to be found\n");
    return 1;
  }
  for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
    if (rank == paths[i].counted) {
      counted(&paths[i]);
    } else {
      for (int n = 0; n < WARM + ROUNDS; n++) {
        turn++;
        other(&paths[i]);
      }
    }
  }
  MPI_Finalize();
  return fclose(output) != 0;
}
