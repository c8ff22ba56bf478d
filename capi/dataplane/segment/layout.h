/* layout.h - the memory file of one host and job, shared by all its processes and by the agent.
 *
 * The layout is declared here and nowhere else; shm/zz_layout.go is generated from it.
 * Rules (crash consistency): every cell has one writer at a time, named beside it; nothing here is
 * a pointer (all references are offsets or indices); a process may die at any store, and no reader
 * may then read garbage as valid. The file is a memfd: nothing is left in /dev/shm. It is sparse:
 * it is grown by fallocate before first use of a part, so that a full memory is an error and not
 * SIGBUS.
 */
#ifndef SPX_LAYOUT_H
#define SPX_LAYOUT_H
#include <stdint.h>

#define SPX_SEG_MAGIC   0x3131786773787073ull /* "spxsgx11" */
#define SPX_SEG_VERSION 6
#define SPX_LINE        64
/* control line + 3 cells of one line: the channel that always exists for a pair */
#define SPX_CHAN_BYTES     256
#define SPX_RINGS_PER_PROC 64 /* outgoing rings a process may have at once */
#define SPX_RING_BYTES     131072
/* as much of it as short records use while the receiver keeps up (spx_tx_near) */
#define SPX_RING_NEAR      16384
#define SPX_SDESC_PER_PROC 1024 /* get-protocol send descriptors a process may have at once */
/* communicators with shared memory for collectives, and the first world */
#define SPX_SHARE_ENTRIES 4097
/* of a window, for each process, where process_vm_readv is forbidden (rma_move.c) */
#define SPX_MAILBOX_BYTES 36864
/* What a process publishes about its waiting, for diagnosis (diag.c): a row for each process, of
 * these parts. */
#define SPX_DIAG_BYTES 16384
/* spx_diag_wait, for threads that wait at one time, SPX_DIAG_STRIDE apart */
#define SPX_DIAG_WAITS  4
#define SPX_DIAG_STRIDE 1024 /* bytes from one to the next */
/* where spx_diag_queue is, and spx_diag_entry behind it, a line each */
#define SPX_DIAG_QUEUES     4096
#define SPX_DIAG_ENTRIES    56
#define SPX_DIAG_COUNTS     7744 /* where spx_counters is */
#define SPX_DIAG_CHECKED    8192 /* where spx_diag_check is, with SPX_CHECK=1 */
#define SPX_DIAG_CHECKS     128
#define SPX_DIAG_REGISTERS  8
#define SPX_DIAG_MEMBERS    32 /* words of 64 processes */
#define SPX_DIAG_NAME       64 /* bytes of a name, with its zero */
#define SPX_DIAG_NAME_SHORT 32

/* Offset 0. Written by the agent before the first process starts, unless another writer is
 * named. */
typedef struct spx_seg {
  uint64_t magic;
  uint32_t version;
  uint32_t maxprocs;    /* capacity, spawned processes included */
  uint64_t total_bytes; /* size of the (sparse) file */
  uint32_t nprocs;      /* processes started so far on this host; grows by spawn (agent) */
  uint32_t world_size;  /* of the first world */
  uint8_t job_id[16];
  uint64_t proc_off, proc_stride;   /* spx_proc[maxprocs] */
  uint64_t dirty_off, dirty_stride; /* one byte per sender, a row per receiver */
  /* spx_chan at chan_off + receiver*chan_row + sender*SPX_CHAN_BYTES */
  uint64_t chan_off, chan_row;
  uint64_t ring_off, ring_row; /* ring k of sender s at ring_off + s*ring_row + k*ring_bytes */
  uint32_t ring_bytes, rings_per_proc;
  uint64_t sdesc_off, sdesc_row; /* uint64_t[SPX_SDESC_PER_PROC] per sender */
  uint32_t ncpus;                /* processors that this job may use here (cpuset and quota) */
  uint32_t flags;                /* SPX_SEG_* */
  /* SPX_TIE_*, one byte per process, a row per holder: the processes that it can send to
   * (peers.c) */
  uint64_t held_off, held_stride;
  uint64_t share_off;     /* spx_dir_entry[SPX_SHARE_ENTRIES]; 0: there are none */
  uint32_t universe_size; /* MPI_UNIVERSE_SIZE */
  uint32_t host;          /* number of this host in the job, from 0 */
  /* of the job: both ends of a connection prove that they have it */
  uint8_t key[32];
  /* rows of SPX_DIAG_BYTES, one for each process; 0: there are none */
  uint64_t diag_off;
  /* own lines */
  /* +1 by the agent after it has published the end of a process (spx_proc.agent_state), or added
   * processes */
  uint32_t death_seq;
  /* version of the layout of a system of clusters; +1 by the agent, before death_seq */
  uint32_t layout_seq;
  uint8_t pad1[56];
  /* MPI_Abort: claimed by compare-and-swap 0 -> world rank + 1; then abort_code is the claimer's */
  uint32_t abort_claim;
  int32_t abort_code;
  /* bytes behind total_bytes that are taken (file_memory.c): any process adds what it takes */
  uint64_t win_bytes;
  uint64_t staging_bytes; /* of them, on staging buffers of multicasts (mcast_staging.c) */
  /* a spx_ways (ways.h): whether long messages of exchanges are streamed or got, which all
   * processes find out together */
  uint32_t way_cost[3], way_gets;
  uint64_t way_tried;
  uint32_t way_trials;
  uint8_t pad2[12];
  /* four spx_ways: the same of messages in one direction, by length, where each rank has a
   * processor (get.c) */
  uint32_t way_alone[32];
} spx_seg;

