! Module mpi_f08: array sections as buffers, of blocking, nonblocking, persistent and one-sided calls, of files; large counts by the same names; handles; optional
! error codes.
! ranks: 2
program sections
  use mpi_f08
  use, intrinsic :: iso_fortran_env, only: int64
  implicit none
  integer :: rank, size, err, other, i, j, got
  type(MPI_Comm) :: comm
  type(MPI_Status) :: status
  type(MPI_Request) :: request, requests(2)

  call MPI_Init()
  call MPI_Comm_dup(MPI_COMM_WORLD, comm, err)
  call check(err == MPI_SUCCESS .and. comm /= MPI_COMM_WORLD .and. .not. comm == MPI_COMM_NULL, 1)
  call MPI_Comm_rank(comm, rank)
  call MPI_Comm_size(comm, size)
  call check(size == 2 .and. MPI_SUBARRAYS_SUPPORTED .and. MPI_ASYNC_PROTECTS_NONBLOCKING, 2)
  other = 1 - rank
  call messages()
  call collectives()
  call reductions()
  call windows()
  call files()
  call packing()
  call kinds()
  call MPI_Comm_free(comm)
  call check(comm == MPI_COMM_NULL, 3)
  call MPI_Finalize()
  if (rank == 0) print '(a)', 'verified'

