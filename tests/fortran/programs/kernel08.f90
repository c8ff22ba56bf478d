! A kernel with module mpi_f08: the game of life on a torus of processes. Edges are sent and received as array sections, corners too, all of them at once,
! without waiting; against the same game of one process.
! ranks: 1 4 9
program life
  use mpi_f08
  implicit none
  integer, parameter :: n = 48, steps = 40
  integer, allocatable, asynchronous :: u(:, :)
  integer :: whole(0:n + 1, 0:n + 1), rank, size, side, m, i, j, k, i0, j0, coords(2), wrong, alive
  type(MPI_Comm) :: torus
  type(MPI_Request) :: requests(16)
  type(MPI_Status) :: statuses(16)

  call MPI_Init()
  call MPI_Comm_size(MPI_COMM_WORLD, size)
  side = nint(sqrt(real(size)))
  m = n / side
  if (side * side /= size .or. m * side /= n) call MPI_Abort(MPI_COMM_WORLD, 3)
  call MPI_Cart_create(MPI_COMM_WORLD, 2, [side, side], [.true., .true.], .false., torus)
  call MPI_Comm_rank(torus, rank)
  call MPI_Cart_coords(torus, rank, 2, coords)
  i0 = coords(1) * m
  j0 = coords(2) * m
  whole(1:n, 1:n) = reshape([((merge(1, 0, mod(i * i + 7 * j + i * j, 5) < 2), i=1, n), j=1, n)], [n, n])
  allocate (u(0:m + 1, 0:m + 1))
  u = 0
  u(1:m, 1:m) = whole(i0 + 1:i0 + m, j0 + 1:j0 + m)
  do k = 1, steps
    call exchange()
    u(1:m, 1:m) = next(u)
    whole(0, 1:n) = whole(n, 1:n)
    whole(n + 1, 1:n) = whole(1, 1:n)
    whole(:, 0) = whole(:, n)
    whole(:, n + 1) = whole(:, 1)
    whole(1:n, 1:n) = next(whole)
  end do
  wrong = count(u(1:m, 1:m) /= whole(i0 + 1:i0 + m, j0 + 1:j0 + m))
  alive = sum(u(1:m, 1:m))
  call MPI_Allreduce(MPI_IN_PLACE, wrong, 1, MPI_INTEGER, MPI_SUM, torus)
  call MPI_Allreduce(MPI_IN_PLACE, alive, 1, MPI_INTEGER, MPI_SUM, torus)
  if (wrong /= 0 .or. alive == 0 .or. alive /= sum(whole(1:n, 1:n))) call MPI_Abort(MPI_COMM_WORLD, 4)
  if (rank == 0) print '(a)', 'verified'
  call MPI_Comm_free(torus)
  call MPI_Finalize()

contains

  ! The edge of the neighbour at (di, dj) becomes the border on that side; the tag says in which direction a message goes.
  subroutine exchange()
    integer :: di, dj, at, other
    at = 0
    do dj = -1, 1
      do di = -1, 1
        if (di == 0 .and. dj == 0) cycle
        call MPI_Cart_rank(torus, [coords(1) + di, coords(2) + dj], other)
        call MPI_Irecv(u(first(di, 0):last(di, 0), first(dj, 0):last(dj, 0)), merge(m, 1, di == 0) * merge(m, 1, dj == 0), &
          MPI_INTEGER, other, tag(-di, -dj), torus, requests(at + 1))
        call MPI_Isend(u(first(di, 1):last(di, 1), first(dj, 1):last(dj, 1)), merge(m, 1, di == 0) * merge(m, 1, dj == 0), &
          MPI_INTEGER, other, tag(di, dj), torus, requests(at + 2))
        at = at + 2
      end do
    end do
    call MPI_Waitall(at, requests, statuses)
  end subroutine exchange

  integer function tag(di, dj)
    integer, intent(in) :: di, dj
    tag = (di + 1) + 3 * (dj + 1)
  end function tag

  ! Where the elements on a side begin and end; inner: 1 for those of this process, 0 for its border.
  integer function first(d, inner)
    integer, intent(in) :: d, inner
    first = merge(1, merge(inner, m + 1 - inner, d < 0), d == 0)
  end function first

  integer function last(d, inner)
    integer, intent(in) :: d, inner
    last = merge(m, merge(inner, m + 1 - inner, d < 0), d == 0)
  end function last

  function next(u) result(v)
    integer, intent(in) :: u(0:, 0:)
    integer :: v(ubound(u, 1) - 1, ubound(u, 2) - 1), i, j, neighbours
    do j = 1, ubound(v, 2)
      do i = 1, ubound(v, 1)
        neighbours = sum(u(i - 1:i + 1, j - 1:j + 1)) - u(i, j)
        v(i, j) = merge(1, 0, neighbours == 3 .or. (neighbours == 2 .and. u(i, j) == 1))
      end do
    end do
  end function next
end program life
