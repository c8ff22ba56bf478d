/* ring.c - channels and rings: how records get from one process to another. See layout.h and record.h.
 *
 * A pair's channel (three lines) always exists. Its ring, in the sender's own part of the file, is opened for the first record
 * that does not fit into a line, or after a few records. One of the two is active; a SWITCH record moves the receiver to the
 * other. When all rings of a process are taken, one that is drained and was not used lately goes back to its channel.
 * Positions count bytes over the whole life of the pair, so that a tail is never ambiguous: the last 2^48 bytes are told apart.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include "dp.h"
#include "net_long.h"

#define CHAN_DATA  (SPX_CHAN_BYTES - SPX_LINE)
#define SHORT      2048 /* bytes of a record that goes back to the beginning of the ring before its end */
#define RETRY_RING 16   /* records between searches for a ring when there is none */
#define HOT        4    /* senders that are polled without looking at the dirty row */
#define SCAN_EVERY 8    /* rounds between looks at the dirty row, when there are hot senders */

spx_tx *spx_txs;
spx_rx *spx_rxs;

enum { RING_FREE, RING_ACTIVE, RING_CLOSING };

static const spx_writer *writer;
static spx_tx *active;     /* pairs with something to send */
static spx_rx *owed;       /* pairs whose control line is behind */
static uint64_t *hot_mask; /* a byte per sender: 0 when it is hot */
static uint32_t hot[HOT], nhot, rounds;

/* Where a receiver has mapped the ring that a peer sends through; it stays until the peer uses another one. */
typedef struct {
  char *at;
  uint64_t offset, bytes;
} view;
static view *views;

int spx_ring_attach(const spx_writer *sends)
{
  writer = sends;
  size_t n = spx_map.nprocs;
  spx_txs = calloc(n, sizeof *spx_txs);
  spx_rxs = calloc(n, sizeof *spx_rxs);
  hot_mask = malloc((n + 7) / 8 * 8);
  views = calloc(n, sizeof *views);
  if (!spx_txs || !spx_rxs || !hot_mask || !views) {
    spx_ring_detach();
    return ENOMEM;
  }
  memset(hot_mask, 0xff, (n + 7) / 8 * 8);
  for (size_t i = 0; i < spx_segment->nprocs; i++)
    spx_txs[i].slow = SPX_TX_NEW; /* others: spx_peer_hold, spx_rx_init */
  active = NULL;
  owed = NULL;
  nhot = rounds = 0;
  return 0;
}

void spx_ring_detach(void)
{
  free(spx_txs);
  free(spx_rxs);
  free(hot_mask);
  for (size_t i = 0; views && i < spx_map.nprocs; i++)
    if (views[i].at) munmap(views[i].at, views[i].bytes);
  free(views);
  views = NULL;
  spx_txs = NULL;
  spx_rxs = NULL;
  hot_mask = NULL;
}

static spx_chan *channel(const spx_file *f, uint32_t receiver, uint32_t sender)
{
  return (spx_chan *)(f->base + spx_head(f)->chan_off + receiver * spx_head(f)->chan_row +
                      (uint64_t)sender * SPX_CHAN_BYTES);
}

static bool back_with_memory(const spx_file *f, uint64_t offset, uint64_t bytes)
{
  int rc;
  do rc = fallocate(f->fd, 0, (off_t)offset, (off_t)bytes);
  while (rc != 0 && errno == EINTR);
  return rc == 0;
}

/* ---- rings are mapped on use: those of all processes together would take gigabytes of address space ---------------- */

static char *map_part(int fd, char *at, uint64_t offset, uint64_t bytes)
{
  int flags = MAP_SHARED | MAP_NORESERVE | (at ? MAP_FIXED : 0);
  void *p = mmap(at, bytes, PROT_READ | PROT_WRITE, flags, fd, (off_t)offset);
  return p == MAP_FAILED ? NULL : p;
}

static uint64_t row_offset(const spx_file *f) { return spx_head(f)->ring_off + f->me * spx_head(f)->ring_row; }

