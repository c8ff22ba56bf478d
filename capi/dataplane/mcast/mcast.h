/* mcast.h - messages to sets of processes: what travels, the tree along which it does, and what
 * mcast.c does for the other files of the data plane. docs/multicast.md. */
#ifndef SPX_MCAST_DP_H
#define SPX_MCAST_DP_H
#include "record.h"
#include "spx.h"

/* ---- mcast_wire.c: the same as package mcast (Go), which tests compare it with ---- */
/* A member of a set, and the number of the message among those of its master to it. */
typedef struct {
  uint32_t proc, number;
} spx_member;
/* count members from first on, stride apart, all with the same number. */
typedef struct {
  uint32_t first, number;
  uint16_t count, stride;
} spx_mcast_item;
/* The wire form of n members in ascending order; to has room for n items. Returns its bytes. */
SPX_HIDDEN uint32_t spx_mcast_encode(void *to, const spx_member *members, uint32_t n);
/* Reads it; to has room for procs members. Returns how many, or -1 when it is no set of processes
 * below procs. */
SPX_HIDDEN int64_t spx_mcast_decode(const void *from, uint32_t bytes, uint32_t procs,
                                    spx_member *to);

typedef uint32_t spx_mcast_place(uint32_t);
/* The members that a process must forward to: those of its own host first, then those of its
 * switch. */
typedef struct {
  spx_member *rest;
  uint32_t n, mine, near; /* all, on this host, on this switch */
  spx_mcast_place *host, *sw;
  uint32_t width;
} spx_mcast_tree;
/* Puts the members of host home first. They will be cut into so many equal branches, or form a
 * binomial tree (width 0). host: of a process; sw: the switch of a host, NULL: not known. */
SPX_HIDDEN spx_mcast_tree spx_mcast_tree_of(spx_member *rest, uint32_t n, uint32_t home,
                                            spx_mcast_place *host, spx_mcast_place *sw,
                                            uint32_t width);
/* Takes a branch off, whose first member gets the message and serves the rest of it; NULL: there is
 * nothing left. */
SPX_HIDDEN spx_member *spx_mcast_branch(spx_mcast_tree *t, uint32_t *n);
/* Takes all members of other hosts off: the first, of the nearest host, gets the message and serves
 * the rest. */
SPX_HIDDEN spx_member *spx_mcast_next_host(spx_mcast_tree *t, uint32_t home, uint32_t *n);
/* Cuts members of other hosts, n > 0, into two halves, where switches meet if they do; a host is in
 * one of them. The first member of each gets the message, and serves the rest, which are in order.
 * Returns the length of the first half. */
SPX_HIDDEN uint32_t spx_mcast_halve(spx_member *m, uint32_t n, uint32_t home, spx_mcast_place *host,
                                    spx_mcast_place *sw);
/* The number of hosts that members are on; more, if ranks were dealt out to hosts in turn. */
SPX_HIDDEN uint32_t spx_mcast_hosts(const spx_member *m, uint32_t n, spx_mcast_place *host);
/* The members that get a message for their hosts: the first one of each, in ascending order, into
 * to. Returns how many. */
SPX_HIDDEN uint32_t spx_mcast_leads(const spx_member *m, uint32_t n, spx_mcast_place *host,
                                    spx_member *to);
/* Where part i of n begins of a message of so many bytes; n: where it ends. */
SPX_HIDDEN uint64_t spx_mcast_cut(uint64_t bytes, uint32_t n, uint32_t i);
/* From which of n hosts, each of which gets one part from the master, the host `me` gets part i:
 * all from the one before it in a ring, or in log2(n) steps, twice as many in each. me: its own
 * part. */
SPX_HIDDEN uint32_t spx_mcast_part_from(bool doubling, uint32_t me, uint32_t i, uint32_t n);

/* ---- what travels ---- */
/* In front of a message; then come the set of those that the receiver hands it on to, and the
 * data. */
