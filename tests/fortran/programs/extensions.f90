! The extensions in all three interfaces: a rank dies; the others find out, shrink and agree.
! ranks: 4
! spxrun: --with-ft
subroutine old(small, left)
  implicit none
  include 'mpif.h'
  include 'mpif-ext.h'
  integer :: small, left, ierr, err, class, n, failed, bits
  logical :: flag
  external :: MPIX_COMM_REVOKE, MPIX_COMM_IS_REVOKED, MPIX_COMM_GET_FAILED, MPIX_COMM_ACK_FAILED, MPIX_COMM_SHRINK, MPIX_COMM_AGREE
  call MPI_BARRIER(MPI_COMM_WORLD, err)
  if (err == MPI_SUCCESS) call MPI_ABORT(MPI_COMM_WORLD, 10, ierr)
  call MPI_ERROR_CLASS(err, class, ierr)
  if (class /= MPIX_ERR_PROC_FAILED .and. class /= MPIX_ERR_REVOKED) call MPI_ABORT(MPI_COMM_WORLD, 11, ierr)
  call MPIX_COMM_REVOKE(MPI_COMM_WORLD, ierr)
  call MPIX_COMM_IS_REVOKED(MPI_COMM_WORLD, flag, ierr)
  if (.not. flag .or. ierr /= MPI_SUCCESS) call MPI_ABORT(MPI_COMM_WORLD, 12, ierr)
  call MPIX_COMM_SHRINK(MPI_COMM_WORLD, small, ierr)
  call MPI_COMM_SIZE(small, left, ierr)
  call MPIX_COMM_GET_FAILED(MPI_COMM_WORLD, failed, ierr)
  call MPI_GROUP_SIZE(failed, n, ierr)
  call MPI_GROUP_FREE(failed, ierr)
  if (n /= 1) call MPI_ABORT(MPI_COMM_WORLD, 13, ierr)
  call MPIX_COMM_ACK_FAILED(MPI_COMM_WORLD, 1, n, ierr)
  if (n /= 1) call MPI_ABORT(MPI_COMM_WORLD, 14, ierr)
  bits = not(4)
  call MPIX_COMM_AGREE(small, bits, ierr)
  if (bits /= not(4) .or. ierr /= MPI_SUCCESS) call MPI_ABORT(MPI_COMM_WORLD, 15, ierr)
end subroutine old

subroutine middle(small)
  use mpi
  use mpi_ext
  implicit none
  integer :: small, other, request, ierr, n, bits, group
  logical :: flag
  call MPIX_Comm_ishrink(small, other, request, ierr)
  call MPI_Wait(request, MPI_STATUS_IGNORE, ierr)
  call MPI_Comm_size(other, n, ierr)
  if (n /= 3) call MPI_Abort(MPI_COMM_WORLD, 20, ierr)
  call MPIX_Comm_failure_ack(other, ierr)
  call MPIX_Comm_failure_get_acked(other, group, ierr)
  call MPI_Group_size(group, n, ierr)
  if (n /= 0) call MPI_Abort(MPI_COMM_WORLD, 21, ierr)
  call MPI_Group_free(group, ierr)
  bits = 6
  call MPIX_Comm_iagree(other, bits, request, ierr)
  call MPI_Wait(request, MPI_STATUS_IGNORE, ierr)
  call MPIX_Comm_is_revoked(other, flag, ierr)
  if (bits /= 6 .or. flag .or. ierr /= MPI_SUCCESS) call MPI_Abort(MPI_COMM_WORLD, 22, ierr)
  call MPI_Comm_free(other, ierr)
end subroutine middle

subroutine new(comm)
  use mpi_f08
  use mpi_f08_ext
  implicit none
  integer :: comm, n, err, class, rank
  integer, asynchronous :: bits
  type(MPI_Comm) :: small
  type(MPI_Comm), asynchronous :: other
  type(MPI_Group) :: group
  type(MPI_Request) :: request
  logical :: flag
  small%MPI_VAL = comm
  call MPIX_Comm_get_failed(MPI_COMM_WORLD, group)
  call MPI_Group_size(group, n)
  if (n /= 1) call MPI_Abort(MPI_COMM_WORLD, 30)
  call MPI_Group_free(group)
  call MPI_Comm_rank(small, rank)
  bits = ior(2, ishft(1, 8 + rank))
  call MPIX_Comm_iagree(small, bits, request)
  call MPI_Wait(request, MPI_STATUS_IGNORE)
  if (bits /= 2) call MPI_Abort(MPI_COMM_WORLD, 31)
  call MPIX_Comm_ishrink(small, other, request)
  call MPI_Wait(request, MPI_STATUS_IGNORE)
  call MPI_Comm_size(other, n)
  if (n /= 3 .or. other == small) call MPI_Abort(MPI_COMM_WORLD, 32)
  call MPI_Comm_free(other)
  call MPI_Barrier(small)
  call MPIX_Comm_revoke(small)
  call MPIX_Comm_is_revoked(small, flag)
  call MPI_Comm_set_errhandler(small, MPI_ERRORS_RETURN)
  call MPI_Barrier(small, err)
  call MPI_Error_class(err, class)
  if (.not. flag .or. class /= MPIX_ERR_REVOKED) call MPI_Abort(MPI_COMM_WORLD, 33)
  call MPIX_Comm_shrink(small, other)
  call MPI_Comm_size(other, n)
  if (n /= 3) call MPI_Abort(MPI_COMM_WORLD, 34)
  call MPI_Comm_free(other)
end subroutine new

program extensions
  use mpi_f08
  use, intrinsic :: iso_c_binding, only: c_int
  implicit none
  interface
    integer(c_int) function raise(signal) bind(C)
      import :: c_int
      integer(c_int), value :: signal
    end function raise
  end interface
  integer :: rank, small, left
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN)
  call MPI_Barrier(MPI_COMM_WORLD)
  if (rank == 2) left = raise(9_c_int)
  call old(small, left)
  if (left /= 3) call MPI_Abort(MPI_COMM_WORLD, 3)
  call middle(small)
  call new(small)
  if (rank == 0) print '(a)', 'verified'
  call MPI_Finalize()
end program extensions
