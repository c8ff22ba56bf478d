! Two ranks exchange a message by module mpi_f08, and by mpif.h's names.
subroutine old(rank)
  implicit none
  include 'mpif.h'
  integer :: rank, x, ierror
  x = rank
  if (rank == 0) call MPI_SEND(x, 1, MPI_INTEGER, 1, 4, MPI_COMM_WORLD, ierror)
  if (rank == 1) call MPI_RECV(x, 1, MPI_INTEGER, 0, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierror)
end subroutine old

program pair
  use mpi_f08
  implicit none
  integer :: rank, x
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  x = rank
  if (rank == 0) call MPI_Send(x, 1, MPI_INTEGER, 1, 3, MPI_COMM_WORLD)
  if (rank == 1) call MPI_Recv(x, 1, MPI_INTEGER, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
  call old(rank)
  call MPI_Barrier(MPI_COMM_WORLD)
  call MPI_Finalize()
end program pair
