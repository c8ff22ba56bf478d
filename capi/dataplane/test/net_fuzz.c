/* What comes over a connection and is not what a process of the job would say (net.c, net_long.c,
 * net_relay.c, net_streams.c and the handlers of records): records of all kinds with numbers that
 * are nearly right, among ones that are right; lengths, kinds, bytes and bits changed; records left
 * out, doubled, cut off; portions on a further stream; greetings. Each case is a process of its own
 * with messages under way, which a seed decides. Nothing may follow but the end of that connection,
 * or messages as the records say: another process's message still comes, and is answered.
 *
 *   net_fuzz [FIRST [N [STEPS]]]   one case, or N, with the seeds from FIRST on; of so many steps
 * each, over as many connections as it takes SPX_RECORDS=R net_fuzz         as many such cases as R
 * records take (make fuzz-records) */
// sanitize: address,undefined
// timeout: 300
#define JOB_WHOLE   1
#define JOB_SOCKETS 1
#include "job.h"
#include <fcntl.h>
#include "mcast.h"
#include "net_conn.h"
#include "stat.h"

enum {
  CASES = 1000,
  PROCS = 4,
  BAD = 1,  /* the process that says what it should not */
  AWAY = 2, /* is reached through others, or not at all */
  GOOD = 3, /* the one whose message has to come */
  STEPS = 150,
  ROOM = 4 << 20,
  IDS = 64
};
/* What there is beside one connection. */
enum {
  PLAIN,
  RELAYS,
  FURTHER,
  HOSTS /* AWAY shares memory with this process, the others are on other hosts */,
  SCENES
};

static uint64_t dice;
static uint32_t below(uint32_t n)
{
  return n ? rnd(&dice) % n : 0;
} /* numbers that go round come by 0 */
static bool once_in(uint32_t n) { return below(n) == 0; }

/* the layer of records has hardly anything to say against what is said: the connection goes on for
 * longer */
static bool tame;
static int scene, ends[PROCS], further = -1; /* the played ends */
static spx_comm *world, *apart;              /* apart: of GOOD and this process */
static uint32_t steps = STEPS;
static uint32_t seq, away_seq, away_position; /* of the next record, and of AWAY's stream */
static uint32_t position_first(void) { return (uint32_t)spx_count_from(32, 5000); }
static _Atomic uint64_t *said; /* records, by all cases */

/* ---- the process under test ---- */

enum { MESSAGES = 10 };
static spx_request *requests[2 * MESSAGES];
static void *rooms[2 * MESSAGES];
static int n_requests;

static spx_type *some_type(void)
{
  static spx_type *forms[4];
  if (!forms[0])
    forms[0] = forms[1] = job_bytes, forms[2] = job_vector(100, 24, 40),
    forms[3] = job_vector(3, 5000, 6001);
  return forms[below(4)];
}

/* Memory that ends where the message does. */
static void *room_for(const spx_type *t, int64_t count)
{
  return calloc(1, count ? (size_t)((count - 1) * t->extent + t->true_extent) : 1);
}

/* To all others, and whether they have received it. */
static spx_rankset *others(void)
{
  spx_rankset *s = (spx_rankset *)spx_new(SPX_K_RANKSET);
  s->procs = malloc(PROCS * sizeof *s->procs);
  s->ctx = world->ctx;
  for (uint32_t k = 1; k < PROCS; k++)
    if (k != AWAY || scene == RELAYS || scene == HOSTS) s->procs[s->n++] = k;
  return s;
}

static void post(void)
{
  static const int64_t sizes[] = {0, 8, 100, 3000, 20000, 120000, 400000};
  spx_type *t = some_type();
  int64_t count = sizes[below(7)] / t->size;
  int from = once_in(4) ? MPI_ANY_SOURCE : BAD, tag = once_in(6) ? MPI_ANY_TAG : (int)below(4);
  void *buf = room_for(t, count);
  spx_request **r = &requests[n_requests];
  rooms[n_requests++] = buf;
  if (once_in(5)) {
    spx_mcast_args a = {buf, count, t, others(), tag < 0 ? 0 : tag, world, once_in(2)};
    CHECK(spx_mcast_init(&a, SPX_RF_ACTIVE, r) == MPI_SUCCESS && spx_start(*r) == MPI_SUCCESS);
  } else if (once_in(2))
    CHECK(spx_irecv(buf, count, t, from, tag, world, SPX_CTX_P2P, 0, r) == 0);
  else
    CHECK(spx_isend(buf, count, t, BAD, tag < 0 ? 0 : tag, world, SPX_CTX_P2P,
                    once_in(3) ? SPX_M_SYNC : SPX_M_STANDARD, 0, r) == 0);
}

