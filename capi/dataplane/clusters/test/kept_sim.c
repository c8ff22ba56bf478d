/* replay_core.c where processes are replaced by new ones without any state of the former: ranks
 * that send by I/O processes to other ranks, and I/O processes that forward, and now and then send
 * of their own accord. Each of them dies at any moment. Each message of a process that lives in the
 * end came to its receiver, or to a predecessor of it. No process has received a message twice, and
 * of one lane all came in order, except what the receiver's predecessor had accepted: that may
 * arrive again. A message takes any time, but stays behind those of its process. Of some messages
 * the I/O process chooses the receiver: all that have the message, one after another, give it to
 * the same one. In most runs a rank and an I/O process join the system while it runs, and the other
 * participants learn of that one after another. Seeds are in the output. */
// sanitize: address,undefined
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "replay_core.h"

/* Participants: four ranks, three I/O processes; and a rank and an I/O process that come later. */
enum { ANY = 1000 }; /* a message for which an I/O process chooses the receiver */
enum {
  RANKS = 5,
  RELAYS = 4,
  PARTICIPANTS = RANKS + RELAYS,
  FIRST = PARTICIPANTS - 2,
  STEPS = 80,
  RUNS = 1000,
  MOST = 4000
};
static uint32_t rank_at(uint32_t i) { return i < RANKS - 1 ? i : FIRST; }
static uint32_t relay_at(uint32_t i) { return i < RELAYS - 1 ? RANKS - 1 + i : FIRST + 1; }
static bool is_relay(uint32_t participant)
{
  return participant == FIRST + 1 || (participant >= RANKS - 1 && participant < FIRST);
}

static uint64_t seed;
static uint64_t chance(uint64_t below)
{
  seed ^= seed << 13;
  seed ^= seed >> 7;
  seed ^= seed << 17;
  return (seed >> 11) % below;
}

typedef struct { /* a message, and by which life of its receiver it was received last */
  uint32_t from, life, to, lane, number, received;
  bool any; /* to: its first receiver, or ANY */
  /* the life of its receiver that accepted it first; that one may have died before it polled it */
  uint32_t there;
} body;
static body sent[MOST];
static uint32_t nsent;

typedef struct inbox {
  struct inbox *next;
  spx_frame_head head;
  uint32_t number, which;
  uint32_t token, from_life; /* of an announced message: the life that has its bytes */
} inbox;

typedef struct {
  spx_core core;
  bool up;
  uint32_t knows; /* so many participants */
  uint32_t life, steps, known[PARTICIPANTS];
  uint32_t out[RELAYS]; /* by lane: messages of this life */
  uint32_t in[PARTICIPANTS][2 * RELAYS],
      /* by sender and lane, those with a separately chosen receiver: the number of the last one of
       * its life `of` */
      of[PARTICIPANTS];
  inbox *first, **last;
  jmp_buf gone;
} participant;
static participant participants[PARTICIPANTS], *running;
static bool deaths;
static int bad;

static void may_die(void)
{
  if (deaths && running && chance(150) == 0) longjmp(running->gone, 1);
}

/* ---- the network: by pair of processes in order ---- */

typedef struct packet {
  struct packet *next;
  uint32_t from, from_life, to, to_life;
  uint64_t acks, claims;
  uint8_t data[];
} packet;
static packet *net[PARTICIPANTS][PARTICIPANTS];
static void learn(uint32_t who, uint32_t of);

static packet *post(const participant *p, uint32_t to, uint32_t acks, const void *data, size_t n)
{
  uint32_t from = (uint32_t)(p - participants);
  packet *q = malloc(sizeof *q + n), **at = &net[from][to];
  *q =
      (packet){.from = from, .from_life = p->life, .to = to, .to_life = p->known[to], .acks = acks};
  memcpy(q->data, data, n);
  while (*at) at = &(*at)->next;
  *at = q;
  return q;
}

static void transmit(void *arg, spx_kept *m)
{
  may_die();
  post(arg, m->to, 0, &m->head, sizeof m->head + m->head.bytes);
  may_die();
}

static void acknowledge(void *arg, uint32_t to, const spx_frame_ack *acks, uint32_t n)
{
  may_die();
  post(arg, to, n, acks, n * sizeof *acks);
}

static void claim(void *arg, uint32_t to, const spx_frame_claim *claims, uint32_t n)
{
  may_die();
  post(arg, to, 0, claims, n * sizeof *claims)->claims = n;
}

