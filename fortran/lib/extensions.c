/* Routines of the extensions that are more than a conversion of arguments. Compiled twice, as zz_extensions.c is. */
#include "extensions.h"
#include <ulfm_dyprc.h>
#undef ulfm_dyprc_poll

/* Where a communicator is to be stored when a request completes. */
struct later {
  MPI_Comm made;
  MPI_Fint *to;
};

static void store(void *state)
{
  struct later *l = state;
  *l->to = MPI_Comm_toint(l->made);
}

void F77(mpix_comm_ishrink)(MPI_Fint *comm, MPI_Fint *newcomm, MPI_Fint *request, MPI_Fint *ierror)
{
  OPTIONAL_IERROR;
  struct later *l = malloc(sizeof *l);
  if (!l) {
    *ierror = MPI_ERR_NO_MEM;
    return;
  }
  *l = (struct later){MPI_COMM_NULL, newcomm};
  MPI_Request made = MPI_REQUEST_NULL;
  *ierror = CALL(MPIX_Comm_ishrink)(MPI_Comm_fromint(*comm), &l->made, &made);
  if (*ierror == MPI_SUCCESS) *ierror = MPIX_Request_attach(made, NULL, store, free, l);
  if (*ierror == MPI_SUCCESS)
    *request = MPI_Request_toint(made);
  else
    free(l);
}
SAME_IN_F08(mpix_comm_ishrink)

#ifndef SPX_PROFILE /* these have no P form */

/* Functions, as in C: 1 in a process that was spawned to join, else 0. */
MPI_Fint F77(ulfm_dyprc_merge_child)(MPI_Fint *mworld)
{
  MPI_Comm world = MPI_COMM_NULL;
  int child = ulfm_dyprc_merge_child(&world);
  *mworld = MPI_Comm_toint(world);
  return child;
}
SAME_IN_F08(ulfm_dyprc_merge_child)

/* The library keeps which communicator is that of all processes, and may jump out of this with another one: who has called setjmp in C hands that
 * on to Fortran. An error code. */
MPI_Fint F77(ulfm_dyprc_poll)(MPI_Fint *mworld)
{
  MPI_Comm world = MPI_Comm_fromint(*mworld);
  int err = ulfm_dyprc_poll(&world);
  *mworld = MPI_Comm_toint(world);
  return err;
}
SAME_IN_F08(ulfm_dyprc_poll)

#endif
