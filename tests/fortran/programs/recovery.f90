! A program whose computation is in Fortran, with error recovery in C (recovery_c.c): two of five ranks die, the others leave the computation by longjmp,
! shrink the communicator, and go on from the last step that all of them have.
! ranks: 5
! spxrun: --with-ft
module computation
  use mpi_f08
  use mpi_f08_ext
  use, intrinsic :: iso_c_binding, only: c_int, c_double
  implicit none
  integer, parameter :: steps = 300, terms = 20000
  real(c_double) :: sums(0:steps) = 0 ! sums(s): of the first s steps
  integer(c_int) :: done = 0
  interface
    subroutine step_begins(step, rank) bind(C)
      import :: c_int
      integer(c_int), value :: step, rank
    end subroutine step_begins
  end interface
contains
  ! A part of Leibniz's series for pi in each step, its terms dealt out to the ranks.
  subroutine compute(comm) bind(C)
    integer(c_int), value :: comm
    type(MPI_Comm) :: world
    integer :: rank, size, k
    real(c_double) :: part, whole
    world%MPI_VAL = comm
    call MPI_Comm_rank(world, rank)
    call MPI_Comm_size(world, size)
    do while (done < steps)
      call step_begins(done, rank)
      part = 0
      do k = done * terms + rank, (done + 1) * terms - 1, size
        part = part + merge(4, -4, mod(k, 2) == 0) / (2d0 * k + 1)
      end do
      call MPI_Allreduce(part, whole, 1, MPI_DOUBLE_PRECISION, MPI_SUM, world) ! left by longjmp when somebody has died
      sums(done + 1) = sums(done) + whole
      done = done + 1
    end do
  end subroutine compute

  ! Back to the last step that all survivors have done.
  subroutine restore(comm) bind(C)
    integer(c_int), value :: comm
    type(MPI_Comm) :: world
    logical :: revoked
    world%MPI_VAL = comm
    call MPIX_Comm_is_revoked(world, revoked)
    if (revoked) call MPI_Abort(MPI_COMM_WORLD, 5)
    call MPI_Allreduce(MPI_IN_PLACE, done, 1, MPI_INTEGER, MPI_MIN, world)
  end subroutine restore

  subroutine finish(comm, survivors) bind(C)
    integer(c_int), value :: comm, survivors
    type(MPI_Comm) :: world
    integer :: rank, size
    world%MPI_VAL = comm
    call MPI_Comm_rank(world, rank)
    call MPI_Comm_size(world, size)
    if (size /= survivors .or. done /= steps .or. abs(sums(steps) - 4 * atan(1d0)) > 1d-6) call MPI_Abort(MPI_COMM_WORLD, 4)
    if (rank == 0) print '(a)', 'verified'
  end subroutine finish
end module computation
