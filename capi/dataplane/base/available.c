/* available.c - how much memory the host can give without ending a process for it. Allocating does
 * not fail before that. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "dp.h"
#include "rma.h"

/* Room for names of control groups: more than a frame of a small stack may take. */
typedef struct {
  char line[4096], group[4200], path[4352];
} room;

static uint64_t of_host(void)
{
  unsigned long long kb = 0;
  char line[128];
  FILE *f = fopen("/proc/meminfo", "re");
  if (!f) return UINT64_MAX;
  while (fgets(line, sizeof line, f))
    if (sscanf(line, "MemAvailable: %llu kB", &kb) == 1) break;
  fclose(f);
  return kb ? kb << 10 : UINT64_MAX;
}

/* The number in a file of a control group; otherwise if there is none ("max"). */
static uint64_t number(room *at, const char *name, uint64_t otherwise)
{
  unsigned long long v;
  snprintf(at->path, sizeof at->path, "%s/%s", at->group, name);
  FILE *f = fopen(at->path, "re");
  if (!f) return otherwise;
  if (fscanf(f, "%llu", &v) != 1) v = otherwise;
  fclose(f);
  return v;
}

/* Bytes of files that a group can drop. */
static uint64_t droppable(room *at, const char *key)
{
  char line[128], name[64];
  unsigned long long v, found = 0;
  snprintf(at->path, sizeof at->path, "%s/memory.stat", at->group);
  FILE *f = fopen(at->path, "re");
  while (f && fgets(line, sizeof line, f))
    if (sscanf(line, "%63s %llu", name, &v) == 2 && strcmp(name, key) == 0) found = v;
  if (f) fclose(f);
  return found;
}

static uint64_t of_group(room *at, bool v2)
{
  uint64_t most = number(at, v2 ? "memory.max" : "memory.limit_in_bytes", UINT64_MAX);
  if (most >= UINT64_MAX / 4) return UINT64_MAX;
  uint64_t used = number(at, v2 ? "memory.current" : "memory.usage_in_bytes", 0);
  uint64_t drop = droppable(at, v2 ? "inactive_file" : "total_inactive_file");
  used -= drop < used ? drop : used;
  return most > used ? most - used : 0;
}

/* The least of a group and those above it. */
static uint64_t of_groups(room *at, const char *root, char *path, bool v2)
{
  uint64_t least = UINT64_MAX;
  for (;;) {
    snprintf(at->group, sizeof at->group, "%s%s", root, path);
    uint64_t n = of_group(at, v2);
    if (n < least) least = n;
    char *slash = strrchr(path, '/');
    if (!slash) return least;
    *slash = 0;
  }
}

uint64_t spx_memory_available_in(const char *self, const char *root)
{
  uint64_t least = of_host();
  room *at = malloc(sizeof *at);
  if (!at) return least;
  char v1[256];
  snprintf(v1, sizeof v1, "%s/memory", root);
  FILE *f = fopen(self, "re");
  while (f && fgets(at->line, sizeof at->line, f)) {
    char *names = strchr(at->line, ':'), *path = names ? strchr(names + 1, ':') : NULL;
    if (!path) continue;
    *path++ = 0;
    path[strcspn(path, "\n")] = 0;
    if (strcmp(path, "/") == 0) *path = 0; /* of a group namespace, the root is the process's own */
    uint64_t n = UINT64_MAX;
    if (strcmp(names, ":") == 0)
      n = of_groups(at, root, path, true);
    else if (strstr(names + 1, "memory"))
      n = of_groups(at, v1, path, false);
    if (n < least) least = n;
  }
  if (f) fclose(f);
  free(at);
  return least;
}

uint64_t spx_memory_available(void)
{
  return spx_memory_available_in("/proc/self/cgroup", "/sys/fs/cgroup");
}