/* What is over makes room for more. */
static void sweep(void)
{
  int n = 0;
  for (int i = 0; i < n_requests; i++)
    if (spx_is_done(requests[i])) {
      spx_request_free(requests[i]);
      free(rooms[i]);
    } else {
      requests[n] = requests[i];
      rooms[n++] = rooms[i];
    }
  n_requests = n;
}

static void spx_routes_of_scene(void)
{
  spx_routes *t = calloc(1, sizeof *t + PROCS * sizeof t->to[0]);
  t->n = PROCS;
  for (uint32_t i = 0; i < PROCS; i++)
    t->to[i] = (spx_route){.kept = i != AWAY, .n = 2, .needs = {1, 1}, .via = {BAD, GOOD}};
  spx_net_policy((spx_net_ways){.heeds = true, .relays = true, .cache = 1});
  spx_net_route(t);
}

static int connect_with(uint32_t peer)
{
  int pair[2];
  CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) == 0);
  spx_net_adopt(pair[0], peer, 1);
  return pair[1];
}

static void begin(void)
{
  job j = {.procs = PROCS, .maxprocs = PROCS, .ncpus = 2, .ring_bytes = SPX_RING_BYTES};
  job_memory m = job_memory_of(&j, 0);
  for (uint32_t i = 0; i < PROCS; i++) {
    m.procs[i].pid = (uint32_t)getpid();
    __atomic_store_n(&m.procs[i].agent_state, SPX_AGENT_STARTED, __ATOMIC_RELEASE);
    m.procs[i].owner_state = i == 0 ? m.procs[i].owner_state : SPX_OWNER_INIT;
    if (scene == HOSTS) m.procs[i].host = i == BAD ? 1 : i == GOOD ? 2 : 0;
  }
  if (scene == HOSTS) m.seg->flags = SPX_SEG_HOSTS;
  spx_basic_init();
  job_bytes = (spx_type *)spx_get(SPX_K_TYPE, MPI_BYTE);
  CHECK(job_attach(m.fd, 0) == 0);
  uint32_t both[] = {0, GOOD}, self = 0;
  spx_self = job_comm(4, &self, 1, 0);
  spx_world = world = job_comm(8, NULL, PROCS, 0);
  apart = job_comm(1ull << 40, both, 2, 0);
  for (uint32_t k = 0; k < PROCS; k++) spx_txs[k].life = 1;
  seq = away_seq = spx_first_record();
  away_position = position_first();
  if (scene == RELAYS) spx_routes_of_scene();
  ends[BAD] = connect_with(BAD);
  ends[GOOD] = connect_with(GOOD);
  if (scene == FURTHER) {
    int pair[2];
    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) == 0);
    spx_net_adopt_further(pair[0], BAD, 1, false);
    further = pair[1];
  }
}

/* ---- what is said ---- */

typedef struct {
  uint8_t *bytes;
  uint32_t n, at;
} text;
static text to_say, beside; /* over the connection, and over the further stream */
typedef struct {
  spx_rec_id id[IDS];
  uint32_t n;
} names;
static names sends, receives; /* that the process has told of */

static void put(text *t, const void *bytes, uint32_t n)
{
  if (t->n + n > ROOM) return;
  memcpy(t->bytes + t->n, bytes, n);
  t->n += n;
}

static void put_noise(text *t, uint32_t n)
{
  for (uint32_t i = 0; i < n && t->n < ROOM; i++) t->bytes[t->n++] = (uint8_t)rnd(&dice);
}

/* Something is to be wrong, once in n times, and seldom where little is. */
static bool wrong_in(uint32_t n) { return once_in(tame ? 100 * n : n); }

