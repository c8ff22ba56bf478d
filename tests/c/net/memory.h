/* memory.h - for the test programs of this folder: how much memory this process has. */
#ifndef MEMORY_H
#define MEMORY_H
#include <stdio.h>

/* KiB of its own, exactly (-1: unknown): /proc/self/statm may be some hundred KiB off, and counts what is read of libraries. */
static inline long memory_kb(void)
{
  char line[200];
  long kb = -1;
  FILE *f = fopen("/proc/self/smaps_rollup", "r");
  while (f && kb < 0 && fgets(line, sizeof line, f)) sscanf(line, "Anonymous: %ld kB", &kb);
  if (f) fclose(f);
  return kb;
}
#endif
