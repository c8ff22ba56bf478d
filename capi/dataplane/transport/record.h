/* record.h - what stands in a channel or ring: records of whole lines, each behind a header of 32
 * bytes.
 *
 * The sender writes the payload and the header's other fields, clears the first word of the header
 * that will follow, and then publishes by one release store of the first word (valid, kind, epoch).
 * A reader therefore finds either a whole record or a zero, whenever the sender died. A payload of
 * up to 32 bytes shares the line with its header.
 */
#ifndef SPX_RECORD_H
#define SPX_RECORD_H
#include <stdint.h>

/* The words of a header whose meaning depends on its kind: one view for each meaning. The kinds
 * that no view names have zeros there (SPX_REC_PLAIN). */
typedef union {
  struct {
    uint64_t ctx;
    int32_t tag;
    int32_t src; /* rank of the sender in the communicator; or an origin (origin.h) */
  } envelope;    /* EAGER, EAGER_SYNC, RTS, CANCEL: a message */
  struct {
    uint64_t bytes; /* LONG: so many follow outside of records; DATA: 0 */
    uint32_t index, gen;
  } stream; /* DATA, LONG: the receive that they are for */
  struct {
    uint64_t ctx;
    int32_t more; /* bytes that follow in later pieces */
    int32_t zero;
  } piece; /* CTRL, MCAST */
  struct {
    uint64_t zero;
    int32_t how; /* SPX_CTS_*, or 0 */
    int32_t zero_too;
  } cts; /* CTS */
  struct {
    uint64_t zero;
    uint32_t number; /* all up to this one have come */
    int32_t word;    /* 0, or SPX_MCAST_LAST_WORD */
  } acked;           /* MCAST_ACK */
  struct {
    uint64_t to;  /* bytes before this one */
    int32_t what; /* SPX_ASK_* (mcast.h) */
    int32_t zero;
  } ask; /* MCAST_ASK */
  struct {
    uint64_t zero;
    int32_t more; /* 1: the set goes on in the next record */
    int32_t what; /* SPX_MCAST_DATA, GOT, LOST (mcast.h) */
  } have;         /* MCAST_HAVE */
  struct {
    /* in the stream of the pair; of what goes back: the bytes of credit */
    uint32_t position;
    uint16_t from_life, to_life; /* incarnations of that pair's processes */
    /* the receiver in the end, hops that are left, flags: net_relay.c */
    uint32_t route;
    uint32_t from; /* the sender in the beginning */
  } via;           /* VIA */
  struct {
    uint64_t zero;
    /* CLOSE: the other end's has come; PROMPT: acknowledge at once; BYWAY: which (net_byway.h) */
    int32_t on;
    int32_t zero_too;
  } flag; /* CLOSE, PROMPT, BYWAY */
} spx_rec_words;
#define SPX_REC_PLAIN ((spx_rec_words){.envelope = {0, 0, 0}})

typedef struct spx_rec {
  uint32_t valid; /* bytes of the record, a multiple of the line; 0: nothing here yet */
  uint16_t kind;  /* spx_rec_kind */
  uint16_t epoch; /* of the sender: low bits of its incarnation */
  spx_rec_words as;
  uint32_t seq; /* number of the record in its pair */
  uint32_t len; /* bytes of payload */
  uint8_t data[];
} spx_rec;
_Static_assert(sizeof(spx_rec_words) == 16 && sizeof(spx_rec) == 32, "the header of a record");

