/* MPI_Get_hw_resource_info (MPI-5.0, 9.1.2) before, while and after MPI is initialized: a process that is bound to one processor is
 * restricted to one of everything that the host knows. */
// run: n=1
#define _GNU_SOURCE
#include <sched.h>
#include <string.h>
#include "../check.h"

/* The number of resource types; *restricted: how many of them the process is restricted to one of. */
static int look(int *restricted)
{
  MPI_Info info;
  int n = 0;
  *restricted = 0;
  CHECK(MPI_Get_hw_resource_info(&info) == MPI_SUCCESS);
  MPI_Info_get_nkeys(info, &n);
  for (int i = 0; i < n; i++) {
    char key[MPI_MAX_INFO_KEY + 1], value[16] = "";
    int flag = 0, len = sizeof value;
    MPI_Info_get_nthkey(info, i, key);
    CHECK(strstr(key, "://") != NULL);
    MPI_Info_get_string(info, key, &len, value, &flag);
    CHECK(flag && (strcmp(value, "true") == 0 || strcmp(value, "false") == 0));
    *restricted += strcmp(value, "true") == 0;
  }
  MPI_Info_free(&info);
  return n;
}

int main(int argc, char **argv)
{
  int yes;
  cpu_set_t one, mine;
  CHECK(look(&yes) >= 2 && yes >= 1);
  MPI_Init(&argc, &argv);
  sched_getaffinity(0, sizeof mine, &mine);
  int cpu = 0;
  while (!CPU_ISSET(cpu, &mine)) cpu++;
  CPU_ZERO(&one);
  CPU_SET(cpu, &one);
  int before = look(&yes);
  if (CPU_COUNT(&mine) > 1) CHECK(yes < before); /* not one processor alone */
  CHECK(sched_setaffinity(0, sizeof one, &one) == 0);
  CHECK(look(&yes) >= 2);
  int n = look(&yes);
  CHECK(yes == n);
  MPI_Finalize();
  CHECK(look(&yes) == n && yes == n);
  return check_status();
}
