/* heat2d.c - the heat equation in two dimensions on a plate that is cut into one block for each rank.
 *
 *   mpicc -O2 heat2d.c -o heat2d -lm && spxrun -n 4 ./heat2d heat.png
 *
 * The plate is cold at its rim; three letters on it are kept hot. Each step every cell moves towards the mean of its four
 * neighbours. Ranks exchange the rims of their blocks with nonblocking messages (rows as they lie in memory, columns by a
 * derived datatype), and agree by a reduction on how much still changes. At the end rank 0 gathers the blocks, writes a
 * picture, and checks two things: the same arithmetic on one process gives the same numbers, bit for bit; and a sine wave
 * decays as the exact solution of the discrete equation says.
 */
#include "png.h"
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 480, HEIGHT = 320, STEPS = 800, WAVE_STEPS = 400 };
static const double RATE = 0.2; /* diffusivity * dt / dx^2; stable below 0.25 */

/* A rectangle of the plate, with a rim of one cell around it. */
typedef struct block {
  int x0, y0, w, h;
  double *now, *next;
} block;

static double *cell(const block *b, double *field, int x, int y)
{
  return field + (size_t)(y + 1) * (size_t)(b->w + 2) + (size_t)(x + 1);
}

/* The letters S, P, X in a grid of 5 x 7 dots each. */
static int hot(int x, int y)
{
  static const char *letters[7] = {".###. ####. #...#", "#...# #...# #...#", "#.... #...# .#.#.", ".###. ####. ..#..",
                                   "....# #.... .#.#.", "#...# #.... #...#", ".###. #.... #...#"};
  int dot = 20, left = (WIDTH - 17 * dot) / 2, top = (HEIGHT - 7 * dot) / 2;
  if (x < left || y < top) return 0;
  int column = (x - left) / dot, row = (y - top) / dot;
  return column < 17 && row < 7 && letters[row][column] == '#';
}

static block make_block(int x0, int y0, int w, int h)
{
  block b = {x0, y0, w, h, NULL, NULL};
  size_t cells = (size_t)(w + 2) * (size_t)(h + 2);
  b.now = calloc(cells, sizeof(double));
  b.next = calloc(cells, sizeof(double));
  if (!b.now || !b.next) {
    fprintf(stderr, "heat2d: no memory for a block of %d x %d cells\n", w, h);
    exit(1);
  }
  return b;
}

static void free_block(block *b)
{
  free(b->now);
  free(b->next);
}

static void start_letters(block *b)
{
  for (int y = 0; y < b->h; y++)
    for (int x = 0; x < b->w; x++) *cell(b, b->now, x, y) = hot(b->x0 + x, b->y0 + y);
}

static double wave(int x, int y) { return sin(M_PI * (x + 1) / (WIDTH + 1)) * sin(M_PI * (y + 1) / (HEIGHT + 1)); }

static void start_wave(block *b)
{
  for (int y = 0; y < b->h; y++)
    for (int x = 0; x < b->w; x++) *cell(b, b->now, x, y) = wave(b->x0 + x, b->y0 + y);
}

/* One step of all cells of a block; returns the largest change. Letters stay hot when held is set. */
static double step(block *b, int held)
{
  double most = 0;
  for (int y = 0; y < b->h; y++)
    for (int x = 0; x < b->w; x++) {
      double *c = cell(b, b->now, x, y);
      double change = RATE * (c[-1] + c[1] + c[-(b->w + 2)] + c[b->w + 2] - 4 * *c);
      if (held && hot(b->x0 + x, b->y0 + y)) change = 0;
      *cell(b, b->next, x, y) = *c + change;
      if (fabs(change) > most) most = fabs(change);
    }
  double *swap = b->now;
  b->now = b->next;
  b->next = swap;
  return most;
}

/* The grid of ranks: as square as their number allows, for a plate wider than high. */
static void grid(int ranks, int *across, int *down)
{
  *down = 1;
  for (int d = 1; d * d <= ranks; d++)
    if (ranks % d == 0) *down = d;
  *across = ranks / *down;
}

typedef struct neighbours {
  int left, right, up, down;
  MPI_Datatype column;
} neighbours;

