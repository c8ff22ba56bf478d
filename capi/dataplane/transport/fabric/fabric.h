/* fabric.h - what the files of this folder share: the endpoint, and messages. */
#ifndef SPX_FABRIC_H
#define SPX_FABRIC_H
#if defined __has_include
#if __has_include(<rdma/fabric.h>)
#define SPX_HAS_FABRIC 1
#endif
#endif
#ifdef SPX_HAS_FABRIC
#include <pthread.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include "net_conn.h"

/* The endpoint of this process. */
typedef struct {
  struct fi_info *info;
  struct fid_fabric *fabric;
  struct fid_domain *domain;
  struct fid_av *av;
  struct fid_cq *cq;
  struct fid_ep *ep;
  bool waits; /* the queue has a descriptor to sleep on */
  uint32_t address_bytes;
  uint8_t address[SPX_BYWAY_ADDRESS];
} spx_fabric_end;
SPX_HIDDEN extern spx_fabric_end spx_fabric;
SPX_HIDDEN extern const spx_byway spx_fabric_byway;

/* library.c: closes the endpoint, and then what it was made of. */
SPX_HIDDEN void spx_fabric_shut(void);
/* pairs.c: notes a text for spx_fabric_said. */
SPX_HIDDEN void spx_fabric_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* ---- messages ---- */
#define SPX_FABRIC_FORM    1
#define SPX_FABRIC_MESSAGE (16u << 10) /* bytes: what most providers send without a rendezvous */
#define SPX_FABRIC_WINDOW  16          /* messages under way from one process to another, at most */
typedef struct {
  uint64_t token[2]; /* the receiver's secret */
  uint32_t index;    /* of the pair, there */
  uint32_t kind;
  uint32_t number;
  uint32_t read;    /* messages of the other direction that were read: room for as many more */
  uint32_t arrived; /* and that have arrived */
  uint32_t bytes;
} spx_fabric_head;
enum { SPX_FABRIC_DATA = 0x73707801, SPX_FABRIC_ACK };
#define SPX_FABRIC_BODY (SPX_FABRIC_MESSAGE - (uint32_t)sizeof(spx_fabric_head))

/* A buffer that libfabric reads or writes. */
typedef struct spx_fabric_buffer {
  struct fi_context2 context; /* first: what a completion names */
  struct spx_fabric_buffer *next;
  spx_byway_pair *pair; /* sent for */
  void *desc;
  bool sends;
  uint32_t read; /* bytes of its body */
  spx_fabric_head *head;
} spx_fabric_buffer;

/* The streams of pairs as messages of one endpoint.
 *
 * A stream is cut into messages of up to SPX_FABRIC_BODY bytes, each with a number, and with the
 * secret that its receiver has given the sender over the authenticated connection. A message with
 * no secret of now, a stranger's or one of a connection that has ended, is counted and dropped.
 * Providers may deliver in any order: numbers put them back into it.
 *
 * For each pair a process posts three times as many buffers as it lets the other end have messages
 * under way: the rest is for acknowledgements, two for each message at most (that it has
 * arrived, that it was read), and a few for questions. So a sender never finds the receiver
 * without a buffer.
 *
 * A provider that has taken a message delivers it, or reports an error. So that one which does
 * neither ends as an error, and not as a job that hangs, a sender whose messages do not arrive
 * reports now and then how many it has sent, and a receiver that misses some for long gives the
 * pair up.
 *
 * All of it is under one mutex: threads of the engine send what the program has left behind
 * (net_hand_over.c), and move messages while it makes no calls (spx_fabric_tick). */
struct spx_byway_pair {
  spx_conn *c;
  uint32_t index;
  uint64_t token[2];
  /* the other end */
  fi_addr_t to;
  uint32_t to_index, to_window;
  uint64_t to_token[2];
  bool accepted;
  bool dropped; /* freed when nothing of it is under way */
  bool queued, waits, owes;
  spx_byway_pair *next_queued;
  int failed;         /* an errno of libfabric */
  uint32_t in_flight; /* sends that libfabric has not completed */
  /* numbers of messages, modulo 2^32 */
  uint32_t sent, read_there, arrived_there;
  uint32_t window, read, arrived, acked_read, acked_arrived;
  spx_fabric_buffer *come[SPX_FABRIC_WINDOW]; /* by number */
  /* the watch: the other end has sent so many; what it was at the last look; looks since then */
  uint32_t sent_there;
  uint32_t seen_there, seen_arrived, asked, missed;
};

/* All that moves, under one mutex. */
typedef struct {
  pthread_mutex_t mutex;
  spx_byway_pair **pairs; /* by index; NULL: none */
  uint32_t n_pairs;
  uint32_t needed, posted; /* buffers to be received into */
  spx_fabric_buffer *unposted;
  uint32_t n_unposted;
  spx_byway_pair *first, **last; /* for next() */
  uint32_t n_queued, round_left;
  uint32_t n_waiting, n_owing; /* pairs */
  uint32_t n_held;             /* messages that have come, and were not read */
  uint32_t n_flying;           /* sends that are not completed */
  int broken;                  /* the endpoint: an errno of libfabric */
} spx_fabric_state;
SPX_HIDDEN extern spx_fabric_state spx_fabric_moving;

/* ---- messages.c ---- */
SPX_HIDDEN void spx_fabric_enqueue(spx_byway_pair *p);
SPX_HIDDEN void spx_fabric_dequeue(const spx_byway_pair *p);
SPX_HIDDEN void spx_fabric_fail(spx_byway_pair *p, int error);
/* A buffer is to be received into; false: later. */
SPX_HIDDEN bool spx_fabric_post(spx_fabric_buffer *b);
/* So many are posted, or will be. False: no memory. */
SPX_HIDDEN bool spx_fabric_post_for(uint32_t n);
/* An acknowledgement is to be sent; something waits until libfabric takes more. */
SPX_HIDDEN void spx_fabric_owes(spx_byway_pair *p, bool owes);
SPX_HIDDEN void spx_fabric_waits(spx_byway_pair *p, bool waits);
SPX_HIDDEN void spx_fabric_acknowledge(spx_byway_pair *p);
SPX_HIDDEN void spx_fabric_acknowledge_all(void);
/* The table's send and receive. */
SPX_HIDDEN ssize_t spx_fabric_send(spx_byway_pair *p, const struct iovec *v, int n);
SPX_HIDDEN ssize_t spx_fabric_receive(spx_byway_pair *p, const struct iovec *v, int n);
SPX_HIDDEN bool spx_fabric_has_come(const spx_byway_pair *p);
/* Frees a pair that was dropped, when nothing of it is under way. */
SPX_HIDDEN void spx_fabric_forget(spx_byway_pair *p);
/* Moves what can be moved now; the number of completions. */
SPX_HIDDEN int spx_fabric_advance(void);

/* buffers.c: from a list of free ones, which grows; NULL: none. The error of the last failure. */
SPX_HIDDEN spx_fabric_buffer *spx_fabric_take(void);
SPX_HIDDEN void spx_fabric_put(spx_fabric_buffer *b);
SPX_HIDDEN int spx_fabric_shortage(void);
/* All of them, when the endpoint is closed. */
SPX_HIDDEN void spx_fabric_free_all(void);
#endif
#endif
