/* net_conn.h - what net.c, net_relay.c and net_close.c share: connections, and pairs of processes
 * that have none. The lock is held. */
#ifndef SPX_NET_CONN_H
#define SPX_NET_CONN_H
#include "dp.h"
#include "net_byway.h"
#include "net_long.h"
#include "net_streams.h"

#define SPX_NET_OUT    (256u << 10) /* bytes that wait to be written, or to be acknowledged */
#define SPX_NET_IN     (256u << 10)
#define SPX_NET_KEEP   (32u << 10) /* of a buffer in which little waits, or nothing */
#define SPX_NET_ROUND  512         /* polls between two processes whose buffers are inspected */
#define SPX_NET_NOBODY UINT32_MAX
/* Frames through relays, each counted once more for each SPX_NET_SHORTCUT_BYTES of it, after which
 * a connection is requested. Making and closing one costs about as much as relaying them
 * (docs/connections.md). */
#define SPX_NET_SHORTCUT_AFTER 32
#define SPX_NET_SHORTCUT_BYTES 8192

/* How far a connection is that is being closed: by a CLOSE record of one end and a CLOSED record of
 * the other, each the last of its direction (net_close.c). */
enum {
  SPX_CLOSING_NOT = 0,
  SPX_CLOSING_SAID /* we: CLOSED is to come */,
  SPX_CLOSING_ANSWERED /* the end is to come */
};

/* Short messages in a row (net_burst.c). */
typedef struct {
  bool may;       /* the connection is one within a host */
  bool told;      /* the other end was notified to acknowledge at once */
  bool keeps;     /* the system keeps what is written until what was sent is acknowledged */
  bool prompt;    /* this end was notified to */
  bool heard;     /* something was read since the last write */
  uint8_t level;  /* many short messages in a row, and seldom anything else: high */
  uint64_t wrote; /* cycles, at the end of the last write */
} spx_burst;

/* Long messages that the kernel reads out of the program's memory (net_zero.c). */
#define SPX_ZERO_WRITES 32 /* at a time; a power of two: their numbers count modulo 2^32 */
typedef struct {
  spx_request *r; /* NULL: the kernel has released it */
  uint32_t bytes;
} spx_zero_write;
typedef struct {
  bool may;
  uint32_t first, next; /* writes that the kernel may still read: from first on, below next */
  spx_zero_write writes[SPX_ZERO_WRITES];
} spx_zero;

/* The state of a pair with a process that is reached over the network: a connection, or frames
 * through relays. Both carry the same two streams of bytes, the pair's records; positions in them
 * count modulo 2^32, and continue when the way changes. */