static char *own_row(spx_file *f)
{
  if (!f->row) f->row = map_part(f->fd, NULL, row_offset(f), spx_head(f)->ring_row);
  return f->row;
}

static uint8_t *view_ring(uint32_t peer, uint64_t offset, uint64_t bytes)
{
  view *v = &views[peer];
  if (v->at && v->bytes == bytes && v->offset == offset) return (uint8_t *)v->at;
  char *at = map_part(spx_map.fd, v->bytes == bytes ? v->at : NULL, offset, bytes);
  if (!at) return NULL;
  if (v->at && v->at != at) munmap(v->at, v->bytes);
  *v = (view){at, offset, bytes};
  return (uint8_t *)at;
}

/* ---- sending ------------------------------------------------------------------------------------------------- */

int spx_tx_init(uint32_t peer)
{
  spx_tx *tx = &spx_txs[peer];
  tx->life =
      __atomic_load_n(&spx_proc_of(peer)->incarnation, __ATOMIC_ACQUIRE); /* who is met later is known: spx_peer_meet */
  if (spx_net_peer(peer)) return spx_net_tx_init(peer);
  uint32_t there;
  spx_file *f = spx_place(peer, &there);
  spx_chan *c = channel(f, there, f->me);
  if (!back_with_memory(f, (uint64_t)((char *)c - f->base), sizeof *c)) {
    spx_detail("no memory on this host for a channel to process %u: %s", peer, strerror(errno));
    return MPI_ERR_NO_MEM;
  }
  tx->chan = c;
  tx->base = c->data;
  tx->size = tx->near = CHAN_DATA;
  tx->dirty = (uint8_t *)(f->base + spx_head(f)->dirty_off + there * spx_head(f)->dirty_stride + f->me);
  tx->proc = spx_file_proc(f, there);
  tx->ring = -1;
  tx->file = f;
  tx->epoch = f->epoch;
  tx->head = tx->tail = tx->sent = tx->matched = spx_position_first();
  tx->seq = spx_first_record();
  spx_stat.connections++;
  tx->slow &= ~(uint32_t)SPX_TX_NEW;
  return MPI_SUCCESS;
}

spx_rec *spx_tx_room_slow(spx_tx *tx, uint32_t bytes)
{
  if (SPX_UNLIKELY(tx->conn != NULL)) return spx_net_room(tx, bytes);
  tx->tail = spx_tx_published(tx, &tx->chan->tail, tx->head, __ATOMIC_ACQUIRE);
  uint64_t used = tx->head - tx->tail;
  uint32_t pad = tx->size - tx->pos;
  bool back = used + pad + bytes + SPX_LINE <= tx->size; /* is there room at the beginning? */
  if (bytes <= pad) {
    bool near = tx->pos + bytes <= tx->near;
    if (near || !back || bytes > SHORT) {
      if (!near) tx->near = tx->size; /* to the end, this time */
      return used + bytes + SPX_LINE <= tx->size ? (spx_rec *)(tx->base + tx->pos) : NULL;
    }
  } else if (!back)
    return NULL;
  spx_tx_commit(tx, (spx_rec *)(tx->base + tx->pos), pad, SPX_REC_PAD);
  return (spx_rec *)tx->base;
}

/* Writes the header but for the first word. */
static void fill(spx_tx *tx, spx_rec *rec, uint64_t ctx, int32_t tag, int32_t src, uint32_t len)
{
  rec->ctx = ctx;
  rec->tag = tag;
  rec->src = src;
  rec->seq = tx->seq++;
  rec->len = len;
}

/* Moves the pair to another buffer, at this offset of the file, which the receiver is done with. */
static bool move_to(spx_tx *tx, uint8_t *base, uint64_t offset, uint32_t size)
{
  spx_rec *rec = spx_tx_room(tx, SPX_LINE);
  if (!rec) return false;
  __atomic_store_n((uint64_t *)base, 0, __ATOMIC_RELAXED);
  spx_rec_switch s = {.offset = offset, .bytes = size};
  fill(tx, rec, 0, 0, 0, sizeof s);
  memcpy(rec->data, &s, sizeof s);
  spx_tx_commit(tx, rec, SPX_LINE, SPX_REC_SWITCH);
  tx->base = base;
  tx->size = size;
  tx->near = spx_tx_near(size);
  tx->pos = 0;
  return true;
}

