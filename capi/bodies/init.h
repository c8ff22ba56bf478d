/* init.h - between init.c, join.c and env.c. */
#ifndef SPX_INIT_H
#define SPX_INIT_H
#include "spx.h"
#include <pthread.h>

SPX_HIDDEN extern pthread_t spx_main_thread; /* the thread that called MPI_Init */
SPX_HIDDEN extern int spx_thread_level;      /* MPI_THREAD_* that was given */
/* MPI_Init and MPI_Finalize: SPX_BEFORE_INIT, SPX_INITIALIZED, SPX_FINALIZED. spx_state counts the
 * sessions too. */
SPX_HIDDEN extern _Atomic int spx_world_model;
/* Joins the job that a launcher started, or makes a job of this process alone: an MPI error code,
 * with its detail text. */
SPX_HIDDEN int spx_join(void);
/* background.c. Starts the thread of SPX_PROGRESS, if it is wanted and not there: an errno. Ends
 * it. */
SPX_HIDDEN int spx_background_start(void);
SPX_HIDDEN void spx_background_stop(void);
#endif
