/* trace.c - writes down what this process does in MPI, into a file of its own that stays when it
 * dies: spxrun --trace and --profile.
 *
 * SPX_TRACE names the directory of the files, SPX_TRACE_ROOM the number of records that each keeps.
 * A process that is not traced pays nothing: the shims find out by the comparison that they make
 * anyway, and the data plane calls what is here by a pointer that is NULL. Disk space is taken
 * before it is written, so that a full disk ends the trace and not the process. */
#define _GNU_SOURCE
#include "trace.h"
#include "check.h"
#include "dp.h"
#include "error.h"
#include "once.h"
#include "replay.h"
#include "runtime.h"
#include "settings.h"
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define STEP (1u << 20) /* bytes of records that disk space is taken for at a time */

SPX_TLS const void *spx_site;
static SPX_TLS spx_call *calls; /* that this thread is in, the innermost first */
static SPX_TLS uint32_t tid;

static struct {
  spx_trace_head *head; /* NULL: nothing is traced */
  spx_trace_site *sites;
  spx_trace_peer *peers;
  spx_trace_record *records;
  int fd;
  uint64_t backed;  /* records that there is disk space for */
  uint64_t slot;    /* of the next record: its number modulo room */
  _Atomic int busy; /* the lock, with several threads */
} trace;

static struct {
  uintptr_t from, to; /* the code of libspx's Fortran library; to is 0 when it is not loaded */
} fortran;
static SPX_TLS struct {
  uint32_t fn;
  const void *site;
} fortran_call; /* SPX_CHECK=1: the call that this thread's program in Fortran is in */

static void lock(void)
{
  while (spx_mt && atomic_exchange_explicit(&trace.busy, 1, memory_order_acquire)) {}
}
static void unlock(void)
{
  if (spx_mt) atomic_store_explicit(&trace.busy, 0, memory_order_release);
}

/* ---- records ---- */

/* Takes more disk space; without, the records that there is space for are used again and again. */
static void back_more(uint64_t n)
{
  uint64_t room = trace.head->room, want = trace.backed + STEP / sizeof(spx_trace_record);
  if (want > room) want = room;
  off_t from = (off_t)(trace.head->records_off + trace.backed * sizeof(spx_trace_record));
  if (n < want && fallocate(trace.fd, 0, from,
                            (off_t)((want - trace.backed) * sizeof(spx_trace_record))) == 0) {
#ifdef MADV_POPULATE_WRITE
    madvise((char *)trace.head + from, (want - trace.backed) * sizeof(spx_trace_record),
            MADV_POPULATE_WRITE);
#endif
    trace.backed = want;
    return;
  }
  trace.head->room = trace.backed;
  trace.slot = 0;
}

/* The next record, zeroed; NULL: there is none. The lock is held. */
static spx_trace_record *next_record(uint64_t *index)
{
  spx_trace_head *h = trace.head;
  if (h->room && SPX_UNLIKELY(h->records < h->room && h->records >= trace.backed))
    back_more(h->records);
  if (!h->room) {
    h->refused++;
    return NULL;
  }
  *index = h->records;
  spx_trace_record *r = &trace.records[trace.slot];
  if (++trace.slot == h->room) trace.slot = 0;
  memset(r, 0, sizeof *r);
  __atomic_store_n(&h->records, h->records + 1, __ATOMIC_RELEASE);
  return r;
}

/* Record number index, if it is still there. */
static spx_trace_record *record_at(uint64_t index)
{
  uint64_t room = trace.head->room, back = trace.head->records - index; /* so many records ago */
  if (index == UINT64_MAX || back == 0 || back > room) return NULL;
  return &trace.records[trace.slot >= back ? trace.slot - back : trace.slot + room - back];
}

static uint32_t thread(void)
{
  if (SPX_UNLIKELY(!tid)) tid = (uint32_t)syscall(SYS_gettid);
  return tid;
}

/* ---- what calls cost ---- */

static spx_trace_site *site_of(uint32_t fn, uint64_t site)
{
  uint64_t hash = (site ^ ((uint64_t)fn << 48)) * 0x9e3779b97f4a7c15u;
  for (uint32_t i = 0; i < SPX_TRACE_SITES; i++) {
    spx_trace_site *s = &trace.sites[((hash >> 40) + i) % SPX_TRACE_SITES];
    if (s->fn == fn && s->site == site) return s;
    if (s->fn) continue;
    s->site = site;
    s->fn = fn;
    s->min = UINT64_MAX;
    return s;
  }
  return NULL;
}