static neighbours find_neighbours(int rank, int across, int down, const block *b)
{
  int gx = rank % across, gy = rank / across;
  neighbours n = {gx > 0 ? rank - 1 : MPI_PROC_NULL, gx < across - 1 ? rank + 1 : MPI_PROC_NULL,
                  gy > 0 ? rank - across : MPI_PROC_NULL, gy < down - 1 ? rank + across : MPI_PROC_NULL,
                  MPI_DATATYPE_NULL};
  MPI_Type_vector(b->h, 1, b->w + 2, MPI_DOUBLE, &n.column);
  MPI_Type_commit(&n.column);
  return n;
}

static void exchange(block *b, const neighbours *n)
{
  MPI_Request r[8];
  MPI_Comm world = MPI_COMM_WORLD;
  MPI_Irecv(cell(b, b->now, -1, 0), 1, n->column, n->left, 0, world, &r[0]);
  MPI_Irecv(cell(b, b->now, b->w, 0), 1, n->column, n->right, 1, world, &r[1]);
  MPI_Irecv(cell(b, b->now, 0, -1), b->w, MPI_DOUBLE, n->up, 2, world, &r[2]);
  MPI_Irecv(cell(b, b->now, 0, b->h), b->w, MPI_DOUBLE, n->down, 3, world, &r[3]);
  MPI_Isend(cell(b, b->now, b->w - 1, 0), 1, n->column, n->right, 0, world, &r[4]);
  MPI_Isend(cell(b, b->now, 0, 0), 1, n->column, n->left, 1, world, &r[5]);
  MPI_Isend(cell(b, b->now, 0, b->h - 1), b->w, MPI_DOUBLE, n->down, 2, world, &r[6]);
  MPI_Isend(cell(b, b->now, 0, 0), b->w, MPI_DOUBLE, n->up, 3, world, &r[7]);
  MPI_Waitall(8, r, MPI_STATUSES_IGNORE);
}

