/* diag.h - what this process waits for, written into the memory file for tools outside
 * (docs/diagnosis.md). Layer introspect: reads all layers below; sleeper.h says when it is
 * called. */
#ifndef SPX_DIAG_H
#define SPX_DIAG_H
#include "plan_run.h"
#include "sleeper.h"

/* In a system of clusters: the processes of other clusters' side whose messages a receive on this
 * communicator may take (bodies/system.c). */
SPX_HIDDEN extern void (*spx_diag_sources)(const spx_comm *, void (*each)(uint32_t proc, void *),
                                           void *arg);

/* Prepares this process's row of the memory file. Returns an errno. */
SPX_HIDDEN int spx_diag_attach(void);
SPX_HIDDEN void spx_diag_detach(void);

/* What the sleeping thread waits for is written into the row, and taken back: sleeper.h. */
SPX_HIDDEN extern const spx_sleep_hooks spx_diag_sleep;
#endif
