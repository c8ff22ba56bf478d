C     A kernel with mpif.h: Jacobi's iteration on a grid of processes,
C     with columns and rows of the neighbours (vector datatype), against
C     the same iteration done by one process.
C     ranks: 1 4 9
      program jacobi
      implicit none
      include 'mpif.h'
      integer n, steps
      parameter (n = 36, steps = 60)
      double precision u(0:n+1,0:n+1), v(0:n+1,0:n+1), w(0:n+1,0:n+1)
      double precision start, wrong, worst
      integer ierr, rank, size, grid, row, i, j, k, side, m, i0, j0
      integer dims(2), coords(2), left, right, up, down
      logical periods(2)
      integer st(MPI_STATUS_SIZE)
      external start
      call MPI_INIT(ierr)
      call MPI_COMM_SIZE(MPI_COMM_WORLD, size, ierr)
      dims(1) = 0
      dims(2) = 0
      periods(1) = .FALSE.
      periods(2) = .FALSE.
      call MPI_DIMS_CREATE(size, 2, dims, ierr)
      call MPI_CART_CREATE(MPI_COMM_WORLD, 2, dims, periods, .TRUE.,
     &     grid, ierr)
      call MPI_COMM_RANK(grid, rank, ierr)
      call MPI_CART_COORDS(grid, rank, 2, coords, ierr)
      call MPI_CART_SHIFT(grid, 0, 1, up, down, ierr)
      call MPI_CART_SHIFT(grid, 1, 1, left, right, ierr)
      side = dims(1)
      m = n / side
      if (dims(2) .ne. side .or. m * side .ne. n) then
         call MPI_ABORT(MPI_COMM_WORLD, 3, ierr)
      end if
      i0 = coords(1) * m
      j0 = coords(2) * m
C     a row of m elements in an array of m + 2 rows
      call MPI_TYPE_VECTOR(m, 1, n + 2, MPI_DOUBLE_PRECISION, row, ierr)
      call MPI_TYPE_COMMIT(row, ierr)
      do j = 0, m + 1
         do i = 0, m + 1
            u(i,j) = start(i + i0, j + j0, n)
         end do
      end do
      do k = 1, steps
         call MPI_SENDRECV(u(1,1), m, MPI_DOUBLE_PRECISION, left, 1,
     &        u(1,m+1), m, MPI_DOUBLE_PRECISION, right, 1, grid, st,
     &        ierr)
         call MPI_SENDRECV(u(1,m), m, MPI_DOUBLE_PRECISION, right, 2,
     &        u(1,0), m, MPI_DOUBLE_PRECISION, left, 2, grid, st, ierr)
         call MPI_SENDRECV(u(1,1), 1, row, up, 3, u(m+1,1), 1, row,
     &        down, 3, grid, MPI_STATUS_IGNORE, ierr)
         call MPI_SENDRECV(u(m,1), 1, row, down, 4, u(0,1), 1, row,
     &        up, 4, grid, MPI_STATUS_IGNORE, ierr)
         call sweep(u, v, m, n)
      end do
      do j = 0, n + 1
         do i = 0, n + 1
            w(i,j) = start(i, j, n)
         end do
      end do
      do k = 1, steps
         call sweep(w, v, n, n)
      end do
      wrong = 0
      do j = 1, m
         do i = 1, m
            wrong = max(wrong, abs(u(i,j) - w(i+i0,j+j0)))
         end do
      end do
      call MPI_REDUCE(wrong, worst, 1, MPI_DOUBLE_PRECISION, MPI_MAX, 0,
     &     grid, ierr)
      if (rank .eq. 0) then
         if (worst .ne. 0 .or. w(n/2,n/2) .eq. start(n/2,n/2,n)) then
            print *, 'differs by', worst
            call MPI_ABORT(MPI_COMM_WORLD, 4, ierr)
         end if
         print '(a)', 'verified'
      end if
      call MPI_TYPE_FREE(row, ierr)
      call MPI_COMM_FREE(grid, ierr)
      call MPI_FINALIZE(ierr)
      end

      double precision function start(i, j, n)
      integer i, j, n
      start = mod(7 * i + 3 * j * j, 11)
      if (i .eq. 0 .or. j .eq. 0 .or. i .eq. n + 1 .or. j .eq. n + 1)
     &     start = 1
      end

C     One step on the inner m x m elements.
      subroutine sweep(u, v, m, n)
      integer m, n, i, j
      double precision u(0:n+1,0:n+1), v(0:n+1,0:n+1)
      do j = 1, m
         do i = 1, m
            v(i,j) = 0.25d0 * (u(i-1,j) + u(i+1,j) + u(i,j-1)
     &           + u(i,j+1))
         end do
      end do
      do j = 1, m
         do i = 1, m
            u(i,j) = v(i,j)
         end do
      end do
      end