enum {
  /* --with-ft: survivors are notified of deaths, whatever their error handlers */
  SPX_SEG_WITH_FT = 1u,
  SPX_SEG_TCP =
      2u, /* SPX_TRANSPORTS=tcp: processes of one host, too, communicate over the network */
  SPX_SEG_HOSTS =
      4u /* the job has several hosts, though perhaps all its processes are on one so far */
};

/* The tie of a process to another one, in the row of the former; written by it alone. */
enum {
  SPX_TIE_NONE = 0,
  SPX_TIE_HELD = 1,
  SPX_TIE_PARTING =
      2 /* in MPI_Comm_disconnect of the last communicator that leads there, or has left it */
};

/* spx_proc.agent_state, written by the agent alone */
enum {
  SPX_AGENT_EMPTY = 0,
  SPX_AGENT_STARTED = 1,
  SPX_AGENT_DEAD = 2 /* died, and survivors go on */,
  SPX_AGENT_EXITED = 3 /* after MPI_Finalize, or never called MPI */
};
/* spx_proc.owner_state, written by the process alone */
enum {
  SPX_OWNER_NONE = 0,
  SPX_OWNER_INIT = 1,
  SPX_OWNER_FINALIZED = 2,
  SPX_OWNER_ABORTED = 3,
  SPX_OWNER_DONE = 4 /* in MPI_Finalize, of a cluster all of whose ranks are: a process that dies
                        then is not replaced */
};
/* spx_proc.sleeping: also on a socket, to which a datagram is sent (net.c) */
enum { SPX_SLEEPS_ON_SOCKETS = 2u };
/* spx_proc.ft_flags, written by the process alone */
enum {
  /* an error handler that returns is installed on a communicator of more than one process */
  SPX_FT_RETURNS = 1u,
  SPX_FT_MET = 2u /* spawned, and connected with its parents */
};

typedef struct spx_proc {
  /* line 0: the agent writes */
  uint32_t agent_state;
  /* the process that the agent started, in the agent's pid namespace; a wrapper perhaps. For
   * messages: see self_pid */
  uint32_t pid;
  uint32_t incarnation;
  uint32_t world_rank;
  uint32_t world_id;
  uint32_t exit_status; /* wait status, valid when DEAD or EXITED */
  /* number of the process in its job, never given twice: its contexts begin with it */
  uint32_t serial;
  /* home_job != 0: an external process, a process of that job (first eight bytes of its id) that is
   * connected with this one. world_id, world_rank and home_incarnation are then those in that job;
   * its bell and its descriptors are in its own job's file. */
  uint32_t home_incarnation;
  uint64_t home_job;
  uint32_t host;    /* that it runs on; a process of another host has this line only */
  uint16_t port;    /* TCP port on which it listens; 0: none */
  uint8_t addr[16]; /* its address: IPv6, or IPv4 mapped to it */
  /* 1 + the NUMA node of all its processors; 0: it is not bound to one, or on another host */
  uint8_t node;
  /* 1 + a number of the last-level cache that all of them share; 0: there is none */
  uint8_t cache;
  /* line 1: anyone may add to bell, and take sleeping back to 0 after that; only the owner writes
   * the rest */
  /* the futex of this process: every event source adds 1 and, if sleeping, wakes */
  uint32_t bell;
  uint32_t sleeping; /* set by the owner before it parks: or to SPX_SLEEPS_ON_SOCKETS; set to 0 by
                        the process that wakes it: one wake-up is enough */
  /* 1 while parked with messages queued for want of room: the process that makes room wakes it */
  uint32_t tx_blocked;
  /* the owner's pid as it sees itself, and the inode of its pid namespace (0: not known): */
  uint32_t self_pid;
  uint32_t pid_space; /* a pid means the same process in that namespace alone (spx_pid_of) */
  /* the agent writes: an I/O process that does not run; another one of its link is chosen
   * meanwhile */
  uint32_t hangs;
  /* how often it has announced how long it may be silent (MPISP_Alive), */
  uint32_t promises;
  /* for how long, and spx_stat_moves as it did; 0 ms: it takes that back */
  uint64_t promise_ms, promised_at;
  /* the agent writes: its position among those of its cluster that are started in the place of
   * ranks, from 1; 0: none of these, or not yet */
  uint32_t order;
  uint8_t pad1[12];
  /* line 2: the owner writes */
  uint32_t owner_state;
  uint32_t ft_flags;
  /* SPX_FN_ index of the MPI call that this process is parked in, else 0: for diagnosis */
  uint32_t call;
  uint32_t thread_level;
  /* address of a private copy of cma_nonce, for probing process_vm_readv */
  uint64_t cma_nonce_addr;
  uint64_t cma_nonce;
  uint32_t cpu; /* processor that it was last seen on, + 1; 0: it has not looked (load.c) */
  /* an I/O process of a system of clusters: the amount that it reports to hold (MPISP_Held) */
  uint32_t io_messages;
  uint64_t io_bytes;
  /* transparent takeover: 1 + the descriptor of its message log; 0: it has none (yet) */
  uint32_t msglog;
  uint8_t pad2[4];
  /* Its socket has the abstract name spx-bell- and this number, in 16 hexadecimal digits. It is
   * chosen by chance: a process of another user cannot take the name first. 0: it has no such
   * socket */
  uint64_t bell_name;
} spx_proc;

