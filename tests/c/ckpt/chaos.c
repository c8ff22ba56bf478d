/* Processes end themselves at random moments, in a save, a commit, a restore, while others recover: those that are left always go on from a
 * version that is complete, and end with the right numbers. argv: seed, how many may die, "spares", "files" or "shrink"; "begin": what is saved is
 * committed a step later. The state of a
 * rank is a function of the step, so that what is restored can be judged; with "shrink" the blocks of all original ranks are dealt out to
 * those that are left. */
// run: n=6 spxrun="--with-ft" args="1 3 spares" timeout=60
// run: n=8 spxrun="--with-ft" args="2 4 spares" timeout=60
// run: n=6 spxrun="--with-ft" args="3 4 shrink" timeout=60
// run: n=8 spxrun="--with-ft" args="4 6 shrink" timeout=60
// run: n=7 spxrun="--with-ft" args="5 4 files" timeout=60
// run: n=6 spxrun="--with-ft" args="6 3 spares" env=SPX_TRANSPORTS=tcp timeout=60
// run: n=6 spxrun="--with-ft" args="7 3 spares begin" timeout=60
// run: n=8 spxrun="--with-ft" args="8 6 shrink begin" timeout=60
// run: n=7 spxrun="--with-ft" args="9 4 files begin" timeout=60
// run: n=6 spxrun="--with-ft" args="10 3 spares begin" env=SPX_TRANSPORTS=tcp timeout=60
#include <mpi-ext.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "../check.h"

enum { STEPS = 500, EVERY = 5, WORDS = 20000, BLOCKS = 8 };

static int me, size, deaths; /* in the world as it began */
static int shrinks, files, begins;
static unsigned long long seed;
static MPI_Comm work = MPI_COMM_NULL; /* those that work */
static MPIX_Checkpoint point = MPIX_CHECKPOINT_NULL;
static jmp_buf back;
static MPI_Errhandler handler;
static int nblocks;                  /* of all, for ever */
static long (*block[BLOCKS])[WORDS]; /* NULL: another rank's */
static volatile int step, restores;

static unsigned long long draw(void)
{
  return seed = seed * 6364136223846793005ull + 1442695040888963407ull, seed >> 33;
}

static long value(int b, int s, int i) { return (long)b * 1000003 + (long)s * 7919 + i; }

static void on_error(MPI_Comm *comm, int *code, ...)
{
  int class;
  MPI_Error_class(*code, &class);
  if (class == MPIX_ERR_PROC_FAILED || class == MPIX_ERR_REVOKED) longjmp(back, 1);
  char text[MPI_MAX_ERROR_STRING];
  int n;
  MPI_Error_string(*code, text, &n);
  fprintf(stderr, "rank %d of the beginning, seed %llu: %s\n", me, seed, text);
  MPI_Abort(*comm, 3);
}

/* A process whose turn it is dies some time after this. */
static void arm(void)
{
  static int armed;
  if (armed || me < 1 || me > deaths) return;
  armed = 1;
  struct itimerspec when = {.it_value = {0, (long)(1 + draw() % 200) * 1000000}};
  struct sigevent how = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGKILL};
  timer_t t;
  if (timer_create(CLOCK_MONOTONIC, &how, &t) || timer_settime(t, 0, &when, NULL)) abort();
}

static void own(int b)
{
  if (!block[b]) block[b] = malloc(sizeof *block[b]);
  MPIX_Checkpoint_register(point, b, *block[b], WORDS, MPI_LONG);
}

/* Each rank has its blocks: those of the version where they are there, else new ones. */
static void deal(void)
{
  int rank, n, v, ranks, num;
  MPI_Comm_rank(work, &rank);
  MPI_Comm_size(work, &n);
  for (int b = 0; b < nblocks; b++)
    if (b % n == rank)
      own(b);
    else if (block[b]) {
      MPIX_Checkpoint_unregister(point, b);
      free(block[b]);
      block[b] = NULL;
    }
  MPIX_Checkpoint_get_versions(point, 0, NULL, &num);
  if (num == 0) {
    step = 0;
    for (int b = 0; b < nblocks; b++)
      for (int i = 0; block[b] && i < WORDS; i++) (*block[b])[i] = value(b, 0, i);
    return;
  }
  MPIX_Checkpoint_restore_begin(point, MPIX_CHECKPOINT_NEWEST, &v, &ranks);
  for (int b = 0; b < nblocks; b++)
    if (block[b]) MPIX_Checkpoint_fetch(point, b % ranks, b, 0, *block[b], WORDS, MPI_LONG);
  MPIX_Checkpoint_restore_end(point);
  restores++;
  step = v;
  for (int b = 0; b < nblocks; b++)
    for (int i = 0; block[b] && i < WORDS; i++)
      if ((*block[b])[i] != value(b, v, i)) {
        fprintf(stderr, "block %d of version %d has %ld at %d instead of %ld\n", b, v, (*block[b])[i], i,
                value(b, v, i));
        MPI_Abort(MPI_COMM_WORLD, 4);
      }
}

