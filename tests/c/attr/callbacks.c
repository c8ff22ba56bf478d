/* Attributes (MPI-5.0, 7.7): copy and delete functions, their order and their errors, MPI calls inside them, and longjmp out of
 * them. */
// run: n=1,2 timeout=40
// run: n=1 args=finalize stdout~^deleted.3.2.1$
#include "../check.h"
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

static int deleted, copied, fail_copy, fail_delete, jump;
static char order[64];
static jmp_buf out;

static int copy(MPI_Comm c, int keyval, void *extra, void *in, void *outp, int *flag)
{
  MPI_Comm inner;
  (void)keyval;
  copied++;
  if (jump) longjmp(out, 1);
  CHECK(strcmp(extra, "extra") == 0);
  if (fail_copy) return MPI_ERR_OTHER;
  MPI_Comm_dup(MPI_COMM_SELF, &inner); /* MPI may be called here */
  MPI_Comm_free(&inner);
  CHECK(c != MPI_COMM_NULL);
  *(void **)outp = (char *)in + 1;
  *flag = (long)in != 99;
  return MPI_SUCCESS;
}

static int delete_it(MPI_Comm c, int keyval, void *value, void *extra)
{
  (void)c;
  (void)keyval;
  (void)extra;
  if (fail_delete) return MPI_ERR_INTERN;
  deleted++;
  snprintf(order + strlen(order), sizeof order - strlen(order), ".%ld", (long)value);
  return MPI_SUCCESS;
}

static long value_of(MPI_Comm c, int keyval)
{
  void *v = NULL;
  int flag = 0;
  MPI_Comm_get_attr(c, keyval, &v, &flag);
  return flag ? (long)v : -1;
}

static void life(int keyval)
{
  MPI_Comm a, b;
  MPI_Comm_dup(MPI_COMM_WORLD, &a);
  CHECK(value_of(a, keyval) == -1);
  MPI_Comm_set_attr(a, keyval, (void *)5);
  MPI_Comm_set_attr(a, keyval, (void *)6);
  CHECK(deleted == 1 && value_of(a, keyval) == 6);
  MPI_Comm_dup(a, &b);
  CHECK(copied == 1 && value_of(b, keyval) == 7);
  MPI_Comm_free(&b);
  CHECK(deleted == 2);
  MPI_Comm_set_attr(a, keyval, (void *)99);
  MPI_Comm_dup(a, &b);
  CHECK(value_of(b, keyval) == -1); /* flag 0: not copied */
  MPI_Comm_delete_attr(a, keyval);
  CHECK(value_of(a, keyval) == -1 && deleted == 4);
  MPI_Comm_free(&b);
  MPI_Comm_free(&a);
  CHECK(deleted == 4);
}

static void failures(int keyval)
{
  MPI_Comm a, b;
  MPI_Comm_dup(MPI_COMM_WORLD, &a);
  MPI_Comm_set_errhandler(a, MPI_ERRORS_RETURN);
  MPI_Comm_set_attr(a, keyval, (void *)1);
  fail_copy = 1;
  CHECK_CLASS(MPI_Comm_dup(a, &b), MPI_ERR_OTHER);
  CHECK(b == MPI_COMM_NULL);
  fail_copy = 0;
  fail_delete = 1;
  CHECK_CLASS(MPI_Comm_free(&a), MPI_ERR_INTERN);
  CHECK(a != MPI_COMM_NULL && value_of(a, keyval) == 1);
  fail_delete = 0;
  MPI_Comm_free(&a);
  CHECK(a == MPI_COMM_NULL);
}

