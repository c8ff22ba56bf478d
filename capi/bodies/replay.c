/* replay.c - see replay_shim.h: message logs, and the beginning and end of transparent
 * takeover.
 *
 * A message log (spx_msglog) is a memory file of the rank, which standbys of its cluster have open
 * as well: so it outlives the rank, and nothing of it is left when all have ended. Or it is that of
 * the rank alone, and another process of the cluster, on another host, keeps a copy
 * (dataplane/clusters/copies.h): so it outlives the host. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "check.h"
#include "check_coll.h"
#include "comm.h"
#include "copies.h"
#include "dp.h"
#include "error.h"
#include "once.h"
#include "replay_shim.h"
#include "runtime.h"
#include "settings.h"
#include "shim.h"
#include "system.h"
#include "takeover.h"
#include "trace.h"

#define FN spx_fn_name[spx_fn]

bool spx_takeover_on;
bool spx_msglog_committed;

typedef struct { /* the memory file of a message log */
  int fd;
  uint64_t bytes, grain[SPX_MSGLOG_AREAS]; /* of an area; of each, what there is memory for */
} file;

static struct {
  bool own, standby;
  spx_replay_setup setup;
  uint32_t first; /* participant of rank 0 of this cluster */
  file file;      /* fd -1: none */
  /* contexts that the process before this one has taken, and this one has not yet */
  const spx_came *noted;
} v = {.file.fd = -1};

/* ---- the message log ---- */

static bool has_room(file *f, uint64_t at, uint64_t bytes)
{
  enum { GRAIN = 1 << 18 };
  uint32_t area = (uint32_t)((at - SPX_MSGLOG_HEAD) / f->bytes);
  uint64_t end = at - SPX_MSGLOG_HEAD - area * f->bytes + bytes;
  if (end <= f->grain[area]) return true;
  uint64_t want = (end + GRAIN - 1) / GRAIN * GRAIN;
  if (want > f->bytes) want = f->bytes;
  if (posix_fallocate(f->fd, (off_t)(SPX_MSGLOG_HEAD + area * f->bytes + f->grain[area]),
                      (off_t)(want - f->grain[area])) != 0)
    return false;
  f->grain[area] = want;
  return true;
}

static bool room(void *arg, uint64_t at, uint64_t bytes)
{
  (void)arg;
  return has_room(&v.file, at, bytes);
}

static uint64_t bytes_of(const file *f) { return SPX_MSGLOG_HEAD + SPX_MSGLOG_AREAS * f->bytes; }

/* Maps it; NULL: with a detail text. */
static spx_msglog *map(const file *f)
{
  uint64_t bytes = bytes_of(f);
  void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, f->fd, 0);
  if (p != MAP_FAILED) return p;
  spx_detail(
      "transparent takeover: a message log of %llu bytes cannot be mapped: %s (SPX_REPLAY_MAX)",
      (unsigned long long)bytes, strerror(errno));
  return NULL;
}

/* Gives the file its size, which cannot be taken back: a process that has it mapped would end by
 * SIGBUS. */
static bool sized(int fd, off_t bytes)
{
  struct stat st;
  if (fstat(fd, &st) != 0 || (st.st_size < bytes && ftruncate(fd, bytes) != 0)) return false;
  /* it has them if another process has made it */
  fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_SEAL);
  return true;
}

