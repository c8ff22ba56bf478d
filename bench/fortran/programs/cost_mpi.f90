! The calls with module mpi.
subroutine mpi_module_rank(n)
  use mpi
  implicit none
  integer :: n, i, r, e
  do i = 1, n
    call MPI_Comm_rank(MPI_COMM_WORLD, r, e)
  end do
end subroutine
subroutine mpi_module_null(n)
  use mpi
  implicit none
  integer :: n, i, e
  real(8) :: x(8)
  x = 1
  do i = 1, n
    call MPI_Send(x, 8, MPI_DOUBLE_PRECISION, MPI_PROC_NULL, 1, MPI_COMM_SELF, e)
  end do
end subroutine
subroutine mpi_module_self(n)
  use mpi
  implicit none
  integer :: n, i, e, q
  real(8) :: x(8), y(8)
  x = 1
  do i = 1, n
    call MPI_Irecv(y, 8, MPI_DOUBLE_PRECISION, 0, 1, MPI_COMM_SELF, q, e)
    call MPI_Send(x, 8, MPI_DOUBLE_PRECISION, 0, 1, MPI_COMM_SELF, e)
    call MPI_Wait(q, MPI_STATUS_IGNORE, e)
  end do
end subroutine