struct spx_conn {
  int fd; /* -1: none */
  uint32_t peer, life;
  bool asked; /* the engine was notified to connect, and there is no connection yet */
  bool full;  /* the socket took less than it was given: epoll reports when it takes more */
  bool over;  /* nothing comes any more */
  /* errno of a write: the other end reads no more; what it has written before is still to be
   * read */
  int deaf;
  bool stalled; /* no memory for a message: nothing is read before it is delivered */
  bool delivering;
  uint32_t at; /* of this process's place in the list */
  /* SPX_NET_OUT: the sending side's records; the part before flushed is written, or acknowledged */
  uint8_t *out;
  uint32_t flushed;
  uint8_t *in; /* SPX_NET_IN: from in_at to in_end was read and not delivered */
  uint32_t in_at, in_end;
  uint32_t out_high,
      /* bytes of the buffers, from their start, that memory was taken for since it was given
       * back */
      in_high;
  uint32_t done;      /* position of out[flushed] */
  uint32_t got;       /* position: all before it has come */
  uint64_t asked_at;  /* ns */
  uint64_t opened_at; /* ns */
  uint64_t used;      /* spx_net.clock at the last use */
  spx_long_out long_out;
  spx_long_in long_in;
  spx_furthers further; /* streams of the pair beside this one */
  spx_burst burst;
  spx_zero zero;
  /* closing */
  uint8_t closing;
  bool must_answer; /* CLOSE has come, and there was no room for the answer */
  bool farewell;    /* CLOSED has come */
  bool told;        /* the engine was notified that the connection ends */
  uint64_t since;   /* ns: of closing */
  uint32_t stop;    /* closing: nothing from this position on goes over the socket */
  /* through relays */
  bool greets; /* each end first sends where it begins: a greeting */
  uint8_t greeting_n;
  uint8_t greeting[16];
  uint32_t again; /* bytes behind the greeting that have arrived before, through relays */
  bool busy;      /* in spx_net.busy */
  bool gathered;  /* in spx_net.gathered */
  bool pumping;
  /* out[sent] is the next byte to go through relays; those before it are under way */
  uint32_t sent;
  uint32_t via; /* the neighbour through which it goes, or SPX_NET_NOBODY */
  /* that have gone through relays since there was a connection, long ones counted more than once */
  uint32_t frames;
  uint32_t owed;      /* bytes that have arrived through relays and were not acknowledged */
  bool refused;       /* notified to send again from got on */
  uint64_t asked_ack; /* ns: when an acknowledgement was last requested */
  bool asking;        /* that request is open */
  uint64_t patience;  /* ns: until the next question */
  uint64_t rode;      /* ns: when one went with what was sent */
  uint64_t used_at[SPX_NET_SHORTCUT_AFTER]; /* spx_net.clock at the last ones of frames */
  uint64_t progress;                        /* ns: when the last one came, or the first byte went */
  uint64_t rewound;                         /* ns */

  /* handed over to the engine (net_hand_over.c) */
  uint32_t handed; /* bytes from out[flushed] on; 0: none */
  uint32_t handed_done;
  int handed_fd;
  struct spx_conn *next_handed;

  /* a by-way (net_byway.c) */
  spx_byway_pair *by;      /* NULL: none */
  uint8_t by_todo;         /* records that are to be written, a bit each */
  bool by_mine, by_theirs; /* the offer of this end was accepted, or that of the other end */
  bool by_in, by_out;      /* what comes, and what goes, does so over it */
  bool by_over;            /* the socket was closed by the other end */
  uint8_t by_looks;
  uint32_t by_left; /* bytes that go over the socket before */

  bool quiet; /* little was in the buffers since look_round was here */

  uint8_t dirty; /* the sending side sets this, and it is not read */
  spx_chan out_chan, in_chan;
  spx_proc bell; /* sleeps always */
};

/* The connections of this process. */
typedef struct {
  spx_conn **conns;     /* by process */
  spx_conn **open_ones; /* those with a socket */
  uint32_t n_open;
  spx_conn **busy; /* those for which something waits, without a connection */
  uint32_t n_busy;
  int want_fd;
  bool hurry; /* nothing is waited for */
  bool many;  /* more than allowed, and too young to be closed */
  uint64_t clock;
  uint32_t n_answers;  /* connections with must_answer */
  uint32_t n_by_todo;  /* connections with by_todo */
  spx_conn **gathered; /* those for which something was written while gathering */
  uint32_t n_gathered;
  spx_conn *held; /* its buffer has messages that no receive matches yet */
  /* a receive has just got its message from there: in this poll no more is read */
  spx_conn *served;
  /* written bytes wait: one system call sends all that goes to a process */
  int gathering;
  uint64_t next_shortcut, pause; /* ns: none is requested before; the length of that pause */
  /* ns: from a question how far a receiver is to its answer, smoothed */
  uint64_t trip;
  bool heeds;  /* the engine makes other connections when processes come or go */
  bool relays; /* messages go through relays where there is no connection */
  /* relays: a pair has a connection from its first message on, where there is room */
  bool spares;
  uint32_t cache; /* connections beside those that are kept */
  uint32_t most;  /* connections and further streams at all; 0: no limit */
  /* while descriptors are short: what it was before; 0: they are not */
  uint32_t most_before;
  uint64_t pressed_at; /* when they were short last, or the limit was raised again */
} spx_net_state;
SPX_HIDDEN extern spx_net_state spx_net;

