/* env.c - calls that a program may make at any time: MPI_Initialized, Finalized, thread levels,
 * Wtime, names and versions (MPI-5.0, 10.1, 10.6, 12.2, 12.6). In C alone: these never enter Go. */
#include "version.h"
#include "init.h"
#include "runtime.h"
#include "check.h"
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

int spx_c_Initialized(int *flag)
{
  if (!flag) return spx_bad_null(0, NULL, MPI_ERR_ARG, "flag");
  *flag = spx_world_model != SPX_BEFORE_INIT;
  return MPI_SUCCESS;
}

int spx_c_Finalized(int *flag)
{
  if (!flag) return spx_bad_null(0, NULL, MPI_ERR_ARG, "flag");
  *flag = spx_world_model == SPX_FINALIZED;
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

/* Seconds since the host's start: the clock is the same for all processes of a host, and is never
 * set. */
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
  *resultlen = snprintf(version, MPI_MAX_LIBRARY_VERSION_STRING,
                        "libspx " SPX_VERSION " (MPI %d.%d, ABI %d.%d)", MPI_VERSION,
                        MPI_SUBVERSION, MPI_ABI_VERSION, MPI_ABI_SUBVERSION);
  return MPI_SUCCESS;
}

int spx_c_Get_processor_name(char *name, int *resultlen)
{
  if (gethostname(name, MPI_MAX_PROCESSOR_NAME - 1) != 0)
    return spx_raise(0, NULL, MPI_ERR_OTHER, "MPI_Get_processor_name", "the host has no name");
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

/* ---- Fortran's LOGICAL (MPI-5.0, 21.4.1): as the compilers have it by default, 1 and 0; known, so
 * it cannot be set ---- */

static int store_logical(int size, void *to, int value)
{
  switch (size) {
  case 1: *(int8_t *)to = (int8_t)value; return 1;
  case 2: *(int16_t *)to = (int16_t)value; return 1;
  case 4: *(int32_t *)to = value; return 1;
  case 8: *(int64_t *)to = value; return 1;
  case 16: memcpy(to, (const int64_t[2]){value, 0}, 16); return 1;
  }
  return 0;
}

int spx_c_Abi_get_fortran_booleans(int logical_size, void *logical_true, void *logical_false,
                                   int *is_set)
{
  if (!store_logical(logical_size, logical_true, 1) ||
      !store_logical(logical_size, logical_false, 0))
    return spx_raise(0, NULL, MPI_ERR_ARG, "MPI_Abi_get_fortran_booleans",
                     "logical_size is %d; it must be 1, 2, 4, 8 or 16", logical_size);
  *is_set = 1;
  return MPI_SUCCESS;
}

int spx_c_Abi_set_fortran_booleans(int logical_size, void *logical_true, void *logical_false)
{
  (void)logical_size;
  (void)logical_true;
  (void)logical_false;
  return spx_raise(0, NULL, MPI_ERR_ABI, "MPI_Abi_set_fortran_booleans",
                   "the values are known (1 and 0), and cannot be set");
}
