/* net_fuzz_say.h - what the ends that net_fuzz.c plays write: records of all kinds, nearly right.
 */
#ifndef SPX_TEST_NET_FUZZ_SAY_H
#define SPX_TEST_NET_FUZZ_SAY_H

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
  case SPX_REC_BYWAY: /* the process has none: it takes no notice of an offer */
    p.tag = wrong_in(3) ? (int32_t)below(5) : SPX_BYWAY_OFFER;
    fill(&p, wrong_in(3) ? below(200) : sizeof(spx_byway_offer));
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
#endif
