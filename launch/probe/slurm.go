package probe

import (
	"strings"

	"libspx/net/topo"
)

// fromSlurm is the network as Slurm describes it, by SLURM_TOPOLOGY_ADDR on each host: the names of
// the switches from the top down, and the node, as s0.s4.node17. nil: Slurm reports no switches on
// some host.
func fromSlurm(peers []*peer) *topo.Tree {
	t := &topo.Tree{}
	number := map[string]int{}
	linked := map[[2]int]bool{}
	for _, p := range peers {
		names, kinds := strings.Split(p.ready.Switch, "."), strings.Split(p.ready.Pattern, ".")
		n := len(kinds) - 1
		if n < 1 || kinds[n] != "node" || kinds[0] != "switch" || len(names) < n+1 {
			return nil
		}
		above := -1
		for _, name := range names[:n] {
			s, known := number[name]
			if !known {
				s = t.N
				number[name] = s
				t.N++
			}
			if above >= 0 && above != s && !linked[[2]int{above, s}] {
				linked[[2]int{above, s}] = true
				t.Links = append(t.Links, [2]int{above, s})
			}
			above = s
		}
		t.Of = append(t.Of, above)
	}
	if len(t.Links) > t.N-1 { // several ways: no tree
		return nil
	}
	all := make([]int, len(peers))
	for i := range all {
		all[i] = i
	}
	return t.Restrict(all)
}
