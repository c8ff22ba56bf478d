/* mcast_arrive.c - multicasts at a member (mcast.c): forwarding, order, acknowledging, and its last
 * word.
 *
 * An arriving message is forwarded, whether it is the first of its kind or not: the members behind
 * this process may not have it. Then it is delivered in the order of its numbers, held back until
 * its turn comes, or dropped. */
#include "mcast.h"
#include <stdlib.h>
#include "dp.h"
#include "far.h"

#define ACK_EVERY 32u        /* messages */
#define AHEAD     (1u << 24) /* numbers: no master has so many messages on their way */
/* numbers that a member remembers: more than a master sends before one of them is acknowledged */
#define RELAYED 1024u

/* A message that came before its turn. */
typedef struct held {
  struct held *next;
  uint32_t len;
  uint8_t data[];
} held;

/* What this process has received from a master; piece: a record of any kind of message, from a
 * neighbour, that arrives in pieces. */
typedef struct {
  uint32_t life, number, acked;
  uint64_t matched, told; /* bytes */
  /* messages that came directly first, and are still on their way along the tree */
  uint32_t due;
  held *early;       /* in order */
  uint32_t *relayed; /* numbers of messages that its host has one copy of: the last RELAYED */
  uint8_t *piece;
  uint32_t piece_n, piece_len;
} incoming;

static incoming *in;
static spx_member *members; /* of the message that has come */
static spx_member *leads;   /* and, if it goes in parts, the members that get it for the hosts */

uint32_t spx_mcast_first(void) { return (uint32_t)spx_count_from(32, 4); }
static uint32_t after(uint32_t number) { return spx_mcast_after(number); }
static bool is_before(uint32_t a, uint32_t b) { return spx_mcast_is_before(a, b); }

static bool prepare(void)
{
  uint32_t n = spx_map.nprocs;
  if (!in) in = calloc(n, sizeof *in);
  if (!members) members = malloc(n * sizeof *members);
  if (!leads) leads = malloc(n * sizeof *leads);
  return in && members && leads && spx_mcast_prepare();
}

static void forget_early(incoming *from)
{
  while (from->early) {
    held *h = from->early;
    from->early = h->next;
    free(h);
  }
}

void spx_mcast_forget(uint32_t master)
{
  if (!in) return;
  forget_early(&in[master]);
  free(in[master].piece);
  in[master].piece = NULL;
}

void spx_mcast_forget_all(void)
{
  for (uint32_t i = 0; in && i < spx_map.nprocs; i++) {
    spx_mcast_forget(i);
    free(in[i].relayed);
  }
  free(in);
  free(members);
  free(leads);
  in = NULL;
  members = leads = NULL;
}

static void acknowledge(uint32_t master, int32_t word)
{
  incoming *from = &in[master];
  from->acked = from->number;
  from->told = from->matched;
  spx_rec_words as = {.acked = {.number = from->number, .word = word}};
  spx_tx_put(master, SPX_REC_MCAST_ACK, as, &from->matched, sizeof from->matched);
}

void spx_mcast_matched(uint32_t master, uint64_t n)
{
  in[master].matched += spx_mcast_cost(n);
  if (in[master].matched - in[master].told >= spx_set.credit / 4) acknowledge(master, 0);
}

/* Delivers a message whose turn it is; false: no memory. */
static bool deliver(uint32_t master, const uint8_t *data, uint32_t len)
{
  incoming *from = &in[master];
  spx_mcast_head h;
  memcpy(&h, data, sizeof h);
  uint32_t skip = (uint32_t)sizeof h + h.set;
  if (!spx_deliver_mcast(master, &h, data + skip, len - skip)) return false;
  from->number = after(from->number);
  if (from->number - from->acked >= ACK_EVERY) acknowledge(master, 0);
  return true;
}

static uint32_t number_of(const held *m)
{
  spx_mcast_head h;
  memcpy(&h, m->data, sizeof h);
  return h.number;
}

static bool is_held(const incoming *from, uint32_t number)
{
  const held *m = from->early;
  while (m && is_before(number_of(m), number)) m = m->next;
  return m && number_of(m) == number;
}

