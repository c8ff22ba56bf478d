! use mpi: memory by TYPE(C_PTR) and by INTEGER(MPI_ADDRESS_KIND), under the same names, also those of the profiling interface (MPI-5.0, 10.2 and 13.2).
! ranks: 2
program main
  use, intrinsic :: iso_c_binding, only: c_ptr, c_null_ptr, c_f_pointer, c_associated
  use mpi
  implicit none
  integer, parameter :: n = 10
  integer(kind=MPI_ADDRESS_KIND) :: bytes = 4 * n, address, length
  type(c_ptr) :: p
  integer, pointer :: a(:)
  integer :: rank, win, unit, ierror, k
  call MPI_Init(ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)

  do k = 1, 2
    p = c_null_ptr
    if (k == 1) call MPI_Alloc_mem(bytes, MPI_INFO_NULL, p, ierror)
    if (k == 2) call PMPI_Alloc_mem(bytes, MPI_INFO_NULL, p, ierror)
    if (ierror /= MPI_SUCCESS .or. .not. c_associated(p)) stop 1
    call c_f_pointer(p, a, [n])
    a = k
    if (sum(a) /= k * n) stop 2
    call MPI_Free_mem(a, ierror)
  end do
  address = 0
  call MPI_Alloc_mem(bytes, MPI_INFO_NULL, address, ierror)
  if (address == 0) stop 3

  do k = 1, 2
    if (k == 1) call MPI_Win_allocate(bytes, 4, MPI_INFO_NULL, MPI_COMM_WORLD, p, win, ierror)
    if (k == 2) call PMPI_Win_allocate(bytes, 4, MPI_INFO_NULL, MPI_COMM_WORLD, p, win, ierror)
    call c_f_pointer(p, a, [n])
    a = rank
    call MPI_Win_free(win, ierror)
  end do
  call MPI_Win_allocate(bytes, 4, MPI_INFO_NULL, MPI_COMM_WORLD, address, win, ierror)
  call MPI_Win_free(win, ierror)

  do k = 1, 2
    if (k == 1) call MPI_Win_allocate_shared(bytes, 4, MPI_INFO_NULL, MPI_COMM_WORLD, p, win, ierror)
    if (k == 2) call PMPI_Win_allocate_shared(bytes, 4, MPI_INFO_NULL, MPI_COMM_WORLD, p, win, ierror)
    call c_f_pointer(p, a, [n])
    a = 100 * k + rank
    call MPI_Win_fence(0, win, ierror)
    p = c_null_ptr
    if (k == 1) call MPI_Win_shared_query(win, 1 - rank, length, unit, p, ierror)
    if (k == 2) call PMPI_Win_shared_query(win, 1 - rank, length, unit, p, ierror)
    call c_f_pointer(p, a, [n])
    if (length /= bytes .or. unit /= 4 .or. a(n) /= 100 * k + 1 - rank) stop 4
    call MPI_Win_shared_query(win, rank, length, unit, address, ierror)
    if (address == 0) stop 5
    call MPI_Win_fence(0, win, ierror)
    call MPI_Win_free(win, ierror)
  end do
  if (rank == 0) print '(a)', 'verified'
  call MPI_Finalize(ierror)
end program main
