/* Messages of more than 2^31 elements, and what their statuses say in the small and the large forms. MPI-5.0 2.5.8, 3.2 to 3.10. */
// run: n=2 timeout=120 alone=1
// run: n=2 args=short timeout=120 alone=1 env=SPX_STREAM_MAX=0 full=1
// run: n=2 args=short timeout=120 alone=1 env=SPX_CMA=0 full=1
#define _GNU_SOURCE
#include "large.h"

static char *buf;
static int me;

static void check_counts(MPI_Status *s, MPI_Count n)
{
  MPI_Count large = -1;
  int small = -1;
  CHECK(MPI_Get_count_c(s, MPI_BYTE, &large) == MPI_SUCCESS && large == n);
  CHECK(MPI_Get_count(s, MPI_BYTE, &small) == MPI_SUCCESS && small == MPI_UNDEFINED);
  CHECK(MPI_Get_elements_c(s, MPI_BYTE, &large) == MPI_SUCCESS && large == n);
  CHECK(MPI_Get_elements_x(s, MPI_BYTE, &large) == MPI_SUCCESS && large == n);
  CHECK(MPI_Get_elements(s, MPI_BYTE, &small) == MPI_SUCCESS && small == MPI_UNDEFINED);
}

static void blocking(void)
{
  MPI_Status s;
  fill(buf, N, me ? 9 : 1);
  if (me == 0) {
    MPI_Send_c(buf, N, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
  } else {
    MPI_Recv_c(buf, N + 5, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &s);
    CHECK(same(buf, N, 1));
    check_counts(&s, N);
  }
}

/* The message is longer than the buffer. */
static void truncated(void)
{
  if (me == 0) {
    MPI_Ssend_c(buf, N, MPI_BYTE, 1, 2, MPI_COMM_WORLD);
  } else {
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    CHECK_CLASS(MPI_Recv_c(buf, N - 1, MPI_BYTE, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE), MPI_ERR_TRUNCATE);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  }
}

/* Probed, and received by its message, while another is on its way back. */
static void both_ways(void)
{
  MPI_Request send, recv;
  MPI_Message message;
  MPI_Status s;
  fill(buf, N, me ? 4 : 1);
  if (me == 1) {
    MPI_Isend(buf, 1000, MPI_INT, 0, 3, MPI_COMM_WORLD, &send);
    MPI_Mprobe(0, 3, MPI_COMM_WORLD, &message, &s);
    check_counts(&s, N);
    MPI_Wait(&send, MPI_STATUS_IGNORE);
    MPI_Imrecv_c(buf, N, MPI_BYTE, &message, &recv);
    MPI_Wait(&recv, &s);
    check_counts(&s, N);
    CHECK(same(buf, N, 1));
  } else {
    static int back[1000];
    MPI_Isend_c(buf, N, MPI_BYTE, 1, 3, MPI_COMM_WORLD, &send);
    MPI_Recv(back, 1000, MPI_INT, 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Wait(&send, MPI_STATUS_IGNORE);
  }
}

static void persistent(void)
{
  MPI_Request r;
  MPI_Status s;
  fill(buf, N, me ? 7 : 2);
  if (me == 0)
    MPI_Send_init_c(buf, N, MPI_BYTE, 1, 4, MPI_COMM_WORLD, &r);
  else
    MPI_Recv_init_c(buf, N, MPI_BYTE, 0, 4, MPI_COMM_WORLD, &r);
  MPI_Start(&r);
  MPI_Wait(&r, &s);
  MPI_Request_free(&r);
  if (me == 1) {
    check_counts(&s, N);
    CHECK(same(buf, N, 2));
  }
}

/* Few elements of 1 GiB each by the small forms: counts that fit an int, of more bytes than an int holds. */
static void large_elements(void)
{
  MPI_Datatype giga;
  MPI_Status s;
  MPI_Count large;
  int small;
  MPI_Type_contiguous(1 << 30, MPI_BYTE, &giga);
  MPI_Type_commit(&giga);
  fill(buf, N, me ? 3 : 6);
  if (me == 0) {
    MPI_Send(buf, 2, giga, 1, 5, MPI_COMM_WORLD);
  } else {
    MPI_Recv(buf, 2, giga, 0, 5, MPI_COMM_WORLD, &s);
    CHECK(MPI_Get_count(&s, giga, &small) == MPI_SUCCESS && small == 2);
    CHECK(MPI_Get_count(&s, MPI_BYTE, &small) == MPI_SUCCESS && small == MPI_UNDEFINED);
    CHECK(MPI_Get_elements(&s, giga, &small) == MPI_SUCCESS && small == MPI_UNDEFINED);
    CHECK(MPI_Get_elements_c(&s, giga, &large) == MPI_SUCCESS && large == (MPI_Count)1 << 31);
    CHECK(same(buf, REPEAT, 6));
  }
  MPI_Type_free(&giga);
}

/* More than 2^32 elements that have no bytes: nothing is sent but the message. */
static void empty_elements(void)
{
  MPI_Datatype none;
  MPI_Status s;
  MPI_Count n = ((MPI_Count)1 << 32) + 7, large = -1;
  MPI_Type_contiguous(0, MPI_INT, &none);
  MPI_Type_commit(&none);
  MPI_Sendrecv_c(buf, n, none, 1 - me, 6, buf, n, none, 1 - me, 6, MPI_COMM_WORLD, &s);
  CHECK(MPI_Get_count_c(&s, none, &large) == MPI_SUCCESS && large == 0);
  MPI_Sendrecv_replace_c(buf, n, none, 1 - me, 7, 1 - me, 7, MPI_COMM_WORLD, &s);
  MPI_Bsend_c(buf, n, none, MPI_PROC_NULL, 7, MPI_COMM_WORLD);
  MPI_Type_free(&none);
}

int main(int argc, char **argv)
{
  MPI_Init(&argc, &argv);
  small_memory();
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  buf = large(N + 5);
  blocking();
  if (argc == 1) { /* the others differ in what is above the transport */
    truncated();
    both_ways();
    persistent();
    large_elements();
    empty_elements();
  }
  MPI_Finalize();
  return check_status();
}