contains

  subroutine check(right, number)
    logical, intent(in) :: right
    integer, intent(in) :: number
    if (right) return
    print '(a, i0, a, i0)', 'rank ', rank, ': wrong at ', number
    flush (6)
    call MPI_Abort(MPI_COMM_WORLD, number)
  end subroutine check

  subroutine messages()
    integer, asynchronous :: a(6, 5, 4), b(6, 5, 4), line(60)
    complex :: z(8), w(8)
    a = reshape([(i, i=1, 120)], [6, 5, 4]) + 1000 * rank
    b = -1
    ! a plane of every second element, into another shape of the same number of elements
    call MPI_Irecv(b(1:6:2, 2:5, 3), 12, MPI_INTEGER, other, 1, comm, requests(1))
    call MPI_Isend(a(2, 1:4, 1:3), 12, MPI_INTEGER, other, 1, comm, requests(2))
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
    call check(all(b(1:6:2, 2:5, 3) == reshape(a(2, 1:4, 1:3), [3, 4]) + 1000 * (other - rank)), 10)
    call check(count(b /= -1) == 12, 11)
    ! fewer elements than the section has: a whole line and a part of the next; backwards
    b = -1
    call MPI_Sendrecv(a(6:1:-1, 2, 2), 5, MPI_INTEGER, other, 2, b(1:5:2, :, 4), 5, MPI_INTEGER, other, 2, comm, status)
    call MPI_Get_count(status, MPI_INTEGER, got)
    call check(got == 5 .and. status%MPI_SOURCE == other .and. status%MPI_TAG == 2, 12)
    call check(all(b(1:5:2, 1, 4) == a(6:4:-1, 2, 2) + 1000 * (other - rank)), 13)
    call check(all(b(1:3:2, 2, 4) == a(3:2:-1, 2, 2) + 1000 * (other - rank)) .and. count(b /= -1) == 5, 14)
    ! persistent
    line = -1
    call MPI_Recv_init(line(2:60:6), 10, MPI_INTEGER, other, 3, comm, request)
    do j = 1, 3
      call MPI_Start(request)
      a(:, :, 1) = a(:, :, 1) + 1
      call MPI_Send(a(1:5:2, :, 1), 10, MPI_INTEGER, other, 3, comm)
      call MPI_Wait(request, MPI_STATUS_IGNORE)
      call check(all(line(2:60:6) == [((a(2 * i - 1, got, 1), i=1, 3), got=1, 3), a(1, 4, 1)] + 1000 * (other - rank)), 15)
    end do
    call MPI_Request_free(request)
    call check(count(line /= -1) == 10 .and. request == MPI_REQUEST_NULL, 16)
    ! an element of the section is two of the datatype; a section's part whose datatype is longer than its elements
    z = [(cmplx(i, 10 * rank), i=1, 8)]
    w = 0
    call MPI_Sendrecv(z(1:8:2), 7, MPI_REAL, other, 4, w(2:8:2), 7, MPI_REAL, other, 4, comm, status)
    call check(all(real(w(2:8:2)) == real(z(1:8:2))) .and. aimag(w(6)) == 10 * other .and. aimag(w(8)) == 0, 17)
    line = -1
    call MPI_Sendrecv(a(1, 1, :), 2, MPI_2INTEGER, other, 5, line(1:60:15), 2, MPI_2INTEGER, other, 5, comm, status)
    call check(all(line(1:60:15) == a(1, 1, :) + 1000 * (other - rank)) .and. count(line /= -1) == 4, 18)
  end subroutine messages

  subroutine collectives()
    integer, asynchronous :: a(12), b(4, 6), c(3, 3, 4)
    integer :: counts(2), displs(2)
    a = [(i + 100 * rank, i=1, 12)]
    b = -1
    call MPI_Bcast(a(1:12:3), 4, MPI_INTEGER, 1, comm)
    call check(all(a(1:12:3) == [101, 104, 107, 110]) .and. a(2) == 2 + 100 * rank, 20)
    a = [(i + 100 * rank, i=1, 12)]
    call MPI_Gather(a(2:12:4), 3, MPI_INTEGER, b(2, :), 3, MPI_INTEGER, 0, comm) ! one distance
    if (rank == 0) call check(all(b(2, :) == [2, 6, 10, 102, 106, 110]) .and. count(b /= -1) == 6, 21)
    c = -1
    call MPI_Allgather(a(1:9:2), 5, MPI_INTEGER, c(1:3:2, 1:3:2, 1:3), 5, MPI_INTEGER, comm) ! several distances
    call check(all(c(1:3:2, 1:3:2, 1) == reshape([1, 3, 5, 7], [2, 2])) .and. c(1, 1, 2) == 9 .and. c(3, 1, 2) == 101, 22)
    call check(c(1, 3, 2) == 103 .and. c(3, 1, 3) == 109 .and. c(1, 3, 3) == -1 .and. count(c /= -1) == 10, 23)
    c = -1
    call MPI_Iallgather(a(1:9:2), 5, MPI_INTEGER, c(1:3:2, 1:3:2, 1:3), 5, MPI_INTEGER, comm, request)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call check(c(1, 3, 2) == 103 .and. c(3, 1, 3) == 109 .and. c(1, 3, 3) == -1 .and. count(c /= -1) == 10, 24)
    counts = [2, 3]
    displs = [4, 0]
    b = -1
    call MPI_Igatherv(a(2:12:4), 2 + rank, MPI_INTEGER, b(3, :), counts, displs, MPI_INTEGER, 1, comm, request)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    if (rank == 1) call check(all(b(3, :) == [102, 106, 110, -1, 2, 6]) .and. count(b /= -1) == 5, 25)
    call MPI_Barrier(comm)
  end subroutine collectives

  subroutine reductions()
    integer, asynchronous :: a(10), b(10)
    type(MPI_Request) :: again
    a = [(i * (rank + 1), i=1, 10)]
    b = -1
    call MPI_Allreduce(a(1:10:2), b(2:10:2), 5, MPI_INTEGER, MPI_SUM, comm)
    call check(all(b(2:10:2) == [3, 9, 15, 21, 27]) .and. all(b(1:9:2) == -1), 30)
    b = -1
    call MPI_Iallreduce(a(1:10:2), b(2:10:2), 5, MPI_INTEGER, MPI_SUM, comm, request)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call check(all(b(2:10:2) == [3, 9, 15, 21, 27]) .and. all(b(1:9:2) == -1), 31)
    call MPI_Allreduce(MPI_IN_PLACE, b(2:10:2), 5, MPI_INTEGER, MPI_MAX, comm)
    call check(all(b(2:10:2) == [3, 9, 15, 21, 27]), 32)
    b = -1
    call MPI_Allreduce_init(a(1:10:2), b(2:10:2), 5, MPI_INTEGER, MPI_SUM, comm, MPI_INFO_NULL, again)
    do j = 1, 3
      a(1) = a(1) + 1
      call MPI_Start(again)
      call MPI_Wait(again, MPI_STATUS_IGNORE)
      call check(all(b(2:10:2) == [3 + 2 * j, 9, 15, 21, 27]) .and. all(b(1:9:2) == -1), 33)
    end do
    call MPI_Request_free(again)
    b = -1
    call MPI_Reduce(a(2:10:2), b(1:10:2), 5, MPI_INTEGER, MPI_SUM, 1, comm)
    call check(all(b(1:10:2) == merge([6, 12, 18, 24, 30], -1, rank == 1)), 34)
    b = 7
    call MPI_Reduce_local(a(2:4:2), b(1:3:2), 2, MPI_INTEGER, MPI_SUM)
    call check(b(1) == 7 + 2 * (rank + 1) .and. b(3) == 7 + 4 * (rank + 1) .and. b(2) == 7, 35)
  end subroutine reductions

  subroutine windows()
    integer, asynchronous :: w(20), a(10)
    type(MPI_Win) :: win
    integer(MPI_ADDRESS_KIND) :: at
    logical :: flag
    w = 0
    a = [(i + 100 * rank, i=1, 10)]
    call MPI_Win_create(w, 80_MPI_ADDRESS_KIND, 4, MPI_INFO_NULL, comm, win)
    call MPI_Win_fence(0, win)
    at = 2
    call MPI_Put(a(1:10:3), 4, MPI_INTEGER, other, at, 4, MPI_INTEGER, win)
    call MPI_Win_fence(0, win)
    call check(all(w(3:6) == [1, 4, 7, 10] + 100 * other) .and. count(w /= 0) == 4, 40)
    call MPI_Win_fence(0, win)
    call MPI_Accumulate(a(2:8:3), 3, MPI_INTEGER, other, at, 3, MPI_INTEGER, MPI_SUM, win)
    call MPI_Win_fence(0, win)
    call check(all(w(3:5) == [3, 9, 15] + 200 * other), 41)
    call MPI_Win_fence(0, win)
    a = 0
    call MPI_Get(a(10:1:-4), 3, MPI_INTEGER, other, at, 3, MPI_INTEGER, win)
    call MPI_Win_fence(0, win)
    call check(all(a(10:1:-4) == [3, 9, 15] + 200 * rank) .and. count(a /= 0) == 3, 42)
    call MPI_Win_get_attr(win, MPI_WIN_SIZE, at, flag)
    call check(flag .and. at == 80, 43)
    call MPI_Win_free(win)
  end subroutine windows

  subroutine files()
    type(MPI_File) :: file
    integer :: a(8), b(8)
    a = [(i + 100 * rank, i=1, 8)]
    call MPI_File_open(comm, 'sections.tmp', MPI_MODE_CREATE + MPI_MODE_RDWR + MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, file)
    call MPI_File_write_at_all(file, 16_MPI_OFFSET_KIND * rank, a(1:8:2), 4, MPI_INTEGER, status)
    call MPI_Get_count(status, MPI_INTEGER, got)
    call check(got == 4, 50)
    b = -1
    call MPI_File_sync(file)
    call MPI_Barrier(comm)
    call MPI_File_iread_at(file, 16_MPI_OFFSET_KIND * other, b(8:1:-2), 4, MPI_INTEGER, request)
    call MPI_Wait(request, status)
    call check(all(b(8:1:-2) == [1, 3, 5, 7] + 100 * other) .and. count(b /= -1) == 4, 51)
    call MPI_File_close(file)
  end subroutine files

  subroutine packing()
    integer :: a(6), b(6), packed(16), at
    integer(MPI_ADDRESS_KIND) :: far
    a = [(i + 100 * rank, i=1, 6)]
    b = -1
    packed = 0
    at = 0
    call MPI_Pack(a(1:6:2), 3, MPI_INTEGER, packed, 64, at, comm)
    call check(at == 12, 60)
    at = 0
    call MPI_Unpack(packed, 64, at, b(2:6:2), 3, MPI_INTEGER, comm)
    call check(all(b(2:6:2) == a(1:6:2)) .and. all(b(1:6:2) == -1), 61)
    far = 0
    call MPI_Pack_external('external32', a(2:6:2), 3, MPI_INTEGER, packed, 64_MPI_ADDRESS_KIND, far)
    call check(far == 12, 62)
    far = 0
    call MPI_Unpack_external('external32', packed, 64_MPI_ADDRESS_KIND, far, b(1:5:2), 3, MPI_INTEGER)
    call check(all(b(1:5:2) == a(2:6:2)), 63)
  end subroutine packing

  subroutine kinds()
    integer, asynchronous :: a(8)
    integer(MPI_COUNT_KIND) :: many, lb, extent, counts(2), large
    integer(MPI_ADDRESS_KIND) :: displs(2)
    integer :: number, old(MPI_STATUS_SIZE)
    character(len=MPI_MAX_OBJECT_NAME) :: name
    type(MPI_Datatype) :: pair
    a = 0
    many = 4
    if (rank == 0) then
      call MPI_Send(a(1:8:2), many, MPI_INTEGER, 1, 1, comm)
    else
      call MPI_Recv(a(1:8:2), many, MPI_INTEGER, 0, 1, comm, status)
      call MPI_Get_count(status, MPI_INTEGER, large)
      call MPI_Get_count(status, MPI_INTEGER, number)
      call MPI_Status_f082f(status, old)
      call check(old(MPI_SOURCE) == 0 .and. old(MPI_TAG) == 1, 75)
      status%MPI_TAG = 5
      call MPI_Status_f2f08(old, status)
      call check(large == 4 .and. number == 4 .and. status%MPI_TAG == 1, 70)
    end if
    a = [(i + 10 * rank, i=1, 8)]
    counts = 2
    displs = [2, 0]
    call MPI_Allgatherv(a(1:4:3), many / 2, MPI_INTEGER, a(5:8), counts, displs, MPI_INTEGER, comm, number)
    call check(number == MPI_SUCCESS .and. all(a(5:8) == [11, 14, 1, 4]), 71)
    call MPI_Type_contiguous(many / 2, MPI_INTEGER, pair)
    call MPI_Type_set_name(pair, 'a pair')
    call MPI_Type_get_name(pair, name, number)
    call check(name == 'a pair' .and. number == 6, 72)
    call MPI_Type_get_extent(pair, lb, extent)
    call check(extent == 8, 73)
    call MPI_Type_commit(pair)
    call MPI_Type_free(pair)
    call MPI_Sizeof(extent, number)
    call check(number == 8 .and. MPI_Wtime() > 0 .and. kind(int64) > 0, 74)
  end subroutine kinds
end program sections