static double run(block *b, const neighbours *n, int steps, int held)
{
  double change = 0;
  for (int i = 0; i < steps; i++) {
    exchange(b, n);
    double mine = step(b, held);
    if (i % 100 == 99) MPI_Allreduce(&mine, &change, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  }
  return change;
}

/* Brings all blocks to rank 0 as one plate of WIDTH x HEIGHT numbers; NULL elsewhere. */
static double *gather(block *b, int rank, int ranks)
{
  int shape[4] = {b->x0, b->y0, b->w, b->h}, *shapes = malloc((size_t)ranks * sizeof shape);
  int *counts = malloc((size_t)ranks * sizeof(int)), *at = malloc((size_t)ranks * sizeof(int));
  double *packed = malloc((size_t)b->w * (size_t)b->h * sizeof(double));
  double *all = rank == 0 ? malloc((size_t)WIDTH * HEIGHT * sizeof(double)) : NULL;
  double *plate = rank == 0 ? malloc((size_t)WIDTH * HEIGHT * sizeof(double)) : NULL;

  for (int y = 0; y < b->h; y++)
    memcpy(packed + (size_t)y * (size_t)b->w, cell(b, b->now, 0, y), (size_t)b->w * sizeof(double));
  MPI_Gather(shape, 4, MPI_INT, shapes, 4, MPI_INT, 0, MPI_COMM_WORLD);
  for (int r = 0, sum = 0; rank == 0 && r < ranks; r++) {
    counts[r] = shapes[4 * r + 2] * shapes[4 * r + 3];
    at[r] = sum;
    sum += counts[r];
  }
  MPI_Gatherv(packed, b->w * b->h, MPI_DOUBLE, all, counts, at, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  for (int r = 0; rank == 0 && r < ranks; r++) {
    const int *s = shapes + 4 * r;
    for (int y = 0; y < s[3]; y++)
      memcpy(plate + (size_t)(s[1] + y) * WIDTH + s[0], all + at[r] + (size_t)y * (size_t)s[2],
             (size_t)s[2] * sizeof(double));
  }
  free(shapes);
  free(counts);
  free(at);
  free(packed);
  free(all);
  return plate;
}

/* How many cells of the plate differ from the same steps on one process. */
static int differences(const double *plate)
{
  block whole = make_block(0, 0, WIDTH, HEIGHT);
  int wrong = 0;
  start_letters(&whole);
  for (int i = 0; i < STEPS; i++) step(&whole, 1);
  for (int y = 0; y < HEIGHT; y++)
    for (int x = 0; x < WIDTH; x++) wrong += plate[(size_t)y * WIDTH + x] != *cell(&whole, whole.now, x, y);
  free_block(&whole);
  return wrong;
}

/* The largest distance between the decayed wave and the exact solution: the wave is an eigenvector of a step. */
static double wave_error(const double *plate)
{
  double sx = sin(M_PI / (2 * (WIDTH + 1))), sy = sin(M_PI / (2 * (HEIGHT + 1))), error = 0;
  double factor = pow(1 - 4 * RATE * (sx * sx + sy * sy), WAVE_STEPS);
  for (int y = 0; y < HEIGHT; y++)
    for (int x = 0; x < WIDTH; x++) error = fmax(error, fabs(plate[(size_t)y * WIDTH + x] - factor * wave(x, y)));
  return error;
}

/* Black, violet, red, orange, yellow, white; the last colour marks the borders between ranks. */
static void colours(unsigned char *palette)
{
  static const double stops[6][3] = {{4, 4, 20},     {80, 18, 110},  {190, 40, 80},
                                     {250, 120, 20}, {252, 210, 80}, {255, 255, 230}};
  for (int i = 0; i < 255; i++) {
    double t = i / 254.0 * 5;
    int k = t >= 5 ? 4 : (int)t;
    for (int c = 0; c < 3; c++)
      palette[3 * i + c] = (unsigned char)(stops[k][c] + (t - k) * (stops[k + 1][c] - stops[k][c]));
  }
  palette[765] = 90, palette[766] = 160, palette[767] = 200;
}

static int draw(const char *path, const double *plate, int across, int down)
{
  unsigned char palette[768], *pixels = malloc((size_t)WIDTH * HEIGHT);
  colours(palette);
  for (int y = 0; y < HEIGHT; y++)
    for (int x = 0; x < WIDTH; x++) {
      int border = 0;
      for (int k = 1; k < across; k++) border |= x == k * WIDTH / across && y % 4 < 2;
      for (int k = 1; k < down; k++) border |= y == k * HEIGHT / down && x % 4 < 2;
      pixels[(size_t)y * WIDTH + x] = border ? 255 : (unsigned char)(254 * plate[(size_t)y * WIDTH + x]);
    }
  int bad = png_write(path, pixels, WIDTH, HEIGHT, palette);
  free(pixels);
  return bad;
}

int main(int argc, char **argv)
{
  int rank, ranks, across, down, status = 0;

  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const char *picture = argc > 1 ? argv[1] : "heat2d.png";
  grid(ranks, &across, &down);
  int gx = rank % across, gy = rank / across;
  int x0 = gx * WIDTH / across, y0 = gy * HEIGHT / down;
  block b = make_block(x0, y0, (gx + 1) * WIDTH / across - x0, (gy + 1) * HEIGHT / down - y0);
  neighbours n = find_neighbours(rank, across, down, &b);

  start_letters(&b);
  double start = MPI_Wtime(), change = run(&b, &n, STEPS, 1), took = MPI_Wtime() - start;
  double *plate = gather(&b, rank, ranks);

  block w = make_block(b.x0, b.y0, b.w, b.h);
  start_wave(&w);
  run(&w, &n, WAVE_STEPS, 0);
  double *decayed = gather(&w, rank, ranks);

  if (rank == 0) {
    int wrong = differences(plate);
    double error = wave_error(decayed);
    printf("heat2d: %d x %d cells, %d steps, %d ranks as %d x %d blocks: %.2f s, last change %.1e\n", WIDTH, HEIGHT,
           STEPS, ranks, across, down, took, change);
    printf("check: %d of %d cells differ from one process; the wave is within %.1e of the exact solution\n", wrong,
           WIDTH * HEIGHT, error);
    status = wrong != 0 || !(error < 1e-12);
    if (draw(picture, plate, across, down)) {
      perror(picture);
      status = 1;
    }
    printf("%s\n", status ? "heat2d: WRONG" : "heat2d: verified");
  }
  free(plate);
  free(decayed);
  free_block(&b);
  free_block(&w);
  MPI_Type_free(&n.column);
  MPI_Finalize();
  return status;
}
