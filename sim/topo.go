package sim

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"libspx/net/topo"
)

// Network is a simulated physical network: a tree of switches with hosts, whose links have a throughput and whose switches take time.
type Network struct {
	Tree *topo.Tree

	Host   float64 // microseconds that an echo spends in its two hosts
	Switch float64 // microseconds that one switch takes, once
	Noise  float64 // mean of what an echo takes longer, exponentially distributed
	Late   float64 // part of the echoes that are late by up to 100 times the noise
	Loss   float64 // part of the packets of echoes that are lost, and come retransmitTime later; and of throughputs that are up to a half too small for it
	Error  float64 // relative standard deviation of a measured throughput
	NIC    float64 // throughput of a host

	Busy func(r *rand.Rand, a, b int) float64 // microseconds that an echo takes longer because its hosts do other work; nil: they do not
	Left func(r *rand.Rand) float64           // part of a throughput that other work leaves; nil: all
	Link func(a, b int) float64

	next [][]int
	path map[[2]int][]int
}

// NewNetwork returns a network in which links between switches are as fast as hosts: 100 Mbit/s Ethernet like the paper's.
func NewNetwork(t *topo.Tree) *Network {
	return &Network{Tree: t, Host: 60, Switch: 8, Noise: 3, Late: 0.02, Error: 0.03, NIC: 100, Link: func(int, int) float64 { return 100 },
		next: t.Neighbors(), path: map[[2]int][]int{}}
}

func (n *Network) route(a, b int) []int {
	s, t := n.Tree.Of[a], n.Tree.Of[b]
	p, ok := n.path[[2]int{s, t}]
	if !ok {
		p = n.Tree.Path(s, t)
		n.path[[2]int{s, t}] = p
	}
	return p
}

// Ping returns the shortest of some echoes between two hosts in nanoseconds, and how long they took together.
func (n *Network) Ping(r *rand.Rand, a, b, echoes int) (shortest []int64, took float64) {
	base := n.Host + 2*n.Switch*float64(len(n.route(a, b)))
	for range echoes {
		t := base + n.Noise*r.ExpFloat64()
		if r.Float64() < n.Late {
			t += 100 * n.Noise * r.Float64()
		}
		if n.Loss > 0 && r.Float64() < n.Loss {
			t += float64(retransmitTime)
		}
		if n.Busy != nil {
			t += n.Busy(r, a, b)
		}
		took += t
		shortest = append(shortest, int64(1000*t))
	}
	slices.Sort(shortest)
	return shortest[:min(len(shortest), topo.Shortest)], took
}

// Rates returns what flows get that run at once: each as much as the others on its narrowest link (max-min fairness).
func (n *Network) Rates(flows [][2]int) []float64 {
	type edge [3]int // a directed link: 0, from, to between switches; 1 or 2, host, 0 out of or into a host
	uses := make([][]edge, len(flows))
	room, count := map[edge]float64{}, map[edge]int{}
	for i, f := range flows {
		uses[i] = append(uses[i], edge{1, f[0]}, edge{2, f[1]})
		p := n.route(f[0], f[1])
		for j := range len(p) - 1 {
			uses[i] = append(uses[i], edge{0, p[j], p[j+1]})
		}
		for _, e := range uses[i] {
			count[e]++
			if room[e] = n.NIC; e[0] == 0 {
				room[e] = n.Link(e[1], e[2])
			}
		}
	}
	rates := make([]float64, len(flows))
	for left := len(flows); left > 0; {
		share := math.Inf(1)
		for e, c := range count {
			if c > 0 {
				share = min(share, room[e]/float64(c))
			}
		}
		fixed := 0
		for i := range flows {
			tight := false
			for _, e := range uses[i] {
				tight = tight || room[e]/float64(count[e]) <= share*(1+1e-9)
			}
			if rates[i] == 0 && tight {
				rates[i] = share
				fixed++
			}
		}
		for i := range flows {
			if rates[i] == share {
				for _, e := range uses[i] {
					room[e] -= share
					count[e]--
				}
				uses[i] = nil
			}
		}
		left -= fixed
	}
	return rates
}

// Inference is what a run of topo.Machine came to and cost.
type Inference struct {
	Tree  *topo.Tree
	Doubt topo.Doubt
	Cost  topo.Cost
	Took  Time
}

// retransmitTime is how long a sender waits until it takes a packet for lost: the least that Linux has.
const retransmitTime = Time(200000)

// streamTime is how long a throughput is measured.
const streamTime = Time(20000)

// Infer runs the inference over a network; everything random in it comes from seed. The hosts in late join one after another, whenever the
// network is known without them; then those in leave leave at once.
func (n *Network) Infer(cfg topo.Config, seed uint64, late, leave []int) (Inference, error) {
	w := NewWorld(0, seed)
	m := topo.New(cfg)
	var result Inference
	absent := map[int]bool{}
	var act func(out topo.Output)
	act = func(out topo.Output) {
		for _, p := range out.Pings {
			shortest, took := n.Ping(w.Rand, p.A, p.B, p.Echoes)
			w.After(Time(took)+1, func() {
				if absent[p.A] || absent[p.B] {
					act(m.Failed(p.ID))
				} else {
					act(m.Pinged(p.ID, shortest))
				}
			})
		}
		if s := out.Stream; s != nil {
			w.After(streamTime, func() { act(m.Streamed(s.ID, n.measure(w.Rand, s.Flows))) })
		}
		switch {
		case out.Done == nil:
		case len(late) > 0:
			h := late[0]
			late = late[1:]
			act(m.Join(h))
		case len(leave) > 0:
			h := leave[0]
			leave = leave[1:]
			absent[h] = true
			act(m.Leave(h))
		default:
			result = Inference{out.Done, out.Doubt, m.Cost, w.Now}
		}
	}
	act(m.Start())
	for w.Step() {
	}
	if result.Tree == nil {
		return result, fmt.Errorf("seed %d: the inference stopped at %d us without a result", seed, w.Now)
	}
	return result, nil
}

// measure returns the throughput of each path with an error of measurement.
func (n *Network) measure(r *rand.Rand, paths [][][2]int) []float64 {
	var flows [][2]int
	for _, p := range paths {
		flows = append(flows, p...)
	}
	rates := n.Rates(flows)
	sums := make([]float64, len(paths))
	i := 0
	for p := range paths {
		for range paths[p] {
			sums[p] += rates[i]
			i++
		}
		sums[p] *= 1 + n.Error*r.NormFloat64()
		if n.Left != nil {
			sums[p] *= n.Left(r)
		}
		if n.Loss > 0 && r.Float64() < n.Loss {
			sums[p] *= 0.5 + r.Float64()/2
		}
	}
	return sums
}

// Hierarchy is a network of n hosts that grows by levels: 16 hosts on a switch, at most 8 switches below another one. Addresses follow it, or are
// shuffled.
func Hierarchy(n int, r *rand.Rand) *topo.Tree {
	const hosts, branches = 16, 8
	t := &topo.Tree{N: (n + hosts - 1) / hosts}
	all := make([]int, n)
	for h := range n {
		t.Of = append(t.Of, h/hosts)
		all[h] = h
	}
	for first, count := 0, t.N; count > 1; {
		above := t.N
		for i := range count {
			t.Links = append(t.Links, [2]int{first + i, above + i/branches})
		}
		first, count = above, (count+branches-1)/branches
		t.N += count
	}
	if r != nil {
		r.Shuffle(n, func(i, j int) { t.Of[i], t.Of[j] = t.Of[j], t.Of[i] })
	}
	return t.Restrict(all) // without switches that join only two others
}
