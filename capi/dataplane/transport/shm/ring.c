/* ring.c - the transport of processes that share memory: channels and rings. See layout.h and
 * record.h.
 *
 * A pair's channel (three lines) always exists. Its ring, in the sender's own part of the file, is
 * opened for the first record that does not fit into a line, or after a few records. One of the two
 * is active; a SWITCH record moves the receiver to the other. When all rings of a process are
 * taken, one that is drained and was not used lately goes back to its channel. Positions count
 * bytes over the whole existence of the pair, so that a tail is never ambiguous within the last
 * 2^48 bytes. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include "dp.h"

/* bytes of a record that goes back to the beginning of the ring before its end */
#define SHORT      2048
#define RETRY_RING 16 /* records between searches for a ring when there is none */
#define HOT        4  /* senders that are polled without looking at the dirty row */
#define SCAN_EVERY 8  /* rounds between readings of the dirty row, when there are hot senders */

enum { RING_FREE, RING_ACTIVE, RING_CLOSING };

static spx_rx *owed;       /* pairs whose control line is behind */
static uint64_t *hot_mask; /* a byte per sender: 0 when it is hot */
static uint32_t hot[HOT], nhot, rounds;

/* Where a receiver has mapped the ring that a peer sends through; it stays until the peer uses
 * another one. */
typedef struct {
  char *at;
  uint64_t offset, bytes;
} view;
static view *views;

int spx_ring_attach(void)
{
  size_t n = spx_map.nprocs;
  hot_mask = malloc((n + 7) / 8 * 8);
  views = calloc(n, sizeof *views);
  if (!hot_mask || !views) return ENOMEM;
  memset(hot_mask, 0xff, (n + 7) / 8 * 8);
  owed = NULL;
  nhot = rounds = 0;
  return 0;
}

