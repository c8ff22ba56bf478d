package coll

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
)

// The datatypes of the tests. All have 4 bytes of data, one 8.
var (
	plain   = layout{Type{4, 4, 0, 4, true}, []int64{0, 1, 2, 3}}
	gappy   = layout{Type{4, 9, 1, 6, false}, []int64{1, 2, 5, 6}}
	below   = layout{Type{4, 8, -3, 5, false}, []int64{-3, -2, 0, 1}}
	mixed   = layout{Type{4, 5, 0, 4, false}, []int64{3, 2, 1, 0}}
	back    = layout{Type{4, -6, 0, 4, false}, []int64{0, 1, 2, 3}}
	double  = layout{Type{8, 11, 0, 9, false}, []int64{8, 0, 1, 2, 4, 5, 6, 7}}
	byteOne = layout{Type{1, 1, 0, 1, true}, []int64{0}}
	layouts = []layout{plain, gappy, below, mixed, back}
)

// randomLayout is a datatype of 4 bytes of data: a column of a matrix, whose extent is one of its
// elements, or any bytes in any order with any extent. distinct: no byte of memory belongs to two
// of n elements, as in a receive buffer; else bytes may be in several elements, and several times
// in one.
func randomLayout(rng *rand.Rand, n int64, distinct bool) layout {
	var lt layout
	lt.Size = 4
	low := int64(rng.IntN(61) - 30)
	if rng.IntN(3) == 0 {
		wide := int64(1 + rng.IntN(2)) // bytes in a row
		stride := wide * (n + int64(rng.IntN(5)))
		for _, i := range rng.Perm(int(4 / wide)) {
			for k := range wide {
				lt.offsets = append(lt.offsets, low+int64(i)*stride+k)
			}
		}
		lt.Extent = wide * int64(1-2*rng.IntN(2))
	} else {
		for _, i := range rng.Perm(4 + rng.IntN(30))[:4] {
			lt.offsets = append(lt.offsets, low+int64(i))
		}
		if !distinct && rng.IntN(2) == 0 {
			lt.offsets[rng.IntN(4)] = lt.offsets[0]
		}
	}
	lt.TrueLB = slices.Min(lt.offsets)
	lt.TrueExtent = slices.Max(lt.offsets) + 1 - lt.TrueLB
	for try := 0; lt.Extent == 0; try++ {
		if lt.Extent = rng.Int64N(4*lt.TrueExtent) - 2*lt.TrueExtent; try == 4 {
			lt.Extent = lt.TrueExtent
		}
		if !distinct {
			break
		}
		if !lt.isDistinct(n) {
			lt.Extent = 0
		}
	}
	return lt
}

func (t *layout) isDistinct(n int64) bool {
	if abs(t.Extent) >= t.TrueExtent {
		return true
	}
	low, high := t.span(n)
	used := make([]bool, high-low)
	for i := range n {
		for _, o := range t.offsets {
			at := &used[i*t.Extent+o-low]
			if *at {
				return false
			}
			*at = true
		}
	}
	return true
}

// span is where the data of n elements are.
func (t *layout) span(n int64) (low, high int64) {
	last := max(n-1, 0) * t.Extent
	return min(last, 0) + t.TrueLB, max(last, 0) + t.TrueLB + t.TrueExtent
}

// add commutes; times multiplies 2x2 matrices modulo 251, which is associative and does not
// commute.
func add(lo, hi []byte) {
	for i := range hi {
		hi[i] += lo[i]
	}
}

func times(lo, hi []byte) {
	var out [4]byte
	for r := range 2 {
		for c := range 2 {
			out[2*r+c] = byte((int(lo[2*r])*int(hi[c]) + int(lo[2*r+1])*int(hi[2+c])) % 251)
		}
	}
	copy(hi, out[:])
}

// Trees of three children a node are tested like the flat ones that are used, which at these sizes
// have one level.
func init() {
	for k := range algorithms {
		for _, alg := range algorithms[k] {
			if alg.name == "fan" && ofTree[Kind(k)] != nil {
				algorithms[k] = append(algorithms[k],
					algorithm{name: "fan3", build: fan(3, ofTree[Kind(k)]), needs: alg.needs})
			}
		}
	}
}

// ofTree are the schedules that work over any tree.
var ofTree = map[Kind]func(*builder){Barrier: barrierTree, Bcast: bcastBinomial,
	Reduce: reduceBinomial, Allreduce: allreduceReduceBcast,
	Allgather: allgatherGatherBcast, Allgatherv: allgathervGatherBcast,
	ReduceScatter: reduceThenScatter, ReduceScatterBlock: reduceThenScatter}

