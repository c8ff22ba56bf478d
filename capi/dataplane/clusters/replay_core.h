/* replay_core.h - messages that outlive the process that received them: the treatment of each
 * message by a participant of transparent takeover (docs/systems.md). It decides and keeps;
 * sockets, rings, matching and memory files are its caller's (replay.c), and a simulation's
 * (test/replay_sim.c).
 *
 * Participants are the ranks of all clusters and the I/O processes (IOPs) of a system, by number;
 * the process of a participant may change. Promises:
 *
 *   1. A sender keeps a message until it is accepted; when another process takes its receiver's
 *   place, all messages not accepted are sent again.
 *   2. A message is accepted once: each has a number, by which copies are recognised (streams,
 *   below).
 *   3. A participant with a message log writes a message there before its program can see it,
 *   together with the call of the program in which it came; before a message leaves, the message
 *   log holds in which call that was. The successor of the participant makes the same calls, from
 *   the last commit on, and is given the same messages in the same calls. It therefore sends the
 *   same messages with the same numbers again, which are not accepted twice.
 *   4. A commit puts the state into the message log: numbers, kept messages, messages that came and
 *   were not received, and memory of the program. It is valid from one store on.
 *   5. A message from a participant to an IOP is kept until all receivers have accepted it that the
 *   IOP forwarded it to. When the IOP dies it goes by another one.
 *   6. Messages of a participant to IOPs in one lane are accepted in order by each receiver, also
 *   when IOPs die and return: as long as a message of a lane is kept for one IOP, what follows goes
 *   there, too; and when that one dies all of it goes by the same other one.
 *   7. An IOP may choose the receiver of a message itself. Then it claims the message for that
 *   participant first: the sender, which keeps it, notes the receiver, answers, and attaches the
 *   note to it from then on. Of two IOPs that have it one after another, or at once since the
 *   sender was taken over, the first claim counts, also for the other. No part of it leaves an IOP
 *   before.
 *
 * Streams number messages: those from one participant to another (stream = the sender), and those
 * that a participant sends to IOPs, or an IOP to other participants of its own accord (stream = the
 * sender | SPX_LEAVES), which keep their numbers on their way, whichever IOP they go by. The first
 * arrive in order; of the second a receiver gets a part, in any order. A process that takes a
 * participant's place without its message log begins anew with both: it has another life, which is
 * sent beside the numbers. A system may get more participants, with the next numbers, while it runs
 * (spx_core_grow): messages from an unknown one must wait until it is known.
 *
 * A message may be announced: then a word of it is kept, numbered and accepted, and its bytes stay
 * with its sender, or with an IOP that forwards them while they arrive. It counts as accepted when
 * its receiver confirms that it has them (received). Until then the word may arrive again, from
 * another IOP, with the present place of the bytes. Where participants have message logs nothing is
 * announced.
 *
 * A message log is memory that outlives the process: a head, and three areas. Area 0 is what came
 * before the first commit, and stays: the successor goes through it again, sending nothing. The
 * others are used in turn: an image of the state, and what came since. */
#ifndef SPX_REPLAY_CORE_H
#define SPX_REPLAY_CORE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Of the number of a stream. */
enum { SPX_LEAVES_BIT = 31 };
#define SPX_LEAVES (1u << SPX_LEAVES_BIT)

/* Precedes a message, on its way and in a message log. */
typedef struct spx_frame_head {
  uint64_t ctx;
  uint64_t n;     /* number in its stream, from 1 */
  uint64_t done;  /* a stream to IOPs: all up to this number have been accepted where they went */
  uint64_t bytes; /* of the message */
  int32_t tag, src;
  uint32_t from; /* the participant that has sent it on this part of its way */
  uint32_t stream;
  uint32_t sub;  /* of several messages that an IOP has made of one: which */
  uint32_t life; /* of the stream's participant: which of its processes began it. Not 0 */
  /* 1: the message stays with the sender of this, and is fetched there: the data that follow
   * describe how */
  uint32_t announced;
  /* of an announced message: how often it was sent. The last one has the valid place: words of I/O
   * processes that have died since arrive late */
  uint32_t turn;
  uint32_t given;   /* 1 + the participant that the sender has noted it is given to; 0: none */
  uint32_t process; /* 1 + the serial number of the process that sends it on this part of its way */
} spx_frame_head;

/* Reports that a message was accepted. */
typedef struct spx_frame_ack {
  uint64_t n;
  uint32_t stream, sub, life;
  /* of the first in a record of acknowledgements or claims: as in a message's head */
  uint32_t process;
} spx_frame_ack;

/* From an IOP: it gives a message to a participant; in the answer: the participant that the message
 * is given to. */
