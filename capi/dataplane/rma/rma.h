/* rma.h - windows: the data plane's view of them, between dataplane/rma_*.c (moving data) and
 * bodies/win_sync.c, rma.c (the calls).
 *
 * MPI-5.0, chapter 12. docs/decisions/rma.md has the reasons. Every operation is complete, at the
 * origin and at the target, when its function returns: the memory of the target is mapped here
 * (MPI_Win_allocate, _shared, the own process), or is reached by process_vm_readv and
 * process_vm_writev, or, where those are forbidden, through a mailbox that the target empties in
 * its progress, or, over the network, by messages. Synchronisation is by messages on the window's
 * own communicator, locks are in the memory that the processes of a host share. */
#ifndef SPX_RMA_H
#define SPX_RMA_H
#include "spx.h"

/* The access epoch that this process has on a window. */
typedef enum {
  SPX_A_NONE,
  SPX_A_FENCE_OPEN, /* after a fence, and no operation yet: not an epoch so far */
  SPX_A_FENCE,
  SPX_A_PSCW,
  SPX_A_LOCK,
  SPX_A_LOCK_ALL
} spx_access;

/* The lock that this process holds at a target. */
typedef enum {
  SPX_HELD_NOT = 0,
  SPX_HELD_SHARED,
  SPX_HELD_EXCLUSIVE,
  SPX_HELD_UNCHECKED /* MPI_MODE_NOCHECK */
} spx_held;

typedef struct spx_target {
  /* the window's memory in this process's address space; NULL: it is not mapped here */
  char *here;
  /* its address at the target; 0 for dynamic windows, where displacements are addresses */
  uint64_t base;
  int64_t size;    /* bytes; -1: dynamic */
  int64_t unit;    /* disp_unit */
  uint32_t proc;   /* process index */
  uint8_t held;    /* spx_held */
  uint8_t started; /* in the group of MPI_Win_start */
  /* reached over the network (rma_far.c); base: 0, addresses count from the window's beginning */
  uint8_t far;
} spx_target;

/* In shared memory, one for each process of the window. A latch holds its owner's rank + 1, so that
 * it can be taken from the dead. Processes of several jobs have no other number in common. */
typedef struct spx_win_cell {
  uint32_t accumulate; /* latch: accumulates on this target's memory */
  uint8_t pad0[60];
  uint32_t latch;     /* guards the rest, and the target's row */
  uint32_t exclusive; /* rank + 1 of the holder */
  uint32_t shared;    /* number of holders */
  uint32_t waiting;   /* number of waiters */
  uint32_t tickets;   /* given out so far */
  uint8_t pad1[44];
} spx_win_cell;

/* Memory that was attached to a dynamic window. */
typedef struct spx_attached {
  struct spx_attached *next;
  uint64_t base, size;
} spx_attached;

typedef struct spx_win {
  spx_obj o; /* these two first, as in spx_plain */
  struct spx_errh *errh;
  spx_comm *comm; /* own communicator: a window's messages match no others */
  int rank, size;
  int flavor, model, unit; /* as attributes are read: MPI_WIN_CREATE_FLAVOR, _MODEL, _DISP_UNIT */
  void *base;
  MPI_Aint bytes;
  spx_access access;
  int locks;           /* targets locked one by one */
  int exposed;         /* between MPI_Win_post and its end */
  spx_request **waits; /* requests that MPI_Win_wait waits for: MPI_Win_complete of these origins */
  int nwaits;
  int *starts; /* targets of MPI_Win_start to be notified by MPI_Win_complete */
  int nstarts;
  uint32_t quiet; /* flushes since the rings were last polled */
  /* flushes since any operation but polling one place: the program waits for a peer */
  uint32_t vain;
  uint64_t looked; /* the place that was polled */
  int am;          /* active messages are the only way to some process */
  int boxed;       /* there are mailboxes */
  bool external;   /* of the memory file of another job: that of the leader */
  bool elsewhere;  /* some process is reached over the network */
  /* the lowest rank that shares memory with this one: it takes and gives back the window's memory
   * there */
  int leader;
  struct spx_win_far *far;          /* answers those: rma_far.c */
  uint64_t file_offset, file_bytes; /* part of the memory file */
  uint64_t used;                    /* bytes of it that the window needs */
  char *map;
  spx_win_cell *cells;
  char *rows;
  uint64_t row_bytes;
  char *boxes;
  spx_attached *attached; /* own memory, under spx_lock */
  struct {
    spx_poller poller;
    struct spx_win *win;
  } server;
  spx_target *targets;
  char name[MPI_MAX_OBJECT_NAME];
} spx_win;

