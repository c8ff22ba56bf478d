/* pair.c - both sides of a pair of processes, whichever transport carries its records, and the
 * queue of what waits for room there. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include "dp.h"

spx_tx *spx_txs;
spx_rx *spx_rxs;
const spx_carried *spx_carries;
const spx_transport *spx_network;

static const spx_transport *const *transports;
static spx_tx *active; /* pairs with something to send */

int spx_pairs_attach(const spx_transport *const *all, const spx_carried *messages)
{
  transports = all;
  spx_carries = messages;
  active = NULL;
  spx_txs = calloc(spx_map.nprocs, sizeof *spx_txs);
  spx_rxs = calloc(spx_map.nprocs, sizeof *spx_rxs);
  if (!spx_txs || !spx_rxs) return ENOMEM;
  for (size_t i = 0; i < spx_segment->nprocs; i++)
    spx_txs[i].slow = SPX_TX_NEW; /* others: spx_peer_hold, spx_rx_init */
  return 0;
}

/* Drops items that wait for room; sends among them are their callers'. */
static void drop_waiting(spx_tx *tx)
{
  for (spx_txitem *it = tx->pend, *next; it; it = next) {
    next = it->next;
    free(it);
  }
  tx->pend = NULL;
  tx->stream = NULL;
}

void spx_pairs_detach(void)
{
  for (uint32_t i = 0; spx_txs && i < spx_map.nprocs; i++) drop_waiting(&spx_txs[i]);
  for (uint32_t i = 0; spx_rxs && i < spx_map.nprocs; i++) free(spx_rxs[i].ctrl);
  free(spx_txs);
  free(spx_rxs);
  spx_txs = NULL;
  spx_rxs = NULL;
}

static const spx_transport *transport_of(uint32_t peer)
{
  const spx_transport *const *t = transports;
  while (*t && !(*t)->reaches(peer)) t++;
  SPX_ASSERT(*t);
  return *t;
}

int spx_tx_init(uint32_t peer)
{
  SPX_ASSERT(peer < spx_map.nprocs);
  spx_tx *tx = &spx_txs[peer];
  tx->life =
      /* a process that is met later is known: spx_peer_meet */
      __atomic_load_n(&spx_proc_of(peer)->incarnation, __ATOMIC_ACQUIRE);
  tx->by = transport_of(peer);
  return tx->by->open(peer);
}

void spx_rx_init(uint32_t peer)
{
  spx_tx *tx = &spx_txs[peer];
  if (tx->life == 0)
    tx->slow |=
        /* it came after this one, and no communicator leads there yet: it may be answered all the
           same */
        SPX_TX_NEW;
  transport_of(peer)->listen(peer);
}

static void enlist(spx_tx *tx)
{
  tx->active = 1;
  tx->next = active;
  active = tx;
}

static void activate(spx_tx *tx)
{
  if (tx->active) return;
  enlist(tx);
  /* A thread that sleeps, or is about to, has published that nothing waits for room: it must
   * publish anew. */
  if (SPX_UNLIKELY(__atomic_load_n(&spx_proc_of(spx_me)->sleeping, __ATOMIC_RELAXED)))
    spx_ring_self();
}

static void append(spx_tx *tx, spx_txitem *it)
{
  it->next = NULL;
  if (tx->pend)
    tx->pend_last->next = it;
  else
    tx->pend = it;
  tx->pend_last = it;
  SPX_ASSERT(tx->pend && !(tx->slow & SPX_TX_NEW));
  tx->slow |= SPX_TX_QUEUED;
  activate(tx);
}

int spx_tx_queue_request(uint32_t peer, spx_request *r)
{
  spx_txitem *it = calloc(1, sizeof *it);
  if (!it) {
    spx_detail("no memory to queue a send to process %u", peer);
    return MPI_ERR_NO_MEM;
  }
  SPX_ASSERT(r->kind == SPX_R_SEND && r->peer == peer);
  it->r = r;
  r->state = SPX_S_QUEUED;
  append(&spx_txs[peer], it);
  return MPI_SUCCESS;
}

