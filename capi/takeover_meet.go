package main

/*
#include <stdlib.h>
#include "comm.h"
#include "copies.h"
#include "dp.h"
#include "replay.h"
#include "replay_shim.h"
#include "stat.h"
#include "takeover.h"

#define FUNCTION(f) static uintptr_t f##_function(void) { return (uintptr_t)spx_##f; }
FUNCTION(msglog_take)
FUNCTION(msglog_fetch)
FUNCTION(msglog_last)
FUNCTION(msglog_settle)
FUNCTION(msglog_exit)
FUNCTION(msglog_end)
FUNCTION(commit_end)

static void end_job(int code, const char *text) { spx_fatal(code, "%s", text); }
static int any_died(void)
{
	for (int i = 0; spx_world && i < spx_world->size; i++)
		if (spx_proc_dead(spx_world->peer[i])) return 1;
	return 0;
}
static void look_again(void)
{
	spx_lock();
	if (spx_replay_on) spx_due |= SPX_DUE_TAKEOVER;
	spx_unlock();
}
static void moved(void) { spx_happened(1); }
static void revoke(spx_comm *c)
{
	for (; c; c = c->inner) {
		atomic_store(&c->revoked, 1);
		spx_comm_revoked(c);
	}
}
*/
import "C"

import (
	"errors"

	"libspx/cluster/msglog"
	"libspx/cluster/takeover"
	"libspx/core/mpierr"
	"libspx/ft/repair"
)

// How a process of a cluster with standbys meets its peers: MPISP_Repair, transparent takeover, and
// a standby's wait for a rank. Package cluster/takeover decides when, package ft/repair has them
// meet.
//
// All processes of the cluster, standbys included, have a communicator of their own, which only the
// protocol of spare processes uses: they meet out of whatever they do, agree on which of them live,
// and make a communicator of those that work from now on. Before that is valid, all of these have
// sent each other the list of their communicators (takeover.go).

// takeovers is this process's part in the takeovers of its cluster. No process: it belongs to no
// cluster with standbys.
var takeovers struct {
	process *takeover.Process
	shell   takeoverShell
}

func init() {
	internals[C.SPX_IN_TAKEOVER_DUE] = func(*call) error {
		if takeovers.process != nil && C.spx_state == C.SPX_INITIALIZED {
			takeovers.process.Notice()
		}
		if C.spx_copies_want() {
			return chooseKeeper()
		}
		return nil
	}
	revokedHere = append(revokedHere, revokeChildren)
	onStopped(func() {
		C.spx_takeover_on = false
		takeovers.process, takeovers.shell = nil, takeoverShell{}
	})
}

// startMeetings begins with this process's part. base: all processes of the cluster, ranks first;
// pool: those of them that are there from the beginning; cold: so many, the last, are started when
// others have died.
func startMeetings(base, pool *commObject, ranks, cold int) {
	members := newRepairShell(base)
	members.together = func(active *commObject) error {
		takeovers.shell.active = active.c
		return takeovers.process.Together()
	}
	base.retain()
	cfg := repair.Config{Working: ranks, Late: cold, Meets: true}
	takeovers.shell = takeoverShell{
		repair: repair.New(members, cfg, members.comm(pool)),
		base:   base.c, ranks: ranks, cold: cold,
	}
	takeovers.process = takeover.NewProcess(&takeovers.shell, ranks, int(base.c.rank) >= ranks)
	C.spx_takeover_on = true
}

// standBy is the end of MPI_Init: a standby waits there until it has a rank. A process that waits
// in MPI_Init does not act on deaths, nor does one that has no rank yet: they are handled as soon
// as it can.
func standBy() error {
	if takeovers.process != nil {
		if err := takeovers.process.StandBy(); err != nil {
			return err
		}
	}
	C.look_again()
	return nil
}

// leaveCluster is the beginning of MPI_Finalize, in a system whose messages are kept: it waits
// until no other process needs this one any more.
func leaveCluster() {
	if !C.spx_replay_on {
		return
	}
	r := here()
	if r.callOut(C.msglog_last_function()) != 0 && takeovers.process != nil {
		takeovers.process.Leave()
	}
	if C.spx_copies_on {
		C.spx_copies_close()
	}
	r.callOut(C.msglog_settle_function())
	r.callOut(C.msglog_end_function())
	r.callOut(C.commit_end_function())
}

// revokeChildren: MPI_COMM_WORLD has been revoked; so are those that were made of it.
func revokeChildren(c *C.spx_comm) {
	if !C.spx_takeover_on || c != C.spx_world {
		return
	}
	for made := C.spx_mark_revoked(nil); made != nil; made = C.spx_mark_revoked(nil) {
		C.revoke(made)
		C.spx_unref(C.SPX_K_COMM, &made.o)
	}
}

// takeoverShell is package takeover's Shell over this process.
type takeoverShell struct {
	repair      *repair.Repair
	base        *C.spx_comm
	ranks, cold int
	pool        repair.Comm     // from Decide, for Form; nil: none
	active      *C.spx_comm     // those that are to have ranks, or have them
	statements  [][]byte        // theirs, from Exchange
	logs        *msglog.Standby // of a standby: those of the ranks, if they are files
}

