/* comm_repair.c - spare processes: MPIX_Comm_repair and MPIX_Comm_dismiss (docs/checkpoint.md).
 *
 * The processes of the user's communicator, those that work and the spares, have a communicator of their own, on which nothing happens but
 * this: somebody revokes it, and all who live come to an agreement on it, out of whatever they do: the spares, which wait there, those
 * that have seen a failure, and those that are done. Are all of them done, the spares go home. Else those who live form the next such
 * communicator, and out of that the next active one. Whether that has come about is agreed upon, too; if not, it is done again.
 *
 * It stands on the library's public functions, and on one agreement that shrinks as well (spx_dyprc_decide). */
#define _GNU_SOURCE
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include "dp.h"
#include "dyprc.h"
#include "error.h"
#include "repair.h"
#include "shim.h"

/* What somebody who was started late is told, in base's ranks: whom it meets, and who works. It stays until the repair ends: nobody waits for a
 * process that may die first. */
typedef struct told {
  struct told *next;
  int n, words[];
} told;

typedef struct spx_repair {
  spx_comm *base;  /* the user's communicator, referenced */
  MPI_Comm pool;   /* all that live; never used for messages */
  MPI_Comm active; /* MPI_COMM_NULL at spares */
  int *places;     /* for each rank of active the rank in base that has it */
  int nplaces;
  int role;
  bool ready; /* a repair that MPIX_Comm_dismiss has taken part in: the next MPIX_Comm_repair returns it */
  int cold; /* of base, the last: each may be started when some have died, in any order, which the launcher says (spx_proc.order) */
  int joined; /* so many of these, in that order, have been asked to meet */
  struct told *told;
  bool together; /* those of the next active one do something before it counts: SPX_IN_TAKEOVER_TOGETHER */
  struct spx_repair *next;
} repair;
static repair
    *repairs; /* the program's calls for one communicator do not meet; those for several may: under spx's own lock */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static repair *find(const spx_comm *base)
{
  pthread_mutex_lock(&lock);
  repair *p = repairs;
  while (p && p->base != base) p = p->next;
  pthread_mutex_unlock(&lock);
  return p;
}

static void forget(repair *p)
{
  pthread_mutex_lock(&lock);
  repair **at = &repairs;
  while (*at != p) at = &(*at)->next;
  *at = p->next;
  pthread_mutex_unlock(&lock);
  if (p->active != MPI_COMM_NULL) PMPI_Comm_free(&p->active);
  if (p->pool != MPI_COMM_NULL) PMPI_Comm_free(&p->pool);
  spx_unref(SPX_K_COMM, &p->base->o);
  free(p->places);
  for (told *m; (m = p->told);) {
    p->told = m->next;
    free(m);
  }
  free(p);
}

/* The ranks in base of pool's processes, in order. */
static int ranks_in_base(const repair *p, MPI_Comm pool, int *ranks, int n)
{
  MPI_Group all = MPI_GROUP_NULL, here = MPI_GROUP_NULL;
  int *own = malloc((size_t)n * sizeof *own);
  int err = own ? PMPI_Comm_group((MPI_Comm)(uintptr_t)p->base->o.handle, &all) : MPI_ERR_NO_MEM;
  for (int i = 0; own && i < n; i++) own[i] = i;
  if (err == MPI_SUCCESS) err = PMPI_Comm_group(pool, &here);
  if (err == MPI_SUCCESS) err = PMPI_Group_translate_ranks(here, n, own, all, ranks);
  if (all != MPI_GROUP_NULL) PMPI_Group_free(&all);
  if (here != MPI_GROUP_NULL) PMPI_Group_free(&here);
  free(own);
  return err;
}

/* Who takes which place: those that live keep theirs, spares get those of the dead; without spares the others close up. places and *n: in
 * base's ranks, by rank of the active communicator. living: n ranks in base, ascending. Everybody comes to the same. */
static void assign(int *places, int *n, const int *living, int nliving, int size, char *mark)
{
  enum { DEAD, SPARE, WORKS };
  memset(mark, DEAD, (size_t)size);
  for (int i = 0; i < nliving; i++) mark[living[i]] = SPARE;
  for (int i = 0; i < *n; i++)
    if (mark[places[i]] == SPARE) mark[places[i]] = WORKS;
  int spare = 0, kept = 0;
  for (int i = 0; i < *n; i++) {
    if (mark[places[i]] == DEAD) {
      while (spare < size && mark[spare] != SPARE) spare++;
      if (spare == size) continue;
      mark[spare] = WORKS;
      places[kept++] = spare++;
    } else
      places[kept++] = places[i];
  }
  *n = kept;
}

