/* spawn.h - the C side of requests to the agent (capi/agent.go, spawn.go): an agent for a process
 * that has none. MPI-5.0, chapter 11. */
#ifndef SPX_SPAWN_H
#define SPX_SPAWN_H
#include "comm.h"

/* Starts the program at path under the name spx-agent with one argument, as no child of this
 * process, in a session of its own, with this descriptor as its 3. Returns 0 or an errno. */
SPX_HIDDEN int spx_start_agent(const char *path, const char *argument, int fd);
/* The file that this library was loaded from. */
SPX_HIDDEN const char *spx_library_path(void);
/* The environment as it is now. */
SPX_HIDDEN char **spx_environ(void);
#endif
