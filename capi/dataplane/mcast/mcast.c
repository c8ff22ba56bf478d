/* mcast.c - messages to sets of processes (MPIX_Mcast): sending, handing on, credit, and what
 * deaths do. docs/multicast.md.
 *
 * The set travels with the message. Its master hands the message to one member, who hands it on to
 * others, and so on along a tree (mcast_wire.c): at once when the record arrives, whether a receive
 * is posted or not. Short messages carry their data and wait among the unexpected like any other;
 * long ones, and those for which some member has no credit, are announced, and every member fetches
 * the data: long ones, on the master's host, from its staging buffer (mcast_staging.c), else from
 * the master (get.c).
 *
 * Every message has a number for each of its members: 1, 2, 3 ... among those from this master to
 * this member. A member delivers in this order and drops what it had already (mcast_arrive.c). The
 * master keeps what has not been acknowledged: when a member dies, who may have had to hand
 * something on, it sends that again itself.
 */
#include "mcast.h"
#include <stdlib.h>
#include "dp.h"
#include "fail.h"
#include "mcast_op.h"
#include "pack.h"

/* bytes of data that are kept for members who have not acknowledged them */
#define RETAIN_MAX (16u << 20)

/* What this process has sent to another one as a master. */
typedef struct {
  uint32_t life;   /* the member's incarnation that all this is about */
  uint32_t number; /* of the last message */
  uint32_t acked;  /* the member has had all up to this one */
  /* all up to this one went through the member's own channel: nothing that follows there overtakes
   * them */
  uint32_t direct;
  uint64_t sent, matched; /* bytes that it may have to keep */
} outgoing;

/* A message whose members have not all acknowledged it. */
typedef struct entry {
  struct entry *next;
  spx_request *r; /* announced: it is not complete */
  uint32_t len;
  bool tree;      /* it has gone along the tree */
  bool split;     /* and to some members directly: these may leave before they have handed it on */
  bool all;       /* to all members directly that had not acknowledged it */
  uint8_t data[]; /* head, set, data */
} entry;

typedef spx_mcast_op op;

/* Has a member fetched it? ITSELF: not yet, and no relay does it for it, since it may have had the
 * message from here. */
enum { NOT_YET, FETCHED, ITSELF };

static outgoing *out;
static entry *kept, **kept_end = &kept;
static uint64_t kept_bytes;
static spx_member *members; /* of the message that is being looked at */

static uint64_t cost(uint64_t n) { return spx_mcast_cost(n); }
static uint32_t host_of(uint32_t i) { return spx_proc_of(i)->host; }
static uint32_t after(uint32_t number) { return spx_mcast_after(number); }
static bool is_before(uint32_t a, uint32_t b) { return spx_mcast_is_before(a, b); }

bool spx_mcast_prepare(void)
{
  uint32_t n = spx_map.nprocs;
  if (!out) out = calloc(n, sizeof *out);
  if (!members) members = malloc(n * sizeof *members);
  return out && members && spx_mcast_hand_prepare(n);
}

void spx_mcast_detach(void)
{
  spx_mcast_relay_detach(); /* they write to the staging buffer */
  spx_staging_detach();
  spx_acks_detach();
  spx_mcast_forget_all();
  while (kept) {
    entry *e = kept;
    kept = e->next;
    free(e);
  }
  kept_end = &kept;
  kept_bytes = 0;
  spx_mcast_hand_detach();
  free(out);
  free(members);
  out = NULL;
  members = NULL;
}

/* ---- what is kept ---- */

static uint32_t set_of(const entry *e, spx_mcast_head *h)
{
  memcpy(h, e->data, sizeof *h);
  int64_t n = spx_mcast_decode(e->data + sizeof *h, h->set, spx_map.nprocs, members);
  return n > 0 ? (uint32_t)n : 0;
}

static void await_gone(spx_request *r);
static bool has_it(spx_member m)
{
  return !is_before(out[m.proc].acked, m.number) || spx_proc_left(m.proc);
}

/* Frees what all members have. Each call looks at few of them: the first that lacks a message ends
 * it. */
static void let_go(void)
{
  while (kept && !kept->r) {
    entry *e = kept;
    spx_mcast_head h;
    uint32_t n = set_of(e, &h);
    for (uint32_t i = 0; i < n; i++)
      if (!has_it(members[i])) return;
    if (!(kept = e->next)) kept_end = &kept;
    kept_bytes -= e->len;
    free(e);
  }
}