/* Makes the active communicator of pool. next: as p->places, after the repair. */
static int make_active(const repair *p, MPI_Comm pool, int *next, int *nnext, MPI_Comm *active)
{
  int n, err = PMPI_Comm_size(pool, &n);
  int *living = malloc((size_t)n * sizeof *living);
  char *mark = malloc((size_t)p->base->size);
  if (err == MPI_SUCCESS && (!living || !mark)) err = MPI_ERR_NO_MEM;
  if (err == MPI_SUCCESS) err = ranks_in_base(p, pool, living, n);
  if (err == MPI_SUCCESS) {
    memcpy(next, p->places, (size_t)p->nplaces * sizeof *next);
    *nnext = p->nplaces;
    assign(next, nnext, living, n, p->base->size, mark);
    int place = 0;
    while (place < *nnext && next[place] != p->base->rank) place++;
    err = PMPI_Comm_split(pool, place < *nnext ? 0 : MPI_UNDEFINED, place, active);
  }
  free(living);
  free(mark);
  return err;
}

static void take_over(repair *p, MPI_Comm active, int *next, int nnext)
{
  bool had = p->role != MPIX_ROLE_SPARE, first = p->role == MPIX_ROLE_INITIAL && p->active == MPI_COMM_NULL;
  p->role = active == MPI_COMM_NULL ? MPIX_ROLE_SPARE
            : first                 ? MPIX_ROLE_INITIAL
            : had                   ? MPIX_ROLE_SURVIVOR
                                    : MPIX_ROLE_REPLACEMENT;
  if (p->active != MPI_COMM_NULL) PMPI_Comm_free(&p->active);
  p->active = active;
  memcpy(p->places, next, (size_t)nnext * sizeof *next);
  p->nplaces = nnext;
}

/* The position of a member of base among those that are started late, in the order in which they are, from 1; 0: it is none of them, or not yet. */
static int order_of(const repair *p, int rank)
{
  return (int)__atomic_load_n(&spx_proc_of(p->base->peer[rank])->order, __ATOMIC_ACQUIRE);
}

/* The n-th of those that are started late, by its rank in base; -1: there is none yet. */
static int late(const repair *p, int n)
{
  for (int r = p->base->size - p->cold; r < p->base->size; r++)
    if (order_of(p, r) == n) return r;
  return -1;
}

/* How many of those that are started late there are, or were. The launcher says so before it tells of the death that is the reason. */
static int woken(const repair *p)
{
  int n = p->joined;
  while (n < p->cold && late(p, n + 1) >= 0) n++;
  return n;
}

static int ascending(const void *x, const void *y)
{
  int a = *(const int *)x, b = *(const int *)y;
  return (a > b) - (a < b);
}

enum { TAG_TOLD = 1 };

/* The pool of those in pool, and of those up to number now that have been started since. *made: all of them have it, or none. */
static int invite(repair *p, MPI_Comm pool, int now, MPI_Comm *made)
{
  int n, err = PMPI_Comm_size(pool, &n), fresh = now - p->joined, first = late(p, p->joined + 1);
  if (err != MPI_SUCCESS) return err;
  told *m = malloc(sizeof *m + (size_t)(4 + n + fresh + p->nplaces) * sizeof m->words[0]);
  if (!m) return MPI_ERR_NO_MEM;
  m->n = 4 + n + fresh + p->nplaces;
  m->next = p->told;
  p->told = m;
  int *w = m->words;
  w[0] = n + fresh;
  w[1] = p->nplaces;
  w[2] = now;
  w[3] = first;
  err = ranks_in_base(p, pool, w + 4, n);
  for (int i = 0; i < fresh; i++) w[4 + n + i] = late(p, p->joined + 1 + i);
  qsort(w + 4, (size_t)(n + fresh), sizeof *w, ascending);
  memcpy(w + 4 + n + fresh, p->places, (size_t)p->nplaces * sizeof *w);
  spx_frame f = {.fn = SPX_IN_TAKEOVER_POOL};
  f.a[0].p = w + 4;
  f.a[1].i = n + fresh;
  f.a[2].i = first;
  f.a[3].p = made;
  if (err == MPI_SUCCESS) err = spx_go_internal(&f);
  /* All of them tell it: any one of them may die. In order, so that who is told before has been told when a later one has. */
  for (int i = 0; err == MPI_SUCCESS && i < fresh; i++) {
    MPI_Request r;
    if (PMPI_Isend(w, m->n, MPI_INT, late(p, p->joined + 1 + i), TAG_TOLD, (MPI_Comm)(uintptr_t)p->base->o.handle,
                   &r) == MPI_SUCCESS)
      PMPI_Request_free(&r);
  }
  p->joined = now;
  return err;
}

