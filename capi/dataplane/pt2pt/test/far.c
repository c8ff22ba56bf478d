/* Messages whose data are not contiguous are read run by run out of a sender that does nothing: it
 * waits outside of the library until the receiver has them all. With each kind of layout, into each
 * kind of buffer, shorter and longer than the message; and the copy that goes past the caches, at
 * any alignment. MPI-5.0 3.5 (progress), 4.1.11 (types need not be the same). */
// sanitize: address,undefined
// timeout: 120
#include "job.h"
#include <sched.h>

enum { RUN = 20000, RUNS = 40, BYTES = RUN * RUNS, MANY = 300, MEMORY = 4 << 20 };

static _Atomic int *received;

/* Runs of their own lengths, RUN on average, every second one behind the next: a layout of more
 * words than are read at first. */
static spx_type *index_type(int64_t n, int64_t run)
{
  enum { HEAD = sizeof(spx_layout) / 8 };
  int64_t words = HEAD + SPX_NODE_WORDS + 2 * n + 1, *w = calloc((size_t)words, 8),
          *disp = w + HEAD + SPX_NODE_WORDS;
  *(spx_layout *)w = (spx_layout){.words = words, .root = HEAD, .offset = 64};
  int64_t *prefix = disp + n;
  for (int64_t i = 0; i < n; i++) {
    disp[i] = (i ^ 1) * (run + 600);
    prefix[i + 1] = prefix[i] + run + (i % 2 ? -500 : 500);
  }
  *(spx_node *)(w + HEAD) = (spx_node){.kind = SPX_L_INDEX,
                                       .size = prefix[n],
                                       .n = n,
                                       .disp = HEAD + SPX_NODE_WORDS,
                                       .prefix = HEAD + SPX_NODE_WORDS + n};
  spx_type *t = calloc(1, sizeof *t);
  *t = (spx_type){.o.refs = 1,
                  .flags = SPX_T_COMMITTED,
                  .basic = (uint16_t)job_bytes->basic,
                  .size = prefix[n]};
  t->extent = t->true_extent = n * (run + 600) + 600;
  t->layout = (spx_layout *)w;
  return t;
}

typedef struct {
  spx_type *type;
  int64_t count;
} form;

enum { FORMS = 4, ALL = 8 };
static void make_forms(form *f)
{
  f[0] = (form){job_vector(RUNS, RUN, RUN + 5000), 1};
  f[1] = (form){index_type(RUNS, RUN), 1};
  f[2] = (form){index_type(MANY, BYTES / MANY * 2), 1}; /* more than most receives take */
  f[3] = (form){job_vector(1, RUN, RUN + 64), RUNS};
  f[4] = (form){job_bytes, BYTES};
  f[5] = (form){job_vector(BYTES / 100, 100, 130), 1};   /* short runs */
  f[6] = (form){job_vector(RUNS / 2, RUN, RUN + 32), 1}; /* too small */
  f[7] = f[1];
}

static char *filled(const form *f, uint64_t key)
{
  char *buf = malloc(2 * MEMORY), *packed = malloc((size_t)(f->count * f->type->size));
  CHECK(f->count * f->type->extent <= 2 * MEMORY - 1024);
  memset(buf, 0xee, 2 * MEMORY);
  for (int64_t i = 0; key && i < f->count * f->type->size; i++)
    packed[i] = (char)pattern(key, (uint64_t)i);
  if (key) spx_unpack(buf, f->count, f->type, 0, f->count * f->type->size, packed);
  free(packed);
  return buf;
}

static void send_all(spx_comm *c, const form *f)
{
  spx_request *r[FORMS * ALL];
  char *bufs[FORMS];
  for (int i = 0; i < FORMS; i++) bufs[i] = filled(&f[i], (uint64_t)i + 1);
  for (int k = 0; k < FORMS * ALL; k++)
    CHECK(spx_isend(bufs[k / ALL], f[k / ALL].count, f[k / ALL].type, 1, k, c, SPX_CTX_P2P,
                    SPX_M_STANDARD, 0, &r[k]) == 0);
  while (*received < FORMS * ALL) sched_yield();
  for (int k = 0; k < FORMS * ALL; k++) {
    CHECK(spx_wait(r[k]) == 0);
    spx_request_free(r[k]);
  }
  for (int i = 0; i < FORMS; i++) free(bufs[i]);
}