typedef struct {
  uint64_t ctx;
  int32_t tag, src; /* src: rank of the master */
  uint32_t master;  /* its process index; SPX_MCAST_DIRECT: the writer of the record */
  uint32_t number;  /* of the message, for its receiver */
  uint16_t epoch;   /* low bits of the master's incarnation */
  uint16_t flags;   /* SPX_MCAST_* */
  uint32_t set;     /* bytes of the set */
} spx_mcast_head;
_Static_assert(sizeof(spx_mcast_head) == 32 && sizeof(spx_mcast_item) == 12, "the wire form");
#define SPX_MCAST_DIRECT UINT32_MAX
enum {
  SPX_MCAST_ANNOUNCED = 1, /* the data are an spx_mcast_rts: the receiver fetches them */
  SPX_MCAST_ACKED =
      /* the master must learn which members receive it (mcast_ack.c); data that are not announced
       * follow an spx_mcast_name */
  2,
  SPX_MCAST_AGAIN = 4, /* the message has gone another way, too, on which it may still come */
  SPX_MCAST_CHAIN =
      /* the data come from the process that the announcement names, and go on to the next host as
         they come */
  8,
  SPX_MCAST_THERE =
      /* no message: this one is in the receiver's channel from its host's relay, and before what
         follows here */
  16,
  SPX_MCAST_FORK = 32, /* with SPX_MCAST_CHAIN: each host forwards to two */
  /* With SPX_MCAST_CHAIN: each host gets one part of the data from the master, and the other parts
   * from other hosts (spx_mcast_part_from); a set of the members that do follows the place of the
   * data. */
  SPX_MCAST_RING = 64,
  SPX_MCAST_DOUBLING = 128
};
#define SPX_MCAST_PARTS (SPX_MCAST_RING | SPX_MCAST_DOUBLING)
#define SPX_MCAST_ALONG (SPX_MCAST_CHAIN | SPX_MCAST_FORK | SPX_MCAST_PARTS)
#define SPX_MCAST_FLAGS 255
/* The tag of an spx_rec_ask: send me this; there is nothing (more) here of what you want; it is, or
 * will be, here, and you will get it. */
enum { SPX_ASK_FOR, SPX_ASK_NONE, SPX_ASK_HERE };
/* Where the data of an announced message are: at the master and, for processes of its host, on its
 * staging buffer; or for the processes of another host in the staging buffer of one of them. */
typedef struct {
  spx_rec_rts rts;
  /* the master's staging buffer in the memory file, 0: they are not on it; its bytes */
  uint64_t staging, room;
  uint64_t at;     /* of the block in it */
  uint32_t keeper; /* the owner of the staging buffer; SPX_NO_PEER: the master */
  /* SPX_MCAST_CHAIN: the process that has the data, or will have them; SPX_MCAST_PARTS: the sender
   * of the announcement */
  uint32_t source;
} spx_mcast_rts;

/* A multicast at its master. */
typedef struct {
  uint32_t index, gen;
} spx_mcast_name;

/* In the rank of an acknowledgement: its sender leaves, and may not have forwarded all that it had
 * to. */
#define SPX_MCAST_LAST_WORD 1
/* The amount of a member's credit for a message of n bytes. */
static inline uint64_t spx_mcast_cost(uint64_t n)
{
  return SPX_REC_BYTES(n + sizeof(spx_mcast_head));
}
/* The value before the first number of a pair. */
SPX_HIDDEN uint32_t spx_mcast_first(void);
/* Numbers go round, leaving 0 out. */
static inline uint32_t spx_mcast_after(uint32_t number) { return number + 1 ? number + 1 : 1; }
static inline bool spx_mcast_is_before(uint32_t a, uint32_t b) { return (int32_t)(a - b) < 0; }

/* ---- mcast.c ---- */
struct spx_rec;
struct spx_rec_cts;
SPX_HIDDEN void spx_mcast_detach(void);
SPX_HIDDEN bool spx_mcast_prepare(void); /* false: no memory */
/* The switches of the first n hosts of the job; the other hosts are on switches of their own. 0:
 * unknown. */
SPX_HIDDEN void spx_mcast_switches(const uint32_t *of, uint32_t n);
/* A record of kind SPX_REC_MCAST_ACK. */
SPX_HIDDEN void spx_mcast_acked(uint32_t peer, const struct spx_rec *rec);
/* Sends messages that went directly to some of their members, and along a tree to the rest, to all
 * of them: those of a member, or all (SPX_NO_PEER). */
