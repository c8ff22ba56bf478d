/* Call-outs in call-outs: a copy function duplicates another communicator, whose copy function duplicates a third; results travel
 * back through all of them; an error of the innermost comes out at the top; a longjmp over all of them leaves nothing behind. */
// run: n=1,2
#include "boundary.h"
#include <setjmp.h>

enum { DEPTH = 4 };
static MPI_Comm level[DEPTH];
static int keys[DEPTH], calls, fail_at = -1, jump_at = -1;
static jmp_buf out;

static int copy(MPI_Comm old, int keyval, void *extra, void *in, void *result, int *flag)
{
  long depth = (long)extra;
  (void)keyval;
  (void)in;
  CHECK(old == level[depth]);
  calls++;
  if (depth == jump_at) longjmp(out, 99);
  if (depth == fail_at) return MPI_ERR_OTHER;
  if (depth + 1 < DEPTH) {
    MPI_Comm dup;
    void *value;
    int found, rc = MPI_Comm_dup(level[depth + 1], &dup);
    if (rc != MPI_SUCCESS) return rc;
    MPI_Comm_get_attr(dup, keys[depth + 1], &value, &found);
    CHECK(found && (long)value == depth + 1 + 1000);
    MPI_Comm_free(&dup);
  }
  *(void **)result = (void *)(depth + 1000);
  *flag = 1;
  return MPI_SUCCESS;
}

int main(int argc, char **argv)
{
  MPI_Comm dup;
  MPI_Init(&argc, &argv);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  for (long i = 0; i < DEPTH; i++) {
    MPI_Comm_dup(MPI_COMM_SELF, &level[i]);
    MPI_Comm_create_keyval(copy, MPI_COMM_NULL_DELETE_FN, &keys[i], (void *)i);
    MPI_Comm_set_attr(level[i], keys[i], (void *)i);
  }
  CHECK(MPI_Comm_dup(level[0], &dup) == MPI_SUCCESS && calls == DEPTH);
  MPI_Comm_free(&dup);
  for (fail_at = 0; fail_at < DEPTH; fail_at++) CHECK(MPI_Comm_dup(level[0], &dup) != MPI_SUCCESS);
  fail_at = -1;
  for (volatile int i = 0; i < 3000; i++) {
    jump_at = i % DEPTH;
    if (setjmp(out) == 0) {
      MPI_Comm_dup(level[0], &dup);
      FAIL("no jump");
    }
  }
  jump_at = -1;
  calls = 0;
  CHECK(MPI_Comm_dup(level[0], &dup) == MPI_SUCCESS && calls == DEPTH);
  MPI_Comm_free(&dup);
  for (int i = 0; i < DEPTH; i++) MPI_Comm_free(&level[i]);
  counters_file("SPX_COUNTERS");
  MPI_Finalize();
  if (counter("continuations") != 0) FAIL("%ld continuations are left", counter("continuations"));
  return 0;
}
