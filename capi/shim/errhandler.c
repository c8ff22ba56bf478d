/* errhandler.c - error handlers: the predefined ones and MPI_*_create_errhandler, set, get, call, free (MPI-5.0, 9.3, 9.5). */
#include "error.h"
#include "runtime.h"
#include <stdlib.h>
#include <string.h>

spx_errh spx_errors_are_fatal = {.o = {.handle = 321, .refs = 1}, .mode = 321};
spx_errh spx_errors_abort = {.o = {.handle = 322, .refs = 1}, .mode = 322};
spx_errh spx_errors_return = {.o = {.handle = 323, .refs = 1}, .mode = 323};

spx_errh *spx_initial_errh(void)
{
  static spx_errh *initial;
  if (initial) return initial;
  const char *name = getenv("SPX_INITIAL_ERRHANDLER");
  if (name && strcmp(name, "mpi_errors_return") == 0) return initial = &spx_errors_return;
  if (name && strcmp(name, "mpi_errors_abort") == 0) return initial = &spx_errors_abort;
  return initial = &spx_errors_are_fatal;
}
