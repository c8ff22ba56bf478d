/* rows.h - what the files of the measuring program share. A file has a table of rows; rows.c runs them. */
#ifndef ROWS_H
#define ROWS_H
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct row row;
struct row {
  const char *name;
  /* Does the operation times times. */
  void (*run)(const row *r, size_t bytes, long times);
  /* After one call on the pattern of fill(): whether what arrived is wrong. NULL: the row checks itself (failed()). */
  int (*wrong)(const row *r, size_t bytes);
  double per_call;  /* operations in a call of run, by which its time is divided */
  int least, most;  /* numbers of ranks that it is for; most 0: no limit */
  size_t bytes[11]; /* 0 ends the list, except in the first place */
  void (*open)(const row *r, size_t bytes), (*close)(const row *r, size_t bytes); /* before and after; or NULL */
  long arg;
};

extern int rank, size;
extern char *out, *in; /* POOL bytes each */
extern size_t pool;
extern const char *folder; /* for files */

extern const row p2p_rows[], type_rows[], coll_rows[], rma_rows[], file_rows[], app_rows[];
extern const row curve_rows[], thread_rows[]; /* name NULL ends */

enum { SLOTS = 64 };
/* Buffers rotate: the i-th operation of bytes uses the i-th slot of a pool, as many as fit, at most SLOTS. */
static inline char *slot(char *base, size_t bytes, long i)
{
  size_t stride = ((bytes + 63) & ~(size_t)63) + (bytes >= 4096 ? 64 : 0), n = pool / stride;
  return base + (size_t)i % (n > SLOTS ? SLOTS : n < 1 ? 1 : n) * stride;
}

double now(void);
/* Uses the processor for that long. */
void compute(double seconds);
/* Gives the first bytes of out this rank's pattern, and clears as many of in. */
void fill(size_t bytes);
/* The byte that fill() of rank r has at the i-th place of its out. */
static inline char pattern(int r, size_t i) { return (char)('a' + ((size_t)r * 7 + i / 8) % 23); }
void failed(const row *r, size_t bytes);

/* near.c, two ranks. near_open: once, of both. near_now: of both; on rank 0 the microseconds that a word takes from one processor to the other. */
void near_open(void);
double near_now(void);
#endif
