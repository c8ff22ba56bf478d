/* replay_core.c with participants that die at any moment: ranks that send to each other and by I/O
 * processes, receive whatever is there, look without waiting, and commit now and then; what they do
 * next follows from what they have received. A message takes any time, but stays behind those of
 * its process. Who has a dead one's place is learnt at any time, by each by itself, or from the
 * first message that it sends. At the end each rank has received what was sent to it, all of it,
 * once, and in order: from other ranks, and by I/O processes what is of one lane; and of what I/O
 * processes chose the receivers for one has each, once. Seeds are in the output. */
// sanitize: address,undefined
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "replay_core.h"

enum {
  RANKS = 4,
  RELAYS = 3,
  PARTICIPANTS = RANKS + RELAYS,
  STEPS = 60,
  AREA = 1 << 18,
  BODY = 32,
#ifdef COPIES
  RUNS = 500, /* each has more to do */
#else
  RUNS = 2000,
#endif
  PRELUDE = 7,
  ANY = 1000 /* an I/O process chooses the receiver */
};

static uint64_t seed;
static uint64_t chance(uint64_t below)
{
  seed ^= seed << 13;
  seed ^= seed >> 7;
  seed ^= seed << 17;
  return (seed >> 11) % below;
}
static uint64_t mix(uint64_t a, uint64_t b)
{
  uint64_t h = (a ^ b * 0x9e3779b97f4a7c15ull) * 0xbf58476d1ce4e5b9ull;
  return h ^ h >> 29;
}

#ifdef COPIES
#include "copies_core.h"
static bool holds(uint32_t i, spx_kept *m, uint32_t to, const spx_frame_ack *acks, uint32_t n);
static bool holds_claims(uint32_t i, uint32_t to, const spx_frame_claim *claims, uint32_t n);
static void pump(uint32_t i);
static void copies_end(uint32_t i);
static void copies_begin(uint32_t i);
static bool spares(uint32_t i);
static bool copies_quiet(void);
static void host_turn(void);
static void hosts_begin(void);
static void hosts_end(void);
static bool copies_told(uint64_t runs);
#else /* logs outlive their processes */
#define holds(i, m, to, acks, n)       false
#define holds_claims(i, to, claims, n) false
#define pump(i)                        (void)0
#define copies_end(i)                  (void)0
#define copies_begin(i)                (void)0
#define spares(i)                      true
#define copies_quiet()                 true
#define host_turn()                    (void)0
#define hosts_begin()                  (void)0
#define hosts_end()                    (void)0
#define copies_told(runs)              true
#endif

/* ---- a participant ---- */

typedef struct inbox { /* delivered, and not received by the program */
  struct inbox *next;
  spx_frame_head head;
  uint32_t number;
  uint8_t data[BODY];
} inbox;

typedef struct { /* the program's: what a commit saves */
  uint64_t step, hash, sent_to[RANKS], got_from[RANKS], left_for[RANKS], came_from[RANKS],
      sent[RANKS], left[RANKS], came[RANKS], left_any, any, came_any[RANKS], came_anys[RANKS],
      waits, lane_out[RANKS][RELAYS], lane_in[RANKS][RELAYS];
} state;

typedef struct {
  spx_core core;
  bool up, began, committed;
  uint32_t life, known[PARTICIPANTS]; /* known: the lives of the others, as this one has heard */
  inbox *first, **last;
  state s;
  jmp_buf out;
  uint64_t calls; /* of this life */
  uint64_t got_id, got_from;
} participant;
static participant participants[PARTICIPANTS];
static uint8_t *msglogs[RANKS];
static bool deaths; /* may happen now */
static participant *running;

/* Anything may be the last that a process does. */
static void may_die(void)
{
  if (deaths && running && chance(700) == 0 && spares((uint32_t)(running - participants)))
    longjmp(running->out, 1);
}

#include "replay_net.h"

/* ---- life and death ---- */

static void empty(participant *p)
{
  for (inbox *m = p->first, *next; m; m = next) {
    next = m->next;
    free(m);
  }
  p->first = NULL;
  p->last = &p->first;
}

/* The I/O process for a lane, as this participant sees it: its own one, or the next one that
 * lives. */
static uint32_t relay_for(const participant *p, uint32_t lane)
{
  for (uint32_t i = 0; i < RELAYS; i++) {
    uint32_t at = RANKS + (lane + i) % RELAYS;
    if (participants[at].up && participants[at].life == p->known[at]) return at;
  }
  return UINT32_MAX;
}

static uint32_t other_relay(void *arg, const spx_kept *m) { return relay_for(arg, m->lane); }

