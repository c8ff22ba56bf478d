/* copies.c - see copies.h: pieces of logs, and the protocol about them, as messages in a context of
 * their own.
 *
 *   PIECE    a piece of a log follows its head
 *   HAS      the copy is complete up to this version
 *   CANNOT   there is no memory for it here
 *   FORGET   the copy with this key is whole: those with lower terms are useless now
 *   ASK      the process that takes a rank over asks all members for their copies of it,
 *   ANSWER   they list them one after another, and the end of these;
 *   GIVE     it requests this one,
 *   GIVEN    and gets its pieces,
 *   GONE     or the reply that it is useless now, and asks again. */
#include "copies.h"
#include <stdlib.h>
#include <string.h>
#include "dp.h"
#include "error.h"
#include "replay.h"

enum {
  PIECE = 1,
  HAS,
  CANNOT,
  FORGET,
  ASK,
  ANSWER,
  GIVE,
  GIVEN,
  GONE,
  PIECE_MOST = 256 << 10,
  FLYING_MOST = 8,   /* pieces on their way to the keeper of the copy */
  VERSIONS_MOST = 4, /* ... that it has not answered: what comes meanwhile goes together */
  COMING_MOST = 64
};

bool spx_copies_on, spx_copies_gate;

typedef struct {
  spx_copy_key key;
  uint64_t version;
  uint32_t asked, more; /* ASK and ANSWER: the number of the question; more answers follow */
} word;

typedef struct flight { /* a message of this process, until its memory is free */
  struct flight *next;
  spx_request *r;
  bool piece;
  uint8_t data[];
} flight;
typedef struct giving { /* a copy that is sent to the process that takes the rank over */
  struct giving *next;
  int to;
  spx_copying all;
} giving;
typedef struct coming {
  struct coming *next;
  spx_request *r;
  int from, tag;
  uint64_t bytes;
  uint8_t data[];
} coming;

static struct {
  spx_comm *wire;
  spx_type *byte;
  spx_poller poller;
  int cold;
  flight *flights;
  giving *givings;
  coming *first, **last;
  uint32_t ncoming, nflying; /* nflying: pieces */
  bool busy;

  spx_copies kept; /* of other members' logs */

  spx_copying out; /* of this process's log */
  int keeper;
  bool wants, closed;
  bool *refused;                     /* by member: it has no memory for it */
  uint64_t *since;                   /* by rank: the highest term that was announced as whole */
  uint64_t under_way[VERSIONS_MOST]; /* versions that were sent, and are not answered */
  uint32_t nunder_way;

  uint32_t question; /* of spx_copies_fetch */
  bool *answered, gone;
  struct {
    int member;
    spx_copy_key key;
    uint64_t version;
  } best;
  uint64_t term, least; /* the highest that was received; the highest that was announced as whole */
} x;

static uint32_t proc_of(int member) { return x.wire->peer[member]; }

static bool is_gone(int member)
{
  uint32_t proc = proc_of(member);
  bool late = member >= x.wire->size - x.cold;
  return spx_proc_left(proc) ||
         (late && !__atomic_load_n(&spx_proc_of(proc)->order, __ATOMIC_ACQUIRE));
}

/* ---- going ---- */

static flight *new_flight(uint64_t bytes)
{
  flight *f = malloc(sizeof *f + bytes);
  if (!f) spx_fatal(MPI_ERR_NO_MEM, "no memory for a copy on its way");
  f->piece = false;
  return f;
}

static void fly(flight *f, int to, int tag, uint64_t n)
{
  int rc = spx_isend(f->data, (int64_t)n, x.byte, to, tag, x.wire, SPX_CTX_P2P, SPX_M_STANDARD,
                     SPX_RF_INTERNAL, &f->r);
  if (rc != MPI_SUCCESS) spx_fatal(rc, "no memory for a copy on its way");
  f->next = x.flights;
  x.flights = f;
  x.nflying += f->piece;
}

