/* spawn.h - the C side of what processes ask of their agent (capi/agent.go, spawn.go): waiting, and an agent for a process that
 * has none. MPI-5.0, chapter 11. */
#ifndef SPX_SPAWN_H
#define SPX_SPAWN_H
#include "comm.h"

/* Called from Go: waits until *flag is not 0, which another thread sets before it calls spx_ring_self; communication goes on, and the
 * application's signals are let through. deadline_ns: of CLOCK_MONOTONIC, 0: none. It ends also when a process of who, unless that is NULL, has failed, or
 * who is revoked. True when the flag was set. */
SPX_HIDDEN int spx_await(const uint32_t *flag, const spx_comm *who, uint64_t deadline_ns);
/* Starts the program at path under the name spx-agent with one argument, as no child of this process, in a session of its own, with
 * this descriptor as its 3. Returns 0 or an errno. */
SPX_HIDDEN int spx_start_agent(const char *path, const char *argument, int fd);
/* The file that this library was loaded from. */
SPX_HIDDEN const char *spx_library_path(void);
/* The environment as it is now. */
SPX_HIDDEN char **spx_environ(void);
#endif
