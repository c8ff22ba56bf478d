/* Leaves one object of each kind at MPI_Finalize, made by a call on a line of its own. What is made and freed, also by the attributes of MPI_COMM_SELF in
 * MPI_Finalize, is not left; nor is what MPI makes for itself. */
#include <mpi.h>
#include <stddef.h>

static int freed_late(MPI_Comm c, int key, void *value, void *extra)
{
  (void)c, (void)key, (void)extra;
  return MPI_Info_free(value);
}

static void no_op(void *in, void *out, int *n, MPI_Datatype *t) { (void)in, (void)out, (void)n, (void)t; }

int main(int argc, char **argv)
{
  static MPI_Info late;
  MPI_Comm_errhandler_function *handle = (MPI_Comm_errhandler_function *)(void (*)(void))no_op;
  MPI_Comm_copy_attr_function *copy = MPI_COMM_NULL_COPY_FN;
  MPI_Comm_delete_attr_function *delete = MPI_COMM_NULL_DELETE_FN;
  MPI_Group group, windows;
  MPI_Comm dup, split, inter;
  MPI_Win win;
  MPI_File file;
  MPI_Op op;
  MPI_Datatype type, f90;
  MPI_Info info;
  MPI_Errhandler handler, predefined;
  MPI_Session session;
  MPI_Request receive, persistent, barrier;
  MPI_Message message;
  int rank, x = 0, key, freed;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Info_create(&late);
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, freed_late, &freed, NULL);
  MPI_Comm_set_attr(MPI_COMM_SELF, freed, &late);
  MPI_Comm_free_keyval(&freed);
  MPI_Type_create_f90_real(6, 20, &f90);
  MPI_Comm_get_errhandler(MPI_COMM_WORLD, &predefined);
  for (int i = 0; i < 3; i++) MPI_Comm_dup(MPI_COMM_WORLD, &dup);                     /* here: 3 MPI_Comm_dup */
  MPI_Comm_split(MPI_COMM_WORLD, rank, 0, &split);                                    /* here: 1 MPI_Comm_split */
  MPI_Intercomm_create(split, 0, MPI_COMM_WORLD, !rank, 5, &inter);                   /* here: 1 MPI_Intercomm_create */
  MPI_Comm_group(MPI_COMM_WORLD, &group);                                             /* here: 1 MPI_Comm_group */
  MPI_Win_create(&x, sizeof x, 1, MPI_INFO_NULL, dup, &win);                          /* here: 1 MPI_Win_create */
  MPI_Win_get_group(win, &windows);                                                   /* here: 1 MPI_Win_get_group */
  MPI_File_open(dup, argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file); /* here: 1 MPI_File_open */
  MPI_Type_contiguous(3, MPI_INT, &type);                                             /* here: 1 MPI_Type_contiguous */
  MPI_Info_create(&info);                                                             /* here: 1 MPI_Info_create */
  MPI_Op_create(no_op, 1, &op);                                                       /* here: 1 MPI_Op_create */
  MPI_Comm_create_errhandler(handle, &handler);                    /* here: 1 MPI_Comm_create_errhandler */
  MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session);    /* here: 1 MPI_Session_init */
  MPI_Comm_create_keyval(copy, delete, &key, NULL);                /* here: 1 MPI_Comm_create_keyval */
  MPI_Send_init(&x, 1, MPI_INT, 0, 0, MPI_COMM_SELF, &persistent); /* here: 1 MPI_Send_init */
  MPI_Irecv(&x, 1, MPI_INT, 0, 0, MPI_COMM_SELF, &receive);        /* here: 1 MPI_Irecv */
  MPI_Ibarrier(MPI_COMM_SELF, &barrier);                           /* here: 1 MPI_Ibarrier */
  MPI_Send(&x, 1, MPI_INT, !rank, 7, MPI_COMM_WORLD);
  MPI_Mprobe(!rank, 7, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE); /* here: 1 MPI_Mprobe */
  MPI_Finalize();
  return 0;
}
