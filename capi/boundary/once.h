/* once.h - what many processes of a job have to say for one cause is said by one of them. */
#ifndef SPX_ONCE_H
#define SPX_ONCE_H
#include "spx.h"

/* What SPX_IN_EARLY gives in a1 (capi/early.go). */
enum { SPX_EARLY_NOTHING, SPX_EARLY_JOINED, SPX_EARLY_FIRST, SPX_EARLY_AGAIN };

/* May this process say what is wrong? If so it says it, and then calls spx_said with the turn.
 * False when another process of the job, on whichever host, has said it for the same cause: it has
 * then, so that the caller may end processes. shortly is what spxrun says at the end of the job of
 * those that were told no; "": nothing. Asks the agent, and waits for at most two seconds: an agent
 * that does not answer, or none, means yes. Needs no engine, no heap and no lock; for when
 * something is wrong only. */
SPX_HIDDEN bool spx_may_say(const char *cause, const char *shortly, int *turn);
SPX_HIDDEN void spx_said(int turn);
/* Prints a line, "libspx: " before it, if this process may say it. cause is what is alike in all
 * processes; it is what spxrun says of the others. */
SPX_HIDDEN void spx_say_once(const char *cause, const char *fmt, ...)
    __attribute__((format(printf, 2, 3), cold));
#endif
