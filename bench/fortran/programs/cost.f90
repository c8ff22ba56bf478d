! What a call costs in C, with module mpi and with module mpi_f08: nanoseconds, the best of several rounds. Each line: name, calls of MPI in it, the three times.
program cost
  use mpi_f08
  use iso_c_binding
  implicit none
  interface
    integer(c_int64_t) function now_ns() bind(C)
      import
    end function
    subroutine c_rank(n) bind(C)
      import
      integer(c_int), value :: n
    end subroutine
    subroutine c_null(n) bind(C)
      import
      integer(c_int), value :: n
    end subroutine
    subroutine c_self(n) bind(C)
      import
      integer(c_int), value :: n
    end subroutine
  end interface
  integer, parameter :: n = 100000, rounds = 40
  real(8) :: best(9)
  integer(c_int64_t) :: t
  integer :: k
  external :: mpi_module_rank, mpi_module_null, mpi_module_self, f08_module_rank, f08_module_null, f08_module_self
  call MPI_Init()
  best = 1d9
  do k = 1, rounds
    t = now_ns(); call c_rank(n); best(1) = min(best(1), real(now_ns() - t, 8) / n)
    t = now_ns(); call mpi_module_rank(n); best(2) = min(best(2), real(now_ns() - t, 8) / n)
    t = now_ns(); call f08_module_rank(n); best(3) = min(best(3), real(now_ns() - t, 8) / n)
    t = now_ns(); call c_null(n); best(4) = min(best(4), real(now_ns() - t, 8) / n)
    t = now_ns(); call mpi_module_null(n); best(5) = min(best(5), real(now_ns() - t, 8) / n)
    t = now_ns(); call f08_module_null(n); best(6) = min(best(6), real(now_ns() - t, 8) / n)
    t = now_ns(); call c_self(n); best(7) = min(best(7), real(now_ns() - t, 8) / n)
    t = now_ns(); call mpi_module_self(n); best(8) = min(best(8), real(now_ns() - t, 8) / n)
    t = now_ns(); call f08_module_self(n); best(9) = min(best(9), real(now_ns() - t, 8) / n)
  end do
  print '(a, 3f9.1)', 'MPI_Comm_rank;1;', best(1:3)
  print '(a, 3f9.1)', 'MPI_Send to MPI_PROC_NULL;1;', best(4:6)
  print '(a, 3f9.1)', 'MPI_Irecv, MPI_Send, MPI_Wait to itself, 64 bytes;3;', best(7:9)
  call MPI_Finalize()
end program

subroutine f08_module_rank(n)
  use mpi_f08
  implicit none
  integer :: n, i, r
  do i = 1, n
    call MPI_Comm_rank(MPI_COMM_WORLD, r)
  end do
end subroutine
subroutine f08_module_null(n)
  use mpi_f08
  implicit none
  integer :: n, i
  real(8) :: x(8)
  x = 1
  do i = 1, n
    call MPI_Send(x, 8, MPI_DOUBLE_PRECISION, MPI_PROC_NULL, 1, MPI_COMM_SELF)
  end do
end subroutine
subroutine f08_module_self(n)
  use mpi_f08
  implicit none
  integer :: n, i
  type(MPI_Request) :: q
  real(8), asynchronous :: x(8), y(8)
  x = 1
  do i = 1, n
    call MPI_Irecv(y, 8, MPI_DOUBLE_PRECISION, 0, 1, MPI_COMM_SELF, q)
    call MPI_Send(x, 8, MPI_DOUBLE_PRECISION, 0, 1, MPI_COMM_SELF)
    call MPI_Wait(q, MPI_STATUS_IGNORE)
  end do
end subroutine
