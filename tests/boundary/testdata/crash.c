/* Calls MPI_Comm_split from a function with a name, for the report of a crash in it. */
#include <mpi.h>

__attribute__((noinline)) static void simulate_weather(void)
{
  MPI_Comm c;
  MPI_Comm_split(MPI_COMM_WORLD, 0, 0, &c);
  MPI_Comm_free(&c);
}

int main(int argc, char **argv)
{
  MPI_Init(&argc, &argv);
  simulate_weather();
  MPI_Finalize();
  return 0;
}
