/* Classes, codes and strings (MPI-5.0, 10.4 and 10.5), error handlers of communicators and files, and the text of the last error. */
// run: n=1,2
#include "boundary.h"

static int called, called_with;
static MPI_Comm called_on;
static void note(MPI_Comm *comm, int *code, ...)
{
  called++;
  called_with = *code;
  called_on = *comm;
}

static void classes(void)
{
  char text[MPI_MAX_ERROR_STRING];
  int length, class;
  for (int code = 0; code <= MPI_ERR_ABI; code++) {
    CHECK(MPI_Error_class(code, &class) == MPI_SUCCESS && class == code);
    CHECK(MPI_Error_string(code, text, &length) == MPI_SUCCESS && length > 10 && length == (int)strlen(text));
  }
  CHECK(MPI_Error_string(MPI_ERR_RANK, text, &length) == MPI_SUCCESS && strstr(text, "MPI_ERR_RANK"));
}

static void added(void)
{
  char text[MPI_MAX_ERROR_STRING];
  int class, code, back, length, *last, flag;
  CHECK(MPI_Add_error_class(&class) == MPI_SUCCESS && class > MPI_ERR_LASTCODE);
  CHECK(MPI_Add_error_code(class, &code) == MPI_SUCCESS && code > class);
  CHECK(MPI_Error_class(code, &back) == MPI_SUCCESS && back == class);
  CHECK(MPI_Error_string(code, text, &length) == MPI_SUCCESS && length == 0);
  CHECK(MPI_Add_error_string(code, "the fuel is out") == MPI_SUCCESS);
  CHECK(MPI_Error_string(code, text, &length) == MPI_SUCCESS && !strcmp(text, "the fuel is out"));
  CHECK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, &last, &flag) == MPI_SUCCESS && flag && *last == code);
  CHECK(MPI_Remove_error_class(class) == MPI_ERR_ARG); /* it still has a code */
  CHECK(MPI_Remove_error_string(code) == MPI_SUCCESS);
  CHECK(MPI_Remove_error_string(code) == MPI_ERR_ARG);
  CHECK(MPI_Remove_error_code(code) == MPI_SUCCESS);
  CHECK(MPI_Error_class(code, &back) == MPI_ERR_ARG);
  CHECK(MPI_Remove_error_class(class) == MPI_SUCCESS);
  CHECK(MPI_Add_error_string(MPI_ERR_RANK, "mine") == MPI_ERR_ARG);
  CHECK(MPI_Add_error_code(-7, &code) == MPI_ERR_ARG);
}

static void handlers(void)
{
  MPI_Comm comm, dup;
  MPI_Errhandler eh, got;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  CHECK(MPI_Comm_create_errhandler(note, &eh) == MPI_SUCCESS);
  CHECK(MPI_Comm_set_errhandler(comm, eh) == MPI_SUCCESS);
  CHECK(MPI_Comm_get_errhandler(comm, &got) == MPI_SUCCESS && got == eh);
  MPI_Errhandler_free(&got);
  CHECK(got == MPI_ERRHANDLER_NULL);
  got = eh;
  MPI_Errhandler_free(&eh); /* the communicator still has it */
  CHECK(MPI_Errhandler_free(&got) == MPI_ERR_ERRHANDLER);
  CHECK(MPI_Send(NULL, 0, MPI_INT, 9999, 0, comm) == MPI_ERR_RANK);
  CHECK(called == 1 && called_with == MPI_ERR_RANK && called_on == comm);
  CHECK(MPI_Comm_call_errhandler(comm, MPI_ERR_OTHER) == MPI_SUCCESS && called == 2 && called_with == MPI_ERR_OTHER);
  MPI_Comm_dup(comm, &dup); /* inherits the handler */
  CHECK(MPI_Send(NULL, 0, MPI_INT, 9999, 0, dup) == MPI_ERR_RANK && called == 3 && called_on == dup);
  MPI_Comm_free(&dup);
  MPI_Comm_free(&comm);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  CHECK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRHANDLER_NULL) != MPI_SUCCESS);
  MPI_File_get_errhandler(MPI_FILE_NULL, &got);
  CHECK(got == MPI_ERRORS_RETURN);
}

int main(int argc, char **argv)
{
  char text[MPI_MAX_ERROR_STRING];
  int length;
  classes(); /* allowed before MPI_Init */
  MPI_Init(&argc, &argv);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  classes();
  CHECK(MPI_Send(NULL, 0, MPI_INT, 4242, 0, MPI_COMM_WORLD) == MPI_ERR_RANK);
  CHECK(MPI_Error_string(MPI_ERR_RANK, text, &length) == MPI_SUCCESS && strstr(text, "MPI_Send") &&
        strstr(text, "4242"));
  CHECK(MPI_Error_string(MPI_ERR_TAG, text, &length) == MPI_SUCCESS && !strstr(text, "MPI_Send"));
  added();
  handlers();
  MPI_Finalize();
  return 0;
}
