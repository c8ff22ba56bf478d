/* gate.h - waiting for a debugger in MPI_Init: docs/debuggers.md. */
#ifndef SPX_GATE_H
#define SPX_GATE_H

/* Returns at once in a process that no debugger waits for. */
void spx_gate_wait(void);

#endif