/* The control line of a channel. The data that follows holds records
 * (dataplane/transport/record.h). */
typedef struct spx_chan {
  uint64_t tail; /* receiver: bytes consumed in all buffers of this pair, over its whole life */
  /* receiver: eager payload bytes of this pair that left the unexpected memory; the sender's
   * credit */
  uint64_t matched;
  uint8_t pad[48];
  uint8_t data[SPX_CHAN_BYTES - SPX_LINE];
} spx_chan;

/* Where the shared memory of a communicator is. The maker of the context changes ctx from 0, the
 * last member to leave resets it. */
typedef struct spx_dir_entry {
  uint64_t ctx;
  /* 0: not chosen yet, by the first to use it; bit 0: some member could not get memory */
  uint64_t place;
} spx_dir_entry;

/* spx_diag_wait.what */
enum {
  SPX_WAITS_EVENT = 1,  /* for anything to happen */
  SPX_WAITS_RECV = 2,   /* a message */
  SPX_WAITS_SEND = 3,   /* its message to be received */
  SPX_WAITS_COLL = 4,   /* in a collective */
  SPX_WAITS_PROBE = 5,  /* a message, which it will not receive yet */
  SPX_WAITS_ANY = 6,    /* one of several requests */
  SPX_WAITS_REQUEST = 7 /* a request of another kind */
};

/* The object that a thread waits for. Written by the process alone, and only when it has slept for
 * a millisecond in vain. */
typedef struct spx_diag_wait {
  uint32_t version; /* odd while it is written */
  uint32_t fn;      /* SPX_FN_* of the call; 0: the thread does not wait */
  uint32_t tid;
  uint32_t what;  /* SPX_WAITS_* */
  uint64_t since; /* ns of CLOCK_MONOTONIC */
  uint64_t ctx;   /* of the communicator; 0: there is none */
  int32_t comm_rank, comm_size;
  /* in the communicator, MPI_ANY_SOURCE, or another negative number: no particular process */
  int32_t peer_rank;
  uint32_t peer;     /* its process; UINT32_MAX: no particular one */
  int32_t tag, root; /* root: -1: there is none */
  uint32_t coll;     /* collective: spx_coll_kind + 1 */
  uint32_t seq;      /* the number of the operation on the communicator */
  int64_t count;
  uint64_t bytes;
  /* pc, sp, bp, bx, r12 to r15 of the function that sleeps; pc 0: unknown */
  uint64_t registers[SPX_DIAG_REGISTERS];
  uint8_t comm[SPX_DIAG_NAME];
  uint8_t type[SPX_DIAG_NAME];
  uint64_t members[SPX_DIAG_MEMBERS]; /* processes that it may wait for: bits */
  uint32_t more_members;              /* of them: not in members */
  /* 1: in spx_proc.sleeping, too: that is 0 when it has been woken since; 0: another thread looks
   * for it */
  uint32_t parked;
} spx_diag_wait;

/* Its queues, as they were when it last went to sleep. */
typedef struct spx_diag_queue {
  uint32_t version; /* odd while it is written */
  uint32_t entries;
  uint32_t posted, unexpected, pending; /* numbers of all, of the user's communication */
  uint8_t pad[44];
} spx_diag_queue;

