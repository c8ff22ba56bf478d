! A kernel with module mpi: Cannon's product of matrices on a torus of processes, against the product that matmul makes of the whole.
! ranks: 1 4 9
program cannon
  use mpi
  implicit none
  integer, parameter :: n = 48
  real(kind(1d0)), allocatable :: a(:, :), b(:, :), c(:, :)
  real(kind(1d0)) :: whole_a(n, n), whole_b(n, n), whole_c(n, n), wrong, worst
  integer :: ierr, rank, size, torus, side, m, i, j, k, from, to, left, right, up, down, i0, j0, dims(2), coords(2)
  logical :: periods(2)

  call MPI_Init(ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, size, ierr)
  side = nint(sqrt(real(size)))
  m = n / side
  if (side * side /= size .or. m * side /= n) call MPI_Abort(MPI_COMM_WORLD, 3, ierr)
  dims = side
  periods = .true.
  call MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, .false., torus, ierr)
  call MPI_Comm_rank(torus, rank, ierr)
  call MPI_Cart_coords(torus, rank, 2, coords, ierr)
  do j = 1, n
    do i = 1, n
      whole_a(i, j) = mod(i * 5 + j * 3, 7) - 2
      whole_b(i, j) = mod(i * 2 + j * 9, 13) - 4
    end do
  end do
  i0 = coords(1) * m
  j0 = coords(2) * m
  a = whole_a(i0 + 1:i0 + m, j0 + 1:j0 + m)
  b = whole_b(i0 + 1:i0 + m, j0 + 1:j0 + m)
  allocate (c(m, m))
  c = 0
  ! row i of blocks of A turns by i, column j of blocks of B by j
  call MPI_Cart_shift(torus, 1, -coords(1), from, to, ierr)
  call MPI_Sendrecv_replace(a, m * m, MPI_DOUBLE_PRECISION, to, 1, from, 1, torus, MPI_STATUS_IGNORE, ierr)
  call MPI_Cart_shift(torus, 0, -coords(2), from, to, ierr)
  call MPI_Sendrecv_replace(b, m * m, MPI_DOUBLE_PRECISION, to, 2, from, 2, torus, MPI_STATUS_IGNORE, ierr)
  call MPI_Cart_shift(torus, 1, -1, right, left, ierr)
  call MPI_Cart_shift(torus, 0, -1, down, up, ierr)
  do k = 1, side
    c = c + matmul(a, b)
    call MPI_Sendrecv_replace(a, m * m, MPI_DOUBLE_PRECISION, left, 1, right, 1, torus, MPI_STATUS_IGNORE, ierr)
    call MPI_Sendrecv_replace(b, m * m, MPI_DOUBLE_PRECISION, up, 2, down, 2, torus, MPI_STATUS_IGNORE, ierr)
  end do
  whole_c = matmul(whole_a, whole_b)
  wrong = maxval(abs(c - whole_c(i0 + 1:i0 + m, j0 + 1:j0 + m)))
  call MPI_Allreduce(wrong, worst, 1, MPI_DOUBLE_PRECISION, MPI_MAX, torus, ierr)
  if (worst /= 0) call MPI_Abort(MPI_COMM_WORLD, 4, ierr)
  if (rank == 0) print '(a)', 'verified'
  call MPI_Comm_free(torus, ierr)
  call MPI_Finalize(ierr)
end program cannon
