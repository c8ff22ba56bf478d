/* net_streams.h - further streams: sockets beside the connection of a pair, for the data of long
 * messages alone. The lock is held. */
#ifndef SPX_NET_STREAMS_H
#define SPX_NET_STREAMS_H
#include "dp.h"
#include "stream_number.h"

/* epoll: what is behind it is no process, but the address of a stream */
#define SPX_FURTHER_BIT (1ull << 63)

struct spx_conn;
typedef struct spx_further spx_further;

typedef struct {
  uint64_t acked, busy, held; /* of a socket when it was last sampled, as tcp_info has them */
} spx_socket_seen;

/* The streams of a connection's pair. They stay while the connection is closed in order. */
typedef struct {
  spx_further *out, *in; /* that this process writes to, and reads from */
  uint32_t n_out, asked; /* of those that it writes to: open; asked for */
  uint64_t not_before;   /* ns: another one could not be made */
  spx_number number;     /* SPX_STREAMS=auto: how many are used */
  uint64_t wrote;        /* bytes of long messages since that was last thought about */
  bool may;              /* the receiver takes messages over several streams */
  spx_socket_seen seen;  /* of the connection */
} spx_furthers;

/* All of them: open now. */
SPX_HIDDEN extern uint32_t spx_n_further;

/* Gives parts of what r has left, from its end, to further streams that have nothing to write. */
SPX_HIDDEN void spx_further_give(struct spx_conn *c, spx_request *r);
/* n bytes of a long message were written: SPX_STREAMS=auto. */
SPX_HIDDEN void spx_further_wrote(struct spx_conn *c, uint32_t n);
/* The most bytes of r that the connection takes at once. */
SPX_HIDDEN uint64_t spx_further_share(const struct spx_conn *c, const spx_request *r,
                                      uint64_t left);
/* Bytes of r are still to be written to further streams. */
SPX_HIDDEN bool spx_further_busy(const struct spx_conn *c, const spx_request *r);
/* The buffer of r must not be read any more. */
SPX_HIDDEN void spx_further_recall(struct spx_conn *c, const spx_request *r);
/* Bytes that wait, or are on their way. */
SPX_HIDDEN uint64_t spx_further_unsent(const struct spx_conn *c);
/* Processes an epoll event of a stream. *n: the number of things that moved. */
SPX_HIDDEN void spx_further_event(uint64_t what, uint32_t events, int *n);
/* Streams that have ended since the last call are freed: no event of theirs is processed any
 * more. */
SPX_HIDDEN void spx_further_sweep(void);
/* A socket of a further stream, which leads to or comes from the peer of c; out: this process
 * writes to it; fd -1: it could not be made. */
SPX_HIDDEN void spx_further_join(struct spx_conn *c, int fd, bool out);
/* Another one may be made, or taken: the settings allow it, and there are descriptors. */
SPX_HIDDEN bool spx_further_room(void);
/* Closes all; drain: arrived bytes are read first. */
SPX_HIDDEN void spx_further_end(struct spx_conn *c, bool drain);
/* Closes those that have nothing to write: descriptors are short. */
SPX_HIDDEN void spx_further_press(struct spx_conn *c);
#endif
