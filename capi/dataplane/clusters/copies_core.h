/* copies_core.h - copies of message logs (of a commit, and what came since: spx_msglog,
 * replay_core.h) that other processes keep, so that the state needed to take a rank over outlives
 * its host. docs/systems.md. It decides what is sent, and whether a copy is valid; messages and
 * memory are its caller's (copies.c), and a simulation's (test/copies_sim.c).
 *
 * A log changes by appending, and by commits, which begin another area; each change has a number,
 * its version. The log is sent in pieces: bytes of an area, each from where the one before has
 * ended. A piece that makes the copy complete carries the version, and the heads of the areas. So a
 * copy that got the pieces in order is, from each such piece to the next, the log as it was at one
 * moment, whatever has arrived of the next ones:
 *
 *   1. The successor of a participant that continues from a copy continues from a state in which
 *   the process itself may have died. Therefore nothing may leave that process (messages, and
 *   acknowledgements of messages that it has accepted) before its copy has the version that it had
 *   then.
 *   2. Bytes of a commit go where the one before the last was; they are sent when all of the last
 *   one has been (version in spx_copying), so that the last one of which the copy has all stays as
 *   it is.
 *   3. A process that was declared dead may still run, cut off from its peers. From when another
 *   one has requested its copies, nothing more is accepted from it and nothing confirmed, so
 *   nothing more leaves it that depends on more than was given.
 *   4. The keeper of the copy changes: then all is sent to the new one under a higher term, and is
 *   valid there when it is whole. Until then the copies of former terms are valid: nothing newer
 *   has had effects. Of several whole copies the one with the highest term is valid. The process
 *   that has a whole copy frees those with lower terms, and tells the other members to do so. */
#ifndef SPX_COPIES_CORE_H
#define SPX_COPIES_CORE_H
#include "replay_core.h"

/* One period of keeping a copy. life: of the process whose log it is, not 0: no two periods have
 * the same term and life. */
typedef struct spx_copy_key {
  uint64_t term;
  uint32_t life, rank;
} spx_copy_key;

typedef struct spx_copy_piece { /* bytes of an area follow */
  spx_copy_key key;
  uint64_t version; /* 0: more follow before it counts */
  uint64_t area, at, bytes;
  uint64_t area_bytes, life; /* of the log */
  uint64_t commits;
  struct {
    uint64_t image, end, reached;
  } of[SPX_MSGLOG_AREAS]; /* with a version: as they are with it */
} spx_copy_piece;

/* ---- the owner of the log ---- */
typedef struct spx_copying {
  const spx_msglog *log;
  spx_copy_key key;
  uint64_t sent[SPX_MSGLOG_AREAS];    /* bytes of each area */
  uint64_t commits[SPX_MSGLOG_AREAS]; /* ... of this commit */
  uint64_t version, there;            /* sent, and present in the copy */
} spx_copying;
void spx_copying_begin(spx_copying *c, const spx_msglog *v, spx_copy_key key);
/* The next piece, of most bytes at most; they are at *data. version: of the log. false: all of it
 * has been sent. */
bool spx_copying_next(spx_copying *c, uint64_t version, uint64_t most, spx_copy_piece *p,
                      const uint8_t **data);
/* The copy with this key has this version. true: it has not had so much before. */
bool spx_copying_has(spx_copying *c, const spx_copy_key *key, uint64_t version);

/* ---- the keeper of the copy ---- */
typedef struct spx_log_copy {
  struct spx_log_copy *next;
  spx_copy_key key;
  uint64_t version;               /* 0: it does not count yet */
  uint64_t got[SPX_MSGLOG_AREAS]; /* bytes of each area, */
  uint64_t of[SPX_MSGLOG_AREAS];  /* ... of this commit */
  spx_msglog *log;
  void *memory; /* the caller's */
} spx_log_copy;
typedef struct spx_copies {
  spx_log_copy *first;
  /* by rank: the process that requests it has this life; 0: none has */
  uint32_t *lives, nlives;
  /* A log with areas of so many bytes, of which nothing is set; NULL: no memory. room: as in
   * spx_core_io. */
  spx_msglog *(*make)(void *arg, uint64_t area_bytes, void **memory);
  bool (*room)(void *arg, void *memory, uint64_t at, uint64_t bytes);
  void (*drop)(void *arg, spx_msglog *v, void *memory);
  void *arg;
} spx_copies;
typedef enum { SPX_COPY_TAKEN, SPX_COPY_NO_MEMORY, SPX_COPY_WRONG, SPX_COPY_LATE } spx_copy_result;
/* SPX_COPY_LATE: of a term that is over, or the piece before it was not taken; SPX_COPY_WRONG: it
 * is none. *of: the copy, when it was taken. */
spx_copy_result spx_copies_take(spx_copies *s, const spx_copy_piece *p, const uint8_t *data,
                                spx_log_copy **of);
/* The valid copy of this rank; NULL: there is none. */
spx_log_copy *spx_copies_best(const spx_copies *s, uint32_t rank);
spx_log_copy *spx_copies_find(const spx_copies *s, const spx_copy_key *key);
/* The highest term of those of a rank, also of those that do not count; 0: there is none. */
uint64_t spx_copies_term(const spx_copies *s, uint32_t rank);
/* Those of a rank with a lower term than this. */
void spx_copies_forget(spx_copies *s, uint32_t rank, uint64_t below);
/* The copy belongs to the caller, with its memory. */
void spx_copies_release(spx_copies *s, spx_log_copy *c);
/* The process of this life takes the rank over: pieces from other lives are refused from now on.
 * false: no memory. */
bool spx_copies_fence(spx_copies *s, uint32_t rank, uint32_t life);
bool spx_copies_bars(const spx_copies *s, const spx_copy_key *key);
void spx_copies_end(spx_copies *s);
/* Which one counts, when several are whole: below 0 when a does not. */
int spx_copy_order(const spx_copy_key *a, uint64_t version_a, const spx_copy_key *b,
                   uint64_t version_b);
#endif
