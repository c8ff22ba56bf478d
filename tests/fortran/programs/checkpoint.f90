! Checkpoints and spare processes in all three interfaces: every routine is called; array sections are saved and restored; a spare takes the place of a
! rank that dies, and gets what that one has saved.
! ranks: 4
! spxrun: --with-ft
subroutine expect(holds, place)
  use mpi_f08
  implicit none
  logical, intent(in) :: holds
  integer, intent(in) :: place
  if (.not. holds) print '(a, i0)', 'not true: ', place
  if (.not. holds) call MPI_Abort(MPI_COMM_WORLD, 3)
end subroutine expect

subroutine old(comm, rank, size)
  implicit none
  include 'mpif.h'
  include 'mpif-ext.h'
  integer :: comm, rank, size, point, version, n, versions(4), ierr, saved, other
  integer(kind=MPI_COUNT_KIND) :: bytes, ten, one, zero
  double precision, save :: field(10)
  double precision :: part
  ten = 10
  one = 1
  zero = 0
  call MPIX_CHECKPOINT_CREATE(comm, MPI_INFO_NULL, point, ierr)
  call expect(ierr == MPI_SUCCESS .and. point /= MPIX_CHECKPOINT_NULL, 1)
  call MPIX_CHECKPOINT_REGISTER(point, 1, field, ten, MPI_DOUBLE_PRECISION, ierr)
  call MPIX_CHECKPOINT_REGISTER(point, 2, field, ten, MPI_DOUBLE_PRECISION, ierr)
  call MPIX_CHECKPOINT_UNREGISTER(point, 2, ierr)
  field = 100 * rank + 5
  call MPIX_CHECKPOINT_SAVE(point, 7, ierr)
  call MPIX_CHECKPOINT_COMMIT(point, ierr)
  call expect(ierr == MPI_SUCCESS, 2)
  call MPIX_CHECKPOINT_ATTACH(comm, point, ierr)
  call MPIX_CHECKPOINT_GET_VERSIONS(point, 4, versions, n, ierr)
  call expect(n == 1 .and. versions(1) == 7, 3)
  field = 0
  call MPIX_CHECKPOINT_RESTORE(point, MPIX_CHECKPOINT_NEWEST, version, ierr)
  call expect(version == 7 .and. all(field == 100 * rank + 5), 4)
  call MPIX_CHECKPOINT_RESTORE_BEGIN(point, 7, version, saved, ierr)
  other = mod(rank + 1, size)
  call MPIX_CHECKPOINT_GET_BYTES(point, other, 1, bytes, ierr)
  call expect(saved == size .and. bytes == 80, 5)
  bytes = 72
  call MPIX_CHECKPOINT_FETCH(point, other, 1, bytes, part, one, MPI_DOUBLE_PRECISION, ierr)
  call MPIX_CHECKPOINT_RESTORE_END(point, ierr)
  call expect(ierr == MPI_SUCCESS .and. part == 100 * other + 5, 6)
  call MPIX_CHECKPOINT_DELETE(point, 7, ierr)
  call MPIX_CHECKPOINT_FREE(point, ierr)
  call expect(point == MPIX_CHECKPOINT_NULL, 7)
end subroutine old

subroutine middle(comm, rank)
  use mpi
  use mpi_ext
  implicit none
  integer :: comm, rank, point, version, ierr
  integer, save, asynchronous :: state(3)
  call MPIX_Checkpoint_create(comm, MPI_INFO_NULL, point, ierr)
  call MPIX_Checkpoint_register(point, 1, state, 3_MPI_COUNT_KIND, MPI_INTEGER, ierr)
  state = rank
  call MPIX_Checkpoint_save(point, 1, ierr)
  call MPIX_Checkpoint_commit(point, ierr)
  state = -1
  call MPIX_Checkpoint_restore(point, 1, version, ierr)
  call expect(version == 1 .and. all(state == rank), 20)
  call MPIX_Checkpoint_free(point, ierr)
end subroutine middle

module state
  use mpi_f08
  use mpi_f08_ext
  implicit none
  real, asynchronous, save :: grid(8, 9)
  type(MPIX_Checkpoint), save :: point = MPIX_CHECKPOINT_NULL
