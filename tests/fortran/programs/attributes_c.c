/* What attributes.f90 asks of C. */
#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

int c_sees(int comm, int keyval, intptr_t value)
{
  void *attribute = NULL;
  int found = 0;
  MPI_Comm_get_attr(MPI_Comm_fromint(comm), keyval, &attribute, &found);
  return found && *(MPI_Aint *)attribute == value && *(int *)attribute == (int)value;
}

intptr_t c_sets(int comm, int keyval)
{
  static int mine;
  MPI_Comm_set_attr(MPI_Comm_fromint(comm), keyval, &mine);
  return (intptr_t)&mine;
}

int c_keyval(void)
{
  int keyval = MPI_KEYVAL_INVALID;
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &keyval, NULL);
  return keyval;
}