static void receive_all(spx_comm *c, const form *f)
{
  for (int k = 0; k < FORMS * ALL; k++) {
    const form *from = &f[k / ALL], *to = &f[k % ALL];
    int64_t n = from->count * from->type->size, room = to->count * to->type->size,
            take = n < room ? n : room;
    char *buf = filled(to, 0), *packed = malloc((size_t)take);
    MPI_Status st;
    CHECK(spx_recv(buf, to->count, to->type, 0, k, c, SPX_CTX_P2P, &st) ==
          (n > room ? MPI_ERR_TRUNCATE : MPI_SUCCESS));
    CHECK(spx_status_bytes(&st) == take);
    spx_pack(buf, to->count, to->type, 0, take, packed);
    CHECK(pattern_is(packed, (uint64_t)(k / ALL) + 1, (size_t)take));
    if (take < room) { /* nothing behind the message was touched */
      spx_pack(buf, to->count, to->type, take, take + 1, packed);
      CHECK((uint8_t)packed[0] == 0xee);
    }
    free(packed);
    free(buf);
    ++*received;
  }
  CHECK(spx_stat.gets == FORMS * ALL);
}

static void past_cache(void)
{
  static uint8_t from[1000], to[1200];
  pattern_fill(from, 3, (size_t)(sizeof from));
  for (size_t at = 0; at < 70; at++)
    for (size_t n = 0; n < 300; n++) {
      memset(to, 0xee, sizeof to);
      spx_copy_past_cache(to + at, from + n % 7, n);
      CHECK(memcmp(to + at, from + n % 7, n) == 0 && to[at + n] == 0xee &&
            (at == 0 || to[at - 1] == 0xee));
    }
  uint64_t whole = spx_cache_part(1);
  CHECK(whole >= 1 << 14 && spx_cache_part(2) <= whole && spx_cache_part(2) >= whole / 2);
}

/* A stream whose pieces are stored past the caches arrives like any other. */
static void streamed(spx_comm *c)
{
  form f = {job_bytes, BYTES + 3};
  spx_set.past_cache = 100000;
  spx_set.cma = 0;
  char *buf = filled(&f, c->rank == 0 ? 9 : 0) + 1;
  if (c->rank == 0)
    CHECK(spx_send(buf, BYTES, job_bytes, 1, 5, c, SPX_CTX_P2P, SPX_M_STANDARD) == 0);
  else {
    CHECK(spx_recv(buf, BYTES, job_bytes, 0, 5, c, SPX_CTX_P2P, MPI_STATUS_IGNORE) == 0);
    for (int64_t i = 0; i < BYTES; i++) CHECK((uint8_t)buf[i] == pattern(9, (uint64_t)i + 1));
    CHECK((uint8_t)buf[BYTES] == 0xee);
  }
  free(buf - 1);
}

static void body(spx_comm *c)
{
  form f[ALL];
  past_cache();
  make_forms(f);
  /* a ring is open: all announcements have room */
  for (int i = 0; i < 2 * SPX_RING_AFTER; i++) barrier(c);
  CHECK(spx_txs[1 - c->rank].ring >= 0);
  if (c->rank == 0)
    send_all(c, f);
  else
    receive_all(c, f);
  barrier(c);
  spx_rxs[1 - c->rank].cma = 0;
  streamed(c);
  barrier(c);
}

int main(void)
{
  /* requested as a stream first, or got at once */
  static const char *const streams[] = {"64M", "0"};
  received = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (received == MAP_FAILED) return 1;
  for (int i = 0; i < 2; i++) {
    setenv("SPX_STREAM_MAX", streams[i], 1);
    *received = 0;
    if (run_job((job){.procs = 2}, body) != 0) return 1;
  }
  return 0;
}
