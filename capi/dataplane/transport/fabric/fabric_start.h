/* fabric_start.h - what the engine calls to put the bytes of pairs on a fabric (libfabric). The
 * engine decides which (net/fabric). Where libfabric's headers were missing at the build, load
 * reports it, and nothing else is called. */
#ifndef SPX_FABRIC_START_H
#define SPX_FABRIC_START_H
#include <stdbool.h>
#include <stdint.h>

/* What libfabric offers: a provider with a domain, as a network interface. */
typedef struct {
  char provider[64], domain[64], network[64];
  uint32_t protocol, format;
  uint8_t address[16]; /* of the interface, IPv4 as part of IPv6 (::ffff:0:0/96) */
  bool has_address;
  bool down;        /* the link of the device */
  uint64_t speed;   /* of it, bits/s; 0: unknown */
  uint64_t longest; /* message */
} spx_fabric_row;

/* Loads the library. NULL, or what is wrong; *version: FI_VERSION. */
const char *spx_fabric_load(uint32_t *version);
/* What it offers: rows of malloc, *n of them. 0, or an errno of libfabric. It may take long. */
int spx_fabric_list(spx_fabric_row **rows, uint32_t *n);
/* Opens that row, for so many processes. sleeps: it has a descriptor to sleep on. 0, or an errno of
 * libfabric; *call: which call has failed. */
int spx_fabric_open(uint32_t row, uint32_t processes, bool sleeps, const char **call);
/* Pairs may go over it from now on. */
void spx_fabric_begin(void);
/* Of an errno of libfabric. */
const char *spx_fabric_text(int error);
/* Moves what is under way while the program makes no calls of MPI. Any thread. */
void spx_fabric_tick(void);
/* Looks for messages that do not arrive, once a second. Any thread. */
void spx_fabric_watch(void);
/* Why the last pair could not use it, or what it has failed with, as a text; "": nothing. */
const char *spx_fabric_said(void);
#endif