static void say(int to, int tag, const word *w)
{
  flight *f = new_flight(sizeof *w);
  memcpy(f->data, w, sizeof *w);
  fly(f, to, tag, sizeof *w);
}

static void send_piece(int to, int tag, const spx_copy_piece *p, const uint8_t *data)
{
  flight *f = new_flight(sizeof *p + p->bytes);
  memcpy(f->data, p, sizeof *p);
  if (p->bytes) memcpy(f->data + sizeof *p, data, p->bytes);
  f->piece = true;
  fly(f, to, tag, sizeof *p + p->bytes);
}

static int land(void)
{
  int n = 0;
  for (flight **at = &x.flights, *f; (f = *at);) {
    if (!spx_is_done(f->r)) {
      at = &f->next;
      continue;
    }
    *at = f->next;
    x.nflying -= f->piece;
    spx_request_free(f->r);
    free(f);
    n++;
  }
  return n;
}

/* ---- this process's log ---- */

void spx_copies_of(const spx_msglog *v, uint32_t rank, uint64_t term)
{
  x.out.log = v;
  x.out.key = (spx_copy_key){term, spx_proc_of(spx_me)->serial + 1, rank};
  x.keeper = -1;
  x.wants = true;
  spx_copies_gate = true;
}

int spx_copies_keeper(void) { return x.keeper; }

bool spx_copies_can(int member)
{
  return member != x.wire->rank && !is_gone(member) && !x.refused[member];
}

bool spx_copies_have(uint64_t version) { return x.out.there >= version; }
bool spx_copies_sent(uint64_t version) { return x.out.version >= version; }

void spx_copies_go(void)
{
  spx_copy_piece p;
  const uint8_t *data;
  if (x.keeper < 0) return;
  while (x.nflying < FLYING_MOST && x.nunder_way < VERSIONS_MOST &&
         spx_copying_next(&x.out, spx_replay_core.version, PIECE_MOST, &p, &data)) {
    if (p.version) x.under_way[x.nunder_way++] = p.version;
    send_piece(x.keeper, PIECE, &p, data);
  }
}

void spx_copies_keep(int member)
{
  spx_lock();
  x.wants = false;
  if (member != x.keeper) {
    spx_copying_begin(&x.out, x.out.log,
                      (spx_copy_key){x.out.key.term + 1, x.out.key.life, x.out.key.rank});
    x.nunder_way = 0;
    x.keeper = member;
  }
  spx_copies_gate = member >= 0;
  spx_copies_go();
  if (!spx_copies_gate) spx_replay_release();
  spx_unlock();
}

void spx_copies_close(void)
{
  spx_lock();
  x.closed = true;
  x.wants = false;
  x.keeper = -1;
  spx_copies_gate = false;
  spx_replay_release();
  spx_unlock();
}

void spx_copies_look(void)
{
  if (spx_copies_on && x.out.log && !x.closed) x.wants = true;
}

bool spx_copies_want(void) { return spx_copies_on && x.wants; }

/* A member leaves by MPI_Finalize when all of the cluster have entered it. */
static void look_after_keeper(void)
{
  uint32_t proc = x.keeper < 0 ? 0 : proc_of(x.keeper);
  if (x.keeper < 0 || x.wants || !spx_proc_left(proc)) return;
  x.wants = true;
  spx_due |= SPX_DUE_TAKEOVER;
}

static void has_come(int from, const word *w)
{
  if (from != x.keeper) return;
  bool first = !x.out.there;
  if (!spx_copying_has(&x.out, &w->key, w->version)) return;
  uint32_t n = 0;
  while (n < x.nunder_way && x.under_way[n] <= w->version) n++;
  memmove(x.under_way, x.under_way + n, (x.nunder_way - n) * sizeof *x.under_way);
  x.nunder_way -= n;
  for (int m = 0; first && m < x.wire->size; m++)
    if (m != from && m != x.wire->rank && !is_gone(m)) say(m, FORGET, w);
  if (first) spx_copies_forget(&x.kept, w->key.rank, w->key.term);
}

