/* counters.h - what libspx counts in this process, by the names of docs/tools-interface.md. */
#include <mpi.h>
#include <stdlib.h>

typedef struct counter {
  MPI_T_pvar_session session;
  MPI_T_pvar_handle handle;
} counter;

/* Begins to count; class: MPI_T_PVAR_CLASS_COUNTER, _AGGREGATE or _LEVEL. */
static inline counter count_from_here(const char *name, int class)
{
  counter c;
  int provided, index, n;
  MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
  MPI_T_pvar_session_create(&c.session);
  if (MPI_T_pvar_get_index(name, class, &index) || MPI_T_pvar_handle_alloc(c.session, index, NULL, &c.handle, &n))
    MPI_Abort(MPI_COMM_WORLD, 1);
  MPI_T_pvar_start(c.session, c.handle);
  return c;
}

static inline long long counted(counter c)
{
  unsigned long long value = 0;
  MPI_T_pvar_read(c.session, c.handle, &value);
  return (long long)value;
}
