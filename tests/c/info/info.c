/* Info objects (MPI-5.0, chapter 10) through the C interface, before, during and after MPI. */
// run: n=1 env=SPX_TEST=1
// run: n=2 args="a b"
#include "../check.h"
#include <stdlib.h>
#include <string.h>

static void fill(MPI_Info in)
{
  char key[MPI_MAX_INFO_KEY], value[32], small[3] = "??";
  int n, flag, len;
  MPI_Info_set(in, "one", "1");
  MPI_Info_set(in, "two", "22");
  MPI_Info_set(in, "one", "111");
  MPI_Info_get_nkeys(in, &n);
  CHECK(n == 2);
  MPI_Info_get_nthkey(in, 1, key);
  CHECK(strcmp(key, "two") == 0);
  len = sizeof value;
  MPI_Info_get_string(in, "one", &len, value, &flag);
  CHECK(flag && len == 4 && strcmp(value, "111") == 0);
  len = sizeof small;
  MPI_Info_get_string(in, "one", &len, small, &flag);
  CHECK(flag && len == 4 && strcmp(small, "11") == 0);
  len = 0;
  MPI_Info_get_string(in, "one", &len, NULL, &flag);
  CHECK(flag && len == 4);
  MPI_Info_get_valuelen(in, "two", &len, &flag);
  CHECK(flag && len == 2);
  MPI_Info_delete(in, "two");
  MPI_Info_get(in, "two", 10, value, &flag);
  CHECK(!flag);
}

static void create_and_free(void)
{
  MPI_Info in, copy;
  int n;
  MPI_Info_create(&in);
  fill(in);
  MPI_Info_dup(in, &copy);
  MPI_Info_free(&in);
  CHECK(in == MPI_INFO_NULL);
  MPI_Info_get_nkeys(copy, &n);
  CHECK(n == 1);
  MPI_Info_free(&copy);
}

static void wrong(void)
{
  MPI_Info in;
  char key[MPI_MAX_INFO_KEY], *longer = malloc(MPI_MAX_INFO_VAL + 2);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  MPI_Info_create(&in);
  memset(longer, 'x', MPI_MAX_INFO_VAL + 1);
  longer[MPI_MAX_INFO_VAL] = 0;
  CHECK_CLASS(MPI_Info_set(in, "k", longer), MPI_ERR_INFO_VALUE);
  longer[MPI_MAX_INFO_KEY] = 0;
  CHECK_CLASS(MPI_Info_set(in, longer, "v"), MPI_ERR_INFO_KEY);
  CHECK_CLASS(MPI_Info_set(in, "", "v"), MPI_ERR_INFO_KEY);
  CHECK_CLASS(MPI_Info_delete(in, "none"), MPI_ERR_INFO_NOKEY);
  CHECK_CLASS(MPI_Info_get_nthkey(in, 0, key), MPI_ERR_ARG);
  CHECK_CLASS(MPI_Info_set(MPI_INFO_NULL, "k", "v"), MPI_ERR_INFO);
  CHECK_CLASS(MPI_Info_set(MPI_INFO_ENV, "k", "v"), MPI_ERR_INFO);
  MPI_Info_free(&in);
  CHECK_CLASS(MPI_Info_free(&in), MPI_ERR_INFO);
  free(longer);
}

static void environment(int argc, char **argv)
{
  char value[MPI_MAX_INFO_VAL];
  int flag, len = sizeof value, size;
  MPI_Info_get_string(MPI_INFO_ENV, "command", &len, value, &flag);
  CHECK(flag && strcmp(value, argv[0]) == 0);
  len = sizeof value;
  MPI_Info_get_string(MPI_INFO_ENV, "argv", &len, value, &flag);
  CHECK(flag && strcmp(value, argc > 1 ? "a b" : "") == 0);
  len = sizeof value;
  MPI_Info_get_string(MPI_INFO_ENV, "maxprocs", &len, value, &flag);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  CHECK(flag && atoi(value) == size);
  len = sizeof value;
  MPI_Info_get_string(MPI_INFO_ENV, "thread_level", &len, value, &flag);
  CHECK(flag && strcmp(value, "MPI_THREAD_SINGLE") == 0);
}

int main(int argc, char **argv)
{
  create_and_free();
  MPI_Init(NULL, NULL);
  create_and_free();
  wrong();
  environment(argc, argv);
  MPI_Finalize();
  create_and_free();
  return check_status();
}
