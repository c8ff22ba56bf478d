! Sets of ranks and multicasts in all three interfaces: every routine is called, with array sections in module mpi_f08.
! ranks: 5
! ranks: 3
subroutine expect(holds, place)
  use mpi_f08
  implicit none
  logical, intent(in) :: holds
  integer, intent(in) :: place
  if (.not. holds) print '(a, i0)', 'not true: ', place
  if (.not. holds) call MPI_Abort(MPI_COMM_WORLD, 3)
end subroutine expect

! The master is rank 0; all others are members.
subroutine old(rank, size)
  implicit none
  include 'mpif.h'
  include 'mpif-ext.h'
  integer :: rank, size, set, others, both, n, same, ierr, request, i, ranks(16), range(3, 1), group, data(10)
  integer*1 :: bits(2)
  ranks(1) = 1
  call MPIX_RANKSET_INCL(MPI_COMM_WORLD, 1, ranks, set, ierr)
  call expect(ierr == MPI_SUCCESS .and. set /= MPIX_RANKSET_NULL, 1)
  range(:, 1) = (/ 1, size - 1, 1 /)
  call MPIX_RANKSET_RANGE_INCL(MPI_COMM_WORLD, 1, range, others, ierr)
  call MPIX_RANKSET_SIZE(others, n, ierr)
  call expect(n == size - 1, 2)
  call MPIX_RANKSET_DIFFERENCE(others, set, both, ierr)
  call MPIX_RANKSET_RANKS(both, 16, ranks, ierr)
  call expect(ranks(1) == 2, 3)
  call MPIX_RANKSET_FREE(both, ierr)
  call expect(both == MPIX_RANKSET_NULL, 4)
  call MPIX_RANKSET_UNION(others, set, both, ierr)
  call MPIX_RANKSET_COMPARE(others, both, same, ierr)
  call expect(same == MPI_IDENT, 5)
  call MPIX_RANKSET_FREE(both, ierr)
  call MPIX_RANKSET_INTERSECTION(others, set, both, ierr)
  call MPIX_RANKSET_COMPARE(set, both, same, ierr)
  call expect(same == MPI_IDENT, 6)
  call MPIX_RANKSET_FREE(both, ierr)
  call MPI_COMM_GROUP(MPI_COMM_WORLD, group, ierr)
  call MPIX_RANKSET_FROM_GROUP(MPI_COMM_WORLD, group, both, ierr)
  call MPIX_RANKSET_SIZE(both, n, ierr)
  call expect(n == size, 7)
  call MPIX_RANKSET_FREE(both, ierr)
  call MPI_GROUP_FREE(group, ierr)
  bits = (/ 2, 0 /)
  call MPIX_RANKSET_FROM_BITMAP(MPI_COMM_WORLD, bits, both, ierr)
  call MPIX_RANKSET_COMPARE(set, both, same, ierr)
  call expect(same == MPI_IDENT, 8)
  call MPIX_RANKSET_FREE(both, ierr)
  if (rank == 0) then
    data = (/ (i, i = 1, 10) /)
    call MPIX_MCAST(data, 10, MPI_INTEGER, others, 1, MPI_COMM_WORLD, ierr)
    call MPIX_SMCAST(data, 10, MPI_INTEGER, others, 2, MPI_COMM_WORLD, ierr)
    call MPIX_IMCAST(data, 10, MPI_INTEGER, others, 3, MPI_COMM_WORLD, request, ierr)
    call MPI_WAIT(request, MPI_STATUS_IGNORE, ierr)
    call MPIX_ISMCAST(data, 10, MPI_INTEGER, others, 4, MPI_COMM_WORLD, request, ierr)
    call MPI_WAIT(request, MPI_STATUS_IGNORE, ierr)
    call MPIX_MCAST_INIT(data, 10, MPI_INTEGER, others, 5, MPI_COMM_WORLD, MPI_INFO_NULL, request, ierr)
    call MPI_START(request, ierr)
    call MPI_WAIT(request, MPI_STATUS_IGNORE, ierr)
    call MPI_REQUEST_FREE(request, ierr)
  else
    do n = 1, 5
      data = 0
      call MPI_RECV(data, 10, MPI_INTEGER, 0, n, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
      call expect(all(data == (/ (i, i = 1, 10) /)), 10 + n)
    end do
  end if
  call MPIX_RANKSET_FREE(set, ierr)
  call MPIX_RANKSET_FREE(others, ierr)
end subroutine old

subroutine middle(rank, size)
  use mpi
  use mpi_ext
  implicit none
  integer :: rank, size, set, ierr, range(3, 1), data(3)
  range(:, 1) = [1, size - 1, 1]
  call MPIX_Rankset_range_incl(MPI_COMM_WORLD, 1, range, set, ierr)
  data = [7, 8, 9]
  if (rank == 0) then
    call MPIX_Mcast(data, 3, MPI_INTEGER, set, 1, MPI_COMM_WORLD, ierr)
  else
    data = 0
    call MPI_Recv(data, 3, MPI_INTEGER, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
    call expect(all(data == [7, 8, 9]), 30)
  end if
  call MPIX_Rankset_free(set, ierr)
  call expect(set == MPIX_RANKSET_NULL, 31)
end subroutine middle

subroutine new(rank, size)
  use mpi_f08
  use mpi_f08_ext
  implicit none
  integer :: rank, size, n, i, k, range(3, 1), ranks(16), same
  integer(1) :: bits(2)
  integer, asynchronous :: grid(6, 8)
  integer :: column(4, 4)
  type(MPIX_Rankset) :: set, one, two
  type(MPI_Group) :: group
  type(MPI_Request) :: request
  range(:, 1) = [1, size - 1, 1]
  call MPIX_Rankset_range_incl(MPI_COMM_WORLD, 1, range, set)
  call MPIX_Rankset_incl(MPI_COMM_WORLD, 1, [1], one)
  call expect(set /= one, 40)
  call MPIX_Rankset_union(set, one, two)
  call MPIX_Rankset_compare(set, two, same)
  call expect(same == MPI_IDENT, 41)
  call MPIX_Rankset_free(two)
  call expect(two == MPIX_RANKSET_NULL, 42)
  call MPIX_Rankset_intersection(set, one, two)
  call MPIX_Rankset_size(two, n)
  call expect(n == 1, 43)
  call MPIX_Rankset_free(two)
  call MPIX_Rankset_difference(set, one, two)
  call MPIX_Rankset_ranks(two, 16, ranks)
  call expect(ranks(1) == 2, 44)
  call MPIX_Rankset_free(two)
  call MPI_Comm_group(MPI_COMM_WORLD, group)
  call MPIX_Rankset_from_group(MPI_COMM_WORLD, group, two)
  call MPI_Group_free(group)
  call MPIX_Rankset_free(two)
  bits = [2_1, 0_1]
  call MPIX_Rankset_from_bitmap(MPI_COMM_WORLD, bits, two)
  call MPIX_Rankset_compare(two, one, same)
  call expect(same == MPI_IDENT, 45)
  call MPIX_Rankset_free(two)
  call MPIX_Rankset_free(one)
  grid = reshape([(i, i = 1, 48)], [6, 8])
  if (rank == 0) then ! four rows and columns, none beside another
    call MPIX_Mcast(grid(1:6:2, 1:8:2), 12, MPI_INTEGER, set, 1, MPI_COMM_WORLD)
    call MPIX_Smcast(grid(2, :), 8, MPI_INTEGER, set, 2, MPI_COMM_WORLD)
    call MPIX_Imcast(grid(1:6:2, 1:8:2), 12, MPI_INTEGER, set, 3, MPI_COMM_WORLD, request)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call MPIX_Ismcast(grid(2, :), 8, MPI_INTEGER, set, 4, MPI_COMM_WORLD, request)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call MPIX_Mcast_init(grid(1:6:2, 1:8:2), 12, MPI_INTEGER, set, 5, MPI_COMM_WORLD, MPI_INFO_NULL, request)
    call MPI_Start(request)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call MPI_Request_free(request)
  else
    do k = 1, 5
      column = 0
      if (mod(k, 2) == 1) then
        call MPI_Recv(column(1:3, :), 12, MPI_INTEGER, 0, k, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
        call expect(all(column(1:3, :) == grid(1:6:2, 1:8:2)), 50 + k)
      else
        call MPI_Recv(column(1:4, 1:2), 8, MPI_INTEGER, 0, k, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
        call expect(all(reshape(column(:, 1:2), [8]) == grid(2, :)), 50 + k)
      end if
    end do
  end if
  ! in order with plain sends, and complete when all have it
  call MPIX_Rankset_set_flags(set, MPIX_MCAST_ORDERED + MPIX_MCAST_ACKED)
  call MPIX_Rankset_get_failed(set, one)
  call MPIX_Rankset_size(one, n)
  call expect(n == 0, 60)
  call MPIX_Rankset_free(one)
  if (rank == 0) then
    do k = 1, 20
      do i = 1, size - 1
        call MPI_Send(k, 1, MPI_INTEGER, i, 6, MPI_COMM_WORLD)
      end do
      call MPIX_Mcast(-k, 1, MPI_INTEGER, set, 6, MPI_COMM_WORLD)
    end do
  else
    do k = 1, 20
      call MPI_Recv(i, 1, MPI_INTEGER, 0, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
      call expect(i == k, 61)
      call MPI_Recv(i, 1, MPI_INTEGER, 0, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
      call expect(i == -k, 62)
    end do
  end if
  call MPIX_Rankset_free(set)
end subroutine new

program multicast
  use mpi_f08
  implicit none
  integer :: rank, size
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, size)
  call old(rank, size)
  call middle(rank, size)
  call new(rank, size)
  if (rank == 0) print '(a)', 'verified'
  call MPI_Finalize()
end program multicast
