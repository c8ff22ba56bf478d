/* init.c - MPI_Init, MPI_Init_thread, MPI_Finalize (MPI-5.0, 11.2): finding the job, adopting this process's place in the
 * memory file, starting and stopping the engine. docs/architecture.md, "Starting", is the contract with the launcher. */
#define _GNU_SOURCE
#include "dp.h"
#include "init.h"
#include "error.h"
#include "runtime.h"
#include "shim.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

pthread_t spx_main_thread;
int spx_thread_level = MPI_THREAD_SINGLE;

/* A decimal environment variable; -1 when it is not there or no number. */
static long env_number(const char *name)
{
  const char *text = getenv(name);
  char *end;
  if (!text || !*text) return -1;
  long v = strtol(text, &end, 10);
  return *end || v < 0 ? -1 : v;
}

/* Is this the memory file of the job that the environment names? */
static int is_our_file(int fd)
{
  spx_seg head;
  char hex[33];
  const char *job = getenv("SPX_JOB");
  if (fd < 0 || pread(fd, &head, sizeof head, 0) != (ssize_t)sizeof head || head.magic != SPX_SEG_MAGIC) return 0;
  for (int i = 0; i < 16; i++) snprintf(hex + 2 * i, 3, "%02x", head.job_id[i]);
  return job && strcasecmp(job, hex) == 0;
}

/* The memory file: the inherited descriptor or, if a wrapper closed that, the agent's. -1 when neither can be had. */
static int find_file(void)
{
  char path[64];
  long fd = env_number("SPX_FD"), agent = env_number("SPX_AGENT");
  if (is_our_file((int)fd)) return (int)fd;
  if (fd < 0 || agent < 0) return -1;
  snprintf(path, sizeof path, "/proc/%ld/fd/%ld", agent, fd);
  int other = open(path, O_RDWR | O_CLOEXEC);
  if (is_our_file(other)) return other;
  if (other >= 0) close(other);
  return -1;
}

/* The launcher that started this process as one of several, if it is one whose jobs cannot be joined; else NULL. Without
 * this check each of its processes would be alone in a world of its own. */
static const char *foreign_launcher(void)
{
  static const struct {
    const char *size, *name;
  } known[] = {{"PMI_SIZE", "a launcher that speaks PMI"},
               {"SLURM_STEP_NUM_TASKS", "srun"},
               {"OMPI_COMM_WORLD_SIZE", "Open MPI's mpirun"}};
  for (unsigned i = 0; i < sizeof known / sizeof *known; i++)
    if (env_number(known[i].size) > 1) return known[i].name;
  return NULL;
}

/* Joins the job that a launcher started, or makes a job of this process alone. */
static int join(const char *function)
{
  long proc = env_number("SPX_PROC");
  int fd;
  if (getenv("SPX_FD")) {
    fd = find_file();
    if (fd < 0 || proc < 0)
      return spx_raise(
          0, NULL, MPI_ERR_OTHER, function,
          "the environment says that spxrun started this process (SPX_FD=%s, SPX_PROC=%s, SPX_JOB=%s), but the job's "
          "memory file is not to be found; unset SPX_FD to run alone",
          getenv("SPX_FD"), proc < 0 ? "missing" : getenv("SPX_PROC"),
          getenv("SPX_JOB") ? getenv("SPX_JOB") : "missing");
    fcntl(fd, F_SETFD, FD_CLOEXEC); /* programs that this one starts are not in the job */
  } else {
    if (!getenv("SPX_JOB") && foreign_launcher())
      return spx_raise(0, NULL, MPI_ERR_OTHER, function,
                       "%s started this process as one of several, and libspx cannot join its job; start the program "
                       "with spxrun (or mpiexec, mpirun) of libspx",
                       foreign_launcher());
    spx_frame f = {.fn = SPX_IN_ALONE};
    int err = spx_go_internal(&f);
    if (err) return spx_raise(0, NULL, err, function, "%s", spx_detail_text());
    fd = (int)f.a[0].i;
    proc = 0;
  }
  int err = spx_dp_attach(fd, (uint32_t)proc);
  if (err)
    return spx_raise(0, NULL, err == ENOMEM || err == ENOSPC ? MPI_ERR_NO_MEM : MPI_ERR_OTHER, function,
                     "the job's memory file cannot be used: %s", strerror(err));
  spx_proc *me = spx_proc_of(spx_me);
  uint32_t none = SPX_OWNER_NONE;
  if (!__atomic_compare_exchange_n(&me->owner_state, &none, SPX_OWNER_INIT, false, __ATOMIC_ACQ_REL,
                                   __ATOMIC_ACQUIRE)) {
    uint32_t rank = me->world_rank, pid = me->pid;
    spx_dp_detach();
    return spx_raise(0, NULL, MPI_ERR_OTHER, function,
                     "another process (pid %u, or one that it started) is rank %u already; a program that a rank "
                     "starts is not in the job: "
                     "unset SPX_FD in its environment to run it alone",
                     pid, rank);
  }
  return MPI_SUCCESS;
}