/* Of what the process has told, or any. */
static spx_rec_id some_id(const names *of)
{
  spx_rec_id id = {below(6), 1 + below(3), once_in(3) ? (int32_t)rnd(&dice) : 0};
  if (tame && !wrong_in(1)) id = (spx_rec_id){1 << 20, 1, 0}; /* of what is over */
  if (of->n && !wrong_in(5)) id = of->id[below(of->n)];
  return id;
}

static uint64_t some_length(void)
{
  static const uint64_t lengths[] = {
      0, 1, 64, 5000, 120000, 1 << 20, 1ull << 33, UINT64_MAX, SPX_RTS_APART | 5000};
  return once_in(2) ? lengths[below(wrong_in(1) ? 9 : 7)] : below(130000);
}

/* The parts of a record that its kind gives a meaning. */
typedef struct {
  uint64_t ctx;
  int32_t tag, src;
  uint32_t n, behind; /* bytes of data; of a message, behind the record */
  uint8_t data[16384];
} part;

static void add(part *p, const void *bytes, size_t n)
{
  memcpy(p->data + p->n, bytes, n);
  p->n += (uint32_t)n;
}

static void fill(part *p, uint32_t n)
{
  for (uint32_t i = 0; i < n; i++) p->data[p->n++] = (uint8_t)i;
}

static uint32_t record(uint8_t *to, spx_rec_kind kind, const part *p, uint32_t number)
{
  spx_rec *rec = (spx_rec *)to;
  memset(rec, 0, SPX_REC_BYTES(p->n));
  *rec = (spx_rec){.valid = SPX_REC_BYTES(p->n),
                   .kind = (uint16_t)kind,
                   .epoch = 1,
                   .as.envelope = {p->ctx, p->tag, p->src},
                   .seq = number,
                   .len = p->n};
  memcpy(rec->data, p->data, p->n);
  ++*said;
  return rec->valid;
}

static part of_kind(spx_rec_kind kind, int depth);

/* A multicast: who is to get it, and the data, or where they are. */
static void add_mcast(part *p)
{
  static uint32_t number = 1;
  spx_mcast_head h = {.ctx = world->ctx + SPX_CTX_P2P,
                      .tag = (int32_t)below(4),
                      .src = (int32_t)below(PROCS),
                      .master = once_in(2)    ? SPX_MCAST_DIRECT
                                : wrong_in(1) ? below(PROCS + 1)
                                              : GOOD,
                      .number =
                          wrong_in(4) ? rnd(&dice) : spx_mcast_after(spx_mcast_first() + number++),
                      .epoch = 1,
                      .flags = (uint16_t)(once_in(2) ? 0 : below(wrong_in(3) ? 1024 : 256))};
  /* all that follows waits for another channel */
  if (!once_in(200)) h.flags &= (uint16_t)~SPX_MCAST_THERE;
  spx_mcast_item items[3];
  uint32_t n = below(3);
  for (uint32_t i = 0; i < n; i++)
    items[i] = (spx_mcast_item){
        .first = 1 + i, .number = 1, .count = (uint16_t)(wrong_in(5) ? below(5) : 1)};
  if (tame && n) n = 1, items[0].first = AWAY;
  if (n && wrong_in(3)) items[0].stride = (uint16_t)below(3);
  h.set = wrong_in(10) ? rnd(&dice) : n * (uint32_t)sizeof *items;
  if (h.flags & SPX_MCAST_ALONG && !wrong_in(4)) h.flags |= SPX_MCAST_ANNOUNCED;
  if (h.flags & SPX_MCAST_PARTS && !wrong_in(4))
    h.flags = (uint16_t)(h.flags & ~SPX_MCAST_RING) | SPX_MCAST_CHAIN;
  add(p, &h, sizeof h);
  add(p, items, n * sizeof *items);
  spx_rec_id id = some_id(&sends);
  uint64_t behind = (spx_segment->total_bytes + 4095) / 4096 * 4096;
  spx_mcast_rts where = {.rts = {.index = id.index, .gen = id.gen, .bytes = some_length()},
                         .staging = once_in(2)   ? 0
                                    : once_in(2) ? rnd(&dice)
                                                 : behind + below(16) * 4096,
                         .room = once_in(2) ? some_length() : below(64) * 4096,
                         .at = once_in(2) ? some_length() : below(100) * 64,
                         .keeper = wrong_in(1) ? below(PROCS + 1) : SPX_NO_PEER,
                         .source = wrong_in(3) ? below(PROCS + 1) : GOOD};
  if (once_in(4)) where.rts.addr = rnd(&dice), where.rts.type = once_in(2) ? rnd(&dice) : 0;
  spx_mcast_item leads[3];
  uint32_t k = once_in(4) ? below(3) : 2;
  for (uint32_t i = 0; i < k; i++)
    leads[i] = (spx_mcast_item){
        .first = i, .number = 1 + below(3), .count = (uint16_t)(wrong_in(5) ? below(5) : 1)};
  if (k == 2 && once_in(2)) leads[1].first = AWAY;
  if (h.flags & SPX_MCAST_ANNOUNCED) add(p, &where, sizeof where);
  if (h.flags & SPX_MCAST_PARTS && !wrong_in(4))
    add(p, leads, k * sizeof *leads);
  else if (!(h.flags & SPX_MCAST_ANNOUNCED))
    fill(p, below(2000));
}

