package sim

import (
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"libspx/net/topo"
)

// busyNetwork is a network of some shape whose hosts do other work: some are slow by a heavy tail, some for a while, and flows are slowed down now and then.
func busyNetwork(r *rand.Rand) *Network {
	t := &topo.Tree{N: 1 + r.IntN(9)}
	shape, most := r.IntN(3), 1+r.IntN(6)
	for s := 1; s < t.N; s++ {
		above := s - 1 // a chain
		switch shape {
		case 1: // a star
			above = 0
		case 2:
			above = r.IntN(s)
		}
		t.Links = append(t.Links, [2]int{above, s})
	}
	for s := range t.N {
		for range 1 + r.IntN(most) {
			t.Of = append(t.Of, s)
		}
	}
	r.Shuffle(len(t.Of), func(i, j int) { t.Of[i], t.Of[j] = t.Of[j], t.Of[i] })
	n := NewNetwork(t)
	if r.IntN(2) == 0 {
		n.Switch = 500 // far switches
	}
	tail, until := make([]float64, len(t.Of)), make([]int, len(t.Of))
	for h := range tail {
		if r.IntN(3) == 0 {
			tail[h] = []float64{5, 50, 500, 5000}[r.IntN(4)]
		}
		until[h] = r.IntN(3000)
	}
	echo := 0
	n.Busy = func(r *rand.Rand, a, b int) (late float64) {
		echo++
		for _, h := range []int{a, b} {
			switch busy := echo < until[h]; {
			case busy && tail[h] > 0:
				late += tail[h] * r.ExpFloat64()
			case tail[h] > 0 && r.IntN(3) == 0:
				late += tail[h] / max(r.Float64(), 0.01)
			}
		}
		return late
	}
	worst := r.Float64()
	n.Left = func(r *rand.Rand) float64 {
		if r.Float64() < 0.3 {
			return 1 - worst*r.Float64()
		}
		return 1
	}
	return n
}

// Of hosts that are busy the result is right, or it is said that it is not sure, which is rare: only where nearly every echo is late by far more than a switch takes. A switch that has one host is not told from
// that host where no other two share one.
func TestTopologyOfBusyHosts(t *testing.T) {
	all := uint64(400)
	if os.Getenv("SPX_TESTS") == "full" {
		all = 10000
	}
	wrong, groups, links, looked := 0, 0, 0, 0
	for seed := range all {
		n := busyNetwork(rand.New(rand.NewPCG(seed, 11)))
		hosts := n.Tree.Hosts()
		if !slices.ContainsFunc(hosts, func(hosts []int) bool { return len(hosts) > 1 }) {
			continue
		}
		looked++
		got, err := n.Infer(topo.Config{Hosts: len(n.Tree.Of)}, seed, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		truth, found := *n.Tree, *got.Tree
		switch {
		case got.Doubt.Groups != "":
			groups++
			continue
		case got.Doubt.Links != "":
			links++
			truth.Links, found.Links = nil, nil
		case slices.ContainsFunc(hosts, func(hosts []int) bool { return len(hosts) == 1 }): // whether it is in the middle cannot be seen
			truth.Links, found.Links = nil, nil
		}
		if !slices.Equal(truth.Splits(), found.Splits()) {
			if wrong++; wrong < 4 {
				t.Errorf("seed %d: want\n%sgot\n%s", seed, n.Tree, got.Tree)
			}
		}
	}
	t.Logf("of %d networks %d wrong, groups unsure in %d, links in %d more", looked, wrong, groups, links)
	if groups+links > looked/20 {
		t.Errorf("of %d networks, groups are unsure in %d, links in %d more: it is to be rare", looked, groups, links)
	}
}

// Echoes that stay longer for a while, as when the kernel has put two programs on different processors, and phases in which everything is late, are taken neither for switches nor for hosts that share none.
func TestTopologyOfHostsInPhases(t *testing.T) {
	all := uint64(100)
	if os.Getenv("SPX_TESTS") == "full" {
		all = 2000
	}
	unsure := 0
	for seed := range all {
		r := rand.New(rand.NewPCG(seed, 12))
		truth := cluster112()
		truth.Of = truth.Of[:0]
		for h := range 32 {
			truth.Of = append(truth.Of, h%truth.N)
		}
		r.Shuffle(32, func(i, j int) { truth.Of[i], truth.Of[j] = truth.Of[j], truth.Of[i] })
		n := NewNetwork(truth)
		n.Host, n.Noise = 8, 0.5
		longer, until := map[[2]int]bool{}, map[[2]int]int{} // by pair of hosts
		echo, slowUntil := 0, 0
		n.Busy = func(r *rand.Rand, a, b int) (late float64) {
			ab := [2]int{min(a, b), max(a, b)}
			if echo++; echo > until[ab] {
				longer[ab], until[ab] = r.IntN(2) == 0, echo+r.IntN(400)
			}
			if longer[ab] {
				late = 7
			}
			if r.IntN(2000) == 0 {
				slowUntil = echo + r.IntN(500)
			}
			if echo < slowUntil {
				late += 100 * r.ExpFloat64() / max(r.Float64(), 0.01)
			}
			return late
		}
		got, err := n.Infer(topo.Config{Hosts: 32}, seed, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got.Doubt != (topo.Doubt{}) {
			unsure++
		} else if !slices.Equal(truth.Splits(), got.Tree.Splits()) {
			t.Errorf("seed %d: want\n%sgot\n%s", seed, truth, got.Tree)
		}
	}
	t.Logf("%d of %d are unsure", unsure, all)
	if unsure > int(all)/10 {
		t.Errorf("%d of %d are unsure: it is to be rare", unsure, all)
	}
}
