/* env.c - what a program may ask of its environment at any time: MPI_Initialized, Finalized, thread levels, Wtime, names and
 * versions (MPI-5.0, 9.1, 9.6, 11.2, 11.6, 14.2, 20.2). In C alone: these never enter Go. */
#include "version.h"
#include "init.h"
#include "runtime.h"
#include "shim.h"
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

int spx_c_Initialized(int *flag)
{
  *flag = spx_state != SPX_BEFORE_INIT;
  return MPI_SUCCESS;
}

int spx_c_Finalized(int *flag)
{
  *flag = spx_state == SPX_FINALIZED;
  return MPI_SUCCESS;
}

int spx_c_Query_thread(int *provided)
{
  *provided = spx_thread_level;
  return MPI_SUCCESS;
}

int spx_c_Is_thread_main(int *flag)
{
  *flag = pthread_equal(pthread_self(), spx_main_thread) != 0;
  return MPI_SUCCESS;
}

/* Seconds since the host's start: the clock is the same for all processes of a host, and is never set. */
double spx_c_Wtime(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

double spx_c_Wtick(void)
{
  struct timespec t;
  clock_getres(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int spx_c_Get_library_version(char *version, int *resultlen)
{
  *resultlen = snprintf(version, MPI_MAX_LIBRARY_VERSION_STRING, "libspx " SPX_VERSION " (MPI %d.%d, ABI %d.%d)", MPI_VERSION, MPI_SUBVERSION, MPI_ABI_VERSION, MPI_ABI_SUBVERSION);
  return MPI_SUCCESS;
}

int spx_c_Get_processor_name(char *name, int *resultlen)
{
  if (gethostname(name, MPI_MAX_PROCESSOR_NAME - 1) != 0) return spx_raise(0, NULL, MPI_ERR_OTHER, "MPI_Get_processor_name", "the host has no name");
  name[MPI_MAX_PROCESSOR_NAME - 1] = 0;
  *resultlen = (int)strlen(name);
  return MPI_SUCCESS;
}

/* There is no profiler in the library to control. */
int spx_c_Pcontrol(const int level)
{
  (void)level;
  return MPI_SUCCESS;
}
