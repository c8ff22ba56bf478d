package coll

import (
	"math/bits"
	"testing"
)

// sizeClass is what the caller gives for Allgatherv and ReduceScatter.
func sizeClass(total int64) int {
	if total <= 1 {
		return 0
	}
	return bits.Len64(uint64(total - 1))
}

// spread lays blocks of the given counts out with random gaps, in a random order; displacements in
// elements.
func (s *scenario) spread(counts []int64) (displs []int64, room int64) {
	displs = make([]int64, len(counts))
	for _, i := range s.rng.Perm(len(counts)) {
		room += int64(s.rng.IntN(3))
		displs[i] = room
		room += counts[i]
	}
	return displs, room + 1
}

// vBlocks: sender i's block for receiver j has counts[i][j] elements of 4 bytes.
func vBlocks(k Kind) func(s *scenario, force string) {
	return func(s *scenario, force string) {
		a := s.args(force)
		inPlace := s.rng.IntN(3) == 0
		counts := make([][]int64, s.n)
		data := make([][][]byte, s.n)
		for i := range s.n {
			counts[i], data[i] = make([]int64, s.n), make([][]byte, s.n)
		}
		for i := range s.n {
			for j := range s.n {
				c := s.count()
				switch {
				case (k == Gatherv || k == Allgatherv) && j > 0:
					c = counts[i][0]
				case k == Alltoallv && inPlace && j < i, k == Alltoallw && inPlace && j < i:
					c = counts[j][i]
				}
				counts[i][j], data[i][j] = c, s.random(4*c)
				if (k == Gatherv || k == Allgatherv) && j > 0 {
					data[i][j] = data[i][0]
				}
			}
		}
		s.vRanks(a, k, inPlace, counts)
		for i, p := range s.procs {
			s.vFill(p, k, a.Root, data[i])
		}
		s.freeze()
		for j, p := range s.procs {
			for i := range s.n {
				switch {
				case k == Gatherv && j != a.Root, k == Scatterv && (i != a.Root || p.args.InPlace):
				case k == Scatterv:
					put(s.want[j][1], p.types[2], 0, data[i][j])
				case p.args.InPlace && i == j:
				default:
					put(s.want[j][1], p.rType(i), p.rOff(i), data[i][j])
				}
			}
		}
	}
}

func (p *proc) rType(i int) layout {
	if p.rTypes != nil {
		return p.rTypes[i]
	}
	return p.types[2]
}

func (p *proc) rOff(i int) int64 {
	if p.rTypes != nil {
		return p.rDispls[i]
	}
	return p.rDispls[i] * p.types[2].Extent
}

// ofTypes picks a datatype for each block, and lays the blocks out one after the other:
// displacements in bytes, and all as one element of the last type there is, for the room.
func (s *scenario) ofTypes(counts []int64, pick func(n int64) layout) (types []layout,
	displs []int64, whole layout) {
	types, displs = make([]layout, len(counts)), make([]int64, len(counts))
	at := int64(s.rng.IntN(100) - 50)
	whole.TrueLB = min(at, 0)
	for _, i := range s.rng.Perm(len(counts)) {
		types[i] = pick(counts[i])
		low, high := types[i].span(counts[i])
		displs[i] = at - low
		at += high - low + int64(s.rng.IntN(3))
	}
	whole.TrueExtent = max(at, 0) - whole.TrueLB
	return types, displs, whole
}

// vRanks makes the ranks and their arrays.
func (s *scenario) vRanks(a Args, k Kind, inPlace bool, counts [][]int64) {
	for i := range s.n {
		from, to := make([]int64, s.n), make([]int64, s.n)
		total := int64(0)
		for j := range s.n {
			from[j], to[j] = counts[i][j], counts[j][i]
			total += 4 * to[j]
		}
		sDispls, sRoom := s.spread(from)
		rDispls, rRoom := s.spread(to)
		sRoom, rRoom = max(sRoom, from[0]), max(rRoom, counts[a.Root][i])
		st, rt := s.pickSend(sRoom), s.pick(rRoom)
		a.InPlace = inPlace && (k == Allgatherv || k == Alltoallv || k == Alltoallw || i == a.Root)
		a.SizeClass, a.SCount, a.RCount = sizeClass(total), 0, 0
		p := s.rank(i, a, st, rt, 0)
		p.mem = []memory{s.blank(st, sRoom), s.blank(rt, rRoom)}
		p.sOwn, p.rOwn = from[0], counts[a.Root][i]
		p.sCounts, p.rCounts = from, to
		p.sDispls, p.rDispls = sDispls, rDispls
		if k == Scatterv {
			p.rCounts = nil
		}
		if k == Alltoallw {
			var sends, receives layout
			p.sTypes, p.sDispls, sends = s.ofTypes(from, s.pickSend)
			p.rTypes, p.rDispls, receives = s.ofTypes(to, s.pick)
			p.mem = []memory{s.blank(sends, 1), s.blank(receives, 1)}
			p.args.SType, p.args.RType = Type{}, Type{}
		}
	}
}

// vFill puts a rank's data into its send buffer, or in place into the receive buffer.
func (s *scenario) vFill(p *proc, k Kind, root int, data [][]byte) {
	i := p.args.Rank
	for j := range s.n {
		switch {
		case p.args.InPlace && (k == Gatherv || k == Allgatherv):
			put(p.mem[1], p.types[2], p.rOff(i), data[i])
		case p.args.InPlace && k != Scatterv:
			put(p.mem[1], p.rType(j), p.rOff(j), data[j])
		case k == Gatherv || k == Allgatherv:
			s.give(p.mem[0], p.types[1], 0, data[0])
		case k == Scatterv && i != root:
		case p.sTypes != nil:
			s.give(p.mem[0], p.sTypes[j], p.sDispls[j], data[j])
		default:
			s.give(p.mem[0], p.types[1], p.sDispls[j]*p.types[1].Extent, data[j])
		}
	}
}

func TestGatherv(t *testing.T)    { forEach(t, Gatherv) }
func TestScatterv(t *testing.T)   { forEach(t, Scatterv) }
func TestAllgatherv(t *testing.T) { forEach(t, Allgatherv) }
func TestAlltoallv(t *testing.T)  { forEach(t, Alltoallv) }
func TestAlltoallw(t *testing.T)  { forEach(t, Alltoallw) }