/* The attributes of a communicator that is freed go in the reverse of their order, as those of MPI_COMM_SELF must. */
static void last_first(int keyval)
{
  MPI_Comm a;
  int other;
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, delete_it, &other, NULL);
  MPI_Comm_dup(MPI_COMM_SELF, &a);
  MPI_Comm_set_attr(a, keyval, (void *)1);
  MPI_Comm_set_attr(a, other, (void *)2);
  MPI_Comm_free_keyval(&other);
  CHECK(other == MPI_KEYVAL_INVALID);
  order[0] = 0;
  MPI_Comm_free(&a);
  CHECK(strcmp(order, ".2.1") == 0);
}

static void jumps(int keyval)
{
  MPI_Comm a, b;
  MPI_Comm_dup(MPI_COMM_SELF, &a);
  MPI_Comm_set_attr(a, keyval, (void *)1);
  jump = 1;
  for (volatile int k = 0; k < 2000; k++)
    if (!setjmp(out)) {
      MPI_Comm_dup(a, &b);
      CHECK(!"MPI_Comm_dup came back");
    }
  jump = 0;
  MPI_Comm_dup(a, &b); /* all still works */
  CHECK(value_of(b, keyval) == 2);
  MPI_Comm_free(&a);
  MPI_Comm_free(&b);
}

static void types(void)
{
  MPI_Datatype t, u;
  int keyval, flag;
  void *v;
  MPI_Type_create_keyval(MPI_TYPE_DUP_FN, MPI_TYPE_NULL_DELETE_FN, &keyval, NULL);
  MPI_Type_contiguous(3, MPI_INT, &t);
  MPI_Type_set_attr(t, keyval, (void *)8);
  MPI_Type_dup(t, &u);
  MPI_Type_get_attr(u, keyval, &v, &flag);
  CHECK(flag && (long)v == 8);
  MPI_Type_set_attr(MPI_INT, keyval, (void *)9);
  MPI_Type_get_attr(MPI_INT, keyval, &v, &flag);
  CHECK(flag && (long)v == 9);
  MPI_Type_delete_attr(MPI_INT, keyval);
  MPI_Type_free(&t);
  MPI_Type_free(&u);
  CHECK_CLASS(MPI_Comm_set_attr(MPI_COMM_SELF, keyval, NULL), MPI_ERR_KEYVAL);
  MPI_Type_free_keyval(&keyval);
}

static void predefined(void)
{
  int *v, flag;
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &v, &flag);
  CHECK(flag && *v >= 32767);
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_WTIME_IS_GLOBAL, &v, &flag);
  CHECK(flag && (*v == 0 || *v == 1));
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, &v, &flag);
  int class, before = *v;
  CHECK(flag && before >= MPI_ERR_LASTCODE);
  MPI_Add_error_class(&class);
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, &v, &flag);
  CHECK(*v == class && class > before);
  CHECK_CLASS(MPI_Comm_set_attr(MPI_COMM_SELF, MPI_TAG_UB, NULL), MPI_ERR_KEYVAL);
  CHECK_CLASS(MPI_Comm_delete_attr(MPI_COMM_SELF, MPI_TAG_UB), MPI_ERR_KEYVAL);
  CHECK_CLASS(MPI_Comm_get_attr(MPI_COMM_SELF, MPI_KEYVAL_INVALID, &v, &flag), MPI_ERR_KEYVAL);
}

static void at_finalize(void)
{
  int k[3];
  for (long i = 0; i < 3; i++) {
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, delete_it, &k[i], NULL);
    MPI_Comm_set_attr(MPI_COMM_SELF, k[i], (void *)(i + 1));
  }
}

int main(int argc, char **argv)
{
  int keyval;
  MPI_Init(&argc, &argv);
  if (argc > 1) {
    at_finalize();
    MPI_Finalize();
    printf("deleted%s\n", order);
    return check_status();
  }
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  MPI_Comm_create_keyval(copy, delete_it, &keyval, "extra");
  life(keyval);
  failures(keyval);
  last_first(keyval);
  jumps(keyval);
  types();
  predefined();
  MPI_Comm_free_keyval(&keyval);
  MPI_Finalize();
  return check_status();
}
