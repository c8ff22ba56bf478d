/* mcast.c - messages to sets of processes (MPIX_Mcast): sending, forwarding, credit, and the
 * handling of deaths. docs/multicast.md.
 *
 * The set travels with the message. Its master sends the message to one member, which forwards it
 * to others, and so on along a tree (mcast_wire.c): at once when the record arrives, whether a
 * receive is posted or not. Short messages carry their data and wait among the unexpected like any
 * other; long ones, and those for which some member has no credit, are announced, and every member
 * fetches the data: long ones, on the master's host, from its staging buffer (mcast_staging.c),
 * else from the master (get.c).
 *
 * Every message has a number for each of its members: 1, 2, 3 ... among those from this master to
 * this member. A member delivers in this order and drops duplicates (mcast_arrive.c). The master
 * keeps unacknowledged messages: when a member dies that may have had to forward some, the master
 * resends those itself.
 */
#include "mcast.h"
#include <stdlib.h>
#include "dp.h"
#include "fail.h"
#include "mcast_op.h"
#include "pack.h"

/* bytes of data that are kept for members that have not acknowledged them */
#define RETAIN_MAX (16u << 20)

typedef spx_mcast_op op;

static uint64_t cost(uint64_t n) { return spx_mcast_cost(n); }
static uint32_t host_of(uint32_t i) { return spx_proc_of(i)->host; }
static uint32_t after(uint32_t number) { return spx_mcast_after(number); }

bool spx_mcast_prepare(void)
{
  uint32_t n = spx_map.nprocs;
  if (!spx_mcast_out) spx_mcast_out = calloc(n, sizeof *spx_mcast_out);
  if (!spx_mcast_members) spx_mcast_members = malloc(n * sizeof *spx_mcast_members);
  return spx_mcast_out && spx_mcast_members && spx_mcast_hand_prepare(n);
}

void spx_mcast_detach(void)
{
  spx_mcast_relay_detach(); /* they write to the staging buffer */
  spx_staging_detach();
  spx_acks_detach();
  spx_mcast_forget_all();
  while (spx_mcast_kept) {
    spx_mcast_entry *e = spx_mcast_kept;
    spx_mcast_kept = e->next;
    free(e);
  }
  spx_mcast_kept_end = &spx_mcast_kept;
  spx_mcast_kept_bytes = 0;
  spx_mcast_hand_detach();
  free(spx_mcast_out);
  free(spx_mcast_members);
  spx_mcast_out = NULL;
  spx_mcast_members = NULL;
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
  for (spx_mcast_entry *e = o->fetched ? spx_mcast_kept : NULL; e; e = e->next)
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
bool spx_mcast_strike(op *o, uint32_t peer)
{
  uint32_t at = spx_mcast_at(o->set, peer);
  if (at == UINT32_MAX || !o->fetched || o->fetched[at] == FETCHED || o->left == 0) return false;
  o->fetched[at] = FETCHED;
  o->left--;
  return true;
}

/* Members that have left have received it, but may have reported that to a process that is gone. */
static int poll_gone(spx_poller *p)
{
  op *o = (op *)((char *)p - offsetof(op, gone));
  uint32_t before = o->left;
  for (uint32_t i = 0; i < o->set->n; i++)
    if (o->fetched[i] != FETCHED && spx_proc_left(o->set->procs[i]))
      spx_mcast_strike(o, o->set->procs[i]);
  if (o->left == before) return 0;
  settle(o->request);
  return 1;
}

void spx_mcast_await_gone(spx_request *r)
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
  if (cost(n) > spx_segment->ring_bytes / 4 || n > spx_set.eager_max ||
      spx_mcast_kept_bytes > RETAIN_MAX)
    return false;
  for (uint32_t i = 0; i < set->n; i++) {
    spx_mcast_to *to = &spx_mcast_out[set->procs[i]];
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
    spx_mcast_out[p].sent += charge;
    spx_mcast_members[n++] =
        (spx_member){p, spx_mcast_out[p].number = after(spx_mcast_out[p].number)};
  }
  return n;
}

/* Room in the staging buffer for a long message to the members of this host, the first n of
 * `members`, with its first part: while the rest is written, the forwarding member wakes up. A
 * single member copies a very long message faster by itself. */
static void stage(spx_request *r, uint32_t n, spx_mcast_rts *where)
{
  enum { ALONE_MOST = 1 << 20 };
  op *o = r->priv;
  uint32_t readers = 0;
  if (r->bytes <= spx_set.eager_max) return;
  for (uint32_t i = 0; i < n; i++) readers += spx_staging_reaches(spx_mcast_members[i].proc);
  if (readers == 0 || (readers == 1 && r->bytes > ALONE_MOST)) return;
  if (!(o->block = spx_staging_take((uint64_t)r->bytes, spx_mcast_members, n, false, where)))
    return;
  bool tree = !(o->set->flags & MPIX_MCAST_ORDERED);
  o->whole = tree && !spx_mcast_wants_acks(r) && spx_mcast_whole(r, readers);
  o->there =
      o->whole ? spx_staging_fill(o->block, r, 0, true) : spx_staging_begin(o->block, r, tree);
}

