package conn

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"libspx/ft/rankset"
	"libspx/net/topo"
)

// randomPlan has up to 40 processes on up to 6 switches, some of which share memory.
func randomPlan(r *rand.Rand) (*Plan, []bool) {
	n, switches := 2+r.IntN(39), 1+r.IntN(6)
	of, host, gone := make([]int, n), make([]int, n), make([]bool, n)
	for i := range n {
		if i > 0 && r.IntN(3) == 0 {
			host[i], of[i] = host[i-1], of[i-1]
			continue
		}
		host[i], of[i] = i, r.IntN(switches)
	}
	if r.IntN(4) == 0 {
		return Random(n, max(1, n/2), gone), gone
	}
	return Topology(of, host, gone), gone
}

// walk follows the tables as relays do: each with the hops that are left. false: a frame is dropped
// on the way.
func walk(p *Plan, src int, way Way, dst int) bool {
	return follow(p, nil, src, way, dst)
}

// follow is walk by tables that are there already, by process; nil: they are made.
func follow(p *Plan, tables [][]Route, src int, way Way, dst int) bool {
	at, left := way.Via, way.Needs
	for {
		if p.gone[at] {
			return false
		}
		if p.Near(at, dst) {
			return left >= 1
		}
		var ways []Way
		if tables != nil {
			ways = tables[at][dst].Ways
		} else {
			ways = p.Routes(at, 4)[dst].Ways
		}
		i := slices.IndexFunc(ways, func(w Way) bool { return w.Needs <= left-1 })
		if i < 0 {
			return false
		}
		next := ways[i]
		if next.Via == src {
			return false
		}
		at, left = next.Via, next.Needs
	}
}

// Without failures all reach all, in at most three hops, in a topology; neighbours
// are so both ways; and all ways lead there, also when some are gone.
func TestPlanReachesAll(t *testing.T) {
	ways, lost := 0, 0
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 1))
		p, gone := randomPlan(r)
		check := func(all bool) {
			for a := range p.near {
				for b, route := range p.Routes(a, 4) {
					if a == b || gone[a] || gone[b] {
						continue
					}
					if p.Near(a, b) != p.Near(b, a) || route.Kept != p.Near(a, b) {
						t.Fatalf("seed %d: %d and %d are neighbours from one side", seed, a, b)
					}
					if !route.Kept && len(route.Ways) == 0 {
						lost++
					}
					for _, w := range route.Ways {
						if ways++; !walk(p, a, w, b) {
							t.Fatalf("seed %d: from %d through %+v no way leads to %d", seed, a, w,
								b)
						}
					}
				}
			}
		}
		check(true)
		for i := range gone {
			gone[i] = r.IntN(8) == 0
		}
		check(false)
	}
	t.Logf("%d ways, %d pairs without", ways, lost)
	if ways < 4000 || lost*20 > ways {
		t.Error("too few ways")
	}
}

// A topology of any switches leaves no process without a way as long as none is gone.
func TestTopologyIsComplete(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 2))
		n := 2 + r.IntN(60)
		of, host := make([]int, n), make([]int, n)
		for i := range n {
			of[i], host[i] = r.IntN(1+r.IntN(8)), i
		}
		p := Topology(of, host, make([]bool, n))
		for a := range n {
			for b, route := range p.Routes(a, 4) {
				if !route.Kept && len(route.Ways) == 0 {
					t.Fatalf("seed %d: no way from %d to %d: switches %v", seed, a, b, of)
				}
			}
		}
	}
}

// The table matches the behaviour of a Node that was notified by its neighbours.
func TestPlanIsWhatNodesDo(t *testing.T) {
	compared := 0
	for seed := range uint64(200) {
		p, _ := randomPlan(rand.New(rand.NewPCG(seed, 3)))
		for self := range p.near {
			node := New(Config{Self: self, Static: p.Neighbors(self)})
			for _, a := range p.Neighbors(self) {
				l := &link{static: true, near: rankset.Of(p.Neighbors(a)...)}
				for _, b := range p.Neighbors(a) {
					if b != self {
						l.far = l.far.Union(rankset.Of(p.Neighbors(b)...))
					}
				}
				l.credits = [hops]int{1, 1, 1}
				node.links[a] = l
			}
			for dst, route := range p.Routes(self, 4) {
				if route.Kept {
					continue
				}
				via, needs := node.way(self, dst, hops-1)
				if len(route.Ways) == 0 && via < 0 {
					continue
				}
				if compared++; len(route.Ways) == 0 || route.Ways[0] != (Way{via, needs}) {
					t.Fatalf(
						"seed %d: from %d to %d the table says %+v, a Node goes through %d with %d",
						seed, self, dst, route.Ways, via, needs)
				}
			}
		}
	}
	if compared < 1000 {
		t.Errorf("only %d ways were compared", compared)
	}
}

// The plan of all is the union of Static for each process and shared memory.
func TestTopologyIsThatOfEach(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 5))
		n, switches, hosts := 1+r.IntN(90), 1+r.IntN(7), 1+r.IntN(30)
		of, host, alone := make([]int, n), make([]int, n), make([]int, n)
		for i := range n {
			of[i], host[i], alone[i] = r.IntN(switches+1)-1, r.IntN(hosts), i
		}
		p := Topology(of, host, make([]bool, n))
		tree := topo.Tree{Of: of, N: switches}
		want := sets(n)
		for a := range n {
			list := Static(&tree, alone, a)
			for b := range n {
				if of[a] >= 0 && of[b] >= 0 && host[a] == host[b] {
					list = append(list, b)
				}
			}
			for _, b := range list {
				if a != b {
					want[a][b/64] |= 1 << (b % 64)
				}
			}
		}
		for a := range n {
			if !slices.Equal(p.near[a], want[a]) {
				t.Fatalf("seed %d: process %d of %d: %b, want %b\nswitches %v, hosts %v", seed, a,
					n, p.near[a], want[a], of, host)
			}
		}
	}
}

// All processes of a job make the plan and their routes at once when some have died: with 1,280 on
// 80 hosts that takes each some milliseconds at most.
func BenchmarkTopology(b *testing.B) {
	const n, ways = 1280, 4
	host, gone := make([]int, n), make([]bool, n)
	for _, perSwitch := range []int{16, 128} {
		of := make([]int, n)
		for i := range n {
			host[i], of[i] = i/16, i/perSwitch
		}
		b.Run(fmt.Sprintf("switches=%d", n/perSwitch), func(b *testing.B) {
			for range b.N {
				Topology(of, host, gone).Routes(17, ways)
			}
		})
	}
}
