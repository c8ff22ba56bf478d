package coll

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// modulo puts rank i of n into domain i % k.
func modulo(n, k int) []uint32 {
	out := make([]uint32, n)
	for i := range out {
		out[i] = uint32(i % k)
	}
	return out
}

// Irrelevant levels are left out, and inner ones divide the outer.
func TestLevels(t *testing.T) {
	for _, c := range []struct {
		in   [][]uint32
		want [][]int32
	}{
		{nil, nil},
		{[][]uint32{{7, 7, 7, 7}}, nil},
		{[][]uint32{{4, 3, 2, 1}}, nil},
		{[][]uint32{{9, 4, 9, 4}}, [][]int32{{0, 1, 0, 1}}},
		{[][]uint32{{1, 1, 2, 2, 2, 2}, {5, 5, 5, 5, 6, 6}},
			[][]int32{{0, 0, 1, 1, 1, 1}, {0, 0, 1, 1, 2, 2}}},
		{[][]uint32{{1, 1, 1, 2, 2, 2}, {1, 1, 1, 2, 2, 2}, {1, 2, 3, 4, 5, 6}},
			[][]int32{{0, 0, 0, 1, 1, 1}}},
	} {
		if d := cmp.Diff(c.want, Levels(c.in...)); d != "" {
			t.Errorf("%v: (-want +got)\n%s", c.in, d)
		}
	}
}

// Switches count where several hosts stand behind one of them, and there are several.
func TestByNetwork(t *testing.T) {
	for _, c := range []struct {
		switches, hosts []uint32
		want            [][]int32
		switched        bool
	}{
		{[]uint32{5, 5, 6, 6}, []uint32{0, 1, 2, 3}, [][]int32{{0, 0, 1, 1}}, true},
		{[]uint32{5, 6, 5, 6, 5, 6}, []uint32{0, 1, 2, 3, 0, 1},
			[][]int32{{0, 1, 0, 1, 0, 1}, {0, 1, 2, 3, 0, 1}}, true},
		{[]uint32{5, 5, 6, 6}, []uint32{0, 0, 1, 1}, [][]int32{{0, 0, 1, 1}}, false},
		{[]uint32{5, 5, 5, 5}, []uint32{0, 0, 1, 1}, [][]int32{{0, 0, 1, 1}}, false},
		{[]uint32{1, 2, 3, 4}, []uint32{0, 1, 2, 3}, nil, false},
	} {
		levels, switched := ByNetwork(c.switches, c.hosts)
		if d := cmp.Diff(c.want, levels); d != "" || switched != c.switched {
			t.Errorf("%v %v: %v (-want +got)\n%s", c.switches, c.hosts, switched, d)
		}
	}
}

// far counts the messages of all ranks' plans that leave a domain of the outermost level.
func far(plans []*Plan, level []int32) (n int) {
	for rank, p := range plans {
		for _, s := range p.Steps {
			if s.Op == OpSend && level[rank] != level[s.Peer] {
				n++
			}
		}
	}
	return n
}

// However the ranks are spread, data cross between domains once for each of them, and the choice
// falls on these schedules.
func TestLevelsCross(t *testing.T) {
	const n, domains = 24, 4
	byTurns := Levels(modulo(n, domains))
	for _, c := range []struct {
		kind  Kind
		bytes int64
		most  int
	}{
		{Barrier, 0, domains * 2}, {Bcast, 8, domains - 1}, {Bcast, 128 << 10, domains - 1},
		{Bcast, 10 * 128 << 10, 10 * (domains - 1)}, {Reduce, 8, domains - 1},
		{Allreduce, 8, domains * 2}, {Allreduce, 1 << 20, domains * 4},
	} {
		var plans []*Plan
		for rank := range n {
			p, err := Compile(Args{Kind: c.kind, Rank: rank, Size: n, Root: 5, RCount: c.bytes,
				SCount: c.bytes, SType: byteOne.Type, RType: byteOne.Type,
				CPUs: 64, Commute: true, Levels: byTurns})
			if err != nil || p.Algorithm != "levels" {
				t.Fatalf("%v: %v %v", c.kind, p, err)
			}
			plans = append(plans, p)
		}
		if got := far(plans, byTurns[0]); got > c.most {
			t.Errorf("%v of %d bytes: %d messages between domains, at most %d are needed", c.kind,
				c.bytes, got, c.most)
		}
	}
}

