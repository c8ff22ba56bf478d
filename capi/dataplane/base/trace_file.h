/* trace_file.h - the file into which a process records its MPI calls: spxrun --trace and --profile
 * (docs/tracing.md).
 *
 * The file is mapped, and written by its process alone; spxrun reads it when the process has ended,
 * in whatever way. Its parts:
 *   head            SPX_TRACE_HEAD bytes
 *   libraries       SPX_TRACE_MAPS bytes of text: the program and its libraries, as /proc/self/maps
 *   cost of calls   SPX_TRACE_SITES entries: a table by call and place, found by hashing; complete,
 *                   whatever is dropped below
 *   sent messages   peers entries, by receiver
 *   records         room entries, the last ones kept: record n is at n % room
 *
 * launch/trace/zz_layout.go is generated from this file by shm/layoutgen. */
#ifndef SPX_TRACE_FILE_H
#define SPX_TRACE_FILE_H
#include <stdint.h>

#define SPX_TRACE_MAGIC   0x3265636172747873 /* "sxtrace2" */
#define SPX_TRACE_HEAD    4096
#define SPX_TRACE_MAPS    61440
#define SPX_TRACE_SITES   1024
#define SPX_TRACE_SIZES   40 /* messages by size: 0, 1, 2-3, 4-7 ... bytes */
#define SPX_TRACE_ARGS    8
#define SPX_TRACE_PROGRAM 256

/* spx_trace_record.kind */
enum {
  SPX_TRACE_NONE = 0,
  SPX_TRACE_CALL = 1,
  SPX_TRACE_SENT = 2,  /* a message has left */
  SPX_TRACE_GOT = 3,   /* a receive has found its message */
  SPX_TRACE_DEATH = 4, /* this process has noticed the end of another one */
  SPX_TRACE_CAST = 5,  /* a multicast has left, to one of its members */
  SPX_TRACE_CAUGHT = 6 /* a receive has found a multicast */
};

/* spx_trace_record.flags */
enum {
  SPX_TRACE_COLLECTIVE = 1, /* blocking, of a communicator: number counts them */
  SPX_TRACE_WORLD = 4,      /* the communicator is MPI_COMM_WORLD */
  SPX_TRACE_SELF = 8,       /* MPI_COMM_SELF */
  SPX_TRACE_POLLS = 2 /* calls of this kind that follow each other at one place are one record */
};

typedef struct spx_trace_record {
  uint64_t begin,
      /* ns of CLOCK_MONOTONIC; end 0: the call has not returned. Of a message: begin is when it
         passed */
      end;
  uint16_t kind;
  uint16_t fn; /* SPX_FN_*; of a message: of the call in which it passed */
  int32_t error;
  uint32_t tid;
  uint8_t flags;
  uint8_t args;              /* in arg */
  uint8_t algorithm, reason; /* of a collective that has begun: core/coll.Choice; 0: it is none */
  uint64_t site; /* where it returns to in the program; of a message: its number between the two */
  uint64_t ctx;  /* of the communicator; 0: none */
  uint32_t number;
  uint32_t times; /* calls that this record stands for */
  uint64_t bytes;
  /* Of a call: arguments that are no addresses, in their order, but for the communicator; of a
   * message: the other process, tag, rank in the communicator */
  int64_t arg[SPX_TRACE_ARGS];
} spx_trace_record;

/* The calls of a function from one place. */
typedef struct spx_trace_site {
  uint64_t site;
  uint32_t fn; /* 0: free */
  uint32_t errors;
  uint64_t calls, ns, max, min, bytes;
  uint64_t bytes_max;
} spx_trace_site;

typedef struct spx_trace_peer {
  uint64_t messages, bytes; /* sent */
} spx_trace_peer;

typedef struct spx_trace_head {
  uint64_t magic;
  uint32_t proc, rank, world, incarnation, pid, host;
  /* ns of CLOCK_MONOTONIC: MPI_Init was entered, MPI_Finalize was left (0: it was not) */
  uint64_t began, ended;
  uint64_t records; /* written so far, those that are not kept any more included */
  uint64_t room;    /* for records; 0: none are written */
  uint64_t refused; /* records for which the disk had no room */
  uint64_t sites_off, peers_off, records_off;
  uint32_t peers, maps; /* maps: bytes of text */
  uint64_t ns;          /* in MPI, all threads */
  uint64_t sites_lost;  /* calls that found no entry in the table */
  uint64_t got, got_bytes;
  uint64_t sizes[SPX_TRACE_SIZES]; /* messages sent */
  uint8_t program[SPX_TRACE_PROGRAM];
} spx_trace_head;

#ifndef SPX_GENERATING
_Static_assert(sizeof(spx_trace_record) == 128 && sizeof(spx_trace_site) == 64 &&
                   sizeof(spx_trace_peer) == 16,
               "trace");
_Static_assert(sizeof(spx_trace_head) <= SPX_TRACE_HEAD, "trace");
#endif
#endif