/* ---- other members' logs ---- */

static void take(int from, int tag, const uint8_t *data, uint64_t n)
{
  spx_copy_piece p;
  spx_log_copy *c = NULL;
  if (n < sizeof p) return;
  memcpy(&p, data, sizeof p);
  if (tag == PIECE && spx_copies_bars(&x.kept, &p.key)) return;
  spx_copy_result got =
      n - sizeof p == p.bytes ? spx_copies_take(&x.kept, &p, data + sizeof p, &c) : SPX_COPY_WRONG;
  word w = {.key = p.key, .version = p.version};
  switch (got) {
  case SPX_COPY_WRONG:
    spx_fatal(MPI_ERR_INTERN, "process %u has sent a piece of a copy that is none", proc_of(from));
  case SPX_COPY_NO_MEMORY:
    if (tag == GIVEN) spx_fatal(MPI_ERR_NO_MEM, "no memory for what rank %u has kept", p.key.rank);
    say(from, CANNOT, &w);
    break;
  case SPX_COPY_TAKEN:
    if (tag == PIECE && p.version) say(from, HAS, &w);
    break;
  case SPX_COPY_LATE: break;
  }
}

static void refused(int from, const word *w)
{
  if (from != x.keeper || w->key.term != x.out.key.term) return;
  x.refused[from] = true;
  x.wants = true;
  spx_due |= SPX_DUE_TAKEOVER;
}

static uint64_t since(uint32_t rank) { return rank < (uint32_t)x.wire->size ? x.since[rank] : 0; }

/* Copies with lower terms are not only of no use: what has left since depends on more than they
 * have. */
static void forget(const word *w)
{
  if (spx_copies_bars(&x.kept, &w->key)) return;
  if (w->key.rank < (uint32_t)x.wire->size && x.since[w->key.rank] < w->key.term)
    x.since[w->key.rank] = w->key.term;
  spx_copies_forget(&x.kept, w->key.rank, w->key.term);
}

static void fence(uint32_t rank, int member)
{
  if (rank < (uint32_t)x.wire->size &&
      !spx_copies_fence(&x.kept, rank, spx_proc_of(proc_of(member))->serial + 1))
    spx_fatal(MPI_ERR_NO_MEM, "no memory for a table of ranks");
}

static void answer(int from, const word *q)
{
  fence(q->key.rank, from);
  word w = {.asked = q->asked, .more = 1};
  for (const spx_log_copy *c = x.kept.first; c; c = c->next) {
    if (c->key.rank != q->key.rank) continue;
    w.key = c->key;
    w.version = c->version;
    say(from, ANSWER, &w);
  }
  w = (word){.asked = q->asked, .key = {.rank = q->key.rank, .term = since(q->key.rank)}};
  say(from, ANSWER, &w);
}

static void weigh(int member, const spx_copy_key *key, uint64_t version)
{
  if (key->term > x.term) x.term = key->term;
  if (!version) return;
  if (x.best.version && spx_copy_order(key, version, &x.best.key, x.best.version) <= 0) return;
  x.best.member = member;
  x.best.key = *key;
  x.best.version = version;
}

static void answered(int from, const word *w)
{
  if (!x.answered || w->asked != x.question) return;
  if (w->more) {
    weigh(from, &w->key, w->version);
    return;
  }
  x.answered[from] = true;
  if (w->key.term > x.least) x.least = w->key.term;
}

static void give(int to, const word *w)
{
  const spx_log_copy *c = spx_copies_find(&x.kept, &w->key);
  giving *g = c && c->version ? malloc(sizeof *g) : NULL;
  if (!g) {
    say(to, GONE, w);
    return;
  }
  *g = (giving){.next = x.givings, .to = to};
  spx_copying_begin(&g->all, c->log, c->key);
  x.givings = g;
}

