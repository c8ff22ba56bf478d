/* An error handler, and the functions of an attribute, leave MPI by longjmp, again and again in one process: nothing grows, and
 * MPI still works. */
// run: n=1,2 args="10000" timeout=60
// run: n=1 args="200000" args.few="40000" timeout=60
// run: n=1 args="2000000" timeout=120 full=1
#include "boundary.h"
#include <setjmp.h>

static jmp_buf out;
static int stay;
static void leave(MPI_Comm *comm, int *code, ...)
{
  (void)comm;
  longjmp(out, *code);
}

static int leave_delete(MPI_Comm comm, int keyval, void *value, void *extra)
{
  (void)comm;
  (void)keyval;
  (void)extra;
  (void)value;
  if (!stay) longjmp(out, 4711);
  return MPI_SUCCESS;
}

static void jumps(MPI_Comm comm, MPI_Comm keyed, int keyval, int n)
{
  for (volatile int i = 0; i < n; i++) {
    int why = setjmp(out);
    if (why == 0) {
      if (i % 2)
        MPI_Send(NULL, 0, MPI_INT, 1 << 20, 0, comm); /* raised in C */
      else
        MPI_Comm_delete_attr(keyed, keyval); /* a call-out from Go */
      FAIL("jump %d did not happen", i);
    }
    if (why != (i % 2 ? MPI_ERR_RANK : 4711)) FAIL("jump %d with %d", i, why);
  }
}

int main(int argc, char **argv)
{
  int n = argc > 1 ? atoi(argv[1]) : 10000, keyval;
  MPI_Comm comm;
  MPI_Errhandler eh;
  MPI_Init(&argc, &argv);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_create_errhandler(leave, &eh);
  MPI_Comm_set_errhandler(comm, eh);
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, leave_delete, &keyval, NULL);
  MPI_Comm_set_attr(MPI_COMM_SELF, keyval, &keyval);
  jumps(comm, MPI_COMM_SELF, keyval, 60000); /* what is made once is made, and Go's heap has its size */
  long rss = status_kb("VmRSS"), threads = status_kb("Threads"), files = count_files();
  jumps(comm, MPI_COMM_SELF, keyval, n);
  long grown = status_kb("VmRSS") - rss;
  if (grown > 1024) FAIL("resident memory grew by %ld KB in %d jumps", grown, n);
  if (status_kb("Threads") > threads + 2) FAIL("%ld threads, before %ld", status_kb("Threads"), threads);
  if (count_files() != files) FAIL("%ld descriptors, before %ld", count_files(), files);
  int one = 1, sum = 0, size;
  MPI_Comm_size(comm, &size);
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
  if (sum != size) FAIL("allreduce after the jumps gives %d", sum);
  stay = 1;
  MPI_Comm_free_keyval(&keyval);
  MPI_Errhandler_free(&eh);
  MPI_Comm_free(&comm);
  counters_file("SPX_COUNTERS");
  MPI_Finalize();
  long conts = counter("continuations"), goroutines = counter("goroutines");
  if (conts > 1) FAIL("%ld continuations are left", conts);
  if (goroutines > 12) FAIL("%ld goroutines are left", goroutines);
  return 0;
}