static void start(uint32_t i)
{
  participant *p = &participants[i];
  spx_core_io io = {transmit, acknowledge, claim, deliver, NULL, NULL, room, failed, p};
  p->life++;
  p->known[i] = p->life;
  p->up = true;
  p->began = p->committed = false;
  p->calls = 0;
  memset(&p->s, 0, sizeof p->s);
  p->s.hash = mix(i, 77);
  empty(p);
  if (!spx_core_begin(&p->core, &io, PARTICIPANTS, i, p->life, i >= RANKS,
                      i < RANKS ? (spx_msglog *)(void *)msglogs[i] : NULL))
    abort();
  if (i < RANKS) copies_begin(i);
}

static void dies(uint32_t i)
{
  participant *p = &participants[i];
  for (uint32_t k = 0; k < PARTICIPANTS;
       k++) /* what it has sent may come, or not; what comes for it is lost */
    for (packet **at = &net[i][k], *q; (q = *at);) {
      if (chance(2)) {
        for (packet *rest = q, *next; rest; rest = next) {
          next = rest->next;
          free(rest);
        }
        *at = NULL;
        break;
      }
      at = &q->next;
    }
  if (i < RANKS) copies_end(i);
  spx_core_end(&p->core);
  empty(p);
  p->up = false;
}

/* A successor has the dead one's place. What that one had sent has come by then, or comes before
 * what its successor sends. */
static void replace(uint32_t i)
{
  for (uint32_t k = 0; k < PARTICIPANTS; k++)
    while (net[i][k] && chance(4)) {
      packet *q = net[i][k];
      net[i][k] = q->next;
      arrive(q);
    }
  start(i);
}

/* All that is kept for it, or what no other one could take, goes to who has its place. */
static void learn(uint32_t who, uint32_t of)
{
  participant *p = &participants[who], *was = running;
  running = NULL;
  p->known[of] = participants[of].life;
  if (of >= RANKS && who < RANKS) spx_core_reroute(&p->core, of, other_relay, p);
  spx_core_replaced(&p->core, of);
  running = was;
}

static void hear(uint32_t who)
{
  uint32_t of = (uint32_t)chance(PARTICIPANTS);
  if (participants[who].up && participants[of].up &&
      participants[who].known[of] != participants[of].life)
    learn(who, of);
}

/* ---- the programs ---- */

static void poll(participant *p, bool inside)
{
  while (spx_core_may_accept(&p->core, inside) && spx_core_accept(&p->core) && chance(4)) may_die();
  spx_core_tell(&p->core);
}

static void enter(participant *p, bool sends)
{
  p->calls++;
  may_die();
  /* who comes after it is in the same state */
  spx_core_enter(&p->core, (uint32_t)mix(p->s.hash, p->s.step), sends);
  poll(p, false);
}

/* A rank that notices a death sends what was on its way there by others, before it sends anything
 * else. */
static void notice(participant *p)
{
  running = NULL;
  for (uint32_t r = RANKS; r < PARTICIPANTS; r++)
    if (p->known[r] != participants[r].life || !participants[r].up)
      spx_core_reroute(&p->core, r, other_relay, p);
  running = p;
}

static void put(participant *p, uint32_t to)
{
  bool leaving = (p->s.hash >> 20 & 3) != 0;
  uint32_t lane = (uint32_t)(p->s.hash >> 24) % RELAYS, by = to;
  bool any = leaving && (p->s.hash >> 28 & 3) == 0;
  uint64_t body[BODY / 8] = {mix(p->s.hash, p->s.step), any ? ANY : to,
                             (uint64_t)(p - participants)};
  enter(p, true);
  if (leaving) {
    notice(p);
    by = relay_for(p, lane);
    if (by == UINT32_MAX) by = RANKS + lane;
    if (!any) body[3] = (uint64_t)lane << 32 | ++p->s.lane_out[to][lane];
  }
  spx_kept *m = spx_core_message(&p->core, by, leaving, lane, 1, (int32_t)body[1],
                                 (int32_t)(p - participants), BODY, 0);
  memcpy(m->data, body, BODY);
  if (any) {
    p->s.left_any += mix(body[0], 5);
    p->s.any++;
  } else if (leaving) {
    p->s.left_for[to] += mix(body[0], 5);
    p->s.left[to]++;
  } else {
    p->s.sent_to[to] = mix(p->s.sent_to[to], body[0]);
    p->s.sent[to]++;
  }
  spx_core_send(&p->core, m);
}

