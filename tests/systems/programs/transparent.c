/* transparent M STEPS RANK@STEP.PLACE,...: a cluster of M ranks with standbys that take over transparently. Every step uses what point-to-point and collectives there are:
 * messages short and long, wildcards, tests, probes, persistent requests, reductions on several communicators. What a rank does next follows from what it has
 * received. The ranks named end themselves somewhere in the steps named, once each. Nobody is told of that: this program has no error handler, and does
 * nothing about failures but to register its memory and to commit. The numbers at the end are those that come of it when nobody dies. FAULT=agent takes the agent of the host along, and with it all of
 * its processes, FAULT=cut cuts the host off the network, FAULT=blink for 0.2 s alone; a number is that of another signal. */
#define _GNU_SOURCE
#include <mpi.h>
#include <mpisp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <fcntl.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "../../c/check.h"

enum { LONG = 40000, MOST = 16 };
static int rank, size, config;
static struct {
  int step;
  unsigned long sum,
      order; /* order: in which wildcards have received, which may be any, but must be one and the same for all that follows */
  double numbers[LONG];
} s;
static const char *victims;

static double now(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* The library's as well: in MPI_Init a process that has waited goes on later, so that what happens meanwhile is seen in the next place where it looks. */
static long slow;
long syscall(long number, ...)
{
  static long (*real)(long, ...);
  long a[6];
  va_list list;
  va_start(list, number);
  for (int i = 0; i < 6; i++) a[i] = va_arg(list, long);
  va_end(list);
  if (!real) real = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
  long result = real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
  int error = errno;
  if (slow && number == SYS_futex) nanosleep(&(struct timespec){.tv_nsec = slow}, NULL);
  errno = error;
  return result;
}

/* Ends this process here, the first time that anybody comes by as this rank. */
static void maybe_die(int where)
{
  char word[32], file[64];
  snprintf(word, sizeof word, ",%d@%d.%d,", rank, s.step, where);
  if (!strstr(victims, word)) return;
  snprintf(file, sizeof file, "died.%d.%d.%d", rank, s.step, where);
  int fd = open(file, O_CREAT | O_EXCL | O_WRONLY, 0600);
  if (fd < 0) return;
  long later = where >= 6 ? atol(getenv("LATER")) : 0; /* nanoseconds: wherever it is then */
  dprintf(fd, "%.9f\n", now() + (double)later * 1e-9);
  close(fd);
  if (later) {
    timer_t timer;
    struct sigevent e = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGKILL};
    if (timer_create(CLOCK_MONOTONIC, &e, &timer) == 0)
      timer_settime(timer, 0, &(struct itimerspec){.it_value.tv_nsec = later}, NULL);
    if (getenv("LAG")) slow = atol(getenv("LAG")); /* the others wait for it then */
    return;
  }
  const char *fault = getenv("FAULT");
  if (fault && strcmp(fault, "agent") == 0) {
    kill(getppid(), SIGKILL);
    for (;;) pause();
  } else if (fault && strcmp(fault, "cut") == 0) {
    CHECK(system("ip link set eth0 down") == 0);
    return; /* what comes of it, the others see */
  } else if (fault && strcmp(fault, "blink") == 0) {
    CHECK(system("ip link set eth0 down; sleep 0.2; ip link set eth0 up") == 0);
    return;
  }
  raise(getenv("FAULT") ? atoi(getenv("FAULT")) : SIGKILL); /* SIGSTOP: it hangs instead */
}

static unsigned long mix(unsigned long a, unsigned long b)
{
  unsigned long h = (a ^ b * 0x9e3779b97f4a7c15ul) * 0xbf58476d1ce4e5b9ul;
  return h ^ h >> 29;
}

/* Everybody sends to everybody; who comes first is seen. */
static void wild(MPI_Comm c)
{
  unsigned long out = mix((unsigned long)rank, (unsigned long)s.step), in[MOST];
  int seen = 0;
  for (int r = 0; r < size; r++)
    if (r != rank) MPI_Send(&out, 1, MPI_UNSIGNED_LONG, r, 3, c);
  maybe_die(1);
  while (seen < size - 1) {
    MPI_Status st;
    int flag = 0;
    MPI_Request q;
    unsigned long v;
    switch ((s.order + (unsigned long)seen) % 3) {
    case 0: MPI_Recv(&v, 1, MPI_UNSIGNED_LONG, MPI_ANY_SOURCE, 3, c, &st); break;
    case 1:
      while (!flag) MPI_Iprobe(MPI_ANY_SOURCE, 3, c, &flag, &st);
      MPI_Recv(&v, 1, MPI_UNSIGNED_LONG, st.MPI_SOURCE, 3, c, &st);
      break;
    default:
      MPI_Irecv(&v, 1, MPI_UNSIGNED_LONG, MPI_ANY_SOURCE, MPI_ANY_TAG, c, &q);
      while (!flag) MPI_Test(&q, &flag, &st);
    }
    CHECK(v == mix((unsigned long)st.MPI_SOURCE, (unsigned long)s.step));
    s.order = mix(s.order, (unsigned long)st.MPI_SOURCE);
    in[seen++] = v;
  }
  for (int i = 0; i < seen; i++) s.sum += in[i];
  maybe_die(2);
}

