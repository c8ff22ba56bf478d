/* replay_long.c - long messages that are kept: announced, and fetched from where they are.
 *
 * The word of one travels as any kept message does (replay_core.h); its bytes stay in the sender's
 * buffer, whose send is complete when the receiver has accepted the message. The receiver fetches
 * them as those of any announced message (get.c), and an I/O process may forward them while they
 * arrive (pass.c):
 *
 *   sender --- word, kept ---> I/O process --- word, kept ---> receiver
 *          <-- CTS, part ---               <-- CTS ---
 *          --- DATA -------->     room     --- DATA --------->
 *          <-- accepted -----              <-- accepted ------
 *
 * If the I/O process dies, the sender's word goes by another one, or by its replacement, and the
 * receive that has begun begins again with that. If the receiver dies, its successor gets the word
 * from the I/O process, which requests all of it from the sender again. If the sender dies, the
 * message was never sent.
 *
 * An I/O process whose program receives a message itself may need other messages before it sends
 * something that is made of it: so the sender copies it then, as far as the limit on kept bytes
 * allows, and continues. */
#include <stdlib.h>
#include <string.h>
#include "dp.h"
#include "pass.h"
#include "replay.h"

#define ANNOUNCED_FROM                                                                             \
  (256u << 10) /* as relays pass on (cluster/relay/queue.c); less is copied, and complete at once  \
                */

/* ---- of the sender ---- */

bool spx_replay_announces(const spx_request *r, uint64_t n)
{
  return r->flags & SPX_RF_PASS || (n >= ANNOUNCED_FROM && r->mode != SPX_M_BUFFERED);
}

/* Renews the descriptor of its bytes: requests that use the old one are not served. */
static void name_anew(spx_request *r, spx_kept *m)
{
  spx_rec_rts rts;
  spx_id_drop(r);
  if (!spx_announce(r, (uint64_t)r->bytes, &rts))
    spx_fatal(MPI_ERR_NO_MEM, "no memory for the name of a message");
  memcpy(m->data, &rts, sizeof rts);
  r->state = SPX_S_SENT;
}

void spx_replay_word_goes(spx_kept *m, uint32_t peer)
{
  spx_request *r = m->waits;
  spx_replay_detach(r);
  r->peer = peer;
  if (r->flags & SPX_RF_PASS) spx_pass_again(r);
  name_anew(r, m);
}

/* Its receiver is dead, or requests it again: none of it is on its way. */
void spx_replay_detach(spx_request *r)
{
  if (r->state == SPX_S_STREAM) spx_tx_unqueue(r->peer, r);
  r->state = SPX_S_KEPT;
  r->out.at = 0;
}

/* Its receiver, or the successor of that, requests all of it again. */
void spx_replay_asked(spx_request *r, const spx_rec_cts *cts)
{
  bool same = spx_is_asked_by(r, cts);
  if (same || (r->state != SPX_S_STREAM && r->state != SPX_S_PAUSED && r->state != SPX_S_KEPT))
    return;
  spx_replay_detach(r);
  if (r->flags & SPX_RF_PASS) spx_pass_again(r);
  r->state = SPX_S_SENT;
}

void spx_replay_word(spx_request *r, spx_kept *m)
{
  m->head.announced = 1;
  m->waits = r;
  r->out.number = (uint32_t)m->head.n;
  r->flags |= SPX_RF_KEPT;
  r->state = SPX_S_KEPT;
  spx_stat.announced++;
  r->id_slot = 0;
  r->out.to = (spx_name){0};
  spx_core_send(&spx_replay_core, m);
}

void spx_replay_fetched(spx_request *r)
{
  uint64_t n = (uint64_t)r->bytes;
  r->state = SPX_S_KEPT;
  bool handed_on = r->flags & (SPX_RF_PARTS | SPX_RF_PASS) || !spx_replay_is_relay(r->peer);
  if (handed_on || r->mode == SPX_M_SYNC || spx_replay_core.kept_bytes + n > spx_set.kept_max)
    return;
  spx_kept *m = spx_core_copied(&spx_replay_core, r, n);
  if (!m) return;
  spx_pack(r->buf, r->count, r->type, 0, (int64_t)n, m->data);
  spx_replay_settled(r, true);
}

void spx_replay_settled(spx_request *r, bool accepted)
{
  if (r->flags & SPX_RF_KEPT) {
    spx_replay_detach(r);
    spx_id_drop(r);
    r->flags &= ~(uint32_t)SPX_RF_KEPT;
  }
  r->state = SPX_S_EAGER;
  spx_complete(r, accepted ? MPI_SUCCESS : MPIX_ERR_PROC_FAILED);
}

void spx_replay_withdraw(spx_request *r)
{
  if (!(r->flags & SPX_RF_KEPT)) return;
  r->flags &= ~(uint32_t)SPX_RF_KEPT;
  if (spx_replay_on) spx_core_withdraw(&spx_replay_core, r);
}

/* ---- of the receiver ---- */

typedef struct word { /* a message that was announced here, until it is received */
  struct word *next;
  uint32_t token;
  spx_frame_head head;
  spx_unex *e;    /* no receive has matched it yet; */
  spx_request *r; /* ... this one has */
  bool lost;      /* the process that had its bytes for us is dead: its word will arrive again */
} word;
static word *words;

