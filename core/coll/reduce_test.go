package coll

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// fold reduces the operands of ranks 0..n-1 in order.
func fold(op func(lo, hi []byte), operands [][]byte) []byte {
	acc := bytes.Clone(operands[0])
	for _, x := range operands[1:] {
		next := bytes.Clone(x)
		for i := 0; i < len(acc); i += 4 {
			op(acc[i:i+4], next[i:i+4])
		}
		acc = next
	}
	return acc
}

// reductions: each rank gives a vector; what rank i gets is a part of the fold of some ranks'
// vectors.
func reductions(k Kind) func(s *scenario, force string) {
	return func(s *scenario, force string) {
		a := s.args(force)
		if s.rng.IntN(4) == 0 {
			a.Slice = 1 + s.rng.Int64N(200)
		}
		op := times
		if a.Commute = s.rng.IntN(2) == 0; a.Commute {
			op = add
		}
		inPlace := s.rng.IntN(3) == 0
		counts := make([]int64, s.n) // blocks of reduce-scatter
		c, total := s.count(), int64(0)
		for i := range counts {
			if counts[i] = c; k == ReduceScatter {
				counts[i] = s.count()
			}
			total += counts[i]
		}
		length := c
		if k == ReduceScatterBlock || k == ReduceScatter {
			length = total
		}
		operands := make([][]byte, s.n)
		lt := s.pick(length) // of all: MPI-5.0 6.9.1
		if a.Shared > 0 && s.rng.IntN(4) > 0 {
			lt = plain
		}
		for i := range s.n {
			a.InPlace = inPlace && (k != Reduce || i == a.Root)
			a.SCount, a.RCount, a.SizeClass = c, c, sizeClass(4*total)
			if k == ReduceScatter {
				a.SCount, a.RCount = 0, 0
			}
			p := s.rank(i, a, lt, lt, length)
			p.op, p.rCounts = op, counts
			operands[i] = s.random(4 * length)
			if a.InPlace {
				put(p.mem[1], lt, 0, operands[i])
			} else {
				put(p.mem[0], lt, 0, operands[i])
			}
		}
		s.freeze()
		at := int64(0)
		for i, p := range s.procs {
			var want []byte
			switch k {
			case Reduce, Allreduce:
				want = fold(op, operands)
			case ReduceScatterBlock, ReduceScatter:
				want = fold(op, operands)[4*at : 4*(at+counts[i])]
				at += counts[i]
			case Scan:
				want = fold(op, operands[:i+1])
			case Exscan:
				if i > 0 {
					want = fold(op, operands[:i])
				}
			}
			if k != Reduce || i == a.Root {
				put(s.want[i][1], p.types[2], 0, want)
			}
		}
	}
}

func TestReduce(t *testing.T)             { forEach(t, Reduce) }
func TestAllreduce(t *testing.T)          { forEach(t, Allreduce) }
func TestReduceScatterBlock(t *testing.T) { forEach(t, ReduceScatterBlock) }
func TestReduceScatter(t *testing.T)      { forEach(t, ReduceScatter) }
func TestScan(t *testing.T)               { forEach(t, Scan) }
func TestExscan(t *testing.T)             { forEach(t, Exscan) }

// TestPlace: temporary vectors have room for their data, and for whole structures; their addresses
// are aligned as those of user buffers may be, and vectors side by side do not touch.
func TestPlace(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 2000 {
		n := int64(1 + rng.IntN(20))
		lt := randomLayout(rng, n, true)
		b := &builder{Args: &Args{RCount: n, RType: lt.Type}}
		all := b.vectors(3)
		low, high := lt.span(n)
		if lt.TrueLB >= 0 && lt.TrueLB+lt.TrueExtent <= lt.Extent {
			low, high = 0, n*lt.Extent
		}
		end := int64(0)
		for _, r := range all {
			if r.Off+low < end || r.Off%memAlign != 0 || r.Count != n {
				t.Fatalf("%d of %+v: vectors %+v", n, lt, all)
			}
			end = r.Off + high
		}
		if end > b.p.Regions[0].Fixed {
			t.Fatalf("%d of %+v: vectors %+v in %d bytes", n, lt, all, b.p.Regions[0].Fixed)
		}
	}
}

// TestRegions: a plan has no more regions than the data plane takes (SPX_PLAN_REGIONS), on however
// many hosts.
func TestRegions(t *testing.T) {
	const most, ranks, hosts = 64, 300, 75
	for k, list := range algorithms {
		for _, alg := range list {
			for _, rank := range []int{0, 1, ranks - 1} {
				a := Args{Kind: Kind(k), Rank: rank, Size: ranks, CPUs: 2, Several: true,
					Levels: Levels(modulo(ranks, hosts)), SCount: 300,
					RCount: 300, SType: gappy.Type, RType: gappy.Type, Commute: true,
					Force: alg.name}
				p, err := Compile(a)
				if err != nil || len(p.Regions) > most {
					t.Errorf("%v by %s: %d regions, %v", Kind(k), alg.name, len(p.Regions), err)
				}
			}
		}
	}
}