static void add_via(part *p, int depth)
{
  static _Alignas(64) uint8_t nested[2 * sizeof(part)];
  uint32_t src = once_in(4) ? below(PROCS + 1) : AWAY, dst = once_in(3) ? below(PROCS + 1) : 0,
           n = 0;
  uint32_t flags = once_in(3) ? below(wrong_in(1) ? 16 : 8) : 0,
           position = once_in(6) ? rnd(&dice) : away_position;
  if (!wrong_in(3)) dst = dst < PROCS ? dst : 0, src = src < PROCS ? src : AWAY;
  bool own = src == AWAY && dst == 0 && flags == 0 && position == away_position;
  part inner =
      of_kind((spx_rec_kind)(SPX_REC_EAGER + below(SPX_REC_LAST - SPX_REC_EAGER + 1)), depth + 1);
  if (inner.n < 12000 && !(flags & 1 /* an acknowledgement */ && !wrong_in(2)))
    n = record(nested, SPX_REC_EAGER + below(SPX_REC_LAST - SPX_REC_EAGER + 1), &inner, away_seq);
  if (own) away_position += n, away_seq += n > 0;
  p->tag = (int32_t)(dst | below(wrong_in(2) ? 8 : 3) << 24 | flags << 27);
  p->src = (int32_t)src;
  p->ctx = position | 1ull << 32 | 1ull << 48;
  if (once_in(20)) p->ctx ^= 1ull << (32 + below(32));
  add(p, nested, n);
}

