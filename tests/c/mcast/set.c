/* What sets of ranks hold, against plain arrays of truth values: made of ranks, ranges, groups and bitmaps, and combined. */
// run: n=1,2,5
#include <mpi-ext.h>
#include <string.h>
#include "../check.h"

#define MOST       64
#define MUST(call) CHECK_CLASS(call, MPI_SUCCESS)
static int size;
static unsigned state = 7;
static unsigned dice(unsigned n) { return (state = state * 1103515245u + 12345u) / 65536u % n; }

static MPIX_Rankset made(MPI_Comm comm, const char *in)
{
  int ranks[MOST], n = 0;
  unsigned char bits[MOST / 8] = {0};
  MPIX_Rankset s;
  for (int r = size - 1; r >= 0; r--)
    if (in[r]) {
      ranks[n++] = r;
      bits[r / 8] |= (unsigned char)(1 << r % 8);
    }
  switch (dice(3)) {
  case 0: MUST(MPIX_Rankset_incl(comm, n, ranks, &s)); break;
  case 1: MUST(MPIX_Rankset_from_bitmap(comm, bits, &s)); break;
  default: {
    MPI_Group all, g;
    MUST(MPI_Comm_group(comm, &all));
    MUST(MPI_Group_incl(all, n, ranks, &g));
    MUST(MPIX_Rankset_from_group(comm, g, &s));
    MUST(MPI_Group_free(&all));
    MUST(MPI_Group_free(&g));
  }
  }
  return s;
}

static void holds(MPIX_Rankset s, const char *in)
{
  int n = 0, got, ranks[MOST];
  for (int r = 0; r < size; r++) n += in[r];
  MUST(MPIX_Rankset_size(s, &got));
  CHECK(got == n);
  memset(ranks, 0xff, sizeof ranks);
  MUST(MPIX_Rankset_ranks(s, MOST, ranks));
  for (int r = 0, k = 0; r < size; r++)
    if (in[r]) {
      CHECK(ranks[k] == r);
      k++;
    }
  CHECK(ranks[n] == -1);
}

static void combine(MPI_Comm comm)
{
  char a[MOST] = {0}, b[MOST] = {0}, both[MOST] = {0}, either[MOST] = {0}, first[MOST] = {0};
  int same = 1, result;
  for (int r = 0; r < size; r++) {
    a[r] = (char)dice(2);
    b[r] = (char)dice(2);
    both[r] = (char)(a[r] && b[r]);
    either[r] = (char)(a[r] || b[r]);
    first[r] = (char)(a[r] && !b[r]);
    same = same && a[r] == b[r];
  }
  MPIX_Rankset s = made(comm, a), t = made(comm, b), u;
  holds(s, a);
  MUST(MPIX_Rankset_compare(s, t, &result));
  CHECK(result == (same ? MPI_IDENT : MPI_UNEQUAL));
  MUST(MPIX_Rankset_union(s, t, &u));
  holds(u, either);
  MUST(MPIX_Rankset_free(&u));
  CHECK(u == MPIX_RANKSET_NULL);
  MUST(MPIX_Rankset_intersection(s, t, &u));
  holds(u, both);
  MUST(MPIX_Rankset_free(&u));
  MUST(MPIX_Rankset_difference(s, t, &u));
  holds(u, first);
  MUST(MPIX_Rankset_free(&u));
  MUST(MPIX_Rankset_free(&s));
  MUST(MPIX_Rankset_free(&t));
}

int main(int argc, char **argv)
{
  MPI_Comm dup;
  MPIX_Rankset s, t;
  int result;
  MPI_Init(&argc, &argv);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (int i = 0; i < 300; i++) combine(MPI_COMM_WORLD);

  int ranges[2][3] = {{size - 1, 0, -2}, {0, 0, 1}};
  char even[MOST] = {0};
  for (int r = size - 1; r >= 0; r -= 2) even[r] = 1;
  int n = even[0] ? 1 : 2;
  even[0] = 1;
  MUST(MPIX_Rankset_range_incl(MPI_COMM_WORLD, n, ranges, &s));
  holds(s, even);
  MUST(MPI_Comm_dup(MPI_COMM_WORLD, &dup));
  t = made(dup, even);
  MUST(MPIX_Rankset_compare(s, t, &result));
  CHECK(result == MPI_UNEQUAL);
  MUST(MPI_Comm_free(&dup));
  holds(t, even);
  MUST(MPIX_Rankset_free(&s));
  MUST(MPIX_Rankset_free(&t));
  MUST(MPIX_Rankset_incl(MPI_COMM_WORLD, 0, NULL, &s)); /* nobody */
  holds(s, (char[MOST]){0});
  MUST(MPIX_Rankset_free(&s));
  MPI_Finalize();
  return check_status();
}
