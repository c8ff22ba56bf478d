/* mcast_ack.c - the receivers of a multicast whose master must learn of them (MPIX_Smcast,
 * MPIX_MCAST_ACKED): as mcast/ack.go.
 *
 * Acknowledgements go up the tree that the message came down: a process that has forwarded it waits
 * until its own receive has taken it and all those that it gave it to have acknowledged. Then it
 * sends the list of receivers, in one record, to the process that the message came from. So the
 * master gets records from few processes, whatever the size of the set is.
 *
 * Deaths. Acknowledgements that a process had received and not yet forwarded are lost with it: when
 * a member dies, the master sends the message again to all members without acknowledgement
 * (mcast.c). A process that gets it from the master answers the master; a message that came several
 * ways is answered on each of them. A process that has left with its last word on the way, or
 * before the message reached it, may not have acknowledged for the members behind it: a process
 * that waits for it requests that the master do the same.
 *
 * A member that fetches the data from the master is known to it by that, and is on no
 * acknowledgement: its name might be there before its request, which would not be answered then. */
#include "mcast.h"
#include <stdlib.h>
#include "dp.h"

typedef struct spx_ack_aggregation {
  spx_ack_aggregation *next;
  uint64_t ctx;
  uint32_t master, parent; /* parent: the process that the message came from */
  spx_mcast_name name;
  bool own;         /* this process has still to receive it */
  uint32_t waits;   /* of `behind`: those that have still to acknowledge */
  uint32_t n, room; /* members that have it */
  uint32_t *behind;
  spx_member *got;
} aggregation;

static aggregation *all;
static spx_poller watch;

static bool is_of(const aggregation *g, uint32_t master, spx_mcast_name name)
{
  return g->master == master && g->name.index == name.index && g->name.gen == name.gen;
}

static void drop(aggregation **p)
{
  aggregation *g = *p;
  *p = g->next;
  free(g);
  if (!all) spx_poller_del(&watch);
}

static void add(aggregation *g, const spx_member *m, uint32_t n)
{
  for (uint32_t i = 0; i < n && g->n < g->room; i++) g->got[g->n++] = m[i];
}

/* To the process that the message came from: what is known. */
static void speak(aggregation *g)
{
  spx_rec_have have = {g->master, g->name.index, g->name.gen, 0};
  if (spx_proc_left(g->parent)) return;
  if (g->parent != g->master || g->n > 1 || (g->n == 1 && g->got[0].proc != spx_me)) {
    spx_mcast_tell(g->parent, &have, SPX_MCAST_GOT, g->got, g->n);
  } else if (g->n == 1) { /* processes of other jobs have other numbers there */
    spx_rec_id done = {.index = g->name.index, .gen = g->name.gen};
    spx_tx_put(g->parent, SPX_REC_DONE, SPX_REC_PLAIN, &done, sizeof done);
  }
}

void spx_acks_settle(void)
{
  for (aggregation **p = &all; *p;) {
    if ((*p)->own || (*p)->waits > 0) {
      p = &(*p)->next;
      continue;
    }
    speak(*p);
    drop(p);
  }
}

/* Those that have left without a word for those behind them. */
static int look_for_left(spx_poller *p)
{
  int n = 0;
  (void)p;
  for (aggregation *g = all; g; g = g->next) {
    uint32_t before = g->waits;
    for (uint32_t i = 0; i < g->waits;)
      if (spx_proc_left(g->behind[i]) && !spx_proc_dead(g->behind[i]))
        g->behind[i] = g->behind[--g->waits];
      else
        i++;
    if (g->waits == before || spx_proc_left(g->master)) continue;
    spx_rec_have have = {g->master, g->name.index, g->name.gen, 0};
    spx_mcast_tell(g->master, &have, SPX_MCAST_LOST, NULL, 0);
    n++;
  }
  if (n) spx_acks_settle();
  return n;
}

spx_ack_aggregation *spx_acks_begin(uint32_t peer, const spx_mcast_head *h, spx_mcast_name name,
                                    bool twice, bool fetched, uint32_t behind)
{
  bool own = !twice;
  for (const aggregation *g = all; g && !own; g = g->next)
    own = g->own && is_of(g, h->master, name);
  if (spx_proc_left(h->master)) return NULL;
  aggregation *g = malloc(sizeof *g + (behind + 1) * (sizeof *g->got + sizeof *g->behind));
  if (!g)
    spx_fatal(MPI_ERR_NO_MEM, "no memory to acknowledge a multicast of process %u", h->master);
  *g = (aggregation){
      .next = all, .ctx = h->ctx, .master = h->master, .parent = peer, .name = name, .own = own};
  g->room = behind + 1;
  g->got = (spx_member *)(g + 1);
  g->behind = (uint32_t *)(g->got + g->room);
  if (!own && !fetched) add(g, &(spx_member){spx_me, 1}, 1);
  if (!all) {
    watch.poll = look_for_left;
    spx_poller_add(&watch);
  }
  return all = g;
}

void spx_acks_behind(spx_ack_aggregation *g, uint32_t proc)
{
  if (g && g->waits < g->room) g->behind[g->waits++] = proc;
}

void spx_mcast_took(uint32_t master, spx_mcast_name name, bool fetches)
{
  for (aggregation *g = all; g; g = g->next) {
    if (!g->own || !is_of(g, master, name)) continue;
    g->own = false;
    if (!fetches) add(g, &(spx_member){spx_me, 1}, 1);
  }
  spx_acks_settle();
}

void spx_acks_got(uint32_t peer, const spx_rec_have *have, const spx_member *m, uint32_t n,
                  bool more)
{
  spx_mcast_name name = {have->index, have->gen};
  for (aggregation *g = all; g; g = g->next) {
    uint32_t at = 0;
    while (at < g->waits && g->behind[at] != peer) at++;
    if (at == g->waits || !is_of(g, have->master, name)) continue;
    add(g, m, n);
    if (!more) g->behind[at] = g->behind[--g->waits];
    break;
  }
  spx_acks_settle();
}

void spx_acks_peer_failed(uint32_t peer)
{
  for (aggregation **p = &all; *p;) {
    aggregation *g = *p;
    if (g->master == peer) {
      drop(p);
      continue;
    }
    for (uint32_t i = 0; i < g->waits;)
      if (g->behind[i] == peer)
        g->behind[i] = g->behind[--g->waits];
      else
        i++;
    p = &g->next;
  }
  spx_acks_settle();
}

void spx_acks_revoked(uint64_t ctx)
{
  for (aggregation **p = &all; *p;)
    if ((*p)->ctx - ctx < SPX_CTX_STEP)
      drop(p);
    else
      p = &(*p)->next;
}

uint32_t spx_acks_leave(void)
{
  uint32_t n = 0;
  for (aggregation *g = all; g; g = g->next)
    g->own = false; /* this process will not receive it any more: its parent may wait for the other
                       acknowledgements */
  spx_acks_settle();
  for (const aggregation *g = all; g; g = g->next) n++;
  return n;
}

void spx_acks_detach(void)
{
  while (all) drop(&all);
}