/* Waits until the launcher has told this host, too, of those up to number now: it has told another one, whose processes have said so.
 * False: a process of pool has died meanwhile. It may have been the only one that was told, by a launcher that was lost with it, and the one
 * that decides now knows nothing of it: those who live are to ask each other again. Nothing else ends the wait: without the agent of its
 * host no process lives, and agents find each other dead in their own time. */
static bool hears_of(const repair *p, MPI_Comm pool, int now)
{
  const spx_comm *c = (const spx_comm *)spx_get(SPX_K_COMM, pool);
  while (woken(p) < now) {
    uint32_t ticket = spx_ticket();
    spx_progress();
    if (woken(p) >= now) break;
    if (atomic_load(&c->revoked) || spx_comm_failures(c) > 0) return false;
    spx_wait_event(ticket, spx_now_ns() + 2000000);
  }
  return true;
}

/* Those in *pool, who live, agree on who has been started since, when all of them have heard of these; it becomes the
 * pool with these. If one of them has died by the end of the agreement, another one is started for it, too: it is
 * waited for as well. */
static int grow(repair *p, MPI_Comm *pool)
{
  enum { PATIENCE_NS = 3000000 };
  for (;;) {
    int n = 0, now = 0, mine, err = PMPI_Comm_size(*pool, &n);
    uint64_t until = spx_now_ns() + 1000ull * PATIENCE_NS;
    if (err != MPI_SUCCESS) return err;
    while ((mine = woken(p)) < p->cold && n + mine - p->joined < p->nplaces && spx_now_ns() < until) {
      uint32_t ticket = spx_ticket();
      spx_progress();
      spx_wait_event(ticket, spx_now_ns() + 2000000);
    }
    int heard = PMPI_Allreduce(&mine, &now, 1, MPI_INT, MPI_MAX, *pool);
    if (heard != MPI_SUCCESS) PMPIX_Comm_revoke(*pool);
    MPI_Comm left = MPI_COMM_NULL, made = MPI_COMM_NULL;
    uint32_t flags = heard == MPI_SUCCESS && hears_of(p, *pool, now) ? SPX_DECIDE_GO : 0;
    err = spx_dyprc_decide(*pool, &flags, &left);
    if (err != MPI_SUCCESS) return err;
    PMPI_Comm_free(pool);
    *pool = left;
    if (!(flags & SPX_DECIDE_GO)) continue;
    int there = 0;
    if ((err = PMPI_Comm_size(left, &there)) != MPI_SUCCESS) return err;
    if (there < n && now < p->cold && there + now - p->joined < p->nplaces) continue;
    if (now <= p->joined) return MPI_SUCCESS;
    if ((err = invite(p, left, now, &made)) != MPI_SUCCESS) return err;
    PMPI_Comm_free(pool);
    *pool = made;
    return MPI_SUCCESS;
  }
}

/* Those that will work meet on active, when all have it: one that has it would wait for one that lives, has got an error instead, and so cannot revoke it. made: what has come of making it. */
static int meet_on(MPI_Comm pool, MPI_Comm active, int made)
{
  int all = made == MPI_SUCCESS;
  PMPIX_Comm_agree(pool, &all); /* its error may be that some have died: seen below, by those who need them */
  if (made == MPI_SUCCESS && !all) made = MPIX_ERR_PROC_FAILED;
  if (made != MPI_SUCCESS || active == MPI_COMM_NULL) return made;
  spx_frame f = {.fn = SPX_IN_TAKEOVER_TOGETHER};
  f.a[0].p = (void *)active;
  made = spx_go_internal(&f);
  if (made == MPI_SUCCESS) return made;
  PMPIX_Comm_revoke(active);
  PMPIX_Comm_revoke(pool);
  return made;
}