enum {
  SPX_QUEUE_POSTED = 1,
  SPX_QUEUE_UNEXPECTED = 2,
  SPX_QUEUE_SENT = 3,
  SPX_QUEUE_NO_ROOM = 4
}; /* spx_diag_entry.kind */
/* SPX_CHECK=1: what the process has begun in an operation of a communicator (bodies/check_coll.c).
 * Rows of processes of another host are written by the processes here that receive their
 * reports. */
typedef struct spx_diag_check {
  uint64_t ctx;
  uint32_t seq, version; /* version: odd while it is written; 0: never */
  uint32_t fn, kind;     /* SPX_FN_*, spx_coll_kind + 1 */
  int32_t root;          /* -1: there is none */
  uint32_t op;           /* predefined operation; 0: none */
  int64_t count;         /* -1: is not compared */
  uint64_t bytes;
  uint32_t basic;   /* basic type; 0: several */
  uint32_t request; /* 1: nonblocking or persistent */
  int32_t rank;     /* in the communicator */
  uint32_t pad;
} spx_diag_check;

/* Counts since the process began, for observers (docs/live.md) and for the tool information
 * interface. Written by the process alone, with plain stores: a reader sees each number whole. The
 * first line is written with every message, the others off the short path. */
typedef struct spx_counters {
  uint64_t sent, sent_bytes, received, received_bytes; /* messages, those of collectives included */
  uint64_t collectives;                                /* begun */
  uint64_t failures;                                   /* processes whose failure it has noticed */
  /* polled and yielded in waits, but for the first polls of each */
  uint64_t idle_ns;
  /* ns of CLOCK_MONOTONIC: since when it sleeps; 0: it does not */
  uint64_t asleep;
  uint64_t sleep_ns;                /* of sleeps that are over */
  uint64_t yields, sleeps, wakeups; /* while waiting; other processes woken */
  /* messages that no receive was posted for; bytes copied aside for them */
  uint64_t unexpected, unexpected_bytes;
  /* most of them at once, since the last look (capi/tool.go) */
  uint64_t unexpected_high;
  uint64_t announced;               /* messages sent that are not eager */
  uint64_t gets, got_bytes;         /* messages read out of the sender's memory */
  uint64_t streams, streamed_bytes; /* messages sent as a stream */
  uint64_t connections, rings;      /* processes sent to; rings opened */
  uint64_t net_refused;             /* connections ended because of what came */
  /* connections open now; made; closed to make room for others */
  uint64_t net_open, net_opened, net_evicted;
  /* frames of this process that relays forward; times that some were sent again */
  uint64_t net_relayed, net_again;
  uint64_t net_forwarded,
      net_forwarded_bytes; /* frames of other processes that this one has forwarded */
  /* bytes written to sockets straight from the buffers of messages */
  uint64_t net_direct;
  /* further streams made; bytes of messages written to such */
  uint64_t net_streams, net_further;
  uint64_t net_zerocopy,
      /* of net_direct: that the kernel was to send out of the buffers; that it copied after all */
      net_zerocopy_copied;
  uint64_t polls; /* looks for messages in calls that do not wait */
  /* times that the system began to keep short messages until those before were acknowledged */
  uint64_t net_bursts;
  /* pairs that a fabric has come to carry; messages that came over it; those of strangers, or of
   * connections that had ended, which were dropped */
  uint64_t fabric_pairs, fabric_received, fabric_refused;
} spx_counters;

typedef struct spx_diag_entry {
  uint32_t kind;
  uint32_t peer; /* process, UINT32_MAX: any */
  int32_t rank, tag;
  uint64_t ctx, bytes;
  uint8_t comm[SPX_DIAG_NAME_SHORT];
} spx_diag_entry;

#ifndef SPX_GENERATING
_Static_assert(sizeof(spx_diag_wait) <= SPX_DIAG_STRIDE &&
                   SPX_DIAG_WAITS * SPX_DIAG_STRIDE <= SPX_DIAG_QUEUES,
               "diag");
_Static_assert(sizeof(spx_diag_queue) == SPX_LINE && sizeof(spx_diag_entry) == SPX_LINE, "diag");
_Static_assert(sizeof(spx_diag_check) == SPX_LINE, "diag");
_Static_assert(SPX_DIAG_CHECKED + SPX_DIAG_CHECKS * SPX_LINE == SPX_DIAG_BYTES, "diag");
_Static_assert(SPX_DIAG_QUEUES + (1 + SPX_DIAG_ENTRIES) * SPX_LINE <= SPX_DIAG_COUNTS, "diag");
_Static_assert(SPX_DIAG_COUNTS % SPX_LINE == 0 &&
                   SPX_DIAG_COUNTS + sizeof(spx_counters) <= SPX_DIAG_CHECKED,
               "diag");
_Static_assert(sizeof(spx_proc) == 3 * SPX_LINE, "spx_proc");
_Static_assert(sizeof(spx_chan) == SPX_CHAN_BYTES, "spx_chan");
#endif
#endif
