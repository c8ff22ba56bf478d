! Attributes that one language sets and the other reads (MPI-5.0, 20.3.7), with attributes_c.c; copies and deletions by functions of both.
! ranks: 1
module functions
  use mpi_f08
  implicit none
  integer :: deleted = 0
  integer(MPI_ADDRESS_KIND) :: last = 0
contains
  subroutine twice(oldcomm, comm_keyval, extra_state, attribute_val_in, attribute_val_out, flag, ierror)
    type(MPI_Comm) :: oldcomm
    integer :: comm_keyval, ierror
    integer(MPI_ADDRESS_KIND) :: extra_state, attribute_val_in, attribute_val_out
    logical :: flag
    flag = oldcomm == MPI_COMM_SELF .and. comm_keyval /= MPI_KEYVAL_INVALID
    attribute_val_out = 2 * attribute_val_in + extra_state
    ierror = MPI_SUCCESS
  end subroutine twice

  subroutine drop(comm, comm_keyval, attribute_val, extra_state, ierror)
    type(MPI_Comm) :: comm
    integer :: comm_keyval, ierror
    integer(MPI_ADDRESS_KIND) :: attribute_val, extra_state
    if (extra_state == 5 .and. comm /= MPI_COMM_NULL .and. comm_keyval /= MPI_KEYVAL_INVALID) deleted = deleted + 1
    last = attribute_val
    ierror = MPI_SUCCESS
  end subroutine drop
end module functions

program attributes
  use functions
  use, intrinsic :: iso_c_binding, only: c_intptr_t, c_int
  implicit none
  interface
    integer(c_int) function c_sees(comm, keyval, value) bind(C) ! 1: C gets the address of this value
      import :: c_int, c_intptr_t
      integer(c_int), value :: comm, keyval
      integer(c_intptr_t), value :: value
    end function c_sees
    integer(c_intptr_t) function c_sets(comm, keyval) bind(C) ! the address that C has set
      import :: c_int, c_intptr_t
      integer(c_int), value :: comm, keyval
    end function c_sets
    integer(c_int) function c_keyval() bind(C)
      import :: c_int
    end function c_keyval
  end interface
  integer :: keyval, i, small
  type(MPI_Comm) :: copy
  integer(MPI_ADDRESS_KIND) :: value, address
  integer(MPI_ADDRESS_KIND), parameter :: large = 123456789012_MPI_ADDRESS_KIND
  logical :: flag

  call MPI_Init()
  call MPI_Comm_create_keyval(twice, drop, keyval, 5_MPI_ADDRESS_KIND)
  call MPI_Comm_set_attr(MPI_COMM_SELF, keyval, large)
  call MPI_Comm_get_attr(MPI_COMM_SELF, keyval, value, flag)
  call check(flag .and. value == large, 1)
  call check(c_sees(MPI_COMM_SELF%MPI_VAL, keyval, large) == 1, 2)
  call MPI_Comm_dup(MPI_COMM_SELF, copy)
  call MPI_Comm_get_attr(copy, keyval, value, flag)
  call check(flag .and. value == 2 * large + 5, 3)
  call check(c_sees(copy%MPI_VAL, keyval, 2 * large + 5) == 1, 4)
  do i = 1, 1000 ! each one deletes the one before
    call MPI_Comm_set_attr(copy, keyval, int(i, MPI_ADDRESS_KIND))
  end do
  call check(deleted == 1000 .and. last == 999, 5)
  call MPI_Comm_free(copy)
  call check(deleted == 1001 .and. last == 1000, 6)
  ! C sets, Fortran gets the address; the old form gets its lower half
  address = c_sets(MPI_COMM_SELF%MPI_VAL, keyval)
  call check(deleted == 1002 .and. last == large, 7)
  call MPI_Comm_get_attr(MPI_COMM_SELF, keyval, value, flag)
  call check(flag .and. value == address, 8)
  call MPI_Comm_delete_attr(MPI_COMM_SELF, keyval)
  call check(deleted == 1003 .and. last == address, 9)
  ! a keyval of C with a value of Fortran, in the old form; and one that nobody has set
  keyval = c_keyval()
  call MPI_Attr_put(MPI_COMM_SELF, keyval, -17)
  call check(c_sees(MPI_COMM_SELF%MPI_VAL, keyval, -17_MPI_ADDRESS_KIND) == 1, 10)
  call MPI_Attr_get(MPI_COMM_SELF, keyval, small, flag)
  call check(flag .and. small == -17, 11)
  call MPI_Comm_delete_attr(MPI_COMM_SELF, keyval)
  call MPI_Comm_get_attr(MPI_COMM_SELF, keyval, value, flag)
  call check(.not. flag, 12)
  call MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, value, flag)
  call check(flag .and. value >= 32767, 13)
  call MPI_Finalize()
  print '(a)', 'verified'

contains

  subroutine check(right, number)
    logical, intent(in) :: right
    integer, intent(in) :: number
    if (right) return
    print '(a, i0)', 'wrong at ', number
    flush (6)
    call MPI_Abort(MPI_COMM_WORLD, number)
  end subroutine check
end program attributes