// scenario is one collective call of all ranks, with what is to come of it.
type scenario struct {
	rng   *rand.Rand
	kind  Kind
	n     int
	procs []*proc
	want  [][]memory // by rank: send and receive buffer afterwards
	// take the content of the buffers as the input: in overlapping types other values may be there
	// now
	given []func()
}

// pick is a datatype for a buffer of n elements that is received into; pickSend for one that is
// only sent from.
func (s *scenario) pick(n int64) layout {
	if s.rng.IntN(3) == 0 {
		return layouts[s.rng.IntN(len(layouts))]
	}
	return randomLayout(s.rng, max(n, 1), true)
}

func (s *scenario) pickSend(n int64) layout {
	if s.rng.IntN(2) == 0 {
		return randomLayout(s.rng, max(n, 1), false)
	}
	return s.pick(n)
}

func (s *scenario) random(n int64) []byte {
	out := make([]byte, n)
	for i := range out {
		out[i] = byte(s.rng.IntN(251))
	}
	return out
}

// blank is a buffer with room for n elements of t, and for some bytes that must stay as they are.
func (s *scenario) blank(t layout, n int64) memory {
	const around = 32
	low, high := t.span(n)
	low, high = min(low, 0), max(high, 0)
	return memory{s.random(high - low + 2*around), around - low}
}

func clone(m memory) memory { return memory{bytes.Clone(m.data), m.origin} }

// put writes data bytes into count elements of t at off.
func put(m memory, t layout, off int64, data []byte) {
	p := proc{mem: []memory{m}, types: [3]layout{TypeSend: t}}
	p.unpack(Ref{Buf: BufSend, Type: TypeSend, Off: off, Count: int64(len(data)) / t.Size}, data)
}

// give puts data into a send buffer. Where elements overlap, data become what is there at last.
func (s *scenario) give(m memory, t layout, off int64, data []byte) {
	put(m, t, off, data)
	s.given = append(s.given, func() {
		p := proc{mem: []memory{m}, types: [3]layout{TypeSend: t}}
		copy(data, p.pack(Ref{Buf: BufSend, Type: TypeSend, Off: off,
			Count: int64(len(data)) / t.Size}))
	})
}

// rank adds a rank whose buffers have room for so many elements.
func (s *scenario) rank(i int, a Args, st, rt layout, room int64) *proc {
	a.Kind, a.Rank, a.Size, a.SType, a.RType = s.kind, i, s.n, st.Type, rt.Type
	p := &proc{args: a, mem: []memory{s.blank(st, room), s.blank(rt, room)},
		types: [3]layout{byteOne, st, rt}}
	s.procs = append(s.procs, p)
	s.want = append(s.want, nil)
	return p
}

// freeze takes the present content as what the buffers are to hold in the end; changes to want
// follow.
func (s *scenario) freeze() {
	for _, take := range s.given {
		take()
	}
	for i, p := range s.procs {
		s.want[i] = []memory{clone(p.mem[0]), clone(p.mem[1])}
	}
}

// check compiles and runs the scenario, and compares.
func (s *scenario) check(t *testing.T, label string, eager bool) int {
	t.Helper()
	for i, p := range s.procs {
		plan, err := Compile(p.args)
		if err != nil {
			t.Fatalf("%s: rank %d: %v", label, i, err)
		}
		p.plan = plan
	}
	net := &network{procs: s.procs, rng: s.rng, eager: eager}
	count, err := net.run()
	if err != nil {
		t.Fatalf("%s (%s): %v", label, s.procs[0].plan.Algorithm, err)
	}
	for i, p := range s.procs {
		for k, name := range []string{"send", "receive"} {
			if !bytes.Equal(p.mem[k].data, s.want[i][k].data) {
				t.Fatalf("%s (%s): %s buffer of rank %d is\n% x\nand should be\n% x", label,
					p.plan.Algorithm, name, i,
					p.mem[k].data, s.want[i][k].data)
			}
		}
	}
	return count
}

// builders make a random call of each operation.
var builders = map[Kind]func(s *scenario, force string){
	Barrier: barrierCall, Bcast: bcastCall,
	Gather: equalBlocks(Gather, true), Scatter: equalBlocks(Scatter, true),
	Allgather: equalBlocks(Allgather, false), Alltoall: equalBlocks(Alltoall, false),
	Gatherv: vBlocks(Gatherv), Scatterv: vBlocks(Scatterv), Allgatherv: vBlocks(Allgatherv),
	Alltoallv: vBlocks(Alltoallv), Alltoallw: vBlocks(Alltoallw),
	Reduce: reductions(Reduce), Allreduce: reductions(Allreduce), Scan: reductions(Scan),
	Exscan:             reductions(Exscan),
	ReduceScatterBlock: reductions(ReduceScatterBlock), ReduceScatter: reductions(ReduceScatter),
	NeighborAllgather: neighborCall, NeighborAllgatherv: neighborCall,
	NeighborAlltoall:  neighborCall,
	NeighborAlltoallv: neighborCall, NeighborAlltoallw: neighborCall,
}

