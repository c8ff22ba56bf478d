/* stacks.c - MPI on stacks that are not the thread's, and on small ones: user-level threads (makecontext) and threads with 64 KiB. MPI_Init, everything
 * else and MPI_Finalize are called on coroutines of 40 KiB, each with a page below it that may not be touched; error handlers leave by longjmp,
 * attribute functions change to another coroutine, and a coroutine goes on in another thread. */
// run: n=2 timeout=60
// run: n=3 env=SPX_CMA=0 timeout=60
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>
#include "../check.h"

enum { ROOM = 40 << 10, SMALL_THREAD = 64 << 10, PAGE = 64 << 10 };

typedef struct coroutine {
  ucontext_t at, back;
  void (*fn)(struct coroutine *);
  char *memory;
  int over;
  MPI_Comm comm;
} coroutine;

static int rank, size, keyval;
static coroutine *volatile starting;

static void first(void)
{
  coroutine *c = starting;
  c->fn(c);
  c->over = 1;
  swapcontext(&c->at, &c->back);
}

static void make(coroutine *c, void (*fn)(coroutine *))
{
  memset(c, 0, sizeof *c);
  c->fn = fn;
  c->memory = mmap(NULL, PAGE + ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (c->memory == MAP_FAILED || mprotect(c->memory, PAGE, PROT_NONE)) abort();
  getcontext(&c->at);
  c->at.uc_stack.ss_sp = c->memory + PAGE;
  c->at.uc_stack.ss_size = ROOM;
  makecontext(&c->at, first, 0);
}

static void resume(coroutine *c)
{
  starting = c;
  swapcontext(&c->back, &c->at);
}

static void yield(coroutine *c) { swapcontext(&c->at, &c->back); }

static void drop(coroutine *c)
{
  CHECK(c->over);
  munmap(c->memory, PAGE + ROOM);
}

static void run(void (*fn)(coroutine *))
{
  coroutine c;
  make(&c, fn);
  resume(&c);
  drop(&c);
}

/* ---- what is called on them --------------------------------------------------------------------------------------- */

enum { LONG = 1 << 18 };

static void point_to_point(MPI_Comm comm)
{
  int me, n, *out = malloc(2 * LONG * sizeof *out), *in = malloc(2 * LONG * sizeof *in);
  MPI_Comm_rank(comm, &me);
  MPI_Comm_size(comm, &n);
  MPI_Datatype pairs, ones;
  MPI_Type_vector(LONG / 2, 2, 4, MPI_INT, &pairs);
  MPI_Type_vector(LONG, 1, 2, MPI_INT, &ones);
  MPI_Type_commit(&pairs);
  MPI_Type_commit(&ones);
  for (int count = 1; count <= LONG; count *= 64) {
    for (int i = 0; i < count; i++) out[i] = me + i, in[i] = -1;
    MPI_Sendrecv(out, count, MPI_INT, (me + 1) % n, 1, in, count, MPI_INT, (me + n - 1) % n, 1, comm,
                 MPI_STATUS_IGNORE);
    CHECK(in[count - 1] == (me + n - 1) % n + count - 1);
  }
  for (int to = 0; to < 2; to++) { /* to itself, and to the neighbour: gaps on both sides, in other places */
    int peer = to ? (me + 1) % n : me, from = to ? (me + n - 1) % n : me;
    for (int i = 0; i < 2 * LONG; i++) out[i] = i, in[i] = -1;
    MPI_Sendrecv(out, 1, pairs, peer, 2, in, 1, ones, from, 2, comm, MPI_STATUS_IGNORE);
    for (int i = 0; i < LONG; i += 999) CHECK(in[2 * i] == i / 2 * 4 + i % 2);
  }
  MPI_Request r[2];
  MPI_Irecv(in, LONG, MPI_INT, MPI_ANY_SOURCE, 3, comm, &r[0]);
  MPI_Isend(out, LONG, MPI_INT, (me + 1) % n, 3, comm, &r[1]);
  MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
  MPI_Type_free(&pairs);
  MPI_Type_free(&ones);
  free(out);
  free(in);
}

static void add(void *in, void *inout, int *n, MPI_Datatype *type)
{
  (void)type;
  for (int i = 0; i < *n; i++) ((int *)inout)[i] += ((int *)in)[i];
}

static void collectives(MPI_Comm comm)
{
  int me, n, sum, *all = malloc(LONG * sizeof *all), *other = malloc(LONG * sizeof *other);
  MPI_Op op;
  MPI_Comm_rank(comm, &me);
  MPI_Comm_size(comm, &n);
  MPI_Op_create(add, 1, &op);
  for (int i = 0; i < LONG; i++) all[i] = i;
  MPI_Barrier(comm);
  MPI_Bcast(all, LONG, MPI_INT, 0, comm);
  MPI_Allreduce(&me, &sum, 1, MPI_INT, op, comm);
  CHECK(sum == n * (n - 1) / 2);
  MPI_Allreduce(all, other, LONG, MPI_INT, MPI_SUM, comm);
  CHECK(other[LONG - 1] == n * (LONG - 1));
  MPI_Alltoall(all, LONG / 8, MPI_INT, other, LONG / 8, MPI_INT, comm);
  MPI_Gather(all, 10, MPI_INT, other, 10, MPI_INT, 0, comm);
  MPI_Scan(all, other, 100, MPI_INT, op, comm);
  MPI_Op_free(&op);
  free(all);
  free(other);
}

static void objects(MPI_Comm comm)
{
  MPI_Comm dup, half;
  MPI_Win win;
  MPI_Info info;
  double *base, x = rank;
  int n, me;
  char name[MPI_MAX_OBJECT_NAME];
  MPI_Comm_dup(comm, &dup);
  MPI_Comm_rank(dup, &me);
  MPI_Comm_size(dup, &n);
  MPI_Comm_split(dup, me % 2, 0, &half);
  MPI_Barrier(half);
  MPI_Comm_free(&half);
  MPI_Comm_set_name(dup, "a name");
  MPI_Comm_get_name(dup, name, &n);
  CHECK(strcmp(name, "a name") == 0);
  MPI_Info_create(&info);
  MPI_Info_set(info, "key", "value");
  MPI_Win_allocate(8 * 1000, 8, info, dup, &base, &win);
  MPI_Comm_size(dup, &n);
  MPI_Win_fence(0, win);
  MPI_Put(&x, 1, MPI_DOUBLE, (me + 1) % n, 3, 1, MPI_DOUBLE, win);
  MPI_Accumulate(&x, 1, MPI_DOUBLE, 0, 7, 1, MPI_DOUBLE, MPI_SUM, win);
  MPI_Win_fence(0, win);
  MPI_Win_free(&win);
  MPI_Info_free(&info);
  MPI_Comm_free(&dup);
}

static void files(MPI_Comm comm)
{
  char path[] = "/tmp/spx-stacks-XXXXXX";
  int fd = rank == 0 ? mkstemp(path) : -1, back[4] = {0}, out[4] = {1, 2, 3, rank};
  MPI_Bcast(path, sizeof path, MPI_CHAR, 0, comm);
  MPI_File f;
  CHECK(MPI_File_open(comm, path, MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &f) == MPI_SUCCESS);
  CHECK(MPI_File_write_at_all(f, 16 * rank, out, 4, MPI_INT, MPI_STATUS_IGNORE) == MPI_SUCCESS);
  CHECK(MPI_File_read_at(f, 16 * rank, back, 4, MPI_INT, MPI_STATUS_IGNORE) == MPI_SUCCESS);
  CHECK(back[3] == rank);
  MPI_File_close(&f);
  if (fd >= 0) close(fd), unlink(path);
}

static __thread jmp_buf out_of_error;
static void leave_by_jump(MPI_Comm *comm, int *code, ...)
{
  char text[MPI_MAX_ERROR_STRING];
  int n;
  (void)comm;
  MPI_Error_string(*code, text, &n);
  longjmp(out_of_error, 1);
}

static void errors(void)
{
  MPI_Comm dup;
  MPI_Errhandler h;
  MPI_Comm_dup(MPI_COMM_SELF, &dup);
  MPI_Comm_set_errhandler(dup, MPI_ERRORS_RETURN);
  CHECK_CLASS(MPI_Send(&rank, 1, MPI_INT, 9, 0, dup), MPI_ERR_RANK);
  CHECK_CLASS(MPI_Comm_create_group(dup, MPI_GROUP_NULL, 0, &dup), MPI_ERR_GROUP);
  MPI_Comm_create_errhandler(leave_by_jump, &h);
  MPI_Comm_set_errhandler(dup, h);
  for (volatile int i = 0; i < 100; i++) {
    if (setjmp(out_of_error)) continue;
    if (i % 2)
      MPI_Send(&rank, 1, MPI_INT, 9, 0, dup);
    else
      MPI_Comm_split(dup, -7, 0, &dup);
    CHECK(!"reached");
  }
  MPI_Errhandler_free(&h);
  MPI_Comm_free(&dup);
}

/* ---- functions of the program that MPI calls, and that change to another coroutine ------------------------------------- */

static int copy_and_yield(MPI_Comm old, int key, void *extra, void *in, void *out, int *flag)
{
  coroutine *c = in;
  (void)old, (void)key, (void)extra;
  yield(c);
  *(void **)out = c;
  *flag = 1;
  return MPI_SUCCESS;
}

/* Duplicates twice; in each of them it is left, and comes back later, maybe in another thread. */
static void duplicates(coroutine *c)
{
  MPI_Comm_dup(MPI_COMM_SELF, &c->comm);
  MPI_Comm_set_attr(c->comm, keyval, c);
  for (int i = 0; i < 2; i++) {
    MPI_Comm dup = MPI_COMM_NULL;
    void *value;
    int there, result;
    CHECK(MPI_Comm_dup(c->comm, &dup) == MPI_SUCCESS);
    MPI_Comm_compare(dup, c->comm, &result);
    CHECK(result == MPI_CONGRUENT);
    MPI_Comm_get_attr(dup, keyval, &value, &there);
    CHECK(there && value == c);
    MPI_Comm_free(&dup);
  }
  MPI_Comm_free(&c->comm);
}

static void *go_on(void *c)
{
  resume(c);
  return NULL;
}

static void interleaved(int threads)
{
  enum { N = 4 };
  static const int orders[][N] = {{0, 1, 2, 3}, {3, 2, 1, 0}, {2, 0, 3, 1}};
  coroutine c[N];
  for (int i = 0; i < N; i++) make(&c[i], duplicates);
  for (int round = 0; round < 3; round++)
    for (int k = 0; k < N; k++) {
      pthread_t t;
      if (threads && pthread_create(&t, NULL, go_on, &c[orders[round][k]]) == 0)
        pthread_join(t, NULL);
      else
        resume(&c[orders[round][k]]);
    }
  for (int i = 0; i < N; i++) drop(&c[i]);
}

/* ------------------------------------------------------------------------------------------------------------------- */

static void begins(coroutine *c)
{
  int level;
  (void)c;
  MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_create_keyval(copy_and_yield, MPI_COMM_NULL_DELETE_FN, &keyval, NULL);
}

static void works(coroutine *c)
{
  (void)c;
  point_to_point(MPI_COMM_WORLD);
  collectives(MPI_COMM_WORLD);
  objects(MPI_COMM_WORLD);
  files(MPI_COMM_WORLD);
  errors();
}

static void *on_small_thread(void *comm)
{
  point_to_point(*(MPI_Comm *)comm);
  collectives(*(MPI_Comm *)comm);
  errors();
  return NULL;
}

static void small_threads(void)
{
  enum { N = 3 };
  MPI_Comm comm[N];
  pthread_t t[N];
  pthread_attr_t a;
  pthread_attr_init(&a);
  pthread_attr_setstacksize(&a, SMALL_THREAD);
  for (int i = 0; i < N; i++) MPI_Comm_dup(MPI_COMM_WORLD, &comm[i]);
  for (int i = 0; i < N; i++) CHECK(pthread_create(&t[i], &a, on_small_thread, &comm[i]) == 0);
  for (int i = 0; i < N; i++) pthread_join(t[i], NULL);
  for (int i = 0; i < N; i++) MPI_Comm_free(&comm[i]);
}

static void ends(coroutine *c)
{
  (void)c;
  MPI_Comm_free_keyval(&keyval);
  MPI_Finalize();
}

int main(void)
{
  run(begins);
  run(works);
  interleaved(0);
  interleaved(1);
  small_threads();
  works(NULL);
  run(works);
  run(ends);
  return check_status();
}
