// Each rank tells its rank through a stream of C++.
#include <iostream>
#include <sstream>

#include <mpi.h>

int main(int argc, char **argv)
{
  int rank = -1, size = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  std::ostringstream line;
  line << "hello from rank " << rank << " of " << size << "\n";
  std::cout << line.str();
  MPI_Finalize();
  return 0;
}
