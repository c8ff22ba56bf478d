/* transport.h - how records get from one process to another: the interface of a transport, and the
 * part that all of them share.
 *
 * Layer transport. A pair of processes has two sides here, whichever transport carries its records:
 * the sending side (spx_tx), with a queue of items that wait for room, and the receiving side
 * (spx_rx). pair.c owns both, and the queue. A transport (ring.c: memory of this host; net.c:
 * stream sockets) gives a sending side its room, publishes what is written there, and passes the
 * records that arrive to spx_arrived. A transport handles neither sends nor messages: it calls
 * spx_carried and spx_bulk. Called with spx_lock held. */
#ifndef SPX_TRANSPORT_H
#define SPX_TRANSPORT_H
#include "into.h"
#include "net.h"
#include "peers.h"
#include "place.h"
#include "record.h"
#include "settings.h"
#include "spx.h"

static inline uint64_t spx_least(uint64_t a, uint64_t b) { return a < b ? a : b; }

/* The number of the first record of a pair. */
static inline uint32_t spx_first_record(void) { return (uint32_t)spx_count_from(32, 12); }

/* ---- sending side of a pair ---- */
typedef struct spx_txitem { /* what waits for room in a pair, in order */
  struct spx_txitem *next;
  spx_request *r; /* a send not yet written; NULL: a record */
  uint16_t kind;
  spx_rec_words as;
  uint32_t len;
  uint32_t gone; /* of a record that goes in pieces: bytes that are on their way */
  uint8_t data[];
} spx_txitem;

enum {
  SPX_TX_NEW = 1u /* not initialised */,
  SPX_TX_DEAD = 2u,
  SPX_TX_QUEUED = 4u /* something waits in pend */,
  SPX_TX_CLOSED = 8u /* no communicator leads there any more */
};
typedef struct spx_tx {
  uint32_t slow; /* SPX_TX_*: 0 on the short path */
  uint32_t pos;  /* where the next record goes */
  uint8_t *base; /* active buffer: channel or ring */
  uint32_t size;
  /* beyond it short records look whether they can go to the beginning: spx_tx_near */
  uint32_t near;
  uint32_t seq;
  uint64_t head; /* bytes written in all buffers */
  uint64_t tail; /* bytes consumed, as last read */
  spx_chan *chan;
  uint8_t *dirty;
  spx_proc *proc;
  uint64_t sent;    /* bytes of eager records */
  uint64_t matched; /* of these, matched: as last read */
  int32_t ring;     /* own ring, or -1: the channel is active */
  uint32_t active;  /* in the list of pairs with something to send */
  /* the queue found no room when tail was full_tail: no retry before that changes */
  uint32_t full;
  uint64_t full_tail; /* as published */
  uint32_t life;      /* the receiver's incarnation in our file */
  uint16_t epoch;     /* ours in the receiver's file */
  spx_file *file;     /* where the receiver's channels lie */
  spx_txitem *pend, *pend_last;
  spx_request *stream; /* sends that flow as DATA */
  struct spx_tx *next;
  const struct spx_transport *by; /* NULL: not initialised */
  /* reached over the network: buffer and control line are the connection's */
  spx_conn *conn;
  spx_into into; /* how copies are stored there */
  /* messages from there that are still taken for part of an exchange */
  uint32_t met;
  bool apart_there; /* the same, as in the peer's last announcement */
  /* ns: when a stream was last requested although messages are got */
  uint64_t asked;
} spx_tx;
SPX_HIDDEN extern spx_tx *spx_txs;

/* ---- receiving side of a pair ---- */
typedef struct spx_rx {
  uint8_t *base; /* NULL: not initialised */
  uint32_t pos, size;
  uint64_t consumed, published; /* tail */
  uint64_t matched, matched_published;
  spx_chan *chan;
  uint32_t seq;
  uint16_t epoch;
  uint8_t cma;   /* 0 not probed, 1 works, 2 forbidden */
  uint32_t owed; /* in the list of pairs whose control line is behind */
  struct spx_rx *next_owed;
  spx_proc *proc;  /* in the sender's own file */
  uint32_t pieces; /* DATA records so far */
  uint8_t *ctrl;   /* control message being put together */
  uint32_t ctrl_n, ctrl_size;
  spx_conn *conn; /* reached over the network: base is a line of zeros */
} spx_rx;
SPX_HIDDEN extern spx_rx *spx_rxs;
/* All transports call it with each record that has arrived. False: no memory, the record stays
 * where it is. Set at attach, to spx_deliver. */
