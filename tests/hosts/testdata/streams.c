/* streams.c - long messages between two processes, both ways at once, each checked; then how fast they go one way.
 *   streams MESSAGES BYTES
 * Rank 0 prints how many further streams it has made, and MB/s. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static MPI_T_pvar_session session;
static MPI_T_pvar_handle made; /* counts from when it is made */

static void count(void)
{
  int provided, index, n;
  MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
  MPI_T_pvar_session_create(&session);
  MPI_T_pvar_get_index("spx_streams_opened", MPI_T_PVAR_CLASS_COUNTER, &index);
  MPI_T_pvar_handle_alloc(session, index, NULL, &made, &n);
  MPI_T_pvar_start(session, made);
}

int main(int argc, char **argv)
{
  int rank, n = argc > 1 ? atoi(argv[1]) : 10;
  size_t bytes = argc > 2 ? strtoul(argv[2], NULL, 10) : 4 << 20;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  count();
  unsigned char *out = malloc(bytes), *in = malloc(bytes);
  for (int m = 0; m < 5; m++) {
    for (size_t i = 0; i < bytes; i++) out[i] = (unsigned char)(i * 7 + (i >> 9) + m * 3 + rank);
    memset(in, 0, bytes);
    MPI_Sendrecv(out, (int)bytes, MPI_BYTE, !rank, 0, in, (int)bytes, MPI_BYTE, !rank, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    for (size_t i = 0; i < bytes; i++)
      if (in[i] != (unsigned char)(i * 7 + (i >> 9) + m * 3 + !rank)) {
        printf("message %d: byte %zu is wrong\n", m, i);
        MPI_Abort(MPI_COMM_WORLD, 1);
      }
  }
  MPI_Barrier(MPI_COMM_WORLD);
  double start = MPI_Wtime();
  for (int m = 0; m < n; m++)
    if (rank == 0)
      MPI_Send(out, (int)bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
    else
      MPI_Recv(in, (int)bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Barrier(MPI_COMM_WORLD);
  double seconds = MPI_Wtime() - start;
  if (rank == 0) {
    unsigned long long n_made;
    MPI_T_pvar_read(session, made, &n_made);
    printf("further streams: %llu\n", n_made);
    fprintf(stderr, "%.0f MB/s\n", (double)n * (double)bytes / seconds / 1e6);
  }
  MPI_Finalize();
  return 0;
}