static void charge(const spx_call *c, uint64_t ns, int error)
{
  trace.head->ns += ns;
  spx_trace_site *s = site_of(c->fn, (uintptr_t)c->site);
  if (!s) {
    trace.head->sites_lost++;
    return;
  }
  s->calls++;
  s->ns += ns;
  s->bytes += c->bytes;
  s->errors += error != MPI_SUCCESS;
  if (ns > s->max) s->max = ns;
  if (ns < s->min) s->min = ns;
  if (c->bytes > s->bytes_max) s->bytes_max = c->bytes;
}

/* ---- calls ---- */

static bool in_fortran(const void *pc)
{
  return (uintptr_t)pc >= fortran.from && (uintptr_t)pc < fortran.to;
}

/* The place behind those in the Fortran library, from the one at site on, or from the first that is
 * in it; NULL: there is none. */
static const void *behind_fortran(const void *site)
{
  void *pcs[16];
  int n = backtrace(pcs, 16), i = 0;
  while (i < n && !(site ? pcs[i] == site : in_fortran(pcs[i]))) i++;
  while (i < n && in_fortran(pcs[i])) i++;
  return i < n ? pcs[i] : NULL;
}

/* Programs in Fortran call libspx's Fortran library, which is not the place that they want to
 * know. */
static const void *caller(const void *site)
{
  const void *behind = in_fortran(site) ? behind_fortran(site) : NULL;
  return behind ? behind : site;
}

static void note_fortran(void)
{
  fortran_call.fn = spx_fn;
  fortran_call.site = behind_fortran(NULL);
}

const void *spx_call_place(void)
{
  if (calls) return calls->site;
  if (!in_fortran(spx_site)) return spx_site;
  return fortran_call.fn == spx_fn ? fortran_call.site : NULL;
}

spx_way spx_find_way(void)
{
  if (spx_aside & SPX_ASIDE_FORKED || spx_state != SPX_INITIALIZED) return SPX_WAY_BAD;
  /* The frames of calls that are not over lie above; those of calls that were left by longjmp may
   * lie below. */
  while (calls && (char *)calls < (char *)__builtin_frame_address(0)) calls = calls->outer;
  if (spx_aside & SPX_ASIDE_CHECKED && fortran.to && !calls) note_fortran();
  if (spx_aside & SPX_ASIDE_REPLAY && !spx_mute && !calls) spx_replay_enter(spx_fn);
  return calls || !trace.head ? SPX_WAY_ON : SPX_WAY_TRACED;
}

uint64_t spx_call_bytes(int64_t count, MPI_Datatype type)
{
  const spx_type *t = (const spx_type *)spx_get(SPX_K_TYPE, type);
  return t && count > 0 && t->size > 0 ? (uint64_t)count * (uint64_t)t->size : 0;
}

/* The same as the record before, at the same place: a program that polls. */
static bool continues(const spx_call *c)
{
  if (!(c->flags & SPX_TRACE_POLLS) || !trace.head->records) return false;
  const spx_trace_record *r = record_at(trace.head->records - 1);
  return r && r->kind == SPX_TRACE_CALL && r->fn == c->fn && r->site == (uintptr_t)c->site &&
         r->tid == thread();
}

static void fill(spx_trace_record *r, const spx_call *c)
{
  spx_comm *comm = c->comm ? (spx_comm *)spx_get(SPX_K_COMM, c->comm) : NULL;
  r->begin = c->begin;
  r->kind = SPX_TRACE_CALL;
  r->fn = (uint16_t)c->fn;
  r->tid = thread();
  r->flags = c->flags;
  r->args = c->args < SPX_TRACE_ARGS ? c->args : SPX_TRACE_ARGS;
  r->site = (uintptr_t)c->site;
  r->times = 1;
  r->bytes = c->bytes;
  memcpy(r->arg, c->arg, r->args * sizeof *c->arg);
  if (!comm) return;
  r->ctx = comm->ctx;
  if (comm == spx_world) r->flags |= SPX_TRACE_WORLD;
  if (comm == spx_self) r->flags |= SPX_TRACE_SELF;
  if (c->flags & SPX_TRACE_COLLECTIVE) r->number = ++comm->traced;
}

