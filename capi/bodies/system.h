/* system.h - a process's view of the system of clusters that it belongs to (capi/system.go fills it
 * in; cluster/layout). */
#ifndef SPX_SYSTEM_H
#define SPX_SYSTEM_H
#include "spx.h"

/* How slots are read: the modes of package choice. */
enum {
  SPX_CHOOSE_CYCLE,
  SPX_CHOOSE_TAG,
  SPX_CHOOSE_KEY,
  SPX_CHOOSE_LOAD,
  SPX_CHOOSE_QUEUE,
  SPX_CHOOSE_USER
};

/* Whether a gone process gets a successor: none does; a dead one does; all that belongs to a
 * cluster which leaves the system and may return is away from now on, whether its processes still
 * exist or have ended, and however (docs/systems.md, "A cluster that leaves"). */
enum { SPX_HEALS_NO, SPX_HEALS_DEAD, SPX_HEALS_AWAY };

/* A function of the user's: mpisp_choose of a shared object (docs/systems.md). */
typedef int spx_choose_function(int count, const int messages[], const long long bytes[], int tag);

/* Never changed, but replaced by another one: what a call has begun with stays. */
typedef struct spx_system {
  int32_t cluster;    /* index of the process's cluster; -1: it is an IOP */
  uint64_t ctx;       /* of messages to IOPs */
  uint32_t iops;      /* all of the system */
  uint32_t *proc;     /* their process indices, as spx_ranks_new makes them */
  uint8_t *heals;     /* of each: SPX_HEALS_* */
  uint32_t outs, ins; /* so many IOPs are behind MPISP_CLUSTER_OUT and MPISP_CLUSTER_IN */
  uint32_t *in;       /* the numbers of the latter */
  int mode;
  uint32_t slots;
  uint32_t *slot; /* numbers of IOPs */
  spx_choose_function *choose;
  /* of an IOP: the clusters that it is a member of */
  uint32_t worlds;
  struct spx_iop_world {
    spx_comm *comm;
    int32_t cluster;
    int32_t in, out; /* it receives from there, it sends there */
    int32_t heals;   /* SPX_HEALS_* */
    /* this IOP leaves: messages from there are forwarded, and no more are accepted */
    int32_t closing;
  } * world;
  /* of an IOP: of a call on MPI_COMM_WORLD bound to none, and then on each world (package view) */
  struct spx_iop_way {
    int32_t to;    /* index of the world that messages go to; negative: none that is certain */
    int32_t from;  /* the cluster that they come from, or SPX_ORIGIN_ANY_CLUSTER; -1: none */
    int32_t ranks; /* the largest such one has */
  } * way;
} spx_system;
typedef struct spx_iop_way spx_iop_way;
SPX_HIDDEN extern spx_system *spx_sys; /* NULL: the job is no system of clusters */

/* Puts s in the place of the one before. Neither is ever freed: pending calls may use it. */
SPX_HIDDEN void spx_system_set(spx_system *s);
/* Loads a user's function: 0, or MPI_ERR_ARG with a detail text. */
SPX_HIDDEN int spx_system_load(spx_system *s, const char *file);
/* The number of an I/O process for another message with that tag; -1: none is ready. */
SPX_HIDDEN int spx_system_choose(int tag);
/* Of a message with that tag for which this one was chosen: messages with the same lane are to keep
 * their order, whatever becomes of I/O processes. */
SPX_HIDDEN uint32_t spx_system_lane(int iop, int tag);
/* The number of choices in turn so far: the process that takes a rank over continues it. */
SPX_HIDDEN extern _Atomic uint32_t spx_system_turn;
/* This process sends nothing more, and publishes that: wakes those of this host that may wait for a
 * message from it. */
SPX_HIDDEN void spx_system_leave(void);
/* MPI has ended. */
SPX_HIDDEN void spx_system_end(void);

/* ---- what the files of this header share: system.c, system_choice.c, system_calls.c ---- */
/* of an IOP: index of the world that MPI_COMM_WORLD means; -1: by direction */
SPX_HIDDEN extern _Atomic int spx_system_bound;
/* The system as it is now: the setting SPX_IOP_CHOICE may have changed. */
SPX_HIDDEN const spx_system *spx_system_now(void);
/* The number of an IOP for the next message with that tag; -1: none is ready. */
SPX_HIDDEN int spx_system_iop(const spx_system *s, int tag);
/* One that could have been chosen is dead, or away, and another process is to be started in its
 * place; -1: none. */
SPX_HIDDEN int spx_system_healing(const spx_system *s);
SPX_HIDDEN bool spx_system_ready(const spx_system *s, uint32_t iop);
/* Whether it lives, and its agent has seen that it does not run. */
SPX_HIDDEN bool spx_system_hangs(const spx_system *s, uint32_t iop);
/* Of an IOP: makes c and dest those of a rank of the cluster that c means, else an error is raised
 * for argument arg. */
SPX_HIDDEN int spx_system_to(spx_comm **c, int *dest, const char *arg);

/* ---- system_parked.c ---- */
SPX_HIDDEN extern spx_request *spx_system_parked; /* those that wait */
/* The send r, which has no process to go to now, waits for one; false: none is awaited. */
SPX_HIDDEN bool spx_system_parks(spx_request *r);
/* Sends those that can go now; how many. */
SPX_HIDDEN int spx_system_unpark(void);

/* Takes back from processes that hang what they have nothing of, and what they are excused for. */
SPX_HIDDEN int spx_system_leave_hanging(const spx_system *s);
SPX_HIDDEN int spx_system_excuse_hanging(const spx_system *s);
#endif