/* The number proc belongs to another process now: what was sent to the one before concerns nobody
 * any more. */
static void renew(uint32_t proc)
{
  for (entry *e = out[proc].life ? kept : NULL; e; e = e->next) {
    spx_mcast_head h;
    uint32_t n = set_of(e, &h), k = 0;
    for (uint32_t i = 0; i < n; i++)
      if (members[i].proc != proc) members[k++] = members[i];
    if (k == n) continue;
    h.set = 0; /* nobody sends it again */
    memcpy(e->data, &h, sizeof h);
  }
  uint32_t first = spx_mcast_first();
  out[proc] =
      (outgoing){.life = spx_life_of(proc), .number = first, .acked = first, .direct = first};
}

static uint32_t place_of(const spx_rankset *set, uint32_t proc)
{
  uint32_t lo = 0, hi = set->n;
  while (lo < hi) {
    uint32_t mid = (lo + hi) / 2;
    if (set->procs[mid] < proc)
      lo = mid + 1;
    else
      hi = mid;
  }
  return lo < set->n && set->procs[lo] == proc ? lo : UINT32_MAX;
}

/* Has a member an announced message, or is its record in the channel from its relay? Then it must
 * not come for the data: nobody would answer. */
static bool is_there(const entry *e, const spx_mcast_head *h, spx_member m)
{
  const op *o = e->r ? e->r->priv : NULL;
  uint32_t at = o && o->fetched ? place_of(o->set, m.proc) : UINT32_MAX;
  return h->flags & SPX_MCAST_ANNOUNCED && !spx_staging_reaches(m.proc) &&
         (at == UINT32_MAX || o->fetched[at] == FETCHED);
}

/* Puts the message into the member's own channel; twice: it has gone another way, too. */
static void put_again(const entry *e, spx_mcast_head h, spx_member m, bool twice)
{
  if (is_there(e, &h, m)) return;
  uint32_t skip = (uint32_t)sizeof h + h.set;
  h.number = m.number;
  h.flags &= (uint16_t)~SPX_MCAST_ALONG;
  if (twice) h.flags |= SPX_MCAST_AGAIN;
  if (spx_peer_is_far(m.proc)) h.master = SPX_MCAST_DIRECT;
  op *o = e->r ? e->r->priv : NULL;
  uint32_t at = o && o->fetched ? place_of(o->set, m.proc) : UINT32_MAX;
  if (at != UINT32_MAX && o->fetched[at] == NOT_YET) o->fetched[at] = ITSELF;
  spx_mcast_put(m.proc, h, NULL, 0, e->data + skip, e->len - skip);
}

/* What follows in the member's channel comes after a message that is there. */
static void put_order(spx_mcast_head h, spx_member m)
{
  h.number = m.number;
  h.flags = SPX_MCAST_THERE;
  spx_mcast_put(m.proc, h, NULL, 0, NULL, 0);
}

static bool is_acked(const spx_request *r) { return r->mode == SPX_M_SYNC; }

/* Is the member not known to have received the message, whose master wants to know? */
static bool is_unknown(const spx_request *r, uint32_t proc)
{
  const op *o = r->priv;
  uint32_t at = o->fetched ? place_of(o->set, proc) : UINT32_MAX;
  return at != UINT32_MAX && o->fetched[at] != FETCHED && !spx_proc_left(proc);
}

/* Sends what a process may have had to hand on to everybody who has not acknowledged it; and to who
 * has perhaps received it, and told that to a process that is gone: who gets it from here answers
 * here. */
static void send_again(entry *e, const spx_mcast_head *h, uint32_t n)
{
  bool acked = e->r && is_acked(e->r);
  e->all = true;
  for (uint32_t i = 0; i < n; i++)
    if (!has_it(members[i]) || (acked && is_unknown(e->r, members[i].proc)))
      put_again(e, *h, members[i], true);
  if (acked) await_gone(e->r);
}

/* Is proc one of the first n of `members`? */
static bool is_member(uint32_t proc, uint32_t n)
{
  uint32_t k = 0;
  while (k < n && members[k].proc != proc) k++;
  return k < n;
}