SPX_HIDDEN void spx_mcast_send_split(uint32_t member);
/* Forwards a message to the hosts of n members, all on other ones, as a chain, or as two. to: the
 * members that have got it; SPX_NO_PEER: none. */
SPX_HIDDEN void spx_mcast_hand_along(spx_mcast_head h, spx_member *m, uint32_t n, const void *data,
                                     uint32_t len, uint32_t to[2]);
/* Records of kind SPX_REC_MCAST_ASK and SPX_REC_MCAST_HAVE for a multicast of this process. */
SPX_HIDDEN void spx_mcast_asked_from(uint32_t peer, const struct spx_rec *rec);
SPX_HIDDEN void spx_mcast_had(uint32_t peer, const struct spx_rec *rec);
/* Whether peer is a member of the multicast r. */
SPX_HIDDEN bool spx_mcast_has(const spx_request *r, uint32_t peer);
/* In the rank of such a HAVE: these have the data, or find them on their host; have received the
 * message; have acknowledged to processes that are gone. */
enum { SPX_MCAST_DATA, SPX_MCAST_GOT, SPX_MCAST_LOST };
typedef struct spx_ack_aggregation spx_ack_aggregation;
/* The multicast r, announced: peer has fetched the data, or requests them. */
SPX_HIDDEN void spx_mcast_fetched(spx_request *r, uint32_t peer);
SPX_HIDDEN void spx_mcast_asked(spx_request *r, uint32_t peer, const spx_rec_cts *cts, bool relays);
/* The multicast can not complete: its communicator is revoked. */
SPX_HIDDEN void spx_mcast_fail(spx_request *r, int error);
/* Members that can still fetch it and have not yet, or whose record waits for room here. */
SPX_HIDDEN void spx_mcast_each_missing(const spx_request *r, void (*fn)(uint32_t proc, void *),
                                       void *arg);
/* Are there any? */
SPX_HIDDEN bool spx_mcast_wanted(const spx_request *r);
/* Forwards a message to n members, whose order changes; g: or NULL, the acknowledgements that are
 * to be awaited then. */
SPX_HIDDEN void spx_mcast_hand_on(spx_mcast_head h, spx_member *m, uint32_t n, const void *data,
                                  uint32_t len, spx_ack_aggregation *g);
/* The same, each with a record of its own. */
SPX_HIDDEN void spx_mcast_hand_each(spx_mcast_head h, const spx_member *m, uint32_t n,
                                    const void *data, uint32_t len);

/* ---- mcast_match.c ---- */
/* A multicast of n bytes of data, or announced, whose turn it is, enters matching; false: no
 * memory. */
SPX_HIDDEN bool spx_deliver_mcast(uint32_t master, const spx_mcast_head *h, const void *data,
                                  uint32_t n);

/* ---- mcast_arrive.c ---- */
/* A record of kind SPX_REC_MCAST; false: no memory, leave it where it is. */
SPX_HIDDEN bool spx_mcast_arrived(uint32_t peer, const struct spx_rec *rec);
/* Whether the message of that number of this master has not arrived yet. */
SPX_HIDDEN bool spx_mcast_awaits(uint32_t master, uint32_t number);
/* A receive has taken a message of n bytes that master has sent with its data. */
SPX_HIDDEN void spx_mcast_matched(uint32_t master, uint64_t n);
/* This process is about to leave: its peers get from it, or from the masters that it notifies, the
 * messages that they would get from members that have left. To be called until nothing remains to
 * be sent. */
SPX_HIDDEN void spx_mcast_leave(void);
/* A master is dead: what it has sent and cannot follow is dropped. All masters: this process leaves
 * the job. */
SPX_HIDDEN void spx_mcast_forget(uint32_t master);
SPX_HIDDEN void spx_mcast_forget_all(void);

/* ---- mcast_ack.c ---- */
/* A message has arrived from peer, which is to learn its receivers: this process, unless it has
 * (the message came twice), and `behind` others that it is forwarded to. fetched: this process has
 * it, or is getting it, from the master. NULL: no acknowledgement is needed any more. */
