package coll

import (
	"bytes"
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

// reductions: each rank gives a vector; what rank i gets is a part of the fold of some ranks' vectors.
func reductions(t *testing.T, k Kind) {
	forEach(t, k, func(s *scenario, force string) {
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
		lt := s.pick() // of all: MPI-5.0 6.9.1
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
	})
}

func TestReduce(t *testing.T)             { reductions(t, Reduce) }
func TestAllreduce(t *testing.T)          { reductions(t, Allreduce) }
func TestReduceScatterBlock(t *testing.T) { reductions(t, ReduceScatterBlock) }
func TestReduceScatter(t *testing.T)      { reductions(t, ReduceScatter) }
func TestScan(t *testing.T)               { reductions(t, Scan) }
func TestExscan(t *testing.T)             { reductions(t, Exscan) }