/* Keeps a message until those before it have come; false: no memory. */
static bool hold_back(incoming *from, const spx_mcast_head *h, const uint8_t *data, uint32_t len)
{
  held **at = &from->early;
  while (*at && is_before(number_of(*at), h->number)) at = &(*at)->next;
  held *m = malloc(sizeof *m + len);
  if (!m) return false;
  m->len = len;
  memcpy(m->data, data, len);
  m->next = *at;
  *at = m;
  return true;
}

/* Delivers held messages that are next in order. One that there is no memory for waits for the next
 * message. */
static void deliver_held(uint32_t master)
{
  incoming *from = &in[master];
  while (from->early && !is_before(after(from->number), number_of(from->early))) {
    held *m = from->early;
    if (number_of(m) == after(from->number) && !deliver(master, m->data, m->len)) return;
    from->early = m->next;
    free(m);
  }
}

/* Whether peer's statement about the data of an announced message can be true. Data in a staging
 * buffer, or in the memory of their master, are named only by processes that share that memory: a
 * message goes to the other members of a host from one of them. */
static bool may_be(uint32_t peer, uint32_t master, const spx_mcast_head *h,
                   const spx_mcast_rts *where)
{
  if (where->rts.bytes > SPX_MESSAGE_MOST) return false;
  if (h->flags & SPX_MCAST_CHAIN &&
      (where->source >= spx_segment->nprocs || where->source == spx_me))
    return false;
  bool near = spx_staging_reaches(peer);
  if (where->keeper != SPX_NO_PEER &&
      !(near && where->keeper < spx_segment->nprocs && where->keeper != spx_me && where->staging &&
        spx_staging_reaches(where->keeper)))
    return false;
  if (spx_staging_reaches(master) && !near) return false;
  return !spx_staging_has(master, where) || spx_staging_sound(where);
}

/* Does a set stand behind the place of the data where it has to, and nowhere else? */
static bool has_leads(const spx_mcast_head *h, const uint8_t *set, uint32_t bytes,
                      spx_mcast_leads_list *who)
{
  *who = (spx_mcast_leads_list){.m = leads, .set = set};
  if (!(h->flags & SPX_MCAST_PARTS)) return bytes == 0;
  if (!(h->flags & SPX_MCAST_CHAIN) || (h->flags & SPX_MCAST_PARTS) == SPX_MCAST_PARTS)
    return false;
  int64_t n = spx_mcast_decode(set, bytes, spx_segment->nprocs, leads);
  if (n <= 0) return false;
  for (int64_t i = 0; i < n; i++)
    if (leads[i].proc == h->master) return false;
  who->n = (uint32_t)n;
  who->bytes = bytes;
  return true;
}

/* Parses a message: its master, and the number of members that it is to be forwarded to, in
 * members. *old: it is of an earlier process with the master's index. false: it is malformed. */
static bool understand(uint32_t peer, const uint8_t *data, uint32_t len, spx_mcast_head *h,
                       uint32_t *n, bool *old, spx_mcast_leads_list *who)
{
  if (len < sizeof *h) return false;
  memcpy(h, data, sizeof *h);
  if (h->set > len - sizeof *h || h->number == 0 || h->flags & ~SPX_MCAST_FLAGS) return false;
  uint32_t rest = len - (uint32_t)sizeof *h - h->set;
  if ((h->flags & SPX_MCAST_ANNOUNCED) && rest < sizeof(spx_mcast_rts)) return false;
  if ((h->flags & SPX_MCAST_ACKED) && rest < sizeof(spx_mcast_name)) return false;
  if (h->flags & SPX_MCAST_ALONG && !(h->flags & SPX_MCAST_ANNOUNCED)) return false;
  int64_t k = spx_mcast_decode(data + sizeof *h, h->set, spx_segment->nprocs, members);
  if (k < 0 || (h->master != SPX_MCAST_DIRECT && h->master >= spx_segment->nprocs)) return false;
  *n = (uint32_t)k;
  bool direct = h->master == SPX_MCAST_DIRECT;
  if (direct) h->master = peer;
  for (uint32_t i = 0; i < *n; i++)
    if (members[i].proc == spx_me || members[i].proc == h->master) return false;
  *who = (spx_mcast_leads_list){0};
  if (h->flags & SPX_MCAST_ANNOUNCED) {
    spx_mcast_rts where;
    const uint8_t *at = data + sizeof *h + h->set;
    memcpy(&where, at, sizeof where);
    if (!has_leads(h, at + sizeof where, rest - (uint32_t)sizeof where, who)) return false;
    if (!may_be(peer, h->master, h, &where)) return false;
  }
  *old = !direct && h->epoch != (uint16_t)spx_life_of(h->master);
  return h->master != spx_me;
}