bool spx_replay_has_words(void) { return words != NULL; }

static word *find(const void *which)
{
  word *w = words;
  while (w && w->e != which && w->r != which) w = w->next;
  return w;
}

/* Its bytes are here (sent), or are waited for no more. */
static void forget(word *w, bool sent)
{
  word **at = &words;
  while (*at != w) at = &(*at)->next;
  *at = w->next;
  if (w->e) w->e->word = false;
  if (w->r) w->r->flags &= ~(uint32_t)SPX_RF_WORD;
  if (spx_replay_on) spx_core_received(&spx_replay_core, w->token, sent);
  free(w);
}

void spx_replay_words_end(void)
{
  while (words) forget(words, true);
}

static void bind(word *w, spx_request *r)
{
  w->e = NULL;
  w->r = r;
  w->lost = false;
  r->flags |= SPX_RF_WORD;
}

bool spx_replay_sound(const spx_frame_head *h, const uint8_t *data)
{
  spx_rec_rts rts;
  if (!h->announced) return true;
  if (h->bytes != sizeof rts) return false;
  memcpy(&rts, data, sizeof rts);
  return (rts.bytes & ~SPX_RTS_APART) <= SPX_MESSAGE_MOST;
}

bool spx_replay_announced(const spx_frame_head *h, uint32_t peer, uint32_t number, uint32_t token,
                          const uint8_t *data)
{
  spx_rec_rts rts;
  memcpy(&rts, data, sizeof rts);
  rts.bytes &= ~SPX_RTS_APART;
  word *w = calloc(1, sizeof *w);
  if (!w) return false;
  w->token = token;
  w->head = *h;
  w->next = words;
  words = w;
  spx_request *r = spx_match_posted(h->ctx, h->src, h->tag);
  if (r) {
    bind(w, r);
    spx_fetch_frame(r, peer, h, number, &rts);
    return true;
  }
  w->e = spx_keep_frame(peer, h, number, &rts);
  if (w->e) return true;
  words = w->next;
  free(w);
  return false;
}

void spx_replay_again(const spx_frame_head *h, uint32_t peer, uint32_t token, const uint8_t *data)
{
  word *w = words;
  while (w && w->token != token) w = w->next;
  if (!w) return;
  w->head = *h;
  w->lost = false;
  spx_rec_rts rts;
  memcpy(&rts, data, sizeof rts);
  rts.bytes &= ~SPX_RTS_APART;
  spx_request *r = w->r;
  if (r) {
    spx_asked_forget(r);
    spx_id_drop(r);
    r->state = SPX_S_NONE;
    r->peer = peer;
    spx_fetch(r, peer, &rts);
    return;
  }
  w->e->proc = peer;
  w->e->index = rts.index;
  w->e->gen = rts.gen;
  w->e->addr = rts.addr;
  w->e->type = rts.type;
}

void spx_replay_taken(const spx_unex *e, spx_request *r)
{
  word *w = find(e);
  if (w) bind(w, r);
}

void spx_replay_dropped(const spx_unex *e)
{
  word *w = find(e);
  if (!w) return;
  w->e = NULL;
  forget(w, false);
}

bool spx_replay_ends(spx_request *r, int error)
{
  word *w = find(r);
  r->flags &= ~(uint32_t)SPX_RF_WORD;
  if (!w) return false;
  if (error == MPIX_ERR_PROC_FAILED && spx_replay_on) {
    r->flags |= SPX_RF_WORD;
    return spx_replay_broken(r);
  }
  forget(w, true);
  return false;
}

bool spx_replay_broken(spx_request *r)
{
  word *w = find(r);
  spx_asked_forget(r);
  spx_id_drop(r);
  r->state = SPX_S_NONE;
  if (w && spx_replay_is_relay(r->peer)) {
    w->lost = true;
    return true;
  }
  bool pass = r->flags & SPX_RF_PASS;
  if (w) forget(w, false);
  if (!pass) spx_receive_aborted(r); /* it was never sent */
  return !pass;
}

void spx_replay_unsent(const spx_request *r)
{
  word *w = find(r);
  if (w) forget(w, false);
}

void spx_replay_revoked(const spx_comm *c)
{
  for (word *w = words, *next; w; w = next) {
    next = w->next;
    if (w->lost && w->r && w->r->comm == c) spx_complete(w->r, MPIX_ERR_REVOKED);
  }
}

int spx_replay_look_for_lost(void)
{
  for (word *w = words, *next; w; w = next) {
    next = w->next;
    bool lost = w->lost || (w->e && spx_proc_dead(w->e->proc) && spx_replay_is_relay(w->e->proc));
    /* its first sender */
    if (!lost || !spx_replay_is_gone(w->head.stream & ~SPX_LEAVES, w->head.life)) continue;
    spx_request *r = w->r;
    if (w->e && w->e->held) continue; /* its receive will find that out */
    if (w->e)
      spx_unex_drop(w->e);
    else {
      forget(w, false);
      spx_receive_aborted(r);
    }
    return 1; /* other entries may be gone by that */
  }
  return 0;
}
