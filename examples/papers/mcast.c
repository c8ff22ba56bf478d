/* mcast.c - multicasts to sets of ranks (docs/papers.md, S2.1 to S2.8). The last rank is the master; the others receive from whomever, by the tag.
 *
 *     spxrun -n 17 ./mcast set|free|ack|figures BYTES MEMBERS */
#include <mpi-ext.h>
#include <stdio.h>
#include <string.h>
#include "counters.h"

enum { GO = 1, DONE = 2, DATA = 100, AT_ONCE = 4, RUNS = 20 };

static int rank, size, master, bytes;
static char *data;

/* MEMBERS of the workers, evenly spread: the bits of a map. */
static int is_member(int who, int members)
{
  int stride = master / members;
  return who < master && who % stride == 0 && who / stride < members;
}

static MPIX_Rankset make_set(int members)
{
  unsigned char *bits = calloc(1, (size_t)size / 8 + 1);
  MPIX_Rankset set;
  for (int r = 0; r < master; r++)
    if (is_member(r, members)) bits[r / 8] |= (unsigned char)(1 << r % 8);
  MPIX_Rankset_from_bitmap(MPI_COMM_WORLD, bits, &set);
  free(bits);
  return set;
}

static void receive(int tag)
{
  MPI_Status status;
  MPI_Recv(data, bytes, MPI_BYTE, MPI_ANY_SOURCE, tag, MPI_COMM_WORLD, &status);
  if (status.MPI_SOURCE != master || data[0] != (char)tag || data[bytes - 1] != (char)tag) {
    fprintf(stderr, "mcast: rank %d has got something else\n", rank);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
}

static void note(int to) { MPI_Send(NULL, 0, MPI_BYTE, to, GO, MPI_COMM_WORLD); }

static void await(int from) { MPI_Recv(NULL, 0, MPI_BYTE, from, GO, MPI_COMM_WORLD, MPI_STATUS_IGNORE); }

/* Who is in no set has no message. */
static void set(int members)
{
  counter messages = count_from_here("spx_messages_received", MPI_T_PVAR_CLASS_COUNTER);
  if (rank == master) {
    MPIX_Rankset s = make_set(members);
    memset(data, DATA, (size_t)bytes);
    MPIX_Mcast(data, bytes, MPI_BYTE, s, DATA, MPI_COMM_WORLD);
    MPIX_Rankset_free(&s);
  } else if (is_member(rank, members))
    receive(DATA);
  int got = (int)counted(messages), counts[2], outside = is_member(rank, members) ? 0 : got, own[2] = {got, outside};
  MPI_Reduce(own, counts, 2, MPI_INT, MPI_SUM, master, MPI_COMM_WORLD);
  if (rank == master)
    printf("%d members of %d ranks: %d messages; at those that are no members: %d\n", members, master, counts[0],
           counts[1]);
}

/* No member receives before the master has come out of all its multicasts. */
static void free_master(int members)
{
  counter to = count_from_here("spx_connections", MPI_T_PVAR_CLASS_COUNTER);
  if (rank == master) {
    MPIX_Rankset s = make_set(members);
    for (int i = 0; i < AT_ONCE; i++) {
      memset(data, DATA + i, (size_t)bytes);
      MPIX_Mcast(data, bytes, MPI_BYTE, s, DATA + i, MPI_COMM_WORLD);
    }
    printf("%d multicasts are under way, none of which a member has asked for; the master has sent to %lld of the %d "
           "members\n",
           AT_ONCE, counted(to), members);
    for (int r = 0; r < master; r++)
      if (is_member(r, members)) note(r);
    MPIX_Rankset_free(&s);
  } else if (is_member(rank, members)) {
    await(master);
    for (int i = AT_ONCE - 1; i >= 0; i--) receive(DATA + i); /* by their tags: in any order */
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == master) printf("all members have them, the last one first\n");
}

/* Acknowledged: complete when the last member receives, and no sooner. */
static void acknowledged(int members)
{
  int done = 0, last = (members - 1) * (master / members);
  MPI_Request request;
  if (rank == master) {
    MPIX_Rankset s = make_set(members);
    memset(data, DATA, (size_t)bytes);
    MPIX_Ismcast(data, bytes, MPI_BYTE, s, DATA, MPI_COMM_WORLD, &request);
    for (int r = 0; r < master; r++)
      if (is_member(r, members) && r != last) await(r); /* has received it */
    for (int i = 0; i < 10000 && !done; i++) MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    printf("all but one have received it: %s\n", done ? "complete, too early" : "not complete");
    note(last);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    printf("the last one has received it: complete\n");
    MPIX_Rankset_free(&s);
  } else if (is_member(rank, members)) {
    if (rank == last) await(master);
    receive(DATA);
    if (rank != last) note(master);
  }
}

static int compare(const void *a, const void *b) { return *(const double *)a < *(const double *)b ? -1 : 1; }

/* The mean of the runs without a tenth at each end, in ms. */
static double trimmed(double *t)
{
  double sum = 0;
  qsort(t, RUNS, sizeof *t, compare);
  for (int i = RUNS / 10; i < RUNS - RUNS / 10; i++) sum += t[i];
  return 1e3 * sum / (RUNS - 2 * (RUNS / 10));
}

/* Until the last member has it: by multicast, and by MPI_Bcast over a communicator that is there, in turn. The barrier is in both times. */
static double once(int by_mcast, MPIX_Rankset s, MPI_Comm comm)
{
  MPI_Barrier(comm);
  double begin = MPI_Wtime();
  if (!by_mcast)
    MPI_Bcast(data, bytes, MPI_BYTE, 0, comm);
  else if (rank == master)
    MPIX_Mcast(data, bytes, MPI_BYTE, s, DATA, MPI_COMM_WORLD);
  else
    MPI_Recv(data, bytes, MPI_BYTE, MPI_ANY_SOURCE, DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Barrier(comm);
  return MPI_Wtime() - begin;
}

static void figures(int members)
{
  double ours[RUNS], bcast[RUNS];
  MPI_Comm comm;
  MPI_Comm_split(MPI_COMM_WORLD, rank == master || is_member(rank, members) ? 0 : MPI_UNDEFINED, -rank, &comm);
  if (comm == MPI_COMM_NULL) return;
  MPIX_Rankset s = rank == master ? make_set(members) : MPIX_RANKSET_NULL;
  for (int i = -1; i < RUNS; i++) { /* the first ones are not counted */
    double m = once(1, s, comm), b = once(0, s, comm);
    if (i >= 0) ours[i] = m, bcast[i] = b;
  }
  if (rank == master) {
    double m = trimmed(ours), b = trimmed(bcast);
    printf("%d bytes to %d of %d: MPIX_Mcast %.3f ms, MPI_Bcast %.3f ms: %.2f times as fast\n", bytes, members, master,
           m, b, b / m);
    MPIX_Rankset_free(&s);
  }
  MPI_Comm_free(&comm);
}

int main(int argc, char **argv)
{
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const char *what = argc > 1 ? argv[1] : "set";
  bytes = argc > 2 ? atoi(argv[2]) : 1000;
  int members = argc > 3 ? atoi(argv[3]) : (size - 1) / 2;
  master = size - 1;
  if (members < 1 || members > master || bytes < 1 || !(data = malloc((size_t)bytes))) MPI_Abort(MPI_COMM_WORLD, 2);
  if (!strcmp(what, "set")) set(members);
  if (!strcmp(what, "free")) free_master(members);
  if (!strcmp(what, "ack")) acknowledged(members);
  if (!strcmp(what, "figures")) figures(members);
  free(data);
  MPI_Finalize();
  return 0;
}
