package coll

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// interCall makes and checks a call of an operation on an intercommunicator of groups of n and m
// ranks.
func interCall(t *testing.T, k Kind, n, m int, seed uint64) {
	t.Helper()
	s := &scenario{rng: rand.New(rand.NewPCG(seed, uint64(100*n+m))), kind: k, n: n + m}
	interBuilders[k](s, n, m)
	s.check(t, fmt.Sprintf("%v on %d+%d seed %d", k, n, m, seed), seed%2 == 0)
}

var interKinds = []Kind{Barrier, Bcast, Gather, Scatter, Reduce, Allgather, Alltoall, Allreduce,
	ReduceScatterBlock, ReduceScatter}

var interBuilders = map[Kind]func(s *scenario, n, m int){
	Barrier: interBarrierCall, Bcast: interRooted, Gather: interRooted, Scatter: interRooted,
	Reduce:    interRooted,
	Allgather: interSymmetric, Alltoall: interSymmetric, Allreduce: interSymmetric,
	ReduceScatterBlock: interSymmetric,
	ReduceScatter:      interSymmetric,
}

func TestInter(t *testing.T) {
	for _, k := range interKinds {
		t.Run(k.String(), func(t *testing.T) {
			for n := 1; n <= 7; n++ {
				for m := 1; m <= 7; m++ {
					for seed := range uint64(2) {
						interCall(t, k, n, m, seed)
					}
				}
			}
		})
	}
}

// join adds a rank of a group whose first process has number first.
func (s *scenario) join(i, first, size, remote int, a Args, lt layout, room int64) *proc {
	p := s.rank(i-first, a, lt, lt, room)
	p.args.Size, p.args.Remote = size, remote
	return p
}

// groups calls f for each process: its number, the first of its group, the sizes of its own and the
// other group.
func groups(n, m int, f func(i, first, size, remote int)) {
	for i := range n + m {
		if i < n {
			f(i, 0, n, m)
		} else {
			f(i, n, m, n)
		}
	}
}

func interBarrierCall(s *scenario, n, m int) {
	groups(n, m, func(i, first, size, remote int) {
		s.join(i, first, size, remote, Args{CPUs: 2},
			plain, 1)
	})
	s.freeze()
}

// interRooted is an operation whose root is in the second group.
func interRooted(s *scenario, n, m int) {
	k, root, c := s.kind, s.rng.IntN(m), s.count()
	data := make([][]byte, n)
	for i := range data {
		data[i] = s.random(4 * c)
	}
	of := s.pick(c) // of all, where they reduce
	groups(n, m, func(i, first, size, remote int) {
		a := Args{CPUs: 2, SCount: c, RCount: c, Root: root}
		if first > 0 {
			if a.Root = RootNone; i-first == root {
				a.Root = RootSelf
			}
		}
		lt := s.pick(c * int64(n))
		if k == Reduce {
			lt = of
		}
		p := s.join(i, first, size, remote, a, lt, c*int64(n))
		p.op = times
		switch {
		case first == 0 && (k == Gather || k == Reduce):
			put(p.mem[0], lt, 0, data[i])
		case a.Root == RootSelf && k == Bcast:
			put(p.mem[1], lt, 0, data[0])
		case a.Root == RootSelf && k == Scatter:
			for j := range n {
				put(p.mem[0], lt, int64(j)*c*lt.Extent, data[j])
			}
		}
	})
	s.freeze()
	for i, p := range s.procs {
		lt := p.types[2]
		switch {
		case i < n && k == Bcast:
			put(s.want[i][1], lt, 0, data[0])
		case i < n && k == Scatter:
			put(s.want[i][1], lt, 0, data[i])
		case i == n+root && k == Reduce:
			put(s.want[i][1], lt, 0, fold(times, data))
		case i == n+root && k == Gather:
			for j := range n {
				put(s.want[i][1], lt, int64(j)*c*lt.Extent, data[j])
			}
		}
	}
}

// split cuts n elements into blocks for size ranks.
func (s *scenario) split(n int64, size int) []int64 {
	out := make([]int64, size)
	for i := range out {
		if out[i] = n; i < size-1 {
			out[i] = s.rng.Int64N(n + 1)
		}
		n -= out[i]
	}
	return out
}

// interSymmetric is an operation in which both groups do the same.
func interSymmetric(s *scenario, n, m int) {
	k, c, all := s.kind, s.count(), n*m
	operands := make([][]byte, n+m)
	of := s.pick(c * int64(all)) // of all, where they reduce
	counts := map[int][]int64{0: s.split(c*int64(all), n), n: s.split(c*int64(all), m)}
	groups(n, m, func(i, first, size, remote int) {
		a := Args{CPUs: 2, SCount: c, RCount: c}
		if k == ReduceScatterBlock { // both groups have vectors of n*m*c
			a.SCount, a.RCount = c*int64(remote), c*int64(remote)
		}
		if k == ReduceScatter {
			a.SCount, a.RCount = 0, 0
		}
		lt := s.pick(c * int64(all))
		if k == Allreduce || k == ReduceScatterBlock || k == ReduceScatter {
			lt = of
		}
		p := s.join(i, first, size, remote, a, lt, c*int64(all))
		p.op, p.rCounts = times, counts[first]
		length := c
		switch k {
		case Alltoall:
			length = c * int64(remote)
		case ReduceScatterBlock, ReduceScatter:
			length = c * int64(all)
		}
		operands[i] = s.random(4 * length)
		put(p.mem[0], lt, 0, operands[i])
	})
	s.freeze()
	groups(n, m, func(i, first, size, remote int) {
		lt, other := s.procs[i].types[2], n-first // the other group's first process
		if first == 0 {
			other = n
		}
		theirs := operands[other : other+remote]
		var want []byte
		switch k {
		case Allgather:
			for _, d := range theirs {
				want = append(want, d...)
			}
		case Alltoall:
			for _, d := range theirs {
				want = append(want, d[4*c*int64(i-first):4*c*int64(i-first+1)]...)
			}
		case Allreduce:
			want = fold(times, theirs)
		case ReduceScatterBlock, ReduceScatter:
			before := int64(0)
			for _, each := range s.procs[i].rCounts[:i-first] {
				before += each
			}
			mine := c * int64(remote)
			if k == ReduceScatter {
				mine = s.procs[i].rCounts[i-first]
			} else {
				before = mine * int64(i-first)
			}
			want = fold(times, theirs)[4*before : 4*(before+mine)]
		}
		put(s.want[i][1], lt, 0, want)
	})
}
