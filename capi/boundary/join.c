/* join.c - how a process finds its job: the contract with the launcher is docs/starting.md. */
#define _GNU_SOURCE
#include "gate.h"
#include "init.h"
#include "runtime.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

/* The error code, with its detail text. */
#define refuse(code, ...) (spx_detail(__VA_ARGS__), (code))

/* A decimal environment variable; -1 when it is not there or no number. */
static long env_number(const char *name)
{
  const char *text = secure_getenv(name);
  char *end;
  if (!text || !*text) return -1;
  long v = strtol(text, &end, 10);
  return *end || v < 0 ? -1 : v;
}

/* Whether this is the memory file of the job that the environment names. */
static int is_our_file(int fd)
{
  spx_seg head;
  char hex[33];
  const char *job = secure_getenv("SPX_JOB");
  if (fd < 0 || pread(fd, &head, sizeof head, 0) != (ssize_t)sizeof head ||
      head.magic != SPX_SEG_MAGIC)
    return 0;
  for (int i = 0; i < 16; i++) snprintf(hex + 2 * i, 3, "%02x", head.job_id[i]);
  return job && strcasecmp(job, hex) == 0;
}

/* The memory file: the inherited descriptor or, if a wrapper closed that, the agent's. -1 when
 * neither can be had. */
static int find_file(void)
{
  char path[64];
  long fd = env_number("SPX_FD"), agent = env_number("SPX_AGENT");
  if (is_our_file((int)fd)) return (int)fd;
  if (fd < 0 || agent < 0) return -1;
  snprintf(path, sizeof path, "/proc/%ld/fd/%ld", agent, fd);
  int other = open(path, O_RDWR | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (is_our_file(other)) return other;
  if (other >= 0) close(other);
  return -1;
}

/* Joins the job that a launcher started, spxrun or another, or makes a job of this process
 * alone. */
int spx_join(void)
{
  long proc = env_number("SPX_PROC");
  int fd;
  spx_gate_wait();
  if (secure_getenv("SPX_FD")) {
    fd = find_file();
    if (fd < 0 || proc < 0)
      return refuse(MPI_ERR_OTHER,
                    "the environment says that spxrun started this process (SPX_FD=%s, "
                    "SPX_PROC=%s, SPX_JOB=%s), but the job's "
                    "memory file is not to be found; unset SPX_FD to run alone",
                    secure_getenv("SPX_FD"), proc < 0 ? "missing" : secure_getenv("SPX_PROC"),
                    secure_getenv("SPX_JOB") ? secure_getenv("SPX_JOB") : "missing");
    fcntl(fd, F_SETFD, FD_CLOEXEC); /* programs that this one starts are not in the job */
    long door = env_number("SPX_DOOR");
    struct stat st;
    if (door > 2 && fstat((int)door, &st) == 0 && S_ISSOCK(st.st_mode))
      fcntl((int)door, F_SETFD, FD_CLOEXEC);
  } else {
    spx_frame f = {.fn = SPX_IN_ALONE};
    int err = spx_go_internal(&f);
    if (err) return err;
    fd = (int)f.a[0].i;
    proc = (long)f.a[1].i;
    spx_under_launcher = f.a[2].i != 0;
  }
  int err = spx_dp_attach(fd, (uint32_t)proc);
  if (err)
    return refuse(err == ENOMEM || err == ENOSPC ? MPI_ERR_NO_MEM : MPI_ERR_OTHER,
                  "the job's memory file cannot be used: %s", strerror(err));
  spx_proc *me = spx_proc_of(spx_me);
  uint32_t none = SPX_OWNER_NONE;
  if (!__atomic_compare_exchange_n(&me->owner_state, &none, SPX_OWNER_INIT, false, __ATOMIC_ACQ_REL,
                                   __ATOMIC_ACQUIRE)) {
    uint32_t rank = me->world_rank, pid = me->pid;
    spx_dp_detach();
    return refuse(MPI_ERR_OTHER,
                  "another process (pid %u, or one that it started) is rank %u already; a program "
                  "that a rank "
                  "starts is not in the job: "
                  "unset SPX_FD in its environment to run it alone",
                  pid, rank);
  }
  return MPI_SUCCESS;
}
