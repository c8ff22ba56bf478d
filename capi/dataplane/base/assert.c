/* assert.c - ends a process whose own state violates an assumption of the code: SPX_ASSERT
 * (spx.h). */
#include "spx.h"

void spx_broken(const char *file, int line, const char *expression)
{
  spx_fatal(MPI_ERR_INTERN, "internal error, please report it: %s:%d: \"%s\" does not hold", file,
            line, expression);
}
