/* check.h - for the test programs of this folder: a condition that does not hold is told with its place, and makes the
 * program's exit status 1 (return check_status()). */
#ifndef CHECK_H
#define CHECK_H
#include <mpi.h>
#include <stdio.h>
#include <string.h>

static int check_failures;

#define CHECK(cond) check_that(!!(cond), #cond, __FILE__, __LINE__)
/* The call returns an error of this class, whose text contains that one. */
#define CHECK_ERROR(call, class, text) check_error((call), (class), (text), #call, __FILE__, __LINE__)
/* The call returns an error of this class. */
#define CHECK_CLASS(call, class) check_class((call), (class), #call, __FILE__, __LINE__)

static inline int check_rank(void)
{
  int rank = -1, up = 0, down = 0;
  MPI_Initialized(&up);
  MPI_Finalized(&down);
  if (up && !down) MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

static inline void check_that(int holds, const char *text, const char *file, int line)
{
  if (holds) return;
  __atomic_fetch_add(&check_failures, 1, __ATOMIC_RELAXED);
  fprintf(stderr, "%s:%d: rank %d: not true: %s\n", file, line, check_rank(), text);
}

static inline void check_class(int code, int want, const char *text, const char *file, int line)
{
  int class = MPI_SUCCESS;
  char what[MPI_MAX_ERROR_STRING];
  int n;
  if (code != MPI_SUCCESS) MPI_Error_class(code, &class);
  if (class == want) return;
  __atomic_fetch_add(&check_failures, 1, __ATOMIC_RELAXED);
  MPI_Error_string(code, what, &n);
  fprintf(stderr, "%s:%d: rank %d: class %d instead of %d: %s: %s\n", file, line, check_rank(), class, want, text,
          what);
}

static inline void check_error(int code, int want, const char *part, const char *text, const char *file, int line)
{
  char what[MPI_MAX_ERROR_STRING] = "";
  int n;
  MPI_Error_string(code, what, &n);
  check_class(code, want, text, file, line);
  if (strstr(what, part)) return;
  __atomic_fetch_add(&check_failures, 1, __ATOMIC_RELAXED);
  fprintf(stderr, "%s:%d: rank %d: not \"%s\": %s: %s\n", file, line, check_rank(), part, text, what);
}

static inline int check_status(void) { return check_failures != 0; }
#endif