/* Long messages round a ring, while short ones go the other way; what order they come in is told by MPI_Waitany. */
static void ring(MPI_Comm c)
{
  static double in[LONG];
  unsigned long back = s.order, got;
  int next = (rank + 1) % size, before = (rank + size - 1) % size;
  MPI_Request q[4];
  MPI_Irecv(in, LONG, MPI_DOUBLE, before, 4, c, &q[0]);
  MPI_Irecv(&got, 1, MPI_UNSIGNED_LONG, next, 5, c, &q[1]);
  MPI_Isend(s.numbers, LONG, MPI_DOUBLE, next, 4, c, &q[2]);
  maybe_die(3);
  maybe_die(6);
  MPI_Isend(&back, 1, MPI_UNSIGNED_LONG, before, 5, c, &q[3]);
  for (int i = 0, which; i < 4; i++) {
    MPI_Waitany(4, q, &which, MPI_STATUS_IGNORE);
    s.order = mix(s.order, (unsigned long)which + 100);
  }
  maybe_die(4);
  for (int i = 0; i < LONG; i++) s.numbers[i] = in[i] + 1;
}

static unsigned long expected(int steps)
{
  unsigned long sum = 0;
  for (int k = 0; k < steps; k++)
    for (int r = 0; r < size; r++)
      if (r != rank) sum += mix((unsigned long)r, (unsigned long)k);
  return sum;
}

int main(int argc, char **argv)
{
  MPI_Comm dup, half;
  if (argc < 4) return 2;
  int steps = atoi(argv[2]);
  if (getenv("SLOW")) slow = atol(getenv("SLOW"));
  MPI_Init(&argc, &argv);
  slow = 0;
  setvbuf(stdout, NULL, _IOLBF, 0);
  victims = argv[3];
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  CHECK(size == atoi(argv[1]));
  MPI_Comm_dup(MPI_COMM_WORLD, &dup);
  MPI_Comm_split(dup, rank % 2, -rank, &half);
  if (rank == 0) config = 4711;
  MPI_Bcast(&config, 1, MPI_INT, 0, dup); /* before the first commit: goes the same way in who takes the rank over */
  for (int i = 0; i < LONG; i++) s.numbers[i] = rank;
  MPISP_Register(&s, sizeof s, MPI_BYTE);
  MPISP_Commit();
  CHECK(config == 4711);
  int here;
  MPISP_Is_replacement(&here);
  if (here) {
    char file[64];
    for (int i = 0, n; i < 20;
         i++) { /* what has nothing to do with messages is no call that the rank would have to make as well */
      MPI_Comm_size(dup, &n);
      MPI_Type_size(MPI_INT, &n);
    }
    for (int where = 0; where < 7; where++)
      for (int k = s.step; k < s.step + 2; k++) {
        double died;
        snprintf(file, sizeof file, "died.%d.%d.%d", rank, k, where);
        FILE *f = fopen(file, "r");
        if (f && fscanf(f, "%lf", &died) == 1 && now() - died < 60) printf("takeover %.3f ms\n", (now() - died) * 1e3);
        if (f) fclose(f);
      }
  }
  while (s.step < steps) {
    unsigned long all = 0, most = 0, mine = s.sum;
    maybe_die(0);
    wild(dup);
    ring(MPI_COMM_WORLD);
    MPI_Allreduce(&mine, &all, 1, MPI_UNSIGNED_LONG, MPI_SUM, half);
    MPI_Allreduce(&s.order, &most, 1, MPI_UNSIGNED_LONG, MPI_MAX, MPI_COMM_WORLD);
    maybe_die(5);
    s.order = mix(s.order, all + most);
    s.step++;
    if (s.step % 2 == 0) MPISP_Commit();
  }
  CHECK(s.sum == expected(steps));
  for (int i = 0; i < LONG; i++) CHECK(s.numbers[i] == (rank + size - steps % size) % size + steps);
  unsigned long end = 0;
  MPI_Reduce(&s.sum, &end, 1, MPI_UNSIGNED_LONG, MPI_BXOR, 0, dup);
  if (rank == 0) printf("done %d\n", s.step);
  maybe_die(7);
  MPI_Finalize();
  return check_failures != 0;
}
