/* dyprc_change.c - ulfm_dyprc: carrying out commands, at all processes together. See dyprc.h.
 *
 * Every change ends with an agreement on the old communicator: either all who live have the new one and use it, or none does. If
 * somebody has died meanwhile, those who are left recover, meet again, and try once more. */
#define _GNU_SOURCE
#include "dyprc.h"
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "error.h"
#include "runtime.h"

#define d spx_dyprc
enum { UNCHANGED, CHANGED, AGAIN };

/* All agree on what has come of making next: err of making it here. CHANGED: next is to be used. UNCHANGED: nobody has it, and nothing
 * has happened to the old one. AGAIN: those who live have recovered. */
static int settle(int err, MPI_Comm *next)
{
  int class = err == MPI_SUCCESS ? MPI_SUCCESS : spx_class_of(err);
  bool failure = class == MPIX_ERR_PROC_FAILED || class == MPIX_ERR_REVOKED || class == MPIX_ERR_PROC_FAILED_PENDING;
  uint32_t flags = err == MPI_SUCCESS ? SPX_DECIDE_CALM | SPX_DECIDE_GO : failure ? 0 : SPX_DECIDE_CALM;
  MPI_Comm left = MPI_COMM_NULL;
  if (failure) {
    spx_dyprc_begin("after a failure");
    PMPIX_Comm_revoke(d.world); /* others may wait for us in the same call */
  }
  err = spx_dyprc_decide(d.world, &flags, &left);
  if (err != MPI_SUCCESS) spx_fatal(err, "the survivors cannot form a communicator: %s", spx_detail_text());
  if (flags & SPX_DECIDE_GO) return CHANGED;
  if (*next != MPI_COMM_NULL) {
    PMPIX_Comm_revoke(*next);
    PMPI_Comm_free(next);
  }
  if (flags & SPX_DECIDE_CALM) return UNCHANGED;
  spx_dyprc_begin("after a failure");
  spx_dyprc_adopt(left);
  return AGAIN;
}

/* ---- fewer ----------------------------------------------------------------------------------------------------- */

static _Noreturn void leave(MPI_Comm *leavers)
{
  PMPI_Comm_free(leavers);
  PMPI_Comm_free(&d.world);
  if (d.former != MPI_COMM_NULL) PMPI_Comm_free(&d.former);
  d.armed = false;
  spx_dyprc_busy = 0;
  MPI_Finalize(); /* by its name: a tool that has put its own in its place sees the end of this process */
  exit(0);
}

static int shrink_to(int m)
{
  MPI_Comm part = MPI_COMM_NULL;
  int stays = d.rank < m;
  spx_dyprc_bury(true);
  spx_dyprc_begin("by splitting");
  int how = settle(PMPI_Comm_split(d.world, !stays, d.rank, &part), &part);
  if (how != CHANGED) return how;
  if (!stays) leave(&part);
  d.former = d.world;
  d.stayed = m;
  d.world = MPI_COMM_NULL;
  spx_dyprc_adopt(part);
  return CHANGED;
}

/* ---- more ------------------------------------------------------------------------------------------------------ */

/* This process's own command line, for those that are to be like it. The strings stay. NULL: it cannot be found. */
static char **own_command(void)
{
  static char text[1 << 17], program[PATH_MAX], **argv;
  if (argv) return argv;
  FILE *f = fopen("/proc/self/cmdline", "re");
  size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0, words = 0;
  if (f) fclose(f);
  for (size_t i = 0; i < n; i++) words += text[i] == 0;
  if (words == 0 || n == sizeof text - 1 || !(argv = calloc(words + 1, sizeof *argv))) return argv = NULL;
  char *at = text;
  for (size_t i = 0; i < words; i++, at += strlen(at) + 1) argv[i] = at;
  ssize_t len = readlink("/proc/self/exe", program, sizeof program - 1);
  if (len > 0 && access(program, X_OK) == 0) argv[0] = program;
  return argv;
}

static int spawn(int n, MPI_Comm *inter)
{
  MPI_Info info;
  char **argv = own_command();
  if (!argv) {
    spx_detail("the command line of this process is not to be read in /proc/self/cmdline");
    return MPI_ERR_SPAWN;
  }
  int err = PMPI_Info_create(&info);
  if (err != MPI_SUCCESS) return err;
  PMPI_Info_set(info, "env", "SPX_DYPRC_NEWCOMER=1");
  err = PMPI_Comm_spawn(argv[0], argv + 1, n, info, 0, d.world, inter, MPI_ERRCODES_IGNORE);
  PMPI_Info_free(&info);
  return err;
}

