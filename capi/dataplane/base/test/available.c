/* How much memory there is, by the files of control groups of both versions: the least of a group
 * and those above it counts, files that can be dropped are free, and without limits it is the
 * host's. */
// sanitize: address,undefined
#define _GNU_SOURCE
#include "expect.h"
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "dp.h"
#include "rma.h"

static char root[] = "/tmp/spx-available-XXXXXX";

static void put(const char *name, const char *text)
{
  char path[300];
  snprintf(path, sizeof path, "%s/%s", root, name);
  FILE *f = fopen(path, "w");
  CHECK(f && fputs(text, f) >= 0 && fclose(f) == 0);
}

static void folder(const char *name)
{
  char path[300];
  snprintf(path, sizeof path, "%s/%s", root, name);
  CHECK(mkdir(path, 0700) == 0);
}

static uint64_t available(const char *groups)
{
  char self[300];
  snprintf(self, sizeof self, "%s/self", root);
  put("self", groups);
  return spx_memory_available_in(self, root);
}

int main(void)
{
  CHECK(mkdtemp(root));
  uint64_t host = available("");
  CHECK(host > 0 && host < UINT64_MAX);
  folder("job");
  folder("job/step");
  CHECK(available("0::/job/step\n") > 1 << 20); /* no files: no limits */
  put("job/step/memory.max", "max\n");
  CHECK(available("0::/job/step\n") > 1 << 20);
  put("job/step/memory.max", "100000\n");
  put("job/step/memory.current", "30000\n");
  CHECK(available("0::/job/step\n") == 70000);
  put("job/step/memory.stat", "anon 5\ninactive_file 10000\nactive_file 20000\n");
  CHECK(available("0::/job/step\n") == 80000);
  put("job/memory.max", "50000\n");
  put("job/memory.current", "48000\n");
  CHECK(available("1:name=systemd:/\n0::/job/step\n") == 2000);
  put("job/memory.current", "60000\n");
  CHECK(available("0::/job/step\n") == 0);
  CHECK(available("0::/job\n") == 0);
  CHECK(available("0::/\n") > 1 << 20);
  folder("memory");
  folder("memory/slurm");
  put("memory/memory.limit_in_bytes", "9223372036854771712\n");
  put("memory/slurm/memory.limit_in_bytes", "4000\n");
  put("memory/slurm/memory.usage_in_bytes", "1000\n");
  put("memory/slurm/memory.stat", "inactive_file 1\ntotal_inactive_file 500\n");
  CHECK(available("7:cpu,cpuacct:/x\n4:memory:/slurm\n0::/\n") == 3500);
  char command[300];
  snprintf(command, sizeof command, "rm -r %s", root);
  CHECK(system(command) == 0);
  return 0;
}