SPX_HIDDEN spx_ack_aggregation *spx_acks_begin(uint32_t peer, const spx_mcast_head *h,
                                               spx_mcast_name name, bool twice, bool fetched,
                                               uint32_t behind);
/* The process will speak for those that it hands the message on to. */
SPX_HIDDEN void spx_acks_behind(spx_ack_aggregation *g, uint32_t proc);
/* Sends the acknowledgements that are complete. To be called when all of the above is done. */
SPX_HIDDEN void spx_acks_settle(void);
/* A receive has taken the message; fetches: the master learns that from the request for its
 * data. */
SPX_HIDDEN void spx_mcast_took(uint32_t master, spx_mcast_name name, bool fetches);
/* The acknowledgement of peer for n members. */
SPX_HIDDEN void spx_acks_got(uint32_t peer, const spx_rec_have *have, const spx_member *m,
                             uint32_t n, bool more);
SPX_HIDDEN void spx_acks_peer_failed(uint32_t peer);
SPX_HIDDEN void spx_acks_revoked(uint64_t ctx);
/* This process receives nothing any more. Returns the number of messages that members have still to
 * acknowledge. */
SPX_HIDDEN uint32_t spx_acks_leave(void);
SPX_HIDDEN void spx_acks_detach(void);

/* ---- mcast_source.c ---- */
/* Data of a message, which are sent to requesters while they arrive. */
typedef struct spx_hop spx_hop;
/* A part of them, from byte `at` to byte `end`, which come in this order; those before `there`
 * have. */
typedef struct {
  uint64_t at, there, end;
} spx_span;
typedef struct {
  const void *data;
  uint64_t bytes, there; /* there: from the first byte on, without a gap */
  const spx_span *spans; /* all of them, in order; NULL: there is one */
  uint32_t parts;        /* the number of parts in which requesters fetch them; 0: one */
  spx_hop *hops;         /* requesters being served */
  uint32_t served;       /* how many have been */
} spx_source;
/* peer requests the bytes from `from` to `to`, or to the end, for the receive that it names; false:
 * no memory. */
SPX_HIDDEN bool spx_source_ask(spx_source *s, uint32_t peer, uint32_t rx_index, uint32_t rx_gen,
                               uint64_t from, uint64_t to);
/* Whether peer has not requested more at once than it can need. */
SPX_HIDDEN bool spx_source_may_ask(const spx_source *s, uint32_t peer);
/* How many requests there have been; of a peer that is dead, too. */
SPX_HIDDEN uint32_t spx_source_requests(const spx_source *s);
/* Sends what can be sent; the number of things that moved. */
SPX_HIDDEN int spx_source_pump(spx_source *s);
/* All data are there, and their memory is to be used for something else: copies what requesters
 * have still to get, or all, into `to`, which has as much room, and sends it from there. */
SPX_HIDDEN void spx_source_move(spx_source *s, void *to, bool all);
/* No more data will arrive: requesters get what is there. */
SPX_HIDDEN void spx_source_cut(spx_source *s);
/* The data are not to be read any more. */
SPX_HIDDEN void spx_source_end(spx_source *s);

/* ---- mcast_relay.c ---- */
/* SPX_MCAST_PARTS: the members that get a message for the hosts. */
typedef struct {
  const spx_member *m;
  uint32_t n;
  const void *set; /* in their wire form */
  uint32_t bytes;
} spx_mcast_leads_list;
/* An announced message that n members are to get. Perhaps this process gets the data for all on its
 * host, and forwards the message to those when the data are there: `where` then is the place of the
 * data for this process. Returns how many members are left for other processes to serve, the first
 * ones. */
SPX_HIDDEN uint32_t spx_mcast_relay(spx_mcast_head *h, spx_member *members, uint32_t n,
                                    spx_mcast_rts *where, const spx_mcast_leads_list *leads,
                                    spx_ack_aggregation *g);
/* The announcement of a message has arrived: earlier requests for its data are answered. */
SPX_HIDDEN void spx_mcast_answer_early(uint32_t master, const spx_mcast_rts *where);
/* Sends process `to` a report about n members, whose order changes, in records of a few. */
SPX_HIDDEN void spx_mcast_tell(uint32_t to, const spx_rec_have *have, int32_t what, spx_member *m,
                               uint32_t n);