int spx_dyprc_merge(MPI_Comm *inter, int high, MPI_Comm *all)
{
  for (int i = 0; i < SPX_DYPRC_TRIES; i++) {
    PMPI_Comm_set_errhandler(*inter, MPI_ERRORS_RETURN);
    *all = MPI_COMM_NULL;
    int others = 0, err = PMPI_Intercomm_merge(*inter, high, all);
    uint32_t flags = err == MPI_SUCCESS ? SPX_DECIDE_CALM | SPX_DECIDE_GO : 0;
    MPI_Comm next = MPI_COMM_NULL;
    if (err != MPI_SUCCESS) PMPIX_Comm_revoke(*inter);
    err = spx_dyprc_decide(*inter, &flags, &next);
    if (err != MPI_SUCCESS) spx_fatal(err, "processes that come together cannot agree: %s", spx_detail_text());
    PMPI_Comm_free(inter);
    if (flags & SPX_DECIDE_GO) return MPI_SUCCESS;
    if (*all != MPI_COMM_NULL) PMPI_Comm_free(all);
    *inter = next; /* nobody says that he is calm and has not done it */
    PMPI_Comm_remote_size(*inter, &others);
    if (others == 0) break;
  }
  PMPI_Comm_free(inter);
  return MPI_ERR_SPAWN;
}

static int grow_to(int m)
{
  MPI_Comm inter = MPI_COMM_NULL, all;
  uint64_t before = d.began;
  spx_dyprc_bury(true); /* their places are free then */
  spx_dyprc_begin("by spawning");
  int err = spawn(m - d.size, &inter);
  const char *why = spx_last_error(err);
  char text[256];
  snprintf(text, sizeof text, "%s", why ? why : spx_detail_text());
  int how = settle(err, &inter);
  if (how == UNCHANGED) {
    spx_dyprc_refuse("%s", text);
    d.began = before;
  }
  if (how != CHANGED) return how;
  if (spx_dyprc_merge(&inter, 0, &all) != MPI_SUCCESS) {
    spx_dyprc_recover(); /* all have seen that nobody has come */
    return AGAIN;
  }
  spx_dyprc_adopt(all);
  return CHANGED;
}

/* ---- a failure drill ------------------------------------------------------------------------------------------- */

/* list: "3,0,12". Returns the number of different ranks, or -1 when it is no such list; *mine: this process is in it. */
static int ranks_of(const char *list, int *mine)
{
  enum { MOST = 4096 };
  uint8_t seen[MOST / 8] = {0};
  int n = 0;
  *mine = 0;
  for (const char *at = list;; at++) {
    char *end;
    long rank = *at >= '0' && *at <= '9' ? strtol(at, &end, 10) : -1;
    if (rank < 0 || rank >= d.size || rank >= MOST) return -1;
    n += !(seen[rank / 8] >> rank % 8 & 1);
    seen[rank / 8] |= (uint8_t)(1 << rank % 8);
    *mine |= rank == d.rank;
    at = end;
    if (!*at) return n;
    if (*at != ',') return -1;
  }
}

static int drill(const char *list)
{
  int mine, n = ranks_of(list, &mine);
  if (n < 0 || n == d.size) {
    spx_dyprc_refuse(n < 0 ? "k%s: after k stand ranks from 0 to %d, separated by commas"
                           : "k%s: one of the %d processes has to stay",
                     list, n < 0 ? d.size - 1 : d.size);
    return UNCHANGED;
  }
  MPI_Comm none = MPI_COMM_NULL;
  int how = settle(MPI_SUCCESS, &none); /* all know of the command, also those that are left */
  if (how != CHANGED) return how;
  d.order.killing = n;
  d.order.from = d.size;
  if (mine) {
    raise(SIGKILL);
    _exit(1);
  }
  return UNCHANGED;
}

/* ---- commands -------------------------------------------------------------------------------------------------- */

static int one(char *word)
{
  char *end;
  if (word[0] == 'k') return drill(word + 1);
  long m = word[0] >= '0' && word[0] <= '9' ? strtol(word, &end, 10) : -1;
  if (m < 1 || m > INT_MAX || *end) {
    spx_dyprc_refuse("%.80s: a command is a number of processes, 1 or more, or k and ranks (k3,5)", word);
    return UNCHANGED;
  }
  if (m == d.size) return UNCHANGED;
  return m < d.size ? shrink_to((int)m) : grow_to((int)m);
}

bool spx_dyprc_carry_out(void)
{
  for (;;) {
    spx_dyprc_orders *o = &d.order;
    static char word[SPX_DYPRC_TEXT];
    size_t n = strcspn(o->text + o->at, ";\n");
    if (o->killing || !o->text[o->at]) return false;
    memcpy(word, o->text + o->at, n);
    word[n] = 0;
    int how = one(word);
    if (how == AGAIN && ++o->tries < SPX_DYPRC_TRIES) return true;
    if (how == AGAIN)
      spx_dyprc_refuse("%.80s: given up, after %d times that a process has died meanwhile", word, o->tries);
    o->tries = 0;
    o->at += (int32_t)(n + (o->text[(size_t)o->at + n] != 0));
    if (how != UNCHANGED) return true;
  }
}
