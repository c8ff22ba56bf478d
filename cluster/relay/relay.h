/* relay.h - spx-iop, the relay that comes with libspx: an I/O process of a system of clusters
 * that forwards messages. docs/systems.md.
 *
 *   main.c    options, and what the worlds of this process are
 *   route.c   the destination of a message
 *   queue.c   messages not yet forwarded: order, bounds, back-pressure
 *
 * It is an ordinary MPI program: it uses nothing that a user's I/O process could not. */
#ifndef SPX_RELAY_H
#define SPX_RELAY_H
#include <mpi.h>
#include <mpi-ext.h>
#include <mpisp.h>
#include <stdbool.h>
#include <stddef.h>

#define WORLDS_MAX 256

typedef enum { ROUTE_SAME, ROUTE_SPREAD, ROUTE_TAG, ROUTE_DEMAND } route_kind;

typedef struct {
  MPI_Comm comm;
  int cluster; /* index in the system */
  int size;
  int tos; /* worlds that messages from there are for */
  int to[WORLDS_MAX];
  int turn;     /* of those */
  int next;     /* rank, of messages that are spread over its ranks */
  int *waiting; /* by rank: messages on their way there */
  bool heals;   /* ranks that die are replaced: messages for them are kept */
  bool *lost;   /* by rank: not so, it is dead for good */
  bool hurt;    /* a message for it has found its rank there no more */
  long asked;   /* round of the last query */
  bool told;    /* that messages are dropped */
} world;

typedef struct {
  int worlds;
  world world[WORLDS_MAX];
  route_kind route;
  /* messages go to all the clusters that they are for, not to one of them in turn */
  bool copy;
  MPI_Count limit; /* bytes that may be held */
  long round;      /* of looking at everything */
  long passed;     /* messages */
  MPI_Count most;  /* bytes that were held at most */
  bool verbose;
} relay;

/* ---- route.c ---- */
/* The world that messages of a cluster have come from; ends the program when there is none. */
world *relay_from(relay *r, int cluster);
/* Where a message goes. Of one that is kept another relay may have been before, or may come after
 * this one, and both are to come to the same: so its number decides, or if that is not so, it is to
 * be assigned. */
typedef struct {
  world *to; /* NULL: all are gone */
  int rank;
  bool assign;
} choice;
/* One of the clusters that messages of from are for, and that have ranks alive. */
choice relay_choose(relay *r, world *from, const MPI_Status *message);
/* A message for a rank of w that has failed may be sent again: another process takes its place, or
 * has done so meanwhile. One that has left is not replaced. */
bool relay_may_take(const world *w, int rank);
/* All ranks of w have left MPI, or are dead and will not be replaced. */
bool relay_is_gone(world *w);
/* The rank of w for a message that goes to all clusters. */
choice relay_choose_rank(const relay *r, world *w, const MPI_Status *message);

/* ---- main.c ---- */
/* Queries whether dead ranks of w are replaced now: a cluster may be abandoned, and return. */
void relay_ask_heals(world *w);

/* ---- queue.c ---- */
/* Hands messages on until no process is left that could send one, and all have been taken over. */
void relay_run(relay *r);

/* Ends the system: something is wrong that cannot be mended. */
_Noreturn void relay_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
#endif
