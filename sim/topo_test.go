package sim

import (
	"math"
	"math/rand/v2"
	"testing"

	"libspx/net/topo"

	"github.com/google/go-cmp/cmp"
)

// cluster112 is a network like the one of the paper's figure 3: 112 hosts, 14 on each of 8 switches, which are joined hierarchically.
func cluster112() *topo.Tree {
	t := &topo.Tree{N: 8, Links: [][2]int{{0, 1}, {0, 2}, {0, 3}, {3, 4}, {3, 5}, {5, 6}, {5, 7}}}
	for h := range 112 {
		t.Of = append(t.Of, h/14)
	}
	return t
}

// check runs the inference and compares.
func check(t *testing.T, truth *topo.Tree, cfg topo.Config, seed uint64, late, leave []int) Inference {
	t.Helper()
	got, err := NewNetwork(truth).Infer(cfg, seed, late, leave)
	if err != nil {
		t.Fatal(err)
	}
	if got.Doubt != (topo.Doubt{}) {
		t.Fatalf("seed %d: it is not sure: %+v", seed, got.Doubt)
	}
	want := *truth
	want.Of = append([]int(nil), truth.Of...)
	for _, h := range leave {
		want.Of[h] = -1
	}
	if diff := cmp.Diff(want.Splits(), got.Tree.Splits()); diff != "" {
		t.Fatalf("seed %d: want\n%sgot\n%s%s", seed, &want, got.Tree, diff)
	}
	return got
}

func TestTopologyOf112Hosts(t *testing.T) {
	for seed := range uint64(100) {
		got := check(t, cluster112(), topo.Config{Hosts: 112}, seed, nil, nil)
		if all := 112 * 111 / 2; got.Cost.Pings > all/4 {
			t.Errorf("seed %d: %d pings, all pairs are %d", seed, got.Cost.Pings, all)
		}
		if seed == 0 {
			t.Logf("112 hosts: %+v, %d us", got.Cost, got.Took)
		}
	}
}

// randomNetwork has n switches with 1 to most hosts; addresses are shuffled now and then.
func randomNetwork(r *rand.Rand, n, most int) *topo.Tree {
	t := &topo.Tree{N: n}
	for s := 1; s < n; s++ {
		t.Links = append(t.Links, [2]int{max(0, s-1-r.IntN(4)), s})
	}
	for s, next := range t.Neighbors() {
		if len(next) < 3 || r.IntN(2) == 0 {
			for range 2 + r.IntN(most) {
				t.Of = append(t.Of, s)
			}
		}
	}
	if r.IntN(2) == 0 {
		r.Shuffle(len(t.Of), func(i, j int) { t.Of[i], t.Of[j] = t.Of[j], t.Of[i] })
	}
	return t
}

func TestTopologyOfRandomNetworks(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 3))
		truth := randomNetwork(r, 1+r.IntN(20), 12)
		cfg := topo.Config{Hosts: len(truth.Of), MaxPings: r.IntN(4)}
		if r.IntN(4) == 0 { // somebody knows two switches
			hosts := truth.Hosts()
			for s := range min(2, len(hosts)) {
				if len(hosts[s]) > 0 {
					cfg.Groups = append(cfg.Groups, hosts[s])
				}
			}
		}
		check(t, truth, cfg, seed, nil, nil)
	}
}

func TestTopologyFollowsJoiningAndLeavingHosts(t *testing.T) {
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 4))
		truth := randomNetwork(r, 2+r.IntN(10), 8)
		n := len(truth.Of)
		first := max(2, n-r.IntN(6)-1)
		var late []int
		for h := first; h < n; h++ {
			late = append(late, h)
		}
		var leave []int
		for _, hosts := range truth.Hosts() { // one of each switch that keeps two
			if len(hosts) > 2 {
				leave = append(leave, hosts[r.IntN(len(hosts))])
			}
		}
		check(t, truth, topo.Config{Hosts: first}, seed, late, leave)
	}
}

