/* system.c - the special ranks of systems of clusters: MPISP_CLUSTER_OUT, MPISP_CLUSTER_IN, and
 * what MPI_COMM_WORLD means on an I/O process (IOP).
 *
 * A rank of the communicator is never handled here: the generated shims call this for other ranks
 * only. Messages to IOPs travel in a context of their own, in which an IOP's MPI_COMM_WORLD
 * receives; those from IOPs in that of the cluster's MPI_COMM_WORLD. Their source is an origin
 * (dataplane/clusters/origin.h). Which IOP is next follows from the plan that package choice has
 * made. */
#include "system.h"
#include <dlfcn.h>
#include "check.h"
#include "check_coll.h"
#include "comm.h"
#include "diag.h"
#include "dp.h"
#include "p2p.h"
#include "replay.h"

#define FN spx_fn_name[spx_fn]

_Atomic int spx_system_bound = -1;

/* For diagnosis of what a receive waits for (dataplane/introspect/diag.c): the IOPs that send to
 * this cluster, or the members of the clusters that this IOP receives from. */
static void each_source(const spx_comm *c, void (*each)(uint32_t, void *), void *arg)
{
  const spx_system *s = __atomic_load_n(&spx_sys, __ATOMIC_ACQUIRE);
  for (uint32_t i = 0; s && s->cluster >= 0 && i < s->ins; i++) each(s->proc[s->in[i]], arg);
  for (uint32_t i = 0; s && s->cluster < 0 && i < s->worlds; i++) {
    const spx_comm *w = s->world[i].comm;
    for (int k = 0; s->world[i].in && (c == w || c == spx_world) && k < w->size; k++)
      each(w->local[k], arg);
  }
}

static int watch_inbound(spx_poller *p);
static spx_poller watch = {.poll = watch_inbound};
static bool watching;
/* this IOP leaves, and has accepted all that had arrived: later messages stay with their senders,
 * and go to its successor */
static bool closed;
static bool in_system; /* the job is a system of clusters, or was one while MPI was there */

void spx_system_set(spx_system *s)
{
  in_system = true;
  if (!watching) spx_poller_add(&watch);
  watching = true;
  spx_send_parks = spx_system_parks;
  spx_ranks_hold(s->proc);
  spx_lock();
  /* MPI_COMM_WORLD of an IOP: its ranks are none of a communicator */
  if (s->cluster < 0 && !spx_sys) {
    spx_io_process = true;
    spx_comm_set_ctx(spx_world, s->ctx);
  }
  __atomic_store_n(&spx_sys, s, __ATOMIC_RELEASE);
  spx_diag_sources = each_source;
  for (uint32_t i = 0; s->cluster < 0 && i < s->worlds; i++) {
    spx_comm *c = s->world[i].comm;
    c->flags |= SPX_C_IOP;
    c->remote_size = 0;
    c->rank = SPX_ORIGIN_ANY;
    c->stands_for = SPX_HANDLE_COMM_WORLD;
  }
  if (s->cluster < 0) {
    spx_world->flags |= SPX_C_IOP;
    spx_world->remote_size = 0;
    spx_world->size = s->worlds ? s->world[0].comm->size : 0;
    spx_world->rank = s->worlds && s->world[0].in ? MPISP_CLUSTER_OUT : MPISP_CLUSTER_IN;
  }
  spx_unlock();
}

void spx_system_end(void)
{
  if (watching) spx_poller_del(&watch);
  watching = false;
  spx_send_parks = NULL;
  spx_system_parked = NULL;
  spx_diag_sources = NULL;
  spx_sys = NULL;
  spx_io_process = false;
  closed = false;
  spx_inbound_from = spx_inbound_to = 0;
}

int spx_system_load(spx_system *s, const char *file)
{
  void *object = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (object) *(void **)&s->choose = dlsym(object, "mpisp_choose");
  if (s->choose) return MPI_SUCCESS;
  const char *why = dlerror();
  spx_detail("library:%s: %s", file, why ? why : "there is no function mpisp_choose");
  return MPI_ERR_ARG;
}