typedef enum {
  SPX_REC_PAD = 1,    /* nothing: the next record is at the start of the buffer */
  SPX_REC_SWITCH,     /* the next record is in another buffer: spx_rec_switch */
  SPX_REC_EAGER,      /* a message */
  SPX_REC_EAGER_SYNC, /* spx_rec_id, then a message: ACK when matched */
  SPX_REC_RTS,        /* a message to be fetched: spx_rec_rts */
  SPX_REC_ACK,        /* spx_rec_id: matched */
  SPX_REC_DONE,       /* spx_rec_id: fetched */
  SPX_REC_CTS,        /* spx_rec_cts: send it as DATA */
  SPX_REC_DATA,       /* a piece of the message of the receiver's id */
  SPX_REC_CANCEL,     /* spx_rec_cancel: drop this message if no receive has matched it */
  SPX_REC_CANCELLED,  /* spx_rec_id, error 0: forgotten, 1: too late */
  SPX_REC_CTRL,       /* a piece of a control message */
  /* over the network: the matched position, as in the control line of a channel (8 bytes) */
  SPX_REC_CREDIT,
  SPX_REC_MCAST,     /* a multicast, or a piece of one: mcast.h */
  SPX_REC_MCAST_ACK, /* multicasts have come; the credit for them (8 bytes) */
  /* spx_rec_ask: send me these bytes of a long multicast, as DATA; or an answer to that */
  SPX_REC_MCAST_ASK,
  /* spx_rec_have and a set (mcast.h): these have the data, or can get them on their host; or
   * another report */
  SPX_REC_MCAST_HAVE,
  SPX_REC_VIA,   /* bytes of the stream of another pair, which go through relays: net_relay.c */
  SPX_REC_CLOSE, /* the last record of a connection in this direction: net_close.c */
  /* bytes of the message of the receiver's id follow, outside of records: net_long.c */
  SPX_REC_LONG,
  SPX_REC_CHECK, /* SPX_CHECK=1: what the sender does in a collective: spx_diag_check (layout.h) */
  /* spx_rec_id of the receiver: the message that it is receiving was never sent (pass.c) */
  SPX_REC_ABORTED,
  /* data on this connection must be acknowledged when they are read, since more are kept until
   * then; or no longer (net_burst.c) */
  SPX_REC_PROMPT,
  SPX_REC_BYWAY, /* of a by-way: an offer, its acceptance, or the end of what goes by the socket */
  SPX_REC_LAST = SPX_REC_BYWAY,
  SPX_REC_MCAST_RTS /* not a record: an announced multicast among the unexpected messages */
} spx_rec_kind;

#define SPX_RTS_APART      (1ull << 63)
#define SPX_MESSAGE_MOST   (1ull << 62) /* bytes: none is longer */
#define SPX_REC_HEADER     32u
#define SPX_REC_INLINE     32u /* payload that fits into the header's line */
#define SPX_REC_BYTES(len) (((uint32_t)(len) + SPX_REC_HEADER + 63u) & ~63u)

typedef struct {
  uint64_t offset;
  uint32_t bytes;
} spx_rec_switch; /* offset in the memory file */
typedef struct {
  uint32_t index, gen;
  int32_t error;
} spx_rec_id;
typedef struct {
  uint32_t index, gen;
  uint64_t addr;
  /* and SPX_RTS_APART: the sender's copies to there show that the processors share no cache */
  uint64_t bytes;
  uint64_t type; /* address of the sender's spx_type; 0: contiguous */
} spx_rec_rts;   /* addr and type 0: not for the get protocol */
typedef struct {
  uint32_t index, gen, rx_index, rx_gen;
  uint64_t bytes;
} spx_rec_cts;
/* cts.how: the data of a multicast, for a process that gets them for its host. */
#define SPX_CTS_RELAY 1
/* The bytes before `bytes` are wanted now; more of the message is requested later (pass.c). */
#define SPX_CTS_PART 2
/* The bytes may come over further streams, too (net_streams.c). */
#define SPX_CTS_FURTHER 4
typedef struct {
  uint32_t index, gen, seq;
} spx_rec_cancel;
/* A multicast is named by its master and its descriptor there. */
typedef struct {
  uint32_t master, index, gen, rx_index, rx_gen;
  /* of the message for the receiver of this, which may not have got it yet; 0: it has */
  uint32_t number;
  uint64_t from;
} spx_rec_ask; /* one line: up to which byte stands in the record's header */
typedef struct {
  uint32_t master, index, gen, pad;
} spx_rec_have;
#endif
