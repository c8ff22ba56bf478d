/* net_long.c - long messages over a connection of their pair, without a copy in this process.
 *
 * A LONG record holds how many bytes of a message follow it in the connection's stream, outside of
 * records: a multiple of the line, so that the records behind them are where they would be without.
 * The sender writes them from the user's buffer, behind the records that have to go before and
 * before those that were written meanwhile, all by one system call. The receiver reads them into
 * the buffer of the receive, and what follows into its own.
 *
 * - The last bytes of a message always go in a DATA record: a receive is complete only when that
 * has come. If the send is over before all is written (revoked, or the receiver does not want it
 * any more), zeros take the place of what was announced, and that record is aborted: the receive is
 * never completed by bytes that are not the message's.
 * - If the receive is over, bytes for it are read and dropped.
 * - Only over a connection that is neither being closed nor greeted: bytes through relays are cut
 * into records by net_relay.c. Once begun, the announced bytes belong to the connection's stream as
 * records do: a CLOSE record goes behind them.
 * - Data in short pieces of memory, and memory that the kernel can not reach, are copied: by the
 * sender into DATA records, by the receiver out of the connection's buffer. Each end decides for
 * itself. */
#include <sys/uio.h>
#include "net_conn.h"
#include "pack.h"

#define BOUNCE    (32u << 10)
#define SHORT_RUN 1024 /* mean run in bytes below which a receive is filled by copying */

static uint8_t bounce[BOUNCE];
static const uint8_t zeros[BOUNCE];

/* ---- sending ---- */

static bool may_begin(const spx_conn *c, const spx_request *r)
{
  if (c->fd < 0 || c->closing || c->must_answer) return false;
  return (r->type->flags & SPX_T_CONTIG) || spx_has_long_runs(r);
}

/* The rest of what may flow now, up to a line, as a DATA record behind the bytes that are to be
 * written. False: no room for it now. */
static bool write_end(spx_tx *tx, const spx_request *r, uint64_t at)
{
  uint64_t n = spx_carries->end(r) - at;
  uint32_t bytes = SPX_REC_BYTES(n);
  spx_rec *rec = tx->pos + bytes <= tx->size ? (spx_rec *)(tx->base + tx->pos) : NULL;
  if (!rec) return false;
  spx_carries->data(tx, rec, r, at, (uint32_t)n);
  return true;
}

static bool begin(spx_tx *tx, spx_request *r)
{
  spx_conn *c = tx->conn;
  spx_rec *rec = spx_tx_room(tx, SPX_LINE);
  if (!rec || !may_begin(c, r)) return false; /* making room may have ended the connection */
  uint64_t left = spx_carries->end(r) - r->out.at;
  uint64_t most = SPX_UNLIKELY(r->flags & SPX_RF_FURTHER) ? spx_further_share(c, r, left) : left;
  uint32_t n =
      (uint32_t)(spx_least(spx_least(left - 1, most), SPX_LONG_MOST) / SPX_LINE * SPX_LINE);
  spx_tx_fill(tx, rec, (spx_rec_words){.stream = {n, r->out.to.index, r->out.to.gen}}, 0);
  spx_tx_commit(tx, rec, SPX_LINE, SPX_REC_LONG);
  if (c->burst.may) spx_burst_long(c);
  c->long_out = (spx_long_out){.r = r, .left = n, .at = tx->pos, .to = r->out.at + left};
  c->long_out.ends = left - n <= SPX_LINE && write_end(tx, r, r->out.at + n);
  return true;
}

spx_long_result spx_long_more(spx_tx *tx, spx_request *r)
{
  spx_conn *c = tx->conn;
  uint64_t before = r->out.at;
  /* until its end is reported */
  if (SPX_UNLIKELY(c->over || c->deaf) && !spx_proc_left(c->peer)) return SPX_LONG_WAITS;
  if (SPX_UNLIKELY(r->flags & SPX_RF_FURTHER)) spx_further_give(c, r);
  if (c->long_out.left == 0) {
    uint64_t left = spx_carries->end(r) - r->out.at;
    if (left <= SPX_LINE || left < spx_set.direct_min || !may_begin(c, r)) return SPX_LONG_NOT;
    if (!begin(tx, r)) return c->fd < 0 ? SPX_LONG_NOT : SPX_LONG_WAITS;
  }
  spx_net_push(c);
  return r->out.at > before || c->fd < 0 ? SPX_LONG_MOVED : SPX_LONG_WAITS;
}

void spx_long_recall(spx_tx *tx, const spx_request *r)
{
  spx_conn *c = tx->conn;
  if (c) spx_further_recall(c, r);
  if (!c || c->long_out.r != r) return;
  spx_long_out *o = &c->long_out;
  o->r = NULL;
  if (o->ends) ((spx_rec *)(c->out + o->at))->as.stream.index = UINT32_MAX; /* of no request */
  o->ends = false;
}

