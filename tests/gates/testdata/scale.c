/* scale.c - every collective on many ranks, with its result checked, and the memory that the ranks have at each stage.
 *
 *   scale [PEERS ...]     before the collectives, every rank exchanges a message with that many others, for each number
 *
 * Rank 0 prints "memory STAGE TOTAL = ...": bytes of all ranks together, with their shares of what they share, and page tables.
 */
#include "collectives.h"

/* A field of a file in /proc/self that is given in kB; in bytes. */
static double field(const char *file, const char *name)
{
  char line[256];
  double kb = 0;
  FILE *f = fopen(file, "r");
  CHECK(f != NULL);
  while (fgets(line, sizeof line, f))
    if (!strncmp(line, name, strlen(name))) sscanf(line + strlen(name), ": %lf", &kb);
  fclose(f);
  return kb * 1024;
}

static void memory(const char *stage)
{
  double mine[4], all[4] = {0, 0, 0, 0};
  MPI_Barrier(MPI_COMM_WORLD);
  mine[0] = field("/proc/self/smaps_rollup", "Pss_Anon");
  mine[1] = field("/proc/self/smaps_rollup", "Pss_Shmem");
  mine[2] = field("/proc/self/smaps_rollup", "Pss_File");
  mine[3] = field("/proc/self/status", "VmPTE");
  MPI_Reduce(mine, all, 4, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) {
    printf("memory %s %.0f = %.0f own + %.0f shared + %.0f of files + %.0f of tables\n", stage,
           all[0] + all[1] + all[2] + all[3], all[0], all[1], all[2], all[3]);
    fflush(stdout);
  }
}

/* One long and a few short messages with each of the next peers. */
static void talk(int peers)
{
  char give[4096], take[4096];
  for (int k = 1; k <= peers; k++)
    for (int i = 0; i < 8; i++) {
      int n = i == 0 ? (int)sizeof give : 8, to = (rank + k) % size, from = (rank + size - k) % size;
      memset(give, rank & 127, sizeof give);
      MPI_Sendrecv(give, n, MPI_BYTE, to, k, take, n, MPI_BYTE, from, k, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      CHECK(take[0] == (from & 127) && take[n - 1] == (from & 127));
    }
}

int main(int argc, char **argv)
{
  char stage[64];
  MPI_Init(&argc, &argv);
  comm = MPI_COMM_WORLD;
  prepare();
  memory("start");
  for (int i = 1; i < argc; i++) {
    int peers = atoi(argv[i]);
    if (peers >= size) continue;
    talk(peers);
    snprintf(stage, sizeof stage, "peers=%d", peers);
    memory(stage);
  }
  rooted(0);
  rooted(size - 1);
  memory("rooted");
  symmetric();
  memory("symmetric");
  others();
  memory("all");
  if (rank == 0) printf("all collectives on %d ranks\n", size);
  MPI_Finalize();
  return 0;
}