/* The state for the master, which may be another process now. */
static incoming *from_master(uint32_t master)
{
  incoming *from = &in[master];
  uint32_t life = spx_life_of(master);
  if (from->life == life) return from;
  forget_early(from);
  free(from->relayed);
  uint8_t *piece = from->piece; /* of a record that is still coming */
  uint32_t piece_n = from->piece_n, piece_len = from->piece_len;
  uint32_t first = spx_mcast_first();
  *from = (incoming){.life = life,
                     .number = first,
                     .acked = first,
                     .piece = piece,
                     .piece_n = piece_n,
                     .piece_len = piece_len};
  return from;
}

/* Notes an announced message whose data another process of this host has; false: no memory. */
static bool note_relayed(incoming *from, uint32_t number)
{
  if (!from->relayed && !(from->relayed = calloc(RELAYED, sizeof *from->relayed))) return false;
  from->relayed[number % RELAYED] = number;
  return true;
}

static bool was_relayed(const incoming *from, uint32_t number)
{
  return from->relayed && from->relayed[number % RELAYED] == number;
}

/* The message has arrived twice: the master, which may wait for the dead relay, is notified that
 * this process needs nothing. */
static void had_already(const incoming *from, const spx_mcast_head *h, const spx_mcast_rts *where)
{
  if (spx_mcast_relays(h->master, h->number)) return;
  if (!(h->flags & SPX_MCAST_ANNOUNCED) || !was_relayed(from, h->number)) return;
  spx_rec_id done = {.index = where->rts.index, .gen = where->rts.gen};
  spx_tx_put(h->master, SPX_REC_DONE, SPX_REC_PLAIN, &done, sizeof done);
}

/* The acknowledgements to gather for the message, if its master needs them. */
static spx_ack_aggregation *gather(uint32_t peer, const spx_mcast_head *h, const uint8_t *data,
                                   bool twice, uint32_t n)
{
  const incoming *from = &in[h->master];
  spx_mcast_name name;
  spx_mcast_rts where;
  bool fetched = false;
  memcpy(&name, data, sizeof name);
  if (h->flags & SPX_MCAST_ANNOUNCED) {
    memcpy(&where, data, sizeof where);
    name = (spx_mcast_name){where.rts.index, where.rts.gen};
    bool staging = where.keeper == SPX_NO_PEER && spx_staging_has(h->master, &where);
    fetched = twice && !staging && !was_relayed(from, h->number);
  }
  return spx_acks_begin(peer, h, name, twice, fetched, n);
}

bool spx_mcast_awaits(uint32_t master, uint32_t number)
{
  if (!prepare()) return false;
  const incoming *from = from_master(master);
  return is_before(from->number, number) && number - from->number <= AHEAD &&
         !is_held(from, number);
}