static part of_kind(spx_rec_kind kind, int depth)
{
  part p = {.ctx = world->ctx + (once_in(10) ? below(SPX_CTX_STEP) : SPX_CTX_P2P),
            .tag = (int32_t)below(4),
            .src = BAD};
  bool of_receive = kind == SPX_REC_DATA || kind == SPX_REC_LONG || kind == SPX_REC_ABORTED;
  spx_rec_id id = some_id(of_receive ? &receives : &sends), other = {below(6), 1 + below(3), 0};
  switch (kind) {
  case SPX_REC_EAGER: fill(&p, below(3000)); break;
  case SPX_REC_EAGER_SYNC:
    add(&p, &id, sizeof id);
    fill(&p, 4 + below(3000));
    break;
  case SPX_REC_RTS: {
    spx_rec_rts rts = {.index = id.index, .gen = id.gen, .bytes = some_length()};
    if (once_in(8)) rts.addr = rnd(&dice), rts.type = once_in(2) ? rnd(&dice) : 0;
    if (!wrong_in(2)) rts.bytes &= ~SPX_RTS_APART;
    if (once_in(4)) rts.bytes |= SPX_RTS_APART;
    add(&p, &rts, sizeof rts);
    break;
  }
  case SPX_REC_CTS: {
    spx_rec_cts cts = {id.index, id.gen, other.index, other.gen, some_length()};
    p.tag = once_in(2) ? 0 : (int32_t)below(8);
    add(&p, &cts, sizeof cts);
    break;
  }
  case SPX_REC_DATA:
  case SPX_REC_LONG:
    p.tag = (int32_t)id.index;
    p.src = (int32_t)id.gen;
    if (kind == SPX_REC_DATA) fill(&p, below(8000));
    p.ctx = kind == SPX_REC_LONG
                ? (once_in(tame ? 200 : 12) ? some_length() : 64 + below(tame ? 40 : 1500) * 64)
                : 0;
    if (kind == SPX_REC_LONG) p.behind = p.ctx < 200000 ? (uint32_t)p.ctx : 0;
    break;
  case SPX_REC_CANCEL: {
    spx_rec_cancel ask = {id.index, id.gen, below(seq + 2)};
    add(&p, &ask, sizeof ask);
    break;
  }
  case SPX_REC_CTRL:
    p.tag = !wrong_in(2) ? 0
            : once_in(2) ? (int32_t)below(4000)
                         : (int32_t)rnd(&dice) - (int32_t)below(4000);
    if (wrong_in(6)) p.tag = -(int32_t)below(3000);
    fill(&p, below(3000));
    break;
  case SPX_REC_MCAST:
    add_mcast(&p);
    p.tag = wrong_in(6) ? (int32_t)rnd(&dice) : wrong_in(6) ? (int32_t)below(3000) : 0;
    break;
  case SPX_REC_MCAST_ASK: {
    uint32_t early = wrong_in(4) ? rnd(&dice) : spx_mcast_after(spx_mcast_first() + below(100));
    spx_rec_ask ask = {below(PROCS + 1),       id.index,     id.gen, other.index, other.gen,
                       once_in(2) ? 0 : early, some_length()};
    p.ctx = some_length();
    p.tag = (int32_t)below(wrong_in(3) ? 5 : 3);
    add(&p, &ask, sizeof ask);
    break;
  }
  case SPX_REC_MCAST_HAVE: {
    spx_rec_have have = {below(PROCS + 1), id.index, id.gen, 0};
    spx_mcast_item item = {.first = below(PROCS), .number = 1, .count = 1};
    p.src = (int32_t)below(3);
    p.tag = (int32_t)below(2);
    add(&p, &have, sizeof have);
    if (!once_in(3)) add(&p, &item, sizeof item);
    break;
  }
  case SPX_REC_MCAST_ACK:
  case SPX_REC_CREDIT: {
    uint64_t matched = once_in(3) ? some_length() : below(10000);
    if (kind == SPX_REC_CREDIT && !once_in(tame ? 50 : 4)) { /* all, as a rule */
      const spx_tx *tx = &spx_txs[BAD];
      matched = spx_position_word(1, once_in(2) || tx->slow & SPX_TX_NEW ? tx->sent : tx->matched);
    }
    p.src = (int32_t)below(2);
    if (kind == SPX_REC_MCAST_ACK)
      p.tag = wrong_in(3) ? (int32_t)below(100) : (int32_t)spx_mcast_first();
    add(&p, &matched, sizeof matched);
    break;
  }
  case SPX_REC_VIA:
    if (depth < 3) add_via(&p, depth);
    break;
  case SPX_REC_CLOSE: p.tag = (int32_t)below(2); break;
  case SPX_REC_PROMPT:
    p.tag = (int32_t)below(2);
    if (wrong_in(3)) add(&p, &id, sizeof id);
    break;
  case SPX_REC_CHECK: fill(&p, wrong_in(3) ? below(200) : sizeof(spx_diag_check)); break;
  case SPX_REC_CANCELLED:
    id.error = wrong_in(2) ? 0 : 1;
    add(&p, &id, sizeof id);
    break;
  default:
    if (!wrong_in(3)) id.error = 0;
    add(&p, &id, sizeof id);
    break;
  }
  return p;
}

