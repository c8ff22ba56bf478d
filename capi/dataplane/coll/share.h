/* share.h - the memory that the processes of a communicator share for its collectives.
 *
 * It is behind the parts of the job's memory file that are laid out in layout.h, as windows are,
 * and holds
 *
 *   head    members that have left; number of those that wait in the kernel
 *   lines   one a rank: the tick up to which it has read all that it wants
 *   cells   `depth` a rank, used in turn: a tick, and up to SPX_SHARE_CELL bytes of data
 *   small slots   the same for operations with up to SPX_SHARE_SMALL_SLOT bytes: four to a cache
 *           line, and more of them
 *   bulk    SPX_SHARE_PARTS parts, used in turn, for longer data
 *
 * Time counts in ticks, equally many at all ranks in each operation (core/coll/shared.go). Each
 * cell and line has one writer. A process writes a cell or a part again when the lines of all ranks
 * show that its former content has been read. The memory that is used grows with the number of
 * ranks (4 KiB each, 2 KiB above 64 ranks) and has at most 4 MiB of bulk.
 *
 * A user of small slots does not publish after each operation what it has read, but every
 * SPX_SHARE_SAYS ticks and before it waits: peers wait for that only in operations that this
 * process has yet to take part in.
 *
 * The process that makes a context offers memory for it by an entry in the table of layout.h before
 * any other process has the context, so that all members agree whether there is some. The first
 * user gives it its place. The last member to leave, not counting the dead, gives it back. */
#ifndef SPX_SHARE_H
#define SPX_SHARE_H
#include "dp.h"

enum {
  SPX_SHARE_PARTS = 4,
  SPX_SHARE_PART = 1 << 20,
  SPX_SHARE_CELL = 48,
  SPX_SHARE_SMALL_SLOT = 8,
  SPX_SHARE_SAYS = 16
};

typedef struct spx_cell { /* the owner writes; tick last */
  uint32_t tick;
  uint32_t signature;
  uint32_t through; /* as the owner's line when this was posted */
  uint32_t pad;
  uint8_t data[SPX_SHARE_CELL];
} spx_cell;

typedef struct spx_small_slot { /* the owner writes; head last */
  uint64_t head;                /* spx_small_slot_head */
  uint8_t data[SPX_SHARE_SMALL_SLOT];
} spx_small_slot;

enum { SPX_SHARE_OUTSIDE = 12, SPX_SHARE_INSIDE = 8 };
typedef struct spx_share_line { /* the owner writes */
  uint32_t through;
  uint32_t asks; /* it sleeps until all ranks are through with tick `wants` */
  uint32_t wants;
  /* The last operations on the communicator by their number + 1, at the place of the number: those
   * that it has begun by messages, and those that it has begun here, with the tick after them. An
   * operation in both lists, of whatever ranks, is one whose calls do not match. */
  uint32_t outside[SPX_SHARE_OUTSIDE];
  uint32_t pad;
  uint32_t inside[SPX_SHARE_INSIDE], after[SPX_SHARE_INSIDE];
} spx_share_line;
_Static_assert(sizeof(spx_share_line) == 2 * SPX_LINE, "spx_share_line");

typedef struct spx_share_head {
  uint32_t asleep; /* since all have been woken, some process has gone to sleep */
  /* number of ranks that sleep until there is room; a killed one stays counted: then the peers read
   * the lines */
  uint32_t asking;
  uint8_t pad[SPX_LINE - 8];
  uint8_t left[]; /* one a rank */
} spx_share_head;

/* A process's view of the shared memory of one communicator. Used by the run whose turn it is. */
typedef struct spx_share {
  char *map, *bulk;
  uint64_t bytes;
  spx_share_head *head;
  spx_share_line *lines;
  spx_cell *cells;
  spx_small_slot *small_slots;
  spx_dir_entry *entry;
  uint32_t n, me, depth, small_depth;
  uint32_t next;             /* the first tick of the next operation */
  _Atomic uint32_t finished; /* the last tick of the operations that are over here */
  uint32_t through;          /* own line; `finished` may be further on */
  uint32_t safe;             /* all ranks are through with this tick */
  uint32_t seen_deaths;
  /* number + 1 of the last operation that peers were notified of: begun by messages there, in
   * shared memory here; or SPX_SHARE_NONE */
  uint64_t noted;
  bool behind;        /* operations have begun here since this was looked after */
  int32_t error;      /* it can be used no more */
  uint64_t allocated; /* bulk memory by pieces of 64 KiB */
  spx_into into;      /* how copies are stored there */
} spx_share;

/* 1 when all members agree that the communicator has shared memory. */
SPX_HIDDEN int spx_share_offered(const spx_comm *c);
/* Makes an entry for a context that this process has just made and not sent to any other. */
SPX_HIDDEN void spx_share_offer(uint64_t ctx);
/* Attaches to the memory of c, once: c->share; MPI_ERR_NO_MEM, which the other members learn of. */
SPX_HIDDEN int spx_share_attach(spx_comm *c);
/* This process cannot take part in an operation on c for lack of memory: no member can use c's
 * shared memory any more. */
SPX_HIDDEN void spx_share_break(spx_comm *c);
/* This process leaves c. May run inside the data plane. */
SPX_HIDDEN void spx_share_leave(spx_comm *c);
/* Why no more posts may come: sh->error. Cheap enough for an unsuccessful look. */
SPX_HIDDEN int spx_share_trouble(const spx_comm *c, spx_share *sh);
/* Bulk memory of a tick, from off to off+bytes, is there: MPI_ERR_NO_MEM. */
SPX_HIDDEN int spx_share_allocate(spx_comm *c, spx_share *sh, uint32_t tick, uint64_t off,
                                  uint64_t bytes);
/* Rings those members that sleep. */
SPX_HIDDEN void spx_share_ring(const spx_comm *c, const spx_share *sh);

#define SPX_SHARE_NONE UINT64_MAX

/* The first tick of a communicator: all fields of a rank are 0 before that, or as set by
 * spx_share_attach. */
static inline uint32_t spx_share_first(void) { return (uint32_t)spx_count_from(32, 40) + 1; }

static inline spx_cell *spx_share_cell(const spx_share *sh, uint32_t rank, uint32_t tick)
{
  return &sh->cells[rank * sh->depth + (tick & (sh->depth - 1))];
}
static inline spx_small_slot *spx_share_small_slot(const spx_share *sh, uint32_t rank,
                                                   uint32_t tick)
{
  return &sh->small_slots[rank * sh->small_depth + (tick & (sh->small_depth - 1))];
}
/* A small slot's tick, how far its owner's line was behind it, and its signature, the halves of
 * which are folded. */
static inline uint64_t spx_small_slot_head(uint32_t tick, uint32_t through, uint32_t signature)
{
  uint32_t lag = tick - through;
  return (uint64_t)tick << 32 | (lag < 0xffff ? lag : 0xffff) << 16 |
         ((signature ^ signature >> 16) & 0xffff);
}
static inline char *spx_share_part(const spx_share *sh, uint32_t tick)
{
  return sh->bulk + (uint64_t)(tick % SPX_SHARE_PARTS) * SPX_SHARE_PART;
}
#endif