static void compute(void)
{
  long sum = 0, all;
  int begun = 0;
  for (; step < STEPS; step++) {
    for (int b = 0; b < nblocks; b++)
      for (int i = 0; block[b] && i < WORDS; i++) {
        (*block[b])[i] += 7919;
        sum += (*block[b])[i] & 1;
      }
    MPI_Allreduce(&sum, &all, 1, MPI_LONG, MPI_SUM, work);
    if (begun) MPIX_Checkpoint_commit(point);
    begun = begins && step % EVERY == EVERY - 1;
    if (begun)
      MPIX_Checkpoint_save_begin(point, step + 1);
    else if (step % EVERY == EVERY - 1) {
      MPIX_Checkpoint_save(point, step + 1);
      MPIX_Checkpoint_commit(point);
    }
  }
  if (begun) MPIX_Checkpoint_commit(point);
}

/* Those that live, on a communicator of their own. Returns 0 at a spare that was not needed. */
static int gather(void)
{
  MPI_Comm next;
  int role;
  if (!shrinks) {
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (MPIX_Comm_repair(MPI_COMM_WORLD, deaths, &work, &role)) MPI_Abort(MPI_COMM_WORLD, 5);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
    if (role == MPIX_ROLE_SPARE) return 0;
    static int place = -1; /* the same for ever */
    int rank;
    MPI_Comm_rank(work, &rank);
    if (role == MPIX_ROLE_INITIAL || role == MPIX_ROLE_REPLACEMENT) place = role == MPIX_ROLE_INITIAL ? me : rank;
    if (rank != place) MPI_Abort(MPI_COMM_WORLD, 6);
    return 1;
  }
  if (work == MPI_COMM_NULL) {
    MPI_Comm_dup(MPI_COMM_WORLD, &next);
    work = next;
    /* No rank is armed before all have the communicator. A rank that is still in the barrier when
       the first one dies recovers as the others do. */
    MPI_Barrier(work);
    return 1;
  }
  MPIX_Comm_revoke(work);
  MPIX_Comm_shrink(work, &next);
  MPI_Comm_free(&work);
  work = next;
  return 1;
}

/* The last ones may die when the others are done: who is done says so, and hears whether all are. */
static int finish(void)
{
  int good = 1;
  if (!shrinks) return MPIX_Comm_dismiss(MPI_COMM_WORLD) == MPI_SUCCESS;
  MPI_Comm_set_errhandler(work, MPI_ERRORS_RETURN);
  int rc = MPI_Barrier(work);
  good = rc == MPI_SUCCESS;
  if (!good) MPIX_Comm_revoke(work);
  MPIX_Comm_agree(work, &good);
  return good;
}

int main(int argc, char **argv)
{
  char dir[] = "spx-chaos-XXXXXX";
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  seed = strtoull(argv[1], NULL, 10) * 0x9e3779b97f4a7c15ull + (unsigned)me * 7777777u;
  deaths = atoi(argv[2]);
  shrinks = strcmp(argv[3], "spares") != 0;
  files = strcmp(argv[3], "files") == 0;
  begins = argc > 4;
  nblocks = shrinks ? BLOCKS : size - deaths;
  draw();
  MPI_Info info;
  MPI_Info_create(&info);
  if (files) {
    if (me == 0) CHECK(mkdtemp(dir) != NULL);
    MPI_Bcast(dir, sizeof dir, MPI_CHAR, 0, MPI_COMM_WORLD);
    MPI_Info_set(info, "mpix_directory", dir);
    MPI_Info_set(info, "mpix_copies", "0");
  } else {
    char copies[16];
    snprintf(copies, sizeof copies, "%d", deaths); /* whoever dies */
    MPI_Info_set(info, "mpix_copies", copies);
  }
  MPI_Comm_create_errhandler(on_error, &handler);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
  int done = 0;
  do {
    if (setjmp(back) && work == MPI_COMM_NULL) MPI_Abort(MPI_COMM_WORLD, 7);
    if (!gather()) break;
    MPI_Comm_set_errhandler(work, handler);
    arm();
    if (point == MPIX_CHECKPOINT_NULL)
      MPIX_Checkpoint_create(work, info, &point);
    else
      MPIX_Checkpoint_attach(work, point);
    deal();
    compute();
    done = finish();
  } while (!done);
  for (int b = 0; point != MPIX_CHECKPOINT_NULL && b < nblocks; b++)
    for (int i = 0; block[b] && i < WORDS; i++)
      if ((*block[b])[i] != value(b, STEPS, i)) {
        fprintf(stderr, "block %d ends with %ld at %d\n", b, (*block[b])[i], i);
        MPI_Abort(MPI_COMM_WORLD, 8);
      }
  int rank = 1;
  if (point != MPIX_CHECKPOINT_NULL && shrinks) {
    MPI_Comm_rank(work, &rank);
    int versions[4], n;
    MPIX_Checkpoint_get_versions(point, 4, versions, &n);
    for (int i = 0; i < n && i < 4; i++) MPIX_Checkpoint_delete(point, versions[i]);
    if (files) MPI_Barrier(work);
  }
  if (rank == 0 && files) CHECK(rmdir(dir) == 0);
  if (me == 0) printf("done after %d restores\n", restores);
  if (point != MPIX_CHECKPOINT_NULL) MPIX_Checkpoint_free(&point);
  MPI_Info_free(&info);
  MPI_Finalize();
  return check_status();
}
