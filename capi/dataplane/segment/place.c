/* place.c - the memory files of other jobs, and the file of each process: place.h. MPI-5.0, 11.8.
 *
 * A process of another job is an external process in our file, as we are in its: a record is in its
 * receiver's file. Receiving therefore uses one file only; sending finds the peer's file here.
 * Bells and descriptors are those of the peer's own file. */
#define _GNU_SOURCE
#include "place.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

spx_file spx_own = {.fd = -1};
spx_whereabouts *spx_places;
uint32_t spx_ndead, spx_deaths, spx_harm;
bool spx_beyond;

int spx_places_attach(void)
{
  spx_places = calloc(spx_map.nprocs, sizeof *spx_places);
  return spx_places ? 0 : ENOMEM;
}

void spx_places_detach(void)
{
  free(spx_places);
  spx_places = NULL;
  while (spx_own.next) {
    spx_file *f = spx_own.next;
    spx_own.next = f->next;
    spx_seg_unmap(f);
    close(f->fd);
    free(f);
  }
}

void spx_seg_unmap(spx_file *f)
{
  SPX_ASSERT(f->base);
  if (f->row) munmap(f->row, spx_head(f)->ring_row);
  munmap(f->base, f->bytes);
  f->row = NULL;
}

spx_file *spx_place(uint32_t peer, uint32_t *there)
{
  SPX_ASSERT(peer < spx_map.nprocs);
  const spx_whereabouts *s = &spx_places[peer];
  *there = s->file ? s->there : peer;
  return s->file ? s->file : &spx_own;
}

spx_proc *spx_home(uint32_t peer)
{
  uint32_t there;
  spx_file *f = spx_place(peer, &there);
  return spx_file_proc(f, there);
}

pid_t spx_pid_of(uint32_t peer)
{
  const spx_proc *p = spx_home(peer), *me = spx_proc_of(spx_me);
  uint32_t pid = __atomic_load_n(&p->self_pid, __ATOMIC_ACQUIRE);
  return p->pid_space == me->pid_space ? (pid_t)pid : 0;
}

int spx_peer_is_far(uint32_t i)
{
  const spx_whereabouts *s = &spx_places[i];
  return (s->file || s->abroad) && s->life == spx_life_of(i);
}

uint16_t spx_epoch_at(uint32_t i)
{
  const spx_whereabouts *s = &spx_places[i];
  return s->abroad && s->life == spx_life_of(i) ? (uint16_t)s->there : spx_own.epoch;
}

bool spx_net_peer(uint32_t i)
{
  const spx_proc *p = spx_proc_of(i);
  if (!spx_beyond || i == spx_me) return false;
  if (p->home_job != 0) return p->port != 0; /* else it is met through a memory file */
  return (spx_segment->flags & SPX_SEG_TCP) || p->host != spx_segment->host;
}

bool spx_is_near(uint32_t i)
{
  uint32_t there;
  if (i == spx_me) return true;
  return !spx_net_peer(i) &&
         !((spx_segment->flags | spx_head(spx_place(i, &there))->flags) & SPX_SEG_TCP);
}

/* ---- what has become of them ---- */

int spx_proc_dead(uint32_t i) { return spx_places && i < spx_map.nprocs && spx_places[i].dead; }

int spx_proc_dies(uint32_t i)
{
  return spx_proc_dead(i) ||
         __atomic_load_n(&spx_proc_of(i)->owner_state, __ATOMIC_ACQUIRE) == SPX_OWNER_ABORTED;
}

/* True also for one that was killed in the last moments of MPI_Finalize, before it could publish
 * that it has left. */
int spx_proc_left(uint32_t i)
{
  const spx_proc *p = spx_proc_of(i);
  uint32_t owner = __atomic_load_n(&p->owner_state, __ATOMIC_ACQUIRE);
  return spx_proc_dead(i) || owner == SPX_OWNER_FINALIZED || owner == SPX_OWNER_ABORTED ||
         __atomic_load_n(&p->agent_state, __ATOMIC_ACQUIRE) == SPX_AGENT_EXITED;
}

int spx_comm_failures(const spx_comm *c)
{
  int n = 0;
  if (spx_ndead == 0) return 0;
  for (int i = 0; i < c->remote_size; i++) n += spx_proc_dead(c->peer[i]);
  if (c->flags & SPX_C_INTER)
    for (int i = 0; i < c->size; i++) n += spx_proc_dead(c->local[i]);
  return n;
}

bool spx_wild_blocked(const spx_comm *c)
{
  return spx_ndead && !(c->flags & SPX_C_REPLAY) &&
         spx_comm_failures(c) > (int)atomic_load_explicit(&((spx_comm *)(uintptr_t)c)->failed_seen,
                                                          memory_order_relaxed);
}

/* ---- other jobs' files ---- */

spx_file *spx_file_found(uint64_t job)
{
  spx_file *f = spx_own.next;
  while (f && f->job != job) f = f->next;
  return f;
}

spx_seg *spx_file_of(uint64_t job)
{
  spx_lock();
  spx_file *f = spx_file_found(job);
  spx_unlock();
  return f ? spx_head(f) : NULL;
}

int spx_file_adopt(int memfd, uint32_t me, uint64_t job)
{
  spx_seg head;
  struct stat st;
  int seals =
      fcntl(memfd, F_GET_SEALS); /* a process able to shrink the file could end this process */
  if (seals < 0 || !(seals & F_SEAL_SHRINK) || fstat(memfd, &st) != 0 ||
      pread(memfd, &head, sizeof head, 0) != (ssize_t)sizeof head || head.magic != SPX_SEG_MAGIC ||
      head.version != SPX_SEG_VERSION || head.total_bytes > (uint64_t)st.st_size ||
      head.ring_off >= head.total_bytes || me >= head.maxprocs ||
      head.rings_per_proc > SPX_RINGS_PER_PROC) {
    spx_detail("the memory file of job %016llx is not one that this library can use",
               (unsigned long long)job);
    return MPI_ERR_OTHER;
  }
  spx_file *f = calloc(1, sizeof *f);
  char *base =
      f ? mmap(NULL, head.ring_off, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, memfd, 0)
        : MAP_FAILED;
  int fd = base == MAP_FAILED ? -1 : fcntl(memfd, F_DUPFD_CLOEXEC, 3);
  if (fd < 0) {
    if (base != MAP_FAILED) munmap(base, head.ring_off);
    free(f);
    spx_detail("the memory file of job %016llx cannot be mapped: %s", (unsigned long long)job,
               strerror(errno));
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

void spx_peer_abroad(uint32_t i, uint32_t life, uint32_t our_life)
{
  spx_lock();
  SPX_ASSERT(i < spx_map.nprocs && i != spx_me);
  spx_whereabouts *s = &spx_places[i];
  if (!(s->abroad && s->life == life))
    *s = (spx_whereabouts){.there = our_life, .life = life, .abroad = true};
  spx_unlock();
}

void spx_publish_owner(uint32_t state)
{
  for (spx_file *f = &spx_own; f; f = f->next)
    __atomic_store_n(&spx_file_proc(f, f->me)->owner_state, state, __ATOMIC_RELEASE);
}