/* The message is not complete before the first n of `members` have fetched it, or acknowledged it.
 * It gets a name. */
static bool expect(spx_request *r, uint32_t n, uint32_t *index, uint32_t *gen)
{
  op *o = r->priv;
  if (!(o->fetched = malloc(o->set->n)) || !spx_id_new(r, index, gen)) return false;
  memset(o->fetched, FETCHED, o->set->n);
  for (uint32_t i = 0; i < n; i++)
    o->fetched[spx_mcast_at(o->set, spx_mcast_members[i].proc)] = NOT_YET;
  o->left = n;
  return true;
}

/* The place of an announced message's data. Members that read them from the staging buffer need not
 * fetch them. */
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
  for (uint32_t i = 0; o->block && !spx_mcast_wants_acks(r) && i < n; i++)
    if (spx_staging_reaches(spx_mcast_members[i].proc))
      spx_mcast_strike(o, spx_mcast_members[i].proc);
  return true;
}

static void release(spx_request *r);

/* Sends the message to the first of the other hosts; returns how many members, the first ones,
 * remain: those of this host. */
static uint32_t begin_chain(spx_request *r, spx_mcast_head h, uint32_t n, const void *data,
                            uint32_t len)
{
  op *o = r->priv, *inner = o->inner->priv;
  uint32_t k;
  h.flags |= SPX_MCAST_CHAIN;
  n = spx_mcast_living(spx_mcast_members, n);
  spx_mcast_tree t = spx_mcast_tree_of(spx_mcast_members, n, host_of(spx_me), host_of,
                                       spx_mcast_known_switches(), 0);
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
    if (!spx_peer_is_far(spx_mcast_members[i].proc)) {
      spx_mcast_members[k++] = spx_mcast_members[i];
      continue;
    }
    h.number = spx_mcast_members[i].number;
    spx_mcast_put(spx_mcast_members[i].proc, h, NULL, 0, data, len);
  }
  return k;
}

static int send_out(spx_request *r)
{
  op *o = r->priv;
  for (uint32_t i = 0; i < o->set->n; i++)
    if (spx_mcast_out[o->set->procs[i]].life != spx_life_of(o->set->procs[i]))
      spx_mcast_renew(o->set->procs[i]);
  if (spx_mcast_kept_bytes > RETAIN_MAX / 4) spx_mcast_release_kept();
  bool acked = spx_mcast_wants_acks(r), eager = has_credit(o->set, (uint64_t)r->bytes);
  uint32_t name = acked && eager ? (uint32_t)sizeof(spx_mcast_name) : 0;
  uint32_t len = eager ? name + (uint32_t)r->bytes : (uint32_t)sizeof(spx_mcast_rts);
  spx_mcast_entry *e =
      malloc(sizeof *e + sizeof(spx_mcast_head) + o->set->n * sizeof(spx_mcast_item) + len);
  if (!e) return MPI_ERR_NO_MEM;
  uint32_t n = number(o, eager ? cost((uint64_t)r->bytes) : 0);
  for (uint32_t i = 0; spx_tracer_now && i < n; i++)
    spx_tracer_now->sent(spx_mcast_members[i].proc, r->ctx, r->want_tag, (uint64_t)r->bytes,
                         spx_mcast_members[i].number, true);
  spx_mcast_head h = {.ctx = r->ctx,
                      .tag = r->want_tag,
                      .src = r->comm->rank,
                      .master = spx_me,
                      .epoch = spx_map.epoch};
  h.flags = (uint16_t)((eager ? 0 : SPX_MCAST_ANNOUNCED) | (acked ? SPX_MCAST_ACKED : 0));
  h.set = spx_mcast_encode(e->data + sizeof h, spx_mcast_members, n);
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
    spx_request *s = e->tree && spx_chain_pays(r, spx_mcast_members, n)
                         ? spx_chain_begin(r, spx_mcast_members, n, release, &where)
                         : NULL;
    if (s) e->r = s;
    if (!announce(e->r, n, &where)) {
      if (s) {
        s->error = MPI_ERR_NO_MEM;
        spx_staging_drop(((op *)s->priv)->block);
        settle(s); /* releases r and its resources */
      }
      free(e);
      return MPI_ERR_NO_MEM;
    }
    memcpy(data, &where, sizeof where);
  }
  *spx_mcast_kept_end = e;
  spx_mcast_kept_end = &e->next;
  spx_mcast_kept_bytes += e->len;
  if (!e->tree)
    spx_mcast_in_order(o, e);
  else {
    n = send_far(h, n, data, len);
    if (o->inner) n = begin_chain(r, h, n, data, len);
    spx_mcast_hand_over(o, h, spx_mcast_members, n, data, len);
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
    spx_detail("members of the set have failed (MPIX_Comm_get_failed tells which); the "
               "others have "
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