/* False: leave it where it is, and retry. */
static bool message(uint32_t peer, const uint8_t *data, uint32_t len)
{
  spx_mcast_head h;
  spx_mcast_rts where = {.keeper = SPX_NO_PEER};
  uint8_t own[sizeof h + sizeof where]; /* the message as this process is to find it */
  uint32_t n;
  bool old;
  spx_mcast_leads_list who;
  if (!understand(peer, data, len, &h, &n, &old, &who)) {
    spx_refuse(peer, "a multicast that can be none");
    return true;
  }
  if (old) return true;
  uint32_t skip = (uint32_t)sizeof h + h.set, left = n;
  incoming *from = from_master(h.master);
  if (h.number - from->number > AHEAD && !is_before(h.number, from->number)) {
    spx_refuse(peer, "a multicast that comes far too early");
    return true;
  }
  if (h.flags & SPX_MCAST_THERE) /* read what follows when it has come: it is in another channel */
    return !is_before(from->number, h.number) || is_held(from, h.number) || spx_proc_dead(h.master);
  bool twice = !is_before(from->number, h.number) || is_held(from, h.number),
       announced = h.flags & SPX_MCAST_ANNOUNCED;
  if (announced) {
    memcpy(&where, data + skip, sizeof where);
    len -= who.bytes;
  }
  spx_ack_aggregation *g =
      h.flags & SPX_MCAST_ACKED ? gather(peer, &h, data + skip, twice, n) : NULL;
  if (announced && !twice) left = spx_mcast_relay(&h, members, n, &where, &who, g);
  if (twice && h.flags & SPX_MCAST_CHAIN) spx_mcast_leave_chain(&h, &where);
  if (announced) spx_mcast_answer_early(h.master, &where);
  if (left > 0) spx_mcast_hand_on(h, members, left, data + skip, len - skip, g);
  if (g) spx_acks_settle();
  /* sent again, as to all members that lacked it; or it came directly, and those behind this
   * process may not have it */
  if (twice) {
    if (!(h.flags & SPX_MCAST_AGAIN) && from->due > 0) from->due--;
    if (!(h.flags & SPX_MCAST_ACKED)) had_already(from, &h, &where);
    if (where.keeper != SPX_NO_PEER) spx_staging_pass(h.master, &where);
    return true;
  }
  if (where.keeper != SPX_NO_PEER) {
    if (!note_relayed(from, h.number)) return false;
    h.set = 0;
    memcpy(own, &h, sizeof h);
    memcpy(own + sizeof h, &where, sizeof where);
    data = own;
    len = sizeof own;
  }
  if (h.number != after(from->number) && spx_proc_dead(h.master)) return true;
  if (!(h.number == after(from->number) ? deliver(h.master, data, len)
                                        : hold_back(from, &h, data, len)))
    return false;
  from->due += (h.flags & SPX_MCAST_AGAIN) != 0;
  deliver_held(h.master);
  return true;
}

bool spx_mcast_arrived(uint32_t peer, const spx_rec *rec)
{
  if (!prepare()) return false;
  incoming *from = &in[peer];
  if (SPX_LIKELY(!from->piece && rec->as.piece.more == 0))
    return message(peer, rec->data, rec->len);
  /* of the message, at most */
  uint32_t left = from->piece ? from->piece_len - from->piece_n : SPX_CTRL_MAX;
  if (!spx_piece_fits(rec, left, from->piece != NULL)) {
    spx_refuse(peer, "a piece of a multicast that does not fit");
    return true;
  }
  if (!from->piece) {
    from->piece_n = 0;
    from->piece_len = rec->len + (uint32_t)rec->as.piece.more;
    if (!(from->piece = malloc(from->piece_len ? from->piece_len : 1))) return false;
  }
  /* the last: what was put together stays if there is no memory */
  if (from->piece_n + rec->len == from->piece_len) {
    memcpy(from->piece + from->piece_n, rec->data, rec->len);
    if (!message(peer, from->piece, from->piece_len)) return false;
    free(from->piece);
    from->piece = NULL;
    return true;
  }
  memcpy(from->piece + from->piece_n, rec->data, rec->len);
  from->piece_n += rec->len;
  return true;
}

/* ---- leaving ---- */

/* A member that has left forwards nothing. So a member that leaves before a message has come to it
 * along the tree, which it has had directly, notifies the master, which sends that to all members;
 * a master that leaves does so before. */
void spx_mcast_leave(void)
{
  spx_mcast_send_split(SPX_NO_PEER);
  for (uint32_t i = 0; in && i < spx_map.nprocs; i++) {
    if (in[i].due == 0) continue;
    in[i].due = 0;
    if (in[i].life == spx_life_of(i) && !spx_proc_left(i)) acknowledge(i, SPX_MCAST_LAST_WORD);
  }
}
