/* replay.h - transparent takeover in the data plane: messages between the participants of a system
 * travel as frames (replay_core.h), from process to process in a context of their own, and enter
 * matching as if their sender had sent them here, at moments that can be repeated.
 * docs/systems.md. */
#ifndef SPX_REPLAY_H
#define SPX_REPLAY_H
#include "origin.h"
#include "record.h"
#include "replay_core.h"
#include "spx.h"

/* This process takes part: what is sent on communicators with SPX_C_REPLAY goes this way. */
SPX_HIDDEN extern bool spx_replay_on;
SPX_HIDDEN extern spx_core spx_replay_core;

#define SPX_NO_TAG (-1)

typedef struct spx_replay_setup {
  uint32_t participants;
  uint32_t me;           /* this process's */
  const uint32_t *procs; /* by participant: its process */
  const bool *heals;     /* by participant: whether a dead process there is replaced */
  /* by participant: 1 + its number among the I/O processes; 0: a rank of a cluster */
  const uint32_t *iop;
  bool whole; /* some rank is taken over transparently: messages are not announced */
  uint64_t ctx;
  spx_comm *wire;           /* all participants, by number, in that context */
  int (*kind)(uint32_t fn); /* of a function: SPX_DOES_* */
  /* the number of an I/O process for a message; -1: there is none. SPX_NO_TAG: not negative if
   * there is one, or will be */
  int (*choose)(int tag);
  /* messages that are to keep their order have the same one */
  uint32_t (*lane)(int iop, int tag);
  /* NULL: what this process receives need not outlive it */
  spx_msglog *msglog;
  bool (*room)(void *arg, uint64_t at, uint64_t bytes); /* of the message log */
} spx_replay_setup;
/* An MPI error code: memory. */
SPX_HIDDEN int spx_replay_begin(const spx_replay_setup *s);
SPX_HIDDEN void spx_replay_end(void);
/* The system has got more participants, the next numbers: s has all of them. ranks gets the
 * processes of the wire, which is given them next; the lock is held. An MPI error code. */
SPX_HIDDEN int spx_replay_grow(const spx_replay_setup *s, uint32_t *ranks);

/* A process is a participant from now on; it gets what is kept for that. */
SPX_HIDDEN void spx_replay_place(uint32_t participant, uint32_t proc);
/* The participant that a process is; UINT32_MAX: none. */
SPX_HIDDEN uint32_t spx_replay_participant(uint32_t proc);
/* The system has changed, and with it perhaps which I/O processes are chosen. */
SPX_HIDDEN void spx_replay_changed(void);
/* The program is notified that there is no way left: messages lost with the last one are counted
 * then (spx_messages_lost). */
SPX_HIDDEN void spx_replay_count_lost(void);
/* There is no way for a message. Of a rank that is taken over transparently that is no error, since
 * repeated calls return as before: it is lost, which is counted, and reported. False: it is an
 * error. */
SPX_HIDDEN bool spx_replay_drops(void);
/* Nothing more is accepted: what comes stays with its senders. */
SPX_HIDDEN void spx_replay_close(void);
/* I/O processes have died since: messages to them go by others. */
SPX_HIDDEN void spx_replay_reroute(void);

/* The send r of a communicator with SPX_C_REPLAY: takes it over, and completes it; false: it is to
 * be sent as any other. */
SPX_HIDDEN bool spx_replay_send(spx_request *r);
/* A round of progress: the number of things that moved. */
SPX_HIDDEN int spx_replay_poll(void);
/* The program has called a function of MPI. */
SPX_HIDDEN void spx_replay_enter(uint32_t fn);
/* Copies of the message log (copies.h): what waited for them goes on its way, the number of those;
 * a commit is to follow, when the copy was sent this version. */
SPX_HIDDEN int spx_replay_release(void);
/* At the end of a blocking collective: what it has sent is on its way, whatever the program does
 * next. */
SPX_HIDDEN void spx_replay_all_out(void);
SPX_HIDDEN void spx_replay_commits(uint64_t last);
/* Whether a dead process of a participant is replaced, from now on. */
SPX_HIDDEN void spx_replay_heals(uint32_t participant, bool heals);
/* Whether no link leads from this process's cluster to that rank: its sends do not wait for it, and
 * it does not wait for the rank. A rank without such a setting may have a link. */
SPX_HIDDEN void spx_replay_apart(uint32_t participant, bool apart);
/* A probe has found nothing (other_way.h). */
SPX_HIDDEN void spx_replay_missed(uint64_t ctx, int src);
/* Something has come that is not delivered yet. */
SPX_HIDDEN bool spx_replay_coming(void);
/* Kept messages that are lost by deaths, not reported yet. */
SPX_HIDDEN extern uint64_t spx_replay_lost;
/* I/O process proc hangs: sends whose messages are kept for it, and copied, are complete; the
 * messages go to it when it continues, or by another one when it has died. Returns the number of
 * those sends. */
