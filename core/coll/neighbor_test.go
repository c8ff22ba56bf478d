package coll

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// edge goes from block out of its sender's send buffer to block in of its receiver's receive
// buffer.
type edge struct{ from, to, out, in int }

// hood is a neighbourhood: the sources and destinations of each rank, and which block becomes
// which.
type hood struct {
	sources, dests [][]int
	paired         bool
	edges          []edge
}

// randomGraph has edges between any ranks, to the sender itself and several of the same kind too.
// Parallel edges keep their order.
func randomGraph(rng *rand.Rand, n int) hood {
	h := hood{sources: make([][]int, n), dests: make([][]int, n)}
	for range rng.IntN(4*n + 1) {
		from, to := rng.IntN(n), rng.IntN(n)
		h.edges = append(h.edges, edge{from, to, len(h.dests[from]), len(h.sources[to])})
		h.dests[from], h.sources[to] = append(h.dests[from], to), append(h.sources[to], from)
	}
	return h
}

// randomGrid has the given number of points; what goes in one direction of a dimension comes in
// from the other.
func randomGrid(rng *rand.Rand, n int) hood {
	var dims []int
	for rest := n; ; {
		d := 1 + rng.IntN(rest)
		for rest%d != 0 {
			d--
		}
		dims = append(dims, d)
		if rest /= d; rest == 1 {
			break
		}
	}
	h := hood{sources: make([][]int, n), paired: true}
	stride := n
	for i, d := range dims {
		stride /= d
		periodic := rng.IntN(2) == 0
		for r := range n {
			x := r / stride % d
			neighbor := func(step int) int {
				if y := x + step; periodic || y >= 0 && y < d {
					return r + ((y+d)%d-x)*stride
				}
				return RootNone
			}
			down, up := neighbor(-1), neighbor(1)
			h.sources[r] = append(h.sources[r], down, up)
			if down != RootNone {
				h.edges = append(h.edges, edge{r, down, 2 * i, 2*i + 1})
			}
			if up != RootNone {
				h.edges = append(h.edges, edge{r, up, 2*i + 1, 2 * i})
			}
		}
	}
	h.dests = h.sources
	return h
}

// neighborCall is one operation on a random graph or grid.
func neighborCall(s *scenario, _ string) {
	h := randomGraph(s.rng, s.n)
	if s.rng.IntN(3) > 0 {
		h = randomGrid(s.rng, s.n)
	}
	s.neighbors(h)
}

// neighborhood runs one kind of operation on random graphs and grids.
func neighborhood(t *testing.T, k Kind) {
	for n := 1; n <= 20; n++ {
		for seed := range uint64(6) {
			call(t, k, n, "", seed)
		}
	}
}

// neighbors makes the ranks of a call on h, their data, and what is to come of it.
func (s *scenario) neighbors(h hood) {
	k := s.kind
	vector := k != NeighborAllgather && k != NeighborAlltoall
	gathers := k == NeighborAllgather || k == NeighborAllgatherv
	c := 2 * s.count()
	data := make([][][]byte, s.n) // by sender and block
	for r := range s.n {
		data[r] = make([][]byte, max(1, len(h.dests[r])))
		for i := range data[r] {
			m := c
			if vector {
				m = 2 * s.count()
			}
			if data[r][i] = s.random(4 * m); gathers {
				data[r][i] = data[r][0]
			}
		}
	}
	// elements of each block that comes; where no edge arrives, any count
	takes := make([][]int64, s.n)
	for r := range takes {
		takes[r] = make([]int64, len(h.sources[r]))
		for i := range takes[r] {
			if takes[r][i] = 3; !vector {
				takes[r][i] = c
			}
		}
	}
	for _, e := range h.edges {
		takes[e.to][e.in] = int64(len(data[e.from][e.out]) / 4)
	}
	for r := range s.n {
		gives := make([]int64, len(h.dests[r]))
		for i := range gives {
			gives[i] = int64(len(data[r][i]) / 4)
		}
		a := Args{CPUs: 2, Sources: h.sources[r], Dests: h.dests[r], Paired: h.paired}
		s.neighborRank(r, a, gives, takes[r], int64(len(data[r][0])/4), vector)
	}
	for r, p := range s.procs {
		for i, d := range data[r] {
			if gathers || len(h.dests[r]) > 0 {
				s.give(p.mem[0], p.sType(i), p.sOff(i), d)
			}
		}
	}
	s.freeze()
	for _, e := range h.edges {
		p := s.procs[e.to]
		off := int64(e.in) * c * p.types[2].Extent
		if vector {
			off = p.rOff(e.in)
		}
		put(s.want[e.to][1], p.rType(e.in), off, data[e.from][e.out])
	}
}

