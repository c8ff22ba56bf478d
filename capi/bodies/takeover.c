/* takeover.c - see takeover.h: MPISP_Repair, and standbys.
 *
 * All processes of the cluster, standbys included, have a communicator of their own, on which nothing happens but what spare processes do
 * (capi/repair.go): they meet out of whatever they do, agree on who lives, and make a communicator of those that work now. Before that counts, all of these have told each
 * other which communicators they have; then each gives its own ones, in their places, the new members and other contexts, and who is new
 * makes itself those of the rank that it has now. */
#include "takeover.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "comm.h"
#include "copies.h"
#include "dp.h"
#include "replay.h"
#include "replay_shim.h"
#include "runtime.h"
#include "shim.h"
#include "stat.h"

bool spx_takeover_on;
static struct {
  spx_comm *base; /* all processes, those that have ranks first */
  int ranks;
  int cold;            /* processes that are started when some have died */
  bool standby, taken; /* this process began as one; it has had a rank since */
  bool meeting;
  int size;     /* of those that will work */
  char *blocks; /* what they have said */
  int *bytes;
} t;

static void forget(void)
{
  free(t.blocks);
  free(t.bytes);
  t.blocks = NULL;
  t.bytes = NULL;
}

/* Those that will work tell each other what they have. */
static int tell_each_other(MPI_Comm active)
{
  forget();
  PMPI_Comm_size(active, &t.size);
  if (t.size < t.ranks) return MPI_SUCCESS;                   /* there is no process for some rank */
  if (SPX_UNLIKELY(spx_copies_on) && t.standby && !t.taken) { /* the others wait for what follows, and so they answer */
    const spx_comm *a = (const spx_comm *)spx_get(SPX_K_COMM, active);
    int got = spx_copies_fetch((uint32_t)a->rank);
    if (got != MPI_SUCCESS) spx_fatal(got, "%s", spx_detail_text());
  }
  spx_frame f = {.fn = SPX_IN_TAKEOVER_LIST};
  void *mine = NULL;
  int64_t n = 0;
  f.a[0].p = spx_get(SPX_K_COMM, active);
  f.a[1].p = &mine;
  f.a[2].p = &n;
  int err = spx_go_internal(&f), total = 0, own = (int)n;
  int *at = malloc((size_t)t.size * sizeof *at);
  t.bytes = malloc((size_t)t.size * sizeof *t.bytes);
  if (err == MPI_SUCCESS && (!at || !t.bytes)) err = MPI_ERR_NO_MEM;
  if (err == MPI_SUCCESS) err = PMPI_Allgather(&own, 1, MPI_INT, t.bytes, 1, MPI_INT, active);
  for (int i = 0; err == MPI_SUCCESS && i < t.size; i++) {
    at[i] = total;
    total += t.bytes[i];
  }
  if (err == MPI_SUCCESS && !(t.blocks = malloc((size_t)total + 1))) err = MPI_ERR_NO_MEM;
  if (err == MPI_SUCCESS) err = PMPI_Allgatherv(mine, own, MPI_BYTE, t.blocks, t.bytes, at, MPI_BYTE, active);
  free(mine);
  free(at);
  return err;
}

void spx_takeover_begin(spx_comm *base, int ranks, int cold)
{
  t.base = base;
  t.cold = cold;
  t.ranks = ranks;
  t.standby = base->rank >= ranks;
  t.taken = false;
  spx_takeover_on = true;
}

int64_t spx_takeover_together(spx_word *a) { return tell_each_other(a[0].p); }

/* op: SPX_REPAIR_*, with its arguments. */
static int repair(int op, spx_word in, MPI_Comm *comm, int *home)
{
  spx_frame f = {.fn = SPX_IN_REPAIR, .a = {{.i = op}, in, {.p = comm}, {.p = home}}};
  return spx_go_internal(&f);
}

void spx_takeover_end(void)
{
  spx_takeover_on = false;
  forget();
}

/* What all do who have met. *active: of the repair. *replaced: ranks that were taken over. err: of the meeting. */
static int have_met(int err, const MPI_Comm *active, int *replaced)
{
  if (err != MPI_SUCCESS || *active == MPI_COMM_NULL) return err;
  if (t.size < t.ranks) {
    spx_detail("%d of the cluster's %d ranks are dead, and have no standby", t.ranks - t.size, t.ranks);
    return MPIX_ERR_PROC_FAILED;
  }
  spx_frame f = {.fn = SPX_IN_TAKEOVER_APPLY};
  f.a[0].p = spx_get(SPX_K_COMM, *active);
  f.a[1].p = t.blocks;
  f.a[2].p = t.bytes;
  f.a[3].p = replaced;
  err = spx_go_internal(&f);
  forget();
  t.taken = true;
  return err;
}

