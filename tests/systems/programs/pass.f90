! A cluster in Fortran: what comes in goes out again with one added, until nothing comes any more.
program pass
  use mpi_f08
  use mpi_f08_ext
  implicit none
  integer, parameter :: longest = 200000
  integer, allocatable :: buf(:)
  integer :: n, rank, length, cluster, origin, worlds
  type(MPI_Status) :: st

  allocate (buf(longest))
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, n)
  call MPISP_World_count(worlds)
  if (worlds /= 1 .or. rank < 0 .or. rank >= n) error stop 'an ordinary process has one world, and a rank'
  do
    call MPI_Recv(buf, longest, MPI_INTEGER, MPISP_CLUSTER_IN, MPI_ANY_TAG, MPI_COMM_WORLD, st)
    if (st%MPI_SOURCE == MPI_PROC_NULL) exit
    call MPI_Get_count(st, MPI_INTEGER, length)
    call MPISP_Status_get_cluster(st, cluster)
    call MPISP_Status_get_rank(st, origin)
    if (st%MPI_SOURCE /= MPISP_CLUSTER_IN .or. cluster /= 0 .or. origin < 0) error stop 'where has it come from?'
    buf(1:length) = buf(1:length) + 1
    call MPI_Send(buf, length, MPI_INTEGER, MPISP_CLUSTER_OUT, st%MPI_TAG, MPI_COMM_WORLD)
  end do
  call MPI_Barrier(MPI_COMM_WORLD)
  call MPI_Finalize()
end program pass