// Where all ranks have data for all ranks, data go from host to host once for all ranks there.
func TestAllToAllLevelsCross(t *testing.T) {
	const n, perHost = 48, 8
	const hosts = n / perHost
	level := make([]uint32, n)
	for rank := range level {
		level[rank] = uint32(rank / perHost)
	}
	levels := Levels(level)
	for _, c := range []struct {
		kind  Kind
		bytes int64
		use   string
		most  int
	}{
		{Allgather, 8, "levels", hosts * (hosts - 1)},
		{Allgather, 256 << 10, "levels", hosts * (hosts - 1)},
		{Alltoall, 8, "by_host", n * (hosts - 1)},
		{Alltoall, hostBlock, "by_host", n * (hosts - 1)},
		{Gather, 8, "by_host", hosts - 1}, {Scatter, hostBlock, "by_host", hosts - 1},
		{Scan, 8, "by_host", hosts * 3}, {Exscan, 1 << 20, "by_host", hosts * 3},
	} {
		var plans []*Plan
		for rank := range n {
			// the hosts have different numbers of processors
			p, err := Compile(Args{Kind: c.kind, Rank: rank, Size: n, RCount: c.bytes,
				SCount: c.bytes, SType: byteOne.Type, RType: byteOne.Type,
				CPUs: 1 << (rank / perHost), Several: true, Levels: levels})
			if err != nil || p.Algorithm != c.use {
				t.Fatalf("%v of %d bytes: %v %v", c.kind, c.bytes, p, err)
			}
			plans = append(plans, p)
		}
		if got := far(plans, levels[0]); got > c.most {
			t.Errorf("%v of %d bytes: %d messages between hosts, at most %d are needed", c.kind,
				c.bytes, got, c.most)
		}
	}
}

// Short blocks of many ranks go along a tree and back, not from each rank to each: with 1,024 ranks
// that would be a million messages.
func TestReduceScatterOfMany(t *testing.T) {
	const perHost = 8
	for _, c := range []struct {
		hosts int
		block int64
		class int
		use   string
	}{{16, 8, 10, "reduce_scatter"}, {16, 512, 16, "reduce_scatter"},
		{16, 64 << 10, 23, "pairwise"}, {4, 8, 8, "pairwise"}} {
		n := c.hosts * perHost
		level := make([]uint32, n)
		for rank := range level {
			level[rank] = uint32(rank / perHost)
		}
		for _, kind := range []Kind{ReduceScatter, ReduceScatterBlock} {
			var plans []*Plan
			for rank := range n {
				p, err := Compile(Args{Kind: kind, Rank: rank, Size: n, RCount: c.block,
					SCount: c.block, SType: byteOne.Type, RType: byteOne.Type, SizeClass: c.class,
					CPUs:    2,
					Several: true, Commute: true, Levels: Levels(level)})
				if err != nil || p.Algorithm != c.use {
					t.Fatalf("%v, %d ranks, blocks of %d bytes: %v %v", kind, n, c.block, p, err)
				}
				plans = append(plans, p)
			}
			if got := far(plans, Levels(level)[0]); c.use == "reduce_scatter" && got > 2*(n-1) {
				t.Errorf("%v, %d ranks, blocks of %d bytes: %d messages between hosts", kind, n,
					c.block, got)
			}
		}
	}
}

// Hosts may have different numbers of processors: all ranks choose alike nevertheless.
func TestHostsDiffer(t *testing.T) {
	for _, perHost := range []int{1, 2, 8} {
		n := 6 * perHost
		level := make([]uint32, n)
		for rank := range level {
			level[rank] = uint32(rank / perHost)
		}
		for k := range Kinds {
			for _, bytes := range []int64{1, 100, 1 << 10, 10 << 10, 100 << 10, 10 << 20} {
				names := map[string]bool{}
				for rank := range n {
					a := Args{Kind: k, Rank: rank, Size: n, RCount: bytes, SCount: bytes,
						SType: byteOne.Type, RType: byteOne.Type, SizeClass: 10,
						CPUs: 1 << (rank / perHost), Several: true, Commute: true,
						Levels: Levels(level)}
					p, err := Compile(a)
					if err != nil {
						t.Fatal(err)
					}
					names[p.Algorithm] = true
				}
				if len(names) != 1 {
					t.Errorf("%v of %d bytes, %d ranks on each host: %v", k, bytes, perHost, names)
				}
			}
		}
	}
}

