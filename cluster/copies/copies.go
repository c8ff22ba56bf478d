// Package copies decides who keeps the copy of what a rank needs to be taken over transparently:
// its last commit, and what it has received since (MPI/SPx: M+N redundancy, across hosts). It owns
// that choice, and which copy counts when there are several.
//
// It is pure: a table of processes in, a process out. Every process can work it out for every rank.
// capi/copies.go reads the table, capi/dataplane/clusters/copies.c carries out what comes of it.
package copies

import "cmp"

// A Member is a process of the cluster, a rank or a standby, as the one that asks sees it. Its
// place in the table is its number.
type Member struct {
	Host int // where it runs
	// of that host: the rack, or whatever else fails as a whole. Hosts of which nothing is known
	// have one each
	Switch int
	Lives  bool // it has been started, and has not left; and it has not refused
	Works  bool // it has a rank: it answers in its calls alone. A standby answers at once
}

// None: no process can keep a copy.
const None = -1

// distance is how far another process's copy is from what would take both: 0: the same host; 1: the
// same switch; 2: nothing in common.
func distance(a, b *Member) int {
	switch {
	case a.Host == b.Host:
		return 0
	case a.Switch == b.Switch:
		return 1
	}
	return 2
}

// better orders processes that could keep a copy of what owner has: first the farthest, then those
// that answer at once.
func better(owner, a, b *Member) int {
	waits := func(m *Member) int {
		if m.Works {
			return 0
		}
		return 1
	}
	return -cmp.Or(cmp.Compare(distance(owner, a), distance(owner, b)),
		cmp.Compare(waits(a), waits(b)))
}

// Keeper returns the number of the process that is to keep the copy of what process me has, which
// has this rank; None: there is no other one that lives. It is on another host while there is one,
// and on one with another switch before all; standbys that wait come before ranks. Of those that
// are alike the ranks use all, in turn. kept: who keeps it so far, or None: that stays so while no
// other one is better, since all would have to be sent again.
func Keeper(all []Member, me, rank, kept int) int {
	owner := &all[me]
	var best []int
	for i := range all {
		if i == me || !all[i].Lives {
			continue
		}
		order := -1
		if len(best) > 0 {
			order = better(owner, &all[i], &all[best[0]])
		}
		if order < 0 {
			best = best[:0]
		}
		if order <= 0 {
			best = append(best, i)
		}
	}
	for _, i := range best {
		if i == kept {
			return kept
		}
	}
	if len(best) == 0 {
		return None
	}
	return best[rank%len(best)]
}

// Apart tells whether a copy outlives the host of who it is of.
func Apart(all []Member, me, keeper int) bool {
	return keeper != None && distance(&all[me], &all[keeper]) > 0
}
