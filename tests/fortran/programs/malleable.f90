! A program whose computation is in Fortran, and whose control is in C (malleable_c.c): a rank dies, then the number of processes is changed by commands
! from outside, up and down. Each time the computation is left by longjmp, and goes on from the last step that all have, with the right answer.
! ranks: 4
module computation
  use mpi_f08
  use, intrinsic :: iso_c_binding, only: c_int, c_double
  implicit none
  integer, parameter :: steps = 400, terms = 5000
  real(c_double) :: sums(0:steps) = 0 ! sums(s): of the first s steps
  integer(c_int) :: done = 0
  interface
    ! After every step. Does not return when the number of processes changes.
    subroutine step_ends(step, rank, size) bind(C)
      import :: c_int
      integer(c_int), value :: step, rank, size
    end subroutine step_ends
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
      part = 0
      do k = done * terms + rank, (done + 1) * terms - 1, size
        part = part + merge(4, -4, mod(k, 2) == 0) / (2d0 * k + 1)
      end do
      call MPI_Allreduce(part, whole, 1, MPI_DOUBLE_PRECISION, MPI_SUM, world)
      sums(done + 1) = sums(done) + whole
      done = done + 1
      call step_ends(done, rank, size)
    end do
  end subroutine compute

  ! Back to the last step that all have who were there before; rank 0 was. Who has come just now knows of none.
  subroutine restore(comm, newcomer) bind(C)
    integer(c_int), value :: comm, newcomer
    type(MPI_Comm) :: world
    world%MPI_VAL = comm
    if (newcomer /= 0) done = steps
    call MPI_Allreduce(MPI_IN_PLACE, done, 1, MPI_INTEGER, MPI_MIN, world)
    call MPI_Bcast(sums, steps + 1, MPI_DOUBLE_PRECISION, 0, world)
  end subroutine restore

  subroutine finish(comm, processes) bind(C)
    integer(c_int), value :: comm, processes
    type(MPI_Comm) :: world
    integer :: rank, size
    world%MPI_VAL = comm
    call MPI_Comm_rank(world, rank)
    call MPI_Comm_size(world, size)
    if (size /= processes .or. done /= steps .or. abs(sums(steps) - 4 * atan(1d0)) > 1d-6) call MPI_Abort(MPI_COMM_WORLD, 4)
    if (rank == 0) print '(a)', 'verified'
  end subroutine finish
end module computation
