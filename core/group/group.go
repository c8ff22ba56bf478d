// Package group implements MPI process groups (MPI-5.0, section 7.3): immutable ordered lists of
// processes. A group that looks like a world, or like every n-th rank of one, takes constant memory
// whatever its size. The package owns no handles and does no communication.
package group

import (
	"sync"

	"libspx/core/ident"
	"libspx/core/mpierr"
)

// Values of the standard that ranks may have beside 0 to size-1.
const (
	Undefined = -32766 // MPI_UNDEFINED
	ProcNull  = -3     // MPI_PROC_NULL
)

// run stands for n processes of one world whose ranks step from the first on.
type run struct {
	first ident.ProcID
	step  int
	n     int
	start int // rank in the group of its first process
}

func (r *run) at(i int) ident.ProcID { return r.first.Next(i * r.step) }

// Group is an ordered list of different processes. Groups are immutable and safe for concurrent
// use.
type Group struct {
	runs  []run
	n     int
	once  sync.Once
	index map[ident.ProcID]int // only for groups of many runs
}

// Empty is the group without members (MPI_GROUP_EMPTY).
var Empty = &Group{}

// Of returns the group of the given processes, which must differ.
func Of(ids ...ident.ProcID) *Group {
	var b builder
	for _, id := range ids {
		b.add(id)
	}
	return b.group()
}

// World returns the group of n processes whose ranks follow first's in its world.
func World(first ident.ProcID, n int) *Group {
	if n <= 0 {
		return Empty
	}
	return &Group{runs: []run{{first: first, step: 1, n: n}}, n: n}
}

// builder collects processes and joins neighbours to runs.
type builder struct {
	runs []run
	n    int
}

func (b *builder) add(id ident.ProcID) {
	if k := len(b.runs) - 1; k >= 0 {
		r := &b.runs[k]
		if r.first.SameWorld(id) {
			if r.n == 1 {
				r.step = int(id.Rank) - int(r.first.Rank)
			}
			if r.at(r.n) == id {
				r.n++
				b.n++
				return
			}
		}
	}
	b.runs = append(b.runs, run{first: id, step: 1, n: 1, start: b.n})
	b.n++
}

func (b *builder) group() *Group {
	if b.n == 0 {
		return Empty
	}
	return &Group{runs: b.runs, n: b.n}
}

// Size returns the number of members.
func (g *Group) Size() int { return g.n }

// At returns the process with a rank from 0 to Size()-1.
func (g *Group) At(rank int) ident.ProcID {
	lo, hi := 0, len(g.runs)
	for hi-lo > 1 {
		mid := (lo + hi) / 2
		if g.runs[mid].start <= rank {
			lo = mid
		} else {
			hi = mid
		}
	}
	r := &g.runs[lo]
	return r.at(rank - r.start)
}

// IDs returns all members in order.
func (g *Group) IDs() []ident.ProcID {
	ids := make([]ident.ProcID, 0, g.n)
	for k := range g.runs {
		r := &g.runs[k]
		for i := range r.n {
			ids = append(ids, r.at(i))
		}
	}
	return ids
}

// few is the number of runs up to which a search through them is as good as a map.
const few = 8

// Rank returns the rank of a process, or Undefined when it is not a member.
func (g *Group) Rank(id ident.ProcID) int {
	if len(g.runs) > few {
		g.once.Do(g.makeIndex)
		if k, ok := g.index[id]; ok {
			return k
		}
		return Undefined
	}
	for k := range g.runs {
		r := &g.runs[k]
		if !r.first.SameWorld(id) {
			continue
		}
		d := int(id.Rank) - int(r.first.Rank)
		if d%r.step == 0 && d/r.step >= 0 && d/r.step < r.n {
			return r.start + d/r.step
		}
	}
	return Undefined
}

func (g *Group) makeIndex() {
	g.index = make(map[ident.ProcID]int, g.n)
	for k, id := range g.IDs() {
		g.index[id] = k
	}
}

// Has reports whether a process is a member.
func (g *Group) Has(id ident.ProcID) bool { return g.Rank(id) != Undefined }

// CheckRanks verifies that ranks are members and differ.
func (g *Group) CheckRanks(ranks []int) error {
	seen := make([]bool, g.n)
	for k, r := range ranks {
		if r < 0 || r >= g.n {
			return mpierr.New(mpierr.Rank, "ranks[%d] is %d, but the group has ranks 0 to %d", k, r,
				g.n-1)
		}
		if seen[r] {
			return mpierr.New(mpierr.Rank, "ranks[%d] repeats rank %d: the ranks must differ", k, r)
		}
		seen[r] = true
	}
	return nil
}

// Incl returns the group of the members with the given ranks, in that order (MPI_Group_incl).
func (g *Group) Incl(ranks []int) (*Group, error) {
	if err := g.CheckRanks(ranks); err != nil {
		return nil, err
	}
	var b builder
	for _, r := range ranks {
		b.add(g.At(r))
	}
	return b.group(), nil
}

// Excl returns the group without the members with the given ranks (MPI_Group_excl).
func (g *Group) Excl(ranks []int) (*Group, error) {
	if err := g.CheckRanks(ranks); err != nil {
		return nil, err
	}
	out := make([]bool, g.n)
	for _, r := range ranks {
		out[r] = true
	}
	var b builder
	for r, id := range g.IDs() {
		if !out[r] {
			b.add(id)
		}
	}
	return b.group(), nil
}

// Range is a triplet (first, last, stride) of MPI_Group_range_incl.
type Range [3]int

// Expand lists the ranks that ranges stand for (MPI_Group_range_incl); they may repeat themselves.
func (g *Group) Expand(ranges []Range) ([]int, error) {
	var ranks []int
	for k, r := range ranges {
		first, last, stride := r[0], r[1], r[2]
		switch {
		case first < 0 || first >= g.n:
			return nil, mpierr.New(mpierr.Rank,
				"ranges[%d] begins at rank %d, but the group has ranks 0 to %d", k, first, g.n-1)
		case stride == 0:
			return nil, mpierr.New(mpierr.Arg,
				"ranges[%d] has stride 0: it must be positive or negative", k)
		case (last-first)*sign(stride) < 0:
			return nil, mpierr.New(mpierr.Arg,
				"ranges[%d] goes from %d to %d: stride %d leads away", k, first, last, stride)
		}
		steps := (last - first) / stride
		if end := first + steps*stride; end < 0 || end >= g.n {
			return nil, mpierr.New(mpierr.Rank,
				"ranges[%d] ends at rank %d, but the group has ranks 0 to %d", k, end, g.n-1)
		}
		for i := 0; i <= steps; i++ {
			ranks = append(ranks, first+i*stride)
		}
	}
	return ranks, nil
}

func sign(v int) int {
	if v < 0 {
		return -1
	}
	return 1
}

// RangeIncl is Incl with the ranks that ranges stand for (MPI_Group_range_incl).
func (g *Group) RangeIncl(ranges []Range) (*Group, error) {
	ranks, err := g.Expand(ranges)
	if err != nil {
		return nil, err
	}
	return g.Incl(ranks)
}

// RangeExcl is Excl with the ranks that ranges stand for (MPI_Group_range_excl).
func (g *Group) RangeExcl(ranges []Range) (*Group, error) {
	ranks, err := g.Expand(ranges)
	if err != nil {
		return nil, err
	}
	return g.Excl(ranks)
}
