/* badargs.h - the hand-written part of the program that calls every function with one wrong argument after another:
 * badargs_test.go adds run(), with one TRY a call. */
#include <mpi.h>
#include <mpi-ext.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <stdint.h>
#include <signal.h>

static char room[1 << 16];
static int failed, tried;
static const char *now;
static void dummy(void) {}

static void late(int sig)
{
  (void)sig;
  (void)!write(1, "hangs: ", 7);
  (void)!write(1, now, strlen(now));
  (void)!write(1, "\n", 1);
  _exit(1);
}

static int expect(const char *call, int code, int n, const int *classes)
{
  int class = -1;
  tried++;
  MPI_Error_class(code, &class);
  for (int i = 0; i < n; i++)
    if (code != MPI_SUCCESS && class == classes[i]) return 1;
  char text[MPI_MAX_ERROR_STRING];
  int len;
  MPI_Error_string(code, text, &len);
  printf("%s: %s\n", call, text);
  failed++;
  return 0;
}
#define TRY(call, ...)                                                                                                 \
  do {                                                                                                                 \
    now = #call;                                                                                                       \
    static const int c[] = {__VA_ARGS__};                                                                              \
    expect(#call, call, sizeof c / sizeof *c, c);                                                                      \
  } while (0)

/* The variables that the calls name. */
#define PREPARE                                                                                                        \
  MPI_Comm freed_comm, keep_comm;                                                                                      \
  MPI_Group group, freed_group;                                                                                        \
  MPI_Datatype freed_type, uncommitted, types[4] = {MPI_INT, MPI_INT, MPI_INT, MPI_INT};                               \
  MPI_Op freed_op;                                                                                                     \
  MPI_Info info, freed_info;                                                                                           \
  MPI_Request requests[4] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL};                  \
  MPI_Comm_dup(MPI_COMM_SELF, &keep_comm);                                                                             \
  freed_comm = keep_comm;                                                                                              \
  MPI_Comm_free(&keep_comm);                                                                                           \
  MPI_Comm_group(MPI_COMM_SELF, &group);                                                                               \
  MPI_Comm_group(MPI_COMM_SELF, &freed_group);                                                                         \
  MPI_Group gone = freed_group;                                                                                        \
  MPI_Group_incl(group, 1, (int[]){0}, &gone);                                                                         \
  freed_group = gone;                                                                                                  \
  MPI_Group_free(&gone);                                                                                               \
  MPI_Type_contiguous(3, MPI_INT, &uncommitted);                                                                       \
  MPI_Type_contiguous(2, MPI_INT, &freed_type);                                                                        \
  MPI_Datatype t = freed_type;                                                                                         \
  MPI_Type_free(&t);                                                                                                   \
  MPI_Op_create((MPI_User_function *)(uintptr_t)dummy, 1, &freed_op);                                                  \
  MPI_Op o = freed_op;                                                                                                 \
  MPI_Op_free(&o);                                                                                                     \
  MPI_Info_create(&info);                                                                                              \
  MPI_Info_create(&freed_info);                                                                                        \
  MPI_Info i = freed_info;                                                                                             \
  MPI_Info_free(&i);

static void run(void);
int main(int argc, char **argv)
{
  MPI_Init(&argc, &argv);
  signal(SIGALRM, late);
  alarm(60);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  for (int i = 0; i < 64; i++) ((int *)room)[i] = 1; /* arrays of counts */
  run();
  printf("%d calls, %d wrong\n", tried, failed);
  MPI_Finalize();
  return failed != 0;
}
