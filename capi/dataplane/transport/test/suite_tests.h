/* suite_tests.h - what the contract (transport.h) promises while all processes live. */
#ifndef SPX_TEST_SUITE_TESTS_H
#define SPX_TEST_SUITE_TESTS_H
#include "suite_traffic.h"

/* How much: few rounds, or SPX_SUITE times as many. */
static uint32_t rounds(uint32_t few)
{
  const char *more = getenv("SPX_SUITE");
  uint32_t times = more ? (uint32_t)atoi(more) : 1;
  return few * (times ? times : 1);
}

static uint32_t longest(void)
{
  return tried->longest ? tried->longest : SPX_RING_BYTES / 4 - SPX_REC_HEADER;
}

static uint32_t mix(uint32_t a, uint32_t b, uint32_t c)
{
  uint64_t s = a * 2654435761u ^ b * 40503u ^ c * 2246822519u;
  rnd(&s);
  return rnd(&s);
}

/* Around all thresholds, and anything in between; mostly short. */
static uint32_t any_length(uint32_t from, uint32_t to, uint32_t k)
{
  static const uint32_t edges[] = {0,   1,    8,    31,   32,   33,   95,    96,   97,
                                   160, 2015, 2016, 2017, 4096, 8160, 16383, 16384};
  uint32_t dice = mix(from * 16 + to, k, 7),
           edge = edges[dice / 16 % (sizeof edges / sizeof edges[0])];
  return dice % 16 < 9     ? edge
         : dice % 16 < 14  ? dice / 16 % 300
         : dice % 16 == 14 ? dice / 16 % 9000
                           : longest() - dice / 16 % 70;
}
static uint32_t short_length(uint32_t from, uint32_t to, uint32_t k)
{
  return mix(from, to, k) % (SPX_REC_INLINE + 1);
}
static uint32_t line_length(uint32_t from, uint32_t to, uint32_t k)
{
  (void)from, (void)to, (void)k;
  return 24;
}
static uint32_t kilobyte(uint32_t from, uint32_t to, uint32_t k)
{
  return 900 + mix(from, to, k) % 200;
}
static uint32_t big(uint32_t from, uint32_t to, uint32_t k)
{
  return 30000 + mix(from, to, k) % 2000;
}
static uint32_t some_text(uint32_t from, uint32_t to, uint32_t k)
{
  return k == 0 ? 0 : mix(from, to, k + 9) % 30000;
}
static uint64_t some_stream(uint32_t from, uint32_t to, uint32_t k)
{
  uint32_t dice = mix(from, to, k + 5);
  return k % 4 == 3 ? 70001 + dice % 400000 : 1 + dice % 40000;
}

static void set_lengths(const test *t)
{
  record_length = t->record ? t->record : any_length;
  text_length = t->text ? t->text : some_text;
  stream_length = t->stream ? t->stream : some_stream;
}

/* ---- reach ---- */

static void reach(void)
{
  uint32_t other = process_of(1 - me);
  CHECK(tried->by->reaches(other));
  for (const spx_transport *const *t = transports; *t != tried->by; t++)
    CHECK(!(*t)->reaches(other));
  spx_tx *tx = &spx_txs[other];
  CHECK(tx->slow == SPX_TX_NEW && !tx->by);
  CHECK(spx_tx_init(other) == MPI_SUCCESS);
  CHECK(tx->slow == 0 && strcmp(tx->by->name, tried->by->name) == 0 && tx->base && tx->pos == 0 &&
        tx->chan && tx->dirty && tx->proc);
  CHECK(tx->size >= SPX_CHAN_DATA && tx->near <= tx->size && tx->seq == spx_first_record());
  CHECK(tx->head == spx_position_first() && tx->tail == tx->head && tx->sent == tx->head &&
        tx->matched == tx->head);
  CHECK(tx->ring < 0 ? tx->by->widen != NULL : tx->by->widen == NULL);
  spx_rx_init(other);
  CHECK(spx_rxs[other].base && spx_rxs[other].epoch == 1 &&
        spx_rxs[other].seq == spx_first_record());
  say(1 - me);
  UNTIL(with[1 - me].heard == 1);
}

