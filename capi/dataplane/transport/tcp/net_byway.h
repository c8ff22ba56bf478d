/* net_byway.h - a by-way: another network than that of the sockets, which carries the bytes of the
 * pairs that can use it.
 *
 * The connection of such a pair stays: it is made, authenticated, watched and closed as any other.
 * But from a point in its stream on, a direction's bytes are handed to the by-way, and come out of
 * it at the other end in the same order. That point is a BYWAY record, the last bytes of that
 * direction that go over the socket. Before it each end has offered itself over the socket (its
 * address in that network, and a secret by which its messages are known), and accepted the offer of
 * the other.
 *
 * The table is filled in by the layer above (fabric), and is called with spx_lock held, but for
 * send, which threads of the engine call too (net_hand_over.c). */
#ifndef SPX_NET_BYWAY_H
#define SPX_NET_BYWAY_H
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct iovec;
typedef struct spx_conn spx_conn;
typedef struct spx_byway_pair spx_byway_pair;

#define SPX_BYWAY_ADDRESS 128 /* bytes of an address, at most */

/* What an end states of itself: the payload of a BYWAY record. */
typedef struct {
  uint32_t form; /* of messages */
  uint32_t protocol, format;
  uint32_t address_bytes;
  uint32_t index;  /* of the pair, there */
  uint32_t window; /* messages that may be under way to there */
  uint64_t token[2];
  char provider[40];
  uint8_t address[SPX_BYWAY_ADDRESS];
} spx_byway_offer;

/* What a BYWAY record is (flag.on). */
enum { SPX_BYWAY_OFFER = 1, SPX_BYWAY_ACCEPT, SPX_BYWAY_SWITCH };

typedef struct {
  /* This end of the pair; NULL: there is no room for one. */
  spx_byway_pair *(*begin)(spx_conn *c);
  void (*describe)(const spx_byway_pair *p, spx_byway_offer *offer);
  /* The other end's. False: it can not be reached that way, and the engine is notified. */
  bool (*accept)(spx_byway_pair *p, const spx_byway_offer *offer);
  /* As sendmsg and recvmsg that do not wait: what send takes need not stay. EAGAIN; ECOMM: the
   * by-way has failed. */
  ssize_t (*send)(spx_byway_pair *p, const struct iovec *v, int n);
  ssize_t (*receive)(spx_byway_pair *p, const struct iovec *v, int n);
  /* Messages that are not in the other end's memory yet. */
  uint32_t (*unsent)(const spx_byway_pair *p);
  bool (*failed)(const spx_byway_pair *p);
  /* Waits a moment for what is still on its way. True: there is something to be received. */
  bool (*drain)(spx_byway_pair *p);
  void (*drop)(spx_byway_pair *p);
  /* Moves messages; how many. */
  int (*poll)(void);
  /* A connection for which something has come, or that there may be room for, as it was at the last
   * poll; NULL: no more. One with something left is put back, for after the next poll. */
  spx_conn *(*next)(void);
  void (*again)(spx_byway_pair *p);
  /* This process is about to sleep: for how long at most, ns. */
  uint64_t (*sleep)(void);
  /* Acknowledges all that has come. */
  void (*settle)(void);
  /* Waits a moment until nothing is under way from here; gives everything back. */
  void (*finish)(void);
  void (*leave)(void);
} spx_byway;
#endif
