/* The process that a rank names as the one whose descendants may read its memory, in trees of
 * processes that are in a folder laid out like /proc. */
// sanitize: address,undefined
#include "job.h"
#include <sys/stat.h>
#include "related.h"

static char root[] = "/tmp/spx-related-XXXXXX";
static pid_t made[64];
static int n_made;

/* A process, whose name contains what could be taken for the end of a name. */
static void born(pid_t pid, pid_t parent)
{
  char name[128];
  snprintf(name, sizeof name, "%s/%d", root, (int)pid);
  mkdir(name, 0700);
  snprintf(name, sizeof name, "%s/%d/stat", root, (int)pid);
  FILE *f = fopen(name, "w");
  if (!f) exit(1);
  fprintf(f, "%d (a) S 1 (b) S %d %d 0 0 -1 4194304 0\n", (int)pid, (int)parent, (int)pid);
  fclose(f);
  made[n_made++] = pid;
}

static void clear(void)
{
  char name[128];
  while (n_made > 0) {
    snprintf(name, sizeof name, "%s/%d/stat", root, (int)made[--n_made]);
    unlink(name);
    snprintf(name, sizeof name, "%s/%d", root, (int)made[n_made]);
    rmdir(name);
  }
}

static pid_t named(pid_t self, pid_t agent, const pid_t *ranks, uint32_t n)
{
  return spx_related(root, self, agent, ranks, n);
}

/* init 1 - session 10 - spxrun 20 - agent 30; ranks 41, and 51 and 52 behind shells; another
 * program 90 of the session. */
static void by_the_agent(void)
{
  const pid_t ranks[] = {41, 51, 52};
  born(1, 0), born(10, 1), born(20, 10), born(30, 20), born(41, 30), born(50, 30), born(51, 50),
      born(49, 50), born(52, 49), born(90, 10);
  CHECK(named(41, 30, ranks, 3) == 30 && named(52, 30, ranks, 3) == 30);
  CHECK(named(41, 30, ranks, 1) == 30); /* more are spawned later, as its children */
  /* the agent's number belongs to another process here: the common ancestor of the ranks is the
   * same */
  CHECK(named(41, 90, ranks, 3) == 30);
  const pid_t unknown[] = {41, 0, 52};
  CHECK(named(41, 90, unknown, 3) == 0 && named(41, 30, unknown, 3) == 30);
  clear();
}

/* init 1 - proxy 100 of another launcher, with the ranks 101 and (behind a shell 110) 111; the
 * agent 120 is init's. */
static void by_another_launcher(void)
{
  const pid_t ranks[] = {101, 111};
  born(1, 0), born(100, 1), born(101, 100), born(110, 100), born(111, 110), born(120, 1);
  CHECK(named(101, 0, ranks, 2) == 100 && named(111, 0, ranks, 2) == 100 &&
        named(111, 120, ranks, 2) == 100);
  CHECK(named(101, 0, ranks, 1) == 0); /* alone: its parent's children are no ranks */
  clear();
}

/* Nothing but init in common; a parent that is not to be seen; numbers that lead in a circle. */
static void by_none(void)
{
  const pid_t ranks[] = {201, 211};
  born(1, 0), born(200, 1), born(201, 200), born(210, 1), born(211, 210);
  CHECK(named(201, 0, ranks, 2) == 0 && named(201, 77, ranks, 2) == 0);
  clear();
  born(201, 200), born(211, 200);
  CHECK(named(201, 0, ranks, 2) == 200);
  clear();
  born(201, 211), born(211, 201);
  CHECK(named(201, 300, ranks, 2) >= 0);
  clear();
  CHECK(named(201, 300, ranks, 2) == 0);
}

int main(void)
{
  if (!mkdtemp(root)) return 1;
  by_the_agent();
  by_another_launcher();
  by_none();
  rmdir(root);
  return 0;
}
