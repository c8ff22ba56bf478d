/* radar.h - what the programs of this example share: the scene, the transforms, the thresholds, the picture. No MPI here.
 *
 * A pulse radar looks at a frame: PULSES echoes of one pulse, SAMPLES complex numbers each. Pulse compression correlates each echo with the pulse that was
 * sent, which puts a target into one range cell. A Fourier transform over the pulses then sorts each range cell by velocity (doppler.f90). A cell that is
 * stronger than those around it is a detection. All numbers follow from the number of the frame, so that whoever computes a frame gets the same bits.
 */
#ifndef RADAR_H
#define RADAR_H
#include <complex.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "../png.h"

enum { SAMPLES = 256, PULSES = 32, CHIRP = 32, CELLS = SAMPLES * PULSES, MOST = 64 /* detections of a frame */ };
enum { TARGETS = 4 };

typedef double complex sample; /* MPI_C_DOUBLE_COMPLEX, complex(8) */
typedef struct {
  int frame, range, speed, level; /* level: tenths of a dB above its surroundings */
} detection;

/* ---- the scene ------------------------------------------------------------------------------------------------- */

/* A number of [-1, 1) that depends on where it is asked for alone. */
static inline double noise(uint32_t frame, uint32_t cell)
{
  uint64_t h = ((uint64_t)frame << 32 | cell) * 0x9e3779b97f4a7c15ull;
  h = (h ^ h >> 31) * 0xbf58476d1ce4e5b9ull;
  h ^= h >> 29;
  return (double)(int64_t)(h >> 11) * 0x1p-52 - 1;
}

static inline sample chirp(int k) { return cexp(I * M_PI * k * (k - CHIRP) / CHIRP); }

/* Where target t is in a frame: range cell and velocity cell. They fly up and down the range. */
static inline void target(int t, int frame, int *range, int *speed)
{
  static const int at[TARGETS] = {20, 75, 130, 190}, step[TARGETS] = {1, -2, 0, 3}, velocity[TARGETS] = {3, 27, 0, 9};
  const int room = SAMPLES - CHIRP, x = ((at[t] + step[t] * frame) % (2 * room) + 2 * room) % (2 * room);
  *range = x < room ? x : 2 * room - 1 - x;
  *speed = x < room ? velocity[t] : (PULSES - velocity[t]) % PULSES;
}

/* The echoes of a frame, as the antenna gives them: cube[pulse][sample]. */
static inline void look(int frame, sample *cube)
{
  for (int i = 0; i < CELLS; i++)
    cube[i] = noise((uint32_t)frame, 2 * (uint32_t)i) + I * noise((uint32_t)frame, 2 * (uint32_t)i + 1);
  for (int t = 0; t < TARGETS; t++) {
    int range, speed;
    target(t, frame, &range, &speed);
    for (int p = 0; p < PULSES; p++) {
      sample turn = (0.5 + 0.1 * t) * cexp(2 * I * M_PI * speed * p / PULSES);
      for (int k = 0; k < CHIRP; k++) cube[p * SAMPLES + range + k] += turn * chirp(k);
    }
  }
}

/* ---- pulse compression ----------------------------------------------------------------------------------------- */

/* Fourier transform of n numbers, a power of two; sign -1, or 1 for the inverse (not divided by n). */
static inline void fourier(sample *x, int n, int sign)
{
  for (int i = 1, j = 0; i < n; i++) {
    int bit = n >> 1;
    for (; j & bit; bit >>= 1) j ^= bit;
    j ^= bit;
    if (i < j) {
      sample swap = x[i];
      x[i] = x[j];
      x[j] = swap;
    }
  }
  for (int half = 1; half < n; half *= 2)
    for (int k = 0; k < half; k++) {
      sample w = cexp(sign * I * M_PI * k / half);
      for (int i = k; i < n; i += 2 * half) {
        sample odd = w * x[i + half];
        x[i + half] = x[i] - odd;
        x[i] += odd;
      }
    }
}

/* Correlates every echo with the pulse that was sent. */
static inline void compress(sample *cube)
{
  sample pulse[SAMPLES] = {0};
  for (int k = 0; k < CHIRP; k++) pulse[k] = chirp(k);
  fourier(pulse, SAMPLES, -1);
  for (int p = 0; p < PULSES; p++) {
    sample *echo = cube + p * SAMPLES;
    fourier(echo, SAMPLES, -1);
    for (int i = 0; i < SAMPLES; i++) echo[i] *= conj(pulse[i]) / SAMPLES;
    fourier(echo, SAMPLES, 1);
  }
}

/* ---- detection ------------------------------------------------------------------------------------------------- */

