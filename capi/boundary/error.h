/* error.h - error classes, codes and texts of the process (MPI-5.0, 10.4 and 10.5), between
 * error*.c and errhandler.c. */
#ifndef SPX_ERROR_H
#define SPX_ERROR_H
#include "spx.h"

/* > 0 while the library calls functions of MPI itself, on this thread: it checks their codes, and
 * no error handler is called. */
SPX_HIDDEN extern SPX_TLS int spx_mute;
/* Around such calls: enter returns what leave takes, the function that the user has called. */
static inline uint32_t spx_mute_enter(void)
{
  spx_mute++;
  return spx_fn;
}
static inline void spx_mute_leave(uint32_t fn)
{
  spx_mute--;
  spx_fn = fn;
}

/* Name of a predefined class ("MPI_ERR_RANK"), or NULL. */
SPX_HIDDEN const char *spx_class_name(int code);
/* Its text ("invalid rank"), or NULL. */
SPX_HIDDEN const char *spx_class_text(int code);
/* The class of a code, predefined or added; -1 when there is no such code. */
SPX_HIDDEN int spx_class_of(int code);
/* "MPI_ERR_RANK: invalid rank" or what MPI_Add_error_string gave; returns the length. */
SPX_HIDDEN int spx_code_string(int code, char *out, int size);
/* Value of the attribute MPI_LASTUSEDCODE. */
SPX_HIDDEN int spx_last_used_code(void);
/* The detail text of this thread's last error if that had this code, else NULL. */
SPX_HIDDEN const char *spx_last_error(int code);
/* The error handler that an error on this object calls; never NULL. */
SPX_HIDDEN spx_errh *spx_errh_of(spx_kind k, const void *handle);
/* The predefined error handlers, and the one that processes start with (spxrun
 * -initial-errhandler). */
SPX_HIDDEN extern spx_errh spx_errors_are_fatal, spx_errors_abort, spx_errors_return;
SPX_HIDDEN spx_errh *spx_initial_errh(void);
/* A reference to the handler that a handle means; NULL when there is none. */
SPX_HIDDEN spx_errh *spx_errh_ref(MPI_Errhandler errhandler);
/* Raises an error with this thread's detail text on a communicator that may have been freed, and is
 * kept by an operation. A user's error handler then gets the handle that it had, which is valid
 * again for as long as the handler runs. */
SPX_HIDDEN int spx_raise_on_comm(spx_comm *c, int code, const char *function);
/* The same of the function that this thread is in. */
SPX_HIDDEN int spx_fail_on_comm(const spx_comm *c, int code) __attribute__((cold));
/* Raises an error that is no object's through this handler. Returns code. */
SPX_HIDDEN int spx_raise_by(MPI_Errhandler errhandler, int code, const char *function,
                            const char *text);
/* Requests notifications of deaths from the agent, if c has several processes and a handler that
 * returns (spx_proc.ft_flags). MPI_Comm_set_errhandler calls it; the engine does, when it makes
 * MPI_COMM_WORLD. */
SPX_HIDDEN void spx_note_returning(const spx_comm *c);
#endif