static bool write_two(spx_tx *tx, spx_rec_kind kind, spx_rec_words as, const void *a,
                      uint32_t a_len, const void *b, uint32_t b_len)
{
  uint32_t bytes = SPX_REC_BYTES(a_len + b_len);
  if (tx->ring < 0 && spx_tx_warm(tx)) tx->by->widen(tx);
  spx_rec *rec = spx_tx_room(tx, bytes);
  if (!rec) return false;
  spx_tx_fill(tx, rec, as, a_len + b_len);
  if (a_len) memcpy(rec->data, a, a_len);
  if (b_len) memcpy(rec->data + a_len, b, b_len);
  spx_tx_commit(tx, rec, bytes, kind);
  spx_bell_if_sleeping(tx->proc, (uint32_t)(tx - spx_txs));
  return true;
}

static bool write_record(spx_tx *tx, spx_rec_kind kind, spx_rec_words as, const void *payload,
                         uint32_t len)
{
  return write_two(tx, kind, as, payload, len, NULL, 0);
}

bool spx_tx_write(uint32_t peer, spx_rec_kind kind, spx_rec_words as, const void *payload,
                  uint32_t len)
{
  return write_record(&spx_txs[peer], kind, as, payload, len);
}

/* What may be longer than a record goes in pieces. A multicast that fits into one goes whole. */
static bool in_pieces(spx_rec_kind kind) { return kind == SPX_REC_CTRL || kind == SPX_REC_MCAST; }

static bool goes_whole(spx_tx *tx, spx_rec_kind kind, uint32_t len)
{
  if (!in_pieces(kind)) return true;
  return kind == SPX_REC_MCAST && SPX_REC_BYTES(len) <= spx_segment->ring_bytes / 4 &&
         (tx->ring >= 0 || tx->by->widen(tx));
}

/* Writes the pieces of a control message or a multicast. */
static bool write_pieces(spx_tx *tx, spx_txitem *it)
{
  do {
    if (tx->ring < 0 && (it->len > SPX_CHAN_DATA - SPX_CHAN_DATA / 2 || spx_tx_warm(tx)))
      tx->by->widen(tx);
    uint32_t left = it->len - it->gone, piece = tx->ring < 0 ? SPX_REC_INLINE : spx_set.fragment;
    if (piece > left) piece = left;
    it->as.piece.more = (int32_t)(left - piece);
    if (!write_record(tx, (spx_rec_kind)it->kind, it->as, it->data + it->gone, piece)) return false;
    it->gone += piece;
    SPX_ASSERT(it->gone <= it->len);
  } while (it->gone < it->len);
  return true;
}

static int drain_one(spx_tx *tx);

void spx_tx_put(uint32_t peer, spx_rec_kind kind, spx_rec_words as, const void *payload,
                uint32_t len)
{
  spx_tx_put_two(peer, kind, as, payload, len, NULL, 0);
}

void spx_tx_put_two(uint32_t peer, spx_rec_kind kind, spx_rec_words as, const void *a,
                    uint32_t a_len, const void *b, uint32_t b_len)
{
  spx_tx *tx = &spx_txs[peer];
  uint32_t len = a_len + b_len;
  if ((tx->slow & SPX_TX_NEW) && spx_tx_init(peer) != MPI_SUCCESS)
    spx_fatal(MPI_ERR_NO_MEM, "no memory to answer process %u", peer);
  if (tx->slow & (kind == SPX_REC_CTRL ? SPX_TX_DEAD | SPX_TX_CLOSED : SPX_TX_DEAD)) return;
  if (!tx->pend && goes_whole(tx, kind, len) && write_two(tx, kind, as, a, a_len, b, b_len)) return;
  spx_txitem *it = malloc(sizeof *it + len);
  if (!it) spx_fatal(MPI_ERR_NO_MEM, "no memory to queue an answer to process %u", peer);
  *it = (spx_txitem){.kind = (uint16_t)kind, .as = as, .len = len};
  if (a_len) memcpy(it->data, a, a_len);
  if (b_len) memcpy(it->data + a_len, b, b_len);
  append(tx, it);
  if (tx->pend == it) drain_one(tx);
}

void spx_tx_stream(uint32_t peer, spx_request *r)
{
  spx_tx *tx = &spx_txs[peer];
  SPX_ASSERT(r->kind == SPX_R_SEND && r->state != SPX_S_STREAM && r->out.at <= r->out.end);
  spx_request **p = &tx->stream;
  while (*p) p = &(*p)->next;
  r->next = NULL;
  *p = r;
  r->state = SPX_S_STREAM;
  tx->full = 0;
  activate(tx);
}