/* A record as it should be, or with something wrong that the next layer sees. */
static void say_record(bool spoil)
{
  static _Alignas(64) uint8_t bytes[2 * sizeof(part)];
  spx_rec_kind kind = (spx_rec_kind)(SPX_REC_EAGER + below(SPX_REC_LAST - SPX_REC_EAGER + 1));
  if (kind == SPX_REC_CLOSE && !once_in(8)) kind = SPX_REC_EAGER;
  /* nothing was sent to it */
  if (kind == SPX_REC_CREDIT && !spx_txs[BAD].conn && !wrong_in(2)) kind = SPX_REC_EAGER;
  part p = of_kind(kind, 0);
  uint32_t n = record(bytes, kind, &p, seq++);
  spx_rec *rec = (spx_rec *)bytes;
  switch (spoil ? below(10) : 10) {
  case 0: rec->len = once_in(2) ? rnd(&dice) : below(rec->valid); break;
  case 1: rec->valid = once_in(2) ? rnd(&dice) : below(70000) / 64 * 64; break;
  case 2: rec->kind = (uint16_t)below(SPX_REC_LAST + 3); break;
  case 3: rec->seq += once_in(2) ? 1 : rnd(&dice); break;
  case 4: rec->epoch = (uint16_t)rnd(&dice); break;
  case 5: bytes[below(n)] ^= (uint8_t)(1 << below(8)); break;
  case 6: n = below(n); break;           /* cut off */
  case 7: put(&to_say, bytes, n); break; /* said twice */
  case 8: n = 0; break;                  /* left out */
  case 9: put_noise(&to_say, below(300)); break;
  default: break;
  }
  put(&to_say, bytes, n);
  if (p.behind) put_noise(&to_say, once_in(tame ? 200 : 15) ? below(p.behind) : p.behind);
}

/* Kinds of which only the payload may be another: the connection goes on. */
static void say_other_payload(void)
{
  static _Alignas(64) uint8_t bytes[2 * sizeof(part)];
  spx_rec_kind kind = (spx_rec_kind)(SPX_REC_EAGER + below(SPX_REC_LAST - SPX_REC_EAGER + 1));
  if (kind == SPX_REC_CLOSE || kind == SPX_REC_LONG) kind = SPX_REC_MCAST;
  part p = of_kind(kind, 0);
  switch (below(4)) {
  case 0: p.n = below(p.n + 1); break;
  case 1:
    if (p.n) p.data[below(p.n)] ^= (uint8_t)(1 << below(8));
    break;
  case 2:
    if (once_in(2))
      p.tag = (int32_t)rnd(&dice);
    else
      p.src = (int32_t)rnd(&dice);
    break;
  default: p.ctx = once_in(2) ? rnd(&dice) : p.ctx ^ 1ull << below(64); break;
  }
  if (kind == SPX_REC_EAGER_SYNC && p.n < 16) p.n = 16;
  uint32_t n = record(bytes, kind, &p, seq++);
  put(&to_say, bytes, n);
}

/* A portion on the further stream (net_streams.c): the seal of the one before, its head, and
 * bytes. */
static void say_portion(void)
{
  static bool first = true;
  uint64_t seal = once_in(tame ? 200 : 20) ? rnd(&dice) : 1 + below(2);
  spx_rec_id id = some_id(&receives);
  struct {
    uint32_t magic, n, index, gen;
    uint64_t at, none;
  } h = {0x50585053u, once_in(tame ? 200 : 30) ? rnd(&dice) : 1 + below(tame ? 3000 : 90000),
         id.index,    id.gen,
         0,           once_in(tame ? 300 : 40)};
  if (!once_in(3)) h.at = once_in(tame ? 40 : 4) ? some_length() : below(tame ? 5000 : 130000);
  if (once_in(tame ? 300 : 40)) h.magic ^= 1u << below(32);
  if (!first) put(&beside, &seal, sizeof seal);
  first = false;
  put(&beside, &h, sizeof h);
  if (h.n < 100000) put_noise(&beside, once_in(tame ? 300 : 30) ? below(h.n) : h.n);
}

/* ---- a case ---- */

static void write_some(int fd, text *t)
{
  if (fd < 0 || t->at == t->n) return;
  uint32_t n = once_in(3) ? 1 + below(t->n - t->at) : t->n - t->at;
  ssize_t sent = send(fd, t->bytes + t->at, n, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent > 0) t->at += (uint32_t)sent;
  if (t->at == t->n) t->at = t->n = 0;
}