void spx_mcast_send_split(uint32_t member)
{
  if (!out) return;
  for (entry *e = kept; e; e = e->next) {
    spx_mcast_head h;
    if (!e->split || e->all) continue;
    uint32_t n = set_of(e, &h);
    if (member == SPX_NO_PEER || is_member(member, n)) send_again(e, &h, n);
  }
}

void spx_mcast_acked(uint32_t peer, const spx_rec *rec)
{
  uint32_t number = rec->as.acked.number;
  if (!out || out[peer].life != spx_life_of(peer)) return;
  if (is_before(out[peer].number, number)) {
    spx_refuse(peer, "word of a multicast that it was not sent");
    return;
  }
  if (is_before(out[peer].acked, number)) out[peer].acked = number;
  uint64_t matched;
  memcpy(&matched, rec->data, sizeof matched);
  out[peer].matched = matched < out[peer].sent ? matched : out[peer].sent;
  if (rec->as.acked.word == SPX_MCAST_LAST_WORD) spx_mcast_send_split(peer);
  let_go();
}

/* Puts all that a member may lack into its own channel, up to `last`, the message that was kept
 * last. */
static void catch_up(uint32_t member, entry *last)
{
  outgoing *to = &out[member];
  uint32_t had = is_before(to->acked, to->direct) ? to->direct : to->acked;
  for (entry *e = after(had) == to->number ? last : kept; e; e = e->next) {
    spx_mcast_head h;
    uint32_t n = set_of(e, &h);
    for (uint32_t i = 0; i < n; i++) {
      if (members[i].proc != member || !is_before(had, members[i].number)) continue;
      if (is_there(e, &h, members[i])) {
        put_order(h, members[i]);
        continue;
      }
      e->split = e->split || e->tree;
      put_again(e, h, members[i], e->tree);
    }
  }
  to->direct = to->number;
}

/* In order with all else that this process sends to the members: each gets the message directly,
 * behind what it may lack. */
static void in_order(op *o, entry *e)
{
  o->direct = true;
  for (uint32_t i = 0; i < o->set->n; i++)
    if (o->set->procs[i] != spx_me && !spx_proc_left(o->set->procs[i]))
      catch_up(o->set->procs[i], e);
}

/* ---- sending ---- */

/* Completes the multicast if nothing is left to be done for it. */
static void settle(spx_request *r) { spx_mcast_settle(r); }

void spx_mcast_settle(spx_request *r)
{
  op *o = r->priv;
  if (o->left || o->streams || o->self || o->waits || o->over || o->inner ||
      (o->source.hops && r->error == MPI_SUCCESS))
    return;
  o->over = true;
  if (o->lossy) spx_poller_del(&o->gone);
  o->lossy = false;
  spx_id_drop(r);
  if (spx_chain_is(o)) spx_chain_end(r);
  for (entry *e = o->fetched ? kept : NULL; e; e = e->next)
    if (e->r == r) e->r = NULL;
  free(o->fetched);
  o->fetched = NULL;
  spx_complete(r, r->error == MPI_SUCCESS && o->failed ? MPIX_ERR_PROC_FAILED : r->error);
}

static int poll_self(spx_poller *p)
{
  op *o = (op *)((char *)p - offsetof(op, poller));
  if (!spx_is_done(o->self)) return 0;
  spx_request *r = o->self->priv;
  spx_poller_del(p);
  if (o->self->error != MPI_SUCCESS) r->error = o->self->error;
  spx_request_free(o->self);
  o->self = NULL;
  settle(r);
  return 1;
}

/* Do records of this process to members of the multicast wait for room? */
static bool waits_for_room(const op *o)
{
  if (o->head != SPX_NO_PEER && spx_txs[o->head].pend) return true;
  if (o->lead != SPX_NO_PEER && spx_txs[o->lead].pend) return true;
  for (uint32_t i = 0; (o->direct || o->whole) && i < o->set->n; i++)
    if (spx_txs[o->set->procs[i]].pend && (o->direct || spx_staging_reaches(o->set->procs[i])))
      return true;
  return false;
}

static int poll_room(spx_poller *p)
{
  op *o = (op *)((char *)p - offsetof(op, room));
  if (waits_for_room(o)) return 0;
  o->waits = false;
  spx_poller_del(p);
  settle(o->request);
  return 1;
}