// call makes and checks one call.
func call(t *testing.T, k Kind, n int, force string, seed uint64) {
	t.Helper()
	s := &scenario{rng: rand.New(rand.NewPCG(seed, uint64(n))), kind: k, n: n}
	builders[k](s, force)
	s.check(t, fmt.Sprintf("%v n=%d seed=%d", k, n, seed), seed%2 == 0)
}

// forEach makes calls of an operation with many numbers of ranks and each algorithm, by eager and
// rendezvous messages.
func forEach(t *testing.T, k Kind) {
	t.Helper()
	for _, alg := range append(Algorithms(k), "") {
		t.Run(fmt.Sprintf("%v/%s", k, alg), func(t *testing.T) {
			for _, n := range []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 15, 16, 17, 24, 33} {
				seeds := uint64(4)
				if n > 9 {
					seeds = 2
				}
				for seed := range seeds {
					call(t, k, n, alg, seed)
				}
			}
		})
	}
}

// TestRandom: calls of any operation by any algorithm on 1 to 9 ranks, with any datatypes.
func TestRandom(t *testing.T) {
	cases := 2000
	if os.Getenv("SPX_TESTS") == "full" {
		cases = 100000
	}
	for i := range cases {
		rng := rand.New(rand.NewPCG(uint64(i), 7))
		k := Kind(rng.IntN(int(Kinds)))
		if rng.IntN(8) == 0 {
			interCall(t, interKinds[rng.IntN(len(interKinds))], 1+rng.IntN(5), 1+rng.IntN(5),
				uint64(1000+i))
			continue
		}
		names := append(Algorithms(k), "")
		call(t, k, 1+rng.IntN(9), names[rng.IntN(len(names))], uint64(1000+i))
	}
}

func (s *scenario) args(force string) Args {
	a := Args{Force: force, CPUs: []int{1, 64}[s.n%2], Root: s.rng.IntN(s.n)}
	if s.rng.IntN(2) == 0 || force == "shared" {
		a.Shared = testPart
	}
	if s.rng.IntN(3) == 0 || force == "levels" || force == "by_host" {
		a.Levels = s.levels()
		a.Switched = len(a.Levels) > 0 && s.rng.IntN(2) == 0
		a.Several = s.rng.IntN(2) == 0 || force == "by_host"
	}
	if levels := s.levels(); len(levels) > 0 && (s.rng.IntN(3) == 0 || force == "by_switch") {
		a.Near = levels[0]
	}
	return a
}

// levels puts the ranks into domains: runs, in turn, or as it comes.
func (s *scenario) levels() [][]int32 {
	var all [][]uint32
	for range 1 + s.rng.IntN(3) {
		domains, way := 1+s.rng.IntN(6), s.rng.IntN(3)
		level := make([]uint32, s.n)
		for rank := range level {
			level[rank] = uint32([]int{rank * domains / s.n, rank % domains,
				s.rng.IntN(domains)}[way])
		}
		all = append(all, level)
	}
	return Levels(all...)
}

// count is mostly small, sometimes zero, sometimes long.
func (s *scenario) count() int64 {
	switch s.rng.IntN(6) {
	case 0:
		return 0
	case 1:
		return int64(40 + s.rng.IntN(120))
	}
	return int64(1 + s.rng.IntN(6))
}

func barrierCall(s *scenario, force string) {
	a := s.args(force)
	for i := range s.n {
		s.rank(i, a, plain, plain, 1)
	}
	s.freeze()
}

func TestBarrier(t *testing.T) { forEach(t, Barrier) }

// TestBarrierHolds: no rank leaves before the last has entered.
func TestBarrierHolds(t *testing.T) {
	for _, alg := range Algorithms(Barrier) {
		for n := 2; n <= 33; n++ {
			late, levels := n/3, Levels(modulo(n, 2), modulo(n, 6))
			net := &network{rng: rand.New(rand.NewPCG(1, 2))}
			for i := range n {
				p := &proc{args: Args{Kind: Barrier, Rank: i, Size: n, Force: alg, Levels: levels},
					mem: []memory{{}, {}}, types: [3]layout{byteOne, byteOne, byteOne}}
				p.plan, _ = Compile(p.args)
				if i == late {
					p.plan = &Plan{Steps: []Step{{Op: OpWait, N: 1}}, Waits: []int32{0}, Slots: 1}
				}
				net.procs = append(net.procs, p)
			}
			if _, err := net.run(); err == nil {
				t.Fatalf("%s: all of %d ranks passed without rank %d", alg, n, late)
			}
			for i, p := range net.procs {
				if i != late && p.pc == len(p.plan.Steps) {
					all := true
					for _, d := range p.done {
						all = all && d
					}
					if all {
						t.Fatalf("%s: rank %d of %d left although rank %d had not entered", alg, i,
							n, late)
					}
				}
			}
		}
	}
}

