/* queue.c - the messages received and not yet forwarded.
 *
 * Messages are taken in the order in which they come, and sent on in that order where they have
 * the same source: a send is started when its message is complete, and no earlier one of its
 * source is not. Long ones are forwarded while they arrive (MPISP_Pass), through memory that
 * they have for themselves: as much as is left of the limit, and PASS_LEAST in any case. The
 * memory for all is bounded: at the limit no more messages are accepted, so that the senders
 * wait, which hold long messages themselves. Where ranks that die are replaced, or another
 * cluster can take it, a message is kept as a whole, if it is not longer than the limit: it may
 * have to be sent again; and so is one that goes to several clusters. */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "relay.h"

#define MESSAGES_MAX 1024 /* held at once, however short: each is polled in each round */
/* bytes: from this length on a message is forwarded while it arrives */
#define PASS_FROM  (256 << 10)
#define PASS_LEAST (64 << 10)
#define AT_ONCE    16384 /* bytes: forwarded without being kept, as a rule */

typedef struct message {
  struct message *next;
  char *data;
  MPI_Count bytes, held;
  MPI_Message found; /* to be forwarded, not begun yet */
  MPI_Status from;
  int cluster, source;
  MPI_Request in;
  bool complete; /* it has arrived */
  int sends, done;
  struct {
    MPI_Request request;
    world *to;
    int rank;
    bool due; /* to be sent: its receiver has died, and is replaced */
  } send[];
} message;

typedef struct {
  message *first, **last;
  int messages;
  MPI_Count bytes;
} queue;

static void *need(size_t n)
{
  void *p = malloc(n ? n : 1);
  if (!p) relay_fail("no memory for a message of %zu bytes; --queue bounds what is held", n);
  return p;
}

static void tell_held(const queue *q) { MPISP_Held(q->messages, q->bytes); }

/* ---- sending on ---- */

/* A message of this cluster goes to several. */
static bool goes_to_all(const relay *r, const world *from) { return r->copy && from->tos > 1; }

/* Of a cluster that is started again, what was on its way to the ranks before is revoked. */
static bool has_died(int code)
{
  int class = MPI_SUCCESS;
  MPI_Error_class(code, &class);
  return class == MPIX_ERR_PROC_FAILED || class == MPIX_ERR_REVOKED;
}

static void goes(message *m, int i, choice c)
{
  m->send[i].to = c.to;
  m->send[i].rank = c.rank;
  if (c.assign) MPISP_Assign(&m->from, c.rank, c.to->comm);
}

/* The message is to go to one of its clusters, of those that have ranks; false: there is none. */
static bool choose(relay *r, message *m, int i)
{
  choice c = relay_choose(r, relay_from(r, m->cluster), &m->from);
  if (c.to) goes(m, i, c);
  return c.to != NULL;
}

/* A send has failed. Where ranks are replaced it is due again; another cluster may take it; else it
 * is dropped. */
static void fails(relay *r, message *m, int i, int code)
{
  world *to = m->send[i].to;
  if (has_died(code)) to->hurt = true;
  if (to->asked != r->round) { /* it is the same for all messages of a round */
    to->asked = r->round;
    relay_ask_heals(to);
  }
  if (!has_died(code))
    relay_fail("a message for rank %d of cluster %d: error %d", m->send[i].rank, to->cluster, code);
  to->waiting[m->send[i].rank]--;
  bool one = !goes_to_all(r, relay_from(r, m->cluster));
  if (m->data) /* a message forwarded while it arrived is no longer here */
    m->send[i].due =
        relay_may_take(to, m->send[i].rank) || (one && relay_is_gone(to) && choose(r, m, i));
  /* it is not done with */
  if (m->send[i].due && one) MPISP_Assign(&m->from, m->send[i].rank, m->send[i].to->comm);
  if (m->send[i].due) return;
  m->done++;
  if (!to->told)
    fprintf(stderr, "spx-iop: rank %d of cluster %d has ended; messages for it are dropped\n",
            m->send[i].rank, to->cluster);
  to->told = true;
}

static void start_send(relay *r, message *m, int i)
{
  world *to = m->send[i].to;
  int rank = m->send[i].rank, code;
  m->send[i].due = false;
  to->waiting[rank]++;
  MPISP_Forward(&m->from);
  if (m->found != MPI_MESSAGE_NULL)
    code = MPISP_Pass(&m->found, rank, to->comm, m->held, &m->send[i].request);
  else if (r->route == ROUTE_DEMAND) /* complete when it has been requested */
    code = MPI_Issend_c(m->data, m->bytes, MPI_BYTE, rank, m->from.MPI_TAG, to->comm,
                        &m->send[i].request);
  else
    code = MPI_Isend_c(m->data, m->bytes, MPI_BYTE, rank, m->from.MPI_TAG, to->comm,
                       &m->send[i].request);
  if (code == MPI_SUCCESS) return;
  m->send[i].request = MPI_REQUEST_NULL;
  fails(r, m, i, code);
}

static void start_sends(relay *r, message *m)
{
  const world *from = relay_from(r, m->cluster);
  if (!goes_to_all(r, from)) {
    if (!choose(r, m, 0)) /* all are gone: the send to one of them fails with an error */
      goes(m, 0, relay_choose_rank(r, &r->world[from->to[0]], &m->from));
    m->sends = 1;
    start_send(r, m, 0);
    return;
  }
  for (int i = 0; i < from->tos; i++) {
    goes(m, m->sends, relay_choose_rank(r, &r->world[from->to[i]], &m->from));
    start_send(r, m, m->sends++);
  }
}

static bool is_due(const message *m)
{
  for (int i = 0; i < m->sends; i++)
    if (m->send[i].due) return true;
  return false;
}

