! A tool in C (tool_c.c) that wraps MPI_Send sees the calls of all three interfaces, and those to PMPI_Send go past it.
! ranks: 2
subroutine old(rank)
  implicit none
  include 'mpif.h'
  integer :: rank, ierr, x, st(MPI_STATUS_SIZE)
  x = 1
  if (rank == 0) call MPI_SEND(x, 1, MPI_INTEGER, 1, 1, MPI_COMM_WORLD, ierr)
  if (rank == 0) call PMPI_SEND(x, 1, MPI_INTEGER, 1, 1, MPI_COMM_WORLD, ierr)
  if (rank == 1) call MPI_RECV(x, 1, MPI_INTEGER, 0, 1, MPI_COMM_WORLD, st, ierr)
  if (rank == 1) call MPI_RECV(x, 1, MPI_INTEGER, 0, 1, MPI_COMM_WORLD, st, ierr)
end subroutine old

subroutine middle(rank)
  use mpi
  implicit none
  integer :: rank, ierr, y(4)
  y = 1
  if (rank == 0) call MPI_Send(y, 4, MPI_INTEGER, 1, 1, MPI_COMM_WORLD, ierr)
  if (rank == 1) call MPI_Recv(y, 4, MPI_INTEGER, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
end subroutine middle

subroutine new(rank)
  use mpi_f08
  implicit none
  integer :: rank, i, z(6)
  z = [(i, i=1, 6)]
  if (rank == 0) call MPI_Send(z, 6, MPI_INTEGER, 1, 1, MPI_COMM_WORLD)
  if (rank == 0) call MPI_Send(z(1:6:2), 3, MPI_INTEGER, 1, 1, MPI_COMM_WORLD)
  if (rank == 0) call PMPI_Send(z(2:6:2), 3, MPI_INTEGER, 1, 1, MPI_COMM_WORLD)
  if (rank /= 1) return
  call MPI_Recv(z, 6, MPI_INTEGER, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
  call MPI_Recv(z(1:3), 3, MPI_INTEGER, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
  call PMPI_Recv(z(4:6), 3, MPI_INTEGER, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
  if (any(z /= [1, 3, 5, 2, 4, 6])) call MPI_Abort(MPI_COMM_WORLD, 5)
end subroutine new

! A tool in Fortran takes the place of a specific procedure (MPI-5.0, 20.1.5).
subroutine MPI_Barrier_f08(comm, ierror)
  use mpi_f08, my_noname => MPI_Barrier_f08
  implicit none
  type(MPI_Comm), intent(in) :: comm
  integer, optional, intent(out) :: ierror
  integer :: calls
  common /barriers/ calls
  calls = calls + 1
  call PMPI_Barrier(comm, ierror)
end subroutine MPI_Barrier_f08

subroutine MPI_Ssend_f08ts(buf, count, datatype, dest, tag, comm, ierror)
  use mpi_f08, my_noname => MPI_Ssend_f08ts
  implicit none
  type(*), dimension(..), intent(in) :: buf
  integer, intent(in) :: count, dest, tag
  type(MPI_Datatype), intent(in) :: datatype
  type(MPI_Comm), intent(in) :: comm
  integer, optional, intent(out) :: ierror
  integer :: calls
  common /barriers/ calls
  calls = calls + 10
  call PMPI_Ssend(buf, count, datatype, dest, tag, comm, ierror)
end subroutine MPI_Ssend_f08ts

program tool
  use mpi_f08
  use, intrinsic :: iso_c_binding, only: c_int
  implicit none
  interface
    integer(c_int) function sends_seen() bind(C)
      import :: c_int
    end function sends_seen
  end interface
  integer :: rank, calls, a(6), i
  common /barriers/ calls
  calls = 0
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call old(rank)
  call middle(rank)
  call new(rank)
  a = [(i, i=1, 6)]
  if (rank == 0) call MPI_Ssend(a(1:6:2), 3, MPI_INTEGER, 1, 7, MPI_COMM_WORLD)
  if (rank == 1) call MPI_Recv(a(2:6:2), 3, MPI_INTEGER, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
  if (rank == 1 .and. any(a(2:6:2) /= [1, 3, 5])) call MPI_Abort(MPI_COMM_WORLD, 6)
  call MPI_Barrier(MPI_COMM_WORLD)
  if (sends_seen() /= merge(4, 0, rank == 0)) call MPI_Abort(MPI_COMM_WORLD, 3)
  if (calls /= merge(11, 1, rank == 0)) call MPI_Abort(MPI_COMM_WORLD, 4)
  call MPI_Finalize()
  if (rank == 0) print '(a)', 'verified'
end program tool