/* The words to the engine, through the pipe: the number of a process, or 0, and above it one of
 * these. A connection that is lost has 1 << 24 times an errno more, or 0 where the other end's side
 * has closed it. The incarnation of the process follows: its number may be another's before the
 * engine reads this. */
enum {
  SPX_NET_CONNECT = 0,
  SPX_NET_CLOSED = 1 << 24,
  SPX_NET_NEWS = 2 << 24,
  SPX_NET_LOST = 3 << 24
};
/* The process has offered a by-way that this one can not use (fabric/). */
#define SPX_NET_BYWAY (188u << 24)
/* A socket is closed that the engine has handed over; its process is not named. */
#define SPX_NET_SHUT (190u << 24)
/* There are descriptors for so many connections. */
#define SPX_NET_MOST (189u << 24)
/* One more further stream to the process is wanted. */
#define SPX_NET_STREAM (192u << 24)
/* Something was handed over (net_hand_over.c). */
#define SPX_NET_HANDED (191u << 24)

/* ---- net_lost.c ---- */
/* A write has failed: errno. */
SPX_HIDDEN void spx_net_unheard(spx_conn *c, int why);
/* The connection does not work any more. */
SPX_HIDDEN void spx_net_broken(spx_conn *c);

/* ---- net_arrive.c ---- */
/* Joins those that can be; how many. */
SPX_HIDDEN int spx_arrivals_join(void);
typedef struct spx_arrival spx_arrival; /* a connection on its way from the engine */
SPX_HIDDEN void spx_net_arrives(spx_arrival *a);
SPX_HIDDEN bool spx_net_arrivals_wait(void);
SPX_HIDDEN extern spx_arrival *_Atomic spx_arrivals;
SPX_HIDDEN extern spx_arrival *spx_arrivals_early; /* of processes that this one has not met yet */
/* The same, and meets a process that is not known yet; how many moved. */
SPX_HIDDEN int spx_arrivals_take(void);
/* Room for what is known of connections that are being made; false: no memory. */
SPX_HIDDEN bool spx_arrivals_attach(void);
/* Closes those that were not joined. */
SPX_HIDDEN void spx_arrivals_drop(void);
/* Asks for a connection and waits a moment for it. */
SPX_HIDDEN void spx_net_ask(spx_conn *c);

/* ---- net.c ---- */
SPX_HIDDEN spx_conn *spx_net_conn(uint32_t peer); /* NULL: no memory */
SPX_HIDDEN void spx_net_tell(uint32_t word, uint32_t life);
/* Closes a socket that the engine has handed over, and notifies it. */
SPX_HIDDEN void spx_net_shut(int fd);
SPX_HIDDEN void spx_net_push(spx_conn *c);
/* The connection, or another stream of the pair, has broken: errno, or 0 where the other end has
 * closed it. */
SPX_HIDDEN void spx_net_lost(spx_conn *c, int why);
/* The socket is closed; what was not read is lost. */
SPX_HIDDEN void spx_net_disconnect(spx_conn *c);
/* The process runs, and may read what is sent to it. */
SPX_HIDDEN bool spx_net_may_read(uint32_t peer);
SPX_HIDDEN bool spx_net_gone(uint32_t peer); /* Whether it has ended, or died. */
/* n bytes of what is in out are done with. */
SPX_HIDDEN void spx_net_done(spx_conn *c, uint32_t n);
/* A buffer was filled up to here. */
SPX_HIDDEN void spx_net_reached(spx_conn *c, uint32_t *high, uint32_t end);
/* Returns memory of empty buffers to the system: only pairs in use have some, not all that have
 * communicated. */
SPX_HIDDEN void spx_net_thin(spx_conn *c);
/* The position behind all that is to be written. */
static inline uint32_t spx_net_end(const spx_conn *c)
{
  return c->done + spx_txs[c->peer].pos - c->flushed + c->long_out.left;
}

/* 1: what is written waits; -1: it goes, by one system call for each connection. */
SPX_HIDDEN void spx_net_batch(int change);

