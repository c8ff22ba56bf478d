/* init.h - what MPI_Init has found, for env.c. */
#ifndef SPX_INIT_H
#define SPX_INIT_H
#include "spx.h"
#include <pthread.h>

SPX_HIDDEN extern pthread_t spx_main_thread; /* the thread that called MPI_Init */
SPX_HIDDEN extern int spx_thread_level;      /* MPI_THREAD_* that was given */
#endif