/* pool has those that live, by agreement: out of it comes the next active communicator, which all of them have, or none. */
static int form_with(repair *p, MPI_Comm pool, bool grows)
{
  int err = MPI_SUCCESS, nnext = 0, *next = malloc(((size_t)p->base->size + 1) * sizeof *next);
  if (!next) return MPI_ERR_NO_MEM;
  while (err == MPI_SUCCESS) {
    MPI_Comm left = MPI_COMM_NULL, active = MPI_COMM_NULL;
    if (grows && (err = grow(p, &pool)) != MPI_SUCCESS) break;
    grows = p->joined < p->cold;
    if (p->pool != MPI_COMM_NULL) PMPI_Comm_free(&p->pool);
    p->pool = pool;
    int made = make_active(p, pool, next, &nnext, &active);
    if (made != MPI_SUCCESS) PMPIX_Comm_revoke(pool); /* nobody waits for who could not */
    if (p->together) made = meet_on(pool, active, made);
    uint32_t flags = made == MPI_SUCCESS ? SPX_DECIDE_CALM | SPX_DECIDE_GO : 0;
    err = spx_dyprc_decide(pool, &flags, &left);
    if (err == MPI_SUCCESS && flags & SPX_DECIDE_GO) {
      take_over(p, active, next, nnext);
      break;
    }
    if (active != MPI_COMM_NULL) {
      PMPIX_Comm_revoke(active);
      PMPI_Comm_free(&active);
    }
    pool = left;
  }
  free(next);
  return err;
}

static int form(repair *p, MPI_Comm pool) { return form_with(p, pool, p->joined < p->cold); }

enum { HOME = SPX_DECIDE_CALM };

/* All who live meet on the pool. flags: HOME: this process is done. *home: all are. Else there is another active communicator. */
static int meet(repair *p, uint32_t flags, bool *home)
{
  MPI_Comm pool = MPI_COMM_NULL;
  PMPIX_Comm_revoke(p->pool);
  int err = spx_dyprc_decide(p->pool, &flags, &pool);
  *home = err == MPI_SUCCESS && flags & HOME;
  return err == MPI_SUCCESS && !*home ? form(p, pool) : err;
}

/* A spare waits until somebody revokes the pool. */
static void wait_for_call(const repair *p)
{
  const spx_comm *pool = (const spx_comm *)spx_get(SPX_K_COMM, p->pool);
  while (!atomic_load(&pool->revoked)) {
    uint32_t ticket = spx_ticket();
    spx_progress();
    if (!atomic_load(&pool->revoked)) spx_wait_event(ticket, 0);
  }
}

/* No memory: NULL. The first work of comm's processes work, the others are spares. */
static repair *new_repair(spx_comm *comm, int work)
{
  repair *p = calloc(1, sizeof *p);
  if (p) p->places = malloc((size_t)comm->size * sizeof *p->places);
  if (!p || !p->places) {
    free(p);
    spx_detail("no memory for the places of %d processes", comm->size);
    return NULL;
  }
  p->active = p->pool = MPI_COMM_NULL;
  p->nplaces = work;
  for (int i = 0; i < p->nplaces; i++) p->places[i] = i;
  p->base = comm;
  p->role = comm->rank < p->nplaces ? MPIX_ROLE_INITIAL : MPIX_ROLE_SPARE;
  spx_ref(&comm->o);
  pthread_mutex_lock(&lock);
  p->next = repairs;
  repairs = p;
  pthread_mutex_unlock(&lock);
  return p;
}

spx_repair *spx_repair_open(spx_comm *base, const spx_comm *pool, int work, int cold)
{
  repair *p = new_repair(base, work);
  if (!p) return NULL;
  p->pool = (MPI_Comm)(uintptr_t)pool->o.handle;
  p->cold = cold;
  p->together = true;
  return p;
}

static int64_t result(int err, MPI_Comm comm, bool flag)
{
  return (int64_t)((uint64_t)(uintptr_t)comm << 32 | (flag ? 1u << 31 : 0) | (uint32_t)err);
}

/* It has died, and no other process needs it: all who see it, on the same host, see it alike. */
static bool was_done(const repair *p, uint32_t proc)
{
  for (int i = 0; i < p->base->size; i++)
    if (spx_proc_of(p->base->peer[i])->host != spx_segment->host) return false;
  return __atomic_load_n(&spx_proc_of(proc)->owner_state, __ATOMIC_ACQUIRE) == SPX_OWNER_DONE;
}