func bcastCall(s *scenario, force string) {
	a := s.args(force)
	elems := 2 * s.count()
	data := s.random(4 * elems)
	for i := range s.n {
		lt := s.pick(elems)
		if i == a.Root {
			lt = s.pickSend(elems)
		}
		if s.rng.IntN(4) == 0 {
			lt = double
		}
		a.RCount = 4 * elems / lt.Size
		p := s.rank(i, a, lt, lt, elems)
		if i == a.Root {
			s.give(p.mem[1], lt, 0, data)
		}
	}
	s.freeze()
	for i, p := range s.procs {
		if i != a.Root {
			put(s.want[i][1], p.types[2], 0, data)
		}
	}
}

func TestBcast(t *testing.T) { forEach(t, Bcast) }

// blocks of equal size: sender i's block for receiver j is data(i, j).
func equalBlocks(k Kind, roots bool) func(s *scenario, force string) {
	return func(s *scenario, force string) {
		a := s.args(force)
		c := 2 * s.count()
		a.InPlace = s.rng.IntN(3) == 0
		inPlace := a.InPlace
		send := make([][]byte, s.n) // all blocks of a sender, for Alltoall and Scatter n of them
		for i := range s.n {
			send[i] = s.random(4 * c * int64(s.n))
			st, rt := s.pickSend(c*int64(s.n)), s.pick(c*int64(s.n))
			if s.rng.IntN(3) == 0 {
				st = double
			}
			a.SCount, a.RCount = 4*c/st.Size, c
			a.InPlace = inPlace && (!roots || i == a.Root)
			s.rank(i, a, st, rt, c*int64(s.n))
		}
		block := func(i, j int) []byte { // what receiver j gets from sender i
			at := 4 * c * int64(j)
			if k == Gather || k == Allgather {
				at = 0
			}
			return send[i][at : at+4*c]
		}
		for i, p := range s.procs {
			st, rt := p.types[1], p.types[2]
			for j := range s.n {
				switch {
				case p.args.InPlace && k == Alltoall:
					put(p.mem[1], rt, int64(j)*c*rt.Extent, block(i, j))
				case p.args.InPlace && k != Scatter:
					put(p.mem[1], rt, int64(i)*c*rt.Extent, block(i, i))
				case k == Gather || k == Allgather:
					s.give(p.mem[0], st, 0, block(i, 0))
				case k == Alltoall || i == a.Root:
					s.give(p.mem[0], st, int64(j)*p.args.SCount*st.Extent, block(i, j))
				}
			}
		}
		s.freeze()
		for j, p := range s.procs {
			rt := p.types[2]
			for i := range s.n {
				switch {
				case k == Scatter && (i != a.Root || p.args.InPlace):
				case k == Gather && j != a.Root:
				case k == Scatter:
					put(s.want[j][1], rt, 0, block(i, j))
				default:
					put(s.want[j][1], rt, int64(i)*c*rt.Extent, block(i, j))
				}
			}
		}
	}
}

func TestGather(t *testing.T)    { forEach(t, Gather) }
func TestScatter(t *testing.T)   { forEach(t, Scatter) }
func TestAllgather(t *testing.T) { forEach(t, Allgather) }
func TestAlltoall(t *testing.T)  { forEach(t, Alltoall) }

// TestFanNode: the tree is a tree, its subtrees are runs, and no node has more children than asked
// for.
func TestFanNode(t *testing.T) {
	for n := 1; n < 200; n += 3 {
		for _, k := range []int{1, 2, 3, 32} {
			for v := range n {
				nd := fanNode(v, n, k)
				next := v + 1
				for i, c := range nd.children {
					if c != next || fanNode(c, n, k).parent != v ||
						fanNode(c, n, k).span != nd.spans[i] {
						t.Fatalf("n=%d k=%d: child %d of %d", n, k, c, v)
					}
					next += nd.spans[i]
				}
				if next != v+nd.span || len(nd.children) > k || (nd.parent < 0) != (v == 0) {
					t.Fatalf("n=%d k=%d: node %d is %+v", n, k, v, nd)
				}
			}
		}
	}
}
