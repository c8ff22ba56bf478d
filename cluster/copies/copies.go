// Package copies decides which process keeps the copy of the state by which a rank can be taken
// over transparently: its last commit, and the messages received since (MPI/SPx: M+N redundancy,
// across hosts). It owns that choice, and which copy counts when there are several.
//
// It is pure: a table of processes in, a process out. Every process can compute it for every rank.
// capi/copies.go reads the table, capi/dataplane/clusters/copies.c performs the result.
package copies

import "cmp"

// A Member is a process of the cluster, a rank or a standby, as seen by the caller. Its
// place in the table is its number.
type Member struct {
	Host int // where it runs
	// of that host: the rack, or whatever else fails as a whole. Hosts without this information
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

// Keeper returns the number of the process that is to keep the copy of process me, which has this
// rank; None: no other process lives. It is on another host while there is one, and on one with
// another switch before all; standbys that wait come before ranks. Equally good processes are used
// by the ranks in turn. kept: the keeper so far, or None: it stays while no other one is better,
// since a change would mean sending everything again.
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

// Apart reports whether a copy survives the loss of its owner's host.
func Apart(all []Member, me, keeper int) bool {
	return keeper != None && distance(&all[me], &all[keeper]) > 0
}
