package main

/*
#include "replay_shim.h"
*/
import "C"

import (
	"slices"

	"libspx/cluster/layout"
	"libspx/core/comm"
)

// Messages that are kept, and transparent takeover: which processes are the parties of a system (dataplane/replay_core.h).

// parties lists the processes of a layout: the ranks of its clusters, one cluster after another, and its I/O processes.
type parties struct {
	procs []C.uint32_t
	heals []C.bool
	first []C.uint32_t // by cluster: its rank 0
	iops  int          // the first I/O process
}

func partiesOf(l *layout.Layout) (p parties) {
	for _, c := range l.Clusters {
		p.first = append(p.first, C.uint32_t(len(p.procs)))
		for _, proc := range c.Procs {
			p.procs = append(p.procs, C.uint32_t(proc))
			p.heals = append(p.heals, C.bool(c.Heals && !c.Gone && !slices.Contains(c.Dead, proc))) // one that is taken over transparently heals, until it has stopped for good
		}
	}
	p.iops = len(p.procs)
	for _, i := range l.IOPs {
		p.procs = append(p.procs, C.uint32_t(i.Proc))
		p.heals = append(p.heals, false)
	}
	return p
}

func replays(l *layout.Layout) bool {
	return l.Kept || slices.ContainsFunc(l.Clusters, func(c layout.Cluster) bool { return c.Replays })
}

// startReplay begins with it, in a system in which some cluster has it. system.mu is held.
func startReplay() error {
	l := system.layout
	if !replays(l) {
		return nil
	}
	p := partiesOf(l)
	own := system.role != layout.IO && l.Clusters[system.index].Replays
	standby := system.role == layout.Standby
	setup := C.spx_replay_setup{parties: C.uint32_t(len(p.procs)), iops: C.uint32_t(p.iops), ctx: C.uint64_t(comm.ReplayContext(world.origin)),
		whole: C.bool(slices.ContainsFunc(l.Clusters, func(c layout.Cluster) bool { return c.Replays }))}
	first := C.uint32_t(0)
	switch role, index, rank := l.Find(int(world.proc)); {
	case role == layout.IO:
		setup.me = C.uint32_t(p.iops + index)
	case role == layout.Compute:
		setup.me = p.first[index] + C.uint32_t(rank)
		fallthrough
	default:
		first = p.first[index]
	}
	if own && l.Clusters[system.index].Copies {
		if err := startCopies(); err != nil {
			return err
		}
	}
	if code := C.spx_vault_begin(&setup, &p.procs[0], &p.heals[0], C.bool(own), C.bool(standby), first); code != 0 {
		return fail(int(code), "%s", C.GoString(C.spx_detail_text()))
	}
	return nil
}

// followReplay tells which processes are the parties now. A layout has the same ones in all its versions, or those that came later take no part.
func followReplay(l *layout.Layout) {
	p := partiesOf(l)
	for i, proc := range p.procs {
		C.spx_vault_moved(C.uint32_t(i), proc)
		C.spx_replay_heals(C.uint32_t(i), p.heals[i])
	}
}