static bool deliver(void *arg, const spx_frame_head *head, uint32_t number, uint32_t token,
                    const uint8_t *data)
{
  participant *p = arg;
  inbox *m = malloc(sizeof *m);
  *m = (inbox){.head = *head, .number = number, .token = token, .from_life = p->known[head->from]};
  memcpy(&m->which, data, sizeof m->which);
  body *b = &sent[m->which];
  if (b->to == ANY && !head->announced && !is_relay((uint32_t)(p - participants)))
    b->to = (uint32_t)(p - participants);
  if (p - participants == b->to && !b->there && !head->announced) b->there = p->life;
  *p->last = m;
  p->last = &m->next;
  may_die();
  return true;
}

static void again(void *arg, const spx_frame_head *head, uint32_t token, const uint8_t *data)
{
  participant *p = arg;
  (void)data;
  for (inbox *m = p->first; m; m = m->next) {
    if (m->token != token) continue;
    m->head.from = head->from;
    m->from_life = p->known[head->from];
    return;
  }
  fprintf(stderr, "participant %d: a message comes again that is not there\n",
          (int)(p - participants));
  bad++;
}

static void settled(void *arg, void *waits, bool accepted)
{
  (void)arg, (void)waits, (void)accepted;
}

static void failed(void *arg, const char *why)
{
  fprintf(stderr, "participant %d: %s\n", (int)((participant *)arg - participants), why);
  abort();
}

static void arrive(packet *q)
{
  participant *p = &participants[q->to];
  if (p->up && p->life == q->to_life) {
    if (q->from_life > p->known[q->from]) learn(q->to, q->from);
    if ((q->acks || q->claims) && q->from_life != p->known[q->from])
      ; /* it was sent to the successor again, which is to confirm it */
    else if (q->claims && (!participants[q->from].up || participants[q->from].life != q->from_life))
      ; /* it is known to be dead, mostly, and sends none of that any more */
    else if (q->claims)
      spx_core_claimed(&p->core, q->from, (const spx_frame_claim *)(void *)q->data,
                       (uint32_t)q->claims);
    else if (q->acks)
      spx_core_acked(&p->core, q->from, (const spx_frame_ack *)(void *)q->data, (uint32_t)q->acks);
    else {
      spx_frame_head h;
      memcpy(&h, q->data, sizeof h);
      spx_core_arrived(&p->core, &h, q->data + sizeof h);
    }
  }
  free(q);
}

static void arrive_first(uint32_t from, uint32_t to)
{
  packet *q = net[from][to];
  if (!q || (participants[to].up && from >= participants[to].knows)) return;
  net[from][to] = q->next;
  arrive(q);
}

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

static uint32_t relay_for(const participant *p, uint32_t lane)
{
  for (uint32_t i = 0; i < RELAYS; i++) {
    uint32_t at = relay_at((lane + i) % RELAYS);
    if (at < p->knows && participants[at].up && participants[at].life == p->known[at]) return at;
  }
  return UINT32_MAX;
}

static uint32_t other_relay(void *arg, const spx_kept *m) { return relay_for(arg, m->lane); }

static uint32_t there = FIRST; /* participants of the system by now */

/* A participant learns that there are more. */
static void grow(participant *p)
{
  for (uint32_t k = p->knows; k < there; k++) p->known[k] = participants[k].life;
  p->knows = there;
  if (!spx_core_grow(&p->core, there)) abort();
}

static void start(uint32_t i)
{
  participant *p = &participants[i];
  spx_core_io io = {transmit, acknowledge, claim, deliver, again, settled, NULL, failed, p};
  p->known[i] = ++p->life;
  p->up = true;
  memset(p->out, 0, sizeof p->out);
  memset(p->in, 0, sizeof p->in);
  empty(p);
  if (!spx_core_begin(&p->core, &io, p->knows = there, i, p->life, is_relay(i), NULL)) abort();
}

static void dies(uint32_t i)
{
  participant *p = &participants[i];
  for (uint32_t k = 0; k < PARTICIPANTS; k++) /* its messages may arrive, up to some message */
    for (packet **at = &net[i][k], *q; (q = *at);)
      if (chance(2))
        at = &q->next;
      else
        for (packet *next; (q = *at); *at = next) {
          next = q->next;
          free(q);
        }
  spx_core_end(&p->core);
  empty(p);
  p->up = false;
}

static void learn(uint32_t who, uint32_t of)
{
  participant *p = &participants[who], *was = running;
  running = NULL;
  for (uint32_t k = 0; k < nsent && is_relay(who);
       k++) /* an I/O process cannot get what the dead one had announced */
    if (sent[k].from == of && sent[k].life != participants[of].life)
      spx_core_withdraw(&p->core, &sent[k]);
  p->known[of] = participants[of].life;
  if (is_relay(of) && !is_relay(who)) spx_core_reroute(&p->core, of, other_relay, p);
  spx_core_replaced(&p->core, of);
  running = was;
}

