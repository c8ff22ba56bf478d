! use mpi: interfaces, kinds, attributes of address size, an error handler and a generalized request of the program's own, info, MPI_SIZEOF, and a call of the profiling interface.
! ranks: 2
module state
  use mpi
  implicit none
  integer :: handled = 0, freed = 0
contains
  subroutine handler(comm, code)
    integer :: comm, code
    handled = code
    if (comm /= MPI_COMM_WORLD) stop 20
  end subroutine handler

  subroutine query(extra, status, ierror)
    integer(kind=MPI_ADDRESS_KIND) :: extra
    integer :: status(MPI_STATUS_SIZE), ierror
    call MPI_Status_set_elements(status, MPI_INTEGER, int(extra), ierror)
    call MPI_Status_set_cancelled(status, .false., ierror)
    status(MPI_TAG) = 77
    ierror = MPI_SUCCESS
  end subroutine query

  subroutine release(extra, ierror)
    integer(kind=MPI_ADDRESS_KIND) :: extra
    integer :: ierror
    freed = freed + int(extra)
    ierror = MPI_SUCCESS
  end subroutine release

  subroutine cancel(extra, complete, ierror)
    integer(kind=MPI_ADDRESS_KIND) :: extra
    logical :: complete
    integer :: ierror
    ierror = MPI_SUCCESS
  end subroutine cancel
end module state

program main
  use mpi
  use state
  implicit none
  integer :: ierr, rank, size, eh, request, status(MPI_STATUS_SIZE), n, keyval, comm, info, cart, coords(1), code, class
  integer(kind=MPI_ADDRESS_KIND) :: extra, value
  logical :: flag, periods(1), found(1)
  character(len=12) :: text
  character(len=MPI_MAX_ERROR_STRING) :: message
  real(8) :: x(2, 3)
  integer, dimension(1) :: dims

  call MPI_Init_thread(MPI_THREAD_FUNNELED, n, ierr)
  if (n < MPI_THREAD_FUNNELED) stop 1
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call PMPI_Comm_size(MPI_COMM_WORLD, size, ierr)

  call MPI_Sizeof(x, n, ierr)
  if (n /= 8 .or. ierr /= MPI_SUCCESS) stop 2

  call MPI_Comm_create_errhandler(handler, eh, ierr)
  call MPI_Comm_set_errhandler(MPI_COMM_WORLD, eh, ierr)
  call MPI_Send(x, 1, MPI_DOUBLE_PRECISION, 99, 0, MPI_COMM_WORLD, code)
  call MPI_Error_class(handled, class, ierr)
  if (class /= MPI_ERR_RANK .or. code /= handled) stop 3
  call MPI_Error_string(code, message, n, ierr)
  if (index(message, 'MPI_ERR_RANK') == 0 .or. message(n:n) == ' ') stop 4

  extra = 3
  call MPI_Grequest_start(query, release, cancel, extra, request, ierr)
  call MPI_Grequest_complete(request, ierr)
  call MPI_Wait(request, status, ierr)
  call MPI_Get_count(status, MPI_INTEGER, n, ierr)
  if (n /= 3 .or. status(MPI_TAG) /= 77 .or. freed /= 3 .or. request /= MPI_REQUEST_NULL) stop 5

  extra = 0
  call MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, keyval, extra, ierr)
  value = 2_MPI_ADDRESS_KIND**40
  call MPI_Comm_set_attr(MPI_COMM_WORLD, keyval, value, ierr)
  call MPI_Comm_dup(MPI_COMM_WORLD, comm, ierr)
  value = 0
  call MPI_Comm_get_attr(comm, keyval, value, flag, ierr)
  if (.not. flag .or. value /= 2_MPI_ADDRESS_KIND**40) stop 6

  call MPI_Info_create(info, ierr)
  call MPI_Info_set(info, '  key ', ' a value ', ierr)
  n = len(text)
  call MPI_Info_get_string(info, 'key', n, text, flag, ierr)
  if (.not. flag .or. text /= 'a value' .or. n /= 7) stop 7
  call MPI_Info_free(info, ierr)

  dims = 0
  call MPI_Dims_create(size, 1, dims, ierr)
  call MPI_Cart_create(MPI_COMM_WORLD, 1, dims, [.true.], .false., cart, ierr)
  call MPI_Cart_get(cart, 1, dims, periods, coords, ierr)
  if (dims(1) /= size .or. .not. periods(1) .or. coords(1) /= rank) stop 8
  found = .true.
  call MPI_Cart_sub(cart, found, comm, ierr)

  value = MPI_Aint_add(int(40, MPI_ADDRESS_KIND), int(2, MPI_ADDRESS_KIND))
  if (value /= 42) stop 9
  if (rank == 0) print '(a)', 'verified'
  call MPI_Finalize(ierr)
end program main