/* A ring that nobody uses, or -1. Starts to give back one that is idle when there is none. */
static int find_ring(spx_file *f)
{
  uint32_t n = spx_head(f)->rings_per_proc;
  if (f->backoff && f->backoff--) return -1;
  for (uint32_t k = 0; k < n; k++) {
    spx_ring *g = &f->rings[k];
    const spx_tx *tx = &spx_txs[g->peer];
    if (g->state == RING_CLOSING && spx_tx_published(tx, &tx->chan->tail, tx->head, __ATOMIC_ACQUIRE) >= g->closed)
      g->state = RING_FREE;
    if (g->state == RING_FREE) return (int)k;
  }
  for (uint32_t step = 0; step < 2 * n; step++, f->hand++) {
    spx_ring *g = &f->rings[f->hand % n];
    spx_tx *tx = &spx_txs[g->peer];
    if (g->state != RING_ACTIVE) continue;
    bool used = g->seen != tx->head;
    g->seen = tx->head;
    if (used || tx->pend || tx->stream || spx_tx_published(tx, &tx->chan->tail, tx->head, __ATOMIC_ACQUIRE) != tx->head)
      continue;
    if (!move_to(tx, tx->chan->data, (uint64_t)((char *)tx->chan->data - f->base), CHAN_DATA)) continue;
    spx_bell_if_sleeping(tx->proc, g->peer); /* it has to see the SWITCH */
    tx->ring = -1;
    g->state = RING_CLOSING;
    g->closed = tx->head;
    f->hand++;
    break;
  }
  f->backoff = RETRY_RING;
  return -1;
}

bool spx_tx_open_ring(spx_tx *tx)
{
  spx_file *f = tx->file;
  int k = find_ring(f);
  if (k < 0) return false;
  spx_ring *g = &f->rings[k];
  uint64_t bytes = spx_head(f)->ring_bytes, at = (uint64_t)k * bytes, offset = row_offset(f) + at;
  if (!own_row(f) || (!g->backed && !back_with_memory(f, offset, bytes))) return false;
  g->backed = true;
  if (!move_to(tx, (uint8_t *)f->row + at, offset, (uint32_t)bytes)) return false;
  *g = (spx_ring){.state = RING_ACTIVE, .peer = (uint32_t)(tx - spx_txs), .seen = tx->head, .backed = true};
  tx->ring = k;
  spx_stat.rings++;
  return true;
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
  /* A thread that sleeps, or is about to, has told the others that nothing waits for room: it must tell them anew. */
  if (SPX_UNLIKELY(__atomic_load_n(&spx_proc_of(spx_me)->sleeping, __ATOMIC_RELAXED))) spx_ring_self();
}

static void append(spx_tx *tx, spx_txitem *it)
{
  it->next = NULL;
  if (tx->pend)
    tx->pend_last->next = it;
  else
    tx->pend = it;
  tx->pend_last = it;
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
  it->r = r;
  r->state = SPX_S_QUEUED;
  append(&spx_txs[peer], it);
  return MPI_SUCCESS;
}

static bool write_two(spx_tx *tx, spx_rec_kind kind, uint64_t ctx, int32_t tag, int32_t src, const void *a,
                      uint32_t a_len, const void *b, uint32_t b_len)
{
  uint32_t bytes = SPX_REC_BYTES(a_len + b_len);
  if (tx->ring < 0 && spx_tx_warm(tx)) spx_tx_open_ring(tx);
  spx_rec *rec = spx_tx_room(tx, bytes);
  if (!rec) return false;
  fill(tx, rec, ctx, tag, src, a_len + b_len);
  if (a_len) memcpy(rec->data, a, a_len);
  if (b_len) memcpy(rec->data + a_len, b, b_len);
  spx_tx_commit(tx, rec, bytes, kind);
  spx_bell_if_sleeping(tx->proc, (uint32_t)(tx - spx_txs));
  return true;
}

