/* survivor.c - Jacobi's iteration on a square plate, which goes on when processes are killed, one after another.
 *
 *   mpicc -O2 survivor.c -o survivor -lm && spxrun --with-ft -n 8 ./survivor 3 kill
 *
 * Of the 8 processes the last 3 are spares: they wait. The others have a strip of rows each, and save it every 50 steps: the checkpoint lies
 * in their own memory and in that of another process. With "kill", as many processes as there are spares end themselves on the way. When one
 * dies, the others hear it at their next message: the error handler jumps back to where the program makes its communicator, spares take
 * the places of the dead, the ranks stay as they are, and all go on from the last checkpoint. At the end rank 0 compares with the same
 * iteration on one process, bit for bit.
 */
#include <math.h>
#include <mpi-ext.h>
#include <mpi.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 240, STEPS = 1000, EVERY = 50 };

static MPI_Comm work = MPI_COMM_NULL;
static MPI_Errhandler handler;
static MPIX_Checkpoint checkpoint = MPIX_CHECKPOINT_NULL;
static jmp_buf again;

/* rows [first, first + rows) of the plate, with the row before and the row behind. */
typedef struct strip {
  int first, rows;
  double (*now)[N], (*next)[N];
} strip;
static strip mine;
static int step, recoveries; /* of this process */

static void on_error(MPI_Comm *comm, int *code, ...)
{
  int class, length;
  char text[MPI_MAX_ERROR_STRING];
  MPI_Error_class(*code, &class);
  if (class == MPIX_ERR_PROC_FAILED || class == MPIX_ERR_REVOKED) longjmp(again, 1);
  MPI_Error_string(*code, text, &length);
  fprintf(stderr, "survivor: %s\n", text);
  MPI_Abort(*comm, 1);
}

static strip make_strip(int rank, int size)
{
  strip s = {.first = N * rank / size, .rows = N * (rank + 1) / size - N * rank / size};
  s.now = calloc((size_t)s.rows + 2, sizeof *s.now);
  s.next = calloc((size_t)s.rows + 2, sizeof *s.next);
  if (!s.now || !s.next) MPI_Abort(MPI_COMM_WORLD, 1);
  for (int i = 0; i < s.rows + 2; i++) /* the first row of the plate is hot */
    for (int k = 0; s.first + i - 1 <= 0 && k < N; k++) s.now[i][k] = s.next[i][k] = 100;
  return s;
}

static void free_strip(strip *s)
{
  free(s->now);
  free(s->next);
}

static void iterate(strip *s)
{
  for (int i = 1; i <= s->rows; i++) {
    int y = s->first + i - 1;
    for (int x = 1; y > 0 && y < N - 1 && x < N - 1; x++)
      s->next[i][x] = 0.25 * (s->now[i - 1][x] + s->now[i + 1][x] + s->now[i][x - 1] + s->now[i][x + 1]);
  }
  double(*was)[N] = s->now;
  s->now = s->next;
  s->next = was;
}

static void exchange_rims(strip *s, int rank, int size)
{
  int up = rank > 0 ? rank - 1 : MPI_PROC_NULL, down = rank < size - 1 ? rank + 1 : MPI_PROC_NULL;
  MPI_Sendrecv(s->now[1], N, MPI_DOUBLE, up, 0, s->now[s->rows + 1], N, MPI_DOUBLE, down, 0, work, MPI_STATUS_IGNORE);
  MPI_Sendrecv(s->now[s->rows], N, MPI_DOUBLE, down, 1, s->now[0], N, MPI_DOUBLE, up, 1, work, MPI_STATUS_IGNORE);
}

/* Registers what a checkpoint has to hold, as it lies in memory now. */
static void register_state(void)
{
  MPIX_Checkpoint_register(checkpoint, 0, &step, 1, MPI_INT);
  MPIX_Checkpoint_register(checkpoint, 1, mine.now[1], (MPI_Count)mine.rows * N, MPI_DOUBLE);
}

