/* Making and freeing types keeps nothing; names; attributes go with MPI_Type_dup and are deleted by MPI_Type_free. */
// run: n=1
#include "typemap.h"

static long resident_kb(void)
{
  FILE *f = fopen("/proc/self/statm", "r");
  long total, resident = 0;
  if (!f || fscanf(f, "%ld %ld", &total, &resident) != 2) exit(1);
  fclose(f);
  return resident * 4;
}

/* A few kinds of types, each with types below it and a layout of some size. */
static void make_some(int n)
{
  for (int i = 0; i < n; i++) {
    int d[50];
    for (int k = 0; k < 50; k++) d[k] = k * k;
    MPI_Datatype v, b, s, c;
    MPI_Type_vector(10, 1, 2, MPI_INT, &v);
    MPI_Type_create_indexed_block(50, 1, d, v, &b);
    MPI_Type_dup(b, &s);
    MPI_Type_free(&v);
    MPI_Type_commit(&b);
    MPI_Type_commit(&s);
    int ints[60];
    MPI_Type_get_contents(b, 60, 0, 1, ints, NULL, &c);
    MPI_Type_free(&b);
    MPI_Type_free(&s);
    MPI_Type_free(&c);
  }
}

static int copied, deleted;
static int copy_fn(MPI_Datatype old, int keyval, void *extra, void *in, void *out, int *flag)
{
  (void)old, (void)keyval, (void)extra;
  copied++;
  *(void **)out = in;
  *flag = 1;
  return MPI_SUCCESS;
}
static int delete_fn(MPI_Datatype t, int keyval, void *value, void *extra)
{
  (void)t, (void)keyval, (void)value, (void)extra;
  deleted++;
  return MPI_SUCCESS;
}
static int refuse_fn(MPI_Datatype t, int keyval, void *value, void *extra)
{
  (void)t, (void)keyval, (void)value, (void)extra;
  return MPI_ERR_OTHER;
}

static void attributes(void)
{
  int key, flag, *value, stays;
  MPI_Datatype a, b;
  MPI_Type_create_keyval(copy_fn, delete_fn, &key, NULL);
  MPI_Type_contiguous(2, MPI_INT, &a);
  MPI_Type_set_attr(a, key, &key);
  MPI_Type_dup(a, &b);
  MPI_Type_get_attr(b, key, &value, &flag);
  CHECK(flag && value == &key && copied == 1);
  MPI_Type_free(&a);
  CHECK(deleted == 1);
  MPI_Type_free(&b);
  CHECK(deleted == 2);
  MPI_Type_free_keyval(&key);
  /* a delete function that fails keeps the type */
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, refuse_fn, &stays, NULL);
  MPI_Type_contiguous(2, MPI_INT, &a);
  MPI_Type_set_attr(a, stays, NULL);
  CHECK(MPI_Type_free(&a) != MPI_SUCCESS && a != MPI_DATATYPE_NULL);
  int size;
  CHECK(MPI_Type_size(a, &size) == MPI_SUCCESS && size == 8);
}

static void names(void)
{
  MPI_Datatype t, u;
  char name[MPI_MAX_OBJECT_NAME];
  int len;
  MPI_Type_contiguous(2, MPI_INT, &t);
  MPI_Type_get_name(t, name, &len);
  CHECK(len == 0 && name[0] == 0);
  MPI_Type_set_name(t, "two ints");
  MPI_Type_dup(t, &u);
  MPI_Type_get_name(t, name, &len);
  CHECK(len == 8 && strcmp(name, "two ints") == 0);
  MPI_Type_get_name(u, name, &len);
  CHECK(len == 0);
  MPI_Type_set_name(MPI_CHAR, "letter");
  MPI_Type_get_name(MPI_CHAR, name, &len);
  CHECK(len == 6 && strcmp(name, "letter") == 0);
  MPI_Type_free(&t);
  MPI_Type_free(&u);
}

int main(int argc, char **argv)
{
  MPI_Init(&argc, &argv);
  names();
  attributes();
  make_some(3000); /* the Go heap finds its size */
  long before = resident_kb();
  make_some(12000);
  long grown = resident_kb() - before;
  if (grown > 8000) {
    fprintf(stderr, "12000 rounds of making and freeing types took %ld KB\n", grown);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Finalize();
  return 0;
}