static void note(names *of, uint32_t index, uint32_t gen)
{
  of->id[of->n < IDS ? of->n++ : below(IDS)] = (spx_rec_id){index, gen, 0};
}

/* What the process says of messages and receives is remembered. */
static void listen_to(uint8_t *got, ssize_t n)
{
  for (ssize_t i = 0; i + SPX_LINE <= n; i += SPX_LINE) {
    const spx_rec *rec = (const spx_rec *)(got + i);
    spx_rec_cts cts;
    memcpy(&cts, rec->data, sizeof cts);
    if (rec->epoch != 1 || rec->valid % SPX_LINE) continue;
    if (rec->kind == SPX_REC_RTS || rec->kind == SPX_REC_EAGER_SYNC)
      note(&sends, cts.index, cts.gen);
    if (rec->kind == SPX_REC_CTS) note(&receives, cts.rx_index, cts.rx_gen);
  }
}

static void hear(void)
{
  static _Alignas(64) uint8_t got[1 << 16];
  if (ends[BAD] >= 0) listen_to(got, recv(ends[BAD], got, sizeof got, MSG_DONTWAIT));
  if (further >= 0 && recv(further, got, sizeof got, MSG_DONTWAIT) < 0) {}
}

/* A greeting: of what follows, so many bytes have come before. */
static void greet(uint8_t greeting[16], uint32_t again)
{
  uint32_t position = position_first() - again;
  memcpy(greeting, "spx>", 4);
  memcpy(greeting + 4, &position, sizeof position);
}

/* GOOD says something, and is answered. */
static void still_talks(void)
{
  static _Alignas(64) uint8_t bytes[256];
  part p = {.ctx = apart->ctx + SPX_CTX_P2P, .tag = 77, .src = 1};
  int asked = 0, answer = 4711;
  spx_request *r;
  fill(&p, sizeof asked);
  uint32_t n = 0;
  if (scene == RELAYS) {
    uint8_t before[16 + 999] = {0};
    uint32_t again = below(sizeof before - 15);
    greet(before, again);
    CHECK(send(ends[GOOD], before, 16 + again, MSG_NOSIGNAL) == (ssize_t)(16 + again));
  }
  n = record(bytes, SPX_REC_EAGER, &p, spx_first_record());
  CHECK(spx_irecv(&asked, sizeof asked, job_bytes, 1, 77, apart, SPX_CTX_P2P, 0, &r) == 0);
  CHECK(send(ends[GOOD], bytes, n, MSG_NOSIGNAL) == (ssize_t)n);
  for (int i = 0; i < 10000 && !spx_is_done(r); i++) spx_progress();
  CHECK(spx_is_done(r) && r->error == MPI_SUCCESS && memcmp(&asked, p.data, sizeof asked) == 0);
  CHECK(spx_send(&answer, sizeof answer, job_bytes, 1, 78, apart, SPX_CTX_P2P, SPX_M_STANDARD) ==
        0);
  static _Alignas(64) uint8_t got[1 << 20];
  ssize_t all = 0;
  /* what waits before it may be more than the socket holds */
  for (int i = 0; i < 1000; i++, spx_progress()) {
    ssize_t more = recv(ends[GOOD], got + all, sizeof got - (size_t)all, MSG_DONTWAIT);
    if (more <= 0) continue;
    all += more;
    for (ssize_t k = scene == RELAYS ? 16 : 0; k + SPX_LINE <= all; k += SPX_LINE) {
      spx_rec rec;
      memcpy(&rec, got + k, sizeof rec);
      if (rec.kind == SPX_REC_EAGER && rec.as.envelope.tag == 78 &&
          memcmp(got + k + sizeof rec, &answer, sizeof answer) == 0)
        return;
    }
  }
  CHECK(!"the answer has been written");
}

/* The connection has ended because of what was said over it: another one, which goes on with the
 * record that was to come. */
static void connect_again(void)
{
  spx_conn *c = spx_net.conns[BAD];
  close(ends[BAD]);
  c->in_at = c->in_end = 0;
  c->long_in = (spx_long_in){.left = 0};
  to_say.at = to_say.n = 0;
  seq = spx_rxs[BAD].seq;
  ends[BAD] = connect_with(BAD);
  spx_progress();
}

