package coll

import (
	"bytes"
	"fmt"
	"math/rand/v2"
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

// add commutes; times multiplies 2x2 matrices modulo 251, which is associative and does not commute.
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

// Trees of three children a node are tested like the flat ones that are used, which at these sizes have one level.
func init() {
	for k := range algorithms {
		for _, alg := range algorithms[k] {
			if alg.name == "fan" && ofTree[Kind(k)] != nil {
				algorithms[k] = append(algorithms[k], algorithm{"fan3", fan(3, ofTree[Kind(k)]), alg.needs})
			}
		}
	}
}

// ofTree are the schedules that work over any tree.
var ofTree = map[Kind]func(*builder){Barrier: barrierTree, Bcast: bcastBinomial, Reduce: reduceBinomial, Allreduce: allreduceReduceBcast,
	Allgather: allgatherGatherBcast, Allgatherv: allgathervGatherBcast, ReduceScatter: reduceThenScatter, ReduceScatterBlock: reduceThenScatter}

// scenario is one collective call of all ranks, with what is to come of it.
type scenario struct {
	rng   *rand.Rand
	kind  Kind
	n     int
	procs []*proc
	want  [][]memory // by rank: send and receive buffer afterwards
}

func (s *scenario) pick() layout { return layouts[s.rng.IntN(len(layouts))] }

func (s *scenario) random(n int64) []byte {
	out := make([]byte, n)
	for i := range out {
		out[i] = byte(s.rng.IntN(251))
	}
	return out
}

// blank is a buffer with room for anything a scenario does, of recognisable content.
func blank(n int64, fill byte) memory {
	m := memory{data: bytes.Repeat([]byte{fill}, int(2*n*12+64)), origin: n*12 + 32}
	return m
}

func clone(m memory) memory { return memory{bytes.Clone(m.data), m.origin} }

// put writes data bytes into count elements of t at off.
func put(m memory, t layout, off int64, data []byte) {
	p := proc{mem: []memory{m}, types: [3]layout{TypeSend: t}}
	p.unpack(Ref{Buf: BufSend, Type: TypeSend, Off: off, Count: int64(len(data)) / t.Size}, data)
}

// sides are a rank's buffers, and their wanted contents.
func (s *scenario) rank(i int, a Args, st, rt layout, room int64) *proc {
	a.Kind, a.Rank, a.Size, a.SType, a.RType = s.kind, i, s.n, st.Type, rt.Type
	p := &proc{args: a, mem: []memory{blank(room, 0xA1), blank(room, 0xB2)}, types: [3]layout{byteOne, st, rt}}
	s.procs = append(s.procs, p)
	s.want = append(s.want, nil)
	return p
}

// freeze takes the present content as what the buffers are to hold in the end; changes to want follow.
func (s *scenario) freeze() {
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
				t.Fatalf("%s (%s): %s buffer of rank %d is\n% x\nand should be\n% x", label, p.plan.Algorithm, name, i,
					p.mem[k].data, s.want[i][k].data)
			}
		}
	}
	return count
}

// forEach runs build for all sizes 1..33, each algorithm, several seeds, eager and rendezvous.
func forEach(t *testing.T, k Kind, build func(s *scenario, force string)) {
	t.Helper()
	for _, alg := range append(Algorithms(k), "") {
		t.Run(fmt.Sprintf("%v/%s", k, alg), func(t *testing.T) {
			for n := 1; n <= 33; n++ {
				seeds := uint64(4)
				if n > 17 {
					seeds = 2
				}
				for seed := range seeds {
					s := &scenario{rng: rand.New(rand.NewPCG(seed, uint64(n))), kind: k, n: n}
					build(s, alg)
					s.check(t, fmt.Sprintf("%v n=%d seed=%d", k, n, seed), seed%2 == 0)
				}
			}
		})
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
			level[rank] = uint32([]int{rank * domains / s.n, rank % domains, s.rng.IntN(domains)}[way])
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

func TestBarrier(t *testing.T) {
	forEach(t, Barrier, func(s *scenario, force string) {
		a := s.args(force)
		for i := range s.n {
			s.rank(i, a, plain, plain, 1)
		}
		s.freeze()
	})
}

// TestBarrierHolds: no rank leaves before the last has entered.
func TestBarrierHolds(t *testing.T) {
	for _, alg := range Algorithms(Barrier) {
		for n := 2; n <= 33; n++ {
			late, levels := n/3, Levels(modulo(n, 2), modulo(n, 6))
			net := &network{rng: rand.New(rand.NewPCG(1, 2))}
			for i := range n {
				p := &proc{args: Args{Kind: Barrier, Rank: i, Size: n, Force: alg, Levels: levels}, mem: []memory{{}, {}}, types: [3]layout{byteOne, byteOne, byteOne}}
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
						t.Fatalf("%s: rank %d of %d left although rank %d had not entered", alg, i, n, late)
					}
				}
			}
		}
	}
}

func TestBcast(t *testing.T) {
	forEach(t, Bcast, func(s *scenario, force string) {
		a := s.args(force)
		elems := 2 * s.count()
		data := s.random(4 * elems)
		for i := range s.n {
			lt := s.pick()
			if s.rng.IntN(3) == 0 {
				lt = double
			}
			a.RCount = 4 * elems / lt.Size
			p := s.rank(i, a, lt, lt, elems)
			if i == a.Root {
				put(p.mem[1], lt, 0, data)
			}
		}
		s.freeze()
		for i, p := range s.procs {
			put(s.want[i][1], p.types[2], 0, data)
		}
	})
}

// blocks of equal size: sender i's block for receiver j is data(i, j).
func equalBlocks(t *testing.T, k Kind, roots bool) {
	forEach(t, k, func(s *scenario, force string) {
		a := s.args(force)
		c := 2 * s.count()
		a.InPlace = s.rng.IntN(3) == 0
		inPlace := a.InPlace
		send := make([][]byte, s.n) // all blocks of a sender, for Alltoall and Scatter n of them
		for i := range s.n {
			send[i] = s.random(4 * c * int64(s.n))
			st, rt := s.pick(), s.pick()
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
					put(p.mem[0], st, 0, block(i, 0))
				case k == Alltoall || i == a.Root:
					put(p.mem[0], st, int64(j)*p.args.SCount*st.Extent, block(i, j))
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
	})
}

func TestGather(t *testing.T)    { equalBlocks(t, Gather, true) }
func TestScatter(t *testing.T)   { equalBlocks(t, Scatter, true) }
func TestAllgather(t *testing.T) { equalBlocks(t, Allgather, false) }
func TestAlltoall(t *testing.T)  { equalBlocks(t, Alltoall, false) }

// TestFanNode: the tree is a tree, its subtrees are runs, and no node has more children than asked for.
func TestFanNode(t *testing.T) {
	for n := 1; n < 200; n += 3 {
		for _, k := range []int{1, 2, 3, 32} {
			for v := range n {
				nd := fanNode(v, n, k)
				next := v + 1
				for i, c := range nd.children {
					if c != next || fanNode(c, n, k).parent != v || fanNode(c, n, k).span != nd.spans[i] {
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