// Long data cross to each switch once, and each host once, and no rank sends them to two others;
// short data cross to each switch once.
func TestBcastPastSwitches(t *testing.T) {
	const n, perHost = 24, 2
	hosts := modulo(n, n/perHost)
	switches := make([]uint32, n)
	for rank, h := range hosts {
		switches[rank] = h * h % 3 // three switches, whose hosts do not follow each other
	}
	levels, switched := ByNetwork(switches, hosts)
	count := func(level []int32) (n int) { return int(slices.Max(level)) + 1 }
	for _, c := range []struct{ bytes, pieces int64 }{{8, 1}, {40 * 128 << 10, 40}} {
		var plans []*Plan
		for rank := range n {
			p, err := Compile(Args{Kind: Bcast, Rank: rank, Size: n, Root: 7, RCount: c.bytes,
				RType: byteOne.Type, CPUs: 64, Levels: levels, Switched: switched})
			if err != nil || p.Algorithm != "levels" {
				t.Fatalf("%v %v", p, err)
			}
			plans = append(plans, p)
		}
		if got, want := far(plans, levels[0]), int(c.pieces)*(count(levels[0])-1); got != want {
			t.Errorf("%d bytes: %d messages between switches, %d are needed", c.bytes, got, want)
		}
		if got, want := far(plans, levels[1]), int(c.pieces)*(count(levels[1])-1); got != want {
			t.Errorf("%d bytes: %d messages between hosts, %d are needed", c.bytes, got, want)
		}
		for rank, p := range plans {
			away := 0
			for _, s := range p.Steps {
				if s.Op == OpSend && hosts[rank] != hosts[s.Peer] {
					away++
				}
			}
			if c.pieces > 1 && away > int(c.pieces) {
				t.Errorf("rank %d sends %d pieces of %d to other hosts", rank, away, c.pieces)
			}
		}
	}
}

// Long data go down in pieces.
func TestBcastLevelsLong(t *testing.T) {
	for n := 2; n <= 12; n++ {
		for seed := range uint64(6) {
			s := &scenario{rng: rand.New(rand.NewPCG(seed, uint64(n))), kind: Bcast, n: n}
			a := s.args("levels")
			a.Switched = len(a.Levels) > 0 && seed%2 == 1
			unit := segmentBytes
			if seed == 0 { // also several of the pieces that crowded hosts pass on
				unit = turnBytes
			}
			elems := int64(unit*(1+s.rng.IntN(5))/4 + s.rng.IntN(3) - 1)
			data := s.random(4 * elems)
			for i := range n {
				lt := []layout{plain, gappy}[s.rng.IntN(2)]
				a.RCount = elems
				p := s.rank(i, a, lt, lt, elems)
				if i == a.Root {
					put(p.mem[1], lt, 0, data)
				}
			}
			s.freeze()
			for i, p := range s.procs {
				put(s.want[i][1], p.types[2], 0, data)
			}
			s.check(t, fmt.Sprintf("n=%d seed=%d", n, seed), seed%2 == 0)
		}
	}
}

// Every rank is a member of its stages, and the root leads wherever it is.
func TestStages(t *testing.T) {
	for seed := range uint64(200) {
		s := &scenario{rng: rand.New(rand.NewPCG(seed, 3)), n: 1 + int(seed%40)}
		levels, root := s.levels(), s.rng.IntN(s.n)
		last := 0
		for rank := range s.n {
			b := &builder{Args: &Args{Rank: rank, Size: s.n, Levels: levels}}
			list := b.stages(root)
			for i, st := range list {
				if st.members[st.at] != rank || !slices.IsSorted(st.members) ||
					(i < len(list)-1) != (st.at == st.lead && !st.last) {
					t.Fatalf("seed %d rank %d: stage %d of %+v", seed, rank, i, list)
				}
				if slices.Contains(st.members, root) && st.members[st.lead] != root {
					t.Fatalf("seed %d rank %d: root %d does not lead %+v", seed, rank, root, st)
				}
			}
			if list[len(list)-1].last {
				last++
			}
		}
		want := s.n
		if len(levels) > 0 {
			want = int(slices.Max(levels[0])) + 1
		}
		if last != want {
			t.Fatalf("seed %d: %d ranks in the last stage, %d domains", seed, last, want)
		}
	}
}