typedef struct spx_frame_claim {
  spx_frame_ack id;
  uint32_t token; /* the IOP's */
  uint32_t before,
      /* 1 + the participant; in a claim: the receiver that the IOP has found in it, 0: none. In an
       * answer SPX_DONE: it was accepted, by way of another IOP */
      to;
  uint32_t unused;
} spx_frame_claim;

#define SPX_DONE UINT32_MAX

typedef struct spx_went { /* to a participant went so many messages that were made of one */
  struct spx_went *next;
  uint32_t to, count;
} spx_went;

/* On an IOP: a message that it has received, until its sender need not keep it. Elsewhere: one that
 * was announced, until it is received. */
typedef struct spx_passed {
  struct spx_passed *next, **at; /* at: what points to it */
  struct spx_passed *chain;      /* chain of those whose tokens have the same place */
  spx_frame_ack id;
  uint32_t token; /* the program names it by this, and what it sends is made of it */
  /* messages that were made of it, and those of them that are not accepted yet */
  uint32_t from, sends, left;
  uint32_t turn;
  spx_went went; /* the first of a list */
  /* as in the last claim; given: as its sender has noted, if there is none */
  uint32_t given, before;
  uint32_t claims; /* that are not answered */
  /* in this call, or before, it was found that something made of it was not accepted */
  uint32_t failed;
  bool over;    /* the program has requested another one since */
  bool unknown; /* the last claim was answered by a participant that is not known yet */
  bool due;     /* it was given to a participant, and not sent there yet */
  bool done;    /* it was accepted by way of another IOP: no part of it leaves */
} spx_passed;

typedef struct spx_kept { /* a message that was sent, and is not accepted yet */
  struct spx_kept *next;
  /* busy: uses of its memory by the caller, which returns each by spx_core_unbusy */
  uint32_t to, busy;
  bool gone; /* accepted: freed when not in use */
  /* it was sent; else its source message is claimed, or an earlier one of the same stream */
  bool out;
  uint32_t lane;  /* of one to an IOP: those of a lane keep their order */
  spx_passed *of; /* on an IOP: what it was made of */
  void *waits;    /* the caller's: notified when it is kept no more (settled); NULL: none */
  spx_frame_head head;
  uint8_t data[];
} spx_kept;

/* a message that has come, and is not accepted yet; or one of a message log */
typedef struct spx_came {
  struct spx_came *next;
  uint32_t call;
  spx_frame_head head;
  const uint8_t *data; /* behind this, or in the message log */
} spx_came;

/* ---- the message log ---- */
/* from there, by standby: it has it */
enum { SPX_MSGLOG_AREAS = 3, SPX_MSGLOG_HEAD = 4096, SPX_MSGLOG_MARKS = 2048 };
typedef struct spx_msglog {
  uint64_t magic, area_bytes;
  uint64_t life;    /* of the participant's streams, whichever process continues them */
  uint64_t commits; /* the last one is in area 1 + commits % 2 */
  struct {
    uint64_t image, end; /* bytes of the image, and of it with what came since */
    /* the last call in which something was sent; above that (SPX_CALLS) what calls led there */
    uint64_t reached;
  } area[SPX_MSGLOG_AREAS];
} spx_msglog;
enum { SPX_CALLS = 32 }; /* one store updates both, whenever the process dies */
#define SPX_MSGLOG_MAGIC 0x7370782d76617533ull

/* Services of the caller for the core. room: makes bytes from offset at of the message log usable;
 * false: there is no memory. */
typedef struct spx_core_io {
  void (*transmit)(void *arg, spx_kept *m);
  void (*acknowledge)(void *arg, uint32_t participant, const spx_frame_ack *acks, uint32_t n);
  /* Claims, of an IOP; else answers to them. */
  void (*claim)(void *arg, uint32_t participant, const spx_frame_claim *claims, uint32_t n);
  /* number: of what the program may send on, on an IOP; else the message's. token: of one that is
   * announced, for spx_core_received. */
  bool (*deliver)(void *arg, const spx_frame_head *head, uint32_t number, uint32_t token,
                  const uint8_t *data);
  /* An announced message that is not received yet has arrived again. NULL: nothing is announced
   * here. */
  void (*again)(void *arg, const spx_frame_head *head, uint32_t token, const uint8_t *data);
  void (*settled)(void *arg, void *waits,
                  bool accepted); /* of a message that is waited for; not accepted: it is lost */
  bool (*room)(void *arg, uint64_t at, uint64_t bytes);
  void (*failed)(void *arg, const char *why); /* something that cannot be: does not return */
  void *arg;
} spx_core_io;

typedef enum {
  SPX_CORE_LIVE,
  SPX_CORE_REPLAY,  /* calls are made again: what comes newly waits */
  SPX_CORE_PRELUDE, /* the same, those before the first commit, of which nothing is left to send */
} spx_core_mode;

