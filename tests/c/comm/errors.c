/* Wrong arguments of the functions for communicators: the right class on all processes that can know, and no hang. */
// run: n=1,2,5
#include "../check.h"

int main(int argc, char **argv)
{
  int rank, size;
  MPI_Comm c, dup, inter = MPI_COMM_NULL;
  MPI_Group all, out;
  MPI_Init(&argc, &argv);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  CHECK_CLASS(MPI_Comm_dup(MPI_COMM_NULL, &c), MPI_ERR_COMM);
  CHECK_CLASS(MPI_Comm_size(MPI_COMM_NULL, &size), MPI_ERR_COMM);
  c = MPI_COMM_NULL;
  CHECK_CLASS(MPI_Comm_free(&c), MPI_ERR_COMM);
  c = MPI_COMM_WORLD;
  CHECK_CLASS(MPI_Comm_free(&c), MPI_ERR_COMM);
  CHECK(c == MPI_COMM_WORLD);
  CHECK_CLASS(MPI_Comm_free(NULL), MPI_ERR_ARG);
  CHECK_CLASS(MPI_Comm_remote_size(MPI_COMM_WORLD, &rank), MPI_ERR_COMM);
  CHECK_CLASS(MPI_Comm_remote_group(MPI_COMM_WORLD, &out), MPI_ERR_COMM);
  CHECK_CLASS(MPI_Intercomm_merge(MPI_COMM_WORLD, 0, &c), MPI_ERR_COMM);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  /* One process is wrong, all are told. */
  CHECK_CLASS(MPI_Comm_split(MPI_COMM_WORLD, rank == size - 1 ? -77 : 0, 0, &c), MPI_ERR_ARG);
  CHECK_CLASS(MPI_Comm_split_type(MPI_COMM_WORLD, 12345, 0, MPI_INFO_NULL, &c), MPI_ERR_ARG);
  MPI_Comm_group(MPI_COMM_WORLD, &all);
  CHECK_CLASS(MPI_Comm_create(MPI_COMM_WORLD, MPI_GROUP_NULL, &c), MPI_ERR_GROUP);
  if (size > 1) CHECK_CLASS(MPI_Comm_create(MPI_COMM_SELF, all, &c), MPI_ERR_GROUP);
  CHECK_CLASS(MPI_Comm_create_group(MPI_COMM_WORLD, all, -4, &c), MPI_ERR_TAG);
  CHECK_CLASS(MPI_Intercomm_create(MPI_COMM_WORLD, size, MPI_COMM_WORLD, 0, 0, &inter), MPI_ERR_RANK);
  CHECK_CLASS(MPI_Intercomm_create(MPI_COMM_WORLD, 0, MPI_COMM_WORLD, size + 3, 0, &inter), MPI_ERR_RANK);
  CHECK_CLASS(MPI_Intercomm_create(MPI_COMM_WORLD, 0, MPI_COMM_NULL, 0, 0, &inter), MPI_ERR_COMM);
  /* A freed handle is known as such, also when its slot is in use again. */
  MPI_Comm_dup(MPI_COMM_WORLD, &c);
  MPI_Comm old = c;
  MPI_Comm_free(&c);
  MPI_Comm_dup(MPI_COMM_WORLD, &dup);
  CHECK_CLASS(MPI_Comm_rank(old, &size), MPI_ERR_COMM);
  MPI_Comm_free(&dup);
  MPI_Group_free(&all);
  MPI_Finalize();
  return check_status();
}
