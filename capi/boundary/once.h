/* once.h - the messages of many processes of a job for one cause are printed by one of them. */
#ifndef SPX_ONCE_H
#define SPX_ONCE_H
#include "spx.h"

/* The results of SPX_IN_EARLY in a1 (capi/early.go). */
enum { SPX_EARLY_NOTHING, SPX_EARLY_JOINED, SPX_EARLY_FIRST, SPX_EARLY_AGAIN };

/* Whether this process may print its message. If so it prints it, and then calls spx_said with the
 * turn. False when another process of the job, on whichever host, has printed one for the same
 * cause: it is out then, so that the caller may end processes. shortly is spxrun's text at the end
 * of the job for the refused processes; "": none. Queries the agent, and waits for at most two
 * seconds: an agent that does not answer, or none, means yes. Needs no engine, no heap and no lock;
 * for errors only. */
SPX_HIDDEN bool spx_may_say(const char *cause, const char *shortly, int *turn);
SPX_HIDDEN void spx_said(int turn);
/* Prints a line, "libspx: " before it, if this process may. cause is the part that is alike in all
 * processes; spxrun prints it for the rest. */
SPX_HIDDEN void spx_say_once(const char *cause, const char *fmt, ...)
    __attribute__((format(printf, 2, 3), cold));
#endif