static uint64_t out_of_order;
static bool take(participant *p)
{
  inbox *m = p->first;
  uint64_t body[BODY / 8];
  if (!m) return false;
  memcpy(body, m->data, BODY);
  if (body[1] != ANY && body[1] != (uint64_t)(p - participants)) abort();
  if (body[1] == ANY) {
    p->s.came_any[body[2]] += mix(body[0], 5);
    p->s.came_anys[body[2]]++;
  } else if (m->head.stream >= PARTICIPANTS) {
    p->s.came_from[body[2]] += mix(body[0], 5);
    p->s.came[body[2]]++;
    uint32_t lane = (uint32_t)(body[3] >> 32);
    if ((uint32_t)body[3] != ++p->s.lane_in[body[2]][lane]) out_of_order++;
  } else
    p->s.got_from[body[2]] = mix(p->s.got_from[body[2]], body[0]);
  p->s.hash = mix(p->s.hash, body[0] + body[2]);
  p->first = m->next;
  if (!p->first) p->last = &p->first;
  free(m);
  return true;
}

static void commit(participant *p)
{
  enter(p, false);
  if (p->core.mode == SPX_CORE_PRELUDE) {
    spx_image_reader r;
    uint64_t n;
    const void *at;
    if (!spx_core_restore_begin(&p->core, &r) || !(at = spx_image_take(&r, 8))) abort();
    memcpy(&n, at, 8);
    empty(p);
    while (n-- > 0) {
      const inbox *saved = spx_image_take(&r, sizeof *saved);
      deliver(p, &saved->head, saved->number, 0, saved->data);
    }
    memcpy(&p->s, spx_image_take(&r, sizeof p->s), sizeof p->s);
    spx_core_restore_end(&p->core);
    return;
  }
  spx_image w;
  pump((uint32_t)(p - participants));
  if (!spx_core_commit_begin(&p->core, &w)) abort(); /* a program whose calls differ */
  uint64_t n = 0;
  for (inbox *m = p->first; m; m = m->next) n++;
  spx_image_put(&w, &n, 8);
  for (inbox *m = p->first; m; m = m->next) spx_image_put(&w, m, sizeof *m);
  spx_image_put(&w, &p->s, sizeof p->s);
  may_die();
  if (!spx_core_commit_end(&w)) abort();
  may_die();
}

/* A turn of a rank: one call of its program, or a part of one that waits. */
static void rank_turn(participant *p)
{
  if (p->s.waits) { /* in a receive */
    poll(p, true);
    if (take(p)) p->s.waits = 0;
    return;
  }
  if (!p->committed && p->s.step == PRELUDE) {
    commit(p);
    p->committed = true;
    return;
  }
  uint64_t what = mix(p->s.hash, p->s.step) % 16;
  p->s.step++;
  if (p->s.step > STEPS) { /* the end: whatever there is */
    enter(p, false);
    take(p);
    p->s.step--;
    return;
  }
  if (what < 8)
    put(p, (uint32_t)(what % RANKS));
  else if (what < 12) {
    enter(p, false); /* a look */
    p->s.hash = mix(p->s.hash, take(p));
  } else if (what < 14 && p->committed)
    commit(p);
  else if (p->s.sent[(p - participants)] % 3 == 1 ||
           what == 15) { /* waits only when something must come: from itself there may be nothing */
    enter(p, false);
    p->s.hash = mix(p->s.hash, 1);
    poll(p, true);
    take(p);
  }
}

static uint64_t followed; /* the choice of another one */

static void relay_turn(participant *p)
{
  spx_core_asked(&p->core, SPX_NEEDS_UNSEEN);
  while (spx_core_accept(&p->core)) may_die();
  spx_core_tell(&p->core);
  inbox *m = p->first;
  if (!m) return;
  uint32_t to = (uint32_t)m->head.tag, given;
  if (to == ANY) {
    spx_core_number(&p->core, m->number, &given);
    to = given ? given - 1 : (uint32_t)chance(RANKS);
    spx_core_give(&p->core, m->number, to);
    followed += given != 0;
  }
  spx_kept *k =
      spx_core_message(&p->core, to, true, 0, 2, m->head.tag, m->head.src, BODY, m->number);
  memcpy(k->data, m->data, BODY);
  spx_core_send(&p->core, k);
  p->first = m->next;
  if (!p->first) p->last = &p->first;
  free(m);
}

static void turn(uint32_t i)
{
  participant *p = &participants[i];
  running = p;
  if (setjmp(p->out) == 0) {
    if (i < RANKS)
      rank_turn(p);
    else
      relay_turn(p);
    may_die();
  } else {
    running = NULL;
    dies(i);
  }
  running = NULL;
}

static bool quiet(void)
{
  for (uint32_t i = 0; i < PARTICIPANTS; i++) {
    if (!participants[i].up || participants[i].first || !spx_core_idle(&participants[i].core))
      return false;
    if (i < RANKS && (participants[i].s.step < STEPS || participants[i].core.mode != SPX_CORE_LIVE))
      return false;
    for (uint32_t k = 0; k < PARTICIPANTS; k++)
      if (net[i][k] || participants[i].known[k] != participants[k].life) return false;
  }
  return copies_quiet();
}