/* The message to ourselves goes through matching alone. */
static int to_self(spx_request *r)
{
  op *o = r->priv;
  if (r->flags & SPX_RF_BLOCKING)
    return spx_send(r->buf, r->count, r->type, r->comm->rank, r->want_tag, r->comm, r->ctx_kind,
                    SPX_M_STANDARD);
  int err = spx_isend(r->buf, r->count, r->type, r->comm->rank, r->want_tag, r->comm, r->ctx_kind,
                      SPX_M_STANDARD, SPX_RF_INTERNAL, &o->self);
  if (err != MPI_SUCCESS) return err;
  if (spx_is_done(o->self)) {
    err = o->self->error;
    spx_request_free(o->self);
    o->self = NULL;
    return err;
  }
  o->self->priv = r;
  o->poller.poll = poll_self;
  spx_poller_add(&o->poller);
  return MPI_SUCCESS;
}

/* Nothing is to be done for this member any more. False: it was not waited for. */
static bool strike(op *o, uint32_t peer)
{
  uint32_t at = place_of(o->set, peer);
  if (at == UINT32_MAX || !o->fetched || o->fetched[at] == FETCHED || o->left == 0) return false;
  o->fetched[at] = FETCHED;
  o->left--;
  return true;
}

/* Members that have left have received it, but may have told a process that is gone. */
static int poll_gone(spx_poller *p)
{
  op *o = (op *)((char *)p - offsetof(op, gone));
  uint32_t before = o->left;
  for (uint32_t i = 0; i < o->set->n; i++)
    if (o->fetched[i] != FETCHED && spx_proc_left(o->set->procs[i])) strike(o, o->set->procs[i]);
  if (o->left == before) return 0;
  settle(o->request);
  return 1;
}

static void await_gone(spx_request *r)
{
  op *o = r->priv;
  if (o->lossy || o->over) return;
  o->lossy = true;
  o->request = r;
  o->gone.poll = poll_gone;
  spx_poller_add(&o->gone);
}

/* May n bytes go to all members with the message? */
static bool has_credit(const spx_rankset *set, uint64_t n)
{
  if (cost(n) > spx_segment->ring_bytes / 4 || n > spx_set.eager_max || kept_bytes > RETAIN_MAX)
    return false;
  for (uint32_t i = 0; i < set->n; i++) {
    outgoing *to = &out[set->procs[i]];
    if (to->sent + cost(n) - to->matched > spx_set.credit) return false;
  }
  return true;
}

/* The members that will get it, into members, with their numbers. */
static uint32_t number(op *o, uint64_t charge)
{
  const spx_rankset *set = o->set;
  uint32_t n = 0;
  for (uint32_t i = 0; i < set->n; i++) {
    uint32_t p = set->procs[i];
    if (p == spx_me) continue;
    if (spx_proc_left(p)) {
      o->failed = o->failed || spx_proc_dead(p);
      continue;
    }
    out[p].sent += charge;
    members[n++] = (spx_member){p, out[p].number = after(out[p].number)};
  }
  return n;
}

/* Room on the staging buffer for a long message to the members of this host, the first n of
 * `members`, with its first part: while the rest is put there, who hands it on wakes up. A single
 * one copies a very long one faster by itself. */
static void stage(spx_request *r, uint32_t n, spx_mcast_rts *where)
{
  enum { ALONE_MOST = 1 << 20 };
  op *o = r->priv;
  uint32_t readers = 0;
  if (r->bytes <= spx_set.eager_max) return;
  for (uint32_t i = 0; i < n; i++) readers += spx_staging_reaches(members[i].proc);
  if (readers == 0 || (readers == 1 && r->bytes > ALONE_MOST)) return;
  if (!(o->block = spx_staging_take((uint64_t)r->bytes, members, n, false, where))) return;
  bool tree = !(o->set->flags & MPIX_MCAST_ORDERED);
  o->whole = tree && !is_acked(r) && spx_mcast_whole(r, readers);
  o->there =
      o->whole ? spx_staging_fill(o->block, r, 0, true) : spx_staging_begin(o->block, r, tree);
}

/* The message is not complete before the first n of `members` have fetched it, or told that they
 * have received it. It gets a name. */
