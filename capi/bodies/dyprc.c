/* dyprc.c - ulfm_dyprc: changing the number of processes while the program runs, and surviving their loss. See dyprc.h. */
#define _GNU_SOURCE
#include "dyprc.h"
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "error.h"
#include "runtime.h"
#include "stat.h"

enum {
  STRIDE_MAX = 64,         /* calls of ulfm_dyprc_poll from one meeting to the next, at most */
  MEETING_EVERY = 2000000, /* ns between meetings that are aimed at */
};

spx_dyprc_state spx_dyprc = {.world = MPI_COMM_NULL, .former = MPI_COMM_NULL, .stride = 1};
SPX_TLS int spx_dyprc_busy;
#define d spx_dyprc

uint64_t spx_dyprc_now(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ---- the communicator of all processes ----------------------------------------------------------------------- */

void spx_dyprc_begin(const char *how)
{
  if (!d.began) {
    d.began = spx_dyprc_now();
    d.before = d.size;
  }
  d.how = how;
}

void spx_dyprc_adopt(MPI_Comm next)
{
  if (d.world != MPI_COMM_NULL) PMPI_Comm_free(&d.world);
  d.world = next;
  d.comm = (spx_comm *)spx_get(SPX_K_COMM, next);
  PMPI_Comm_set_errhandler(next, d.handler);
  PMPI_Comm_set_name(next, "mworld");
  PMPI_Comm_rank(next, &d.rank);
  PMPI_Comm_size(next, &d.size);
  d.left = d.stride = 1;
  d.restart = true;
  d.told = false;
}

static bool have_left(const spx_comm *c)
{
  for (int i = d.stayed; i < c->size; i++)
    if (!spx_proc_left(c->local[i])) return false;
  return true;
}

void spx_dyprc_bury(bool wait)
{
  const spx_comm *c = d.former == MPI_COMM_NULL ? NULL : (const spx_comm *)spx_get(SPX_K_COMM, d.former);
  if (!c) return;
  while (wait && !have_left(c)) { /* they are on their way: nothing rings when they are there */
    spx_progress();
    sched_yield();
  }
  if (have_left(c)) PMPI_Comm_free(&d.former);
}

int spx_dyprc_decide(MPI_Comm comm, uint32_t *flags, MPI_Comm *next)
{
  spx_frame f = {.fn = SPX_IN_DYPRC_DECIDE};
  f.a[0].p = (void *)comm;
  f.a[1].p = flags;
  f.a[2].p = next;
  return spx_go_internal(&f);
}

void spx_dyprc_recover(void)
{
  MPI_Comm next = MPI_COMM_NULL;
  uint32_t flags = 0;
  spx_dyprc_begin("after a failure");
  PMPIX_Comm_revoke(d.world);
  int err = spx_dyprc_decide(d.world, &flags, &next);
  if (err != MPI_SUCCESS) spx_fatal(err, "the survivors cannot form a communicator: %s", spx_detail_text());
  spx_dyprc_adopt(next);
}

/* ---- going back ------------------------------------------------------------------------------------------------ */

/* The frame that has called setjmp is there still, and it is this thread's. A frame that has returned lies below the present one. */
static __attribute__((noinline)) bool can_go_back(void)
{
  return d.armed && pthread_equal(d.thread, pthread_self()) && (const char *)__builtin_frame_address(0) < d.frame;
}

static bool is_failure(int code)
{
  int class = spx_class_of(code);
  return class == MPIX_ERR_PROC_FAILED || class == MPIX_ERR_PROC_FAILED_PENDING || class == MPIX_ERR_REVOKED;
}

/* The error handler of the communicator of all processes, and of those that are made of it. */
static void on_error(MPI_Comm *comm, int *code, ...)
{
  if (spx_dyprc_busy) return; /* who has called sees the code */
  spx_dyprc_busy++;
  bool failure = is_failure(*code), ours = d.world != MPI_COMM_NULL;
  if (failure && ours && *comm != d.world) PMPIX_Comm_revoke(*comm); /* others may wait there for us */
  if (failure && ours && can_go_back()) {
    spx_dyprc_recover();
    spx_dyprc_busy--;
    longjmp(d.point, 1);
  }
  if (failure && ours) PMPIX_Comm_revoke(d.world); /* the thread that can go back will */
  spx_dyprc_busy--;
  if (!failure || (d.armed && pthread_equal(d.thread, pthread_self())))
    PMPI_Comm_call_errhandler(MPI_COMM_WORLD, *code);
}

/* ---- the end of a change --------------------------------------------------------------------------------------- */

/* All have met after a change: it is over. */
static void changed(void)
{
  if (!d.began) return;
  double seconds = (double)(spx_dyprc_now() - d.began) * 1e-9;
  if (d.rank == 0) fprintf(stderr, "ulfm_dyprc: %d -> %d processes in %.6f s (%s)\n", d.before, d.size, seconds, d.how);
  d.began = 0;
  d.seconds += seconds;
  if (d.order.killing && d.size < d.order.from) d.order.killing = 0;
}

/* The last of the commands that were taken has been carried out, or cannot be. */
static void conclude(void)
{
  if (!d.order.source || d.order.killing || d.order.text[d.order.at]) return;
  if (d.rank == 0) spx_dyprc_done();
  d.order.source = 0;
  d.seconds = 0;
}

/* What was made of the communicator of all processes has its error handler, and is of no use either: somebody may wait there for a
 * process that has gone back already. */
void spx_dyprc_revoked(const spx_comm *c)
{
  const spx_errh *handler = (const spx_errh *)spx_get(SPX_K_ERRH, d.handler);
  if (c != d.comm || !handler) return;
  for (spx_comm *made; (made = spx_mark_revoked(handler)); spx_unref(SPX_K_COMM, &made->o))
    for (spx_comm *part = made; part; part = part->inner) {
      atomic_store(&part->revoked, 1);
      spx_comm_revoked(part);
    }
}

/* ---- meeting --------------------------------------------------------------------------------------------------- */

/* At rank 0: after how many calls of ulfm_dyprc_poll the next meeting is. */
static int next_stride(void)
{
  uint64_t now = spx_dyprc_now(), one = d.met ? (now - d.met) / (uint64_t)d.stride : MEETING_EVERY;
  d.met = now;
  uint64_t want = one ? MEETING_EVERY / one : STRIDE_MAX;
  if (want > (uint64_t)d.stride * 2) want = (uint64_t)d.stride * 2;
  return want < 1 ? 1 : want > STRIDE_MAX ? STRIDE_MAX : (int)want;
}

/* Tells orders apart. */
static int64_t print_of(const spx_dyprc_orders *o)
{
  const unsigned char *at = (const unsigned char *)o;
  uint64_t h = 14695981039346656037u;
  for (size_t i = 0; i < sizeof *o; i++) h = (h ^ at[i]) * 1099511628211u;
  return (int64_t)(h >> 1);
}

/* All processes meet, and carry out what there is to do. *restart in: this one comes after a change; out: some do. Returns true when
 * there is another communicator now. */
static bool meet(bool *restart)
{
  /* somebody restarts; there is a command; calls until the next meeting; the greatest and the least of the orders that they know */
  int64_t news[5] = {*restart};
  if (d.rank == 0) {
    spx_dyprc_look();
    news[1] = d.order.source && !d.order.killing && d.order.text[d.order.at];
    news[2] = next_stride();
  }
  news[3] = print_of(&d.order);
  news[4] = -news[3];
  int err = PMPI_Allreduce(MPI_IN_PLACE, news, 5, MPI_INT64_T, MPI_MAX, d.world);
  bool known = news[3] == -news[4]; /* by all, as after most failures: nobody has to be told */
  if (news[0] && (known || d.rank == 0)) d.order.epoch++;
  if (err == MPI_SUCCESS && !known && (news[0] || news[1]))
    err = PMPI_Bcast(&d.order, sizeof d.order, MPI_BYTE, 0, d.world);
  if (err != MPI_SUCCESS) {
    spx_dyprc_recover();
    return true;
  }
  d.left = d.stride = news[0] ? 1 : (int)news[2];
  *restart = news[0] != 0;
  spx_dyprc_bury(false);
  if (d.rank == 0 && !d.told) spx_dyprc_tell();
  if (news[0]) changed();
  bool another = news[1] && spx_dyprc_carry_out();
  if (!another) conclude();
  return another;
}

/* ---- what programs call ---------------------------------------------------------------------------------------- */

static int not_merged(void)
{
  return spx_raise(0, NULL, MPI_ERR_OTHER, spx_fn_name[spx_fn],
                   "ulfm_dyprc_merge_child has not been called: it makes the communicator that is used here");
}

/* A process that was spawned, but for another reason, begins like the first ones. */
static bool is_newcomer(void)
{
  MPI_Comm parent;
  const char *mark = secure_getenv("SPX_DYPRC_NEWCOMER");
  PMPI_Comm_get_parent(&parent);
  return mark && *mark && parent != MPI_COMM_NULL;
}

static void join(void)
{
  MPI_Comm inter, all;
  PMPI_Comm_get_parent(&inter);
  unsetenv("SPX_DYPRC_NEWCOMER"); /* what this process starts is none */
  if (spx_dyprc_merge(&inter, 1, &all) != MPI_SUCCESS) {
    fprintf(stderr, "ulfm_dyprc: the processes that have spawned this one are gone; it ends\n");
    MPI_Finalize();
    exit(1);
  }
  spx_dyprc_adopt(all);
  d.newcomer = true;
}

int spx_c_dyprc_merge_child(MPI_Comm *mworld)
{
  uint32_t fn = spx_fn;
  if (atomic_load(&spx_state) != SPX_INITIALIZED || !mworld || d.world != MPI_COMM_NULL) {
    spx_raise(0, NULL, MPI_ERR_OTHER, spx_fn_name[fn],
              "it is called once, between MPI_Init and MPI_Finalize, with the address of a communicator");
    return 0;
  }
  spx_dyprc_busy++;
  PMPI_Comm_create_errhandler(on_error, &d.handler);
  if (is_newcomer())
    join();
  else {
    MPI_Comm all;
    if (PMPIX_Comm_shrink(MPI_COMM_WORLD, &all) == MPI_SUCCESS) { /* a duplicate, without those that have died since */
      spx_dyprc_adopt(all);
      d.restart = false;
      if (d.rank == 0) spx_dyprc_pass_over();
      PMPI_Bcast(&d.order, sizeof d.order, MPI_BYTE, 0,
                 d.world); /* has somebody died, the first meeting will show it */
    }
  }
  spx_dyprc_busy--;
  spx_fn = fn;
  *mworld = d.world;
  return d.newcomer;
}

void *spx_c_dyprc_point(MPI_Comm *mworld)
{
  (void)mworld;
  d.frame = (const char *)__builtin_frame_address(0) + 256; /* not below the end of the caller's frame */
  d.thread = pthread_self();
  d.armed = true; /* setjmp follows before anything else */
  return d.point;
}

int spx_c_dyprc_resume(MPI_Comm *mworld, int jumped, int newcomer)
{
  uint32_t fn = spx_fn;
  if (d.world == MPI_COMM_NULL) {
    not_merged();
    return 0;
  }
  spx_dyprc_busy++;
  bool restart;
  d.restart = d.restart || jumped || (newcomer && d.newcomer);
  do restart = d.restart;
  while (meet(&restart));
  d.restart = d.newcomer = false;
  spx_dyprc_busy--;
  spx_fn = fn;
  *mworld = d.world;
  return restart;
}

int spx_c_dyprc_poll(MPI_Comm *mworld)
{
  uint32_t fn = spx_fn;
  if (SPX_UNLIKELY(d.world == MPI_COMM_NULL)) return not_merged();
  if (SPX_LIKELY(--d.left > 0 && !atomic_load_explicit(&d.comm->revoked, memory_order_relaxed))) return MPI_SUCCESS;
  spx_dyprc_busy++;
  bool restart = d.restart, another = meet(&restart);
  spx_dyprc_busy--;
  if (another && can_go_back()) longjmp(d.point, 1);
  spx_fn = fn;
  *mworld = d.world;
  return MPI_SUCCESS;
}