SPX_HIDDEN extern bool (*spx_arrived)(uint32_t peer, spx_rx *rx, const spx_rec *rec, uint32_t kind);

/* Positions in a pair count bytes over its whole existence, in 64 bits. The receiver publishes
 * their low 48 bits, below the low bits of the sender's incarnation: so the leftovers of an earlier
 * process of the same number are recognised. */
#define SPX_POSITION_BITS 48
#define SPX_POSITION_MASK (((uint64_t)1 << SPX_POSITION_BITS) - 1)
static inline uint64_t spx_position_first(void) { return spx_count_from(SPX_POSITION_BITS, 6000); }
static inline uint64_t spx_position_word(uint16_t epoch, uint64_t position)
{
  return (uint64_t)epoch << SPX_POSITION_BITS | (position & SPX_POSITION_MASK);
}
/* The position that a word stands for: at most 2^48 - 1 bytes before `sent`, which is not behind
 * it. */
static inline uint64_t spx_position_of(uint64_t word, uint64_t sent)
{
  return sent - ((sent - word) & SPX_POSITION_MASK);
}
/* The position that the receiver has published (tail, matched) in this process's data: all before
 * `sent`. */
static inline uint64_t spx_tx_published(const spx_tx *tx, const uint64_t *word, uint64_t sent,
                                        int order)
{
  uint64_t v = __atomic_load_n(word, order);
  return v >> SPX_POSITION_BITS == tx->epoch ? spx_position_of(v, sent) : spx_position_first();
}

/* ---- receiving from processes that come and go ---- */
/* The process of the peer's number has changed since rx was set up: no record there is for this
 * process. */
static inline bool spx_rx_stale(uint32_t peer, const spx_rx *rx)
{
  return rx->base &&
         rx->epoch != (uint16_t)__atomic_load_n(&spx_proc_of(peer)->incarnation, __ATOMIC_ACQUIRE);
}
SPX_HIDDEN void spx_settings_refresh(void); /* segment.c: processes have come or gone */

#define SPX_CHAN_DATA  (SPX_CHAN_BYTES - SPX_LINE)
#define SPX_RING_AFTER 4 /* records in the channel before a ring is opened */
/* Whether the pair has had so many. Called while it has no ring. */
static inline bool spx_tx_warm(const spx_tx *tx)
{
  return tx->seq - spx_first_record() >= SPX_RING_AFTER;
}

/* ---- the table of transports ---- */
/* What every transport promises for the pairs that it reaches. test/conformance.c tries it over
 * each of them.
 *
 * While both processes live: each record that is committed is given to spx_arrived once, whole and
 * unchanged, in the order of the commits; it is given again, and nothing after it, as long as that
 * has no memory for it. No call waits for the peer (open: for a connection, 20 ms at most). A
 * pair's memory, beside the queue of pair.c, is bounded: if the peer does not poll, reserve returns
 * NULL, and the other pairs go on. A record that is committed and rung for arrives without another
 * call of its sender; records held by relays need calls of the relays, and beyond a pair's buffer
 * those of the sender. A sleeping process is woken by records that arrive and, if it has something
 * queued, by room for it (or it wakes by itself now and then: the relay).
 *
 * The end of a pair:
 *
 * - The peer dies, which its agent reports. After spx_rx_drain and spx_net_peer_failed all that it
 *   had committed to memory, or that its kernel had taken, has arrived: whole records, the first
 *   ones of all that it sent. Nothing arrives later, not even for the next process with its index,
 *   to which nothing meant for this one is sent. Records sent meanwhile have no receiver;
 *   spx_tx_kill drops the queue, but for requests.
 * - A connection breaks. Each end has the first ones of the other's records, as above. Records have
 *   no receiver from then on, and do not wait; streams wait until they are cancelled, or until the
 *   peer's end is reported. The engine is notified once, by each end (SPX_NET_LOST). No connection
 *   is made again.
 * - A connection closes in order. Nothing is lost or doubled; the next one continues where it
 *   ended. A second connection beside an open one is closed, and its data are not read.
 * - A relay dies. Nothing is lost as long as another way leads to the peer.
 * - Detach, at any time. Memory, mappings, descriptors and sockets not yet taken are given back.
 *   Requests in queues are their callers'. */