/* All who work are in pool, or were done. */
static bool are_all_there(const repair *p, MPI_Comm pool, bool *all)
{
  int n, err = PMPI_Comm_size(pool, &n);
  int *living = err == MPI_SUCCESS ? malloc((size_t)n * sizeof *living) : NULL;
  if (!living || ranks_in_base(p, pool, living, n) != MPI_SUCCESS) {
    free(living);
    return false;
  }
  *all = true;
  for (int i = 0, k = 0; i < p->nplaces; i++) {
    for (k = 0; k < n && living[k] != p->places[i];) k++;
    *all &= k < n || was_done(p, p->base->peer[p->places[i]]);
  }
  free(living);
  return true;
}

int64_t spx_repair_decide(spx_word *a)
{
  repair *p = a[0].p;
  uint32_t fn = spx_mute_enter(), flags = a[1].i ? SPX_DECIDE_GO : 0;
  MPI_Comm pool = MPI_COMM_NULL;
  bool home = false;
  PMPIX_Comm_revoke(p->pool);
  int err = spx_dyprc_decide(p->pool, &flags, &pool);
  if (err == MPI_SUCCESS && flags & SPX_DECIDE_GO && !are_all_there(p, pool, &home)) err = MPI_ERR_NO_MEM;
  if ((err != MPI_SUCCESS || home) && pool != MPI_COMM_NULL) PMPI_Comm_free(&pool);
  spx_mute_leave(fn);
  return result(err, pool, home);
}

int64_t spx_repair_form(spx_word *a)
{
  repair *p = a[0].p;
  uint32_t fn = spx_mute_enter();
  int err = form(p, (MPI_Comm)a[1].p);
  spx_mute_leave(fn);
  return result(err, p->active, false);
}

bool spx_repair_empty(const spx_repair *p)
{
  for (int i = 0; i < p->nplaces; i++)
    if (!spx_proc_left(p->base->peer[p->places[i]])) return false;
  return true;
}

/* Those that work are gone, not all of them at the end of their work. */
static bool abandoned(const spx_repair *p)
{
  bool died = false;
  for (int i = 0; i < p->nplaces; i++) {
    uint32_t proc = p->base->peer[p->places[i]];
    if (!spx_proc_left(proc)) return false;
    died |= spx_proc_dead(proc);
  }
  return died;
}

int64_t spx_repair_await(spx_word *a)
{
  const repair *p = a[0].p;
  const spx_comm *pool = (const spx_comm *)spx_get(SPX_K_COMM, p->pool);
  for (;;) {
    uint32_t ticket = spx_ticket();
    spx_progress();
    if (atomic_load(&pool->revoked) || abandoned(p)) return 0;
    spx_wait_event(ticket, 0);
  }
}

/* What somebody has told this process, into *words (free); NULL: nothing yet. */
static int told_yet(const repair *p, int **words)
{
  MPI_Comm base = (MPI_Comm)(uintptr_t)p->base->o.handle;
  MPI_Status status;
  int there = 0, n = 0;
  *words = NULL;
  for (int i = 0; i < p->base->size && !there; i++)
    if (i != p->base->rank && PMPI_Iprobe(i, TAG_TOLD, base, &there, &status) != MPI_SUCCESS) there = 0;
  if (!there) return MPI_SUCCESS;
  PMPI_Get_count(&status, MPI_INT, &n);
  if (!(*words = malloc((size_t)n * sizeof **words))) return MPI_ERR_NO_MEM;
  int err = PMPI_Recv(*words, n, MPI_INT, status.MPI_SOURCE, TAG_TOLD, base, MPI_STATUS_IGNORE);
  if (err != MPI_SUCCESS) {
    free(*words);
    *words = NULL;
  }
  return MPI_SUCCESS;
}

/* Nobody is left in base that could tell this process anything: it begins. */
static bool is_first(const repair *p)
{
  int own = order_of(p, p->base->rank);
  for (int r = 0; r < p->base->size; r++) {
    int order = r < p->base->size - p->cold ? 0 : order_of(p, r);
    bool before = r < p->base->size - p->cold || (order && order < own);
    if (before && !spx_proc_left(p->base->peer[r])) return false;
  }
  return true;
}