/* Sends more pieces of the copies that are given. A transfer to a dead member, or of a useless
 * copy, ends. */
static void give_more(void)
{
  spx_copy_piece p;
  const uint8_t *data;
  for (giving **at = &x.givings, *g; (g = *at);) {
    const spx_log_copy *c = spx_copies_find(&x.kept, &g->all.key);
    bool more = c && !is_gone(g->to);
    while (more && x.nflying < FLYING_MOST &&
           (more = spx_copying_next(&g->all, c->version, PIECE_MOST, &p, &data)))
      send_piece(g->to, GIVEN, &p, data);
    if (more) {
      at = &g->next;
      continue;
    }
    *at = g->next;
    free(g);
  }
}

static void handle(const coming *a)
{
  word w;
  /* its sender has died in the middle of it: nothing more comes of that one */
  if (a->r->error != MPI_SUCCESS) return;
  if (a->tag == PIECE || a->tag == GIVEN) {
    take(a->from, a->tag, a->data, a->bytes);
    return;
  }
  if (a->bytes != sizeof w) return;
  memcpy(&w, a->data, sizeof w);
  switch (a->tag) {
  case HAS: has_come(a->from, &w); break;
  case CANNOT: refused(a->from, &w); break;
  case FORGET: forget(&w); break;
  case ASK: answer(a->from, &w); break;
  case ANSWER: answered(a->from, &w); break;
  case GIVE: give(a->from, &w); break;
  case GONE: x.gone |= a->from == x.best.member && w.key.term == x.best.key.term; break;
  default: break;
  }
}

static bool take_one(void)
{
  spx_unex *e = x.ncoming < COMING_MOST
                    ? spx_match_unexpected(x.wire->ctx, MPI_ANY_SOURCE, MPI_ANY_TAG)
                    : NULL;
  if (!e) return false;
  if (e->kind == SPX_REC_RTS && spx_proc_dead(e->proc)) { /* announced, and its sender is gone */
    spx_unex_drop(e);
    return true;
  }
  coming *a = malloc(sizeof *a + e->bytes);
  if (!a) return false;
  *a = (coming){.from = e->src, .tag = e->tag, .bytes = e->bytes};
  spx_unex_remove(e);
  int rc = spx_imrecv(a->data, (int64_t)a->bytes, x.byte, e, x.wire, SPX_RF_INTERNAL, &a->r);
  if (rc != MPI_SUCCESS) spx_fatal(rc, "no memory for a copy that comes");
  *x.last = a;
  x.last = &a->next;
  x.ncoming++;
  return true;
}

static int take_in(void)
{
  int n = 0;
  while (take_one()) n++;
  for (coming *a; (a = x.first) && spx_is_done(a->r);) {
    x.first = a->next;
    if (!x.first) x.last = &x.first;
    x.ncoming--;
    handle(a);
    spx_request_free(a->r);
    free(a);
    n++;
  }
  return n;
}

static int poll(spx_poller *p)
{
  (void)p;
  if (x.busy) return 0;
  x.busy = true;
  int n = land() + take_in();
  if (SPX_UNLIKELY(x.givings != NULL)) give_more();
  if (!x.closed) look_after_keeper();
  if (spx_copies_gate) {
    spx_copies_go();
    n += spx_replay_release();
  }
  x.busy = false;
  return n;
}

/* ---- taking a rank over ---- */

static bool all_answered(void)
{
  for (int m = 0; m < x.wire->size; m++)
    if (m != x.wire->rank && !x.answered[m] && !is_gone(m)) return false;
  return true;
}