/* The state of this rank: that of the last checkpoint, if there is one. */
static void begin(int rank, int size)
{
  int versions, restored;
  if (checkpoint == MPIX_CHECKPOINT_NULL)
    MPIX_Checkpoint_create(work, MPI_INFO_NULL, &checkpoint);
  else
    MPIX_Checkpoint_attach(work, checkpoint);
  free_strip(&mine);
  mine = make_strip(rank, size);
  step = 0;
  register_state();
  MPIX_Checkpoint_get_versions(checkpoint, 0, NULL, &versions);
  if (versions > 0) MPIX_Checkpoint_restore(checkpoint, MPIX_CHECKPOINT_NEWEST, &restored);
}

static void compute(int rank, int size, int victim, int dies_at)
{
  for (; step < STEPS;) {
    if (victim && step == dies_at) raise(SIGKILL);
    exchange_rims(&mine, rank, size);
    iterate(&mine);
    step++;
    if (step % EVERY) continue;
    register_state(); /* now and next have changed places */
    MPIX_Checkpoint_save(checkpoint, step);
    MPIX_Checkpoint_commit(checkpoint);
  }
}

/* At rank 0: the whole plate on one process. */
static double difference(const double *plate)
{
  strip all = make_strip(0, 1);
  double worst = 0;
  for (int i = 0; i < STEPS; i++) iterate(&all);
  for (int i = 0; i < N * N; i++) worst = fmax(worst, fabs(plate[i] - all.now[1 + i / N][i % N]));
  free_strip(&all);
  return worst;
}

static void compare(int rank, int size)
{
  int *counts = malloc((size_t)size * sizeof *counts), *at = malloc((size_t)size * sizeof *at);
  double *plate = rank == 0 ? malloc(sizeof(double) * N * N) : NULL;
  for (int r = 0; r < size; r++) {
    at[r] = N * r / size * N;
    counts[r] = (N * (r + 1) / size - N * r / size) * N;
  }
  MPI_Gatherv(mine.now[1], counts[rank], MPI_DOUBLE, plate, counts, at, MPI_DOUBLE, 0, work);
  if (rank == 0) {
    double d = difference(plate);
    printf("survivor: %d steps on %d processes, %d recoveries here, largest difference %g: %s\n", STEPS, size,
           recoveries, d, d == 0 ? "verified" : "WRONG");
    if (d != 0) MPI_Abort(MPI_COMM_WORLD, 2);
  }
  free(plate);
  free(counts);
  free(at);
}

int main(int argc, char **argv)
{
  int me, rank, size, role, spares = argc > 1 ? atoi(argv[1]) : 1, done = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  int victim =
      argc > 2 && strcmp(argv[2], "kill") == 0 && me >= 1 && me <= spares; /* one of those that work, or a spare */
  MPI_Comm_create_errhandler(on_error, &handler);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  while (!done) {
    if (setjmp(again)) recoveries++;
    if (MPIX_Comm_repair(MPI_COMM_WORLD, spares, &work, &role) != MPI_SUCCESS) MPI_Abort(MPI_COMM_WORLD, 1);
    if (role == MPIX_ROLE_SPARE) break; /* was not needed */
    MPI_Comm_set_errhandler(work, handler);
    MPI_Comm_rank(work, &rank);
    MPI_Comm_size(work, &size);
    begin(rank, size);
    compute(rank, size, victim, 150 * me + 20);
    compare(rank, size);
    done = MPIX_Comm_dismiss(MPI_COMM_WORLD) == MPI_SUCCESS; /* else somebody has died at the very end */
  }
  if (checkpoint != MPIX_CHECKPOINT_NULL) MPIX_Checkpoint_free(&checkpoint);
  free_strip(&mine);
  MPI_Errhandler_free(&handler);
  MPI_Finalize();
  return 0;
}
