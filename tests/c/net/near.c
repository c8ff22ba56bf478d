/* What the program allocates lies near its other memory, also after connections were made: programs exist that keep the distance of two blocks in an int (the lists of hosts of ROMIO). Blocks
 * that threads of the library took, and that the program's thread gives back, would lie elsewhere. */
// run: n=8 env=SPX_TRANSPORTS=tcp timeout=30
// run: n=8 timeout=30
#include "../check.h"
#include <limits.h>
#include <stdlib.h>

enum { SIZES = 16, BLOCKS = 16 };

int main(int argc, char **argv)
{
  int all[8] = {0};
  char *first = malloc(8);
  MPI_Init(&argc, &argv);
  for (int i = 0; i < 3; i++) MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, 1, MPI_INT, MPI_COMM_WORLD);
  for (int size = 0; size < SIZES; size++)
    for (int k = 0; k < BLOCKS; k++) {
      char *block = malloc(8 + 16 * (size_t)size); /* stays, so that the next is another one */
      CHECK(llabs((long long)(block - first)) < INT_MAX);
    }
  MPI_Finalize();
  return check_status();
}
