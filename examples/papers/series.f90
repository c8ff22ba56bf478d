! series.f90 - Leibniz's series for pi, a part of it in each step, its terms dealt out to the ranks that there are; the control is control.c.
module series
  use mpi_f08
  use, intrinsic :: iso_c_binding, only: c_int, c_double
  implicit none
  integer, parameter :: steps = 20000, terms = 20000
  real(c_double) :: sums(0:steps) = 0 ! sums(s): of the first s steps
  integer(c_int) :: done = 0
  interface
    subroutine step_ends() bind(C)
    end subroutine step_ends
  end interface
contains
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
      call step_ends()
    end do
  end subroutine compute

  ! Back to the last step that all have who were there before; a newcomer knows of none.
  subroutine restore(comm, newcomer) bind(C)
    integer(c_int), value :: comm, newcomer
    type(MPI_Comm) :: world
    world%MPI_VAL = comm
    if (newcomer /= 0) done = steps
    call MPI_Allreduce(MPI_IN_PLACE, done, 1, MPI_INTEGER, MPI_MIN, world)
    call MPI_Bcast(sums, steps + 1, MPI_DOUBLE_PRECISION, 0, world)
  end subroutine restore

  subroutine finish(comm) bind(C)
    integer(c_int), value :: comm
    type(MPI_Comm) :: world
    integer :: rank, size
    world%MPI_VAL = comm
    call MPI_Comm_rank(world, rank)
    call MPI_Comm_size(world, size)
    if (rank == 0) print '(a, i0, a, f9.7)', 'Fortran: ', size, ' processes at the end, pi is ', sums(steps)
  end subroutine finish
end module series