void spx_ring_detach(void)
{
  free(hot_mask);
  for (size_t i = 0; views && i < spx_map.nprocs; i++)
    if (views[i].at) munmap(views[i].at, views[i].bytes);
  free(views);
  views = NULL;
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

/* ---- rings are mapped on use: those of all processes together would take gigabytes of address
 * space ---- */

static char *map_part(int fd, char *at, uint64_t offset, uint64_t bytes)
{
  int flags = MAP_SHARED | MAP_NORESERVE | (at ? MAP_FIXED : 0);
  void *p = mmap(at, bytes, PROT_READ | PROT_WRITE, flags, fd, (off_t)offset);
  return p == MAP_FAILED ? NULL : p;
}

static uint64_t row_offset(const spx_file *f)
{
  return spx_head(f)->ring_off + f->me * spx_head(f)->ring_row;
}

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

/* ---- sending ---- */

static int open_channel(uint32_t peer)
{
  spx_tx *tx = &spx_txs[peer];
  uint32_t there;
  spx_file *f = spx_place(peer, &there);
  spx_chan *c = channel(f, there, f->me);
  if (!back_with_memory(f, (uint64_t)((char *)c - f->base), sizeof *c)) {
    spx_detail("no memory on this host for a channel to process %u: %s", peer, strerror(errno));
    return MPI_ERR_NO_MEM;
  }
  tx->chan = c;
  tx->base = c->data;
  tx->size = tx->near = SPX_CHAN_DATA;
  tx->dirty =
      (uint8_t *)(f->base + spx_head(f)->dirty_off + there * spx_head(f)->dirty_stride + f->me);
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

static spx_rec *reserve(spx_tx *tx, uint32_t bytes)
{
  tx->tail = spx_tx_published(tx, &tx->chan->tail, tx->head, __ATOMIC_ACQUIRE);
  uint64_t used = tx->head - tx->tail;
  SPX_ASSERT(tx->pos < tx->size && tx->pos % SPX_LINE == 0);
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

/* Moves the pair to another buffer, at this offset of the file, which the receiver is done with. */
static bool move_to(spx_tx *tx, uint8_t *base, uint64_t offset, uint32_t size)
{
  SPX_ASSERT(base != tx->base);
  spx_rec *rec = spx_tx_room(tx, SPX_LINE);
  if (!rec) return false;
  __atomic_store_n((uint64_t *)base, 0, __ATOMIC_RELAXED);
  spx_rec_switch s = {.offset = offset, .bytes = size};
  spx_tx_fill(tx, rec, SPX_REC_PLAIN, sizeof s);
  memcpy(rec->data, &s, sizeof s);
  spx_tx_commit(tx, rec, SPX_LINE, SPX_REC_SWITCH);
  tx->base = base;
  tx->size = size;
  tx->near = spx_tx_near(size);
  tx->pos = 0;
  return true;
}

/* A ring that is not in use, or -1. Starts to give back one that is idle when there is none. */
static int find_ring(spx_file *f)
{
  uint32_t n = spx_head(f)->rings_per_proc;
  if (f->backoff && f->backoff--) return -1;
  for (uint32_t k = 0; k < n; k++) {
    spx_ring *g = &f->rings[k];
    const spx_tx *tx = &spx_txs[g->peer];
    if (g->state == RING_CLOSING &&
        spx_tx_published(tx, &tx->chan->tail, tx->head, __ATOMIC_ACQUIRE) >= g->closed)
      g->state = RING_FREE;
    if (g->state == RING_FREE) return (int)k;
  }
  for (uint32_t step = 0; step < 2 * n; step++, f->hand++) {
    spx_ring *g = &f->rings[f->hand % n];
    spx_tx *tx = &spx_txs[g->peer];
    if (g->state != RING_ACTIVE) continue;
    bool used = g->seen != tx->head;
    g->seen = tx->head;
    if (used || tx->pend || tx->stream ||
        spx_tx_published(tx, &tx->chan->tail, tx->head, __ATOMIC_ACQUIRE) != tx->head)
      continue;
    if (!move_to(tx, tx->chan->data, (uint64_t)((char *)tx->chan->data - f->base), SPX_CHAN_DATA))
      continue;
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

static bool open_ring(spx_tx *tx)
{
  spx_file *f = tx->file;
  int k = find_ring(f);
  if (k < 0) return false;
  spx_ring *g = &f->rings[k];
  uint64_t bytes = spx_head(f)->ring_bytes, at = (uint64_t)k * bytes, offset = row_offset(f) + at;
  if (!own_row(f) || (!g->backed && !back_with_memory(f, offset, bytes))) return false;
  g->backed = true;
  if (!move_to(tx, (uint8_t *)f->row + at, offset, (uint32_t)bytes)) return false;
  *g = (spx_ring){
      .state = RING_ACTIVE, .peer = (uint32_t)(tx - spx_txs), .seen = tx->head, .backed = true};
  tx->ring = k;
  spx_stat.rings++;
  return true;
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

/* ---- receiving ---- */

static uint64_t *dirty_row(void)
{
  return (uint64_t *)(spx_map.base + spx_segment->dirty_off + spx_me * spx_segment->dirty_stride);
}

static void listen_to(uint32_t peer)
{
  spx_rx *rx = &spx_rxs[peer];
  rx->chan = channel(&spx_own, spx_me, peer);
  rx->proc = spx_home(peer);
  rx->base = rx->chan->data;
  rx->size = SPX_CHAN_DATA;
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
  /* Records that the next process of this number has written already were skipped. */
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
            "the channel from process %u holds no record: word %016llx, record %u; its memory was "
            "overwritten",
            peer, (unsigned long long)word, rec->seq);
}

static void follow_switch(uint32_t peer, spx_rx *rx, const spx_rec *rec)
{
  spx_rec_switch s;
  memcpy(&s, rec->data, sizeof s);
  uint64_t rings = spx_segment->ring_off;
  bool ring =
      s.offset >= rings && s.bytes == spx_segment->ring_bytes && (s.offset - rings) % s.bytes == 0;
  bool back =
      s.offset == (uint64_t)((char *)rx->chan->data - spx_map.base) && s.bytes == SPX_CHAN_DATA;
  if (!back && (!ring || s.offset + s.bytes > spx_segment->total_bytes))
    corrupt(peer, rec, s.offset);
  uint8_t *base = back ? rx->chan->data : view_ring(peer, s.offset, s.bytes);
  if (!base)
    spx_fatal(MPI_ERR_NO_MEM,
              "%u bytes of the job's memory file, for messages from process %u, cannot be mapped: "
              "%s; is the address "
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
  if (rx->consumed - rx->published >= (rx->size < SPX_RING_NEAR ? rx->size : SPX_RING_NEAR) / 4)
    publish_tail(peer, rx);
}

static void make_hot(uint32_t peer)
{
  uint8_t *mask = (uint8_t *)hot_mask;
  if (mask[peer] == 0) return;
  if (nhot == HOT) { /* the coldest leaves; the next reading of the row polls it once more */
    uint32_t last = hot[--nhot];
    mask[last] = 0xff;
    __atomic_store_n((uint8_t *)dirty_row() + last, 1, __ATOMIC_RELAXED);
  }
  memmove(&hot[1], &hot[0], nhot * sizeof hot[0]);
  hot[0] = peer;
  nhot++;
  SPX_ASSERT(nhot <= HOT);
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

const spx_peer_observer spx_ring_peers = {.stale = forget_rx, .released = cool};

static bool shares_memory(uint32_t peer) { return !spx_net_peer(peer); }

const spx_transport spx_shm = {.name = "shm",
                               .reaches = shares_memory,
                               .open = open_channel,
                               .listen = listen_to,
                               .reserve = reserve,
                               .widen = open_ring,
                               .close = free_rings};

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
      if (SPX_UNLIKELY(rec->seq != rx->seq || SPX_REC_HEADER + rec->len > bytes))
        corrupt(peer, rec, word);
      if (kind == SPX_REC_SWITCH) {
        rx->seq++;
        n++;
        follow_switch(peer, rx, rec);
        continue;
      } else if (!spx_arrived(peer, rx, rec, kind)) {
        /* no memory for it: it stays where it is, and the sender stops when the buffer is full */
        make_hot(peer);
        break;
      }
      rx->seq++;
      n++;
    }
    consume(peer, rx, bytes);
    /* let other senders have a turn; hot, it is polled again */
    if (SPX_UNLIKELY(rx->consumed >= enough)) {
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
    /* it never wrote: its channel may have no memory */
    if (!((uint8_t *)dirty_row())[peer]) return;
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
      /* clear before looking: a store that comes later sets it again */
      __atomic_thread_fence(__ATOMIC_SEQ_CST);
      if (SPX_UNLIKELY(spx_rx_stale(peer, &spx_rxs[peer]))) {
        if (!spx_beyond_host() || spx_peer_is_held(peer)) continue; /* spx_peer_hold polls it */
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