/* ---- net_bell.c ---- */
SPX_HIDDEN int spx_net_bell(void); /* at attach; an errno */
SPX_HIDDEN void spx_net_no_bell(void);
struct epoll_event;
/* epoll_ctl, and epoll_wait that does not wait. */
SPX_HIDDEN int spx_net_watch(int fd, uint32_t events, int op, uint64_t what);
SPX_HIDDEN int spx_net_events(struct epoll_event *events, int most);

/* ---- net_read.c ---- */
/* Reads what has come, and delivers it: n counts the records. */
SPX_HIDDEN void spx_net_pull(spx_conn *c, int *n);
/* Writes a greeting to a new connection: where this end begins. False: it can not. */
SPX_HIDDEN bool spx_net_greet(spx_conn *c);
/* Delivers what was left in a buffer. True: it was for a receive that was posted, and no other
 * is. */
SPX_HIDDEN bool spx_net_resume(int *n);
/* Delivers what has come. False: it is not sound. */
SPX_HIDDEN bool spx_net_deliver(spx_conn *c, int *n);
/* The part of in that was not delivered is moved to its start. */
SPX_HIDDEN void spx_net_to_start(spx_conn *c);

/* ---- net_hand_over.c ---- */
/* Gives the bytes left in the buffer to the engine to write, until they are taken back. True:
 * connections have arrived meanwhile, this one's perhaps, and are to be taken. */
SPX_HIDDEN bool spx_net_hand_over(spx_conn *c);
/* Bytes that wait for a connection, which is this, are written to it, and it is handed over. True:
 * spx_net_carry is to be called, too. */
SPX_HIDDEN bool spx_net_carry_first(int fd, uint32_t peer, uint32_t life, spx_arrival *a);
SPX_HIDDEN void spx_net_reclaim(spx_conn *c);
/* To be called before anything is done with out, flushed or fd. */
static inline void spx_net_recall(spx_conn *c)
{
  if (SPX_UNLIKELY(c->handed != 0)) spx_net_reclaim(c);
}

/* ---- net_burst.c: only where burst.may, but for the first ---- */
SPX_HIDDEN void spx_burst_join(spx_conn *c);
/* So many bytes are about to be written: notifications for the other end go with them. */
SPX_HIDDEN void spx_burst_write(spx_conn *c, uint32_t bytes);
/* All of them are. */
SPX_HIDDEN void spx_burst_written(spx_conn *c);
/* A long message begins: both ends infer from it that this mode ends. */
SPX_HIDDEN void spx_burst_long(spx_conn *c);
/* Sends what the system keeps. */
SPX_HIDDEN void spx_burst_let_go(spx_conn *c);
/* The other end has requested it: acknowledges all that was read. */
SPX_HIDDEN void spx_burst_acknowledge(const spx_conn *c);

/* ---- net_byway.c ---- */
/* Set by the layer above while there is one. */
SPX_HIDDEN extern const spx_byway *spx_byways;
SPX_HIDDEN void spx_byway_join(spx_conn *c);
SPX_HIDDEN void spx_byway_end(spx_conn *c);
/* Writes the records that are to be. */
SPX_HIDDEN void spx_byway_turn(void);
/* A BYWAY record. */
SPX_HIDDEN void spx_byway_heard(spx_conn *c, const spx_rec *rec);
/* The next bytes, n at most, go over it now. */
static inline bool spx_byway_takes(const spx_conn *c) { return c->by_out && c->by_left == 0; }
SPX_HIDDEN ssize_t spx_byway_write(spx_conn *c, uint32_t n);
/* by_in: nothing has come. True: nothing comes any more, as it is with a socket that has ended;
 * *why: an errno, or 0. */
SPX_HIDDEN bool spx_byway_looks(spx_conn *c, int *why);
SPX_HIDDEN void spx_byway_poll(int *n);
/* The pair stays on its socket: the engine is notified. */
SPX_HIDDEN void spx_byway_declined(const spx_conn *c);
/* Messages that are not in the other end's memory. */
static inline uint32_t spx_byway_unsent(const spx_conn *c)
{
  return SPX_UNLIKELY(c->by != NULL) ? spx_byways->unsent(c->by) : 0;
}

