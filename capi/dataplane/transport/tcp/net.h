/* net.h - records over stream sockets: what net.c gives to the rest of the data plane and to the
 * engine. */
#ifndef SPX_NET_H
#define SPX_NET_H
#include "place.h"
#include "spx.h"

#define SPX_NET_FRAGMENT (32u * 1024 - 32) /* bytes of a DATA record */

typedef struct spx_conn spx_conn;
struct spx_tx;
struct spx_rec;

/* At attach. An errno. */
SPX_HIDDEN int spx_net_attach(void);
SPX_HIDDEN void spx_net_detach(void);
/* Attaches relaying, where messages go through other processes: after spx_net_attach. An errno. */
SPX_HIDDEN int spx_relay_attach(void);
SPX_HIDDEN void spx_relay_detach(void);

/* Writes what waits. False: the peer is not reached over the network. */
SPX_HIDDEN bool spx_net_flush(uint32_t peer);
/* spx_transport.together (transport.h): also for calls that start several messages. */
SPX_HIDDEN void spx_net_together(int change);
/* Publishes to a sender how much of its data has been matched. */
SPX_HIDDEN void spx_net_credit(uint32_t peer, uint64_t matched);
/* Drains all messages of a dead process, and closes the connection. */
SPX_HIDDEN void spx_net_peer_failed(uint32_t peer);
/* Whether the state for this process index belongs to a previous incarnation. */
SPX_HIDDEN bool spx_net_is_new(uint32_t peer);

/* A send with SPX_RF_HANDED is over. True: the kernel may still read its buffer, and it is complete
 * as soon as that does not. */
SPX_HIDDEN bool spx_zero_keeps(struct spx_request *r, int error);
/* Wakes process i of the job whose memory file this is, which sleeps on its sockets (progress.h).
 * Any thread, no lock. */
SPX_HIDDEN void spx_net_wake(const spx_seg *file, uint32_t i);

/* Bytes that have been sent and that no other host's kernel has yet, those for processes that are
 * gone left aside. */
SPX_HIDDEN uint64_t spx_net_unsent(void);
/* The sockets lead to the engine, which encrypts: bytes that were sent are still in this process
 * for a while (SPX_IN_UNSETTLED). */
SPX_HIDDEN extern bool spx_net_sealed;

/* ---- between the engine, which makes connections, and this file, which uses them ---- */
/* Requests for connections, ended connections, and changes of processes are written to fd, 4 bytes
 * each (net_conn.h). */
SPX_HIDDEN void spx_net_start(int fd);
/* A connection with the process that has number peer in its incarnation life: both ends are
 * authenticated. The socket is the data plane's from now on. Any thread. */
SPX_HIDDEN void spx_net_adopt(int fd, uint32_t peer, uint32_t life);
/* Writes what the program has left behind (net_hand_over.c), as far as sockets take it now; to be
 * called again unless that is all. Any thread. */
enum { SPX_CARRY_ALL, SPX_CARRY_SOME, SPX_CARRY_NONE };
SPX_HIDDEN int spx_net_carry(void);
/* As spx_net_adopt, for a further stream of the pair (net_streams.c); out: this process has made
 * it, or could not, fd -1. */
SPX_HIDDEN void spx_net_adopt_further(int fd, uint32_t peer, uint32_t life, bool out);
/* A further stream that a peer wants to make may be taken. Any thread. */
SPX_HIDDEN bool spx_net_takes_further(void);

/* Which way leads to a process, as the engine has decided. */
#define SPX_ROUTE_WAYS 4
#define SPX_ROUTE_HOPS 8 /* of a frame, at most: net/conn.Hops */
typedef struct {
  uint8_t kept;                  /* a connection of its own is kept */
  uint8_t n;                     /* else: neighbours through which it is reached, the best first */
  uint8_t needs[SPX_ROUTE_WAYS]; /* hops from the neighbour on, fewer than SPX_ROUTE_HOPS */
  uint32_t via[SPX_ROUTE_WAYS];
} spx_route;
typedef struct {
  uint32_t n;
  spx_route to[];
} spx_routes;
/* Which connections there are. */
typedef struct {
  bool heeds;  /* the engine wants notifications of processes that come or go */
  bool relays; /* messages go through relays where no connection is kept */
  /* relays: only where there is no room for a connection. Else there is one from the first message
   * on */
  bool spares;
  uint32_t cache; /* relays: connections beside those that are kept, at most */
  uint32_t most;  /* of all; 0: no limit */
} spx_net_ways;
/* Before spx_net_start. */
SPX_HIDDEN void spx_net_policy(spx_net_ways ways);
/* The process called for a connection of its own has none to spare: messages go through relays,
 * where that is enabled. Any thread. */
SPX_HIDDEN void spx_net_declined(uint32_t peer, uint32_t life);
/* So many connections exist or are being made, and so many requested ones wait until others are
 * closed. Any thread. */
SPX_HIDDEN void spx_net_slots(uint32_t used, uint32_t wanted);
/* A new table, from malloc: the data plane's from now on. Any thread. */
SPX_HIDDEN void spx_net_route(spx_routes *r);
/* Processes have come or gone: notifies the engine, once until it confirms (heard). Where many come
 * or go together it checks all of them. */
SPX_HIDDEN void spx_net_news(void);
SPX_HIDDEN void spx_net_heard(void);
/* A VIA record of a neighbour. False: no memory. */
SPX_HIDDEN bool spx_net_via(uint32_t from, const struct spx_rec *rec);
/* A CLOSE record. True: there is nothing that it might lack. */
SPX_HIDDEN bool spx_net_closes(uint32_t peer, const struct spx_rec *rec);
/* The record that is being delivered is one that its sender, peer, can not have sent: its
 * connection ends when it is delivered. A process that shares memory with this one is corrupt: that
 * is fatal. */
SPX_HIDDEN void spx_refuse(uint32_t peer, const char *why);
/* The defect of the data for which a connection was ended last, as a noun; "": none. */
SPX_HIDDEN extern const char *spx_refusal;
/* There is no connection to process peer, nor is one being made: all that it has sent over one has
 * been read. */
SPX_HIDDEN bool spx_net_silent(uint32_t peer);
/* From the engine: a connection with process peer is made (1), before it is here; that process may
 * have it already, and have sent data on it. Or it is handed over, or is none (-1). */
SPX_HIDDEN void spx_net_coming(uint32_t peer, int change);
#endif
