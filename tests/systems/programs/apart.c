/* apart send COUNT MS [STOP [FROM]]: every rank sends COUNT numbered messages to MPISP_CLUSTER_OUT, one in MS ms, or until there is a file STOP; in them it has the number FROM (or the variable APART_FROM) + its rank. apart told COUNT MS: the same, until a send fails, and how. apart receive [FILE]: every rank receives until nothing comes any
 * more, and says how many those were: of every sender all between the first and the last, each once. apart order FILE each: the same, and what one has sent comes in order. apart share [FILE [each]]: the same where others receive some of them, or some are lost.
 * FILE is made when the first has come; with each, when any comes and it is not there, and of each sender it is said how many have come in a row at the end. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <mpi.h>
#include <mpisp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RANKS = 64, MOST = 100000, SIZE = 1000 };

static char seen[RANKS][MOST];

static void fail(const char *what, int a, int b)
{
  fprintf(stderr, "%s: %d, %d\n", what, a, b);
  MPI_Abort(MPI_COMM_WORLD, 3);
}

static void touch(const char *file)
{
  int fd = open(file, O_CREAT | O_WRONLY, 0666);
  if (fd < 0) perror(file);
  close(fd);
}

static void send_all(int rank, int count, int ms, const char *stop, int from)
{
  int data[SIZE] = {0};
  int i;
  for (i = 0; i < count && !(stop && access(stop, F_OK) == 0); i++) {
    data[0] = from + rank;
    data[1] = i;
    data[SIZE - 1] = i ^ data[0];
    MPI_Send(data, i % 2 ? SIZE : 2, MPI_INT, MPISP_CLUSTER_OUT, 7, MPI_COMM_WORLD);
    if (ms) usleep(ms * 1000u);
  }
  printf("rank %d sent %d\n", rank, i);
  fflush(stdout); /* what is on its way may keep it from its end */
}

/* Sends until that fails. */
static void send_told(int rank, int count, int ms)
{
  int data[SIZE] = {rank}, code = MPI_SUCCESS, class, n;
  char text[MPI_MAX_ERROR_STRING];
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  for (int i = 0; i < count && code == MPI_SUCCESS; i++) {
    data[1] = i;
    data[SIZE - 1] = i ^ rank;
    code = MPI_Send(data, i % 2 ? SIZE : 2, MPI_INT, MPISP_CLUSTER_OUT, 7, MPI_COMM_WORLD);
    usleep(ms * 1000u);
  }
  MPI_Error_class(code, &class);
  MPI_Error_string(class, text, &n);
  printf("rank %d was told: %s\n", rank, text);
}

static void receive_all(int rank, bool all, bool ordered, const char *file, bool each)
{
  int data[SIZE], first[RANKS], last[RANKS], total = 0, count;
  for (int r = 0; r < RANKS; r++) first[r] = MOST, last[r] = -1;
  for (MPI_Status s;;) {
    MPI_Recv(data, SIZE, MPI_INT, MPISP_CLUSTER_IN, 7, MPI_COMM_WORLD, &s);
    if (s.MPI_SOURCE == MPI_PROC_NULL) break;
    MPI_Get_count(&s, MPI_INT, &count);
    if (data[0] < 0 || data[0] >= RANKS || data[1] < 0 || data[1] >= MOST)
      fail("a message of nobody", data[0], data[1]);
    if (count != (data[1] % 2 ? SIZE : 2) || (count == SIZE && data[SIZE - 1] != (data[1] ^ data[0])))
      fail("a message is damaged", data[0], data[1]);
    if (seen[data[0]][data[1]]++) fail("a message came again", data[0], data[1]);
    if (ordered && last[data[0]] >= 0 && data[1] != last[data[0]] + 1)
      fail("a message comes out of turn", data[1], last[data[0]]);
    if (data[1] < first[data[0]]) first[data[0]] = data[1];
    if (data[1] > last[data[0]]) last[data[0]] = data[1];
    if ((!total++ || each) && file) touch(file);
  }
  for (int r = 0; r < RANKS; r++)
    for (int i = first[r]; i < last[r]; i++)
      if (all && !seen[r][i]) fail("a message is missing", r, i);
  printf("rank %d received %d\n", rank, total);
  for (int r = 0; r < RANKS && each; r++) {
    int n = 0;
    while (n <= last[r] && seen[r][last[r] - n]) n++;
    if (n) printf("rank %d received the last %d of rank %d\n", rank, n, r);
  }
}

int main(int argc, char **argv)
{
  int rank, size;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (argc > 3 && !strcmp(argv[1], "send"))
    send_all(rank, atoi(argv[2]), atoi(argv[3]), argc > 4 ? argv[4] : NULL,
             argc > 5 ? atoi(argv[5]) : atoi(secure_getenv("APART_FROM") ? secure_getenv("APART_FROM") : "0"));
  else if (argc > 3 && !strcmp(argv[1], "told"))
    send_told(rank, atoi(argv[2]), atoi(argv[3]));
  else
    receive_all(rank, argc > 1 && strcmp(argv[1], "share"), argc > 1 && !strcmp(argv[1], "order"),
                argc > 2 ? argv[2] : NULL, argc > 3);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) printf("%s: %d ranks\n", getenv("SPX_CLUSTER"), size);
  MPI_Finalize();
  return 0;
}
