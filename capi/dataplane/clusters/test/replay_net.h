/* replay_net.h - the network of replay_sim.c: packets by pair of processes, in order; each takes
 * any time. */
#ifndef SPX_TEST_REPLAY_NET_H
#define SPX_TEST_REPLAY_NET_H

/* ---- the network: by pair of processes in order ---- */

typedef struct packet {
  struct packet *next;
  uint32_t from, from_life, to, to_life, acks, claims;
  size_t bytes;
  uint8_t data[];
} packet;
static packet *net[PARTICIPANTS][PARTICIPANTS];
static void learn(uint32_t who, uint32_t of);

static packet *post(uint32_t from, uint32_t to, uint32_t acks, const void *data, size_t n)
{
  packet *p = malloc(sizeof *p + n), **at = &net[from][to];
  *p = (packet){.from = from,
                .from_life = participants[from].life,
                .to = to,
                .to_life = participants[from].known[to],
                .acks = acks,
                .bytes = n};
  memcpy(p->data, data, n);
  while (*at) at = &(*at)->next;
  *at = p;
  return p;
}

static void transmit(void *arg, spx_kept *m)
{
  participant *p = arg;
  may_die();
  if (holds((uint32_t)(p - participants), m, 0, NULL, 0)) return;
  post((uint32_t)(p - participants), m->to, 0, &m->head, sizeof m->head + m->head.bytes);
  may_die();
}

/* What goes to a dead one is lost. */
static void acknowledge(void *arg, uint32_t to, const spx_frame_ack *acks, uint32_t n)
{
  participant *p = arg;
  may_die();
  if (holds((uint32_t)(p - participants), NULL, to, acks, n)) return;
  post((uint32_t)(p - participants), to, n, acks, n * sizeof *acks);
}

static void claim(void *arg, uint32_t to, const spx_frame_claim *claims, uint32_t n)
{
  participant *p = arg;
  may_die();
  if (holds_claims((uint32_t)(p - participants), to, claims, n)) return;
  post((uint32_t)(p - participants), to, 0, claims, n * sizeof *claims)->claims = n;
}

static bool deliver(void *arg, const spx_frame_head *head, uint32_t number, uint32_t token,
                    const uint8_t *data)
{
  participant *p = arg;
  inbox *m = malloc(sizeof *m);
  *m = (inbox){.head = *head, .number = number};
  if (head->bytes != BODY) abort();
  memcpy(m->data, data, BODY);
  *p->last = m;
  p->last = &m->next;
  may_die();
  return true;
}

static bool room(void *arg, uint64_t at, uint64_t bytes)
{
  (void)arg;
  may_die();
  return at + bytes <= SPX_MSGLOG_HEAD + 3ull * AREA;
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
    if (q->acks)
      spx_core_acked(&p->core, q->from, (const spx_frame_ack *)(void *)q->data, q->acks);
    else if (q->claims && q->from_life != p->known[q->from])
      ;
    else if (q->claims)
      spx_core_claimed(&p->core, q->from, (const spx_frame_claim *)(void *)q->data, q->claims);
    else {
      spx_frame_head h;
      memcpy(&h, q->data, sizeof h);
      spx_core_arrived(&p->core, &h, q->data + sizeof h);
    }
  }
  free(q);
}
#endif
