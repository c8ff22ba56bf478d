/* takeover M STEPS RANK@STEP,... [WITH]: a cluster of M ranks with standbys (notified mode). Every step moves a number round by every communicator that the program has, and ends with a
 * checkpoint; the ranks named end themselves in the middle of the steps named, once each. Whoever is left, and the standbys, go on, and come to the numbers that
 * come of it when no process dies. WITH: "agent" takes the agent of the host along, "cut" the host off the network, and "blink" off it for 0.2 s alone; "busy": the victim goes alone, and the agent of rank 0 gets no processor for some seconds while that rank repairs. Tells how long a takeover took: from the death to the first barrier. AWAIT=FILE: rank 0 does not end before that is there. */
#define _GNU_SOURCE
#include <mpi-ext.h>
#include <mpi.h>
#include <mpisp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "../../c/check.h"

static int rank, size, step, steps;
static double value, died; /* the state; when the last victim ended itself (CLOCK_MONOTONIC, from a file) */
static MPI_Comm all, half, grid, part, twin;
static MPI_Request ring[2]; /* persistent, on all */
static double ring_out, ring_in;
static MPIX_Checkpoint saved;
static bool has_saved;
static const char *victims, *with = "";

static double now(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* What all of it comes to in a step, at rank r of n, from what all had before. */
static double next_of(const double *v, int r, int n)
{
  double sum = 0, mine = 0;
  for (int i = 0; i < n; i++) {
    sum += v[i];
    if (i % 2 == r % 2) mine += v[i];
  }
  return v[(r + n - 1) % n] + 0.25 * v[(r + 1) % n] + 0.125 * sum + 0.0625 * mine - 0.5 * v[r] + (double)r;
}

static double fold(double x) { return x - 1000 * (double)(long)(x / 1000); }

static double expected(int r, int n, int until)
{
  double v[64], w[64];
  for (int i = 0; i < n; i++) v[i] = i + 1;
  for (int k = 0; k < until; k++) {
    for (int i = 0; i < n; i++) w[i] = fold(next_of(v, i, n));
    memcpy(v, w, sizeof v);
  }
  return v[r];
}

/* The same calls in all processes, standbys that have taken a rank over among them. */
static void make_all(void)
{
  int n = size, periodic = 1;
  MPI_Comm gone;
  CHECK(MPI_Comm_dup(MPI_COMM_WORLD, &all) == MPI_SUCCESS);
  CHECK(MPI_Comm_split(all, rank % 2, -rank, &half) == MPI_SUCCESS);
  CHECK(MPI_Cart_create(MPI_COMM_WORLD, 1, &n, &periodic, 0, &grid) == MPI_SUCCESS);
  CHECK(MPI_Comm_split(MPI_COMM_WORLD, rank == 0 ? MPI_UNDEFINED : 7, rank, &part) == MPI_SUCCESS);
  int flag;
  MPISP_Is_replacement(&flag);
  int err = MPI_Comm_dup(MPI_COMM_WORLD, &gone);
  if (flag) {
    int class;
    MPI_Error_class(err, &class);
    CHECK(class == MPI_ERR_COMM); /* it has been freed */
  } else if (err == MPI_SUCCESS)
    MPI_Comm_free(&gone);
  CHECK(MPI_Comm_dup(grid, &twin) == MPI_SUCCESS);
  int got, kind, r;
  CHECK((part == MPI_COMM_NULL) == (rank == 0));
  CHECK(MPI_Comm_size(half, &got) == MPI_SUCCESS && got == (size + 1 - rank % 2) / 2);
  CHECK(MPI_Comm_rank(half, &r) == MPI_SUCCESS && r == got - 1 - rank / 2);
  MPI_Topo_test(grid, &kind);
  CHECK(kind == MPI_CART);
  MPI_Topo_test(twin, &kind);
  CHECK(kind == MPI_CART);
  MPI_Comm_rank(all, &r);
  CHECK(r == rank);
  MPI_Send_init(&ring_out, 1, MPI_DOUBLE, (rank + 1) % size, 5, all, &ring[0]);
  MPI_Recv_init(&ring_in, 1, MPI_DOUBLE, (rank + size - 1) % size, 5, all, &ring[1]);
}

static void maybe_die(void)
{
  char word[32];
  int flag;
  MPISP_Is_replacement(&flag);
  snprintf(word, sizeof word, ",%d@%d,", rank, step);
  if (!strstr(victims, word) || flag) return;
  FILE *f = fopen("died", "w");
  fprintf(f, "%.9f\n", now());
  fclose(f);
  if (strcmp(with, "agent") == 0) {
    kill(getppid(), SIGKILL);
    pause();
  } else if (strcmp(with, "cut") == 0) {
    CHECK(system("ip link set eth0 down") == 0); /* what comes of it, the others see */
  } else if (strcmp(with, "blink") == 0) {
    CHECK(system("ip link set eth0 down; sleep 0.2; ip link set eth0 up") == 0);
    victims = "";
  } else
    raise(getenv("FAULT") ? atoi(getenv("FAULT")) : SIGKILL); /* SIGSTOP: it hangs instead */
}

/* The agent of this host stands still for longer than anything is waited for that has a limit of seconds. */
static void keep_agent_busy(void)
{
  char line[128];
  snprintf(line, sizeof line, "kill -STOP %d; (sleep 6; kill -CONT %d) &", (int)getppid(), (int)getppid());
  CHECK(system(line) == 0);
  with = "";
}

#define TRY(call)                                                                                                      \
  do {                                                                                                                 \
    int code_ = (call);                                                                                                \
    if (code_ != MPI_SUCCESS) return code_;                                                                            \
  } while (0)

static int one_step(void)
{
  double sum, mine, before, behind;
  int up, down;
  ring_out = value;
  TRY(MPI_Startall(2, ring));
  TRY(MPI_Allreduce(&value, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD));
  maybe_die();
  TRY(MPI_Allreduce(&value, &mine, 1, MPI_DOUBLE, MPI_SUM, half));
  TRY(MPI_Waitall(2, ring, MPI_STATUSES_IGNORE));
  TRY(MPI_Cart_shift(twin, 0, 1, &down, &up));
  TRY(MPI_Sendrecv(&value, 1, MPI_DOUBLE, down, 6, &behind, 1, MPI_DOUBLE, up, 6, grid, MPI_STATUS_IGNORE));
  before = ring_in;
  if (part != MPI_COMM_NULL) TRY(MPI_Barrier(part));
  value = fold(before + 0.25 * behind + 0.125 * sum + 0.0625 * mine - 0.5 * value + rank);
  step++;
  TRY(MPIX_Checkpoint_save(saved, step));
  TRY(MPIX_Checkpoint_commit(saved));
  return MPI_Barrier(twin);
}

static int enter(void)
{
  if (has_saved) return MPIX_Checkpoint_attach(MPI_COMM_WORLD, saved);
  TRY(MPIX_Checkpoint_create(MPI_COMM_WORLD, MPI_INFO_NULL, &saved));
  has_saved = true;
  TRY(MPIX_Checkpoint_register(saved, 0, &step, 1, MPI_INT));
  return MPIX_Checkpoint_register(saved, 1, &value, 1, MPI_DOUBLE);
}

static int restore(void)
{
  int64_t version;
  TRY(enter());
  TRY(MPIX_Checkpoint_restore(saved, MPIX_CHECKPOINT_NEWEST, &version));
  TRY(MPI_Barrier(MPI_COMM_WORLD));
  FILE *f = fopen("died", "r");
  if (rank == 0 && f && fscanf(f, "%lf", &died) == 1) printf("takeover %.3f ms\n", (now() - died) * 1e3);
  if (f) fclose(f);
  return MPI_SUCCESS;
}

int main(int argc, char **argv)
{
  MPI_Init(&argc, &argv);
  int replacement, left = 0;
  setvbuf(stdout, NULL, _IOLBF, 0);
  if (argc < 4) return 2;
  steps = atoi(argv[2]);
  victims = argv[3];
  if (argc > 4) with = argv[4];
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPISP_Is_replacement(&replacement);
  CHECK(size == atoi(argv[1]));
  make_all();
  int err = MPI_SUCCESS;
  if (replacement)
    err = restore();
  else {
    value = rank + 1;
    err = enter();
    if (!err) err = MPIX_Checkpoint_save(saved, 0);
    if (!err) err = MPIX_Checkpoint_commit(saved);
  }
  while (err != MPI_SUCCESS || step < steps) {
    if (err == MPI_SUCCESS) {
      err = one_step();
      continue;
    }
    int class, n;
    MPI_Error_class(err, &class);
    if (class != MPIX_ERR_PROC_FAILED && class != MPIX_ERR_REVOKED) {
      char text[MPI_MAX_ERROR_STRING];
      MPI_Error_string(err, text, &n);
      fprintf(stderr, "rank %d, step %d: %s\n", rank, step, text);
      MPI_Abort(MPI_COMM_WORLD, 3);
    }
    for (int i = 0; i < 2; i++) MPI_Wait(&ring[i], MPI_STATUS_IGNORE); /* has ended, in whatever way */
    if (rank == 0 && strcmp(with, "busy") == 0) keep_agent_busy();
    if (MPISP_Repair(&n) != MPI_SUCCESS) MPI_Abort(MPI_COMM_WORLD, 4);
    left += n;
    err = restore();
  }
  CHECK(value == expected(rank, size, steps));
  const char *await = getenv("AWAIT");
  while (rank == 0 && await && access(await, F_OK) != 0) usleep(5000);
  if (rank == 0) printf("done %d %d\n", step, left);
  MPI_Finalize();
  return check_failures != 0;
}
