/* far.h - reading a message out of another process's memory. Called with spx_lock held. */
#ifndef SPX_FAR_H
#define SPX_FAR_H
#include <sys/types.h>
#include "dp.h"

/* A message in its sender's memory. */
typedef struct {
  pid_t pid;
  uint64_t addr; /* of the buffer */
  spx_type type; /* the sender's, with a layout of this process; layout NULL: contiguous */
} spx_far;

/* Reads n bytes at address from of a process: all of them, or false with errno. */
SPX_HIDDEN bool spx_read_exactly(pid_t pid, void *to, uint64_t from, uint64_t n);
/* Opens a message in another process's memory. type: address of the sender's spx_type; 0:
 * contiguous. 0, or an errno: f must be closed all the same. The data read are valid only if the
 * sender's descriptor still is afterwards, and must not be used before that check. */
SPX_HIDDEN int spx_far_open(spx_far *f, pid_t pid, uint64_t addr, uint64_t type);
SPX_HIDDEN void spx_far_close(spx_far *f);
/* Reads at most n packed bytes from byte at on into the receive r; *done: how many. 0, or an
 * errno. */
SPX_HIDDEN int spx_far_read(const spx_far *f, spx_request *r, uint64_t at, uint64_t n,
                            uint64_t *done);
#endif