/* ---- the programs ---- */

static uint64_t came_announced;

static void drop_first(participant *p)
{
  p->first = p->first->next;
  if (!p->first) p->last = &p->first;
}

static void receive(participant *p)
{
  inbox *m = p->first;
  if (!m) return;
  body *b = &sent[m->which];
  if (m->head.announced) {
    const participant *from = &participants[m->head.from], *origin = &participants[b->from];
    bool never = !origin->up || origin->life != b->life;
    if (!never && (!from->up || from->life != m->from_life)) return; /* it will arrive again */
    if (!never && chance(2)) return;
    if (!never && b->to == ANY) b->to = (uint32_t)(p - participants);
    if (!never && !b->there) b->there = p->life;
    if (never) drop_first(p);
    spx_core_received(&p->core, m->token, !never);
    if (never) {
      free(m);
      return;
    }
    came_announced++;
  }
  uint32_t me = (uint32_t)(p - participants),
           *last = &p->in[b->from][b->lane + (b->any ? RELAYS : 0)];
  if (p->of[b->from] > b->life) last = NULL; /* of one that has died: its lanes are over */
  if (last && p->of[b->from] < b->life) {
    memset(p->in[b->from], 0, sizeof p->in[b->from]);
    p->of[b->from] = b->life;
  }
  if (b->to != me || b->received == p->life) {
    fprintf(stderr, "message %u came twice, or to another one\n", m->which);
    bad++;
  }
  if (last && b->number <= *last && b->there == p->life) {
    fprintf(stderr, "message %u of %u came behind a later one of its lane\n", b->number, b->from);
    bad++;
  }
  if (last && *last < b->number) *last = b->number;
  b->received = p->life;
  drop_first(p);
  free(m);
}

static void put(participant *p, uint32_t by, uint32_t to, uint32_t lane, bool leaving)
{
  uint32_t which = nsent++;
  bool any = leaving && chance(3) == 0;
  if (any) to = ANY;
  spx_kept *m = spx_core_message(&p->core, by, leaving, lane, 1, (int32_t)to, 0, sizeof which, 0);
  memcpy(m->data, &which, sizeof which);
  if ((m->head.announced = chance(3) == 0)) m->waits = &sent[which];
  sent[which] = (body){(uint32_t)(p - participants), p->life, to, lane, ++p->out[lane], 0, any, 0};
  spx_core_send(&p->core, m);
}

static void accept_some(participant *p)
{
  while (spx_core_accept(&p->core) && chance(4)) may_die();
  spx_core_tell(&p->core);
}

static void rank_turn(participant *p)
{
  accept_some(p);
  if (chance(2)) receive(p);
  if (p->steps >= STEPS || nsent == MOST || chance(2)) return;
  p->steps++;
  running = NULL;
  for (uint32_t r = 0; r < p->knows; r++)
    if (!is_relay(r))
      continue;
    else if (p->known[r] != participants[r].life || !participants[r].up)
      spx_core_reroute(&p->core, r, other_relay, p);
  running = p;
  uint32_t lane = (uint32_t)chance(RELAYS), by = relay_for(p, lane);
  if (by == UINT32_MAX) by = relay_at(lane % (RELAYS - 1));
  put(p, by, rank_at((uint32_t)chance(p->knows > FIRST ? RANKS : RANKS - 1)), lane, true);
}

static uint64_t chosen, followed;

static void relay_turn(participant *p)
{
  spx_core_asked(&p->core, SPX_NEEDS_UNSEEN);
  accept_some(p);
  if (p->steps < STEPS && nsent < MOST && chance(8) == 0) {
    uint32_t to = rank_at((uint32_t)chance(p->knows > FIRST ? RANKS : RANKS - 1));
    p->steps++;
    put(p, to, to, 0, false);
  }
  inbox *m = p->first;
  if (!m || chance(3) == 0) return;
  uint32_t to = (uint32_t)m->head.tag, given = 0;
  if (to == ANY) {
    spx_core_number(&p->core, m->number, &given);
    to = given ? given - 1 : rank_at((uint32_t)chance(p->knows > FIRST ? RANKS : RANKS - 1));
    if (chance(8) == 0 && !given) /* it chooses anew */
      spx_core_give(&p->core, m->number, rank_at((uint32_t)chance(RANKS - 1)));
    chosen += !given;
    followed += given != 0;
  }
  if (to >= p->knows) return;
  if (m->head.tag == ANY) spx_core_give(&p->core, m->number, to);
  spx_kept *k = spx_core_message(&p->core, to, true, 0, 2, m->head.tag, m->head.src,
                                 sizeof m->which, m->number);
  memcpy(k->data, &m->which, sizeof m->which);
  if ((k->head.announced = m->head.announced)) k->waits = &sent[m->which];
  if (k->waits && sent[m->which].life != participants[sent[m->which].from].life)
    free(k); /* nothing of it can be had */
  else
    spx_core_send(&p->core, k);
  drop_first(p);
  free(m);
}

