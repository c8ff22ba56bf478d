! Each rank tells its rank; the sum of all ranks must be right.
program hello
  use mpi_f08
  implicit none
  integer :: rank, size, total
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, size)
  call MPI_Allreduce(rank, total, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
  if (total /= size * (size - 1) / 2) call MPI_Abort(MPI_COMM_WORLD, 1)
  write (*, '(a, i0, a, i0)') 'hello from rank ', rank, ' of ', size
  call MPI_Finalize()
end program hello
