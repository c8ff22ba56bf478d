/* peers.c - processes that come and go: spawned ones, and those of other jobs. MPI-5.0, 11.8 to 11.10.
 *
 * A peer's number is its place in our own job's memory file. A number is given to another process only when nobody holds the
 * one that had it: every communicator holds its members, and spx_seg.held tells the agent. What an earlier process of the
 * number has left behind in channels is told by its epoch and by positions, so that nothing has to be cleaned while others run.
 *
 * A process of another job is a guest here, as we are in its file: a record lies in its receiver's file. Receiving therefore
 * knows one file only; sending finds its file here. Bells and descriptors are those of the peer's own file.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "dp.h"

spx_file spx_own = {.fd = -1};

typedef struct {
  spx_file *file;   /* NULL: our own, under the same number */
  uint32_t there;   /* its number in file; abroad: the incarnation of ours in its job */
  bool abroad;      /* of another job, and reached over the network */
  uint32_t life;    /* incarnation of the number that file and there are of */
  uint32_t refs;    /* communicators, counted once for each rank of theirs */
  uint32_t parting; /* of these, in MPI_Comm_disconnect */
  bool held, leaving;
} peer_state;
static peer_state *peers;

int spx_peers_attach(void)
{
  peers = calloc(spx_map.nprocs, sizeof *peers);
  return peers ? 0 : ENOMEM;
}

void spx_peers_detach(void)
{
  free(peers);
  peers = NULL;
  while (spx_own.next) {
    spx_file *f = spx_own.next;
    spx_own.next = f->next;
    spx_seg_unmap(f);
    close(f->fd);
    free(f);
  }
}

spx_file *spx_place(uint32_t peer, uint32_t *there)
{
  const peer_state *s = &peers[peer];
  *there = s->file ? s->there : peer;
  return s->file ? s->file : &spx_own;
}

spx_proc *spx_home(uint32_t peer)
{
  uint32_t there;
  spx_file *f = spx_place(peer, &there);
  return spx_file_proc(f, there);
}

bool spx_is_near(uint32_t i)
{
  uint32_t there;
  if (i == spx_me) return true;
  return !spx_net_peer(i) && !((spx_segment->flags | spx_head(spx_place(i, &there))->flags) & SPX_SEG_TCP);
}

pid_t spx_pid_of(uint32_t peer)
{
  const spx_proc *p = spx_home(peer), *me = spx_proc_of(spx_me);
  uint32_t pid = __atomic_load_n(&p->self_pid, __ATOMIC_ACQUIRE);
  return p->pid_space == me->pid_space ? (pid_t)pid : 0;
}

static uint32_t life_of(uint32_t i) { return __atomic_load_n(&spx_proc_of(i)->incarnation, __ATOMIC_ACQUIRE); }

int spx_peer_is_far(uint32_t i) { return (peers[i].file || peers[i].abroad) && peers[i].life == life_of(i); }

uint16_t spx_epoch_at(uint32_t i)
{
  const peer_state *s = &peers[i];
  return s->abroad && s->life == life_of(i) ? (uint16_t)s->there : spx_own.epoch;
}

/* ---- holding ------------------------------------------------------------------------------------------------- */

static void mark(const spx_file *f, uint32_t i, uint8_t value)
{
  if (!spx_head(f)->held_off) return;
  uint8_t *row = (uint8_t *)(f->base + spx_head(f)->held_off + f->me * spx_head(f)->held_stride);
  __atomic_store_n(row + i, value, __ATOMIC_SEQ_CST);
}

static void mark_all(uint32_t i, uint8_t value)
{
  if (i == spx_me) return;
  mark(&spx_own, i, value);
  if (peers[i].file) mark(peers[i].file, peers[i].there, value);
}

/* It may have written, and may be waiting for room, before we knew where its bell is. */
static void rehome(uint32_t i)
{
  spx_rx *rx = &spx_rxs[i];
  spx_proc *home = spx_home(i);
  if (!rx->base || rx->proc == home) return;
  rx->proc = home;
  spx_ring_bell(i);
}