static int check(uint64_t which, uint64_t *messages)
{
  int bad = 0;
  for (int a = 0; a < RANKS; a++) {
    uint64_t sum = 0, n = 0;
    for (int b = 0; b < RANKS; b++) {
      sum += participants[b].s.came_any[a];
      n += participants[b].s.came_anys[a];
    }
    *messages += participants[a].s.any;
    if (sum == participants[a].s.left_any && n == participants[a].s.any) continue;
    fprintf(stderr, "run %llu: from %d to whom an I/O process chose: %llu left, %llu came\n",
            (unsigned long long)which, a, (unsigned long long)participants[a].s.any,
            (unsigned long long)n);
    bad++;
  }
  for (int a = 0; a < RANKS; a++)
    for (int b = 0; b < RANKS; b++) {
      const state *s = &participants[a].s, *r = &participants[b].s;
      *messages += s->sent[b] + s->left[b];
      if (s->sent_to[b] == r->got_from[a] && s->left_for[b] == r->came_from[a] &&
          s->left[b] == r->came[a])
        continue;
      fprintf(stderr, "run %llu: from %d to %d: %llu left, %llu came; pairs %d\n",
              (unsigned long long)which, a, b, (unsigned long long)s->left[b],
              (unsigned long long)r->came[a], s->sent_to[b] == r->got_from[a]);
      bad++;
    }
  return bad;
}

static int run(uint64_t which, uint64_t *dead, uint64_t *messages)
{
  seed = which * 0x9e3779b97f4a7c15ull + 1;
  for (int i = 0; i < RANKS; i++) {
    memset(msglogs[i], 0, SPX_MSGLOG_HEAD);
    spx_msglog_format((spx_msglog *)(void *)msglogs[i], AREA, 1 + i);
  }
  memset(participants, 0, sizeof participants);
  hosts_begin();
  for (uint32_t i = 0; i < PARTICIPANTS; i++) start(i);
  for (uint32_t i = 0; i < PARTICIPANTS; i++)
    for (uint32_t k = 0; k < PARTICIPANTS; k++) participants[i].known[k] = 1;
  uint64_t turns = 0, more = 3000 + chance(3000);
  for (; !quiet() && turns < 400000; turns++) {
    deaths = which % 10 != 0 && turns < more;
    host_turn();
    uint32_t i = (uint32_t)chance(PARTICIPANTS);
    if (!participants[i].up) {
      if (chance(8) == 0) {
        ++*dead;
        replace(i);
      }
      continue;
    }
    turn(i);
    if (chance(10) == 0) hear(i);
    for (int n = 0; n < 4; n++) {
      packet **at = &net[chance(PARTICIPANTS)][chance(PARTICIPANTS)], *q = *at;
      if (!q) continue;
      *at = q->next;
      arrive(q);
    }
  }
  int bad = turns >= 400000;
  if (bad) fprintf(stderr, "run %llu does not come to rest\n", (unsigned long long)which);
  if (out_of_order)
    fprintf(stderr, "run %llu: %llu messages of a lane are out of order\n",
            (unsigned long long)which, (unsigned long long)out_of_order);
  bad += out_of_order > 0;
  out_of_order = 0;
  bad += check(which, messages);
  for (uint32_t i = 0; i < PARTICIPANTS; i++) {
    if (i < RANKS) copies_end(i);
    spx_core_end(&participants[i].core);
    empty(&participants[i]);
    for (uint32_t k = 0; k < PARTICIPANTS; k++)
      while (net[i][k]) {
        packet *q = net[i][k];
        net[i][k] = q->next;
        free(q);
      }
  }
  hosts_end();
  return bad;
}

#ifdef COPIES
#include "copies_hosts.h"
#endif

int main(int argc, char **argv)
{
  uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 10) : 0, last = argc > 1 ? first + 1 : RUNS,
           dead = 0, messages = 0;
  int bad = 0;
  for (int i = 0; i < RANKS; i++) msglogs[i] = malloc(SPX_MSGLOG_HEAD + 3ul * AREA);
  for (uint64_t i = first; i < last && bad < 5; i++) bad += run(i, &dead, &messages);
  printf("%llu runs, %llu messages, %llu deaths, %llu times an I/O process followed the choice of "
         "another one, %d wrong\n",
         (unsigned long long)(last - first), (unsigned long long)messages, (unsigned long long)dead,
         (unsigned long long)followed, bad);
  for (int i = 0; i < RANKS; i++) free(msglogs[i]);
  return bad != 0 || dead < (last - first) || (argc == 1 && followed < RUNS) ||
         !copies_told(last - first);
}
