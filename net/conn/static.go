package conn

import (
	"slices"

	"libspx/net/topo"
)

// Static returns the processes that process self keeps connections to, in ascending order: all on
// its own switch and one on each other switch (section 3.1 of the paper). host[p] is the host of
// process p; processes of self's own host are left out, since they share memory.
//
// The choice is the same seen from both ends: the i-th process of a switch goes with the i-th of
// another, modulo the smaller number; so a process of a switch no smaller than the others has
// exactly one connection to each.
func Static(t *topo.Tree, host []int, self int) []int {
	on := make([][]int, t.N)
	for p, h := range host {
		if s := t.Of[h]; s >= 0 {
			on[s] = append(on[s], p)
		}
	}
	mine := t.Of[host[self]]
	if mine < 0 {
		return nil
	}
	i := slices.Index(on[mine], self)
	var peers []int
	for s, list := range on {
		switch {
		case s == mine:
			for _, p := range list {
				if host[p] != host[self] {
					peers = append(peers, p)
				}
			}
		case len(list) > 0 && len(list) <= len(on[mine]):
			peers = append(peers, list[i%len(list)])
		default:
			for j := i; j < len(list); j += len(on[mine]) {
				peers = append(peers, list[j])
			}
		}
	}
	slices.Sort(peers)
	return peers
}
