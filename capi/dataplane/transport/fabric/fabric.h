/* fabric.h - what the files of this folder share: the endpoint, and messages. */
#ifndef SPX_FABRIC_H
#define SPX_FABRIC_H
#if defined __has_include
#if __has_include(<rdma/fabric.h>)
#define SPX_HAS_FABRIC 1
#endif
#endif
#ifdef SPX_HAS_FABRIC
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

/* buffers.c: from a list of free ones, which grows; NULL: none. The error of the last failure. */
SPX_HIDDEN spx_fabric_buffer *spx_fabric_take(void);
SPX_HIDDEN void spx_fabric_put(spx_fabric_buffer *b);
SPX_HIDDEN int spx_fabric_shortage(void);
/* All of them, when the endpoint is closed. */
SPX_HIDDEN void spx_fabric_free_all(void);
#endif
#endif