static bool write_record(spx_tx *tx, spx_rec_kind kind, uint64_t ctx, int32_t tag, int32_t src, const void *payload,
                         uint32_t len)
{
  return write_two(tx, kind, ctx, tag, src, payload, len, NULL, 0);
}

bool spx_tx_write(uint32_t peer, spx_rec_kind kind, uint64_t ctx, int32_t tag, int32_t src, const void *payload,
                  uint32_t len)
{
  return write_record(&spx_txs[peer], kind, ctx, tag, src, payload, len);
}

/* What may be longer than a record goes in pieces. A multicast that fits into one goes whole. */
static bool in_pieces(spx_rec_kind kind) { return kind == SPX_REC_CTRL || kind == SPX_REC_MCAST; }

static bool goes_whole(spx_tx *tx, spx_rec_kind kind, uint32_t len)
{
  if (!in_pieces(kind)) return true;
  return kind == SPX_REC_MCAST && SPX_REC_BYTES(len) <= spx_segment->ring_bytes / 4 &&
         (tx->ring >= 0 || spx_tx_open_ring(tx));
}

/* Writes the pieces of a control message or a multicast; it->src is the number of bytes that are on their way. */
static bool write_pieces(spx_tx *tx, spx_txitem *it)
{
  do {
    if (tx->ring < 0 && (it->len > CHAN_DATA - CHAN_DATA / 2 || spx_tx_warm(tx))) spx_tx_open_ring(tx);
    uint32_t left = it->len - (uint32_t)it->src, piece = tx->ring < 0 ? SPX_REC_INLINE : spx_set.fragment;
    if (piece > left) piece = left;
    if (!write_record(tx, (spx_rec_kind)it->kind, it->ctx, (int32_t)(left - piece), 0, it->data + it->src, piece))
      return false;
    it->src += (int32_t)piece;
  } while ((uint32_t)it->src < it->len);
  return true;
}

static int drain_one(spx_tx *tx);

void spx_tx_put(uint32_t peer, spx_rec_kind kind, uint64_t ctx, int32_t tag, int32_t src, const void *payload,
                uint32_t len)
{
  spx_tx_put_two(peer, kind, ctx, tag, src, payload, len, NULL, 0);
}

void spx_tx_put_two(uint32_t peer, spx_rec_kind kind, uint64_t ctx, int32_t tag, int32_t src, const void *a,
                    uint32_t a_len, const void *b, uint32_t b_len)
{
  spx_tx *tx = &spx_txs[peer];
  uint32_t len = a_len + b_len;
  if ((tx->slow & SPX_TX_NEW) && spx_tx_init(peer) != MPI_SUCCESS)
    spx_fatal(MPI_ERR_NO_MEM, "no memory to answer process %u", peer);
  if (tx->slow & (kind == SPX_REC_CTRL ? SPX_TX_DEAD | SPX_TX_CLOSED : SPX_TX_DEAD)) return;
  if (!tx->pend && goes_whole(tx, kind, len) && write_two(tx, kind, ctx, tag, src, a, a_len, b, b_len)) return;
  spx_txitem *it = malloc(sizeof *it + len);
  if (!it) spx_fatal(MPI_ERR_NO_MEM, "no memory to queue an answer to process %u", peer);
  *it = (spx_txitem){.kind = (uint16_t)kind, .ctx = ctx, .tag = tag, .src = src, .len = len};
  if (a_len) memcpy(it->data, a, a_len);
  if (b_len) memcpy(it->data + a_len, b, b_len);
  append(tx, it);
  if (tx->pend == it) drain_one(tx);
}

