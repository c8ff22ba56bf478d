/* settings.h - the settings of libspx: environment variables, which are control variables of MPI_T
 * as well. The table is made from api/settings.tsv; a new setting is a row there, and a member of
 * spx_settings if the data plane reads it often. */
#ifndef SPX_SETTINGS_H
#define SPX_SETTINGS_H
#include <stdbool.h>
#include <stdint.h>
#include "spx.h"
#include "zz_settings.h"

/* kind */
enum { SPX_SK_COUNT = 1, SPX_SK_BYTES, SPX_SK_SWITCH, SPX_SK_TEXT, SPX_SK_CHOICE };
enum {
  SPX_SW_ANY = 1 /* at any time */,
  SPX_SW_START /* until MPI starts */,
  SPX_SW_LOAD
}; /* when it may change */
typedef struct spx_setting {
  const char *name, *area, *description;
  const char *was; /* its name before, which is still read; NULL: it had no other */
  uint8_t kind, when, width;
  int scope, level; /* MPI_T_SCOPE_*, MPI_T_VERBOSITY_* */
  uint64_t preset, min, max;
  bool automatic;             /* a number that may be "auto", which is 0 */
  const char *const *choices; /* of a choice, NULL at the end; 0 is "auto" */
  /* where the value is while MPI runs: width bytes; NULL: read when it is needed */
  void *field;
} spx_setting;
SPX_HIDDEN extern const spx_setting spx_setting_table[SPX_SETTINGS];
#define SPX_SETTING_TEXT_MAX 256 /* bytes of a text that is written by MPI_T, with its 0 */

/* While a job's memory file is attached: do its ranks outnumber its processors? NULL: none is.
 * segment.c sets it. */
SPX_HIDDEN extern bool (*spx_setting_crowded)(void);

/* The value that a number or switch begins with: what MPI_T has written, else the environment's,
 * else preset; within its bounds, and at most limit. No value at all is fatal. */
SPX_HIDDEN uint64_t spx_setting_begin(spx_setting_id id, uint64_t preset, uint64_t limit);
/* The value of a text or choice (its name): what MPI_T has written, else the environment's; "":
 * none. */
SPX_HIDDEN const char *spx_setting_text(spx_setting_id id);
/* The name before of a setting that is set by that alone; NULL: this one is not. */
SPX_HIDDEN const char *spx_setting_was(spx_setting_id id);
/* Where its value comes from: MPI_T, the environment, the machine's table; else it is preset. */
typedef enum {
  SPX_FROM_NOTHING,
  SPX_FROM_TOOL,
  SPX_FROM_ENVIRONMENT,
  SPX_FROM_TABLE
} spx_setting_source;
SPX_HIDDEN spx_setting_source spx_setting_from(spx_setting_id id);
/* Ends the program with a message if the choice is none. */
SPX_HIDDEN void spx_setting_check(spx_setting_id id);
/* The value now of a number, switch or choice (its index). */
SPX_HIDDEN uint64_t spx_setting_value(spx_setting_id id);
typedef enum { SPX_WRITTEN, SPX_NOT_NOW, SPX_NEVER, SPX_NO_VALUE } spx_write_result;
/* What MPI_T_cvar_write does. */
SPX_HIDDEN spx_write_result spx_setting_write(spx_setting_id id, uint64_t value);
SPX_HIDDEN spx_write_result spx_setting_write_text(spx_setting_id id, const char *text);
/* So many texts have been written while MPI ran. */
SPX_HIDDEN uint32_t spx_setting_changes(void);
/* By name; SPX_SETTINGS: there is none. */
SPX_HIDDEN spx_setting_id spx_setting_find(const char *name);
/* SPX_STREAM_MAX where each rank has a processor, unless it is set */
#define SPX_STREAM_ALONE (1u << 30)

/* Settings that are read often, filled in at attach; MPI_T may change them later. A member is a row
 * of api/settings.tsv. */
typedef struct {
  uint32_t eager_max;       /* bytes: larger messages go by the get protocol */
  uint32_t fragment;        /* bytes of a DATA record */
  uint32_t fragment_packed; /* the same of data that are not contiguous */
  uint64_t stream_max;      /* bytes: messages up to this size are streamed rather than got */
  uint64_t stream_both;     /* the same while this process has an announced message of its own */
  /* bytes: messages of an exchange from this size on may be got rather than streamed (get.c) */
  uint64_t apart_get;
  uint64_t net_eager_max; /* bytes: eager_max for messages over a connection */
  uint64_t direct_min;    /* bytes: streams of this size on go to sockets from the user's buffer */
  /* to a process, for long messages; 1: the connection alone; 0: as many as are faster */
  uint32_t streams;
  uint64_t past_cache; /* bytes: messages from this size on are stored past the caches */
  uint32_t copy_min; /* bytes: copies of this size on are made by loops of this library (copy.c) */
  uint64_t copy_max; /* bytes: but not those larger than this */
  /* bytes: copies of this size on are timed, and may go past the caches (into.h) */
  uint32_t apart_min;
  uint64_t apart_max;   /* bytes: messages up to this size */
  uint32_t apart_every; /* one of so many copies is timed */
  uint64_t apart_trial; /* us between trials of the other way, at most */
  uint32_t cma;         /* 0: never process_vm_readv */
  /* 1: a thread of its own carries on what is under way (bodies/background.c) */
  uint32_t progress;
  uint32_t spin;      /* empty polls before yielding, when processors are not outnumbered */
  uint32_t spin_busy; /* the same while other processes want the processors */
  uint32_t yield;     /* yields before parking */
  /* bytes kept for other clusters: with more of them, a send is complete when it was accepted */
  uint64_t kept_max;
  uint64_t credit;        /* bytes of records a pair may have in unexpected memory */
  uint64_t mcast_staging; /* bytes of copies of long multicasts on this host */
  uint64_t mcast_chain;   /* bytes: multicasts from this size on go from host to host */
  uint64_t mcast_parts;   /* bytes: as long for each host, they go in parts; 0: none do */
  uint32_t mcast_each;    /* members of a host that a master hands a message to itself */
  uint64_t mcast_fork; /* bytes: those shorter than this for each host go from each host to two */
  uint32_t die_after;  /* steps of creations until this process kills itself; 0: never */
  uint32_t wrap;       /* 1: counters begin just before their end (spx_count_from) */
} spx_settings;
SPX_HIDDEN extern spx_settings spx_set;

/* Where a counter of so many bits begins: at 0 or, with SPX_WRAP=1, so far before its end.
 * docs/decisions/counters.md. */
static inline uint64_t spx_count_from(unsigned bits, uint64_t before)
{
  return spx_set.wrap ? ((uint64_t)1 << bits) - before : 0;
}
#endif