void spx_peer_meet(uint32_t i)
{
  spx_tx *tx = &spx_txs[i];
  spx_rx *rx = &spx_rxs[i];
  uint32_t life = life_of(i);
  if (spx_rx_stale(i, rx)) spx_rx_forget(i);
  rehome(i);
  if (!rx->dead && __atomic_load_n(&spx_proc_of(i)->agent_state, __ATOMIC_ACQUIRE) == SPX_AGENT_DEAD)
    spx_map.seen_deaths = UINT64_MAX; /* it was nobody's concern when it died: spx_notice_deaths looks again */
  if (tx->life != life) {
    spx_tx_forget(i);
    if (spx_net_on) spx_net_relay_forget(i);
    tx->life = life;
    if (rx->dead) tx->slow |= SPX_TX_DEAD;
  }
  spx_net_forget(i);
  tx->slow &= ~(uint32_t)SPX_TX_CLOSED;
}

/* The number went to another process although we hold it: its agent had looked who holds it before we began to. */
static bool is_another(uint32_t i)
{
  return spx_rx_stale(i, &spx_rxs[i]) || (spx_txs[i].life && spx_txs[i].life != life_of(i));
}

bool spx_peer_is_held(uint32_t i) { return peers[i].held; }

void spx_peer_hold(uint32_t i)
{
  spx_lock();
  peer_state *s = &peers[i];
  s->leaving = false;
  if (s->held && s->parting == s->refs) mark_all(i, SPX_TIE_HELD); /* there is another one now */
  bool first = s->refs++ == 0 && !s->held;
  if (i != spx_me && (first || is_another(i))) {
    s->held = true;
    if (s->life != life_of(i)) {
      s->file = NULL;
      s->abroad = false;
    }
    mark_all(i, SPX_TIE_HELD);
    spx_peer_meet(i);
  }
  spx_unlock();
}

static void let_go(uint32_t i)
{
  spx_tx *tx = &spx_txs[i];
  if (tx->pend || tx->stream) { /* the last answers: spx_peer_idle */
    peers[i].leaving = true;
    return;
  }
  peers[i].held = peers[i].leaving = false;
  tx->slow |= SPX_TX_CLOSED;
  spx_rx_cool(i);
  mark_all(i, SPX_TIE_NONE);
}

static void mark_parting(uint32_t i)
{
  const peer_state *s = &peers[i];
  if (s->held && s->refs && s->parting == s->refs) mark_all(i, SPX_TIE_PARTING);
}

void spx_peer_part(uint32_t i)
{
  if (!peers) return;
  spx_lock();
  peers[i].parting++;
  mark_parting(i);
  spx_unlock();
}

void spx_peer_release(uint32_t i, int parted)
{
  if (!peers) return;
  spx_lock();
  peer_state *s = &peers[i];
  if (parted) s->parting--;
  if (--s->refs == 0 && i != spx_me)
    let_go(i);
  else
    mark_parting(i);
  spx_unlock();
}

int spx_peer_holds_us(uint32_t i)
{
  const spx_seg *head = spx_head(&spx_own);
  if (!head->held_off || spx_proc_of(i)->host != spx_proc_of(spx_me)->host) return 1;
  const uint8_t *row = (const uint8_t *)(spx_own.base + head->held_off + i * head->held_stride);
  return __atomic_load_n(row + spx_me, __ATOMIC_SEQ_CST) == SPX_TIE_HELD;
}

void spx_peer_idle(uint32_t peer)
{
  if (SPX_UNLIKELY(peers[peer].leaving)) let_go(peer);
}

/* ---- other jobs' files --------------------------------------------------------------------------------------- */

static spx_file *file_of(uint64_t job)
{
  spx_file *f = spx_own.next;
  while (f && f->job != job) f = f->next;
  return f;
}