/* ---- of compute processes ---- */

/* MPI_COMM_WORLD, or a duplicate: those have the same list of processes. */
static bool is_world(const spx_comm *c)
{
  return spx_world && c->peer == spx_world->peer && !(c->flags & SPX_C_INTER);
}

/* The IOPs as a communicator, so that a message to one is sent as any other is. */
static spx_comm *outbound_of(spx_comm *c, const spx_system *s)
{
  spx_lock();
  spx_comm *o = c->outbound;
  if (!o || o->peer != s->proc) {
    o = (spx_comm *)spx_new(SPX_K_COMM);
    if (o) {
      spx_check_inside(SPX_K_COMM, &o->o);
      uint32_t *procs = spx_ranks_share(s->proc);
      spx_comm_fill(o, spx_origin_of(s->cluster, c->rank), (int)s->iops, (int)s->iops, s->ctx,
                    procs, procs);
      o->stands_for = c->o.handle;
      if (spx_replay_on) o->flags |= SPX_C_REPLAY;
      if (c->outbound) spx_unref(SPX_K_COMM, &c->outbound->o);
      c->outbound = o;
    }
  }
  spx_unlock();
  return o;
}

/* Raises why there is no process to send to, or to receive from. way: of an IOP, way_of; else
 * whether c is MPI_COMM_WORLD or a duplicate of it. */
static int refuse(const spx_comm *c, int sends, const char *arg, int rank, int64_t way)
{
  spx_frame f = {.fn = SPX_IN_SYSTEM_REFUSE,
                 .a = {{.i = sends}, {.p = (void *)(uintptr_t)arg}, {.i = rank}, {.i = way}}};
  int err = spx_go_internal(&f);
  return spx_fail_on_comm(c, err);
}

/* A persistent send to MPISP_CLUSTER_OUT is started: each time, an IOP is chosen. */
static int choose_again(spx_request *r)
{
  int iop = spx_system_iop(spx_system_now(), r->want_tag);
  if (iop >= 0 && iop < r->comm->size) r->want_src = iop;
  return MPI_SUCCESS; /* else the send fails by itself */
}

void spx_outbound_persistent(spx_request *r)
{
  if (spx_is_origin(r->comm->rank) && !spx_io_process && r->kind == SPX_R_SEND)
    r->start = choose_again;
}

/* A process that sends and never waits would not see that the system has changed, which is
 * announced as deaths are, or an I/O process has died. If a poll within a send has seen it, what
 * follows is still due: no other call does it. */
static void follow(void)
{
  if (spx_aside & SPX_ASIDE_REPLAY) return; /* it has looked */
  if (SPX_UNLIKELY(spx_due || __atomic_load_n(&spx_segment->death_seq, __ATOMIC_RELAXED) !=
                                  spx_map.seen_deaths))
    spx_poll_brief();
}

static int send_out(spx_comm **c, int *dest, const char *arg, int tag)
{
  follow();
  const spx_system *s = spx_system_now();
  if (!s || !is_world(*c) || !s->outs) return refuse(*c, 1, arg, *dest, s && is_world(*c));
  int iop = spx_system_iop(s, tag);
  if (iop < 0) iop = spx_system_healing(s); /* the message waits until it is back: parks */
  if (iop < 0 && spx_replay_drops()) {
    *dest = MPI_PROC_NULL;
    return MPI_SUCCESS;
  }
  if (iop < 0) {
    spx_replay_count_lost();
    return refuse(*c, 1, arg, *dest, 1);
  }
  spx_comm *o = outbound_of(*c, s);
  if (!o) {
    spx_detail("%s = MPISP_CLUSTER_OUT: no memory for a communicator", arg);
    return spx_fail_on_comm(*c, MPI_ERR_NO_MEM);
  }
  *c = o;
  *dest = iop;
  return MPI_SUCCESS;
}

/* ---- of IOPs ---- */

