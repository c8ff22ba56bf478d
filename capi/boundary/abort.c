/* abort.c - the end of a job that cannot continue: MPI_Abort, fatal errors, crashes. All in C: it
 * must work whatever state the engine is in.
 *
 * The agents decide which process prints (once.h); without an answer it is the first process to
 * claim spx_seg.abort_claim. The agent sees owner_state ABORTED and ends all others. */
#define _GNU_SOURCE
#include "error.h"
#include "once.h"
#include "runtime.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

const char *spx_whoami(void)
{
  static SPX_TLS char *text;
  char host[64] = "?", job[17] = "";
  if (!text && !(text = malloc(160))) return "?";
  gethostname(host, sizeof host - 1);
  if (spx_segment) {
    for (int i = 0; i < 4; i++) /* as spxrun and spxctl write it, its beginning */
      snprintf(job + 2 * i, 3, "%02x", spx_segment->job_id[7 - i]);
    snprintf(text, 160, "rank %u of %u on %s (pid %d, job %s)", spx_proc_of(spx_me)->world_rank,
             spx_world ? (uint32_t)spx_world->size : spx_segment->world_size, host, (int)getpid(),
             job);
  } else {
    const char *rank = secure_getenv("SPX_RANK");
    if (!rank) rank = secure_getenv("PMI_RANK");
    if (!rank) rank = secure_getenv("PMIX_RANK");
    snprintf(text, 160, "%s%s on %s (pid %d)", rank ? "rank " : "a process", rank ? rank : "", host,
             (int)getpid());
  }
  return text;
}

/* The program's output so far should not be lost; but a stream whose lock another thread holds is
 * left alone. */
static void flush_output(void)
{
  FILE *streams[] = {stdout, stderr};
  for (int i = 0; i < 2; i++)
    if (ftrylockfile(streams[i]) == 0) {
      fflush(streams[i]);
      funlockfile(streams[i]);
    }
}

static void print(const char *text)
{
  size_t size = strlen(text) + 256;
  char *line = malloc(size);
  if (!line) return;
  int n = snprintf(line, size, "libspx: %s\n  on %s\n", text, spx_whoami());
  if (n >= (int)size) n = (int)size - 1;
  for (int done = 0; done < n;) {
    ssize_t w = write(2, line + done, (size_t)(n - done));
    if (w < 0 && errno != EINTR) break;
    if (w > 0) done += (int)w;
  }
  free(line);
}

bool spx_under_launcher;

/* A launcher that ends a job may read no more of the output of its processes: the data in the pipe
 * to it are given time, and so are the data that it has read, on their way to the printer. */
static void await_printed(void)
{
  struct timespec ms = {0, 1000000}, on_its_way = {0, 50000000};
  int n;
  if (!spx_under_launcher) return;
  for (int i = 0; i < 200 && ioctl(2, FIONREAD, &n) == 0 && n > 0; i++) nanosleep(&ms, NULL);
  nanosleep(&on_its_way, NULL);
}

static int exit_status(int code) { return (code & 255) ? code & 255 : 1; }

/* Spawned, and not connected with its parents yet: its end is theirs to deal with, and ends no
 * job. */
static bool nobodys(void)
{
  const char *parent = secure_getenv("SPX_PARENT");
  const spx_proc *me = spx_proc_of(spx_me);
  return parent && *parent && me->world_id != 0 && !(me->ft_flags & SPX_FT_MET);
}

/* Makes this process's code the job's, unless another one's is: true for the first process of this
 * host. */
static bool claim(int code)
{
  uint32_t nobody = 0;
  if (nobodys()) return true;
  if (!__atomic_compare_exchange_n(&spx_segment->abort_claim, &nobody,
                                   spx_proc_of(spx_me)->world_rank + 1, false, __ATOMIC_ACQ_REL,
                                   __ATOMIC_ACQUIRE))
    return false;
  __atomic_store_n(&spx_segment->abort_code, code, __ATOMIC_RELEASE);
  return true;
}

/* A process of another launcher's job that is not in it yet joins it, so that one of all its ranks
 * reports the error. */
