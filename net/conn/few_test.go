package conn

import (
	"math/rand/v2"
	"testing"
)

func tablesOf(p *Plan) (tables [][]Route) {
	for self := range p.near {
		tables = append(tables, p.Routes(self, 4))
	}
	return tables
}

// hopsTo is how many hops the shortest way to each process takes, from one that follows the tables;
// 0: none leads there.
func hopsTo(p *Plan, self, dst int) int {
	r := p.Routes(self, 1)[dst]
	switch {
	case r.Kept:
		return 1
	case len(r.Ways) == 0:
		return 0
	}
	return r.Ways[0].Needs + 1
}

// All reach all, in no more hops than the arithmetic promises, over no more
// connections than allowed.
func TestFewReachAll(t *testing.T) {
	for _, n := range []int{2, 6, 7, 24, 63, 64, 65, 200} {
		for _, degree := range []int{4, 6, 14} {
			alone, k, most := make([]int, n), degree/2, 1
			for i := range alone {
				alone[i] = i
			}
			for all := k; all < n; all *= k {
				most++
			}
			p := Few(degree, alone, make([]bool, n))
			tables := tablesOf(p)
			for self := range n {
				if list := p.Neighbors(self); len(list) > degree {
					t.Fatalf("%d processes: %d has the neighbours %v, more than %d", n, self, list,
						degree)
				}
				for dst, r := range tables[self] {
					if self == dst {
						continue
					}
					if !r.Kept && (len(r.Ways) == 0 || r.Ways[0].Needs+1 > min(most, Hops)) {
						t.Fatalf(
							"%d processes with %d neighbours: from %d to %d by %+v, where %d "+
								"hops are enough", n, degree, self, dst, r, most)
					}
					for _, w := range r.Ways {
						if !follow(p, tables, self, w, dst) {
							t.Fatalf(
								"%d processes with %d neighbours: from %d through %+v no way "+
									"leads to %d", n, degree, self, w, dst)
						}
					}
				}
			}
		}
	}
}

// Shared memory makes ways shorter; and when some processes are gone, the remaining ones nearly
// always have ways around them.
func TestFewWithHosts(t *testing.T) {
	pairs, lost := 0, 0
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 4))
		n := 20 + r.IntN(40)
		host, alone, gone := make([]int, n), make([]int, n), make([]bool, n)
		for i := range n {
			host[i], alone[i] = i/4, i
		}
		p, apart := Few(4, host, gone), Few(4, alone, gone)
		for range 20 {
			a, b := r.IntN(n), r.IntN(n)
			if together, h := hopsTo(p, a, b), hopsTo(apart, a, b); a != b &&
				(together == 0 || together > h) {
				t.Fatalf("seed %d: %d hops from %d to %d of %d with hosts of 4, %d without", seed,
					together, a, b, n, h)
			}
		}
		for i := range gone {
			gone[i] = r.IntN(10) == 0
		}
		tables := tablesOf(p)
		for a := range n {
			for b, route := range tables[a] {
				if a == b || gone[a] || gone[b] || route.Kept {
					continue
				}
				if pairs++; len(route.Ways) == 0 {
					lost++
				}
				for _, w := range route.Ways {
					if !follow(p, tables, a, w, b) {
						t.Fatalf("seed %d: from %d through %+v no way leads to %d", seed, a, w, b)
					}
				}
			}
		}
	}
	if t.Logf("%d pairs, %d without a way", pairs, lost); lost*50 > pairs || pairs < 4000 {
		t.Error("too few ways")
	}
}
