! doppler - the third stage, in Fortran: whatever frame comes in goes out as a map of range and velocity.
program stage
  use mpi_f08
  use mpi_f08_ext
  use spectrum
  implicit none
  complex(c_double), allocatable :: cube(:, :)
  real(c_double), allocatable :: power(:, :)
  type(MPI_Status) :: from
  character(8) :: times
  integer :: rank
  integer(8) :: now
  logical :: again

  allocate (cube(samples, pulses), power(samples, pulses))
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPISP_Is_replacement(again)
  call MPISP_Commit()
  call get_environment_variable('RADAR_TIMES', times)
  call system_clock(now)
  if (times /= '') print '(a,i0,1x,i0,1x,i0,1x,i0)', 'here doppler ', rank, getpid(), merge(1, 0, again), now
  flush (6)
  do
    call MPI_Recv(cube, samples*pulses, MPI_DOUBLE_COMPLEX, MPISP_CLUSTER_IN, MPI_ANY_TAG, MPI_COMM_WORLD, from)
    if (from%MPI_SOURCE == MPI_PROC_NULL) exit
    call doppler(cube, power)
    call MPI_Send(power, samples*pulses, MPI_DOUBLE_PRECISION, MPISP_CLUSTER_OUT, from%MPI_TAG, MPI_COMM_WORLD)
    call MPISP_Commit()
  end do
  call MPI_Finalize()
end program