static int enter_early(const char *text, int *turn)
{
  if (spx_segment || spx_in_go || spx_forked || secure_getenv("SPX_JOB")) return SPX_EARLY_NOTHING;
  if (!secure_getenv("PMI_FD") && !secure_getenv("PMI_PORT") && !secure_getenv("PMIX_RANK"))
    return SPX_EARLY_NOTHING;
  spx_frame f = {.fn = SPX_IN_EARLY};
  f.a[0].p = (void *)(uintptr_t)text;
  if (spx_go_internal(&f) != MPI_SUCCESS) return SPX_EARLY_NOTHING;
  *turn = -1;
  spx_under_launcher = true;
  if (f.a[1].i == SPX_EARLY_FIRST) *turn = (int)f.a[2].i;
  if (f.a[1].i == SPX_EARLY_JOINED && spx_dp_attach((int)f.a[2].i, (uint32_t)f.a[3].i) != 0)
    return SPX_EARLY_NOTHING;
  return (int)f.a[1].i;
}

/* Whether this process may report why it ends the job. If not, another process has reported this,
 * or another cause of the end. */
static bool may_say_end(int status, const char *text, int *turn)
{
  int early = enter_early(text, turn);
  if (early == SPX_EARLY_FIRST || early == SPX_EARLY_AGAIN) return early == SPX_EARLY_FIRST;
  /* a forked child ends alone */
  if (!spx_segment || spx_forked) return spx_may_say(text, text, turn);
  bool may = spx_may_say("the end of the job", text, turn), first = claim(status);
  return *turn >= 0 || (may && first);
}

void spx_end_job(int code, const char *text)
{
  flush_output();
  int turn;
  if (may_say_end(exit_status(code), text, &turn)) {
    print(text);
    await_printed();
    spx_said(turn);
  }
  if (spx_segment && !spx_forked) spx_publish_owner(SPX_OWNER_ABORTED);
  _exit(exit_status(code));
}

/* A process of this job that lives is not in c. */
static bool leaves_some(const spx_comm *c)
{
  for (uint32_t i = 0; i < spx_segment->nprocs; i++) {
    const spx_proc *p = spx_proc_of(i);
    bool in =
        p->home_job != 0 || __atomic_load_n(&p->agent_state, __ATOMIC_ACQUIRE) != SPX_AGENT_STARTED;
    for (int k = 0; k < c->size && !in; k++) in = c->local[k] == i;
    if (!in) return true;
  }
  return false;
}

void spx_end_comm(spx_comm *c, int code, const char *text)
{
  if (!c || !spx_segment || (c->flags & SPX_C_INTER) || !leaves_some(c)) spx_end_job(code, text);
  flush_output();
  int turn;
  if (spx_may_say(text, text, &turn)) {
    print(text);
    spx_said(turn);
  }
  spx_publish_owner(SPX_OWNER_ABORTED);
  for (int i = 0; i < c->size; i++) {
    spx_proc *p = spx_proc_of(c->local[i]);
    if (c->local[i] == spx_me || p->home_job != 0 ||
        __atomic_load_n(&p->agent_state, __ATOMIC_ACQUIRE) != SPX_AGENT_STARTED)
      continue;
    /* Its agent ends it, by a pidfd: ours looks when this process has ended. The pid in the entry
     * may be that of a wrapper, or of another process by now. */
    __atomic_store_n(&p->owner_state, SPX_OWNER_ABORTED, __ATOMIC_RELEASE);
  }
  _exit(exit_status(code));
}

void spx_fatal(int code, const char *fmt, ...)
{
  char text[2048];
  const char *fn = spx_fn ? spx_fn_name[spx_fn] : NULL;
  int n =
      fn ? snprintf(text, sizeof text, "%s: fatal: ", fn) : snprintf(text, sizeof text, "fatal: ");
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(text + n, sizeof text - (size_t)n, fmt, ap);
  va_end(ap);
  spx_end_job(code, text);
}

void spx_crash(uint32_t fn, const char *text, size_t len)
{
  char *all = malloc(len + 256);
  if (!all) spx_end_job(MPI_ERR_INTERN, "internal error, and no memory to tell it");
  int n = snprintf(all, 256, "%s: internal error, please report it\n",
                   fn < SPX_IN_FIRST ? spx_fn_name[fn] : "the engine");
  memcpy(all + n, text, len);
  all[n + len] = 0;
  spx_end_job(MPI_ERR_INTERN, all);
}

/* MPI-5.0, 12.4.2: ends all processes of comm (or, where they cannot be separated, of the job) with
 * this exit code, 1 for 0. */
int spx_c_Abort(spx_comm *comm, int errorcode)
{
  char text[MPI_MAX_OBJECT_NAME + 64];
  snprintf(text, sizeof text, "MPI_Abort(%s, %d)", comm && comm->name[0] ? comm->name : "comm",
           errorcode);
  spx_end_comm(comm, errorcode, text);
}