typedef struct spx_transport {
  const char *name;
  bool (*reaches)(uint32_t peer); /* the same answer as long as the number is that process's */
  /* Sets up the sending side of the pair: all of tx but life and by, with no SPX_TX_NEW left. An
   * MPI error code: SPX_TX_NEW stays, and it may be called again. ring < 0: a channel, to be
   * widened; else it is as wide as it can be. */
  int (*open)(uint32_t peer);
  void (*listen)(
      /* the receiving side: base, epoch, seq, proc, chan; that there is no memory is fatal */
      uint32_t peer);
  /* Room for a record of bytes where spx_tx_room sees none, or NULL: then there may be some when
   * chan->tail has changed. Nothing is taken before the commit. bytes: a quarter of a ring at most
   * with ring >= 0 (beyond memory SPX_NET_EAGER_MAX and a header), a line with ring < 0; longer
   * ones may never find room. */
  spx_rec *(*reserve)(spx_tx *tx, uint32_t bytes);
  /* a larger buffer, while tx->ring < 0; false: none now. NULL: open leaves ring >= 0 */
  bool (*widen)(spx_tx *tx);
  void (*close)(spx_tx *tx); /* nothing more is sent; also twice. NULL: that is all the same */
  /* The buffer of r, a stream, is not read any more: its owner may write to it, or unmap it, at
   * once. What was announced of it and not sent is no message's. NULL: nothing is read outside of
   * spx_carried. */
  void (*recall)(spx_tx *tx, const spx_request *r);
  /* Of a transport that reaches processes beyond this host's memory (spx_network): */
  /* reads and writes what can be read and written now; the number of things that moved */
  int (*poll)(void);
  /* 1: records will be written, several to a process perhaps, which may wait; -1: with the last one
   * they go, in order, by one system call for each process. gather: only of jobs whose messages are
   * relayed; together: of all jobs. */
  void (*gather)(int change);
  void (*together)(int change);
} spx_transport;
SPX_HIDDEN extern const spx_transport spx_shm, spx_tcp;
/* The one that reaches the processes beyond this host's memory, between its attach and its detach;
 * NULL: there are no such processes. */
SPX_HIDDEN extern const spx_transport *spx_network;

/* ---- pair.c: both sides of a pair, and what waits for room ---- */
/* The services of the layer of sends and receives (get.c): a transport calls them, and handles no
 * message. */
typedef struct {
  /* writes a send whose turn it is, or completes it; false: no room now */
  bool (*send)(spx_request *r);
  /* of a stream, as much as there is room for; true: all */
  bool (*more)(spx_tx *tx, spx_request *r, int *moved);
  /* all of it has been, and the pair has forgotten it */
  void (*written)(spx_request *r);
  /* the byte up to which a stream may flow now */
  uint64_t (*end)(const spx_request *r);
  /* Fills and publishes a DATA record: n bytes of a stream from at on. */
  void (*data)(spx_tx *tx, spx_rec *rec, const spx_request *r, uint64_t at, uint32_t n);
  spx_request *(*sink)(uint32_t index,
                       /* the receive with this descriptor, if a stream comes for it, or NULL */
                       uint32_t gen);
  void (*came)(spx_request *r, uint64_t n); /* n more bytes of its stream are in its buffer */
} spx_carried;
SPX_HIDDEN extern const spx_carried spx_messages, *spx_carries;

/* Where the bytes of a long message lie when that is no buffer (SPX_RF_PASS): r->priv begins with
 * the address of this. */
typedef struct {
  /* The address of byte at; *n, at most as much as it was: so many bytes are contiguous from
   * there. */
  char *(*at)(const spx_request *r, uint64_t at, uint64_t *n);
  uint64_t (*there)(const spx_request *r); /* so many bytes of the message have come */
  bool (*asked)(spx_request *r,
                /* its receiver requests it; true: it was notified that there is none */
                const spx_rec_cts *cts);
} spx_bulk;
static inline const spx_bulk *spx_bulk_of(const spx_request *r)
{
  return *(const spx_bulk *const *)r->priv;
}
/* Copies bytes of the message out of there, and to there. */
SPX_HIDDEN void spx_bulk_load(const spx_request *r, uint64_t at, uint64_t n, void *to);
SPX_HIDDEN void spx_bulk_store(const spx_request *r, uint64_t at, uint64_t n, const void *from);

