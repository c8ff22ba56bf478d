/* dyprc.h - what the files of ulfm_dyprc share (docs/malleability.md): dyprc.c has the functions that programs call, the error
 * handler and recovery; dyprc_change.c carries out commands; dyprc_command.c reads them.
 *
 * All of it stands on the library's own public functions, but for one: spx_dyprc_decide, an agreement and a shrink in one. It is
 * the only agreement that is ever called on the communicator of all processes, so that whoever comes from whichever call meets
 * the others in the same one: a process that has seen a failure says so in it, and one that has made the next
 * communicator says that. */
#ifndef SPX_DYPRC_H
#define SPX_DYPRC_H
#include <pthread.h>
#include <setjmp.h>
#include <stdbool.h>
#include "shim.h"

/* Flags of spx_dyprc_decide; what all living processes have said is decided. */
enum {
  SPX_DECIDE_CALM = 1u, /* no failure was seen here, nothing was revoked: the communicator is as good as before */
  SPX_DECIDE_GO = 2u    /* what was to be done is done here */
};
/* *flags in: what this process says; out: what all who live have said. Without SPX_DECIDE_CALM *next gets the communicator of the living
 * (as MPIX_Comm_shrink), else MPI_COMM_NULL. Uniform. Returns an MPI error code, of memory. */
SPX_HIDDEN int spx_dyprc_decide(MPI_Comm comm, uint32_t *flags, MPI_Comm *next);

enum { SPX_DYPRC_TEXT = 4096 /* bytes of commands taken at once, and of a result */, SPX_DYPRC_TRIES = 4 };
enum { SPX_DYPRC_FROM_FILE = 1, SPX_DYPRC_FROM_AGENT = 2 }; /* where commands come from */

/* What all processes know of the commands that were taken: rank 0 hands it on, so that its successor can go on. */
typedef struct {
  int64_t stamp[3];   /* of the command file when commands were taken from it: time of change in ns, inode, size */
  uint64_t number;    /* of the latest command of the agent */
  int32_t source;     /* of these commands; 0: there are none */
  int32_t at;         /* position in text of the next one */
  int32_t tries;      /* how often it has failed because a process died meanwhile */
  int32_t killing;    /* processes that end themselves as the command said: it is done when the others have recovered */
  int32_t from;       /* number of processes when the drill began */
  int32_t unanswered; /* commands were taken from the file, and nobody is known to have written the answer */
  int32_t first;      /* number of processes when they were taken */
  uint64_t epoch;     /* number of changes so far */
  char text[SPX_DYPRC_TEXT]; /* separated by newlines or semicolons */
  char error[256];           /* of the first that could not be carried out; empty: none */
} spx_dyprc_orders;

typedef struct {
  MPI_Comm world; /* all processes; MPI_COMM_NULL before ulfm_dyprc_merge_child */
  spx_comm *comm; /* the same */
  int rank, size;
  MPI_Comm
      former; /* the one before, from `stayed` on with processes that leave: they may still have to hear what was decided */
  int stayed;
  MPI_Errhandler handler;

  jmp_buf point; /* where ulfm_dyprc_setjmp was called */
  bool armed;
  pthread_t thread;
  const char *frame; /* an address below the frame that has called setjmp */

  bool newcomer; /* spawned, and has not passed ulfm_dyprc_setjmp yet */
  bool told;     /* at rank 0: the agent knows who the processes are */
  bool restart;  /* the next pass of ulfm_dyprc_setjmp is one after a change */

  int left, stride;       /* calls of ulfm_dyprc_poll until the next meeting, and from one to the next */
  uint64_t met;           /* when that was, ns */
  uint64_t began;         /* when the change was noticed; 0: none is going on */
  int before;             /* number of processes then */
  const char *how;        /* what has changed it */
  double seconds;         /* that the changes took that were asked for together */
  spx_dyprc_orders order; /* the same at all, when decided */
} spx_dyprc_state;
SPX_HIDDEN extern spx_dyprc_state spx_dyprc;

/* At rank 0: a command on its way from the agent, which a thread of the engine waits for. */
enum { SPX_DYPRC_IDLE, SPX_DYPRC_WAITING, SPX_DYPRC_ARRIVED, SPX_DYPRC_FAILED };
typedef struct {
  _Atomic int state;
  uint64_t number;
  char text[SPX_DYPRC_TEXT];
} spx_dyprc_mail;
SPX_HIDDEN extern spx_dyprc_mail spx_dyprc_post;
SPX_HIDDEN extern SPX_TLS int
    spx_dyprc_busy; /* > 0: this thread is in one of these functions, which looks at error codes itself */

SPX_HIDDEN uint64_t spx_dyprc_now(void); /* ns */

/* ---- dyprc.c ---- */
/* A change begins: how is what it will be called. */
SPX_HIDDEN void spx_dyprc_begin(const char *how);
/* next takes the place of the communicator of all processes. */
SPX_HIDDEN void spx_dyprc_adopt(MPI_Comm next);
/* The former communicator goes as soon as those who leave have left; wait: not before. */
SPX_HIDDEN void spx_dyprc_bury(bool wait);
/* Whoever lives becomes the communicator of all processes. */
SPX_HIDDEN void spx_dyprc_recover(void);
/* c has been revoked. Called from the engine: it raises nothing. */
SPX_HIDDEN void spx_dyprc_revoked(const spx_comm *c);

/* ---- dyprc_change.c ---- */
/* Carries out the command at order.at, at all processes. Returns true when there is another communicator now. A process that has to
 * leave does not return. */
SPX_HIDDEN bool spx_dyprc_carry_out(void);
/* Spawned processes and those that have spawned them (high = 0) come together. Returns an MPI error code; 0: *all is the
 * communicator of all of both sides that live. Takes *inter over. */
SPX_HIDDEN int spx_dyprc_merge(MPI_Comm *inter, int high, MPI_Comm *all);

/* ---- dyprc_command.c ---- */
/* At rank 0: takes commands into order if there are some and none is being carried out. */
SPX_HIDDEN void spx_dyprc_look(void);
/* At rank 0, after a change: tells the agent who the processes are now, and returns when it knows. */
SPX_HIDDEN void spx_dyprc_tell(void);
/* At rank 0: the commands are done, or cannot be carried out: tells so where they came from. */
SPX_HIDDEN void spx_dyprc_done(void);
/* At rank 0 of those that a job begins with: a command file that is older holds no command. */
SPX_HIDDEN void spx_dyprc_pass_over(void);
/* Notes why a command cannot be carried out, if it is the first. */
SPX_HIDDEN void spx_dyprc_refuse(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
#endif