/* This process relays no message of a chain: those behind it get it as if there were none, and the
 * one before need not wait for this one. */
SPX_HIDDEN void spx_mcast_leave_chain(spx_mcast_head *h, const spx_mcast_rts *where);
/* The data of message `number` of the master are still on their way to this process's staging
 * buffer. The message has arrived again: the master is notified when the data are there. */
SPX_HIDDEN bool spx_mcast_relays(uint32_t master, uint32_t number);
/* Messages that are being relayed. */
SPX_HIDDEN extern uint32_t spx_mcast_relaying;
/* Records of kind SPX_REC_MCAST_ASK and SPX_REC_MCAST_HAVE. */
SPX_HIDDEN void spx_mcast_on_ask(uint32_t peer, const struct spx_rec *rec);
SPX_HIDDEN void spx_mcast_on_have(uint32_t peer, const struct spx_rec *rec);
/* The communicator is revoked: their masters may not have them any more. */
SPX_HIDDEN void spx_mcast_relay_revoked(uint64_t ctx);
/* Process peer is dead. */
SPX_HIDDEN void spx_mcast_relay_peer_failed(uint32_t peer);
/* The receive r has matched a message with that place, which is relayed here: its data go straight
 * into r from now on, which they complete. False: r reads them from the staging buffer. */
SPX_HIDDEN bool spx_mcast_relay_into(spx_request *r, uint32_t master, const spx_mcast_rts *where);
/* Abandons the messages being relayed. A caller that can wait does so until spx_mcast_relaying is
 * 0, since other hosts need them. */
SPX_HIDDEN void spx_mcast_relay_detach(void);

/* ---- mcast_staging.c ---- */
#define SPX_STAGING_STEP (128u << 10) /* bytes that are put down at a time */
typedef struct spx_block spx_block;
/* Can the process read this one's staging buffer, and the other way round? */
SPX_HIDDEN bool spx_staging_reaches(uint32_t proc);
/* Are the data in a staging buffer that this process reads? */
SPX_HIDDEN bool spx_staging_has(uint32_t master, const spx_mcast_rts *where);
/* Whether the place is in the memory that staging buffers of this host can have. */
SPX_HIDDEN bool spx_staging_sound(const spx_mcast_rts *where);
/* A block for a message of so many bytes to those of the n members that it reaches, and to this
 * process if it reads too, and where it is; NULL: there is no room. */
SPX_HIDDEN spx_block *spx_staging_take(uint64_t bytes, const spx_member *members, uint32_t n,
                                       bool self, spx_mcast_rts *where);
/* Where the data of a block go; so many bytes have arrived; all have, and this process needs the
 * block no more, unless it reads as the others do. */
SPX_HIDDEN void *spx_staging_room(const spx_block *b);
SPX_HIDDEN void spx_staging_came(spx_block *b, uint64_t bytes);
SPX_HIDDEN void spx_staging_close(spx_block *b, bool reads);
/* The data will not arrive: the block is unknown to its readers; or known to this process alone,
 * whose receives from it fail. */
SPX_HIDDEN void spx_staging_drop(spx_block *b);
SPX_HIDDEN void spx_staging_lost(spx_block *b, int error);
/* Writes the data of r that must be there before its readers are sent the block: all of them, or
 * one, which notifies the rest. Returns the bytes that are there. */
SPX_HIDDEN uint64_t spx_staging_begin(spx_block *b, const spx_request *r, bool one);
/* Puts down the data of r from byte `from` on: the first part, or all the rest. Returns the bytes
 * that are there. */
SPX_HIDDEN uint64_t spx_staging_fill(spx_block *b, const spx_request *r, uint64_t from, bool all);
/* Receives the message into the matched receive r. */
SPX_HIDDEN void spx_staging_read(spx_request *r, uint32_t master, const spx_mcast_rts *where);
/* No receive of this process will take it. */
SPX_HIDDEN void spx_staging_pass(uint32_t master, const spx_mcast_rts *where);
/* Process peer is dead. */
SPX_HIDDEN void spx_staging_peer_failed(uint32_t peer);
SPX_HIDDEN void spx_staging_detach(void);
#endif