int spx_long_source(spx_long_out *o, struct iovec *v, uint64_t *covered)
{
  const spx_request *r = o->r;
  uint64_t n = o->left, at = r ? r->out.at : 0;
  int64_t done = 0;
  if (r && !o->copies && !(r->type->flags & SPX_T_CONTIG)) {
    int runs = spx_iovecs(r->buf, r->count, r->type, (int64_t)at, (int64_t)(at + n), v,
                          SPX_LONG_RUNS, &done);
    *covered = (uint64_t)done;
    if (runs > 0) return runs;
  }
  if (r && r->flags & SPX_RF_PASS) {
    char *from = spx_bulk_of(r)->at(r, at, &n);
    *v = (struct iovec){from, n};
    *covered = n;
    return 1;
  }
  if (r && !o->copies && (r->type->flags & SPX_T_CONTIG)) {
    *v = (struct iovec){(char *)r->buf + at, n};
    *covered = n;
    return 1;
  }
  n = spx_least(n, BOUNCE);
  if (r) spx_pack(r->buf, r->count, r->type, (int64_t)at, (int64_t)(at + n), bounce);
  *v = (struct iovec){r ? bounce : (uint8_t *)(uintptr_t)zeros, n};
  *covered = n;
  return 1;
}

void spx_long_written(spx_long_out *o, uint32_t n)
{
  spx_request *r = o->r;
  SPX_ASSERT(n <= o->left);
  o->left -= n;
  if (!r) return;
  r->out.at += n;
  spx_stat.net_direct += n;
  if (o->left == 0) {
    if (o->ends) r->out.at = o->to;
    o->r = NULL;
  }
}

/* ---- receiving ---- */

/* NULL: it is over, or has less left than was announced, because another process has sent to it. */
static spx_request *receive_of(const spx_long_in *in, uint32_t peer)
{
  spx_request *r = spx_carries->sink(in->index, in->gen);
  return r && r->peer == peer && in->left <= (uint64_t)r->bytes - r->in.at ? r : NULL;
}

bool spx_long_begins(spx_long_in *in, uint32_t peer, const spx_rec *rec)
{
  uint64_t n = rec->as.stream.bytes;
  if (n == 0 || n > SPX_LONG_MOST || n % SPX_LINE) return false;
  *in =
      (spx_long_in){.index = rec->as.stream.index, .gen = rec->as.stream.gen, .left = (uint32_t)n};
  const spx_request *r = spx_carries->sink(in->index, in->gen);
  /* one that gets this name meanwhile is not meant */
  if (!r || r->peer != peer) in->index = UINT32_MAX;
  return !r || r->peer != peer || n <= (uint64_t)r->bytes - r->in.at;
}

int spx_long_target(spx_long_in *in, uint32_t peer, struct iovec *v, uint64_t *covered)
{
  const spx_request *r = in->copies ? NULL : receive_of(in, peer);
  int64_t done = 0;
  *covered = 0;
  if (!r) return 0;
  uint64_t at = r->in.at;
  if (r->flags & SPX_RF_PASS) {
    *covered = in->left;
    char *to = spx_bulk_of(r)->at(r, at, covered);
    *v = (struct iovec){to, *covered};
    return 1;
  }
  if (r->type->flags & SPX_T_CONTIG) {
    *v = (struct iovec){(char *)r->buf + at, in->left};
    *covered = in->left;
    return 1;
  }
  int runs = spx_iovecs(r->buf, r->count, r->type, (int64_t)at, (int64_t)(at + in->left), v,
                        SPX_LONG_RUNS, &done);
  if (runs == 0 || done / runs < SHORT_RUN) return 0;
  *covered = (uint64_t)done;
  return runs;
}

void spx_long_read(spx_long_in *in, uint32_t peer, uint32_t n)
{
  SPX_ASSERT(n <= in->left);
  in->left -= n;
  spx_request *r = receive_of(in, peer);
  if (r) spx_carries->came(r, n);
}

uint32_t spx_long_take(spx_long_in *in, uint32_t peer, const uint8_t *bytes, uint32_t n)
{
  n = (uint32_t)spx_least(n, in->left);
  spx_request *r = n ? receive_of(in, peer) : NULL;
  if (r && r->flags & SPX_RF_PASS)
    spx_bulk_store(r, r->in.at, n, bytes);
  else if (r)
    spx_unpack(r->buf, r->count, r->type, (int64_t)r->in.at, (int64_t)(r->in.at + n), bytes);
  spx_long_read(in, peer, n);
  return n;
}
