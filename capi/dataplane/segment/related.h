/* related.h - which processes may read the memory of this one where the kernel lets related ones
 * alone do so (Yama). */
#ifndef SPX_RELATED_H
#define SPX_RELATED_H
#include <stdint.h>
#include <sys/types.h>

/* The process whose descendants may read the memory of self: the job's own on this host, as far as
 * a single process can name them. That is the host's agent, if it is an ancestor of self: it has
 * started all of them. Else, under another launcher, the nearest ancestor that the n ranks of the
 * host have in common, self among them. 0: none; init is none, since all processes descend from it.
 * Pids are those of self's namespace, 0 for an unknown one; proc is the procfs to read
 * ("/proc"). */
pid_t spx_related(const char *proc, pid_t self, pid_t agent, const pid_t *ranks, uint32_t n);

/* Names it to the kernel, before any process is sent an address to read. */
void spx_related_name(void);
#endif
