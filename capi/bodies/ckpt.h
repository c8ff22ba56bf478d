/* ckpt.h - what the files of application-level checkpoints share (docs/checkpoint.md): ckpt.c has the object and what is registered,
 * ckpt_meet.c how the processes of a communicator come together, ckpt_save.c and ckpt_restore.c the two directions. What is
 * decided, and files, are the engine's (capi/checkpoint.go, package ckpt).
 *
 * Everything travels on a communicator of the object's own, a duplicate of the user's. A process that sees a failure there revokes
 * it, so that nobody waits for who has gone away to recover; and it is revoked with the user's. There is no agreement that a
 * process would have to come to: who is left decides by what is there when processes meet, and when they restore. */
#ifndef SPX_CKPT_H
#define SPX_CKPT_H
#include <stdbool.h>
#include "shim.h"

/* A part: what one rank has saved of one version. Package ckpt has the layout of its data. */
typedef struct {
  int64_t generation;
  int32_t version;
  int32_t rank;   /* that has saved it */
  int32_t ranks;  /* how many have saved this version */
  int32_t holder; /* rank of the present communicator that has it */
  int32_t kind;   /* SPX_CKPT_MEMORY or SPX_CKPT_FILE */
  int32_t unused;
} spx_ckpt_item;
enum { SPX_CKPT_MEMORY, SPX_CKPT_FILE };
enum { SPX_CKPT_HEAD = 48, SPX_CKPT_ENTRY = 24 };

typedef struct spx_ckpt_part {
  spx_ckpt_item is;
  void *data; /* the part; NULL: it is in a file */
  int64_t bytes;
  struct spx_ckpt_part *next;
} spx_ckpt_part;

typedef struct {
  int id;
  void *buf;
  int64_t count;
  spx_type *type; /* referenced */
} spx_ckpt_region;

/* A region of the version that is being restored. */
typedef struct {
  int64_t rank, id, at, bytes; /* at: from the beginning of the part */
} spx_ckpt_entry;

typedef struct {
  int64_t rank, at, bytes; /* of a part */
  void *buf;
  int64_t count;
  spx_type *type; /* referenced */
} spx_ckpt_want;

typedef struct {
  int32_t rank, from, to, unused;
} spx_ckpt_copy;

/* Sends and receives on the object's communicator. */
typedef struct {
  struct spx_checkpoint *k;
  spx_request **r;
  int64_t n;
  int err; /* of the first that has failed */
} spx_ckpt_batch;

/* A version on its way to where its parts are kept. */
typedef struct {
  spx_ckpt_item is;
  char *part; /* this process's; NULL: no memory */
  int64_t bytes;
  spx_ckpt_part *in;    /* a part for each of from, data NULL where none comes */
  spx_ckpt_batch batch; /* of the copies */
  bool writing;         /* into a file */
} spx_ckpt_save;

typedef struct spx_checkpoint {
  /* what was asked for */
  int copies, versions;
  char *directory, *name; /* directory: NULL: no files */
  /* the processes */
  spx_comm *base; /* the user's communicator, referenced; NULL: not attached */
  uint32_t base_handle;
  MPI_Comm own;   /* MPI_COMM_NULL: not attached */
  spx_comm *comm; /* the same */
  int rank, size;
  int32_t *hosts;     /* a number for the host of each rank */
  int32_t *to, *from; /* ranks that keep copies of this one's part; whose parts this one keeps */
  int64_t nto, nfrom;
  int64_t generation;
  struct spx_checkpoint *next, **prev; /* list of those that are attached */
  /* what is there */
  spx_ckpt_region *regions; /* in ascending order of id */
  int nregions;
  spx_ckpt_part *parts;
  spx_ckpt_item *known; /* versions of which all is there, the newest first */
  int64_t nknown;
  int saved;  /* version that was saved and not committed; -1: none */
  int status; /* why this process could not keep all of it; MPI_SUCCESS: it could */
  char why[256];
  spx_ckpt_save *pending; /* what was begun to be saved; NULL: nothing */
  /* a restore between its begin and its end */
  bool restoring;
  spx_ckpt_item chosen;
  int32_t *sources;      /* who serves each part */
  spx_ckpt_entry *table; /* in order of rank and id */
  int64_t nentries;
  spx_ckpt_item *items; /* that all have */
  int64_t nitems;
  spx_ckpt_want *wants;
  int64_t nwants, room;
} spx_checkpoint;

