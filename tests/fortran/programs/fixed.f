C     Fortran 77: mpif.h, implicit interfaces, a reduction of the
C     program's own, an attribute in the form of MPI-1, sentinels.
C     ranks: 3
      program fixed
      implicit none
      include 'mpif.h'
      integer ierr, rank, size, total, got, op, i, n, keyval
      integer val, extra
      integer st(MPI_STATUS_SIZE), req(2), sts(MPI_STATUS_SIZE,2)
      integer from(2)
      logical flag
      character*(MPI_MAX_PROCESSOR_NAME) name
      external add, copyit, dropit
      call MPI_INIT(ierr)
      call MPI_COMM_RANK(MPI_COMM_WORLD, rank, ierr)
      call MPI_COMM_SIZE(MPI_COMM_WORLD, size, ierr)
      total = rank + 1
      call MPI_OP_CREATE(add, .TRUE., op, ierr)
      call MPI_ALLREDUCE(MPI_IN_PLACE, total, 1, MPI_INTEGER, op,
     &     MPI_COMM_WORLD, ierr)
      if (total .ne. size*(size+1)/2) stop 1
      call MPI_OP_FREE(op, ierr)
      if (op .ne. MPI_OP_NULL) stop 2
      call MPI_SENDRECV(rank, 1, MPI_INTEGER, mod(rank+1,size), 7,
     &     got, 1, MPI_INTEGER, MPI_ANY_SOURCE, 7, MPI_COMM_WORLD,
     &     st, ierr)
      if (got .ne. mod(rank+size-1,size)) stop 3
      if (st(MPI_SOURCE) .ne. got .or. st(MPI_TAG) .ne. 7) stop 4
      call MPI_GET_COUNT(st, MPI_INTEGER, n, ierr)
      if (n .ne. 1) stop 5
C     Indices of requests count from 1.
      call MPI_IRECV(from(1), 1, MPI_INTEGER, MPI_PROC_NULL, 0,
     &     MPI_COMM_WORLD, req(2), ierr)
      req(1) = MPI_REQUEST_NULL
      call MPI_WAITANY(2, req, i, st, ierr)
      if (i .ne. 2 .or. req(2) .ne. MPI_REQUEST_NULL) stop 6
      call MPI_WAITANY(2, req, i, MPI_STATUS_IGNORE, ierr)
      if (i .ne. MPI_UNDEFINED) stop 7
      call MPI_WAITALL(2, req, MPI_STATUSES_IGNORE, ierr)
      call MPI_WAITALL(2, req, sts, ierr)
      if (sts(MPI_SOURCE,2) .ne. MPI_ANY_SOURCE) stop 8
C     Strings are filled up with blanks.
      name = 'x'
      call MPI_GET_PROCESSOR_NAME(name, n, ierr)
      if (n .lt. 1 .or. len(name) .ne. MPI_MAX_PROCESSOR_NAME) stop 9
      if (name(n:n) .eq. ' ' .or. name(n+1:) .ne. ' ') stop 10
C     An attribute whose copy function adds the extra state.
      extra = 100
      call MPI_KEYVAL_CREATE(copyit, dropit, keyval, extra, ierr)
      val = -5
      call MPI_ATTR_PUT(MPI_COMM_WORLD, keyval, val, ierr)
      call MPI_COMM_DUP(MPI_COMM_WORLD, i, ierr)
      call MPI_ATTR_GET(i, keyval, val, flag, ierr)
      if (.not. flag .or. val .ne. 95) stop 11
      call MPI_COMM_FREE(i, ierr)
      call MPI_ATTR_GET(MPI_COMM_WORLD, MPI_TAG_UB, val, flag, ierr)
      if (.not. flag .or. val .lt. 32767) stop 12
C     Errors come back as codes.
      call MPI_ERRHANDLER_SET(MPI_COMM_WORLD, MPI_ERRORS_RETURN, ierr)
      call MPI_SEND(rank, 1, MPI_INTEGER, size, 0, MPI_COMM_WORLD, ierr)
      call MPI_ERROR_CLASS(ierr, i, n)
      if (i .ne. MPI_ERR_RANK) stop 13
      if (MPI_WTIME() .le. 0d0) stop 14
      call MPI_BARRIER(MPI_COMM_WORLD, ierr)
      if (rank .eq. 0) print *, 'verified'
      call MPI_FINALIZE(ierr)
      end

      subroutine add(a, b, n, t)
      implicit none
      include 'mpif.h'
      integer a(*), b(*), n, t, i
      if (t .ne. MPI_INTEGER) stop 20
      do 10 i = 1, n
        b(i) = b(i) + a(i)
 10   continue
      end

      subroutine copyit(comm, keyval, extra, in, out, flag, ierr)
      implicit none
      integer comm, keyval, extra, in, out, ierr
      logical flag
      out = in + extra
      flag = .true.
      ierr = 0
      end

      subroutine dropit(comm, keyval, val, extra, ierr)
      implicit none
      integer comm, keyval, val, extra, ierr
      ierr = 0
      if (extra .ne. 100) stop 21
      end