typedef struct spx_seen {  /* numbers of a stream that were accepted: all up to low, and these */
  struct spx_seen *others; /* the same of other lives */
  uint64_t low;
  uint32_t life; /* 0: nothing has come yet */
  uint32_t count, room;
  struct spx_number {
    uint64_t n;
    uint32_t sub;
  } * list;
} spx_seen;

/* message n of this participant's stream to IOPs is given to a participant: 1 + its number */
typedef struct spx_noted {
  struct spx_noted *next;
  uint64_t n;
  uint32_t given;
} spx_noted;

typedef struct spx_asked_early {
  struct spx_asked_early *next;
  uint32_t from;
  spx_frame_claim claim;
} spx_asked_early;

enum { SPX_TOKENS = 1024 };

typedef struct spx_core {
  spx_core_io io;
  uint32_t participants, me, life;
  bool relay;         /* this participant is an IOP */
  spx_msglog *msglog; /* NULL: it has none */
  spx_core_mode mode;
  uint32_t call;    /* of the program since the last commit */
  uint32_t calls;   /* of which functions those were, in their order */
  uint64_t version; /* of the log: each change of it counts, from 1 */
  bool sparing,
      /* sparing: calls that only send are not noted; looked: some other call was made since the
         last that was noted */
      looked;
  spx_seen *seen[2]; /* by participant: of its streams to participants, and of those to IOPs */
  uint64_t *next;    /* by participant: number of the last message to it */
  uint64_t leaving;  /* the same of those to IOPs */
  /* of those: all up to this one have been accepted where they went, as last looked */
  uint64_t done;
  /* of those: up to this one they may be kept for another IOP than would be chosen now */
  uint64_t unsettled;
  spx_kept **first, **last; /* by participant: kept for it */
  uint64_t kept_bytes;
  uint64_t lost,
      /* messages that were kept for participants that have left, and for which there was no other
         way */
      lost_bytes;
  /* something that an IOP sent on was not accepted, since it last waited for another message */
  bool failing;
  uint32_t tokens;                   /* given out, of what has passed */
  spx_came *ready, **ready_last;     /* arrived, in order */
  uint64_t waiting, waiting_bytes;   /* of those */
  spx_came *logged, **logged_last;   /* of the message log: to be delivered again */
  spx_came *notes, **notes_last;     /* of the message log: spx_core_note */
  spx_passed *passed, **passed_last; /* the program may make more of these */
  spx_passed *over;                  /* the program will not use it */
  spx_passed *by_token[SPX_TOKENS];
  uint32_t claiming;   /* of those: with claims that are not answered */
  uint32_t last_other; /* the last call that did not request a message */
  struct {
    spx_frame_ack *list;
    uint32_t count, room;
    spx_frame_claim *claims; /* and of an IOP's sender, or of an IOP: claims, or answers */
    uint32_t nclaims, claims_room;
  } * acks;               /* by participant: not sent yet */
  uint32_t owed;          /* participants with such */
  spx_noted *noted;       /* claims on messages that are about to be sent again */
  spx_asked_early *early; /* claims that arrived before this participant had its kept messages */
} spx_core;

/* No memory: false. message log: NULL or with a filled-in head (spx_msglog_format), or that of the
 * participant that this process takes the place of: then it begins with that one's calls. */
/* life: not 0, and another one than that of any process which was this participant before. With a
 * message log its own counts. */
bool spx_core_begin(spx_core *c, const spx_core_io *io, uint32_t participants, uint32_t me,
                    uint32_t life, bool relay, spx_msglog *msglog);
/* There are more participants, the former ones as before. false: no memory, and all is as it was. A
 * message log does not grow: no participant may have one. */
bool spx_core_grow(spx_core *c, uint32_t participants);
/* Which IOPs are chosen has changed: what follows something of its lane goes where that is kept. */
void spx_core_unsettle(spx_core *c);
void spx_core_end(spx_core *c);
void spx_msglog_format(spx_msglog *v, uint64_t area_bytes, uint32_t life);

/* Other data that the successor of the participant needs, from before the first commit: it finds
 * these in c->notes. */
void spx_core_note(spx_core *c, const void *data, uint64_t bytes);

/* The program makes a call, of function fn: delivers what came in it before. sends: the call does
 * the same whatever has arrived by then. A successor fails if it does not make its predecessor's
 * calls, up to the last in which that one has sent something: what it sends from then on would not
 * be what follows. */
void spx_core_enter(spx_core *c, uint32_t fn, bool sends);
/* Something that has come may be delivered now, in the middle of a call (inside), or at its
 * beginning. */
bool spx_core_may_accept(const spx_core *c, bool inside);
/* Delivers the next message that has come and was not accepted yet; false: there is none, or no
 * memory. */
