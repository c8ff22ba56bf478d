/* dyprc.c - ulfm_dyprc: the way back to the point of the program, and meetings in which nothing is
 * on. See dyprc.h. */
#define _GNU_SOURCE
#include "dyprc.h"
#include <stdlib.h>
#include <string.h>
#include "coll.h"
#include "dp.h"
#include "error.h"
#include "runtime.h"

enum {
  STRIDE_MAX = 64,      /* malleable.StrideMax */
  LOOK_EVERY = 2000000, /* ns, malleable.LookEvery */
};

spx_dyprc_state spx_dyprc = {.world = MPI_COMM_NULL, .left = 1, .stride = 1};
#define d spx_dyprc

/* Whether the frame that has called setjmp still exists, and is this thread's. A frame that has
 * returned is below the present one. */
static __attribute__((noinline)) bool can_go_back(void)
{
  return d.armed && pthread_equal(d.thread, pthread_self()) &&
         (const char *)__builtin_frame_address(0) < d.frame;
}

static bool is_failure(int code)
{
  int class = spx_class_of(code);
  return class == MPIX_ERR_PROC_FAILED || class == MPIX_ERR_PROC_FAILED_PENDING ||
         class == MPIX_ERR_REVOKED;
}

/* The error handler of the communicator of all processes, and of those that are made of it: the
 * thread that can go back does, and recovers there. */
static void on_error(MPI_Comm *comm, int *code, ...)
{
  bool failure = is_failure(*code);
  if (failure && d.world != MPI_COMM_NULL) {
    if (!d.failed) d.failed = spx_now_ns();
    if (*comm != d.world) PMPIX_Comm_revoke(*comm); /* members may wait there for this process */
    PMPIX_Comm_revoke(d.world);
    if (can_go_back()) longjmp(d.point, 1);
  }
  if (!failure || (d.armed && pthread_equal(d.thread, pthread_self())))
    PMPI_Comm_call_errhandler(MPI_COMM_WORLD, *code);
}

static _Noreturn void leave(int status)
{
  d.armed = false;
  /* by its name: a tool that has put its own in its place sees the end of this process */
  MPI_Finalize();
  exit(status);
}

static int not_merged(void)
{
  return spx_raise(
      0, NULL, MPI_ERR_OTHER, spx_fn_name[spx_fn],
      "ulfm_dyprc_merge_child has not been called: it makes the communicator that is used here");
}

int spx_c_dyprc_merge_child(MPI_Comm *mworld)
{
  uint32_t fn = spx_fn;
  if (atomic_load(&spx_state) != SPX_INITIALIZED || !mworld || d.world != MPI_COMM_NULL) {
    spx_raise(
        0, NULL, MPI_ERR_OTHER, spx_fn_name[spx_fn],
        "it is called once, between MPI_Init and MPI_Finalize, with the address of a communicator");
    return 0;
  }
  PMPI_Comm_create_errhandler(on_error, &d.handler);
  *mworld = MPI_COMM_NULL;
  spx_fn = fn;
  int newcomer = 0, step = SPX_DYPRC_STAY;
  spx_frame f = {.fn = fn, .a = {{.p = mworld}, {.p = &newcomer}, {.p = &step}}};
  spx_go(&f);
  if (step == SPX_DYPRC_UNWANTED) leave(1);
  return newcomer;
}

void *spx_c_dyprc_point(MPI_Comm *mworld)
{
  (void)mworld;
  /* not below the end of the caller's frame */
  d.frame = (const char *)__builtin_frame_address(0) + 256;
  d.thread = pthread_self();
  d.armed = true; /* setjmp follows before anything else */
  return d.point;
}

int spx_c_dyprc_resume(MPI_Comm *mworld, int jumped, int newcomer)
{
  if (d.world == MPI_COMM_NULL) {
    not_merged();
    return 0;
  }
  int restart = 0, step = SPX_DYPRC_STAY;
  spx_frame f = {
      .fn = spx_fn,
      .a = {{.p = mworld}, {.i = jumped}, {.i = newcomer}, {.p = &restart}, {.p = &step}}};
  spx_go(&f);
  if (step == SPX_DYPRC_LEAVE) leave(0);
  return restart;
}

/* Ends a meeting without business here. Rank 0 needs the engine for each check for commands, the
 * other ranks never. */
static bool meet_quickly(void)
{
  uint64_t now = d.quick ? spx_now_ns() : 0;
  d.met = d.quick && (d.comm->rank != 0 || now - d.looked < LOOK_EVERY);
  if (!d.met) return false;
  int twice = 2 * d.stride;
  int64_t mine[SPX_DYPRC_NEWS] = {0, 0, 0, d.print, -d.print};
  if (d.comm->rank == 0) mine[2] = twice < STRIDE_MAX ? twice : STRIDE_MAX;
  d.err = spx_inside_greatest_of(d.comm, mine, d.news, SPX_DYPRC_NEWS);
  if (d.err || d.news[0] || d.news[1]) return false;
  d.left = d.stride = (int)d.news[2];
  d.last = now;
  return true;
}

int spx_c_dyprc_poll(MPI_Comm *mworld)
{
  if (SPX_UNLIKELY(d.world == MPI_COMM_NULL)) return not_merged();
  if (SPX_LIKELY(--d.left > 0 && !atomic_load_explicit(&d.comm->revoked, memory_order_relaxed)))
    return MPI_SUCCESS;
  if (SPX_LIKELY(meet_quickly())) return MPI_SUCCESS;
  int step = SPX_DYPRC_STAY;
  spx_frame f = {.fn = spx_fn, .a = {{.p = mworld}, {.p = &step}}};
  int err = spx_go(&f);
  if (step == SPX_DYPRC_LEAVE) leave(0);
  if (step == SPX_DYPRC_ANOTHER && can_go_back()) longjmp(d.point, 1);
  return err;
}
