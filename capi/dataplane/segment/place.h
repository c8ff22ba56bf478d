/* place.h - the memory file and the index there of each process, and whether the process lives.
 *
 * Owns the list of the memory files that this process has mapped (spx_own is the first), and for
 * each process index of its own job the file of that process, and whether its death has been
 * noticed. Calls the system alone. Called by all layers above, with spx_lock held, unless a comment
 * says otherwise. */
#ifndef SPX_PLACE_H
#define SPX_PLACE_H
#include <sys/types.h>
#include "spx.h"

typedef struct spx_seg_map {
  char *base;
  int fd;
  uint32_t nprocs;      /* capacity */
  uint64_t seen_deaths; /* death_seq that was handled */
  uint32_t seen_layout; /* layout_seq that the engine was last notified of */
  uint16_t epoch;       /* ours */
} spx_seg_map;
SPX_HIDDEN extern spx_seg_map spx_map;

/* An outgoing ring. */
typedef struct {
  uint32_t state; /* RING_* (ring.c) */
  uint32_t peer;
  uint64_t seen;   /* head when the clock hand last passed */
  uint64_t closed; /* CLOSING: free when the peer has consumed this much */
  bool backed;     /* its pages are allocated */
} spx_ring;

/* A memory file that this process writes to: its own job's, and those of jobs that it is connected
 * with, where it is an external process. A record is always in its receiver's file. */
typedef struct spx_file {
  struct spx_file *next;
  char *base;
  int fd;
  uint32_t me;         /* this process's number there */
  uint16_t epoch;      /* low bits of that number's incarnation */
  uint64_t bytes, job; /* bytes: what is mapped at base, all before the rings */
  char *row;           /* this process's rings there; NULL: not mapped yet */
  spx_ring rings[SPX_RINGS_PER_PROC];
  uint32_t hand, backoff;
} spx_file;
SPX_HIDDEN extern spx_file spx_own; /* head of the list of all */
SPX_HIDDEN void spx_seg_unmap(spx_file *f);

static inline spx_seg *spx_head(const spx_file *f) { return (spx_seg *)f->base; }
static inline spx_proc *spx_file_proc(const spx_file *f, uint32_t i)
{
  return (spx_proc *)(f->base + spx_head(f)->proc_off + i * spx_head(f)->proc_stride);
}

/* segment.c: maps the job's memory file, in which this process is number me. An errno. */
SPX_HIDDEN int spx_seg_attach(int memfd, uint32_t me);
SPX_HIDDEN void spx_seg_detach(void);

/* By process index. peers.c writes file when the peer comes and goes. */
typedef struct {
  spx_file *file; /* NULL: our own, under the same number */
  uint32_t there; /* its number in file; abroad: the incarnation of this process in its job */
  uint32_t life;  /* incarnation of the number that file and there are of */
  bool abroad;    /* of another job, and reached over the network */
  bool dead;      /* its death has been noticed, and none of its number met since */
} spx_whereabouts;
SPX_HIDDEN extern spx_whereabouts *spx_places; /* NULL: not attached */
SPX_HIDDEN int spx_places_attach(void);        /* an errno */
SPX_HIDDEN void spx_places_detach(void);       /* closes the files of other jobs as well */

static inline uint32_t spx_life_of(uint32_t i)
{
  return __atomic_load_n(&spx_proc_of(i)->incarnation, __ATOMIC_ACQUIRE);
}
/* The file in which the channels of a peer lie, and its number there. */
SPX_HIDDEN spx_file *spx_place(uint32_t peer, uint32_t *there);
/* The entry of a peer in its own job's file: its bell, its descriptors, what to read from. */
SPX_HIDDEN spx_proc *spx_home(uint32_t peer);
/* The pid of a peer for this process; 0: it is in another pid namespace, or not published yet. It
 * may be the pid of another process when the peer has ended. Its agent publishes the end before it
 * reaps it, and the kernel gives pids in turn. So reading the peer's state just before (to change
 * something) or after (to trust data read) is enough. */
SPX_HIDDEN pid_t spx_pid_of(uint32_t peer);
/* Some process of the job is reached otherwise than through a memory file: it is on another host,
 * or all are taken to be (SPX_TRANSPORTS=tcp). The transport that reaches them writes it, when it
 * attaches and when it detaches. Read it by spx_beyond_host(). */
SPX_HIDDEN extern bool spx_beyond;
static inline bool spx_beyond_host(void) { return spx_beyond; }
/* Process i is reached over the network: it is on another host, or all are (SPX_TRANSPORTS=tcp). */
SPX_HIDDEN bool spx_net_peer(uint32_t i);
/* A wildcard receive on c may not go on: a member has failed, which is not acknowledged. */
SPX_HIDDEN bool spx_wild_blocked(const spx_comm *c);
/* The adopted file of another job, or NULL. */
SPX_HIDDEN spx_file *spx_file_found(uint64_t job);
#endif