/* ---- net_zero.c ---- */
SPX_HIDDEN extern uint32_t spx_zero_writes; /* of all connections, that the kernel may still read */
SPX_HIDDEN void spx_zero_join(spx_conn *c);
/* zero.may: what is left of the long message can go so, when nothing stands before it. */
SPX_HIDDEN bool spx_zero_takes(const spx_conn *c);
/* Writes some of it, as write does; EINTR: to be tried again. */
SPX_HIDDEN ssize_t spx_zero_send(spx_conn *c);
/* Reads which buffers the kernel has released; returns the number of its reports. Sends may be
 * complete by that. */
SPX_HIDDEN int spx_zero_reap(spx_conn *c);
/* The connection is about to be closed; it is. */
SPX_HIDDEN void spx_zero_reset(spx_conn *c);
SPX_HIDDEN void spx_zero_end(spx_conn *c);

/* ---- net_close.c ---- */
/* Requests a connection from the engine, if there is room for one; else the one not used for the
 * longest time is closed, and the request is to be repeated. */
SPX_HIDDEN void spx_net_want(spx_conn *c);
/* The process has no descriptor for another connection: the one not used for the longest time is
 * closed, and the limit is lower for a while. Any thread. */
SPX_HIDDEN void spx_net_press(void);
/* The next poll does it. */
SPX_HIDDEN void spx_net_pressed(void);
/* Connections are wanted that there is no room for: the ones not used for the longest time are
 * closed, one by one. */
SPX_HIDDEN void spx_net_make_room(void);
/* There is no room for another one. */
SPX_HIDDEN bool spx_net_full(void);
/* Messages go through relays only where there is no room, and there is some. */
static inline bool spx_net_has_room(void) { return spx_net.spares && !spx_net_full(); }
/* A connection beside those that are kept was requested in vain, or has not lasted: none is
 * requested soon. */
SPX_HIDDEN void spx_net_pause_shortcuts(uint64_t now);
/* Connections are wanted that there is no room for. */
SPX_HIDDEN bool spx_net_sought(void);
/* Where there are more than allowed: closes those, beside c, that were not used for the longest
 * time. */
SPX_HIDDEN void spx_net_trim(const spx_conn *c);
/* A connection is closed for another one. */
SPX_HIDDEN void spx_net_gave_way(const spx_conn *c, uint64_t now);
/* Answers CLOSE where there was no room before. */
SPX_HIDDEN void spx_net_answers(void);
/* The connection has ended in order. */
SPX_HIDDEN void spx_net_finish(spx_conn *c);

/* Sets up the sending side, also towards a process that no communicator leads to, and waits for
 * nothing. False: no memory. */
SPX_HIDDEN bool spx_net_ready(uint32_t peer);
/* Something waits for c, and c has no connection: it is looked after. */
SPX_HIDDEN void spx_net_busy(spx_conn *c);
SPX_HIDDEN void spx_net_not_busy(spx_conn *c);

/* ---- messages to a process without a connection: net_relay.c, through relays ---- */
typedef struct {
  /* there is, or is to be, a connection with this process whenever messages go there */
  bool (*kept)(uint32_t peer);
  void (*pump)(
      /* sends waiting bytes through relays, as far as possible; or requests a connection */
      spx_conn *c);
  bool (*stuck)(const spx_conn *c,
                /* frames through relays do not arrive: there is no way, or some process on it moves
                 * nothing */
                uint64_t now);
  void (*dropped)(uint32_t peer); /* the state for the peer is dropped, as a relay as well */
  int (*poll)(void);              /* moves what waits; the number of frames that did */
  uint64_t (*sleep)(void);        /* for how long to sleep at most, ns */
  void (*slept)(uint64_t began, uint64_t most);
  uint64_t (*unsent)(void);
} spx_detour;
SPX_HIDDEN extern const spx_detour *spx_detours; /* set at attach */
SPX_HIDDEN extern const spx_detour spx_relay_detour;
#endif