/* An earlier message of the same source is still coming in, or is to be sent again. */
static bool has_to_wait(const queue *q, const message *m)
{
  for (const message *e = q->first; e != m; e = e->next)
    if ((!e->complete || is_due(e)) && e->cluster == m->cluster && e->source == m->source)
      return true;
  return false;
}

/* Polls everything once; true: there was progress. */
static bool carry_on(relay *r, queue *q)
{
  bool moved = false;
  r->round++;
  for (message **at = &q->first, *m; (m = *at);) {
    int flag;
    if (!m->complete && m->in != MPI_REQUEST_NULL &&
        MPI_Test(&m->in, &flag, MPI_STATUS_IGNORE) != MPI_SUCCESS)
      m->complete = true; /* its sender has died before it was here: it was not sent */
    if (!m->complete && m->in == MPI_REQUEST_NULL && !has_to_wait(q, m)) {
      m->complete = moved = true;
      start_sends(r, m);
    }
    if (is_due(m) && !has_to_wait(q, m))
      for (int i = 0; i < m->sends; i++)
        if (m->send[i].due) start_send(r, m, i);
    for (int i = 0; i < m->sends; i++) {
      if (m->send[i].request == MPI_REQUEST_NULL) continue;
      int code = MPI_Test(&m->send[i].request, &flag, MPI_STATUS_IGNORE);
      if (code != MPI_SUCCESS) {
        fails(r, m, i, code);
        continue;
      }
      if (!flag) continue;
      m->done++;
      m->send[i].to->waiting[m->send[i].rank]--;
    }
    if (!m->complete || m->done < m->sends) {
      at = &m->next;
      continue;
    }
    *at = m->next;
    if (!*at) q->last = at;
    q->messages--;
    q->bytes -= m->held;
    free(m->data);
    free(m);
    moved = true;
  }
  return moved;
}

/* ---- taking in ---- */

static bool has_room(const relay *r, const queue *q)
{
  return q->bytes < r->limit && q->messages < MESSAGES_MAX;
}

static message *new_message(int sends, MPI_Status *st)
{
  message *m = need(sizeof *m + (size_t)sends * sizeof m->send[0]);
  memset(m, 0, sizeof *m);
  m->from = *st;
  MPI_Get_count_c(st, MPI_BYTE, &m->bytes);
  m->held = m->bytes;
  m->found = MPI_MESSAGE_NULL;
  MPISP_Status_get_cluster(st, &m->cluster);
  MPISP_Status_get_rank(st, &m->source);
  m->in = MPI_REQUEST_NULL;
  return m;
}

/* Is the message forwarded while it arrives, or kept until it is complete? */
static bool is_handed_on(const relay *r, const world *from, MPI_Count bytes)
{
  if (bytes < PASS_FROM || goes_to_all(r, from)) return false;
  bool again = from->tos > 1;
  for (int i = 0; i < from->tos; i++) again |= r->world[from->to[i]].heals;
  return !again || bytes > r->limit;
}

/* Takes the message that was found. A short one, when nothing waits, is mostly through before
 * anything is kept of it. */
static void take(relay *r, queue *q, MPI_Message *found, MPI_Status *st)
{
  int cluster;
  MPISP_Status_get_cluster(st, &cluster);
  world *from = relay_from(r, cluster);
  message *m = new_message(from->tos, st);
  if (is_handed_on(r, from, m->bytes)) {
    MPI_Count left = r->limit - q->bytes;
    m->found = *found;
    if (m->held > left) m->held = left > PASS_LEAST ? left : PASS_LEAST;
  } else {
    m->data = need((size_t)m->bytes);
    if (m->bytes <= AT_ONCE)
      m->complete =
          MPI_Mrecv_c(m->data, m->bytes, MPI_BYTE, found, MPI_STATUS_IGNORE) != MPI_SUCCESS;
    else
      MPI_Imrecv_c(m->data, m->bytes, MPI_BYTE, found, &m->in);
  }
  *q->last = m;
  q->last = &m->next;
  q->messages++;
  q->bytes += m->held;
  r->passed++;
  if (q->bytes > r->most) r->most = q->bytes;
}

/* Accepts the available messages, if there is room. */
static bool take_in(relay *r, queue *q)
{
  bool any = false;
  for (int n = 0; n < 16 && has_room(r, q); n++) {
    MPI_Message found;
    MPI_Status st;
    int flag;
    MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &found, &st);
    if (!flag || found == MPI_MESSAGE_NO_PROC) break;
    take(r, q, &found, &st);
    any = true;
  }
  return any;
}

/* Waits for the next message; false: none will come any more. Nothing is held. */
static bool await(relay *r, queue *q)
{
  MPI_Message found;
  MPI_Status st;
  MPI_Mprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &found, &st);
  if (found == MPI_MESSAGE_NO_PROC) return false;
  take(r, q, &found, &st);
  return true;
}

/* Looks again at once for a while, then less and less often: nothing that is held moves before its
 * receiver or its sender does. */
static void pause_after(int empty)
{
  if (empty < 200) return;
  if (empty < 1000) {
    sched_yield();
    return;
  }
  long us = empty < 2000 ? 20 : empty < 4000 ? 100 : 1000;
  nanosleep(&(struct timespec){.tv_nsec = us * 1000}, NULL);
}

void relay_run(relay *r)
{
  queue q = {.last = &q.first};
  int empty = 0;
  for (;;) {
    bool moved = take_in(r, &q);
    moved |= carry_on(r, &q);
    if (moved) tell_held(&q);
    if (!q.first && !await(r, &q)) break;
    empty = moved ? 0 : empty + 1;
    pause_after(empty);
  }
}