/* ---- lengths ---- */

/* All of the first lines, those around every power of two and around the limit, and others in
 * between. */
static uint32_t lengths[4096], n_lengths;
static void collect_lengths(void)
{
  uint32_t dense = 64 * 9, wide = rounds(1) > 1 ? 300 : 3;
  for (uint32_t n = 0, at = 0; n <= longest(); n++) {
    uint32_t power = 1u << (31 - __builtin_clz(n | 1));
    bool edge = n - power < wide || 2 * power - n <= wide || (n + SPX_REC_HEADER) % 4096 < 2;
    bool sample = n >= at;
    if (sample) at = n + 1 + n / 24;
    if ((n <= dense || edge || sample || longest() - n < 70) && n_lengths < 4096)
      lengths[n_lengths++] = n;
  }
  CHECK(lengths[n_lengths - 1] == longest());
}
static uint32_t listed_length(uint32_t from, uint32_t to, uint32_t k)
{
  (void)from, (void)to;
  if (n_lengths == 0) collect_lengths();
  return lengths[k % n_lengths];
}

static void all_lengths(void)
{
  uint32_t all = (listed_length(0, 1, 0), n_lengths);
  for (uint32_t k = 0; k < all; k++) {
    if (me == 0) say(1);
    if (k % 8 == 0) look();
    if (me == 0) UNTIL(!spx_tx_waiting());
  }
  if (me == 1) UNTIL(with[0].heard == all);
}

/* Each method, each number of bytes around a line, with all that stand before and behind it. */
static uint32_t by_method(uint32_t from, uint32_t to, uint32_t k)
{
  (void)from, (void)to;
  return k / HOWS % 200;
}
static void methods(void)
{
  for (uint32_t k = 0; k < 200 * HOWS; k++) {
    if (me == 0) say(1);
    if (k % 16 == 0) look();
  }
  if (me == 1) UNTIL(with[0].heard == 200 * HOWS);
}

/* ---- texts and streams ---- */

static uint32_t growing_text(uint32_t from, uint32_t to, uint32_t k)
{
  (void)from, (void)to;
  static const uint32_t n[] = {0,    1,    31,   32,    33,     64,       200,
                               8191, 8192, 8193, 40000, 131072, TEXT_MOST};
  return n[k % (sizeof n / sizeof n[0])];
}
static uint64_t growing_stream(uint32_t from, uint32_t to, uint32_t k)
{
  (void)from, (void)to;
  static const uint64_t n[] = {1,       32,
                               33,      64,
                               65,      8191,
                               8192,    8193,
                               65535,   65536,
                               65537,   100000,
                               131071,  131072,
                               131073,  1 << 20,
                               1048577, (2 << 20) + 1,
                               3 << 20, (4 << 20) + 63};
  return n[k % (sizeof n / sizeof n[0])];
}

static void texts(void)
{
  for (uint32_t k = 0; k < 13; k++) {
    say_text(1 - me);
    look();
  }
  UNTIL(with[1 - me].texts_heard == 13);
}

/* One after the other, in both directions at once. */
static void streams(void)
{
  for (uint32_t k = 0; k < 20; k++) {
    say_stream(1 - me);
    UNTIL(with[1 - me].over == k + 1 && with[1 - me].streams_heard >= k);
  }
  UNTIL(with[1 - me].streams_heard == 20);
}

/* Several streams, and records and texts that pass them. */
static void mixture(void)
{
  uint32_t n = rounds(8), other = 1 - me;
  for (uint32_t k = 0; k < n; k++) {
    if (k < 8) say_stream(other), say_text(other);
    for (int i = 0; i < 12; i++) say(other);
    look();
  }
  uint32_t s = n < 8 ? n : 8;
  UNTIL(with[other].heard == 12 * n && with[other].streams_heard == s &&
        with[other].texts_heard == s && with[other].over == s);
}

/* ---- order ---- */

/* Both at once, of all lengths and by all ways, with pauses in which the rings run empty or
 * full. */
