package main

/*
#include "copies.h"
#include "replay_shim.h"
*/
import "C"

import (
	"slices"

	"libspx/cluster/copies"
	"libspx/core/comm"
)

// Copies of what ranks need to be taken over, on other hosts (dataplane/clusters/copies.c): which processes are the members, and who keeps whose copy (package cluster/copies decides).

var copying *commObject // all members

func init() {
	internals[C.SPX_IN_COPIES_KEEPER] = copiesKeeper
	onStopped(func() { copying = nil })
}

// startCopies has this process keep copies for the others of its cluster. system.mu is held.
func startCopies() error {
	all := heirship.base
	o, err := newComm(comm.NewFromGroup(all, comm.CopiesContext(world.origin, uint32(procOf(world.index[all.At(0)]).serial)), world.me), nil)
	if err != nil {
		return err
	}
	copying = o
	C.spx_keep_copies(o.c, C.int(system.layout.Clusters[system.index].Cold))
	return nil
}

// copiesKeeper says who is to keep the copy of what this process has: shim/replay.c, choose_keeper. a0: its rank; a1: who keeps it so far, or -1; a2: gets the number of the member; a3: 1 when that is on another host.
func copiesKeeper(c *call) error {
	if copying == nil {
		return fail(C.MPI_ERR_INTERN, "no copies are kept in this cluster")
	}
	procs := ranksOf(copying.c.peer, copying.c.size)
	ranks := ranksOf(C.spx_world.peer, C.spx_world.size)
	all := make([]copies.Member, len(procs))
	for i, p := range procs {
		host := int(procOf(p).host)
		all[i] = copies.Member{Host: host, Switch: netState.policy.switchOf(host), Lives: bool(C.spx_copies_can(C.int(i))), Works: slices.Contains(ranks, p)}
	}
	me := slices.Index(procs, world.proc)
	keeper := copies.Keeper(all, me, c.int(0), c.int(1))
	*at[int32](c.addr(2)) = int32(keeper)
	*at[int32](c.addr(3)) = 0
	if copies.Apart(all, me, keeper) {
		*at[int32](c.addr(3)) = 1
	}
	return nil
}
