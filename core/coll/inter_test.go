package coll

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// sides makes an intercommunicator of groups of n and m ranks; each(i, group, size, remote) describes a rank.
func interRun(t *testing.T, k Kind, build func(s *scenario, n, m int)) {
	t.Helper()
	for n := 1; n <= 7; n++ {
		for m := 1; m <= 7; m++ {
			for seed := range uint64(4) {
				s := &scenario{rng: rand.New(rand.NewPCG(seed, uint64(100*n+m))), kind: k, n: n + m}
				build(s, n, m)
				s.check(t, fmt.Sprintf("%v on %d+%d seed %d", k, n, m, seed), seed%2 == 0)
			}
		}
	}
}

// join adds a rank of a group whose first process has number first.
func (s *scenario) join(i, first, size, remote int, a Args, lt layout, room int64) *proc {
	p := s.rank(i-first, a, lt, lt, room)
	p.args.Size, p.args.Remote = size, remote
	return p
}

// groups calls f for each process: its number, the first of its group, the sizes of its own and the other group.
func groups(n, m int, f func(i, first, size, remote int)) {
	for i := range n + m {
		if i < n {
			f(i, 0, n, m)
		} else {
			f(i, n, m, n)
		}
	}
}

func TestInterBarrier(t *testing.T) {
	interRun(t, Barrier, func(s *scenario, n, m int) {
		groups(n, m, func(i, first, size, remote int) { s.join(i, first, size, remote, Args{CPUs: 2}, plain, 1) })
		s.freeze()
	})
}

// TestInterRooted: the root is in the second group.
func TestInterRooted(t *testing.T) {
	for _, k := range []Kind{Bcast, Gather, Scatter, Reduce} {
		interRun(t, k, func(s *scenario, n, m int) {
			root, c := s.rng.IntN(m), s.count()
			data := make([][]byte, n)
			for i := range data {
				data[i] = s.random(4 * c)
			}
			groups(n, m, func(i, first, size, remote int) {
				a := Args{CPUs: 2, SCount: c, RCount: c, Root: root}
				if first > 0 {
					if a.Root = RootNone; i-first == root {
						a.Root = RootSelf
					}
				}
				lt := s.pick()
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
		})
	}
}

func TestInterSymmetric(t *testing.T) {
	for _, k := range []Kind{Allgather, Alltoall, Allreduce, ReduceScatterBlock} {
		interRun(t, k, func(s *scenario, n, m int) {
			c, all := s.count(), n*m
			operands := make([][]byte, n+m)
			groups(n, m, func(i, first, size, remote int) {
				a := Args{CPUs: 2, SCount: c, RCount: c}
				if k == ReduceScatterBlock { // both groups have vectors of n*m*c
					a.SCount, a.RCount = c*int64(remote), c*int64(remote)
				}
				lt := s.pick()
				p := s.join(i, first, size, remote, a, lt, c*int64(all))
				p.op = times
				length := c
				switch k {
				case Alltoall:
					length = c * int64(remote)
				case ReduceScatterBlock:
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
				case ReduceScatterBlock:
					each := 4 * c * int64(remote)
					want = fold(times, theirs)[each*int64(i-first) : each*int64(i-first+1)]
				}
				put(s.want[i][1], lt, 0, want)
			})
		})
	}
}