spx_seg *spx_file_of(uint64_t job)
{
  spx_lock();
  spx_file *f = file_of(job);
  spx_unlock();
  return f ? spx_head(f) : NULL;
}

static bool is_used(const spx_file *f)
{
  for (uint32_t i = 0; i < spx_segment->nprocs; i++) {
    const spx_proc *p = spx_proc_of(i);
    if (peers[i].file == f && peers[i].held) return true;
    if (p->home_job == f->job && __atomic_load_n(&p->agent_state, __ATOMIC_ACQUIRE) == SPX_AGENT_STARTED) return true;
  }
  return false;
}

void spx_files_sweep(void)
{
  spx_lock();
  for (spx_file **at = &spx_own.next, *f; (f = *at);) {
    if (is_used(f)) {
      at = &f->next;
      continue;
    }
    for (uint32_t i = 0; i < spx_map.nprocs; i++) {
      if (peers[i].file != f) continue;
      spx_tx_forget(i);
      peers[i].file = NULL;
      if (spx_rxs[i].base) spx_rxs[i].proc = spx_home(i); /* what it has received stays received: see meet */
    }
    *at = f->next;
    spx_seg_unmap(f);
    close(f->fd);
    free(f);
  }
  spx_unlock();
}

int spx_file_adopt(int memfd, uint32_t me, uint64_t job)
{
  spx_seg head;
  struct stat st;
  int seals = fcntl(memfd, F_GET_SEALS); /* who could make it smaller could end this process */
  if (seals < 0 || !(seals & F_SEAL_SHRINK) || fstat(memfd, &st) != 0 ||
      pread(memfd, &head, sizeof head, 0) != (ssize_t)sizeof head || head.magic != SPX_SEG_MAGIC ||
      head.version != SPX_SEG_VERSION || head.total_bytes > (uint64_t)st.st_size || head.ring_off >= head.total_bytes ||
      me >= head.maxprocs || head.rings_per_proc > SPX_RINGS_PER_PROC) {
    spx_detail("the memory file of job %016llx is not one that this library can use", (unsigned long long)job);
    return MPI_ERR_OTHER;
  }
  spx_file *f = calloc(1, sizeof *f);
  char *base = f ? mmap(NULL, head.ring_off, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, memfd, 0) : MAP_FAILED;
  int fd = base == MAP_FAILED ? -1 : fcntl(memfd, F_DUPFD_CLOEXEC, 3);
  if (fd < 0) {
    if (base != MAP_FAILED) munmap(base, head.ring_off);
    free(f);
    spx_detail("the memory file of job %016llx cannot be mapped: %s", (unsigned long long)job, strerror(errno));
    return MPI_ERR_NO_MEM;
  }
  *f = (spx_file){.base = base, .fd = fd, .me = me, .bytes = head.ring_off, .job = job};
  spx_proc *p = spx_file_proc(f, me);
  f->epoch = (uint16_t)p->incarnation;
  __atomic_store_n(&p->owner_state, spx_proc_of(spx_me)->owner_state, __ATOMIC_RELEASE);
  spx_lock();
  f->next = spx_own.next;
  spx_own.next = f;
  spx_unlock();
  return MPI_SUCCESS;
}

void spx_peer_place(uint32_t i, uint64_t job, uint32_t there)
{
  spx_lock();
  peers[i].file = file_of(job);
  peers[i].there = there;
  peers[i].life = life_of(i);
  peers[i].abroad = false;
  rehome(i);
  spx_unlock();
}

void spx_peer_abroad(uint32_t i, uint32_t life, uint32_t our_life)
{
  spx_lock();
  peer_state *s = &peers[i];
  if (!(s->abroad && s->life == life)) {
    s->file = NULL;
    s->there = our_life;
    s->life = life;
    s->abroad = true;
  }
  spx_unlock();
}

void spx_publish_owner(uint32_t state)
{
  for (spx_file *f = &spx_own; f; f = f->next)
    __atomic_store_n(&spx_file_proc(f, f->me)->owner_state, state, __ATOMIC_RELEASE);
}
