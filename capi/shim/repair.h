/* repair.h - what systems of clusters (capi/takeover.go) use of spare processes (comm_repair.c). */
#ifndef SPX_REPAIR_H
#define SPX_REPAIR_H
#include "spx.h"

typedef struct spx_repair spx_repair;
/* Of the processes of base the first work work, the others are spares. pool has the same processes, and is used for nothing else. Those that are to work do
 * SPX_IN_TAKEOVER_TOGETHER (a0: their MPI_Comm) before their communicator counts: fails it at one of them, all begin again with those that live. NULL: no
 * memory. The last cold of base are started, in order, when some have died: until then they are not there. No communication. */
SPX_HIDDEN spx_repair *spx_repair_open(spx_comm *base, const spx_comm *pool, int work, int cold);

/* Call-outs of a runner: a0 is the spx_repair *. Bits 0 to 30 of their result are an MPI error code, with a detail text; bits 32 to 63 a communicator. */
/* All who live meet, out of whatever they do, and decide whether they leave together: bit 31, if all that work are there, and all have said (a1) that they are done. Else those that live, for
 * spx_repair_form. Nothing has changed yet, and waiting for the others is waiting like any other: they may need this process meanwhile. */
SPX_HIDDEN int64_t spx_repair_decide(spx_word *a);
/* Those in a1 go on. The communicator of those that work now, with the ranks that they had; spares have those of the dead, and without spares
 * the others close up. It belongs to the repair. MPI_COMM_NULL: this process is a spare. */
SPX_HIDDEN int64_t spx_repair_form(spx_word *a);
/* One of those that were not there waits for the others, who have met, and meets them; with nobody left, those like it. The same communicator. */
SPX_HIDDEN int64_t spx_repair_join(spx_word *a);
/* Waits until somebody meets, or nobody is left who works and somebody of these has died. 0. */
SPX_HIDDEN int64_t spx_repair_await(spx_word *a);

/* Those that work have all left, or are dead. */
SPX_HIDDEN bool spx_repair_empty(const spx_repair *p);
#endif
