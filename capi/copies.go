package main

/*
#include "copies.h"
#include "replay.h"
#include "replay_shim.h"
static uintptr_t copies_keep_function(void) { return (uintptr_t)spx_msglog_keeper; }
*/
import "C"

import (
	"slices"

	"libspx/cluster/copies"
	"libspx/cluster/msglog"
	"libspx/core/comm"
)

// Copies of the state needed to take ranks over, on other hosts (dataplane/clusters/copies.c): the
// members, and the keeper of each copy (package cluster/copies decides).

var copying *commObject // all members

func init() {
	onStopped(func() { copying = nil })
}

// startCopies has this process keep copies for its peers in the cluster. system.mu is held.
func startCopies() error {
	all := inheritance.base
	o, err := newComm(comm.NewFromGroup(all, comm.CopiesContext(world.origin,
		uint32(procOf(world.index[all.At(0)]).serial)), world.me), nil)
	if err != nil {
		return err
	}
	copying = o
	C.spx_keep_copies(o.c, C.int(system.layout.Clusters[system.index].Cold))
	return nil
}

// chooseKeeper chooses the process that keeps the copy of this process's state from now on. When
// none can on another host, that is reported.
func chooseKeeper() error {
	if copying == nil {
		return fail(C.MPI_ERR_INTERN, "no copies are kept in this cluster")
	}
	procs := ranksOf(copying.c.peer, copying.c.size)
	ranks := ranksOf(C.spx_world.peer, C.spx_world.size)
	all := make([]copies.Member, len(procs))
	for i, p := range procs {
		host := int(procOf(p).host)
		all[i] = copies.Member{Host: host, Switch: netState.policy.SwitchOf(host),
			Lives: bool(C.spx_copies_can(C.int(i))), Works: slices.Contains(ranks, p)}
	}
	me := slices.Index(procs, world.proc)
	keeper := copies.Keeper(all, me, int(C.spx_world.rank), int(C.spx_copies_keeper()))
	here().callOut(C.copies_keep_function(), uint64(int64(keeper)))
	if copies.Apart(all, me, keeper) {
		return nil
	}
	const cause = "no process on another host can keep a copy of what a rank needs to be taken over"
	by := "a process of its own host does"
	if keeper == copies.None {
		by = "no other process of the cluster is left"
	}
	sayOnce(cause, cause, cause+": "+by+
		". With the host it would be lost. Start standbys on another host")
	return nil
}

// firstCopy is package msglog's Keeping of this rank.
type firstCopy struct{}

func (firstCopy) Wants() bool   { return bool(C.spx_copies_want()) }
func (firstCopy) Choose() error { return chooseKeeper() }
func (firstCopy) Kept() bool    { return C.spx_copies_keeper() >= 0 }
func (firstCopy) Has() bool     { return bool(C.spx_copies_have(C.spx_replay_core.version)) }

// awaitCopy waits until there is a copy of what this rank has.
func awaitCopy() (err error) {
	C.spx_copies_of(C.spx_replay_core.msglog, C.uint32_t(C.spx_world.rank), 0)
	here().lookUntil(func() (done bool) {
		done, err = msglog.Copied(firstCopy{})
		return done || err != nil
	})
	return logError(err)
}