static void turn(uint32_t i)
{
  participant *p = &participants[i];
  running = p;
  if (setjmp(p->gone) == 0) {
    if (is_relay(i))
      relay_turn(p);
    else
      rank_turn(p);
    running = NULL;
    return;
  }
  running = NULL;
  dies(i);
}

static bool quiet(void)
{
  for (uint32_t i = 0; i < there; i++) {
    if (!participants[i].up || participants[i].knows < there || participants[i].first ||
        participants[i].core.ready || !spx_core_idle(&participants[i].core))
      return false;
    for (uint32_t k = 0; k < there; k++)
      if (net[i][k] || participants[i].known[k] != participants[k].life) return false;
  }
  return true;
}

static void run(uint64_t which, uint64_t *dead, uint64_t *messages)
{
  seed = which * 0x9e3779b97f4a7c15ull + 1;
  memset(participants, 0, sizeof participants);
  nsent = 0;
  there = FIRST;
  for (uint32_t i = 0; i < there; i++) start(i);
  for (uint32_t i = 0; i < there; i++)
    for (uint32_t k = 0; k < there; k++) participants[i].known[k] = 1;
  uint64_t turns = 0, more = 1000 + chance(1000), grows = which % 4 ? chance(more) : UINT64_MAX;
  for (; (turns < more || !quiet()) && turns < 200000; turns++) {
    deaths = which % 10 != 0 && turns < more;
    if (turns == grows) {
      there = PARTICIPANTS;
      for (uint32_t k = FIRST; k < PARTICIPANTS; k++) start(k);
      for (uint32_t k = FIRST; k < PARTICIPANTS; k++)
        for (uint32_t j = 0; j < PARTICIPANTS; j++) participants[k].known[j] = participants[j].life;
    }
    uint32_t i = (uint32_t)chance(there), of = (uint32_t)chance(there);
    if (!participants[i].up) {
      if (chance(8)) continue;
      ++*dead;
      for (uint32_t k = 0; k < PARTICIPANTS;
           k++) /* messages of the former arrive before those of its successor */
        while (net[i][k] && chance(4)) arrive_first(i, k);
      start(i);
      continue;
    }
    if (participants[i].knows < there) {
      if (chance(8))
        of = i;
      else
        grow(&participants[i]);
    }
    turn(i);
    if (participants[i].up && of < participants[i].knows && participants[of].up &&
        participants[i].known[of] != participants[of].life)
      learn(i, of);
    for (int n = 0; n < 4; n++)
      arrive_first((uint32_t)chance(PARTICIPANTS), (uint32_t)chance(PARTICIPANTS));
  }
  if (turns >= 200000) {
    fprintf(stderr, "it does not come to rest\n");
    bad++;
  }
  *messages += nsent;
  for (uint32_t k = 0; k < nsent; k++)
    if (!sent[k].there && sent[k].life == participants[sent[k].from].life) {
      fprintf(stderr, "message %u from %u to %u was lost\n", k, sent[k].from, sent[k].to);
      bad++;
    }
  if (bad) fprintf(stderr, "again: kept_sim %llu\n", (unsigned long long)which);
  for (uint32_t i = 0; i < PARTICIPANTS; i++) {
    if (participants[i].up) spx_core_end(&participants[i].core);
    empty(&participants[i]);
    for (uint32_t k = 0; k < PARTICIPANTS; k++)
      for (packet *q; (q = net[i][k]);) {
        net[i][k] = q->next;
        free(q);
      }
  }
}

int main(int argc, char **argv)
{
  uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 10) : 0, last = argc > 1 ? first + 1 : RUNS,
           dead = 0, messages = 0;
  for (uint64_t i = first; i < last && bad == 0; i++) run(i, &dead, &messages);
  printf("%llu runs, %llu messages (%llu announced ones were received; %llu times a receiver was "
         "chosen, %llu times "
         "one that another had chosen), %llu deaths, %d wrong\n",
         (unsigned long long)(last - first), (unsigned long long)messages,
         (unsigned long long)came_announced, (unsigned long long)chosen,
         (unsigned long long)followed, (unsigned long long)dead, bad);
  return bad != 0 || (argc == 1 && (dead < RUNS || came_announced < RUNS || followed < RUNS));
}