func (p *proc) sType(i int) layout {
	if p.sTypes != nil {
		return p.sTypes[i]
	}
	return p.types[1]
}

// sOff is where block i of the send buffer begins.
func (p *proc) sOff(i int) int64 {
	switch {
	case p.args.Kind == NeighborAllgather || p.args.Kind == NeighborAllgatherv:
		return 0
	case p.args.Kind == NeighborAlltoall:
		return int64(i) * p.args.SCount * p.types[1].Extent
	case p.sTypes != nil:
		return p.sDispls[i]
	}
	return p.sDispls[i] * p.types[1].Extent
}

// neighborRank makes a rank that gives and takes blocks of so many elements; own is its count where
// it gives all the same.
func (s *scenario) neighborRank(r int, a Args, gives, takes []int64, own int64, vector bool) {
	sDispls, sRoom := s.spread(gives)
	rDispls, rRoom := s.spread(takes)
	sRoom = max(sRoom, own, own*int64(len(gives)))
	st, rt := s.pickSend(sRoom), s.pick(rRoom)
	if !vector {
		if a.SCount, a.RCount = own, own; s.rng.IntN(3) == 0 {
			st, a.SCount = double, own/2
		}
	}
	p := s.rank(r, a, st, rt, max(sRoom, rRoom))
	p.sOwn = own
	if !vector {
		return
	}
	p.sCounts, p.rCounts, p.sDispls, p.rDispls = gives, takes, sDispls, rDispls
	if s.kind == NeighborAlltoallw {
		var sends, receives layout
		p.sTypes, p.sDispls, sends = s.ofTypes(gives, s.pickSend)
		p.rTypes, p.rDispls, receives = s.ofTypes(takes, s.pick)
		p.mem = []memory{s.blank(sends, 1), s.blank(receives, 1)}
		p.args.SType, p.args.RType = Type{}, Type{}
	}
}

func TestNeighborAllgather(t *testing.T)  { neighborhood(t, NeighborAllgather) }
func TestNeighborAllgatherv(t *testing.T) { neighborhood(t, NeighborAllgatherv) }
func TestNeighborAlltoall(t *testing.T)   { neighborhood(t, NeighborAlltoall) }
func TestNeighborAlltoallv(t *testing.T)  { neighborhood(t, NeighborAlltoallv) }
func TestNeighborAlltoallw(t *testing.T)  { neighborhood(t, NeighborAlltoallw) }

// TestNeighborGridOfOne: on a ring of one process its two neighbours are itself, and the blocks
// change sides (MPI-5.0, 9.6.2).
func TestNeighborGridOfOne(t *testing.T) {
	p, err := Compile(Args{Kind: NeighborAlltoall, Size: 1, CPUs: 1, Sources: []int{0, 0},
		Dests: []int{0, 0}, Paired: true,
		SCount: 1, RCount: 1, SType: plain.Type, RType: plain.Type})
	if err != nil {
		t.Fatal(err)
	}
	var at []int64
	for _, s := range p.Steps {
		at = append(at, s.X.Off)
	}
	if want := []int64{4, 0, 0, 4}; !slices.Equal(at, want) {
		t.Errorf("receives and sends at %v, not %v", at, want)
	}
}