/* All who live meet. done: this process needs the others no more. *home: nor does any other one. Else those that live go on. */
static int meet(bool done, bool *home, MPI_Comm *active, int *replaced)
{
  MPI_Comm pool = MPI_COMM_NULL;
  int all = 0;
  *replaced = 0;
  int err = repair(SPX_REPAIR_DECIDE, (spx_word){.i = done}, &pool, &all);
  *home = all;
  if (err != MPI_SUCCESS || *home) {
    if (pool != MPI_COMM_NULL) PMPI_Comm_free(&pool);
    return err;
  }
  spx_replay_hold++; /* who sends to whom changes */
  err = repair(SPX_REPAIR_FORM, (spx_word){.p = pool}, active, NULL);
  err = have_met(err, active, replaced);
  spx_replay_hold--;
  return err;
}

/* Who waits in MPI_Init does nothing about deaths that it sees, nor does one who has no rank yet: they are looked at as soon as it can. */
static void look_again(void)
{
  spx_lock();
  if (spx_replay_on) spx_due |= SPX_DUE_TAKEOVER;
  spx_unlock();
}

/* All ranks leave: what becomes of them is of no interest to a standby any more, which ends as they do, or by its agent. */
static void rest(void)
{
  repair(SPX_REPAIR_EMPTY, (spx_word){0}, NULL, NULL);
  spx_publish_owner(SPX_OWNER_FINALIZED);
  _exit(0);
}

static int stand_by(void)
{
  bool home = false;
  MPI_Comm active = MPI_COMM_NULL;
  int replaced, err = spx_takeover_on ? spx_vault_meet(t.base, t.ranks, t.cold) : MPI_SUCCESS;
  if (err != MPI_SUCCESS || !spx_takeover_on || !t.standby || t.taken) return err;
  uint32_t fn = spx_mute_enter();
  if (t.base->rank >= t.base->size - t.cold) {
    err = repair(SPX_REPAIR_JOIN, (spx_word){0}, &active, NULL); /* the others have begun already */
    err = have_met(err, &active, &replaced);
  }
  while (err == MPI_SUCCESS && active == MPI_COMM_NULL) {
    repair(SPX_REPAIR_AWAIT, (spx_word){0}, NULL, NULL);
    err = meet(true, &home, &active, &replaced);
    if (home) rest();
  }
  spx_mute_leave(fn);
  return err == MPI_SUCCESS ? spx_vault_take(spx_world->rank) : err;
}

int spx_takeover_stand_by(void)
{
  int err = stand_by();
  if (err == MPI_SUCCESS) look_again();
  return err;
}

static bool somebody_died(void)
{
  for (int i = 0; i < spx_world->size; i++)
    if (spx_proc_dead(spx_world->peer[i])) return true;
  return false;
}

static bool meet_all(bool done)
{
  t.meeting = true;
  uint32_t fn = spx_mute_enter();
  MPI_Comm active;
  bool home = false;
  int replaced, err = MPI_SUCCESS;
  do /* more may have died meanwhile */
    err = meet(done, &home, &active, &replaced);
  while (err == MPI_SUCCESS && !home && somebody_died());
  spx_mute_leave(fn);
  t.meeting = false;
  if (err != MPI_SUCCESS) spx_fatal(err, "no standby takes the place of one that died: %s", spx_detail_text());
  spx_copies_look();
  spx_happened(1);
  return home;
}

/* Inside whatever call the program is in, and nothing of it is to be seen there. Before MPI can be called, in MPI_Init, it waits. A process that is called although none is dead comes when it leaves: others that live do not need it before. */
void spx_takeover_now(void)
{
  if (!t.meeting && spx_takeover_on && spx_state == SPX_INITIALIZED && spx_world && somebody_died()) meet_all(false);
}

void spx_takeover_leave(void)
{
  if (!spx_takeover_on) return;
  for (bool home = false; !home;) {
    spx_replay_settle();
    spx_publish_owner(SPX_OWNER_DONE); /* before others know of it, and have left */
    home = meet_all(true);
    if (!home) spx_publish_owner(SPX_OWNER_INIT);
  }
}

void spx_takeover_revoked(const spx_comm *c)
{
  if (!spx_takeover_on || c != spx_world) return;
  for (spx_comm *made; (made = spx_mark_revoked(NULL)); spx_unref(SPX_K_COMM, &made->o))
    for (spx_comm *part = made; part; part = part->inner) {
      atomic_store(&part->revoked, 1);
      spx_comm_revoked(part);
    }
}

/* ---- bodies ---------------------------------------------------------------------------------------------------- */

int spx_c_SP_Repair(int *replaced)
{
  MPI_Comm active;
  *replaced = 0;
  if (!spx_takeover_on)
    return spx_raise(0, NULL, MPI_ERR_OTHER, spx_fn_name[spx_fn],
                     "this process belongs to no cluster with standbys, which spxrun --system starts (standbys = N, or "
                     "process = \"restart\")");
  uint32_t fn = spx_mute_enter();
  bool home;
  PMPIX_Comm_revoke(MPI_COMM_WORLD);
  int err = meet(false, &home, &active, replaced);
  spx_mute_leave(fn);
  if (err == MPI_SUCCESS) return err;
  return spx_raise(SPX_K_COMM, MPI_COMM_WORLD, err, spx_fn_name[fn], "%s", spx_detail_text());
}

int spx_c_SP_Is_replacement(int *flag)
{
  *flag = spx_takeover_on && t.standby;
  return MPI_SUCCESS;
}