static void one(uint64_t seed)
{
  alarm(20 + steps / 1000); /* whatever hangs ends */
  dice = seed * 0x9e3779b97f4a7c15ull + 1;
  for (int i = 0; i < 4; i++) rnd(&dice);
  scene = (int)below(SCENES);
  if (once_in(2)) setenv("SPX_CREDIT", "4096", 1);
  if (once_in(3)) setenv("SPX_EAGER_MAX", "1000", 1);
  if (once_in(2)) setenv("SPX_DIRECT_MIN", "100", 1);
  if (scene == FURTHER) setenv("SPX_STREAMS", "2", 1);
  if (once_in(4)) setenv("SPX_WRAP", "1", 1);
  to_say.bytes = malloc(ROOM);
  beside.bytes = malloc(ROOM);
  begin();
  spx_progress();
  if (scene == RELAYS) {
    static uint8_t before[2 * SPX_NET_OUT];
    uint8_t greeting[16] = {0};
    uint32_t again = once_in(2) ? 0 : below(once_in(10) ? sizeof before : 1000);
    greet(greeting, again);
    if (once_in(10)) greeting[below(16)] ^= (uint8_t)(1 << below(8));
    put(&to_say, greeting, sizeof greeting);
    put(&to_say, before, again);
  }
  tame = !once_in(3);
  uint64_t refused = 0;
  for (uint32_t i = 0; i < steps; i++) {
    bool over = spx_stat.net_refused != refused || (steps > STEPS && spx_net.conns[BAD]->fd < 0);
    if (over && (steps == STEPS || scene == RELAYS || scene == FURTHER)) break;
    if (over) {
      connect_again();
      refused = spx_stat.net_refused;
      tame = !once_in(3);
    }
    if (n_requests == 2 * MESSAGES && steps > STEPS) sweep();
    if (n_requests < 2 * MESSAGES && once_in(4)) post();
    if (n_requests && once_in(60)) spx_cancel(requests[below((uint32_t)n_requests)]);
    if (!once_in(3)) say_record(!tame && once_in(25));
    if (wrong_in(3)) say_other_payload();
    if (scene == FURTHER && once_in(6)) say_portion();
    write_some(ends[BAD], &to_say);
    write_some(further, &beside);
    if (once_in(2)) spx_progress();
    if (!once_in(4)) hear();
  }
  for (int i = 0; i < 50 && (to_say.n || beside.n); i++) {
    write_some(ends[BAD], &to_say);
    write_some(further, &beside);
    spx_progress();
    hear();
  }
  bool stays = once_in(2);
  if (!stays) close(ends[BAD]);
  for (int i = 0; i < 50; i++) spx_progress();
  still_talks();
  int64_t n;
  static uint8_t control[SPX_CTRL_MAX];
  uint32_t from;
  while ((n = spx_ctrl_recv(control, sizeof control, &from)) >= 0)
    CHECK(from < PROCS && n <= (int64_t)sizeof control);
  _exit(0);
}

int main(int argc, char **argv)
{
  uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
  uint64_t n = argc > 2   ? strtoull(argv[2], NULL, 0)
               : argc > 1 ? 1
                          : (uint64_t)full_or_fifth(CASES);
  if (argc > 3) steps = (uint32_t)strtoul(argv[3], NULL, 0);
  const char *many = getenv("SPX_RECORDS");
  uint64_t records = many ? strtoull(many, NULL, 0) : UINT64_MAX;
  if (many) n = UINT64_MAX / 2, steps = 20000, first = now_ns(); /* others than the last time */
  int wrong = 0;
  said = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  for (uint64_t seed = first; seed < first + n && wrong < 5 && *said < records; seed++) {
    pid_t pid = fork();
    int status;
    if (pid == 0) one(seed);
    CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
    if (status == 0) continue;
    wrong++;
    fprintf(stderr, "the case with seed %llu ended with %#x: net_fuzz %llu 1 %u\n",
            (unsigned long long)seed, status, (unsigned long long)seed, steps);
  }
  if (argc > 1 || many) printf("%llu records\n", (unsigned long long)*said);
  return wrong != 0;
}