/* The mean of the cells around x in a row of the map: some on either side, not those next to it. */
static inline double around(const double *row, int x)
{
  double sum = 0;
  int n = 0;
  for (int d = 3; d <= 10; d++) {
    if (x - d >= 0) sum += row[x - d], n++;
    if (x + d < SAMPLES) sum += row[x + d], n++;
  }
  return sum / n;
}

/* Cells of power[speed][range] that stand out from those around them by so many times, and are the highest of their neighbours. Returns how many. */
static inline int detect(int frame, const double *power, double times, detection found[MOST])
{
  int n = 0;
  for (int v = 0; v < PULSES; v++)
    for (int x = 0; x < SAMPLES && n < MOST; x++) {
      const double *row = power + v * SAMPLES, *up = power + (v + 1) % PULSES * SAMPLES,
                   *down = power + (v + PULSES - 1) % PULSES * SAMPLES, mean = around(row, x);
      int left = x > 0 ? x - 1 : x, right = x + 1 < SAMPLES ? x + 1 : x;
      if (row[x] < times * mean || row[x] < row[left] || row[x] < row[right] || row[x] <= up[x] || row[x] <= down[x])
        continue;
      found[n++] = (detection){frame, x, v, (int)(100 * log10(row[x] / mean))};
    }
  return n;
}

/* ---- the picture ------------------------------------------------------------------------------------------------ */

typedef struct {
  unsigned char pixels[(4 * PULSES + 8 + 256) * 2 * SAMPLES];
} picture;
enum { WIDTH = 2 * SAMPLES, MAP = 4 * PULSES, TRACKS = 256, HEIGHT = MAP + 8 + TRACKS };

/* Above the map of the first frame: velocity against range. */
static inline void draw_map(picture *p, const double *power)
{
  for (int y = 0; y < MAP; y++)
    for (int x = 0; x < WIDTH; x++) {
      double level = 32 * log10(power[y / 4 * SAMPLES + x / 2] + 1e-9) + 10;
      p->pixels[y * WIDTH + x] = (unsigned char)(level < 0 ? 0 : level > 200 ? 200 : level);
    }
  memset(p->pixels + MAP * WIDTH, 201, 8 * WIDTH);
}

/* Below the detections of the first frames: one line a frame, a dot for each, its colour by velocity. */
static inline void draw_detection(picture *p, const detection *d)
{
  if (d->frame >= TRACKS) return;
  unsigned char *at = p->pixels + (MAP + 8 + d->frame) * WIDTH + 2 * d->range;
  at[0] = at[1] = (unsigned char)(210 + d->speed);
}

static inline int write_picture(const picture *p, const char *file)
{
  unsigned char palette[768] = {0};
  for (int i = 0; i <= 200; i++) {
    palette[3 * i] = (unsigned char)(i > 100 ? 255 * (i - 100) / 100 : 0);
    palette[3 * i + 1] = (unsigned char)(i > 50 ? 255 * (i - 50) / 150 : 0);
    palette[3 * i + 2] = (unsigned char)(i < 100 ? 40 + i : 140 - (i - 100));
  }
  memset(palette + 603, 255, 3);
  for (int v = 0; v < PULSES; v++) {
    int away = v <= PULSES / 2 ? v : PULSES - v, fast = 120 + 8 * away;
    palette[3 * (210 + v)] = (unsigned char)(v <= PULSES / 2 ? fast : 60);
    palette[3 * (210 + v) + 1] = (unsigned char)(255 - 10 * away);
    palette[3 * (210 + v) + 2] = (unsigned char)(v <= PULSES / 2 ? 60 : fast);
  }
  return png_write(file, p->pixels, WIDTH, HEIGHT, palette);
}

/* A line of the report for every frame. Returns its length. */
static inline int report(char *line, size_t room, int frame, const detection *found, int n)
{
  int at = snprintf(line, room, "frame %d:", frame);
  for (int i = 0; i < n; i++)
    at += snprintf(line + at, room - (size_t)at, " %d/%d/%d", found[i].range, found[i].speed, found[i].level);
  at += snprintf(line + at, room - (size_t)at, "\n");
  return at;
}

/* RADAR_TIMES=1: says who has which rank, and since when. */
static inline void here(const char *stage, int rank, int again)
{
  struct timespec t;
  const char *wanted = getenv("RADAR_TIMES");
  if (!wanted || !*wanted) return;
  clock_gettime(CLOCK_MONOTONIC, &t);
  printf("here %s %d %ld %d %lld\n", stage, rank, (long)getpid(), again, (long long)t.tv_sec * 1000000000 + t.tv_nsec);
  fflush(stdout);
}

static inline void *memory(size_t bytes)
{
  void *p = calloc(1, bytes);
  if (!p) {
    perror("radar: memory");
    exit(1);
  }
  return p;
}
#endif