static int join(repair *p)
{
  int *w = NULL, err = MPI_SUCCESS;
  for (bool first = false; err == MPI_SUCCESS && !w;) {
    uint32_t ticket = spx_ticket();
    spx_progress();
    err = told_yet(p, &w);
    if (w || first) break;
    if ((first = is_first(p))) continue; /* what they have said before is there now */
    spx_wait_event(ticket, spx_now_ns() + 20000000);
  }
  if (err != MPI_SUCCESS) return err;
  MPI_Comm pool = p->pool;
  p->pool = MPI_COMM_NULL;
  if (w) {
    p->nplaces = w[1];
    p->joined = w[2];
    memcpy(p->places, w + 4 + w[0], (size_t)w[1] * sizeof *w);
    PMPI_Comm_free(&pool);
    spx_frame f = {.fn = SPX_IN_TAKEOVER_POOL};
    f.a[0].p = w + 4;
    f.a[1].i = w[0];
    f.a[2].i = w[3];
    f.a[3].p = &pool;
    err = spx_go_internal(&f);
  } else
    p->joined = order_of(p, p->base->rank);
  if (err == MPI_SUCCESS) err = form_with(p, pool, !w && p->joined < p->cold);
  free(w);
  return err;
}

int64_t spx_repair_join(spx_word *a)
{
  repair *p = a[0].p;
  uint32_t fn = spx_mute_enter();
  int err = join(p);
  spx_mute_leave(fn);
  return result(err, p->active, false);
}

static int begin(spx_comm *comm, int num_spares, repair **made)
{
  if (comm->flags & SPX_C_INTER) {
    spx_detail("comm is an intercommunicator: merge it first");
    return MPI_ERR_COMM;
  }
  if (num_spares >= comm->size) {
    spx_detail("num_spares is %d, but comm has %d processes: at least one has to work", num_spares, comm->size);
    return MPI_ERR_ARG;
  }
  repair *p = new_repair(comm, comm->size - num_spares);
  if (!p) return MPI_ERR_NO_MEM;
  /* Those that are dead by now are none of those that work: also this may be called after a failure. */
  MPI_Comm pool = MPI_COMM_NULL;
  uint32_t flags = 0;
  int err = spx_dyprc_decide((MPI_Comm)(uintptr_t)comm->o.handle, &flags, &pool);
  if (err == MPI_SUCCESS) err = form(p, pool);
  if (err != MPI_SUCCESS) forget(p);
  *made = err == MPI_SUCCESS ? p : NULL;
  return err;
}

/* As long as this process is a spare: waits, and meets the others. *home: they are done. */
static int stand_by(repair *p, bool *home)
{
  int err = MPI_SUCCESS;
  *home = false;
  while (err == MPI_SUCCESS && p->active == MPI_COMM_NULL && !*home) {
    wait_for_call(p);
    err = meet(p, HOME, home);
  }
  return err;
}

static int repair_all(spx_comm *comm, int num_spares, MPI_Comm *active, int *role)
{
  bool home = false;
  repair *p = find(comm);
  int err = MPI_SUCCESS;
  if (!p)
    err = begin(comm, num_spares, &p);
  else if (p->ready)
    p->ready = false;
  else {
    if (p->active != MPI_COMM_NULL) PMPIX_Comm_revoke(p->active);
    err = meet(p, 0, &home);
  }
  if (err == MPI_SUCCESS) err = stand_by(p, &home);
  if (err != MPI_SUCCESS) return err;
  *active = p->active;
  *role = p->role;
  if (home) forget(p);
  return err;
}

int spx_c_X_Comm_repair(spx_comm *comm, int num_spares, MPI_Comm *active, int *role)
{
  uint32_t fn = spx_mute_enter();
  int err = repair_all(comm, num_spares, active, role);
  spx_mute_leave(fn);
  if (err == MPI_SUCCESS) return err;
  return spx_raise(SPX_K_COMM, (void *)(uintptr_t)comm->o.handle, err, spx_fn_name[fn], "%s", spx_detail_text());
}

int spx_c_X_Comm_dismiss(spx_comm *comm)
{
  repair *p = find(comm);
  bool home = false;
  if (!p) {
    spx_detail("comm has had no MPIX_Comm_repair, or its spares have been dismissed");
    return spx_raise(SPX_K_COMM, (void *)(uintptr_t)comm->o.handle, MPI_ERR_ARG, spx_fn_name[spx_fn], "%s",
                     spx_detail_text());
  }
  uint32_t fn = spx_mute_enter();
  int err = meet(p, HOME, &home);
  if (home) forget(p);
  if (err == MPI_SUCCESS && !home) {
    p->ready = true;
    spx_detail("a process has failed, and others go on with a new active communicator: call MPIX_Comm_repair");
    err = MPIX_ERR_PROC_FAILED;
  }
  spx_mute_leave(fn);
  if (err == MPI_SUCCESS) return err;
  return spx_raise(SPX_K_COMM, (void *)(uintptr_t)comm->o.handle, err, spx_fn_name[fn], "%s", spx_detail_text());
}