/* ---- file_memory.c: memory of the job's memory file ---- */
/* addresses alone; the caller allocates what it uses */
SPX_HIDDEN uint64_t spx_file_reserve(uint64_t bytes);
/* Gives memory to a part of what is reserved; or an errno. */
SPX_HIDDEN int spx_file_allocate(uint64_t offset, uint64_t bytes);
/* Takes bytes of zeroed memory at the end of the job's memory file: *offset; or an errno. */
SPX_HIDDEN int spx_file_take(uint64_t bytes, uint64_t *offset);
/* Gives back memory that is not in use any more. */
SPX_HIDDEN void spx_file_drop(uint64_t offset, uint64_t bytes);
/* Maps a part of the memory file; NULL: errno. */
SPX_HIDDEN char *spx_file_map(uint64_t offset, uint64_t bytes);
/* Bytes that the host, and the control groups of the process, can give (available.c). */
SPX_HIDDEN uint64_t spx_memory_available(void);
/* The same by files of other names: the groups of a process, and the folder of all groups. */
SPX_HIDDEN uint64_t spx_memory_available_in(const char *self, const char *root);
SPX_HIDDEN void spx_file_unmap(char *map, uint64_t bytes);

/* ---- rma_memory.c: memory of windows, and locks ---- */
/* Memory of windows comes in chunks, zeroed. Small ones are kept, with their mappings, for the next
 * window: to allocate and map one, and to touch its pages, takes ten times as long as anything else
 * in making a window. */
/* Takes a chunk of at least bytes: *offset, *got; or an errno. */
SPX_HIDDEN int spx_chunk_take(uint64_t bytes, uint64_t *offset, uint64_t *got);
/* Takes the chunk that was given back last: its size, 0: there is none. */
SPX_HIDDEN uint64_t spx_chunk_spare(uint64_t *offset);
/* Gives back a chunk that is not in use any more, of which bytes at map may be other than zero. */
SPX_HIDDEN void spx_chunk_give(uint64_t offset, uint64_t bytes, char *map, uint64_t used);
/* Maps one; NULL: errno. */
SPX_HIDDEN char *spx_chunk_map(uint64_t offset, uint64_t bytes);
/* This process needs the mapping no more; again: the chunk may come back. */
SPX_HIDDEN void spx_chunk_unmap(char *map, uint64_t offset, uint64_t bytes, bool again);
/* Bytes that cells, rows and mailboxes of n processes need, and where they are in w->map. */
SPX_HIDDEN uint64_t spx_win_control_bytes(int n, int boxed);
SPX_HIDDEN void spx_win_control_set(spx_win *w);
SPX_HIDDEN void spx_latch_slow(const spx_win *w, uint32_t *latch);
static inline void spx_latch(const spx_win *w, uint32_t *latch)
{
  uint32_t free = 0, me = (uint32_t)w->rank + 1;
  if (SPX_UNLIKELY(!__atomic_compare_exchange_n(latch, &free, me, false, __ATOMIC_ACQUIRE,
                                                __ATOMIC_RELAXED)))
    spx_latch_slow(w, latch);
}
/* Without waiting for it; false: a living process has it. */
SPX_HIDDEN bool spx_latch_try(const spx_win *w, uint32_t *latch);
static inline void spx_unlatch(uint32_t *latch) { __atomic_store_n(latch, 0, __ATOMIC_RELEASE); }
/* Waits for the lock of a target's window memory (MPI-5.0, 12.5.3); MPIX_ERR_PROC_FAILED when the
 * target is dead. */
SPX_HIDDEN int spx_win_lock(spx_win *w, int target, spx_held how);
SPX_HIDDEN void spx_win_unlock(spx_win *w, int target, spx_held how);
/* For process rank: takes the lock of a target that shares memory with this process, or draws a
 * ticket, and: gives back what it holds there. */
SPX_HIDDEN bool spx_win_try_lock(spx_win *w, int target, int rank, spx_held how);
SPX_HIDDEN void spx_win_drop_lock(spx_win *w, int target, int rank);

/* ---- rma_move.c: data ---- */
/* Moves m bytes between the bytes [at, at + m) of the packed form of elements of rtype at the
 * target's address raddr and the bytes [lat, lat + m) of that of ltype at lbuf. An MPI error class,
 * with a detail text. */
SPX_HIDDEN int spx_rma_move(spx_win *w, int target, bool put, uint64_t raddr, const spx_type *rtype,
                            int64_t at, void *lbuf, const spx_type *ltype, int64_t lat, int64_t m);
/* A process died while the window was made or freed, so that not all members have it: no process
 * waits for those that do not. */
