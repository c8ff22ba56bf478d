/* The parts of a status, and looking at several requests without completing them (MPI-5.0, 3.2.5, 3.7.3, 3.7.5, 3.7.6): what is set is read
 * again by the accessors, by the members, and by the functions that count; MPI_Request_get_status_* sees what MPI_Test* would, any number
 * of times, and frees nothing. */
// run: n=2
#include "../check.h"
#include <string.h>

static int rank;

static void accessors(void)
{
  static const int values[] = {0, 1, 17, 30000, 1 << 20, 5, 6, 1 << 29};
  MPI_Status s;
  int v, flag;
  memset(&s, 0, sizeof s);
  for (unsigned i = 0; i < sizeof values / sizeof *values; i++) {
    int a = values[i], b = values[(i + 1) % 8], c = values[(i + 2) % 8];
    CHECK(MPI_Status_set_source(&s, a) == MPI_SUCCESS && MPI_Status_set_tag(&s, b) == MPI_SUCCESS);
    CHECK(MPI_Status_set_error(&s, c) == MPI_SUCCESS);
    CHECK(s.MPI_SOURCE == a && s.MPI_TAG == b && s.MPI_ERROR == c);
    CHECK(MPI_Status_get_source(&s, &v) == MPI_SUCCESS && v == a);
    CHECK(MPI_Status_get_tag(&s, &v) == MPI_SUCCESS && v == b);
    CHECK(MPI_Status_get_error(&s, &v) == MPI_SUCCESS && v == c);
  }
  MPI_Status_set_source(&s, MPI_PROC_NULL);
  MPI_Status_set_tag(&s, MPI_ANY_TAG);
  CHECK(s.MPI_SOURCE == MPI_PROC_NULL && s.MPI_TAG == MPI_ANY_TAG);
  MPI_Count n;
  MPI_Status_set_elements_c(&s, MPI_INT, ((MPI_Count)1 << 40) + 3);
  MPI_Status_set_cancelled(&s, 1);
  MPI_Status_set_tag(&s, 5); /* one part does not disturb another */
  MPI_Get_elements_c(&s, MPI_INT, &n);
  CHECK(n == ((MPI_Count)1 << 40) + 3);
  MPI_Get_elements(&s, MPI_INT, &v);
  CHECK(v == MPI_UNDEFINED);
  CHECK(MPI_Test_cancelled(&s, &flag) == MPI_SUCCESS && flag);
  MPI_Status_set_cancelled(&s, 0);
  CHECK(MPI_Test_cancelled(&s, &flag) == MPI_SUCCESS && !flag);
  MPI_Get_elements_c(&s, MPI_INT, &n);
  CHECK(n == ((MPI_Count)1 << 40) + 3);
  MPI_Status_set_elements(&s, MPI_CHAR, 7);
  MPI_Get_count(&s, MPI_CHAR, &v);
  CHECK(v == 7);
}

static void received(void)
{
  int x[8], v, other = 1 - rank;
  MPI_Status s;
  MPI_Sendrecv((int[8]){rank}, 3 + rank, MPI_INT, other, 20 + rank, x, 8, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG,
               MPI_COMM_WORLD, &s);
  CHECK(MPI_Status_get_source(&s, &v) == MPI_SUCCESS && v == other);
  CHECK(MPI_Status_get_tag(&s, &v) == MPI_SUCCESS && v == 20 + other);
  MPI_Get_count(&s, MPI_INT, &v);
  CHECK(v == 3 + other);
}

static int count_of(const MPI_Status *s)
{
  int n;
  MPI_Get_count(s, MPI_INT, &n);
  return n;
}

/* What is left of requests 0 to 3, of which those of mask are complete: 2 is null from the beginning. */
static void look(MPI_Request *r, int mask)
{
  MPI_Status s[4], one;
  int flag, index, n, at[4], seen = 0;
  MPI_Request before[4];
  memcpy(before, r, sizeof before);
  for (int again = 0; again < 2; again++) {
    CHECK(MPI_Request_get_status_all(4, r, &flag, s) == MPI_SUCCESS && flag == (mask == 11));
    for (int i = 0; flag && i < 4; i++)
      CHECK(i == 2 ? count_of(&s[i]) == 0 && s[i].MPI_SOURCE == MPI_ANY_SOURCE
                   : count_of(&s[i]) == i + 1 && s[i].MPI_TAG == i);
    CHECK(MPI_Request_get_status_all(4, r, &flag, MPI_STATUSES_IGNORE) == MPI_SUCCESS && flag == (mask == 11));
    CHECK(MPI_Request_get_status_any(4, r, &index, &flag, &one) == MPI_SUCCESS && flag == (mask != 0));
    CHECK(flag ? mask >> index & 1 : index == MPI_UNDEFINED);
    if (flag) CHECK(count_of(&one) == index + 1 && one.MPI_TAG == index && one.MPI_SOURCE == 0);
    CHECK(MPI_Request_get_status_some(4, r, &n, at, s) == MPI_SUCCESS && n == __builtin_popcount((unsigned)mask));
    seen = 0;
    for (int i = 0; i < n; i++) {
      seen |= 1 << at[i];
      CHECK(count_of(&s[i]) == at[i] + 1 && s[i].MPI_TAG == at[i]);
    }
    CHECK(seen == mask);
    CHECK(!memcmp(before, r, sizeof before));
  }
}

static void several(void)
{
  int buf[4][8], flag, index, n, at[4];
  static const int order[] = {3, 0, 1};
  MPI_Status s[4];
  MPI_Request r[4], sends[3];
  for (int i = 0; i < 4; i++) MPI_Irecv(buf[i], 8, MPI_INT, 0, i, MPI_COMM_SELF, &r[i]);
  MPI_Cancel(&r[2]);
  MPI_Wait(&r[2], &s[0]);
  CHECK(MPI_Test_cancelled(&s[0], &flag) == MPI_SUCCESS && flag && r[2] == MPI_REQUEST_NULL);
  look(r, 0);
  for (int k = 0, mask = 0; k < 3; k++) {
    MPI_Isend(buf[order[k]], order[k] + 1, MPI_INT, 0, order[k], MPI_COMM_SELF, &sends[k]);
    for (flag = 0; !flag;) MPI_Request_get_status(r[order[k]], &flag, MPI_STATUS_IGNORE);
    mask |= 1 << order[k];
    look(r, mask);
  }
  MPI_Waitall(4, r, s);
  for (int i = 0; i < 4; i++) CHECK(i == 2 || count_of(&s[i]) == i + 1);
  MPI_Waitall(3, sends, MPI_STATUSES_IGNORE);
  /* Nothing active: all are complete, no one is. */
  CHECK(MPI_Request_get_status_all(4, r, &flag, s) == MPI_SUCCESS && flag);
  CHECK(MPI_Request_get_status_any(4, r, &index, &flag, &s[0]) == MPI_SUCCESS && flag && index == MPI_UNDEFINED);
  CHECK(MPI_Request_get_status_some(4, r, &n, at, s) == MPI_SUCCESS && n == MPI_UNDEFINED);
}

int main(int argc, char **argv)
{
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  accessors();
  received();
  several();
  MPI_Finalize();
  return check_status();
}
