! MPI_SIZEOF of modules mpi and mpi_f08 (MPI-5.0, 19.1.9; deprecated: storage_size(x)/8 says the same): the size in bytes of a variable of an intrinsic type of numbers,
! scalar or array, without and with an error code. Those of 16 bytes are in module mpi_sizes_quad.
module mpi_sizes
  use, intrinsic :: iso_fortran_env, only: int8, int16, int32, int64, real32, real64
  use mpi_sizes_quad, only: MPI_SIZEOF, PMPI_SIZEOF
  implicit none
  private
  public :: MPI_SIZEOF, PMPI_SIZEOF

  interface MPI_SIZEOF
    module procedure size_i1, size_i2, size_i4, size_i8, size_r4, size_r8, size_c4, size_c8, size_l, size_a
  end interface
  interface PMPI_SIZEOF
    module procedure size_i1, size_i2, size_i4, size_i8, size_r4, size_r8, size_c4, size_c8, size_l, size_a
  end interface

contains

  subroutine size_i1(x, size, ierror)
    integer(int8), dimension(..), intent(in) :: x
    integer, intent(out) :: size
    integer, optional, intent(out) :: ierror
    size = storage_size(x) / 8
    if (present(ierror)) ierror = 0
  end subroutine size_i1

  subroutine size_i2(x, size, ierror)
    integer(int16), dimension(..), intent(in) :: x
    integer, intent(out) :: size
    integer, optional, intent(out) :: ierror
    size = storage_size(x) / 8
    if (present(ierror)) ierror = 0
  end subroutine size_i2

  subroutine size_i4(x, size, ierror)
    integer(int32), dimension(..), intent(in) :: x
    integer, intent(out) :: size
    integer, optional, intent(out) :: ierror
    size = storage_size(x) / 8
    if (present(ierror)) ierror = 0
  end subroutine size_i4

  subroutine size_i8(x, size, ierror)
    integer(int64), dimension(..), intent(in) :: x
    integer, intent(out) :: size
    integer, optional, intent(out) :: ierror
    size = storage_size(x) / 8
    if (present(ierror)) ierror = 0
  end subroutine size_i8

  subroutine size_r4(x, size, ierror)
    real(real32), dimension(..), intent(in) :: x
    integer, intent(out) :: size
    integer, optional, intent(out) :: ierror
    size = storage_size(x) / 8
    if (present(ierror)) ierror = 0
  end subroutine size_r4

  subroutine size_r8(x, size, ierror)
    real(real64), dimension(..), intent(in) :: x
    integer, intent(out) :: size
    integer, optional, intent(out) :: ierror
    size = storage_size(x) / 8
    if (present(ierror)) ierror = 0
  end subroutine size_r8

  subroutine size_c4(x, size, ierror)
    complex(real32), dimension(..), intent(in) :: x
    integer, intent(out) :: size
    integer, optional, intent(out) :: ierror
    size = storage_size(x) / 8
    if (present(ierror)) ierror = 0
  end subroutine size_c4

  subroutine size_c8(x, size, ierror)
    complex(real64), dimension(..), intent(in) :: x
    integer, intent(out) :: size
    integer, optional, intent(out) :: ierror
    size = storage_size(x) / 8
    if (present(ierror)) ierror = 0
  end subroutine size_c8

  subroutine size_l(x, size, ierror)
    logical, dimension(..), intent(in) :: x
    integer, intent(out) :: size
    integer, optional, intent(out) :: ierror
    size = storage_size(x) / 8
    if (present(ierror)) ierror = 0
  end subroutine size_l

  subroutine size_a(x, size, ierror)
    character(len=*), dimension(..), intent(in) :: x
    integer, intent(out) :: size
    integer, optional, intent(out) :: ierror
    size = storage_size(x) / 8
    if (present(ierror)) ierror = 0
  end subroutine size_a

end module mpi_sizes
