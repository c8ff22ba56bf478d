/* fail.h - deaths and revocations: the operations that they end, and the layers above that must be
 * notified.
 *
 * Layer pt2pt. fail.c drains the records of a dead process, and ends the sends and receives that
 * can never complete; then it calls the observers. dataplane.c has their list, in the order of the
 * calls. Called with spx_lock held, but for attach. */
#ifndef SPX_FAIL_H
#define SPX_FAIL_H
#include "spx.h"

/* NULL: of no concern to that layer. */
typedef struct {
  void (*died)(uint32_t peer);
  void (*revoked)(const spx_comm *c);
  void (*changed)(void); /* processes have died, left, come or moved */
} spx_failure_observer;
SPX_HIDDEN extern const spx_failure_observer spx_clusters_failures, spx_mcast_failures;
/* observers: NULL at the end. */
SPX_HIDDEN void spx_fail_attach(const spx_failure_observer *const *observers);

/* Looks for deaths that the agent has published; the number of things that happened. */
SPX_HIDDEN int spx_notice_deaths(void);
#endif