SPX_HIDDEN int spx_replay_excuse(uint32_t proc);
/* Whether the process is dead, and is to have a successor. */
SPX_HIDDEN bool spx_replay_awaited(uint32_t proc);
/* On an I/O process, of a message by its token: its number among those of its sender (0: it is not
 * kept, or done with), and the participant that it is given to (UINT32_MAX: none). */
SPX_HIDDEN uint64_t spx_replay_number(uint32_t token, uint32_t *given);
/* Messages made of it go to that process. */
SPX_HIDDEN void spx_replay_give(uint32_t token, uint32_t proc);
/* All that this process has sent has been accepted. */
SPX_HIDDEN bool spx_replay_idle(void);
/* While it is more than 0 nothing is delivered: the library is at work for itself. */
SPX_HIDDEN extern int spx_replay_hold;

/* ---- replay_long.c ---- */
struct spx_unex;
/* The send r, of n bytes, is announced. */
SPX_HIDDEN bool spx_replay_announces(const spx_request *r, uint64_t n);
/* The send goes as m, whose bytes are its word. */
SPX_HIDDEN void spx_replay_word(spx_request *r, spx_kept *m);
/* Its word is on its way to a process. */
SPX_HIDDEN void spx_replay_word_goes(spx_kept *m, uint32_t peer);
SPX_HIDDEN void spx_replay_detach(spx_request *r);
SPX_HIDDEN void spx_replay_asked(spx_request *r, const spx_rec_cts *cts);
/* All of the message is at the process that requested it. */
SPX_HIDDEN void spx_replay_fetched(spx_request *r);
SPX_HIDDEN void spx_replay_settled(spx_request *r, bool accepted);
/* The message was not sent after all, or is not one of these. */
SPX_HIDDEN void spx_replay_withdraw(spx_request *r);
/* Whether the data are a valid word, if their head marks them as one. */
SPX_HIDDEN bool spx_replay_sound(const spx_frame_head *h, const uint8_t *data);
/* A word enters matching, or arrives again. false: no memory. */
SPX_HIDDEN bool spx_replay_announced(const spx_frame_head *h, uint32_t peer, uint32_t number,
                                     uint32_t token, const uint8_t *data);
SPX_HIDDEN void spx_replay_again(const spx_frame_head *h, uint32_t peer, uint32_t token,
                                 const uint8_t *data);
/* The receive r has matched e, which is a word; e is dropped; r ends, or the process that has its
 * bytes has: true when it does not end by that. */
SPX_HIDDEN void spx_replay_taken(const struct spx_unex *e, spx_request *r);
SPX_HIDDEN void spx_replay_dropped(const struct spx_unex *e);
SPX_HIDDEN bool spx_replay_ends(spx_request *r, int error);
SPX_HIDDEN bool spx_replay_broken(spx_request *r);
/* The message that r receives was never sent. */
SPX_HIDDEN void spx_replay_unsent(const spx_request *r);
SPX_HIDDEN void spx_replay_revoked(const spx_comm *c);
/* Drops words whose sender is gone, with the process that had forwarded them. */
SPX_HIDDEN int spx_replay_look_for_lost(void);
SPX_HIDDEN bool spx_replay_has_words(void);
SPX_HIDDEN void spx_replay_words_end(void);
/* The process is an I/O process; the process is gone that has begun with this life as a
 * participant. */
SPX_HIDDEN bool spx_replay_is_relay(uint32_t proc);
SPX_HIDDEN bool spx_replay_is_gone(uint32_t participant, uint32_t life);
/* deliver.c: the same for a receive, and without one. NULL: no memory. */
SPX_HIDDEN void spx_fetch_frame(spx_request *r, uint32_t peer, const spx_frame_head *h,
                                uint32_t number, const spx_rec_rts *rts);
SPX_HIDDEN struct spx_unex *spx_keep_frame(uint32_t peer, const spx_frame_head *h, uint32_t number,
                                           const spx_rec_rts *rts);

/* deliver.c: a message enters matching. number: what spx_origin_number is when it is received.
 * false: no memory. */
SPX_HIDDEN bool spx_deliver_frame(uint32_t peer, const spx_frame_head *h, uint32_t number,
                                  const uint8_t *data);

/* This kind of message travels so. The engine's messages among I/O processes do not: they have no
 * log, and a death in the middle of making a communicator is an error there. */
static inline bool spx_replayed(const spx_comm *c, uint32_t ctx_kind)
{
  return c->flags & SPX_C_REPLAY && (ctx_kind == SPX_CTX_P2P || ctx_kind == SPX_CTX_COLL ||
                                     (ctx_kind == SPX_CTX_ENGINE && !spx_io_process));
}
#endif
