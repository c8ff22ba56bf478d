/* repair.h - what systems of clusters (takeover.c) use of spare processes (comm_repair.c). */
#ifndef SPX_REPAIR_H
#define SPX_REPAIR_H
#include "spx.h"

typedef struct spx_repair spx_repair;
/* Of the processes of base the first work work, the others are spares. pool has the same processes, and is used for nothing else. together, called at
 * those that are to work, is what they do before their communicator counts: fails it at one of them, all begin again with those that live. NULL: no
 * memory. The last cold of base are started, in order, when some have died: until then they are not there. No communication. */
SPX_HIDDEN spx_repair *spx_repair_open(spx_comm *base, MPI_Comm pool, int work, int cold,
                                       int (*together)(MPI_Comm active));
/* All who live meet, out of whatever they do, and decide whether they leave together: *home, if all that work are there, and all have said that they are done. *pool: those that live, for
 * spx_repair_form. Nothing has changed yet, and waiting for the others is waiting like any other: they may need this process meanwhile. */
SPX_HIDDEN int spx_repair_decide(spx_repair *p, bool done, MPI_Comm *pool, bool *home);
/* Those in pool go on. *active: the communicator of those that work now, with the ranks that they had; spares have those of the dead, and without spares
 * the others close up. It belongs to the repair. MPI_COMM_NULL: this process is a spare. */
SPX_HIDDEN int spx_repair_form(spx_repair *p, MPI_Comm pool, MPI_Comm *active);
/* Those that work have all left, or are dead. */
SPX_HIDDEN bool spx_repair_empty(const spx_repair *p);
/* One of those that were not there waits for the others, who have met, and meets them; with nobody left, those like it. *active: the same. */
SPX_HIDDEN int spx_repair_join(spx_repair *p, MPI_Comm *active);
/* Waits until somebody meets, or nobody is left who works and somebody of these has died. */
SPX_HIDDEN void spx_repair_await(const spx_repair *p);
/* All processes, those that work first. */
SPX_HIDDEN const spx_comm *spx_repair_base(const spx_repair *p);
#endif