static void order(void)
{
  uint32_t n = rounds(1500), other = 1 - me;
  for (uint32_t k = 0; k < n; k++) {
    say(other);
    if (mix(me, k, 3) % 24 == 0) look();
    if (mix(me, k, 4) % 300 == 0) UNTIL(!spx_tx_waiting());
    if (mix(me, k, 5) % 500 == 0) UNTIL(with[other].heard + 400 > k);
  }
  UNTIL(with[other].heard == n);
}

/* No memory for what comes, now and then: it stays, and comes again, once. */
static void refused(void)
{
  uint32_t n = rounds(200), other = 1 - me;
  refusals = 60;
  for (uint32_t k = 0; k < n; k++) {
    say(other);
    if (k % 16 == 0) look();
    if (k == n / 2) say_stream(other), say_text(other);
  }
  UNTIL(with[other].heard == n && with[other].streams_heard == 1 && with[other].texts_heard == 1);
  CHECK(refusals == 0);
}

/* ---- room ---- */

/* A receiver that does not look: the sender's calls come back, what the pair holds is bounded,
 * other pairs go on; then all of it comes. Participant 0 sends to 1, which does not look, and talks
 * with 2. */
enum { NO_ROOM_MOST = 64 << 20 };
static void room(void)
{
  uint32_t n = 0, queued_ones = rounds(50), talks = 200;
  if (me == 0) {
    uint64_t bytes = 0;
    for (uint32_t vain = 0; vain < 300; vain++) {
      uint8_t *buf = a_pattern(RECORD, 1, n, record_length(0, 1, n));
      uint32_t len = record_length(0, 1, n);
      spx_tx *tx = ready(1);
      CHECK(takes_long(tx));
      while (!tx->pend && spx_tx_write(process_of(1), SPX_REC_EAGER, record_words(n), buf, len)) {
        bytes += len;
        vain = 0;
        with[1].records = ++n;
        free(buf);
        len = record_length(0, 1, n);
        buf = a_pattern(RECORD, 1, n, len);
        CHECK(bytes < NO_ROOM_MOST);
      }
      free(buf);
      look();
    }
    CHECK(n >= 1);
    while (queued_ones--) say(1), n++;
    CHECK(spx_tx_waiting() || tried->wired != no_wire); /* or a kernel has found more room */
    for (uint32_t k = 0; k < talks; k++) {
      say(2);
      UNTIL(with[2].heard == k + 1);
    }
    CHECK(spx_tx_waiting() || tried->wired != no_wire); /* or a kernel has found more room */
    at_stage(n);
    UNTIL(!spx_tx_waiting() && spx_net_unsent() == 0);
  } else if (me == 1) {
    CHECK(word_reaches(&board->stage[0], 1));
    UNTIL(with[0].heard == atomic_load(&board->stage[0]));
  } else
    for (uint32_t k = 0; k < talks; k++) {
      UNTIL(with[0].heard == k + 1);
      say(0);
    }
}

/* Each side sends all that it has before it looks, then both look. */
static void both_full(void)
{
  uint32_t n = rounds(20), other = 1 - me;
  say(other);
  UNTIL(with[other].heard >= 1 && !spx_tx_waiting());
  uint32_t k = 1;
  while (!spx_tx_waiting() && k < NO_ROOM_MOST / 30000) say(other), k++;
  for (uint32_t end = k + n; k < end; k++) say(other);
  say_stream(other);
  board->made[MOST - 1][me] = k;
  at_stage(1);
  if (!tried->begin) AWAIT_STAGE(other, 1);
  CHECK(spx_tx_waiting() || tried->wired != no_wire);
  UNTIL(atomic_load(&board->stage[other]) == 1 &&
        with[other].heard == board->made[MOST - 1][other] && with[other].streams_heard == 1);
}

/* ---- many ---- */