static bool expect(spx_request *r, uint32_t n, uint32_t *index, uint32_t *gen)
{
  op *o = r->priv;
  if (!(o->fetched = malloc(o->set->n)) || !spx_id_new(r, index, gen)) return false;
  memset(o->fetched, FETCHED, o->set->n);
  for (uint32_t i = 0; i < n; i++) o->fetched[place_of(o->set, members[i].proc)] = NOT_YET;
  o->left = n;
  return true;
}

/* The data of an announced message: where they are. Those who read them from the staging buffer
 * need not fetch them. */
static bool announce(spx_request *r, uint32_t n, spx_mcast_rts *where)
{
  op *o = r->priv;
  spx_rec_rts *rts = &where->rts;
  if (!expect(r, n, &rts->index, &rts->gen)) return false;
  bool contiguous = r->type->flags & SPX_T_CONTIG;
  if (spx_id_shared(rts->index) && !spx_chain_is(o) && (contiguous || spx_has_long_runs(r))) {
    rts->addr = (uint64_t)(uintptr_t)r->buf;
    rts->type = contiguous ? 0 : (uint64_t)(uintptr_t)r->type;
  }
  if (!spx_chain_is(o)) stage(r, n, where);
  for (uint32_t i = 0; o->block && !is_acked(r) && i < n; i++)
    if (spx_staging_reaches(members[i].proc)) strike(o, members[i].proc);
  return true;
}

static void release(spx_request *r);

/* Hands the message to the first of the other hosts; returns how many members, the first ones, are
 * left for others: those of this host. */
static uint32_t begin_chain(spx_request *r, spx_mcast_head h, uint32_t n, const void *data,
                            uint32_t len)
{
  op *o = r->priv, *inner = o->inner->priv;
  uint32_t k;
  h.flags |= SPX_MCAST_CHAIN;
  n = spx_mcast_living(members, n);
  spx_mcast_tree t =
      spx_mcast_tree_of(members, n, host_of(spx_me), host_of, spx_mcast_known_switches(), 0);
  spx_member *first = spx_mcast_next_host(&t, host_of(spx_me), &k);
  if (!first) return t.n;
  uint8_t *more = malloc(len + k * sizeof(spx_mcast_item));
  if (more) {
    memcpy(more, data, len);
    len = spx_chain_way(o->inner, &h, first, k, spx_mcast_known_switches() != NULL, more, len);
    data = more;
  }
  h.number = first->number;
  o->head = inner->head = first->proc;
  spx_mcast_put(first->proc, h, first + 1, k - 1, data, len);
  free(more);
  return t.n;
}

/* Processes of other jobs know ours by other numbers: they get it from us, and hand nothing on. */
static uint32_t send_far(spx_mcast_head h, uint32_t n, const void *data, uint32_t len)
{
  uint32_t k = 0;
  h.master = SPX_MCAST_DIRECT;
  for (uint32_t i = 0; i < n; i++) {
    if (!spx_peer_is_far(members[i].proc)) {
      members[k++] = members[i];
      continue;
    }
    h.number = members[i].number;
    spx_mcast_put(members[i].proc, h, NULL, 0, data, len);
  }
  return k;
}

