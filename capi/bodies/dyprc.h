/* dyprc.h - what C and the engine share of ulfm_dyprc (docs/malleability.md): package ft/malleable
 * decides, capi/dyprc.go is its shell. */
#ifndef SPX_DYPRC_H
#define SPX_DYPRC_H
#include <pthread.h>
#include <setjmp.h>
#include <stdbool.h>
#include "shim.h"

/* The engine's request for when a call returns to C. */
enum {
  SPX_DYPRC_STAY,
  SPX_DYPRC_ANOTHER /* go back to the point */,
  SPX_DYPRC_LEAVE,
  SPX_DYPRC_UNWANTED /* end, with status 1 */
};
enum { SPX_DYPRC_NEWS = 5 }; /* the words exchanged in a meeting: malleable.News */

typedef struct {
  MPI_Comm world; /* all processes; MPI_COMM_NULL before ulfm_dyprc_merge_child */
  spx_comm *comm; /* the same */
  MPI_Errhandler handler;

  jmp_buf point; /* where ulfm_dyprc_setjmp was called */
  bool armed;
  pthread_t thread;
  const char *frame; /* an address below the frame that has called setjmp */

  int left, stride; /* calls of ulfm_dyprc_poll until the next meeting, and from one to the next */
  /* nothing is on, as far as is known here: the next meeting may be over without the engine */
  bool quick;
  /* a meeting has taken place that is the engine's to go on with: news is its outcome, or err */
  bool met;
  int err;
  /* print: this process's fingerprint of its orders */
  int64_t news[SPX_DYPRC_NEWS], print;
  /* ns: when the last meeting was, and the engine's last look for commands */
  uint64_t last, looked;
  /* ns: when a failure was seen that is still to be recovered from */
  uint64_t failed;
} spx_dyprc_state;
SPX_HIDDEN extern spx_dyprc_state spx_dyprc;
#endif