/* The way of a call on c: by its handle, or by MPISP_Bind; else that of any world. */
static int64_t way_of(const spx_comm *c, const spx_system *s)
{
  if (c == spx_world) return 1 + atomic_load(&spx_system_bound);
  for (uint32_t i = 0; i < s->worlds; i++)
    if (s->world[i].comm == c) return 1 + i;
  return 0;
}

static bool in_vain; /* something may have been sent to a rank that has left */

int spx_system_to(spx_comm **c, int *dest, const char *arg)
{
  const spx_system *s = spx_system_now();
  int64_t way = way_of(*c, s);
  int32_t to = s->way[way].to;
  spx_comm *w = to < 0 ? NULL : s->world[to].comm;
  if (!w || *dest < 0 || *dest >= w->size) return refuse(*c, 1, arg, *dest, way);
  w->rank = spx_origin_last;
  *c = w;
  if (SPX_UNLIKELY(spx_proc_left(w->peer[*dest]))) in_vain = true;
  return MPI_SUCCESS;
}

/* The origin that a receive from a rank asks for; an error is raised. */
static int iop_source(spx_comm *c, int source, const char *arg, int32_t *origin)
{
  const spx_system *s = spx_system_now();
  int64_t way = way_of(c, s);
  const spx_iop_way *w = &s->way[way];
  if (w->from < 0 || (source != MPI_ANY_SOURCE && (source < 0 || source >= w->ranks)))
    return refuse(c, 0, arg, source, way);
  *origin = spx_origin_of(w->from, source < 0 ? SPX_ORIGIN_ANY_RANK : source);
  return MPI_SUCCESS;
}

/* ---- the end of what comes in ---- */

/* Process p will send nothing more, nor will another one in its place, and all that it has sent is
 * here. closing: the latter is what is missing. */
static bool has_left(uint32_t p, int heals, bool *closing)
{
  if (heals == SPX_HEALS_AWAY || !spx_proc_left(p) || (heals && spx_proc_dies(p))) return false;
  if (spx_net_silent(p)) return true;
  *closing = true;
  return false;
}

static bool all_left(const uint32_t *procs, int n, int heals, bool *closing)
{
  for (int i = 0; i < n; i++)
    if (!has_left(procs[i], heals, closing) || (spx_replay_on && spx_replay_awaited(procs[i])))
      return false;
  return true;
}

/* Of an IOP: of none of its clusters more is to be expected that has this number; any: of none at
 * all. */
static bool is_over(const spx_system *s, int cluster, bool *closing)
{
  for (uint32_t i = 0; i < s->worlds; i++) {
    const struct spx_iop_world *w = &s->world[i];
    if (w->in && !w->closing && (cluster == SPX_ORIGIN_ANY_CLUSTER || cluster == w->cluster) &&
        !all_left(w->comm->peer, w->comm->size, w->heals, closing))
      return false;
  }
  return true;
}

static bool leaves(const spx_system *s)
{
  for (uint32_t i = 0; i < s->worlds; i++)
    if (s->world[i].closing) return true;
  return false;
}

/* Of those that have left something is on its way still to the messages that a look sees: what they
 * have sent comes first. Asked after they were seen to have left. */
static bool is_coming(bool *closing)
{
  if (SPX_LIKELY(!spx_replay_on)) return false;
  spx_lock();
  int n = spx_rx_poll_all(true);
  spx_happened(n);
  spx_unlock();
  if (!n && !spx_replay_coming()) return false;
  *closing = true;
  return true;
}

/* No process is left that could send a message with this origin. */
static bool nobody_left(int32_t want, bool *closing)
{
  const spx_system *s = __atomic_load_n(&spx_sys, __ATOMIC_ACQUIRE);
  if (closed) return true;
  if (!spx_io_process) {
    for (uint32_t i = 0; i < s->ins; i++)
      if (!has_left(s->proc[s->in[i]], s->heals[s->in[i]], closing)) return false;
    return !is_coming(closing);
  }
  if (!is_over(s, spx_origin_cluster(want), closing)) return false;
  bool all = SPX_UNLIKELY(leaves(s)) && is_over(s, SPX_ORIGIN_ANY_CLUSTER, closing);
  if (is_coming(closing)) return false;
  if (all) {
    closed = true; /* from here on what comes is not accepted */
    spx_replay_close();
  }
  return true;
}