static void many(void)
{
  uint32_t n = rounds(60);
  for (uint32_t k = 0; k < n; k++) {
    for (uint32_t to = 0; to < participants; to++)
      if (to != me) say(to);
    if (k % 4 == 0) look();
    if (k == n / 2)
      for (uint32_t to = 0; to < participants; to++)
        if (to != me) say_stream(to), say_text(to);
  }
  for (uint32_t from = 0; from < participants; from++)
    if (from != me)
      UNTIL(with[from].heard == n && with[from].streams_heard == 1 && with[from].texts_heard == 1);
}

/* Fewer rings than partners: who gets one, and gives it back, changes, and nothing else. */
static void few_rings(void)
{
  uint32_t n = rounds(60), widened = 0;
  for (uint32_t k = 0; k < n; k++) {
    uint32_t to = (me + 1 + k % (participants - 1)) % participants;
    for (int i = 0; i < 30; i++) say(to);
    if (k % 7 == 3) say_text(to);
    if (k % 5 == 2 && with[to].streams < STREAMS_MOST) say_stream(to);
    UNTIL(!spx_tx_waiting());
    widened += spx_txs[process_of(to)].ring >= 0;
    uint32_t rings = 0;
    for (uint32_t p = 0; p < participants; p++)
      rings += p != me && spx_txs[process_of(p)].by && spx_txs[process_of(p)].ring >= 0;
    CHECK(rings <= running->rings);
  }
  CHECK(widened > 0 && (rounds(1) == 1 || widened < n));
  for (uint32_t p = 0; p < participants; p++) {
    uint32_t records = 0, t = 0, s = 0;
    for (uint32_t k = 0; p != me && k < n; k++)
      if ((p + 1 + k % (participants - 1)) % participants == me)
        records += 30, t += k % 7 == 3, s += k % 5 == 2 && s < STREAMS_MOST;
    if (p != me)
      UNTIL(with[p].heard == records && with[p].texts_heard == t && with[p].streams_heard == s);
  }
}

#include "suite_sleep.h"

/* ---- together ---- */

/* What is written between may wait; it has gone, in order, when the last call has ended the
 * outermost. */
static void together(void)
{
  uint32_t n = rounds(30), m = 0;
  for (uint32_t k = 0; k < n; k++) {
    if (me == 0) {
      if (spx_network) spx_network->together(1);
      for (uint32_t i = 0; i < k % 7; i++) {
        if (spx_network) spx_network->gather(1);
        say(1);
        say(2);
        m++;
        if (spx_network) spx_network->gather(-1);
        if (i == 3) say_stream(1);
      }
      if (spx_network) spx_network->together(-1);
      UNTIL(!spx_tx_waiting());
      for (uint32_t to = 1; to <= 2; to++)
        if (tried->has & HAS_LONG_SLEEP)
          WITHOUT_CALLS_UNTIL(atomic_load(&board->stage[to]) > k);
        else
          UNTIL(atomic_load(&board->stage[to]) > k);
      if (k % 5 == 0) look();
    } else {
      m += k % 7;
      UNTIL(with[0].heard == m);
      at_stage(k + 1);
    }
  }
}

/* ---- taking back ---- */

static uint64_t long_stream(uint32_t from, uint32_t to, uint32_t k)
{
  (void)from, (void)to;
  return (8 << 20) + k;
}

/* A send is taken back while it waits, or flows: its memory is its owner's at once, nothing that is
 * in it later is taken for the message, and what stands behind it goes on. */
