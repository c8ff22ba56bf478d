/* A command line of 30,000 arguments: MPI_Init looks at as much of it as MPI_INFO_ENV has room for, and takes no longer than with a few. Judged by processor
 * time, with room for a slow machine: it was ten seconds once. */
// run: n=1 timeout=60
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "../check.h"

enum { MANY = 30000 };

int main(int argc, char **argv)
{
  char value[MPI_MAX_INFO_VAL + 1];
  int flag = 0, len = MPI_MAX_INFO_VAL + 1;
  if (argc == 1) {
    static char *args[MANY + 2];
    args[0] = argv[0];
    for (int i = 1; i <= MANY; i++) args[i] = "an-argument-of-thirty-two-letters";
    execv(argv[0], args);
    return 127;
  }
  clock_t began = clock();
  MPI_Init(&argc, &argv);
  double took = (double)(clock() - began) / CLOCKS_PER_SEC;
  if (took > 1.5) fprintf(stderr, "MPI_Init took %.2f s of processor time\n", took);
  CHECK(took < 1.5);
  CHECK(argc == MANY + 1);
  MPI_Info_get_string(MPI_INFO_ENV, "argv", &len, value, &flag);
  CHECK(flag && len <= MPI_MAX_INFO_VAL && strlen(value) > 200);
  CHECK(strncmp(value, "an-argument-of-thirty-two-letters an-arg", 40) == 0);
  MPI_Finalize();
  return check_status();
}
