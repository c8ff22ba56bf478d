package conn

import (
	"math/bits"
	"slices"
)

// A Plan lists for all processes of a job the neighbours of each: those that it has a static
// connection with, or shares memory with. Every process computes the same one, so that none has to
// be sent.
type Plan struct {
	near [][]uint64 // of each process: a set
	gone []bool
	hops int // that a frame takes, at most
}

// Hops is how many a frame takes at most in a Plan of any kind.
const Hops = 8

// Way is a neighbour through which a process is reached.
type Way struct {
	Via   int
	Needs int // hops that a frame takes after the neighbour has it: 1 at least
}

// Route is how a process is reached: at once, or through one of some neighbours, the best first.
type Route struct {
	Kept bool
	Ways []Way
}

// Topology is the plan of section 3.1: of[p] is the switch of process p, -1 for one that takes no
// part, and processes p and q with host[p] == host[q] share memory. Processes that are gone keep
// their place in it, so that the connections of the rest stay as they are. Each process recomputes
// it when processes come or go, at the same time as all others on its host do: its cost grows with
// the connections that there are, not as what Static takes for each process.
func Topology(of, host []int, gone []bool) *Plan {
	n := len(of)
	p := &Plan{near: sets(n), gone: gone, hops: hops}
	on := make([][]int, slices.Max(append([]int{-1}, of...))+1) // the processes on each switch
	byHost := map[int][]int{}
	for i, s := range of {
		if s >= 0 {
			on[s] = append(on[s], i)
			byHost[host[i]] = append(byHost[host[i]], i)
		}
	}
	for _, list := range byHost {
		p.mesh(list)
	}
	for s, list := range on {
		p.mesh(list)
		for _, other := range on[:s] {
			few, many := list, other
			if len(few) > len(many) {
				few, many = many, few
			}
			for i := 0; i < len(many) && len(few) > 0; i++ {
				p.link(many[i], few[i%len(few)])
			}
		}
	}
	return p
}

// mesh makes all of a list neighbours of each other.
func (p *Plan) mesh(list []int) {
	if len(list) < 2 {
		return
	}
	all := make([]uint64, len(p.near[0]))
	for _, a := range list {
		all[a/64] |= 1 << (a % 64)
	}
	for _, a := range list {
		for w, word := range all {
			p.near[a][w] |= word
		}
		p.near[a][a/64] &^= 1 << (a % 64)
	}
}

// Random is a plan independent of the network: any two processes are neighbours with
// probability degree / n. It is what the topology is compared with.
func Random(n, degree int, gone []bool) *Plan {
	p := &Plan{near: sets(n), gone: gone, hops: hops}
	for i := range n {
		for k := range i {
			if mix(uint64(i)<<32|uint64(k))%uint64(n) < uint64(degree) {
				p.link(i, k)
			}
		}
	}
	return p
}

// mix is a hash that is the same everywhere (splitmix64).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

func sets(n int) [][]uint64 {
	words := (n + 63) / 64
	all := make([]uint64, n*words)
	list := make([][]uint64, n)
	for i := range list {
		list[i] = all[i*words : (i+1)*words]
	}
	return list
}

func (p *Plan) link(a, b int) {
	if a != b {
		p.near[a][b/64] |= 1 << (b % 64)
		p.near[b][a/64] |= 1 << (a % 64)
	}
}

// Near reports whether two processes are neighbours.
func (p *Plan) Near(a, b int) bool { return p.near[a][b/64]>>(b%64)&1 != 0 }

// Neighbors lists those of a process.
func (p *Plan) Neighbors(a int) (list []int) {
	for w, word := range p.near[a] {
		for ; word != 0; word &= word - 1 {
			list = append(list, w*64+bits.TrailingZeros64(word))
		}
	}
	return list
}

// Routes returns how self reaches each process, with at most most ways to each. No way leads
// through a process that is gone, or back to self; a frame takes at most as many hops as the plan
// allows. The shortest ways come first, then those with one hop more; which of equal ways comes
// first differs from pair to pair, so that relays share the work. A process that no way leads to
// has none: it is reached by a connection that is made for it.
func (p *Plan) Routes(self, most int) []Route {
	routes := make([]Route, len(p.near))
	around := p.Neighbors(self)
	around = slices.DeleteFunc(around, func(a int) bool { return p.gone[a] })
	reach := make([]circles, len(around))
	for i, a := range around {
		reach[i] = circles{plan: p, self: self, within: [][]uint64{p.near[a]}}
	}
	var list []int
	for dst := range routes {
		if dst == self || p.Near(self, dst) {
			routes[dst].Kept = true
			continue
		}
		ways, last := []Way(nil), p.hops-1
		for needs := 1; needs <= last && len(ways) < most; needs++ {
			list = list[:0]
			for i, a := range around {
				if reach[i].at(needs, dst) {
					list = append(list, a)
				}
			}
			if len(list) > 0 { // a process farther away than self would send it back
				last = min(last, needs+1)
			}
			for i := range list {
				if len(ways) < most {
					ways = append(ways, Way{list[((self+dst)%len(list)+i)%len(list)], needs})
				}
			}
		}
		routes[dst].Ways = ways
	}
	return routes
}

// circles are the processes that a neighbour of self reaches in so many hops, by ways neither
// through self nor through a process that is gone.
type circles struct {
	plan   *Plan
	self   int
	within [][]uint64 // in one hop at most, in two, and so on, as far as requested
}

// at: dst is reached in so many hops, and not in fewer.
func (c *circles) at(hops, dst int) bool {
	for len(c.within) < hops {
		c.grow()
	}
	has := func(set []uint64) bool { return set[dst/64]>>(dst%64)&1 != 0 }
	return has(c.within[hops-1]) && (hops == 1 || !has(c.within[hops-2]))
}

// grow takes one hop more.
func (c *circles) grow() {
	n := len(c.within)
	edge := c.within[n-1]
	set := slices.Clone(edge)
	for w, word := range edge {
		if n > 1 {
			word &^= c.within[n-2][w] // nearer ones have been handled
		}
		for ; word != 0; word &= word - 1 {
			b := w*64 + bits.TrailingZeros64(word)
			if b == c.self || c.plan.gone[b] {
				continue
			}
			for v, more := range c.plan.near[b] {
				set[v] |= more
			}
		}
	}
	c.within = append(c.within, set)
}