/* transports: NULL at the end; a peer has the first one that reaches it. An errno. */
SPX_HIDDEN int spx_pairs_attach(const spx_transport *const *transports,
                                const spx_carried *messages);
SPX_HIDDEN void spx_pairs_detach(void);
SPX_HIDDEN int spx_tx_init(uint32_t peer); /* MPI error code: memory of its transport */
SPX_HIDDEN void spx_rx_init(uint32_t peer);
/* Writes a record now or queues it; payload is copied. */
SPX_HIDDEN void spx_tx_put(uint32_t peer, spx_rec_kind kind, spx_rec_words as, const void *payload,
                           uint32_t len);
/* Writes a record now, before what waits in the pair; false: there is no room. */
SPX_HIDDEN bool spx_tx_write(uint32_t peer, spx_rec_kind kind, spx_rec_words as,
                             const void *payload, uint32_t len);
/* The same with a payload of two parts. */
SPX_HIDDEN void spx_tx_put_two(uint32_t peer, spx_rec_kind kind, spx_rec_words as, const void *a,
                               uint32_t a_len, const void *b, uint32_t b_len);
SPX_HIDDEN int spx_tx_queue_request(uint32_t peer, spx_request *r);
/* Sends what waits; the number of things that moved. */
SPX_HIDDEN int spx_tx_drain(void);
SPX_HIDDEN bool spx_tx_waiting(void); /* something waits for room */
SPX_HIDDEN void spx_tx_stream(uint32_t peer, spx_request *r);
/* Takes r out of the queues of its pair: 1 when it was there. */
SPX_HIDDEN int spx_tx_unqueue(uint32_t peer, spx_request *r);
/* the first send that waits for room, of which nothing is on its way; or NULL */
SPX_HIDDEN spx_request *spx_tx_queued(uint32_t peer);
/* The pair's receiver is dead: forgets what waits (requests are completed by the caller). */
SPX_HIDDEN void spx_tx_kill(uint32_t peer);

/* As far as short records go in a buffer of size bytes while the receiver keeps up: what is used
 * again is still in a first-level cache. */
static inline uint32_t spx_tx_near(uint32_t size)
{
  return size > SPX_RING_NEAR ? SPX_RING_NEAR : size;
}

/* Room for a record of bytes, or NULL. The record is at the returned place; fill it and commit. */
static inline spx_rec *spx_tx_room(spx_tx *tx, uint32_t bytes)
{
  if (SPX_LIKELY(tx->pos + bytes <= tx->near && tx->head + bytes + SPX_LINE - tx->tail <= tx->size))
    return (spx_rec *)(tx->base + tx->pos);
  return tx->by->reserve(tx, bytes);
}

/* Writes the header but for the first word. */
static inline void spx_tx_fill(spx_tx *tx, spx_rec *rec, spx_rec_words as, uint32_t len)
{
  rec->as = as;
  rec->seq = tx->seq++;
  rec->len = len;
}

/* A piece, of what may be `left` bytes at most or, if some pieces are here already, exactly. */
static inline bool spx_piece_fits(const spx_rec *rec, uint32_t left, bool goes_on)
{
  uint32_t more = (uint32_t)rec->as.piece.more;
  bool fits = rec->as.piece.more >= 0 && rec->len <= left && more <= left - rec->len;
  return fits && (!goes_on || rec->len + more == left);
}

/* Publishes the record at rec, of which everything but the first word has been written. */
static inline void spx_tx_commit(spx_tx *tx, spx_rec *rec, uint32_t bytes, spx_rec_kind kind)
{
  uint32_t next = tx->pos + bytes;
  if (next == tx->size) next = 0, tx->near = spx_tx_near(tx->size);
  __atomic_store_n((uint64_t *)(tx->base + next), 0, __ATOMIC_RELAXED);
  __atomic_store_n((uint64_t *)rec,
                   (uint64_t)bytes | (uint64_t)kind << 32 | (uint64_t)tx->epoch << 48,
                   __ATOMIC_RELEASE);
  tx->pos = next;
  tx->head += bytes;
  __atomic_store_n(tx->dirty, 1, __ATOMIC_RELEASE);
}
#endif