/* c was revoked. Called from the engine: it raises nothing. */
SPX_HIDDEN void spx_ckpt_revoked(const spx_comm *c);

/* ---- ckpt.c ---- */
SPX_HIDDEN spx_checkpoint *spx_ckpt_of(MPIX_Checkpoint checkpoint);
/* Raises code, with this thread's detail text, on the user's communicator. Nothing may be held: the handler may longjmp. */
SPX_HIDDEN int spx_ckpt_fail(const spx_checkpoint *k, int code);
/* MPI_SUCCESS, or the code of an object that is not attached or is (not) restoring, with the detail text. */
SPX_HIDDEN int spx_ckpt_ready(const spx_checkpoint *k, bool restoring);
SPX_HIDDEN int spx_ckpt_no_memory(int64_t bytes);
/* Drops the parts that `gone` says are not wanted; files too. */
SPX_HIDDEN void spx_ckpt_drop(spx_checkpoint *k, bool (*gone)(const spx_checkpoint *, const spx_ckpt_part *));
/* A new part in the list; NULL: no memory, and data is freed. */
SPX_HIDDEN spx_ckpt_part *spx_ckpt_keep(spx_checkpoint *k, spx_ckpt_item is, void *data, int64_t bytes);
/* What belongs to a restore that is not going on any more. */
SPX_HIDDEN void spx_ckpt_forget(spx_checkpoint *k);
/* Enters the engine: SPX_IN_CKPT_*. Returns an error code, with the detail text. */
SPX_HIDDEN int spx_ckpt_ask(uint32_t what, int n, const spx_word *a);
#define SPX_CKPT_ASK(what, ...)                                                                                        \
  spx_ckpt_ask(what, sizeof((spx_word[]){__VA_ARGS__}) / sizeof(spx_word), (spx_word[]){__VA_ARGS__})

/* ---- ckpt_save.c ---- */
/* Waits for what was begun to be saved. */
SPX_HIDDEN int spx_ckpt_settle(spx_checkpoint *k);

/* ---- ckpt_meet.c ---- */
/* The processes of comm come together with k. Returns an error code: then k is attached to none. */
SPX_HIDDEN int spx_ckpt_meet(spx_checkpoint *k, spx_comm *comm);
SPX_HIDDEN void spx_ckpt_part_ways(spx_checkpoint *k);
/* What all have, in k->items; and k->known from it. status: of this process; returns the first error code of any. */
SPX_HIDDEN int spx_ckpt_take_stock(spx_checkpoint *k, int status);
/* The first error code that any process has, told to all: 0, or the code, and by the text which rank it was. */
SPX_HIDDEN int spx_ckpt_judge(spx_checkpoint *k, int status);
/* Passes rc on. If a call on the object's communicator has failed, that is revoked. */
SPX_HIDDEN int spx_ckpt_check(spx_checkpoint *k, int rc);
/* Room for n messages; false: no memory. */
SPX_HIDDEN bool spx_ckpt_batch_open(spx_ckpt_batch *b, spx_checkpoint *k, int64_t n);
SPX_HIDDEN void spx_ckpt_send(spx_ckpt_batch *b, const void *buf, int64_t bytes, int to, int tag);
SPX_HIDDEN void spx_ckpt_receive(spx_ckpt_batch *b, void *buf, int64_t count, spx_type *t, int from, int tag);
SPX_HIDDEN spx_type *spx_ckpt_bytes(void);
/* Waits for all of them. Returns the error code of the first that has failed. */
SPX_HIDDEN int spx_ckpt_batch_close(spx_ckpt_batch *b);
#endif