void spx_call_begin(spx_call *c)
{
  c->site = caller(spx_site);
  c->outer = calls;
  calls = c;
  c->index = UINT64_MAX;
  c->begin = spx_now_ns();
  lock();
  if (continues(c)) {
    c->index = trace.head->records - 1;
    record_at(c->index)->times++;
  } else {
    spx_trace_record *r = next_record(&c->index);
    if (r) fill(r, c);
  }
  unlock();
}

/* How the collective that has just been called, or begun, is done. */
static void note_choice(spx_trace_record *r, const spx_call *c)
{
  const spx_comm *comm = (const spx_comm *)spx_get(SPX_K_COMM, c->comm);
  if (!comm) return;
  r->algorithm = (uint8_t)comm->chosen[c->coll - 1];
  r->reason = (uint8_t)(comm->chosen[c->coll - 1] >> 8);
}

int spx_call_end(spx_call *c, int error)
{
  uint64_t now = spx_now_ns();
  calls = c->outer;
  lock();
  spx_trace_record *r = record_at(c->index);
  if (r) {
    r->error = error;
    if (c->coll && error == MPI_SUCCESS) note_choice(r, c);
    __atomic_store_n(&r->end, now, __ATOMIC_RELEASE);
  }
  charge(c, now - c->begin, error);
  unlock();
  return error;
}

/* ---- messages, told by the data plane ---- */

static bool is_users(uint64_t ctx)
{
  uint64_t kind = ctx % SPX_CTX_STEP;
  return kind == SPX_CTX_P2P || kind == SPX_CTX_PART_DATA;
}

static void put_message(uint16_t kind, uint32_t peer, uint64_t ctx, int tag, uint64_t bytes,
                        uint32_t number)
{
  uint64_t index;
  spx_trace_record *r = next_record(&index);
  if (!r) return;
  r->begin = r->end = spx_now_ns();
  r->kind = kind;
  r->fn = (uint16_t)spx_fn;
  r->tid = thread();
  r->args = 2;
  r->site = number;
  r->ctx = ctx - ctx % SPX_CTX_STEP;
  r->times = 1;
  r->bytes = bytes;
  r->arg[0] = peer;
  r->arg[1] = tag;
}

static void sent(uint32_t peer, uint64_t ctx, int tag, uint64_t bytes, uint32_t number, bool cast)
{
  if (!is_users(ctx)) return;
  lock();
  if (peer < trace.head->peers) {
    trace.peers[peer].messages++;
    trace.peers[peer].bytes += bytes;
  }
  uint32_t size = bytes ? 64u - (uint32_t)__builtin_clzll(bytes) : 0;
  trace.head->sizes[size < SPX_TRACE_SIZES ? size : SPX_TRACE_SIZES - 1]++;
  put_message(cast ? SPX_TRACE_CAST : SPX_TRACE_SENT, peer, ctx, tag, bytes, number);
  unlock();
}

static void got(const spx_request *r, uint64_t bytes, uint32_t number, bool cast)
{
  if (!is_users(r->ctx)) return;
  lock();
  trace.head->got++;
  trace.head->got_bytes += bytes;
  put_message(cast ? SPX_TRACE_CAUGHT : SPX_TRACE_GOT, r->peer, r->ctx, r->tag, bytes, number);
  unlock();
}

static void died(uint32_t peer)
{
  lock();
  put_message(SPX_TRACE_DEATH, peer, 0, 0, 0, 0);
  unlock();
}

static const spx_tracer tracer = {.sent = sent, .got = got, .died = died};

/* ---- beginning and end ---- */

static int find_fortran(struct dl_phdr_info *o, size_t size, void *arg)
{
  (void)size;
  (void)arg;
  const char *base = strrchr(o->dlpi_name, '/');
  base = base ? base + 1 : o->dlpi_name;
  if (strncmp(base, "libspxf", 7) != 0 && strncmp(base, "libmpifort_abi", 14) != 0) return 0;
  for (int i = 0; i < o->dlpi_phnum; i++)
    if (o->dlpi_phdr[i].p_type == PT_LOAD && o->dlpi_phdr[i].p_flags & PF_X) {
      fortran.from = o->dlpi_addr + o->dlpi_phdr[i].p_vaddr;
      fortran.to = fortran.from + o->dlpi_phdr[i].p_memsz;
    }
  return 1;
}