contains
  subroutine new(comm)
    type(MPI_Comm), intent(in) :: comm
    integer :: rank, version, size, n, versions(2), i
    integer(MPI_COUNT_KIND) :: bytes
    real, asynchronous :: row(9), wide(2, 5)
    call MPI_Comm_rank(comm, rank)
    call MPIX_Checkpoint_create(comm, MPI_INFO_NULL, point)
    call MPIX_Checkpoint_register(point, 5, grid(2:8:2, 1:9:2), 20_MPI_COUNT_KIND, MPI_REAL) ! a section, of which nothing is copied
    call MPIX_Checkpoint_register(point, 6, rank, 0_MPI_COUNT_KIND, MPI_INTEGER)
    call MPIX_Checkpoint_unregister(point, 6)
    call fill(rank, 3)
    call MPIX_Checkpoint_save(point, 3)
    call MPIX_Checkpoint_commit(point)
    grid = -1
    call MPIX_Checkpoint_restore(point, MPIX_CHECKPOINT_NEWEST, version)
    call expect(version == 3 .and. is(rank, 3), 30)
    call expect(all(grid(1:8:2, :) == -1) .and. all(grid(:, 2:9:2) == -1), 31)
    call MPIX_Checkpoint_get_versions(point, 2, versions, n)
    call expect(n == 1 .and. versions(1) == 3, 32)
    call MPIX_Checkpoint_restore_begin(point, 3, version, size)
    call MPIX_Checkpoint_get_bytes(point, 0, 5, bytes)
    call expect(bytes == 80, 33)
    row = 0
    wide = 0
    ! The first column of the section, into every second element; and two of its columns into a section of two dimensions.
    call MPIX_Checkpoint_fetch(point, size - 1, 5, 0_MPI_COUNT_KIND, row(1:7:2), 4_MPI_COUNT_KIND, MPI_REAL)
    call MPIX_Checkpoint_fetch(point, size - 1, 5, 16_MPI_COUNT_KIND, wide(:, 1:4:3), 4_MPI_COUNT_KIND, MPI_REAL)
    call MPIX_Checkpoint_restore_end(point)
    call expect(all(row(1:7:2) == [(value(size - 1, 3, 2 * i, 1), i = 1, 4)]) .and. all(row(2:8:2) == 0), 34)
    call expect(wide(1, 1) == value(size - 1, 3, 2, 3) .and. wide(2, 4) == value(size - 1, 3, 8, 3), 35)
    call expect(all(wide(:, 2:3) == 0), 36)
  end subroutine new

  pure real function value(rank, version, i, k)
    integer, intent(in) :: rank, version, i, k
    value = 1000 * rank + 100 * version + 10 * i + k
  end function value

  subroutine fill(rank, version)
    integer, intent(in) :: rank, version
    integer :: i, k
    do k = 1, 9
      do i = 1, 8
        grid(i, k) = value(rank, version, i, k)
      end do
    end do
  end subroutine fill

  logical function is(rank, version)
    integer, intent(in) :: rank, version
    integer :: i, k
    is = .true.
    do k = 1, 9, 2
      do i = 2, 8, 2
        is = is .and. grid(i, k) == value(rank, version, i, k)
      end do
    end do
  end function is
end module state

program checkpoint
  use state
  use, intrinsic :: iso_c_binding, only: c_int
  implicit none
  interface
    integer(c_int) function raise(signal) bind(C)
      import :: c_int
      integer(c_int), value :: signal
    end function raise
  end interface
  integer :: me, rank, size, role, first, version, err, class
  type(MPI_Comm) :: work, again
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, me)
  call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN)
  call MPIX_Comm_repair(MPI_COMM_WORLD, 1, work, first)
  if (first == MPIX_ROLE_INITIAL) then
    call MPI_Comm_rank(work, rank)
    call MPI_Comm_size(work, size)
    call expect(size == 3 .and. rank == me, 40)
    call old(work%MPI_VAL, rank, size)
    call middle(work%MPI_VAL, rank)
    call new(work)
    call MPI_Comm_set_errhandler(work, MPI_ERRORS_RETURN)
    call MPI_Barrier(work)
    if (me == 1) err = raise(9_c_int)
    call MPI_Barrier(work, err)
    call MPI_Error_class(err, class)
    call expect(class == MPIX_ERR_PROC_FAILED .or. class == MPIX_ERR_REVOKED, 41)
    call MPIX_Comm_repair(MPI_COMM_WORLD, 1, again, role)
    call expect(role == MPIX_ROLE_SURVIVOR, 42)
    work = again
    call MPIX_Checkpoint_attach(work, point)
  else
    call expect(first == MPIX_ROLE_REPLACEMENT .and. me == 3, 43)
    call MPIX_Checkpoint_create(work, MPI_INFO_NULL, point)
    call MPIX_Checkpoint_register(point, 5, grid(2:8:2, 1:9:2), 20_MPI_COUNT_KIND, MPI_REAL)
  end if
  call MPI_Comm_rank(work, rank)
  call MPI_Comm_size(work, size)
  call expect(size == 3 .and. (me == 3 .or. rank == me) .and. (me /= 3 .or. rank == 1), 44)
  grid = -1
  call MPIX_Checkpoint_restore(point, MPIX_CHECKPOINT_NEWEST, version)
  call expect(version == 3 .and. is(rank, 3), 45)
  call MPIX_Checkpoint_delete(point, 3)
  call MPIX_Checkpoint_free(point)
  call expect(point == MPIX_CHECKPOINT_NULL, 46)
  if (rank == 0) print '(a)', 'verified'
  call MPIX_Comm_dismiss(MPI_COMM_WORLD)
  call MPI_Finalize()
end program checkpoint
