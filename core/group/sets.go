package group

import (
	"encoding/binary"

	"libspx/core/ident"
	"libspx/core/mpierr"
)

// Union returns the members of a in their order, then those of b that are not in a
// (MPI_Group_union).
func Union(a, b *Group) *Group {
	var out builder
	for _, id := range a.IDs() {
		out.add(id)
	}
	for _, id := range b.IDs() {
		if !a.Has(id) {
			out.add(id)
		}
	}
	return out.group()
}

// Intersection returns the members of a that are in b too, in a's order (MPI_Group_intersection).
func Intersection(a, b *Group) *Group { return a.filter(b.Has) }

// Difference returns the members of a that are not in b, in a's order (MPI_Group_difference).
func Difference(a, b *Group) *Group {
	return a.filter(func(id ident.ProcID) bool { return !b.Has(id) })
}

func (g *Group) filter(keep func(ident.ProcID) bool) *Group {
	var out builder
	for _, id := range g.IDs() {
		if keep(id) {
			out.add(id)
		}
	}
	return out.group()
}

// Relation is the outcome of a comparison of groups or communicators, by its value in the standard
// ABI.
type Relation int

// Outcomes of MPI_Group_compare and MPI_Comm_compare; Congruent is for communicators alone.
const (
	Ident     Relation = 201
	Congruent Relation = 202
	Similar   Relation = 203
	Unequal   Relation = 204
)

// Compare returns whether two groups have the same members in the same order (Ident), in another
// order (Similar), or different members (Unequal): MPI_Group_compare.
func Compare(a, b *Group) Relation {
	if a == b {
		return Ident
	}
	if a.n != b.n {
		return Unequal
	}
	if sameRuns(a, b) {
		return Ident
	}
	result := Ident
	for k, id := range a.IDs() {
		switch b.Rank(id) {
		case k:
		case Undefined:
			return Unequal
		default:
			result = Similar
		}
	}
	return result
}

func sameRuns(a, b *Group) bool {
	if len(a.runs) != len(b.runs) {
		return false
	}
	for k := range a.runs {
		if a.runs[k] != b.runs[k] {
			return false
		}
	}
	return true
}

// Translate returns for each rank of a the same process's rank in b, or Undefined; ProcNull stays
// ProcNull (MPI_Group_translate_ranks).
func Translate(a *Group, ranks []int, b *Group) ([]int, error) {
	out := make([]int, len(ranks))
	for k, r := range ranks {
		switch {
		case r == ProcNull:
			out[k] = ProcNull
		case r < 0 || r >= a.n:
			return nil, mpierr.New(mpierr.Rank, "ranks1[%d] is %d, but the group has ranks 0 to %d",
				k, r, a.n-1)
		default:
			out[k] = b.Rank(a.At(r))
		}
	}
	return out, nil
}

// RanksOf returns the ranks in g of the members of a; nil: one is no member of g.
func (g *Group) RanksOf(a *Group) []int {
	ranks := make([]int, a.n)
	for k := range ranks {
		if ranks[k] = g.Rank(a.At(k)); ranks[k] < 0 {
			return nil
		}
	}
	return ranks
}

// Overlap returns a process that is in both groups.
func Overlap(a, b *Group) (ident.ProcID, bool) {
	for _, id := range a.IDs() {
		if b.Has(id) {
			return id, true
		}
	}
	return ident.ProcID{}, false
}

// runWire is the length of an encoded run in bytes.
const runWire = ident.WireSize + 8

// Encode returns the form in which groups travel between processes: the number of runs, then for
// each run its first process, its step and its length.
func (g *Group) Encode() []byte {
	b := binary.LittleEndian.AppendUint32(nil, uint32(len(g.runs)))
	for k := range g.runs {
		r := &g.runs[k]
		b = ident.Append(b, r.first)
		b = binary.LittleEndian.AppendUint32(b, uint32(int32(r.step)))
		b = binary.LittleEndian.AppendUint32(b, uint32(r.n))
	}
	return b
}

// Decode reads an encoded group, and returns what follows it in b.
func Decode(b []byte) (*Group, []byte, error) {
	if len(b) < 4 {
		return nil, nil, mpierr.New(mpierr.Intern, "an encoded group is cut short: %d bytes",
			len(b))
	}
	k := int(binary.LittleEndian.Uint32(b))
	b = b[4:]
	if len(b) < k*runWire {
		return nil, nil, mpierr.New(mpierr.Intern,
			"an encoded group is cut short: %d runs in %d bytes", k, len(b))
	}
	g := &Group{runs: make([]run, k)}
	for i := range g.runs {
		first, _ := ident.Decode(b)
		g.runs[i] = run{first: first,
			step: int(int32(binary.LittleEndian.Uint32(b[ident.WireSize:]))),
			n:    int(binary.LittleEndian.Uint32(b[ident.WireSize+4:])), start: g.n}
		if g.runs[i].step == 0 || g.runs[i].n <= 0 {
			return nil, nil, mpierr.New(mpierr.Intern,
				"an encoded group has a run of %d processes by steps of %d", g.runs[i].n,
				g.runs[i].step)
		}
		g.n += g.runs[i].n
		b = b[runWire:]
	}
	return g, b, nil
}