void spx_system_leave(void)
{
  if (!in_system) return;
  spx_lock();
  for (uint32_t i = 0; i < spx_map.nprocs; i++)
    if (i != spx_me && spx_proc_of(i)->host == spx_segment->host) spx_ring_bell(i);
  spx_unlock();
}

enum { LOOK_AGAIN_NS = 5000000, LOOK_NET_NS = 100000000 };

/* How long to sleep at most: the end of a connection rings no bell, nor does a process that is
 * reached by the network alone. 0: for ever. */
static uint64_t look_again(bool closing)
{
  return closing ? LOOK_AGAIN_NS : spx_beyond_host() ? LOOK_NET_NS : 0;
}

/* A blocking call waits here: for a message, or until no sender is left, which rings the bell
 * (spx_system_leave, and the agent when the process was on another host). Then it is as from
 * MPI_PROC_NULL. */
static int await(spx_comm *c, int32_t want, int tag, int *source)
{
  for (;;) {
    uint32_t ticket = spx_ticket();
    bool closing = false, gone = nobody_left(want, &closing);
    int flag, rc = spx_iprobe(want, tag, c, SPX_CTX_P2P, &flag, MPI_STATUS_IGNORE, NULL);
    if (rc != MPI_SUCCESS) return spx_fail_on_comm(c, rc);
    if (flag) return MPI_SUCCESS;
    if (gone) {
      *source = MPI_PROC_NULL;
      return MPI_SUCCESS;
    }
    uint64_t most = look_again(closing);
    spx_diag_now.fn = spx_fn;
    spx_diag_now.probe.src = want;
    spx_diag_now.probe.tag = tag;
    spx_diag_now.probe.comm = c;
    spx_wait_event(ticket, most ? spx_now_ns() + most : 0);
    spx_diag_now.probe.comm = NULL;
  }
}

/* A posted receive waits in vain when no sender is left: then it ends as a blocking one does. A
 * leaving process rings the bell; the end of a connection does not. */
static void end_in_vain(spx_request *r, void *arg)
{
  bool closing = false;
  (void)arg;
  if (!spx_is_origin(r->want_src) || r->ctx_kind != SPX_CTX_P2P ||
      !nobody_left(r->want_src, &closing))
    return;
  spx_unpost(r);
  r->src = MPI_PROC_NULL;
  r->tag = MPI_ANY_TAG;
  spx_complete(r, MPI_SUCCESS);
}

/* Of an I/O process: a message in transit to a rank that has left, and that was not received, ends.
 * A leaving process rings the bell. */
static int end_sends_in_vain(const spx_system *s)
{
  static uint32_t seen;
  uint32_t bell = __atomic_load_n(&spx_proc_of(spx_me)->bell, __ATOMIC_ACQUIRE);
  if (bell == seen && !in_vain) return 0;
  if (spx_rx_poll_all(true)) return 1; /* it may have said that it has received it */
  bool closing = false;
  uint64_t before = spx_events;
  for (uint32_t i = 0; i < s->worlds; i++) {
    const spx_comm *c = s->world[i].comm;
    for (int r = 0; s->world[i].out && r < c->size; r++)
      if (spx_proc_left(c->peer[r]) && !spx_proc_dies(c->peer[r]) &&
          has_left(c->peer[r], false, &closing))
        spx_sends_in_vain(c->peer[r]);
  }
  seen = bell;
  in_vain = closing;
  return before != spx_events;
}