static inline bool spx_rma_given_up(const spx_win *w)
{
  return SPX_UNLIKELY(atomic_load_explicit(&w->comm->revoked, memory_order_relaxed) != 0);
}
#define SPX_RMA_GIVEN_UP                                                                           \
  "a process died while the window was made or freed, and not all others have it: free it, and "   \
  "make another one"
/* Reports a target that is dead, or has no memory there: the detail text, and the class. */
SPX_HIDDEN int spx_rma_lost(const spx_win *w, int target);
SPX_HIDDEN int spx_rma_no_memory(int target, uint64_t addr);

/* ---- rma_am.c: through the owner ---- */
/* spx_rma_move by active messages. *moved: bytes that were moved, fewer than m when the target did
 * not answer in time and the kernel can do it. */
SPX_HIDDEN int spx_rma_by_am(spx_win *w, int target, bool put, uint64_t raddr,
                             const spx_type *rtype, int64_t at, void *lbuf, const spx_type *ltype,
                             int64_t lat, int64_t m, int64_t *moved);
/* This process answers active messages: starts and stops it. */
SPX_HIDDEN void spx_rma_serve(spx_win *w);
SPX_HIDDEN void spx_rma_serve_end(spx_win *w);
/* May the memory of that process be read and written by the kernel for us? 0: no, or not known. */
SPX_HIDDEN bool spx_may_read(uint32_t peer);

/* ---- rma_rows.c ---- */
/* Whether that memory of this process is attached to the dynamic window. Called with spx_lock
 * held. */
SPX_HIDDEN bool spx_win_attached(const spx_win *w, uint64_t base, uint64_t size);

/* ---- rma_accumulate.c ---- */
typedef struct spx_accumulate {
  const void *origin;
  spx_type *origin_type;
  void *result;          /* may be MPI_BOTTOM */
  spx_type *result_type; /* NULL: MPI_Accumulate */
  uint64_t addr;         /* at the target */
  spx_type *type;
  int64_t count;
  const spx_op *op;
} spx_accumulate;
/* The predefined datatype that t is made of; MPI_BYTE when there are several. MPI_CHAR counts as
 * MPI_SIGNED_CHAR: the standard has no arithmetic for it, but other libraries have, and programs
 * use it. */
SPX_HIDDEN spx_type *spx_rma_element(const spx_type *t);
SPX_HIDDEN int spx_rma_accumulate(spx_win *w, int target, const spx_accumulate *a);
/* The usual case of all of them: n elements of a predefined type without gaps on both sides, in
 * memory that is mapped here; result NULL: not wanted. False: it is not that simple, and nothing
 * was done. */
SPX_HIDDEN bool spx_rma_at_once(const spx_win *w, uint32_t *latch, void *mem, const void *origin,
                                void *result, int64_t n, const spx_type *t, const spx_op *op);
SPX_HIDDEN bool spx_rma_swap_at_once(const spx_win *w, uint32_t *latch, void *mem,
                                     const void *origin, const void *compare, void *result,
                                     int64_t bytes);
SPX_HIDDEN int spx_rma_fetch_op(spx_win *w, int target, uint64_t addr, const void *origin,
                                void *result, spx_type *t, const spx_op *op);
SPX_HIDDEN int spx_rma_compare_swap(spx_win *w, int target, uint64_t addr, const void *origin,
                                    const void *compare, void *result, spx_type *t);
/* in and inout: k elements of basic in packed form. An error class. */
SPX_HIDDEN int spx_rma_reduce(const void *in, void *inout, int64_t k, const spx_type *basic,
                              const spx_op *op);

/* ---- rma_far.c: over the network; all return error classes, with a detail text ---- */
/* This process answers requests; starts and stops it. */
SPX_HIDDEN int spx_rma_far_serve(spx_win *w);
SPX_HIDDEN void spx_rma_far_end(spx_win *w);
/* Grants this process's lock to waiting processes elsewhere, in turn. */
SPX_HIDDEN void spx_rma_far_grant(spx_win *w);
/* As spx_rma_move, _accumulate, _compare_swap, spx_win_lock and _unlock. */
SPX_HIDDEN int spx_rma_far_move(spx_win *w, int target, bool put, uint64_t raddr,
                                const spx_type *rtype, int64_t at, void *lbuf,
                                const spx_type *ltype, int64_t lat, int64_t m);
SPX_HIDDEN int spx_rma_far_accumulate(spx_win *w, int target, const spx_accumulate *a);
SPX_HIDDEN int spx_rma_far_swap(spx_win *w, int target, uint64_t addr, const void *origin,
                                const void *compare, void *result, const spx_type *t);
SPX_HIDDEN int spx_rma_far_lock(spx_win *w, int target, spx_held how);
SPX_HIDDEN void spx_rma_far_unlock(spx_win *w, int target);
#endif