// threeLevels is a network of hosts on the leaves of a tree with so many branches a switch; addresses follow it, or are shuffled.
func threeLevels(branches, hosts int, r *rand.Rand) *topo.Tree {
	t := &topo.Tree{N: 1}
	for range branches {
		pod := t.N
		t.Links = append(t.Links, [2]int{0, pod})
		t.N++
		for range branches {
			t.Links = append(t.Links, [2]int{pod, t.N})
			for range hosts {
				t.Of = append(t.Of, t.N)
			}
			t.N++
		}
	}
	if r != nil {
		r.Shuffle(len(t.Of), func(i, j int) { t.Of[i], t.Of[j] = t.Of[j], t.Of[i] })
	}
	return t
}

func TestTopologyGrowth(t *testing.T) {
	for _, c := range []struct{ branches, hosts int }{{3, 4}, {4, 8}, {6, 14}, {8, 16}, {12, 20}} {
		for _, r := range []*rand.Rand{nil, rand.New(rand.NewPCG(1, 1))} {
			truth := threeLevels(c.branches, c.hosts, r)
			got := check(t, truth, topo.Config{Hosts: len(truth.Of)}, 1, nil, nil)
			t.Logf("%d hosts, shuffled %v: %d pings, %d streams, %d us", len(truth.Of), r != nil, got.Cost.Pings, got.Cost.Streams, got.Took)
		}
	}
}

// Where networks grow by levels of the same kind of switches, measurements grow as N log N, whether addresses follow the network or not.
func TestTopologyCost(t *testing.T) {
	for _, n := range []int{100, 316, 1000, 3162} {
		for _, c := range []struct {
			r            *rand.Rand
			pings, flows float64 // at most, by N log2 N
		}{{nil, 0.7, 0.2}, {rand.New(rand.NewPCG(1, 1)), 1.2, 0.2}} {
			got := check(t, Hierarchy(n, c.r), topo.Config{Hosts: n}, 1, nil, nil)
			nlogn := float64(n) * math.Log2(float64(n))
			if pings, flows := float64(got.Cost.Pings)/nlogn, float64(got.Cost.Streams)/nlogn; pings > c.pings || flows > c.flows {
				t.Errorf("%d hosts, shuffled %v: %.2f N log N round-trip times and %.2f N log N throughputs, want %.2f and %.2f at most", n, c.r != nil, pings, flows, c.pings, c.flows)
			}
		}
	}
}

// What is known from an earlier run is not measured again; hosts that are new find their places, also on new switches.
func TestTopologyUsesWhatIsKnown(t *testing.T) {
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 6))
		truth := randomNetwork(r, 2+r.IntN(12), 8)
		n := len(truth.Of)
		all := make([]int, n)
		fresh := r.IntN(n)
		for h := range all {
			all[h] = h
			if h >= fresh && h < fresh+3 {
				all[h] = -1
			}
		}
		got := check(t, truth, topo.Config{Hosts: n, Known: truth.Restrict(all)}, seed, nil, nil)
		whole := check(t, truth, topo.Config{Hosts: n}, seed, nil, nil)
		if got.Cost.Streams > whole.Cost.Streams || got.Cost.Streams > 60 {
			t.Errorf("seed %d: %d streams for 3 hosts more, %d for all %d", seed, got.Cost.Streams, whole.Cost.Streams, n)
		}
	}
}

// Lost packets make echoes late by far, and throughputs too small.
func TestTopologyWithLoss(t *testing.T) {
	for seed := range uint64(100) {
		truth := cluster112()
		n := NewNetwork(truth)
		n.Loss = 0.01
		got, err := n.Infer(topo.Config{Hosts: 112}, seed, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(truth.Splits(), got.Tree.Splits()); diff != "" {
			t.Errorf("seed %d: want\n%sgot\n%s%s", seed, truth, got.Tree, diff)
		}
	}
}

// None of the hosts that are measured first shares a switch with another one of these: all are as far from each other, as hosts of one switch are.
func TestTopologyWhereNeighborsShareNoSwitch(t *testing.T) {
	for _, c := range []struct{ switches, hosts int }{{17, 3}, {40, 5}, {60, 2}} {
		truth := &topo.Tree{N: 1}
		for range c.switches {
			truth.Links = append(truth.Links, [2]int{0, truth.N})
			truth.N++
		}
		for h := range c.switches * c.hosts {
			truth.Of = append(truth.Of, 1+h%c.switches)
		}
		for seed := range uint64(20) {
			check(t, truth, topo.Config{Hosts: len(truth.Of)}, seed, nil, nil)
		}
	}
}
