! MPI_SIZEOF of real and complex numbers of 16 bytes (see sizes.f90), for compilers that have them. Others take sizes_noquad.f90.
module mpi_sizes_quad
  use, intrinsic :: iso_fortran_env, only: real128
  implicit none
  private
  public :: MPI_SIZEOF, PMPI_SIZEOF

  interface MPI_SIZEOF
    module procedure size_r16, size_c16
  end interface
  interface PMPI_SIZEOF
    module procedure size_r16, size_c16
  end interface

contains

  subroutine size_r16(x, size, ierror)
    real(real128), dimension(..), intent(in) :: x
    integer, intent(out) :: size
    integer, optional, intent(out) :: ierror
    size = storage_size(x) / 8
    if (present(ierror)) ierror = 0
  end subroutine size_r16

  subroutine size_c16(x, size, ierror)
    complex(real128), dimension(..), intent(in) :: x
    integer, intent(out) :: size
    integer, optional, intent(out) :: ierror
    size = storage_size(x) / 8
    if (present(ierror)) ierror = 0
  end subroutine size_c16

end module mpi_sizes_quad
