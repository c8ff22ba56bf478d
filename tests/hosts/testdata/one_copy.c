/* Between hosts, a long multicast is sent once to each of them, however many members it has there: each process counts the bytes that it has sent. With the
 * argument "chain" the master sends them to one host, and that to the next; with "parts" a part to each host, each of which sends its part, and perhaps others, to more hosts. On one host it is not sent at all. Members that receive late, and with too little room, do not change that. */
#include <mpi-ext.h>
#include <stdlib.h>
#include <string.h>
#include "../../c/check.h"

#define MUST(call) CHECK_CLASS(call, MPI_SUCCESS)
#include "streamed.h"
enum { BYTES = 3000000, ROUNDS = 4 };

static int me, size, parts;

static int leads; /* this process gets messages for its host, which is not the master's */

/* The number of hosts beside this one. */
static int other_hosts(void)
{
  int of_master = me == 0, with_master;
  MPI_Comm host;
  int rank, first, hosts;
  MUST(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host));
  MUST(MPI_Comm_rank(host, &rank));
  first = rank == 0;
  MUST(MPI_Allreduce(&of_master, &with_master, 1, MPI_INT, MPI_MAX, host));
  leads = first && !with_master;
  MUST(MPI_Allreduce(&first, &hosts, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
  MUST(MPI_Comm_free(&host));
  return hosts - 1;
}

/* All processes together have sent each message once to each of the other hosts; in parts those that lead have sent some of it. False: one of these was late, as others have its part from the
 * master then. */
static int check_all(unsigned long long before, int hosts)
{
  MUST(MPI_Barrier(MPI_COMM_WORLD)); /* all have received: nothing is still to be passed on */
  unsigned long long mine = streamed() - before, all;
  int sends = !leads || mine > 0, all_send;
  MUST(MPI_Allreduce(&mine, &all, 1, MPI_UNSIGNED_LONG_LONG, MPI_SUM, MPI_COMM_WORLD));
  MUST(MPI_Allreduce(&sends, &all_send, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD));
  if (parts) {
    CHECK(me != 0 || mine >= ROUNDS * BYTES); /* each part at least once */
    CHECK(all >= (unsigned long long)hosts * ROUNDS * BYTES);
    return all_send;
  }
  if (all != (unsigned long long)hosts * ROUNDS * BYTES) fprintf(stderr, "%llu bytes in all, %d hosts\n", all, hosts);
  CHECK(all == (unsigned long long)hosts * ROUNDS * BYTES);
  return 1;
}

static void verify(const char *b, int n, int i)
{
  for (int k = 0; k < n; k += 4099) CHECK(b[k] == (char)(k / 4099 + i));
  CHECK(b[n - 1] == (char)((n - 1) / 4099 + i) || (n - 1) % 4099);
}

/* The messages, once. False: a host was late. */
static int once(char *b, int range[1][3], int hosts, int in_chain)
{
  unsigned long long before = streamed(); /* who passes pieces on may do so as soon as the master begins */
  MUST(MPI_Barrier(MPI_COMM_WORLD));
  if (me == 0) {
    MPIX_Rankset set;
    MPI_Request r[ROUNDS];
    MUST(MPIX_Rankset_range_incl(MPI_COMM_WORLD, 1, range, &set));
    for (int i = 0; i < ROUNDS; i++) {
      for (int k = 0; k < BYTES; k += 4099) b[i * BYTES + k] = (char)(k / 4099 + i);
      MUST(MPIX_Imcast(b + i * BYTES, BYTES, MPI_BYTE, set, 1, MPI_COMM_WORLD, &r[i]));
    }
    MUST(MPI_Waitall(ROUNDS, r, MPI_STATUSES_IGNORE)); /* nobody has to receive for that */
    unsigned long long sent = streamed() - before, of_master = (in_chain ? 1ull : (unsigned)hosts) * ROUNDS * BYTES;
    if (!parts && sent != of_master) fprintf(stderr, "%llu bytes to %d hosts\n", sent, hosts);
    CHECK(parts || sent == of_master); /* parts are perhaps still to be asked for */
    memset(b, 0, (size_t)ROUNDS * BYTES);
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    MUST(MPIX_Rankset_free(&set));
    return check_all(before, hosts);
  }
  MUST(MPI_Barrier(MPI_COMM_WORLD)); /* all is sent, and nothing received yet */
  for (int i = 0; i < ROUNDS; i++) {
    int n = me == 1 && i == 2 ? 5000 : BYTES;
    CHECK_CLASS(MPI_Recv(b, n, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE),
                n < BYTES ? MPI_ERR_TRUNCATE : MPI_SUCCESS);
    verify(b, n, i);
  }
  return check_all(before, hosts);
}

int main(int argc, char **argv)
{
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  char *b = calloc(ROUNDS, BYTES);
  parts = argc > 1 && strcmp(argv[1], "parts") == 0;
  int range[1][3] = {{1, size - 1, 1}}, hosts = other_hosts(), tries = 1;
  while (!once(b, range, hosts, argc > 1 && hosts > 1) && tries < 50) tries++;
  CHECK(tries < 50);
  free(b);
  MPI_Finalize();
  return check_status();
}
