/* What the programs of these tests have in common. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank, size;

#define CHECK(condition)                                                                                               \
  do {                                                                                                                 \
    if (condition) break;                                                                                              \
    fprintf(stderr, "rank %d, line %d: not %s\n", rank, __LINE__, #condition);                                         \
    MPI_Abort(MPI_COMM_WORLD, 1);                                                                                      \
  } while (0)

/* Counters of the library, from begin_count on. */
enum { PAIRS, RECEIVED, REFUSED, COUNTERS };
static MPI_T_pvar_session session;
static MPI_T_pvar_handle counters[COUNTERS];

static void begin_count(void)
{
  static const char *const names[] = {"spx_fabric_pairs", "spx_fabric_received", "spx_fabric_refused"};
  int index, provided, count;
  MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
  CHECK(MPI_T_pvar_session_create(&session) == MPI_SUCCESS);
  for (int i = 0; i < COUNTERS; i++) {
    CHECK(MPI_T_pvar_get_index(names[i], MPI_T_PVAR_CLASS_COUNTER, &index) == MPI_SUCCESS);
    CHECK(MPI_T_pvar_handle_alloc(session, index, NULL, &counters[i], &count) == MPI_SUCCESS);
    CHECK(MPI_T_pvar_start(session, counters[i]) == MPI_SUCCESS);
  }
}

static long long counted(int which)
{
  unsigned long long value = 0;
  CHECK(MPI_T_pvar_read(session, counters[which], &value) == MPI_SUCCESS);
  return (long long)value;
}

/* Byte i of message n from a process. */
static unsigned char byte_of(int from, int n, size_t i)
{
  return (unsigned char)(from * 31 + n * 7 + (int)(i % 251) + (int)(i >> 12));
}
static void fill(unsigned char *b, size_t bytes, int from, int n)
{
  for (size_t i = 0; i < bytes; i++) b[i] = byte_of(from, n, i);
}
static void verify(const unsigned char *b, size_t bytes, int from, int n)
{
  for (size_t i = 0; i < bytes; i++) {
    if (b[i] == byte_of(from, n, i)) continue;
    fprintf(stderr, "rank %d: byte %zu of message %d of %zu bytes from %d is wrong\n", rank, i, n, bytes, from);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
}