static int watch_inbound(spx_poller *p)
{
  (void)p;
  uint64_t posted = spx_inbound_posted;
  const spx_system *s = __atomic_load_n(&spx_sys, __ATOMIC_ACQUIRE);
  int moved = SPX_UNLIKELY(spx_system_parked != NULL) ? spx_system_unpark() : 0;
  if (SPX_UNLIKELY(spx_tx_waiting()) && s && !spx_io_process && !spx_replay_on)
    moved += spx_system_leave_hanging(s);
  if (SPX_UNLIKELY(spx_replay_on) && s && !spx_io_process) moved += spx_system_excuse_hanging(s);
  if (spx_io_process && s && !spx_replay_on) moved += end_sends_in_vain(s);
  if (moved) return moved;
  bool closing = false;
  if (!posted || !s) return 0;
  if (!spx_io_process && !nobody_left(SPX_ORIGIN_ANY, &closing)) return 0;
  if (spx_rx_poll_all(true)) return 1; /* messages of processes that have left come first */
  spx_each_posted(end_in_vain, NULL);
  return spx_inbound_posted != posted;
}

/* Of probes that do not wait: as from MPI_PROC_NULL when no sender is left. */
static int look(spx_comm *c, int32_t want, int tag, int *source)
{
  bool closing = false;
  if (!nobody_left(want, &closing)) return MPI_SUCCESS;
  int flag, rc = spx_iprobe(want, tag, c, SPX_CTX_P2P, &flag, MPI_STATUS_IGNORE, NULL);
  if (rc != MPI_SUCCESS) return spx_fail_on_comm(c, rc);
  if (!flag) *source = MPI_PROC_NULL;
  return MPI_SUCCESS;
}

/* ---- what the shims call ---- */

int spx_resolve_dest(spx_comm **c, int *dest, const char *arg, int tag)
{
  if ((*c)->flags & SPX_C_IOP && !(spx_fn_does[spx_fn] & SPX_DOES_PARTS))
    return spx_system_to(c, dest, arg);
  if (*dest == MPISP_CLUSTER_OUT && !(spx_fn_does[spx_fn] & SPX_DOES_PARTS))
    return send_out(c, dest, arg, tag);
  return spx_bad_rank(*c, arg, *dest);
}

int spx_resolve_source(spx_comm **c, int *source, const char *arg, int tag)
{
  int32_t want = SPX_ORIGIN_ANY;
  uint8_t does = spx_fn_does[spx_fn];
  if (does & SPX_DOES_PARTS) return spx_bad_rank(*c, arg, *source);
  if ((*c)->flags & SPX_C_IOP) {
    SPX_TRY(iop_source(*c, *source, arg, &want));
  } else if (*source == MPISP_CLUSTER_IN) {
    const spx_system *s = spx_system_now();
    if (!s || !is_world(*c) || !s->ins) return refuse(*c, 0, arg, *source, s && is_world(*c));
  } else
    return spx_bad_rank(*c, arg, *source);
  *c = spx_world;
  *source = want;
  if (does == (SPX_DOES_OBSERVE | SPX_DOES_ASK)) return look(*c, want, tag, source);
  return does & SPX_DOES_AWAIT ? await(*c, want, tag, source) : MPI_SUCCESS;
}

/* Both halves of an exchange are resolved by its body. */
int spx_other_dest(spx_comm **c, int *dest, const char *arg, int tag)
{
  return spx_fn_does[spx_fn] & SPX_DOES_EXCHANGE ? MPI_SUCCESS
                                                 : spx_resolve_dest(c, dest, arg, tag);
}

int spx_other_source(spx_comm **c, int *source, const char *arg, int tag)
{
  return spx_fn_does[spx_fn] & SPX_DOES_EXCHANGE ? MPI_SUCCESS
                                                 : spx_resolve_source(c, source, arg, tag);
}

int spx_bad_member(const spx_comm *c)
{
  return spx_raise(SPX_K_COMM, spx_comm_handle(c), MPI_ERR_COMM, FN,
                   "this I/O process is no member of its clusters' groups, and takes no part in "
                   "what they do together");
}