func (s *takeoverShell) Decide(done bool) (home bool, err error) {
	s.pool, home, err = s.repair.Decide(done)
	if (err != nil || home) && s.pool != nil {
		s.pool.Free()
		s.pool = nil
	}
	return home, err
}

func (s *takeoverShell) Form() (works bool, err error) {
	pool := s.pool
	s.pool = nil
	return s.formed(s.repair.Form(pool))
}

func (s *takeoverShell) Join() (works bool, err error) { return s.formed(s.repair.Join()) }

// formed is the end of Form and Join: the communicator of those that have ranks stays the repair's.
func (s *takeoverShell) formed(err error) (works bool, _ error) {
	if err != nil || s.repair.Active == nil {
		return false, err
	}
	s.active = s.repair.Active.(repairComm).obj().c
	return true, nil
}

func (s *takeoverShell) Await() { s.repair.Await() }

func (s *takeoverShell) Late() bool { return int(s.base.rank) >= int(s.base.size)-s.cold }

func (s *takeoverShell) Died() bool { return C.any_died() != 0 }

func (s *takeoverShell) Empty() { here().until(0, 0, s.repair.Empty) }

func (s *takeoverShell) Working() int { return int(s.active.size) }

func (s *takeoverShell) Fetch() error {
	if !C.spx_copies_on {
		return nil
	}
	return linkError(C.int(here().callOut(C.msglog_fetch_function(), uint64(s.active.rank))))
}

// Exchange gives each process the statements of all. They are of different lengths: each travels
// with as many words as the longest has.
func (s *takeoverShell) Exchange() error {
	mine := statementHere(s.active).Encode()
	r, n := here(), int(s.active.size)
	bytes := make([]uint64, n)
	if err := r.gather(s.active, []uint64{uint64(len(mine))}, bytes); err != nil {
		return err
	}
	longest := uint64(0)
	for _, b := range bytes {
		longest = max(longest, b)
	}
	words := int(longest+7) / 8
	padded, all := make([]uint64, words), make([]uint64, n*words)
	copy(octets(padded), mine)
	if err := r.gather(s.active, padded, all); err != nil {
		return err
	}
	s.statements = make([][]byte, n)
	for i := range n {
		s.statements[i] = octets(all[i*words : (i+1)*words])[:bytes[i]]
	}
	return nil
}

func (s *takeoverShell) Apply() (replaced int, err error) {
	statements := s.statements
	s.statements = nil
	return applyTakeover(s.active, statements)
}

func (s *takeoverShell) Lack(ranks int) error {
	return fail(C.MPIX_ERR_PROC_FAILED,
		"%d of the cluster's %d ranks are dead, and have no standby", ranks, s.ranks)
}

func (s *takeoverShell) Begin() error {
	r, rank, fd := here(), int(C.spx_world.rank), msglog.None
	if s.logs != nil {
		fd = s.logs.Keep(rank)
	}
	if err := linkError(C.int(r.callOut(C.msglog_take_function(), uint64(rank),
		uint64(int64(fd))))); err != nil {
		return err
	}
	if replaysHere() && bool(C.spx_copies_on) {
		return chooseKeeper()
	}
	return nil
}

func (s *takeoverShell) Settle() { here().callOut(C.msglog_settle_function()) }

func (s *takeoverShell) Publish(done bool) {
	state := C.uint32_t(C.SPX_OWNER_INIT)
	if done {
		state = C.SPX_OWNER_DONE
	}
	C.spx_publish_owner(state)
}

func (s *takeoverShell) Hold(on bool) {
	if on {
		C.spx_replay_hold++
	} else {
		C.spx_replay_hold--
	}
}

func (s *takeoverShell) Met() {
	C.spx_copies_look()
	C.moved()
}

func (s *takeoverShell) Fail(err error) {
	text := C.CString(err.Error())
	C.end_job(C.int(classOf(err)), text)
}

func (s *takeoverShell) Exit() { here().callOut(C.msglog_exit_function()) }

//spx:body MPISP_Repair
func spRepair(c *call) error {
	c.setInt(0, 0)
	if takeovers.process == nil {
		return fail(C.MPI_ERR_OTHER,
			"this process belongs to no cluster with standbys, which spxrun --system starts "+
				"(standbys = N, or process = \"restart\")")
	}
	commOf(C.SPX_HANDLE_COMM_WORLD).revoke()
	replaced, err := takeovers.process.Repair()
	c.setInt(0, replaced)
	return raisedOn(C.SPX_K_COMM, C.SPX_HANDLE_COMM_WORLD, err)
}

//spx:body MPISP_Is_replacement
func spIsReplacement(c *call) error {
	c.setBool(0, takeovers.process != nil && takeovers.process.Standby())
	return nil
}

// classOf is the error class that report gives an error.
func classOf(err error) int {
	var e *mpiError
	if errors.As(err, &e) {
		return e.class
	}
	return int(mpierr.ClassOf(err))
}