void spx_find_fortran(void)
{
  if (!fortran.to) dl_iterate_phdr(find_fortran, NULL);
}

/* Where the program and its libraries are: the lines of /proc/self/maps that have code. */
static void note_maps(void)
{
  FILE *f = fopen("/proc/self/maps", "re");
  char line[512], *to = (char *)trace.head + SPX_TRACE_HEAD;
  uint32_t n = 0;
  while (f && fgets(line, sizeof line, f)) {
    size_t len = strlen(line);
    const char *flags = strchr(line, ' ');
    if (!flags || !memchr(flags, 'x', 5) || n + len > SPX_TRACE_MAPS) continue;
    memcpy(to + n, line, len);
    n += (uint32_t)len;
  }
  if (f) fclose(f);
  trace.head->maps = n;
}

/* Makes the file, and maps it: an errno. */
static int make_file(const char *dir, uint64_t room)
{
  char path[4096];
  const spx_proc *me = spx_proc_of(spx_me);
  uint64_t peers = SPX_TRACE_HEAD + SPX_TRACE_MAPS + SPX_TRACE_SITES * sizeof(spx_trace_site);
  uint64_t records = (peers + spx_map.nprocs * sizeof(spx_trace_peer) + 4095) / 4096 * 4096;
  uint64_t bytes = records + room * sizeof(spx_trace_record);
  snprintf(path, sizeof path, "%s/%u.%u", dir, spx_me, me->incarnation);
  int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) return errno;
  void *at = MAP_FAILED;
  int err =
      fallocate(fd, 0, 0, (off_t)records) != 0 || ftruncate(fd, (off_t)bytes) != 0 ? errno : 0;
  if (!err) at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (!err && at == MAP_FAILED) err = errno;
  if (err) {
    close(fd);
    unlink(path);
    return err;
  }
  spx_trace_head *h = at;
  h->magic = SPX_TRACE_MAGIC;
  h->proc = spx_me;
  h->rank = me->world_rank;
  h->world = me->world_id;
  h->incarnation = me->incarnation;
  h->pid = (uint32_t)getpid();
  h->host = me->host;
  h->room = room;
  h->peers = spx_map.nprocs;
  h->sites_off = SPX_TRACE_HEAD + SPX_TRACE_MAPS;
  h->peers_off = peers;
  h->records_off = records;
  trace.sites = (spx_trace_site *)(void *)((char *)at + h->sites_off);
  trace.peers = (spx_trace_peer *)(void *)((char *)at + h->peers_off);
  trace.records = (spx_trace_record *)(void *)((char *)at + h->records_off);
  trace.fd = fd;
  trace.head = h;
  return 0;
}

void spx_trace_start(uint64_t began)
{
  const char *dir = secure_getenv("SPX_TRACE"), *room = secure_getenv("SPX_TRACE_ROOM");
  static const int64_t no_args[1];
  if (!dir || !*dir) return;
  int err = make_file(dir, room ? strtoull(room, NULL, 10) : 0);
  if (err) {
    char cause[256];
    snprintf(cause, sizeof cause, "not traced: a file in %.200s: %s", dir, strerror(err));
    spx_say_once(cause, "rank %u is %s", spx_proc_of(spx_me)->world_rank, cause);
    return;
  }
  ssize_t n = readlink("/proc/self/exe", (char *)trace.head->program, SPX_TRACE_PROGRAM - 1);
  if (n < 0) trace.head->program[0] = 0;
  spx_find_fortran();
  note_maps();
  trace.head->began = began;
  spx_call init = {.fn = spx_fn, .arg = no_args, .begin = began, .site = caller(spx_site)};
  uint64_t index, now = spx_now_ns();
  spx_trace_record *r = next_record(&index);
  if (r) {
    fill(r, &init);
    r->end = now;
  }
  charge(&init, now - began, MPI_SUCCESS);
  spx_tracer_now = &tracer;
  spx_aside |= SPX_ASIDE_TRACED;
}

void spx_trace_stop(void)
{
  if (!trace.head) return;
  note_maps(); /* with what was loaded since */
  trace.head->ended = spx_now_ns();
}