/* Asks all living members for their copies of a rank. */
static void ask(uint32_t rank)
{
  word q = {.key = {.rank = rank}, .asked = ++x.question};
  fence(rank, x.wire->rank);
  memset(x.answered, 0, (size_t)x.wire->size * sizeof *x.answered);
  x.best.member = -1;
  x.best.version = 0;
  x.least = since(rank);
  for (const spx_log_copy *c = x.kept.first; c; c = c->next)
    if (c->key.rank == rank) weigh(x.wire->rank, &c->key, c->version);
  for (int m = 0; m < x.wire->size; m++)
    if (m != x.wire->rank && !is_gone(m)) say(m, ASK, &q);
}

static void wait_a_little(void)
{
  uint32_t ticket = spx_ticket();
  spx_progress();
  spx_wait_event(ticket, spx_now_ns() + 2000000);
}

/* Whether the best one is here. false: the member that had it is gone. */
static bool get_best(void)
{
  const spx_log_copy *c;
  if (x.best.member == x.wire->rank) return true;
  word w = {.key = x.best.key};
  x.gone = false;
  say(x.best.member, GIVE, &w);
  while (!(c = spx_copies_find(&x.kept, &x.best.key)) || !c->version) {
    if (x.gone || is_gone(x.best.member)) return false;
    wait_a_little();
  }
  return true;
}

int spx_copies_fetch(uint32_t rank)
{
  int err = MPI_SUCCESS;
  x.answered = calloc((size_t)x.wire->size, sizeof *x.answered);
  if (!x.answered) return MPI_ERR_NO_MEM;
  for (bool got = false; !got && err == MPI_SUCCESS;) {
    spx_lock();
    ask(rank);
    spx_unlock();
    while (!all_answered()) wait_a_little();
    if (!x.best.version || x.best.key.term < x.least) {
      spx_detail("transparent takeover: what rank %u had is lost: of the %d processes of its "
                 "cluster none that lives "
                 "has a copy of it that is as new as what "
                 "others have had of it. Who kept that was lost at the same time, or before "
                 "another one had all of it; "
                 "copies = \"other host\" is for one loss at a time",
                 rank, x.wire->size);
      err = MPIX_ERR_PROC_FAILED;
    } else
      got = get_best();
  }
  free(x.answered);
  x.answered = NULL;
  return err;
}

spx_msglog *spx_copies_adopt(uint32_t rank, void **memory, uint64_t *term)
{
  spx_log_copy *c = spx_copies_best(&x.kept, rank);
  if (!c) return NULL;
  uint64_t here = spx_copies_term(&x.kept, rank);
  spx_msglog *v = c->log;
  *memory = c->memory;
  *term = here > x.term ? here : x.term;
  spx_copies_release(&x.kept, c);
  spx_copies_forget(&x.kept, rank, UINT64_MAX);
  return v;
}

/* ---- beginning and end ---- */

void spx_copies_start(const spx_copies_setup *s)
{
  memset(&x, 0, sizeof x);
  x.wire = s->wire;
  x.cold = s->cold;
  x.byte = (spx_type *)spx_get(SPX_K_TYPE, MPI_BYTE);
  x.last = &x.first;
  x.keeper = -1;
  x.kept = (spx_copies){.make = s->make, .room = s->room, .drop = s->drop};
  x.refused = calloc((size_t)x.wire->size, sizeof *x.refused);
  x.since = calloc((size_t)x.wire->size, sizeof *x.since);
  if (!x.refused || !x.since)
    spx_fatal(MPI_ERR_NO_MEM, "no memory for a table of %d processes", x.wire->size);
  x.poller.poll = poll;
  spx_poller_add(&x.poller);
  spx_copies_on = true;
}

void spx_copies_stop(void)
{
  if (!spx_copies_on) return;
  spx_copies_on = spx_copies_gate = false;
  spx_poller_del(&x.poller);
  land(); /* messages still on their way keep their memory: a receiver may read it */
  for (giving *g; (g = x.givings); free(g)) x.givings = g->next;
  spx_copies_end(&x.kept);
  free(x.refused);
  free(x.since);
  memset(&x, 0, sizeof x);
}