bool spx_core_accept(spx_core *c);
/* A message has come; all of a process come in the order in which it has sent them. false: no
 * memory. */
bool spx_core_arrived(spx_core *c, const spx_frame_head *head, const uint8_t *data);
void spx_core_acked(spx_core *c, uint32_t from, const spx_frame_ack *acks, uint32_t n);
void spx_core_tell(spx_core *c); /* sends acknowledgements and claims */
/* On an IOP: its claims were answered; elsewhere: IOPs claim messages of this participant. */
void spx_core_claimed(spx_core *c, uint32_t from, const spx_frame_claim *claims, uint32_t n);
/* On an IOP: what is made of a message goes to that participant, and to no other. Elsewhere, and of
 * what was done with, it does nothing. */
void spx_core_give(spx_core *c, uint32_t token, uint32_t participant);
/* On an IOP: the number of a message in the stream of its sender (0: it is none, or done with), and
 * 1 + the participant that it is given to (0: none). */
uint64_t spx_core_number(const spx_core *c, uint32_t token, uint32_t *given);
/* On an IOP: that participant answers no claims any more, nor sends again what it has sent. */
void spx_core_silent(spx_core *c, uint32_t participant);
/* The bytes of one that was announced are here; or (not sent) it was never sent after all, or is
 * wanted no more. */
void spx_core_received(spx_core *c, uint32_t token, bool sent);

/* A new message of so many bytes to a participant, to be filled in and sent; NULL: no memory.
 * leaving: to an IOP, in a lane, which may lead it to another one. of: on an IOP, the number of the
 * message that it was made of, as it was delivered; else, or of one that it has done with, it is of
 * its own accord. */
spx_kept *spx_core_message(spx_core *c, uint32_t to, bool leaving, uint32_t lane, uint64_t ctx,
                           int32_t tag, int32_t src, uint64_t bytes, uint32_t of);
void spx_core_send(spx_core *c, spx_kept *m);
void spx_core_unbusy(spx_core *c, spx_kept *m);
/* The message that is waited for by this was not sent after all: it is kept no more, and settled is
 * not called. */
void spx_core_withdraw(spx_core *c, const void *waits);
/* The same is kept with its bytes from now on, not announced: to be filled in. It is waited for no
 * more. NULL: no memory, or it is not kept. */
spx_kept *spx_core_copied(spx_core *c, const void *waits, uint64_t bytes);
/* Another process is the participant now: it gets all that is kept for it. */
void spx_core_replaced(spx_core *c, uint32_t participant);
/* A participant does not run: waiting sends of messages kept for it that may continue, since the
 * message is here, are notified. Returns the number of those. */
int spx_core_excuse(spx_core *c, uint32_t participant, bool (*may)(const void *waits));
/* A participant accepts nothing more, and has no successor. */
void spx_core_left(spx_core *c, uint32_t participant);
/* An IOP has died: what is kept for it goes by another one (UINT32_MAX: there is none now), what is
 * of one lane by the same. */
void spx_core_reroute(spx_core *c, uint32_t participant,
                      uint32_t (*choose)(void *arg, const spx_kept *m), void *arg);
/* On an IOP: the program makes a call that does not request a message: it may see what has
 * failed. */
void spx_core_other(spx_core *c);
/* On an IOP: the program has requested another message. The messages received before that it may
 * still use: those not forwarded yet, and those that failed without the program having made a call
 * that shows it; all but those that failed, since the program is blocked until the next message,
 * and the sender of that may wait for these to be acknowledged; none. */
typedef enum { SPX_NEEDS_UNSEEN, SPX_NEEDS_ALL_BUT_FAILED, SPX_NEEDS_NOTHING } spx_core_needs;
void spx_core_asked(spx_core *c, spx_core_needs needs);
/* Nothing is kept or to be sent; with a message log, nothing waits to be delivered: without one,
 * its sender keeps it. */
bool spx_core_idle(const spx_core *c);

/* ---- commits ---- */
/* Puts together an image: begin, any number of put, end, after which the commit counts. false: no
 * room. */
typedef struct spx_image {
  spx_core *c;
  uint32_t area;
  uint64_t at;
  bool failed;
} spx_image;
bool spx_core_commit_begin(spx_core *c, spx_image *w);
void spx_image_put(spx_image *w, const void *data, uint64_t n);
bool spx_core_commit_end(spx_image *w);
/* In the prelude: gives this process the state of the last commit; what follows in the image is
 * read by take. */
typedef struct spx_image_reader {
  const uint8_t *p, *end;
} spx_image_reader;
bool spx_core_restore_begin(spx_core *c, spx_image_reader *r);
const void *spx_image_take(spx_image_reader *r, uint64_t n); /* NULL: it is shorter */
/* ... and the calls since then are made again. */
void spx_core_restore_end(spx_core *c);
#endif
