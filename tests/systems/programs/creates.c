/* creates RANK STEP: a cluster with standbys that take over transparently makes communicators, of every kind that there is before the first commit. That rank dies at the so manyth step
 * of it (SPX_DIE_AFTER), once; "not reached" when there are not so many. No rank is told: the communicators are what they are without a death. */
#define _GNU_SOURCE
#include <mpi.h>
#include <mpisp.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "../../c/check.h"

static int rank, size;

/* This process ends itself at a step of what follows; 0: it does not. */
static void arm(unsigned steps)
{
  int provided, i, n;
  MPI_T_cvar_handle h;
  MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
  CHECK(MPI_T_cvar_get_index("SPX_DIE_AFTER", &i) == MPI_SUCCESS);
  CHECK(MPI_T_cvar_handle_alloc(i, NULL, &h, &n) == MPI_SUCCESS);
  CHECK(MPI_T_cvar_write(h, &steps) == MPI_SUCCESS);
}

/* All of its members are there, in their order, with messages and with collectives. */
static void holds(MPI_Comm c, int expected)
{
  int n = 0, r = 0, sum = 0, from = -1;
  MPI_Comm_size(c, &n);
  MPI_Comm_rank(c, &r);
  CHECK(n == expected);
  MPI_Sendrecv(&r, 1, MPI_INT, (r + 1) % n, 1, &from, 1, MPI_INT, (r + n - 1) % n, 1, c, MPI_STATUS_IGNORE);
  CHECK(from == (r + n - 1) % n);
  MPI_Allreduce(&r, &sum, 1, MPI_INT, MPI_SUM, c);
  CHECK(sum == n * (n - 1) / 2);
}

int main(int argc, char **argv)
{
  MPI_Comm dup, half, some = MPI_COMM_NULL, few = MPI_COMM_NULL, cart, line, hinted, again, node;
  MPI_Group all, first;
  int zero = 0;
  if (argc < 3) return 2;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  bool victim = rank == atoi(argv[1]) && open("died", O_CREAT | O_EXCL | O_WRONLY, 0600) >= 0;
  if (victim) arm((unsigned)atoi(argv[2]));

  MPI_Comm_dup(MPI_COMM_WORLD, &dup);
  MPI_Bcast(&zero, 1, MPI_INT, 0, MPI_COMM_WORLD);
  MPI_Comm_split(dup, rank % 2, -rank, &half);
  holds(half, (size + 1 - rank % 2) / 2);
  MPI_Comm_split(MPI_COMM_WORLD, rank ? 1 : MPI_UNDEFINED, 0, &some);
  CHECK((some == MPI_COMM_NULL) == (rank == 0));
  MPI_Comm_group(MPI_COMM_WORLD, &all);
  MPI_Group_incl(all, 2, (int[]){1, 0}, &first);
  MPI_Comm_create(dup, first, &few);
  MPI_Cart_create(MPI_COMM_WORLD, 2, (int[]){2, size / 2}, (int[]){0, 1}, 0, &cart);
  MPI_Cart_sub(cart, (int[]){0, 1}, &line);
  MPI_Info hint;
  MPI_Info_create(&hint);
  MPI_Info_set(hint, "mpi_assert_no_any_tag", "true");
  MPI_Comm_dup_with_info(half, hint, &hinted);
  MPI_Info_free(&hint);
  MPI_Comm_dup(cart, &again);
  MPI_Comm_split_type(again, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
  if (victim) arm(0);
  for (int k = 0; k < 2; k++) {
    holds(dup, size);
    holds(half, (size + 1 - rank % 2) / 2);
    if (rank) holds(some, size - 1);
    if (rank < 2) holds(few, 2);
    holds(cart, size);
    holds(line, size / 2);
    holds(hinted, (size + 1 - rank % 2) / 2);
    holds(again, size);
    holds(node, getenv("SPX_TRANSPORTS") ? 1 : size); /* tcp: they share no memory */
    MPI_Barrier(MPI_COMM_WORLD);
    if (k == 0) MPISP_Commit();
  }
  if (victim) printf("not reached\n");
  MPI_Barrier(dup);
  if (rank == 0) printf("done\n");
  MPI_Finalize();
  return check_failures != 0;
}