void spx_tx_stream(uint32_t peer, spx_request *r)
{
  spx_tx *tx = &spx_txs[peer];
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
    if (it->r ? !writer->send(it->r)
        : in_pieces((spx_rec_kind)it->kind)
            ? !write_pieces(tx, it)
            : !write_record(tx, (spx_rec_kind)it->kind, it->ctx, it->tag, it->src, it->data, it->len))
      return moved;
    tx->pend = it->next;
    free(it);
    moved++;
  }
  tx->slow &= ~(uint32_t)SPX_TX_QUEUED;
  while (tx->stream) {
    spx_request *r = tx->stream;
    if (!writer->more(tx, r, &moved)) return moved;
    tx->stream = r->next;
    writer->written(r);
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
    if ((tx->pend || tx->stream) && !tx->active) enlist(tx); /* as before: nobody has to be told */
  }
  return moved;
}

bool spx_tx_waiting(void) { return active != NULL; }

int spx_tx_unqueue(uint32_t peer, spx_request *r)
{
  spx_tx *tx = &spx_txs[peer];
  tx->full = 0; /* what comes next may need less room */
  for (spx_request **p = &tx->stream; *p; p = &(*p)->next)
    if (*p == r) {
      *p = r->next;
      spx_long_recall(tx, r);
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

static void free_rings(spx_tx *tx)
{
  if (!tx->file) return;
  for (uint32_t k = 0; k < SPX_RINGS_PER_PROC; k++) {
    spx_ring *g = &tx->file->rings[k];
    if (g->state != RING_FREE && &spx_txs[g->peer] == tx) g->state = RING_FREE;
  }
  tx->ring = -1;
}

void spx_tx_kill(uint32_t peer)
{
  spx_tx *tx = &spx_txs[peer];
  while (tx->pend) {
    spx_txitem *it = tx->pend;
    tx->pend = it->next;
    free(it);
  }
  tx->stream = NULL;
  tx->slow = (tx->slow | SPX_TX_DEAD) & ~(uint32_t)SPX_TX_QUEUED;
  tx->full = 0;
  free_rings(tx);
}

static void forget_tx(uint32_t peer)
{
  spx_tx *tx = &spx_txs[peer];
  free_rings(tx);
  for (spx_tx **p = &active; *p; p = &(*p)->next)
    if (*p == tx) {
      *p = tx->next;
      break;
    }
  memset(tx, 0, sizeof *tx);
  tx->slow = SPX_TX_NEW;
}

/* ---- receiving ----------------------------------------------------------------------------------------------- */

static uint64_t *dirty_row(void)
{
  return (uint64_t *)(spx_map.base + spx_segment->dirty_off + spx_me * spx_segment->dirty_stride);
}

void spx_rx_init(uint32_t peer)
{
  spx_tx *tx = &spx_txs[peer];
  if (tx->life == 0)
    tx->slow |=
        SPX_TX_NEW; /* it came after this one, and no communicator leads there yet: it may be answered all the same */
  if (spx_net_peer(peer)) {
    spx_net_rx_init(peer);
    return;
  }
  spx_rx *rx = &spx_rxs[peer];
  rx->chan = channel(&spx_own, spx_me, peer);
  rx->proc = spx_home(peer);
  rx->base = rx->chan->data;
  rx->size = CHAN_DATA;
  rx->epoch = (uint16_t)spx_proc_of(peer)->incarnation;
  rx->consumed = rx->published = rx->matched = rx->matched_published = spx_position_first();
  rx->seq = spx_first_record();
}

void spx_rx_init_as(uint32_t peer, uint16_t life)
{
  spx_rx_init(peer);
  spx_rxs[peer].epoch = life;
}

static void forget_rx(uint32_t peer)
{
  spx_rx *rx = &spx_rxs[peer];
  for (spx_rx **p = &owed; *p; p = &(*p)->next_owed)
    if (*p == rx) {
      *p = rx->next_owed;
      break;
    }
  if (spx_places[peer].dead) spx_ndead--;
  spx_places[peer].dead = false;
  free(rx->ctrl);
  memset(rx, 0, sizeof *rx);
  /* What the next process of this number has written already was passed over. */
  __atomic_store_n((uint8_t *)dirty_row() + peer, 1, __ATOMIC_RELEASE);
}

void spx_rx_owe(uint32_t peer)
{
  spx_rx *rx = &spx_rxs[peer];
  if (rx->owed) return;
  rx->owed = 1;
  rx->next_owed = owed;
  owed = rx;
}

static void publish_tail(uint32_t peer, spx_rx *rx)
{
  rx->published = rx->consumed;
  __atomic_store_n(&rx->chan->tail, spx_position_word(rx->epoch, rx->consumed), __ATOMIC_RELEASE);
  if (SPX_UNLIKELY(__atomic_load_n(&rx->proc->tx_blocked, __ATOMIC_RELAXED))) spx_ring_bell(peer);
}

void spx_rx_settle(void)
{
  while (owed) {
    spx_rx *rx = owed;
    owed = rx->next_owed;
    rx->owed = 0;
    if (rx->matched != rx->matched_published && !rx->conn) spx_rx_publish_matched(rx);
    if (rx->published != rx->consumed) publish_tail((uint32_t)(rx - spx_rxs), rx);
  }
}

static _Noreturn void corrupt(uint32_t peer, const spx_rec *rec, uint64_t word)
{
  spx_fatal(MPI_ERR_INTERN,
            "the channel from process %u holds no record: word %016llx, record %u; its memory was overwritten", peer,
            (unsigned long long)word, rec->seq);
}

static void follow_switch(uint32_t peer, spx_rx *rx, const spx_rec *rec)
{
  spx_rec_switch s;
  memcpy(&s, rec->data, sizeof s);
  uint64_t rings = spx_segment->ring_off;
  bool ring = s.offset >= rings && s.bytes == spx_segment->ring_bytes && (s.offset - rings) % s.bytes == 0;
  bool back = s.offset == (uint64_t)((char *)rx->chan->data - spx_map.base) && s.bytes == CHAN_DATA;
  if (!back && (!ring || s.offset + s.bytes > spx_segment->total_bytes)) corrupt(peer, rec, s.offset);
  uint8_t *base = back ? rx->chan->data : view_ring(peer, s.offset, s.bytes);
  if (!base)
    spx_fatal(MPI_ERR_NO_MEM,
              "%u bytes of the job's memory file, for messages from process %u, cannot be mapped: %s; is the address "
              "space limited (ulimit -v)?",
              s.bytes, peer, strerror(errno));
  rx->consumed += SPX_LINE;
  publish_tail(peer, rx); /* the sender may now use the old buffer for something else */
  rx->base = base;
  rx->size = s.bytes;
  rx->pos = 0;
}

static void consume(uint32_t peer, spx_rx *rx, uint32_t bytes)
{
  rx->pos += bytes;
  if (rx->pos == rx->size) rx->pos = 0;
  rx->consumed += bytes;
  if (rx->consumed - rx->published >= (rx->size < SPX_RING_NEAR ? rx->size : SPX_RING_NEAR) / 4) publish_tail(peer, rx);
}

static void make_hot(uint32_t peer)
{
  uint8_t *mask = (uint8_t *)hot_mask;
  if (mask[peer] == 0) return;
  if (nhot == HOT) { /* the coldest leaves; the next look at the row polls it once more */
    uint32_t last = hot[--nhot];
    mask[last] = 0xff;
    __atomic_store_n((uint8_t *)dirty_row() + last, 1, __ATOMIC_RELAXED);
  }
  memmove(&hot[1], &hot[0], nhot * sizeof hot[0]);
  hot[0] = peer;
  nhot++;
  mask[peer] = 0;
}

static void cool(uint32_t peer)
{
  uint8_t *mask = (uint8_t *)hot_mask;
  if (mask[peer] != 0) return;
  mask[peer] = 0xff;
  for (uint32_t i = 0; i < nhot; i++)
    if (hot[i] == peer) {
      memmove(&hot[i], &hot[i + 1], (--nhot - i) * sizeof hot[0]);
      break;
    }
  __atomic_store_n((uint8_t *)dirty_row() + peer, 1, __ATOMIC_RELAXED);
}

const spx_peer_observer spx_ring_peers = {
    .stale = forget_rx, .forget = forget_tx, .unmapped = forget_tx, .released = cool};

int spx_rx_poll(uint32_t peer)
{
  spx_rx *rx = &spx_rxs[peer];
  if (SPX_UNLIKELY(!rx->base)) spx_rx_init(peer);
  int n = 0;
  uint64_t enough = rx->consumed + spx_segment->ring_bytes;
  for (;;) {
    spx_rec *rec = (spx_rec *)(rx->base + rx->pos);
    uint64_t word = __atomic_load_n((uint64_t *)rec, __ATOMIC_ACQUIRE);
    uint32_t bytes = (uint32_t)word, kind = (uint32_t)(word >> 32) & 0xffff;
    if (bytes == 0) break;
    bool misshapen = bytes % SPX_LINE || bytes > rx->size - rx->pos;
    if (SPX_UNLIKELY((uint16_t)(word >> 48) != rx->epoch) && (!misshapen || spx_rx_stale(peer, rx)))
      break; /* left behind by an earlier process of this number: nothing of this one's yet */
    if (SPX_UNLIKELY(misshapen)) corrupt(peer, rec, word);
    if (kind != SPX_REC_PAD) {
      if (SPX_UNLIKELY(rec->seq != rx->seq || SPX_REC_HEADER + rec->len > bytes)) corrupt(peer, rec, word);
      if (kind == SPX_REC_SWITCH) {
        rx->seq++;
        n++;
        follow_switch(peer, rx, rec);
        continue;
      } else if (!spx_arrived(peer, rx, rec, kind)) {
        make_hot(peer); /* no memory for it: it stays where it is, and the sender stops when the buffer is full */
        break;
      }
      rx->seq++;
      n++;
    }
    consume(peer, rx, bytes);
    if (SPX_UNLIKELY(rx->consumed >= enough)) { /* let the others have a turn; hot, it is polled again */
      make_hot(peer);
      break;
    }
  }
  if (rx->consumed != rx->published) spx_rx_owe(peer);
  return n;
}

void spx_rx_drain(uint32_t peer, uint16_t life)
{
  if (!spx_rxs[peer].base) {
    if (!((uint8_t *)dirty_row())[peer]) return; /* it never wrote: its channel may have no memory */
    spx_rx_init_as(peer, life);
  }
  if (spx_rx_stale(peer, &spx_rxs[peer])) return;
  while (spx_rx_poll(peer) > 0) {}
}

static int scan_row(void)
{
  int n = 0;
  uint32_t procs = spx_segment->nprocs;
  uint64_t *row = dirty_row();
  for (uint32_t w = 0; w * 8 < procs; w++) {
    uint64_t set = __atomic_load_n(&row[w], __ATOMIC_ACQUIRE) & hot_mask[w];
    while (SPX_UNLIKELY(set)) {
      uint32_t byte = (uint32_t)__builtin_ctzll(set) / 8, peer = w * 8 + byte;
      set &= ~(0xffull << byte * 8);
      __atomic_store_n((uint8_t *)&row[w] + byte, 0, __ATOMIC_RELAXED);
      __atomic_thread_fence(__ATOMIC_SEQ_CST); /* clear before looking: a store that comes later sets it again */
      if (SPX_UNLIKELY(spx_rx_stale(peer, &spx_rxs[peer]))) {
        if (!spx_net_on || spx_peer_is_held(peer)) continue; /* spx_peer_hold polls it */
        spx_peer_meet(peer); /* no communicator leads there, but it may send through this process */
      }
      int got = spx_rx_poll(peer);
      if (got) make_hot(peer);
      n += got;
    }
  }
  return n;
}

int spx_rx_poll_all(bool all)
{
  int n = 0;
  for (uint32_t i = 0; i < nhot; i++) n += spx_rx_poll(hot[i]);
  if (nhot && !all && ++rounds % SCAN_EVERY) return n;
  return n + scan_row();
}
