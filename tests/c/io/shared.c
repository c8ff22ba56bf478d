// run: n=1,2,4
// run: n=4 env="SPX_TRANSPORTS=tcp" timeout=60
// run: n=4 args="pids"
// run: n=4 args="pids" env="SPX_TRANSPORTS=tcp" timeout=60
/* The shared file pointer: no place is taken twice and none is left out, whoever takes it, alone or in order; what seeks and views make
 * of it; several files at once, so that no pointer is another's. Also where the processes have pids of their own, and where they reach
 * the pointer by messages. MPI-5.0, 15.4.4. */
#define _GNU_SOURCE
#include "file.h"
#include "../pids.h"

enum { N = 30, FILES = 2 };

/* Every process writes N pairs (rank, number) when it likes. Each must be in the file once. */
static void alone(MPI_File f)
{
  int pair[2], *all = malloc((size_t)size * N * sizeof pair), *seen = calloc((size_t)size * N, sizeof *seen);
  MPI_Offset at = -1, bytes = 0;
  for (int i = 0; i < N; i++) {
    pair[0] = rank, pair[1] = i;
    if (i % 3 == 0) {
      MPI_Request r;
      OK(MPI_File_iwrite_shared(f, pair, 2, MPI_INT, &r));
      OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
    } else
      OK(MPI_File_write_shared(f, pair, 2, MPI_INT, MPI_STATUS_IGNORE));
  }
  MPI_Barrier(MPI_COMM_WORLD);
  OK(MPI_File_get_position_shared(f, &at));
  OK(MPI_File_get_size(f, &bytes));
  CHECK(at == (MPI_Offset)size * N * 2 && bytes == at * (MPI_Offset)sizeof(int));
  OK(MPI_File_read_at(f, 0, all, size * N * 2, MPI_INT, MPI_STATUS_IGNORE));
  for (int i = 0; i < size * N; i++) {
    int who = all[2 * i], what = all[2 * i + 1];
    CHECK(who >= 0 && who < size && what >= 0 && what < N && !seen[who * N + what]);
    seen[who * N + what] = 1;
  }
  free(all);
  free(seen);
}

/* By rank, and each as much as it likes. */
static void ordered(MPI_File f)
{
  int mine[8], got[8] = {0};
  MPI_Offset before = 0, at = 0, total = 0;
  for (int r = 0; r < size; r++) total += r % 8 + 1;
  OK(MPI_File_get_position_shared(f, &before));
  MPI_Barrier(MPI_COMM_WORLD);
  for (int i = 0; i < 8; i++) mine[i] = rank * 10 + i;
  OK(MPI_File_write_ordered(f, mine, rank % 8 + 1, MPI_INT, MPI_STATUS_IGNORE));
  OK(MPI_File_get_position_shared(f, &at));
  CHECK(at == before + total);
  OK(MPI_File_seek_shared(f, before, MPI_SEEK_SET));
  OK(MPI_File_read_ordered(f, got, rank % 8 + 1, MPI_INT, MPI_STATUS_IGNORE));
  CHECK(memcmp(mine, got, (size_t)(rank % 8 + 1) * sizeof *got) == 0);
}

/* One process alone uses the pointer, rank 0 being in no file operation. */
static void last_alone(MPI_File f)
{
  int x = 0;
  MPI_Offset at = -1;
  OK(MPI_File_seek_shared(f, 0, MPI_SEEK_SET));
  if (rank == size - 1) {
    OK(MPI_File_read_shared(f, &x, 1, MPI_INT, MPI_STATUS_IGNORE));
    OK(MPI_File_get_position_shared(f, &at));
    CHECK(at == 1);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  OK(MPI_File_get_position_shared(f, &at));
  CHECK(at == 1);
}

static void views(MPI_File f)
{
  MPI_Offset at = -1;
  OK(MPI_File_set_view(f, 4, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
  OK(MPI_File_get_position_shared(f, &at));
  CHECK(at == 0);
  OK(MPI_File_seek_shared(f, 0, MPI_SEEK_END));
  OK(MPI_File_get_position_shared(f, &at));
  MPI_Barrier(MPI_COMM_WORLD); /* the next moves it */
  OK(MPI_File_seek_shared(f, -1, MPI_SEEK_CUR));
  MPI_Offset then = -1;
  OK(MPI_File_get_position_shared(f, &then));
  CHECK(then == at - 1);
  MPI_Barrier(MPI_COMM_WORLD);
}

static void appended(const char *name, MPI_Offset bytes)
{
  MPI_File f;
  MPI_Offset at = -1;
  OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDWR | MPI_MODE_APPEND, MPI_INFO_NULL, &f));
  OK(MPI_File_get_position_shared(f, &at));
  CHECK(at == bytes);
  OK(MPI_File_close(&f));
}

int main(int argc, char **argv)
{
  if (argc > 1 && strcmp(argv[1], "pids") == 0) own_pids(argv);
  start(&argc, &argv);
  MPI_File f[FILES];
  char name[FILES][512];
  for (int round = 0; round < 2; round++) { /* places are used again */
    for (int i = 0; i < FILES; i++) {
      char what[16];
      snprintf(what, sizeof what, "shared%d", i);
      strcpy(name[i], test_file(what));
      f[i] = open_new(name[i], MPI_INFO_NULL);
      OK(MPI_File_set_view(f[i], 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    }
    for (int i = 0; i < FILES; i++) {
      alone(f[i]);
      ordered(f[i]);
      last_alone(f[i]);
      MPI_Offset bytes = 0;
      OK(MPI_File_get_size(f[i], &bytes));
      appended(name[i], bytes);
      views(f[i]);
    }
    for (int i = 0; i < FILES; i++) OK(MPI_File_close(&f[i]));
  }
  MPI_Finalize();
  return check_status();
}