static int send_out(spx_request *r)
{
  op *o = r->priv;
  for (uint32_t i = 0; i < o->set->n; i++)
    if (out[o->set->procs[i]].life != spx_life_of(o->set->procs[i])) renew(o->set->procs[i]);
  if (kept_bytes > RETAIN_MAX / 4) let_go();
  bool acked = is_acked(r), eager = has_credit(o->set, (uint64_t)r->bytes);
  uint32_t name = acked && eager ? (uint32_t)sizeof(spx_mcast_name) : 0;
  uint32_t len = eager ? name + (uint32_t)r->bytes : (uint32_t)sizeof(spx_mcast_rts);
  entry *e = malloc(sizeof *e + sizeof(spx_mcast_head) + o->set->n * sizeof(spx_mcast_item) + len);
  if (!e) return MPI_ERR_NO_MEM;
  uint32_t n = number(o, eager ? cost((uint64_t)r->bytes) : 0);
  for (uint32_t i = 0; spx_tracer_now && i < n; i++)
    spx_tracer_now->sent(members[i].proc, r->ctx, r->want_tag, (uint64_t)r->bytes,
                         members[i].number, true);
  spx_mcast_head h = {.ctx = r->ctx,
                      .tag = r->want_tag,
                      .src = r->comm->rank,
                      .master = spx_me,
                      .epoch = spx_map.epoch};
  h.flags = (uint16_t)((eager ? 0 : SPX_MCAST_ANNOUNCED) | (acked ? SPX_MCAST_ACKED : 0));
  h.set = spx_mcast_encode(e->data + sizeof h, members, n);
  memcpy(e->data, &h, sizeof h);
  uint8_t *data = e->data + sizeof h + h.set;
  e->next = NULL;
  e->tree = !(o->set->flags & MPIX_MCAST_ORDERED);
  e->split = e->all = false;
  e->r = eager && !acked ? NULL : r;
  e->len = (uint32_t)sizeof h + h.set + len;
  if (eager) {
    spx_mcast_name self = {0};
    if (acked && !expect(r, n, &self.index, &self.gen)) {
      free(e);
      return MPI_ERR_NO_MEM;
    }
    memcpy(data, &self, name);
    spx_pack(r->buf, r->count, r->type, 0, r->bytes, data + name);
  } else {
    spx_mcast_rts where = {
        .rts.bytes = (uint64_t)r->bytes, .keeper = SPX_NO_PEER, .source = spx_me};
    spx_request *s = e->tree && spx_chain_pays(r, members, n)
                         ? spx_chain_begin(r, members, n, release, &where)
                         : NULL;
    if (s) e->r = s;
    if (!announce(e->r, n, &where)) {
      if (s) {
        s->error = MPI_ERR_NO_MEM;
        spx_staging_drop(((op *)s->priv)->block);
        settle(s); /* lets go of r, and of what it has */
      }
      free(e);
      return MPI_ERR_NO_MEM;
    }
    memcpy(data, &where, sizeof where);
  }
  *kept_end = e;
  kept_end = &e->next;
  kept_bytes += e->len;
  if (!e->tree)
    in_order(o, e);
  else {
    n = send_far(h, n, data, len);
    if (o->inner) n = begin_chain(r, h, n, data, len);
    spx_mcast_hand_over(o, h, members, n, data, len);
  }
  if (o->inner && !(r->flags & SPX_RF_BLOCKING)) {
    op *inner = o->inner->priv;
    inner->source.there = spx_staging_fill(inner->block, r, inner->source.there, true);
  }
  if ((o->waits = waits_for_room(o))) {
    o->request = r;
    o->room.poll = poll_room;
    spx_poller_add(&o->room);
  }
  if (o->block) spx_staging_fill(o->block, r, o->there, true);
  if (!eager) spx_stat.announced++;
  spx_count_sent(r->comm, (uint64_t)r->bytes);
  return MPI_SUCCESS;
}

/* Puts a filled-in multicast on its way. Errors complete it. */
static void start(spx_request *r)
{
  op *o = r->priv;
  o->left = o->streams = 0;
  o->block = NULL;
  o->inner = NULL;
  o->lead = o->head = SPX_NO_PEER;
  o->whole = false;
  o->waits = o->direct = false;
  o->over = o->failed = o->lossy = false;
  r->bytes = (int64_t)spx_capacity(r);
  int err = spx_comm_error(r->comm, r->ctx_kind, SPX_NO_PEER);
  if (err == MPI_SUCCESS && !spx_mcast_prepare()) err = MPI_ERR_NO_MEM;
  if (err == MPI_SUCCESS && o->set->self && !(r->comm->flags & SPX_C_INTER)) err = to_self(r);
  if (err == MPI_SUCCESS && o->set->n > (uint32_t)o->set->self) err = send_out(r);
  if (err != MPI_SUCCESS) r->error = err;
  settle(r);
}

/* ---- members that fetch ---- */

bool spx_mcast_has(const spx_request *r, uint32_t peer)
{
  return place_of(((const op *)r->priv)->set, peer) != UINT32_MAX;
}

static void not_member(uint32_t peer)
{
  spx_refuse(peer, "the name of a multicast of which it is no member");
}

void spx_mcast_fetched(spx_request *r, uint32_t peer)
{
  if (!spx_mcast_has(r, peer))
    not_member(peer);
  else if (strike(r->priv, peer))
    settle(r);
}