static int init(const char *function, int required, int *provided)
{
  static _Atomic int begun;
  if (spx_forked)
    return spx_raise(0, NULL, MPI_ERR_OTHER, function,
                     "called in a process that was forked after libspx had been loaded; such a process may only exec");
  if (atomic_exchange(&begun, 1))
    return spx_raise(0, NULL, MPI_ERR_OTHER, function,
                     spx_state == SPX_FINALIZED ? "called after MPI_Finalize" : "called a second time");
  int err = join(function);
  if (err) {
    begun = 0;
    return err;
  }
  spx_main_thread = pthread_self();
  spx_thread_level = required < MPI_THREAD_SINGLE     ? MPI_THREAD_SINGLE
                     : required > MPI_THREAD_MULTIPLE ? MPI_THREAD_MULTIPLE
                                                      : required;
  spx_mt = spx_thread_level == MPI_THREAD_MULTIPLE;
  spx_proc_of(spx_me)->thread_level = (uint32_t)spx_thread_level;
  spx_guard_faults();
  spx_frame f = {.fn = SPX_IN_START};
  f.a[0].u = spx_me;
  f.a[1].i = spx_thread_level;
  err = spx_go_internal(&f);
  if (err) return spx_raise(0, NULL, err, function, "%s", spx_detail_text());
  spx_state = SPX_INITIALIZED;
  if (provided) *provided = spx_thread_level;
  return MPI_SUCCESS;
}

int spx_c_Init(int *argc, char ***argv)
{
  (void)argc; /* nothing is taken from the command line */
  (void)argv;
  return init("MPI_Init", MPI_THREAD_SINGLE, NULL);
}

/* Every level is given as required. */
int spx_c_Init_thread(int *argc, char ***argv, int required, int *provided)
{
  (void)argc;
  (void)argv;
  return init("MPI_Init_thread", required, provided);
}

/* SPX_COUNTERS=FILE: one line a rank, for tests and the bench: entries into Go, and what is left of them. */
static void write_counters(const spx_frame *f)
{
  const char *path = getenv("SPX_COUNTERS");
  char line[160];
  if (!path) return;
  int n = snprintf(line, sizeof line, "rank %u go_entries %llu goroutines %lld continuations %lld\n",
                   spx_proc_of(spx_me)->world_rank, (unsigned long long)spx_go_entries, (long long)f->a[0].i,
                   (long long)f->a[1].i);
  int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (fd < 0) return;
  if (write(fd, line, (size_t)n) != n) perror(path);
  close(fd);
}

/* ---- MPI_Finalize --------------------------------------------------------------------------------------------- */

static int may_receive(uint32_t peer)
{
  return __atomic_load_n(&spx_proc_of(peer)->owner_state, __ATOMIC_ACQUIRE) <= SPX_OWNER_INIT && !spx_proc_dead(peer);
}

/* A send that nobody will wait for any more (freed, or buffered), and that its receiver has yet to fetch. */
static void count_detached(spx_request *r, void *n)
{
  if (((r->flags & SPX_RF_FREED) || r->mode == SPX_M_BUFFERED) && may_receive(r->peer)) ++*(int *)n;
}

static int undelivered(void)
{
  int n = 0;
  spx_each_id(count_detached, &n);
  for (uint32_t i = 0; spx_tx_waiting() && i < spx_segment->nprocs; i++)
    n += (spx_txs[i].pend || spx_txs[i].stream) && may_receive(i);
  return n;
}

/* Waits until all that was sent and detached has been taken over. A receiver that leaves rings no bell: look again now and then. */
static void drain(void)
{
  for (;;) {
    struct timespec now;
    uint32_t ticket = spx_ticket();
    spx_progress();
    spx_lock();
    int n = undelivered();
    spx_unlock();
    if (n == 0) return;
    clock_gettime(CLOCK_MONOTONIC, &now);
    spx_wait_event(ticket, (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec + 10000000u);
  }
}

/* First the attributes of MPI_COMM_SELF go, last set first, while MPI still works (11.2.4). Then what was sent and detached is
 * delivered. There is no barrier: all that a peer could still need lies in the job's memory file, and processes that
 * leave a job that shrinks must not wait for those that stay. */
int spx_c_Finalize(void)
{
  spx_frame f = {.fn = SPX_IN_STOP};
  int err = spx_go_internal(&f);
  if (err) return spx_raise(0, NULL, err, "MPI_Finalize", "%s", spx_detail_text());
  drain();
  f = (spx_frame){.fn = SPX_IN_STOPPED};
  err = spx_go_internal(&f);
  if (err) return spx_raise(0, NULL, err, "MPI_Finalize", "%s", spx_detail_text());
  write_counters(&f);
  spx_state = SPX_FINALIZED;
  __atomic_store_n(&spx_proc_of(spx_me)->owner_state, SPX_OWNER_FINALIZED, __ATOMIC_RELEASE);
  return MPI_SUCCESS;
}
