! Errors as a program of each interface gets them: the class of each mistake, its text, the handlers that the program sets, and the calls that go on to work.
! ranks: 2
module mistakes
  implicit none
  integer :: handled(3) = 0 ! calls of the handlers of mpif.h, module mpi, module mpi_f08
contains
  subroutine fail(where, got)
    character(len=*), intent(in) :: where
    integer, intent(in) :: got
    print '(a,a,i0)', where, ': class ', got
    stop 3
  end subroutine fail
end module mistakes

subroutine old_handler(comm, code)
  use mistakes, only: handled
  implicit none
  include 'mpif.h'
  integer :: comm, code, class, ierr
  call MPI_ERROR_CLASS(code, class, ierr)
  if (comm == MPI_COMM_WORLD .and. class == MPI_ERR_TAG) handled(1) = handled(1) + 1
end subroutine old_handler

subroutine old(rank)
  use mistakes, only: fail, handled
  implicit none
  include 'mpif.h'
  integer :: rank, ierr, x(4), st(MPI_STATUS_SIZE), eh, before, length, newtype, win
  integer(kind=MPI_ADDRESS_KIND) :: size
  character(len=MPI_MAX_ERROR_STRING) :: text
  external :: old_handler
  x = rank
  call MPI_COMM_GET_ERRHANDLER(MPI_COMM_WORLD, before, ierr)
  call MPI_COMM_SET_ERRHANDLER(MPI_COMM_WORLD, MPI_ERRORS_RETURN, ierr)
  call MPI_COMM_SET_ERRHANDLER(MPI_COMM_SELF, MPI_ERRORS_RETURN, ierr)
  call MPI_SEND(x, -1, MPI_INTEGER, 0, 0, MPI_COMM_WORLD, ierr)
  call expect('mpif.h, count', MPI_ERR_COUNT)
  call MPI_SEND(x, 1, MPI_DATATYPE_NULL, 0, 0, MPI_COMM_WORLD, ierr)
  call expect('mpif.h, datatype', MPI_ERR_TYPE)
  call MPI_SEND(x, 1, MPI_INTEGER, 2, 0, MPI_COMM_WORLD, ierr)
  call expect('mpif.h, rank', MPI_ERR_RANK)
  call MPI_ERROR_STRING(ierr, text, length, ierr)
  if (ierr /= MPI_SUCCESS .or. index(text(1:length), 'MPI_ERR_RANK') == 0) call fail('mpif.h, text '//text(1:length), ierr)
  call MPI_SEND(x, 1, MPI_INTEGER, 0, -5, MPI_COMM_WORLD, ierr)
  call expect('mpif.h, tag', MPI_ERR_TAG)
  call MPI_SEND(x, 1, MPI_INTEGER, 0, 0, MPI_COMM_NULL, ierr)
  call expect('mpif.h, communicator', MPI_ERR_COMM)
  call MPI_REDUCE(x, x, 1, MPI_INTEGER, MPI_OP_NULL, 0, MPI_COMM_WORLD, ierr)
  call expect('mpif.h, operation', MPI_ERR_OP)
  call MPI_BCAST(x, 1, MPI_INTEGER, -2, MPI_COMM_WORLD, ierr)
  call expect('mpif.h, root', MPI_ERR_ROOT)
  call MPI_TYPE_VECTOR(-2, 1, 1, MPI_INTEGER, newtype, ierr)
  call expect('mpif.h, vector', MPI_ERR_COUNT)
  size = -8
  call MPI_WIN_CREATE(x, size, 4, MPI_INFO_NULL, MPI_COMM_SELF, win, ierr)
  call expect('mpif.h, size', MPI_ERR_SIZE)
  call MPI_SENDRECV(x, 4, MPI_INTEGER, 1 - rank, 7, x, 0, MPI_INTEGER, 1 - rank, 7, MPI_COMM_WORLD, st, ierr)
  call expect('mpif.h, truncated', MPI_ERR_TRUNCATE)
  call MPI_COMM_CREATE_ERRHANDLER(old_handler, eh, ierr)
  call MPI_COMM_SET_ERRHANDLER(MPI_COMM_WORLD, eh, ierr)
  call MPI_SEND(x, 1, MPI_INTEGER, 0, -5, MPI_COMM_WORLD, ierr)
  call expect('mpif.h, handler', MPI_ERR_TAG)
  if (handled(1) /= 1) call fail('mpif.h, handler called', handled(1))
  call MPI_COMM_SET_ERRHANDLER(MPI_COMM_WORLD, before, ierr)
  call MPI_ERRHANDLER_FREE(eh, ierr)
  if (eh /= MPI_ERRHANDLER_NULL) call fail('mpif.h, handler freed', eh)
contains
  subroutine expect(where, want)
    character(len=*), intent(in) :: where
    integer, intent(in) :: want
    integer :: class, error
    call MPI_ERROR_CLASS(ierr, class, error)
    if (class /= want) call fail(where, class)
  end subroutine expect
end subroutine old

module middle_part
  use mpi
  use mistakes, only: fail, handled
  implicit none
contains
  subroutine middle_handler(win, code)
    integer :: win, code, class, ierr
    call MPI_Error_class(code, class, ierr)
    if (win /= MPI_WIN_NULL .and. class == MPI_ERR_RANK) handled(2) = handled(2) + 1
  end subroutine middle_handler

  subroutine expect(where, code, want)
    character(len=*), intent(in) :: where
    integer, intent(in) :: code, want
    integer :: class, error
    call MPI_Error_class(code, class, error)
    if (class /= want) call fail(where, class)
  end subroutine expect

  subroutine middle(rank)
    integer, intent(in) :: rank
    integer :: ierr, before, file, info, group, handler, win, cart, x(2), request, status(MPI_STATUS_SIZE)
    integer(kind=MPI_ADDRESS_KIND) :: at
    x = rank
    call MPI_Comm_get_errhandler(MPI_COMM_WORLD, before, ierr)
    call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN, ierr)
    call MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN, ierr)
    call MPI_Comm_rank(MPI_COMM_NULL, x(1), ierr)
    call expect('mpi, communicator', ierr, MPI_ERR_COMM)
    info = MPI_INFO_NULL
    call MPI_Info_free(info, ierr)
    call expect('mpi, info', ierr, MPI_ERR_INFO)
    call MPI_Comm_group(MPI_COMM_WORLD, group, ierr)
    call MPI_Group_incl(group, 1, [9], x(1), ierr)
    call expect('mpi, rank of a group', ierr, MPI_ERR_RANK)
    call MPI_Cart_create(MPI_COMM_WORLD, 1, [99], [.true.], .false., cart, ierr)
    call expect('mpi, too large a grid', ierr, MPI_ERR_DIMS)
    call MPI_File_open(MPI_COMM_SELF, '/no such folder/file', MPI_MODE_RDONLY, MPI_INFO_NULL, file, ierr)
    call expect('mpi, file', ierr, MPI_ERR_NO_SUCH_FILE)
    call MPI_Irecv(x, 1, MPI_INTEGER, 3, 0, MPI_COMM_WORLD, request, ierr)
    call expect('mpi, source', ierr, MPI_ERR_RANK)
    call MPI_Get_address(x, at, ierr)
    call expect('mpi, no mistake', ierr, MPI_SUCCESS)
    at = 8
    call MPI_Win_create(x, at, 4, MPI_INFO_NULL, MPI_COMM_WORLD, win, ierr)
    call MPI_Win_create_errhandler(middle_handler, handler, ierr)
    call MPI_Win_set_errhandler(win, handler, ierr)
    at = 0
    call MPI_Win_fence(0, win, ierr)
    call MPI_Put(x, 1, MPI_INTEGER, 5, at, 1, MPI_INTEGER, win, ierr)
    call expect('mpi, target', ierr, MPI_ERR_RANK)
    if (handled(2) /= 1) call fail('mpi, handler called', handled(2))
    call MPI_Win_fence(0, win, ierr)
    call expect('mpi, after the mistake', ierr, MPI_SUCCESS)
    call MPI_Win_free(win, ierr)
    call MPI_Errhandler_free(handler, ierr)
    call MPI_Probe(MPI_ANY_SOURCE, -9, MPI_COMM_WORLD, status, ierr)
    call expect('mpi, tag', ierr, MPI_ERR_TAG)
    call MPI_Comm_set_errhandler(MPI_COMM_WORLD, before, ierr)
  end subroutine middle
