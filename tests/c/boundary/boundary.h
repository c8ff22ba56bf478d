/* boundary.h - helpers of the tests in this folder: what the kernel says about this process, and the library's counters. */
#ifndef BOUNDARY_H
#define BOUNDARY_H
#define _GNU_SOURCE
#include <dirent.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FAIL(...)                                                                                                      \
  (fprintf(stderr, "%s:%d: ", __FILE__, __LINE__), fprintf(stderr, __VA_ARGS__), fputc('\n', stderr), _exit(9))
#define CHECK(cond) ((cond) ? (void)0 : FAIL("not so: %s", #cond))

/* A number from /proc/self/status. */
__attribute__((unused)) static long status_kb(const char *key)
{
  char line[256];
  FILE *f = fopen("/proc/self/status", "r");
  long v = -1;
  while (f && fgets(line, sizeof line, f))
    if (!strncmp(line, key, strlen(key)) && line[strlen(key)] == ':') v = atol(line + strlen(key) + 1);
  if (f) fclose(f);
  if (v < 0) FAIL("no %s in /proc/self/status", key);
  return v;
}

__attribute__((unused)) static long count_files(void)
{
  DIR *d = opendir("/proc/self/fd");
  long n = 0;
  if (!d) FAIL("/proc/self/fd");
  while (readdir(d)) n++;
  closedir(d);
  return n;
}

/* Makes MPI_Finalize write its counters (SPX_COUNTERS) into a file of this process. */
static char counters_path[64];
__attribute__((unused)) static void counters_file(const char *variable)
{
  snprintf(counters_path, sizeof counters_path, "counters.%d", (int)getpid());
  setenv(variable, counters_path, 1);
}

/* One of them, after MPI_Finalize. */
__attribute__((unused)) static long counter(const char *name)
{
  char line[512] = "";
  FILE *f = fopen(counters_path, "r");
  if (!f || !fgets(line, sizeof line, f)) FAIL("no counters in %s", counters_path);
  fclose(f);
  char *at = strstr(line, name);
  if (!at) FAIL("no %s in: %s", name, line);
  return atol(at + strlen(name));
}
#endif
