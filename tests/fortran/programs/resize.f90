! What ulfm_dyprc has for Fortran, in each interface. malleable.f90 is a program whose number of processes changes.
! ranks: 3
program resize
  use mpi_f08
  use mpi_f08_ext
  use mpi_ext, only: poll_of_mpi => ulfm_dyprc_poll
  implicit none
  type(MPI_Comm) :: mworld
  integer :: size, rank, err, handle
  integer, external :: ulfm_dyprc_old
  call MPI_Init()
  if (ulfm_dyprc_merge_child(mworld) /= 0) call MPI_Abort(MPI_COMM_WORLD, 3)
  call MPI_Comm_size(mworld, size)
  call MPI_Comm_rank(mworld, rank)
  if (size /= 3) call MPI_Abort(MPI_COMM_WORLD, 4)
  if (ulfm_dyprc_poll(mworld) /= MPI_SUCCESS) call MPI_Abort(MPI_COMM_WORLD, 5)
  handle = mworld%MPI_VAL
  if (poll_of_mpi(handle) /= MPI_SUCCESS) call MPI_Abort(MPI_COMM_WORLD, 6)
  err = ulfm_dyprc_old(handle)
  if (err /= MPI_SUCCESS .or. handle /= mworld%MPI_VAL) call MPI_Abort(MPI_COMM_WORLD, 7)
  call MPI_Barrier(mworld)
  if (rank == 0) print '(a)', 'verified'
  call MPI_Finalize()
end program resize

integer function ulfm_dyprc_old(mworld)
  implicit none
  include 'mpif.h'
  include 'mpif-ext.h'
  integer :: mworld
  ulfm_dyprc_old = ULFM_DYPRC_POLL(mworld)
end function ulfm_dyprc_old