end module middle_part

module new_part
  use mpi_f08
  use mistakes, only: fail, handled
  implicit none
contains
  subroutine new_handler(comm, error_code)
    type(MPI_Comm) :: comm
    integer :: error_code, class
    call MPI_Error_class(error_code, class)
    if (comm == MPI_COMM_WORLD .and. class == MPI_ERR_COUNT) handled(3) = handled(3) + 1
  end subroutine new_handler

  subroutine expect(where, code, want)
    character(len=*), intent(in) :: where
    integer, intent(in) :: code, want
    integer :: class
    call MPI_Error_class(code, class)
    if (class /= want) call fail(where, class)
  end subroutine expect

  subroutine new(rank)
    integer, intent(in) :: rank
    integer :: ierr, x(6), n
    type(MPI_Errhandler) :: before, handler
    type(MPI_Comm) :: none
    type(MPI_Request) :: request
    type(MPI_Datatype) :: vector
    type(MPI_Status) :: status
    character(len=MPI_MAX_ERROR_STRING) :: text
    x = rank
    call MPI_Comm_get_errhandler(MPI_COMM_WORLD, before)
    call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN)
    call MPI_Send(x(1:6:2), -1, MPI_INTEGER, 0, 0, MPI_COMM_WORLD, ierr)
    call expect('mpi_f08, count of a section', ierr, MPI_ERR_COUNT)
    call MPI_Send(x(1:6:2), 3, MPI_INTEGER, 7, 0, MPI_COMM_WORLD, ierr)
    call expect('mpi_f08, rank', ierr, MPI_ERR_RANK)
    call MPI_Error_string(ierr, text, n)
    if (index(text, 'MPI_ERR_RANK') == 0 .or. text(n:n) == ' ') call fail('mpi_f08, text '//text(1:n), ierr)
    call MPI_Isend(x, 1, MPI_DATATYPE_NULL, 0, 0, MPI_COMM_WORLD, request, ierr)
    call expect('mpi_f08, datatype', ierr, MPI_ERR_TYPE)
    call MPI_Type_vector(2, 1, 2, MPI_INTEGER, vector)
    call MPI_Send(x, 1, vector, 1 - rank, 0, MPI_COMM_WORLD, ierr)
    call expect('mpi_f08, not committed', ierr, MPI_ERR_TYPE)
    call MPI_Type_free(vector)
    none = MPI_COMM_NULL
    call MPI_Barrier(none, ierr)
    call expect('mpi_f08, communicator', ierr, MPI_ERR_COMM)
    call MPI_Allreduce(x, x, 1, MPI_INTEGER, MPI_OP_NULL, MPI_COMM_WORLD, ierr)
    call expect('mpi_f08, operation', ierr, MPI_ERR_OP)
    call MPI_Sendrecv(x, 6, MPI_INTEGER, 1 - rank, 7, x(1:3:2), 2, MPI_INTEGER, 1 - rank, 7, MPI_COMM_WORLD, status, ierr)
    call expect('mpi_f08, truncated', ierr, MPI_ERR_TRUNCATE)
    call MPI_Comm_create_errhandler(new_handler, handler)
    call MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler)
    call MPI_Recv(x, -4, MPI_INTEGER, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE) ! without an error code: the handler alone
    if (handled(3) /= 1) call fail('mpi_f08, handler called', handled(3))
    call MPI_Comm_set_errhandler(MPI_COMM_WORLD, before)
    call MPI_Errhandler_free(handler)
    call MPI_Barrier(MPI_COMM_WORLD, ierr)
    call expect('mpi_f08, after the mistakes', ierr, MPI_SUCCESS)
  end subroutine new
end module new_part

program errors
  use mpi
  use middle_part, only: middle
  use new_part, only: new
  implicit none
  integer :: rank, ierr
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call old(rank)
  call middle(rank)
  call new(rank)
  if (rank == 0) print '(a)', 'verified'
  call MPI_Finalize(ierr)
end program errors
