/* pack.h - the compiled form of a datatype, and what runs it.
 *
 * core/datatype (Go) compiles a committed datatype into a layout: one block of 64-bit words in C
 * memory, without pointers, freed with the datatype. The packer seeks in it in O(depth + log
 * blocks) and copies runs at memory speed. The Go side writes exactly these words
 * (core/datatype/image.go): change both together.
 *
 * A node describes bytes in the order in which they are packed, at displacements from its own
 * origin. MPI-5.0: 5.1 (typemaps), 5.2 (pack and unpack), 5.3 and 14.5.2 (external32).
 */
#ifndef SPX_PACK_H
#define SPX_PACK_H
#include "spx.h"

typedef enum {
  SPX_L_RUN = 1,   /* size bytes in a row */
  SPX_L_REP = 2,   /* n times child, each stride bytes after the one before (any sign) */
  SPX_L_BLOCK = 3, /* n times child, at the displacements disp[0..n) */
  /* n runs of their own lengths: at disp[i], packed bytes prefix[i] to prefix[i+1] */
  SPX_L_INDEX = 4,
  SPX_L_LIST =
      5 /* n nodes of their own kinds: kids[i] at disp[i], packed bytes prefix[i] to prefix[i+1] */
} spx_layout_kind;

typedef struct spx_node {
  int64_t kind; /* spx_layout_kind */
  int64_t size; /* packed bytes, > 0 */
  int64_t n;
  int64_t stride;
  int64_t child; /* these four: index of the first word in the layout */
  int64_t disp;
  int64_t prefix; /* n + 1 entries */
  int64_t kids;   /* node of each entry */
  /* SPX_B_* of all the data in this node; 0: several, see the children. Only in typed layouts. */
  int64_t basic;
  int64_t elements; /* basic elements in this node. Only in typed layouts. */
  /* Of a block of short runs or of nodes with moves: the displacements of 32 bits; or 0. */
  int64_t near;
  int64_t moves; /* of a node of few short runs: a number of passes, and they; or 0 */
} spx_node;
#define SPX_NODE_WORDS (int64_t)(sizeof(spx_node) / sizeof(int64_t))

/* Some of what moves all bytes of a node: up to four moves of as many bytes each, or two of which
 * the second one is shorter, from mem[i] in memory to packed[i]. Moves of a node may overlap. */
typedef struct spx_pass {
  int64_t bytes, last; /* of a move, of the last one: 1, 2, 4, 8 or 16 */
  int64_t moves;       /* 1 to 4 */
  int64_t mem[4], packed[4];
} spx_pass;

struct spx_layout {
  int64_t words;  /* length of the block */
  int64_t root;   /* index of the root node's first word; 0: no data */
  int64_t offset; /* displacement of the root from the buffer's address */
  int64_t ext32;  /* bytes of one element in external32; only in typed layouts */
};

static inline const int64_t *spx_layout_words(const spx_layout *l, int64_t index)
{
  return (const int64_t *)l + index;
}
static inline const spx_node *spx_layout_node(const spx_layout *l, int64_t index)
{
  return (const spx_node *)((const int64_t *)l + index);
}

/* The entry that holds packed byte at: the last i < n with prefix[i] <= at. */
SPX_HIDDEN int64_t spx_layout_entry(const int64_t *prefix, int64_t n, int64_t at);

#define SPX_LAYOUT_MOST (64 * 1024) /* words: a larger one is as expensive as the data */
/* The buffer of r, which is not contiguous, may be read run by run, as far as its runs are
 * concerned: they are long. */
SPX_HIDDEN bool spx_has_long_runs(const spx_request *r);

/* Makes the layouts of an object for a pair type (one value, one index): spx_basics[t->basic] says
 * where they are. */
SPX_HIDDEN void spx_layout_of_pair(spx_type *t);

/* ---- external32 (external.c) ---- */
/* Bytes of one element of t in external32. */
SPX_HIDDEN int64_t spx_external_size(const spx_type *t);
/* Converts count elements of t at buf to external32 at out, or back. Both buffers are large
 * enough. */
SPX_HIDDEN void spx_external_pack(const void *buf, int64_t count, const spx_type *t, void *out);
SPX_HIDDEN void spx_external_unpack(void *buf, int64_t count, const spx_type *t, const void *in);
#endif
