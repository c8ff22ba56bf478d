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

// Messages that are kept, and transparent takeover: which processes are the parties of a system (dataplane/clusters/replay_core.h).

// parties lists the processes of a layout: of those that the system began with, and then of those that have been attached each time, the ranks of the clusters, one cluster after
// another, and the I/O processes. So no number changes when there are more.
type parties struct {
	procs []C.uint32_t
	heals []C.bool
	apart []C.bool     // a rank of a cluster to which no link leads from this process's; of I/O processes that is not asked
	iop   []C.uint32_t // 1 + its number among the I/O processes of the layout; 0: it is a rank
	first []C.uint32_t // by cluster: its rank 0
	iops  []C.uint32_t // by I/O process of the layout
}

func partiesOf(l *layout.Layout) (p parties) {
	own := system.role == layout.IO && system.layout != nil && system.index < len(l.IOPs) && l.IOPs[system.index].Leaving // then it goes with its cluster
	reached := reachedFrom(l)
	p.first, p.iops = make([]C.uint32_t, len(l.Clusters)), make([]C.uint32_t, len(l.IOPs))
	for since := 0; since <= l.Growths; since++ {
		for i, c := range l.Clusters {
			if c.Since != since {
				continue
			}
			p.first[i] = C.uint32_t(len(p.procs))
			for _, proc := range c.Procs {
				p.procs, p.iop = append(p.procs, C.uint32_t(proc)), append(p.iop, 0)
				p.heals = append(p.heals, C.bool(c.Heals && !c.Gone && !slices.Contains(c.Dead, proc) && !(own && c.Leaving))) // one that is taken over transparently heals, until it has stopped for good
				p.apart = append(p.apart, C.bool(system.role != layout.IO && !reached[i]))
			}
		}
		for i, x := range l.IOPs {
			if x.Since != since {
				continue
			}
			p.iops[i] = C.uint32_t(len(p.procs))
			p.procs, p.iop = append(p.procs, C.uint32_t(x.Proc)), append(p.iop, C.uint32_t(i+1))
			p.heals, p.apart = append(p.heals, false), append(p.apart, false)
		}
	}
	return p
}

// reachedFrom is, by cluster, whether a link leads there from this process's.
func reachedFrom(l *layout.Layout) []bool {
	reached := make([]bool, len(l.Clusters))
	for _, k := range l.Links {
		for _, to := range k.To {
			reached[to] = reached[to] || slices.Contains(k.From, system.index)
		}
	}
	return reached
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
	setup := C.spx_replay_setup{parties: C.uint32_t(len(p.procs)), ctx: C.uint64_t(comm.ReplayContext(world.origin)),
		whole: C.bool(slices.ContainsFunc(l.Clusters, func(c layout.Cluster) bool { return c.Replays }))}
	first := C.uint32_t(0)
	switch role, index, rank := l.Find(int(world.proc)); {
	case role == layout.IO:
		setup.me = p.iops[index]
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
	if code := C.spx_vault_begin(&setup, &p.procs[0], &p.heals[0], &p.iop[0], C.bool(own), C.bool(standby), first); code != 0 {
		return fail(int(code), "%s", C.GoString(C.spx_detail_text()))
	}
	p.setApart()
	return nil
}

// setApart tells which ranks nothing that this process sends goes to.
func (p *parties) setApart() {
	for i, apart := range p.apart {
		C.spx_replay_apart(C.uint32_t(i), apart)
	}
}

// growReplay tells of parties that have been attached since, before anybody can send to them.
func growReplay(before, now *layout.Layout) error {
	p := partiesOf(now)
	if len(p.procs) <= len(partiesOf(before).procs) {
		return nil
	}
	if code := C.spx_vault_grow(C.uint32_t(len(p.procs)), &p.procs[0], &p.heals[0], &p.iop[0]); code != 0 {
		return fail(int(code), "no memory for the messages of %d processes", len(p.procs))
	}
	p.setApart()
	return nil
}

// followReplay tells which processes are the parties now.
func followReplay(l *layout.Layout) {
	p := partiesOf(l)
	for i, proc := range p.procs {
		C.spx_vault_moved(C.uint32_t(i), proc)
		C.spx_replay_heals(C.uint32_t(i), p.heals[i])
	}
	C.spx_replay_changed()
}