/* Makes the file, unless there is one, and maps it; NULL: with a detail text. */
static spx_msglog *make_file(file *f)
{
  if (f->fd < 0) f->fd = memfd_create("spx-vault", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (f->fd >= 0 && sized(f->fd, (off_t)bytes_of(f)) &&
      posix_fallocate(f->fd, 0, SPX_MSGLOG_HEAD) == 0)
    return map(f);
  spx_detail("transparent takeover: no memory for a message log: %s", strerror(errno));
  return NULL;
}

static int make_msglog(int fd)
{
  v.file.fd = fd;
  if (!(v.setup.msglog = make_file(&v.file))) return MPI_ERR_NO_MEM;
  spx_msglog_format(v.setup.msglog, v.file.bytes, spx_proc_of(spx_me)->serial + 1);
  memset((uint8_t *)v.setup.msglog + SPX_MSGLOG_MARKS, 0, SPX_MSGLOG_HEAD - SPX_MSGLOG_MARKS);
  return MPI_SUCCESS;
}

int spx_msglog_file(void) { return v.file.fd; }

spx_msglog *spx_msglog_here(void) { return v.setup.msglog; }

uint64_t spx_msglog_bytes(void) { return v.file.bytes; }

static int kind_of(uint32_t fn) { return spx_fn_does[fn]; }

/* Other communicators hold its processes, as far as they are there. */
static spx_comm *new_wire(void)
{
  uint32_t *procs = spx_ranks_new(v.setup.participants);
  spx_comm *w = procs ? (spx_comm *)spx_new(SPX_K_COMM) : NULL;
  if (!w) return NULL;
  int n = (int)v.setup.participants;
  spx_check_inside(SPX_K_COMM, &w->o);
  memcpy(procs, v.setup.procs, v.setup.participants * sizeof *procs);
  spx_comm_fill(w, (int)v.setup.me, n, n, v.setup.ctx, procs, spx_ranks_share(procs));
  return w;
}

static int begin(void)
{
  v.setup.room = room;
  v.setup.kind = kind_of;
  v.setup.choose = spx_system_choose;
  v.setup.lane = spx_system_lane;
  if (!(v.setup.wire = new_wire())) return MPI_ERR_NO_MEM;
  int err = spx_replay_begin(&v.setup);
  if (err != MPI_SUCCESS) {
    spx_detail("no memory for the messages of transparent takeover");
    return err;
  }
  v.noted = spx_replay_core.notes;
  if (v.own || spx_io_process) spx_aside |= SPX_ASIDE_REPLAY;
  if (v.own || spx_io_process) spx_world->flags |= SPX_C_REPLAY;
  for (uint32_t i = 0; spx_io_process && i < spx_sys->worlds; i++)
    spx_sys->world[i].comm->flags |= SPX_C_REPLAY;
  return MPI_SUCCESS;
}

/* ---- copies ---- */

static spx_msglog *make_copy(void *arg, uint64_t area_bytes, void **memory)
{
  (void)arg;
  file *f = calloc(1, sizeof *f);
  if (!f) return NULL;
  *f = (file){.fd = -1, .bytes = area_bytes};
  spx_msglog *copy = make_file(f);
  if (copy) {
    *memory = f;
    return copy;
  }
  if (f->fd >= 0) close(f->fd);
  free(f);
  return NULL;
}

static bool room_of_copy(void *arg, void *memory, uint64_t at, uint64_t bytes)
{
  (void)arg;
  return has_room(memory, at, bytes);
}

static void drop_copy(void *arg, spx_msglog *copy, void *memory)
{
  (void)arg;
  file *f = memory;
  munmap(copy, bytes_of(f));
  close(f->fd);
  free(f);
}

void spx_keep_copies(spx_comm *wire, int cold)
{
  spx_copies_start(&(spx_copies_setup){wire, cold, make_copy, room_of_copy, drop_copy});
}

/* What no process is left to take is counted, and said: the first time, since to ask whether it may
 * be said costs a way to the agent for each message. */
static void say_lost(void)
{
  static bool asked;
  static const char cause[] =
      "messages to another cluster are lost: who could have taken them has died";
  spx_lock();
  bool first = spx_replay_lost && !asked;
  asked |= first;
  spx_replay_lost = 0;
  spx_unlock();
  if (first) spx_say_once(cause, "%s (spx_messages_lost counts them)", cause);
}

static void due(void)
{
  say_lost();
  if (v.own) spx_go_internal(&(spx_frame){.fn = SPX_IN_TAKEOVER_DUE});
  spx_replay_reroute();
}

static void free_tables(void)
{
  free((void *)(uintptr_t)v.setup.procs);
  free((void *)(uintptr_t)v.setup.heals);
  free((void *)(uintptr_t)v.setup.iop);
}

int spx_msglog_grow(uint32_t participants, const uint32_t *procs, const bool *heals,
                    const uint32_t *iop)
{
  free_tables();
  v.setup.participants = participants;
  v.setup.procs = procs;
  v.setup.heals = heals;
  v.setup.iop = iop;
  if (!spx_replay_on) return MPI_SUCCESS; /* a standby, which has no rank yet */
  uint32_t *ranks = spx_ranks_new(participants);
  if (!ranks) return MPI_ERR_NO_MEM;
  spx_lock();
  int err = spx_replay_grow(&v.setup, ranks);
  if (err == MPI_SUCCESS) {
    spx_comm_lists(v.setup.wire, ranks, spx_ranks_share(ranks));
    v.setup.wire->size = v.setup.wire->remote_size = (int)participants;
  } else
    spx_ranks_free(ranks);
  spx_unlock();
  return err;
}

int spx_msglog_begin(const spx_replay_setup *s, bool own, bool standby, uint32_t first, int fd)
{
  v.setup = *s;
  v.own = own;
  v.standby = standby;
  v.first = first;
  v.file.bytes = (spx_setting_begin(SPX_SET_REPLAY_MAX, 256 << 20, 1ull << 40) + 0xfff) & ~0xfffull;
  spx_msglog_committed = false;
  spx_takeover_due = due;
  if (standby) return MPI_SUCCESS; /* until it has a rank */
  if (own) SPX_TRY(make_msglog(fd));
  return begin();
}

void spx_msglog_moved(uint32_t participant, uint32_t proc)
{
  if (participant < v.setup.participants)
    ((uint32_t *)(uintptr_t)v.setup.procs)[participant] = proc;
  spx_replay_place(participant, proc);
}

/* ---- standbys ---- */

int64_t spx_msglog_exit(spx_word *a)
{
  (void)a;
  spx_publish_owner(SPX_OWNER_FINALIZED);
  _exit(0);
}

int64_t spx_msglog_keeper(spx_word *a)
{
  spx_copies_keep((int)a[0].i);
  return 0;
}

int64_t spx_msglog_fetch(spx_word *a) { return spx_copies_fetch((uint32_t)a[0].u); }

static int take_copy(uint32_t rank)
{
  void *memory;
  uint64_t term;
  v.setup.msglog = spx_copies_adopt(rank, &memory, &term);
  if (!v.setup.msglog) {
    spx_detail("transparent takeover: the copy of what rank %u had is not here", rank);
    return MPI_ERR_INTERN;
  }
  v.file = *(file *)memory;
  free(memory);
  int err = begin();
  if (err != MPI_SUCCESS) return err;
  spx_copies_of(v.setup.msglog, rank, term);
  return MPI_SUCCESS;
}

int64_t spx_msglog_take(spx_word *a)
{
  int rank = (int)a[0].i;
  if (!v.own && !v.standby) return MPI_SUCCESS;
  v.setup.me = v.first + (uint32_t)rank;
  for (int r = 0; r < spx_world->size; r++)
    ((uint32_t *)(uintptr_t)v.setup.procs)[v.first + (uint32_t)r] = spx_world->peer[r];
  v.standby = false;
  /* it begins anew: nothing is left of what the one before had received */
  if (!v.own) return begin();
  if (spx_copies_on) return take_copy((uint32_t)rank);
  v.file.fd = (int)a[1].i;
  if (lseek(v.file.fd, 0, SEEK_END) < (off_t)bytes_of(&v.file) &&
      (ftruncate(v.file.fd, (off_t)bytes_of(&v.file)) != 0 ||
       posix_fallocate(v.file.fd, 0, SPX_MSGLOG_HEAD) != 0)) {
    spx_detail("transparent takeover: no memory for a message log: %s", strerror(errno));
    return MPI_ERR_NO_MEM;
  }
  if (!(v.setup.msglog = map(&v.file))) return MPI_ERR_NO_MEM;
  if (__atomic_load_n(&v.setup.msglog->magic, __ATOMIC_ACQUIRE) !=
      SPX_MSGLOG_MAGIC) /* that rank had not come to MPI_Init: it has received nothing */
    spx_msglog_format(v.setup.msglog, v.file.bytes, spx_proc_of(spx_me)->serial + 1);
  v.file.bytes = v.setup.msglog->area_bytes;
  return begin();
}

/* ---- communicators ---- */

uint64_t spx_replay_context(uint64_t fresh)
{
  uint64_t ctx = fresh;
  if (spx_msglog_committed || !v.setup.msglog) return fresh; /* of a kind that is not taken over */
  spx_lock();
  if (v.noted) {
    memcpy(&ctx, v.noted->data, sizeof ctx);
    v.noted = v.noted->next;
  } else if (v.setup.msglog->commits)
    spx_fatal(
        MPI_ERR_OTHER,
        "transparent takeover: this process makes communicators before its first MPISP_Commit "
        "that the one did not make whose rank it has");
  else
    spx_core_note(&spx_replay_core, &ctx, sizeof ctx);
  spx_unlock();
  return ctx;
}

int spx_msglog_closed(void) { return spx_replay_on && v.setup.msglog && spx_msglog_committed; }

/* ---- the end ---- */

int64_t spx_msglog_last(spx_word *a)
{
  (void)a;
  if (v.own) PMPI_Barrier(MPI_COMM_WORLD);
  spx_replay_enter(0);
  return v.own;
}

int64_t spx_msglog_settle(spx_word *a)
{
  (void)a;
  for (;;) {
    uint32_t ticket = spx_ticket();
    spx_progress(); /* first: a rank that seems to be awaited may be back */
    if (spx_replay_idle()) return 0;
    spx_wait_event(ticket, spx_now_ns() + 5000000);
  }
}

int64_t spx_msglog_end(spx_word *a)
{
  (void)a;
  spx_aside &= ~SPX_ASIDE_REPLAY;
  say_lost();
  spx_replay_end();
  spx_copies_stop();
  if (v.setup.msglog) munmap(v.setup.msglog, bytes_of(&v.file));
  if (v.file.fd >= 0) close(v.file.fd);
  spx_msglog_committed = false;
  free_tables();
  memset(&v, 0, sizeof v);
  v.file.fd = -1;
  return 0;
}