static void taken_back(void)
{
  uint32_t n = rounds(6), back = 0, heard = 0;
  for (uint32_t k = 0; k < n; k++) {
    if (me == 0) {
      say_stream(1);
      spx_request *r = with[1].out[k];
      if (k % 3) UNTIL(!with[1].out[k] || r->out.at > (k % 3) * 200000);
      if (with[1].out[k]) {
        size_t bytes = (size_t)r->bytes;
        void *pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(pages != MAP_FAILED);
        CHECK(spx_tx_unqueue(process_of(1), r) == 1 && spx_tx_unqueue(process_of(1), r) == 0);
        memset(r->buf, 0x55, bytes);
        free(r->buf);
        r->buf = pages;
        munmap(pages, bytes);
        free(r);
        with[1].out[k] = NULL;
        back++;
      }
      /* Of two that wait the first is taken back. */
      uint32_t number = with[1].records;
      for (int i = 0; i < 20; i++) say(1);
      for (int i = 0; i < 300 && !spx_tx_waiting(); i++) say(1);
      say_by(1, QUEUE);
      spx_request *last = NULL;
      for (spx_txitem *it = spx_txs[process_of(1)].pend; it; it = it->next)
        if (it->r && it->r->tag + 1 == (int32_t)with[1].records) last = it->r;
      if (last) {
        CHECK(spx_tx_unqueue(process_of(1), last) == 1);
        drop_send(last);
        with[1].records--; /* its number is the next one's */
      }
      CHECK(with[1].records > number);
      say(1);
      board->made[MOST - 1][0] = with[1].records;
      at_stage(k + 1);
      UNTIL(atomic_load(&board->stage[1]) > k);
    } else {
      UNTIL(atomic_load(&board->stage[0]) > k);
      heard = board->made[MOST - 1][0];
      UNTIL(with[0].heard == heard);
      at_stage(k + 1);
    }
  }
  if (me == 0) CHECK(back > 0);
  if (me == 1)
    for (uint32_t k = 0; k < n; k++) /* what came is of no message */
      if (with[0].in[k] && with[0].in[k]->buf) with[0].in[k]->in.at = 0;
}

/* ---- credit ---- */

/* How much of what was sent was asked for comes to its sender, and never more. */
static void credit(void)
{
  uint32_t n = rounds(40), other = process_of(1 - me);
  for (uint32_t k = 0; k < n; k++) {
    if (me == 0) {
      spx_tx *tx = ready(1);
      say(1);
      tx->sent += 1024;
      UNTIL(spx_tx_published(tx, &tx->chan->matched, tx->sent, __ATOMIC_RELAXED) == tx->sent);
      CHECK(spx_position_first() + (k + 1) * 1024 == tx->sent);
    } else {
      UNTIL(with[0].heard == k + 1);
      spx_rx *rx = &spx_rxs[other]; /* as give_credit in deliver.c */
      rx->matched += 1024;
      if (rx->conn)
        spx_net_credit(other, spx_position_word(rx->epoch, rx->matched_published = rx->matched));
      else
        spx_rx_publish_matched(rx);
    }
  }
  at_stage(n);
  UNTIL(atomic_load(&board->stage[1 - me]) == n);
}

#include "suite_leave.h"

/* ---- threads ---- */

/* Two threads send, to two participants each in turn, and two wait, with the lock; the engine has
 * its own. */
static uint32_t thread_rounds;
static void *sends(void *which)
{
  uint32_t to = (me + 1 + (uint32_t)(uintptr_t)which) % participants;
  for (uint32_t k = 0; k < thread_rounds; k++) {
    say(to);
    if (k % 8 == 0) spx_progress();
  }
  return NULL;
}
static _Atomic bool heard_all;
static void *waits(void *none)
{
  while (!atomic_load(&heard_all)) {
    spx_wait_event(spx_ticket(), now_ns() + 1000000);
    spx_lock();
    bool all = true;
    for (uint32_t from = 0; from < participants; from++)
      all &= from == me || with[from].heard == thread_rounds;
    atomic_store(&heard_all, all);
    spx_unlock();
  }
  return none;
}
static void threads(void)
{
  spx_mt = 1;
  thread_rounds = rounds(150);
  pthread_t t[5];
  for (uintptr_t i = 0; i < 2; i++) CHECK(pthread_create(&t[i], NULL, sends, (void *)i) == 0);
  for (int i = 2; i < 4; i++) CHECK(pthread_create(&t[i], NULL, waits, NULL) == 0);
  carries = true;
  CHECK(pthread_create(&t[4], NULL, engine, NULL) == 0);
  for (int i = 0; i < 4; i++) CHECK(pthread_join(t[i], NULL) == 0);
  atomic_store(&engine_ends, true);
  CHECK(pthread_join(t[4], NULL) == 0);
  UNTIL(!spx_tx_waiting());
}
#endif
