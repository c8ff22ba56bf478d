/* rma_rows.h - window memory as requests to its owner describe it (rma_am.c, rma_far.c): runs of
 * bytes. Runs of one length and distance are one row, so that a vector is one row however long it
 * is. */
#ifndef SPX_RMA_ROWS_H
#define SPX_RMA_ROWS_H
#include "rma.h"

typedef struct {
  uint64_t base, size, stride, count;
} spx_rma_row;

/* Writes down the runs of bytes [at, at + m) of the packed form of elements of t at base: at most
 * most rows, *n of them, for *runs runs. Returns the bytes they have, which may be fewer than m. */
SPX_HIDDEN int64_t spx_rma_describe(spx_rma_row *row, uint32_t most, uint32_t *n, uint64_t base,
                                    const spx_type *t, int64_t at, int64_t m, int64_t *runs);
/* The bytes of rows that a peer has written; -1: more than most, or not all of it is this process's
 * window memory. */
SPX_HIDDEN int64_t spx_rma_rows_bytes(const spx_win *w, const spx_rma_row *row, uint32_t n,
                                      uint64_t most);
/* Copies data to the memory that checked rows describe (put), or back. */
SPX_HIDDEN void spx_rma_rows_move(const spx_rma_row *row, uint32_t n, bool put, void *data);
#endif
