/* copy_typed.c - from the memory of one datatype to that of another, within the process.
 * MPI-5.0, 3.3.1 (the same typemap, other displacements). */
#include "dp.h"
#include "plan.h"

enum {
  PIECE = 64 << 10 /* bytes that are packed and unpacked at a time */,
  LEAST = 1 << 10 /* when memory is out */
};

static inline bool plain(const spx_type *t) { return (t->flags & SPX_T_CONTIG) != 0; }

/* Little of the caller's stack, which may be one of a user-level thread. */
static __attribute__((noinline)) void by_pieces(void *to, int64_t to_count, const spx_type *tt,
                                                int64_t to_at, const void *from, int64_t from_count,
                                                const spx_type *ft, int64_t from_at, int64_t n)
{
  int64_t most = n < PIECE ? n : PIECE;
  char own[LEAST], *room = n > LEAST ? spx_temp_get((size_t)most) : NULL,
                   *piece = room ? room : own;
  int64_t step = room ? most : LEAST;
  for (int64_t done = 0; done < n; done += step) {
    int64_t end = n - done < step ? n : done + step;
    spx_pack(from, from_count, ft, from_at + done, from_at + end, piece);
    spx_unpack(to, to_count, tt, to_at + done, to_at + end, piece);
  }
  if (room) spx_temp_put(room, (size_t)most);
}

void spx_copy_typed(void *to, int64_t to_count, const spx_type *tt, int64_t to_at, const void *from,
                    int64_t from_count, const spx_type *ft, int64_t from_at, int64_t n)
{
  if (n <= 0) return;
  if (plain(tt) && plain(ft))
    spx_copy((char *)to + to_at, (const char *)from + from_at, (size_t)n);
  else if (plain(tt))
    spx_pack(from, from_count, ft, from_at, from_at + n, (char *)to + to_at);
  else if (plain(ft))
    spx_unpack(to, to_count, tt, to_at, to_at + n, (const char *)from + from_at);
  else
    by_pieces(to, to_count, tt, to_at, from, from_count, ft, from_at, n);
}