/* What members have said of having received it may be lost. */
static void ask_all(spx_request *r)
{
  op *o = r->priv;
  if (!is_acked(r) || o->lossy) return;
  for (entry *e = kept; e; e = e->next) {
    spx_mcast_head h;
    if (e->r != r) continue;
    uint32_t n = set_of(e, &h);
    send_again(e, &h, n);
    break;
  }
}

/* A relay has told who has the data: not those that had the message from here, and may want them
 * from here. Or some have received it. */
void spx_mcast_had(uint32_t peer, const spx_rec *rec)
{
  spx_rec_have a;
  memcpy(&a, rec->data, sizeof a);
  spx_request *r = spx_id_find(a.index, a.gen);
  if (!r || r->kind != SPX_R_MCAST || !members) return; /* members: this process has left */
  op *o = r->priv;
  if (!spx_mcast_has(r, peer)) return; /* it may have handed on what another one says */
  int32_t what = rec->as.have.what;
  if (what == SPX_MCAST_LOST) ask_all(r);
  if (what == SPX_MCAST_LOST || is_acked(r) != (what == SPX_MCAST_GOT)) return;
  int64_t n = spx_mcast_decode(rec->data + sizeof a, rec->len - (uint32_t)sizeof a, spx_map.nprocs,
                               members);
  for (int64_t i = 0; i < n; i++) {
    uint32_t at = place_of(o->set, members[i].proc);
    if (at != UINT32_MAX && o->fetched && (is_acked(r) || o->fetched[at] == NOT_YET))
      strike(o, members[i].proc);
  }
  settle(r);
}

/* A stream to a member has ended. No lock is held. */
static int streamed(spx_request *s, MPI_Status *st)
{
  (void)st;
  spx_request *r = s->priv;
  spx_lock();
  op *o = r->priv;
  o->streams--;
  if (s->error == MPIX_ERR_PROC_FAILED)
    o->failed = true;
  else if (s->error != MPI_SUCCESS)
    r->error = s->error;
  settle(r);
  spx_unlock();
  return MPI_SUCCESS;
}

void spx_mcast_asked(spx_request *r, uint32_t peer, const spx_rec_cts *cts, bool relays)
{
  op *o = r->priv;
  uint64_t bytes = cts->bytes;
  if (!spx_mcast_has(r, peer)) {
    not_member(peer);
    return;
  }
  if (!(relays && is_acked(r) && o->streams < o->set->n) && !strike(o, peer)) return;
  if (spx_chain_is(o)) {
    if (!spx_source_ask(&o->source, peer, cts->rx_index, cts->rx_gen, 0, bytes))
      spx_fatal(MPI_ERR_NO_MEM, "no memory to answer process %u, a member of a multicast", peer);
    return;
  }
  spx_request *s = (spx_request *)spx_new(SPX_K_REQ);
  if (!s || ((spx_txs[peer].slow & SPX_TX_NEW) && spx_tx_init(peer) != MPI_SUCCESS))
    spx_fatal(MPI_ERR_NO_MEM, "no memory to answer process %u, a member of a multicast", peer);
  s->kind = SPX_R_SEND;
  s->flags = SPX_RF_ACTIVE | SPX_RF_INTERNAL | SPX_RF_FREED;
  s->finish = streamed;
  s->priv = r;
  s->buf = r->buf;
  s->count = r->count;
  s->type = r->type;
  s->comm = r->comm;
  s->ctx = r->ctx;
  s->ctx_kind = r->ctx_kind;
  s->peer = peer;
  s->bytes = r->bytes;
  s->out.to = (spx_name){cts->rx_index, cts->rx_gen};
  s->out.end = bytes < (uint64_t)r->bytes ? bytes : (uint64_t)r->bytes;
  spx_stat.streams++;
  spx_stat.streamed_bytes += s->out.end;
  o->streams++;
  spx_tx_stream(peer, s);
  spx_tx_drain();
}

void spx_mcast_fail(spx_request *r, int error)
{
  op *o = r->priv;
  r->error = error;
  o->left = 0;
  settle(r);
}

void spx_mcast_each_missing(const spx_request *r, void (*fn)(uint32_t proc, void *), void *arg)
{
  const op *o = r->priv;
  if (o->inner) {
    spx_mcast_each_missing(o->inner, fn, arg);
    return;
  }
  if (o->waits && !o->direct && !o->fetched) fn(o->lead, arg);
  for (uint32_t i = 0; o->waits && o->direct && !o->fetched && i < o->set->n; i++)
    if (spx_txs[o->set->procs[i]].pend) fn(o->set->procs[i], arg);
  for (uint32_t i = 0; o->fetched && i < o->set->n; i++)
    if (o->fetched[i] != FETCHED && o->set->procs[i] != spx_me && !spx_proc_left(o->set->procs[i]))
      fn(o->set->procs[i], arg);
}