static int drain_one(spx_tx *tx)
{
  int moved = 0;
  while (tx->pend) {
    spx_txitem *it = tx->pend;
    if (it->r ? !spx_carries->send(it->r)
        : in_pieces((spx_rec_kind)it->kind)
            ? !write_pieces(tx, it)
            : !write_record(tx, (spx_rec_kind)it->kind, it->as, it->data, it->len))
      return moved;
    tx->pend = it->next;
    free(it);
    moved++;
  }
  tx->slow &= ~(uint32_t)SPX_TX_QUEUED;
  while (tx->stream) {
    spx_request *r = tx->stream;
    if (!spx_carries->more(tx, r, &moved)) return moved;
    tx->stream = r->next;
    spx_carries->written(r);
  }
  spx_peer_idle((uint32_t)(tx - spx_txs));
  return moved;
}

int spx_tx_drain(void)
{
  int moved = 0;
  spx_tx *list = active, *tx;
  active = NULL;
  while ((tx = list)) {
    list = tx->next;
    tx->active = 0;
    if (!tx->full || __atomic_load_n(&tx->chan->tail, __ATOMIC_RELAXED) != tx->full_tail) {
      moved += drain_one(tx);
      tx->full = tx->pend || tx->stream;
      tx->full_tail = spx_position_word(tx->epoch, tx->tail);
    }
    if ((tx->pend || tx->stream) && !tx->active) enlist(tx); /* as before: no notification needed */
  }
  return moved;
}

bool spx_tx_waiting(void) { return active != NULL; }

int spx_tx_unqueue(uint32_t peer, spx_request *r)
{
  spx_tx *tx = &spx_txs[peer];
  tx->full = 0; /* the next item may need less room */
  for (spx_request **p = &tx->stream; *p; p = &(*p)->next)
    if (*p == r) {
      *p = r->next;
      if (tx->by->recall) tx->by->recall(tx, r);
      return 1;
    }
  spx_txitem *before = NULL;
  for (spx_txitem *it = tx->pend; it; before = it, it = it->next) {
    if (it->r != r) continue;
    if (before)
      before->next = it->next;
    else
      tx->pend = it->next;
    if (tx->pend_last == it) tx->pend_last = before;
    if (!tx->pend) tx->slow &= ~(uint32_t)SPX_TX_QUEUED;
    free(it);
    return 1;
  }
  return 0;
}

spx_request *spx_tx_queued(uint32_t peer)
{
  for (const spx_txitem *it = spx_txs[peer].pend; it; it = it->next)
    if (it->r && it->r->kind == SPX_R_SEND && it->r->state == SPX_S_QUEUED) return it->r;
  return NULL;
}

void spx_tx_kill(uint32_t peer)
{
  spx_tx *tx = &spx_txs[peer];
  drop_waiting(tx);
  tx->slow = (tx->slow | SPX_TX_DEAD) & ~(uint32_t)SPX_TX_QUEUED;
  tx->full = 0;
  if (tx->by && tx->by->close) tx->by->close(tx);
}

static void forget(uint32_t peer)
{
  spx_tx *tx = &spx_txs[peer];
  if (tx->by && tx->by->close) tx->by->close(tx);
  for (spx_tx **p = &active; *p; p = &(*p)->next)
    if (*p == tx) {
      *p = tx->next;
      break;
    }
  memset(tx, 0, sizeof *tx);
  tx->slow = SPX_TX_NEW;
}

const spx_peer_observer spx_pair_peers = {.forget = forget, .unmapped = forget};

/* ---- long messages that lie in no buffer ---- */

void spx_bulk_load(const spx_request *r, uint64_t at, uint64_t n, void *to)
{
  for (uint64_t done = 0, k; done < n; done += k) {
    k = n - done;
    const char *from = spx_bulk_of(r)->at(r, at + done, &k);
    memcpy((char *)to + done, from, k);
  }
}

void spx_bulk_store(const spx_request *r, uint64_t at, uint64_t n, const void *from)
{
  for (uint64_t done = 0, k; done < n; done += k) {
    k = n - done;
    char *to = spx_bulk_of(r)->at(r, at + done, &k);
    memcpy(to, (const char *)from + done, k);
  }
}