/* ---- deaths ---- */

static void died(uint32_t peer)
{
  spx_staging_peer_failed(peer);
  spx_mcast_relay_peer_failed(peer);
  spx_mcast_forget(peer);
  spx_acks_peer_failed(peer);
  if (!out) return;
  for (entry *e = kept, *next; e; e = next) {
    next = e->next;
    spx_mcast_head h;
    uint32_t n = set_of(e, &h);
    if (is_member(peer, n)) send_again(e, &h, n);
    if (!e->r) continue;
    op *o = e->r->priv;
    if (!strike(o, peer)) continue;
    o->failed = true;
    settle(e->r);
  }
  let_go();
}

static void revoked(const spx_comm *c)
{
  spx_mcast_relay_revoked(c->ctx);
  spx_acks_revoked(c->ctx);
}

const spx_failure_observer spx_mcast_failures = {.died = died, .revoked = revoked};

/* ---- what MPIX_Mcast and its kin call ---- */

static void fill(spx_request *r, op *o, const spx_mcast_args *a, uint32_t flags)
{
  *o = (op){.set = a->set};
  r->kind = SPX_R_MCAST;
  r->mode = a->sync || (a->set->flags & MPIX_MCAST_ACKED) ? SPX_M_SYNC : SPX_M_STANDARD;
  r->flags = flags;
  r->src = r->want_src = MPI_ANY_SOURCE;
  r->tag = r->want_tag = a->tag;
  r->buf = (void *)(uintptr_t)a->buf;
  r->count = a->count;
  r->type = a->type;
  r->comm = a->comm;
  r->ctx = a->comm->ctx + SPX_CTX_P2P;
  r->ctx_kind = SPX_CTX_P2P;
  r->peer = SPX_NO_PEER;
  r->priv = o;
}

static void tell_failure(const spx_request *r)
{
  if (r->error == MPIX_ERR_PROC_FAILED)
    spx_detail("members of the set have failed (MPIX_Comm_get_failed tells which); the others have "
               "the message");
  if (r->error == MPI_ERR_NO_MEM)
    spx_detail("no memory for a multicast to %u members", ((op *)r->priv)->set->n);
}

int spx_mcast(const spx_mcast_args *a)
{
  spx_request r = {.error = MPI_SUCCESS};
  op o;
  fill(&r, &o, a, SPX_RF_BLOCKING);
  spx_lock();
  start(&r);
  spx_unlock();
  int rc = spx_wait(&r);
  tell_failure(&r);
  return rc;
}

static int finish(spx_request *r, MPI_Status *st)
{
  (void)st;
  tell_failure(r);
  return r->error;
}

static void release(spx_request *r)
{
  op *o = r->priv;
  spx_unref(SPX_K_RANKSET, &o->set->o);
  spx_unref(SPX_K_COMM, &r->comm->o);
  spx_unref(SPX_K_TYPE, &r->type->o);
  free(o);
}

static int restart(spx_request *r)
{
  spx_lock();
  atomic_store_explicit(&r->done, 0, memory_order_relaxed);
  r->flags |= SPX_RF_ACTIVE;
  r->error = MPI_SUCCESS;
  start(r);
  spx_unlock();
  return MPI_SUCCESS;
}

int spx_mcast_init(const spx_mcast_args *a, uint32_t flags, spx_request **out_r)
{
  spx_request *r = (spx_request *)spx_new(SPX_K_REQ);
  op *o = r ? malloc(sizeof *o) : NULL;
  if (!o) {
    if (r) spx_retire(SPX_K_REQ, &r->o);
    spx_detail("no memory for a multicast");
    return MPI_ERR_NO_MEM;
  }
  fill(r, o, a, flags);
  spx_ref(&a->set->o);
  spx_ref(&a->comm->o);
  spx_ref(&a->type->o);
  r->start = restart;
  r->finish = finish;
  r->release = release;
  *out_r = r;
  return MPI_SUCCESS;
}
