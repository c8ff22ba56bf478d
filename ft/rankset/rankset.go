// Package rankset holds sets of ranks that are small next to the communicator (failed members,
// acknowledged failures), as sorted runs, so that sets cost what they hold and not what they could
// hold.
package rankset

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// run is the ranks from lo to hi, both included.
type run struct{ lo, hi int }

// Set is an immutable set of non-negative ranks. The zero value is the empty set.
type Set struct{ runs []run }

// Of makes a set from ranks in any order.
func Of(ranks ...int) Set {
	sorted := slices.Clone(ranks)
	slices.Sort(sorted)
	var s Set
	for _, r := range sorted {
		s.runs = appendRun(s.runs, run{r, r})
	}
	return s
}

// Below is the set {0, ..., n-1}.
func Below(n int) Set {
	if n <= 0 {
		return Set{}
	}
	return Set{[]run{{0, n - 1}}}
}

// appendRun adds a run that starts at or after the last one's start.
func appendRun(runs []run, r run) []run {
	if k := len(runs); k > 0 && r.lo <= runs[k-1].hi+1 {
		runs[k-1].hi = max(runs[k-1].hi, r.hi)
		return runs
	}
	return append(runs, r)
}

// Has reports whether rank r is in the set.
func (s Set) Has(r int) bool {
	_, found := s.find(r)
	return found
}

// find gives the run that has rank r.
func (s Set) find(r int) (k int, found bool) {
	return slices.BinarySearchFunc(s.runs, r, func(x run, r int) int {
		switch {
		case x.hi < r:
			return -1
		case x.lo > r:
			return 1
		}
		return 0
	})
}

// Len is the number of ranks in the set.
func (s Set) Len() int {
	n := 0
	for _, r := range s.runs {
		n += r.hi - r.lo + 1
	}
	return n
}

// Empty reports whether the set has no rank.
func (s Set) Empty() bool { return len(s.runs) == 0 }

// Ranks lists the ranks in ascending order.
func (s Set) Ranks() []int {
	out := make([]int, 0, s.Len())
	for _, r := range s.runs {
		for i := r.lo; i <= r.hi; i++ {
			out = append(out, i)
		}
	}
	return out
}

// Union is the set of ranks that are in s or in t.
func (s Set) Union(t Set) Set {
	if len(t.runs) == 0 {
		return s
	}
	if len(s.runs) == 0 {
		return t
	}
	var out Set
	i, j := 0, 0
	for i < len(s.runs) || j < len(t.runs) {
		if j == len(t.runs) || i < len(s.runs) && s.runs[i].lo <= t.runs[j].lo {
			out.runs = appendRun(out.runs, s.runs[i])
			i++
		} else {
			out.runs = appendRun(out.runs, t.runs[j])
			j++
		}
	}
	return out
}

// Intersect is the set of ranks that are in both.
func (s Set) Intersect(t Set) Set {
	var out Set
	i, j := 0, 0
	for i < len(s.runs) && j < len(t.runs) {
		lo, hi := max(s.runs[i].lo, t.runs[j].lo), min(s.runs[i].hi, t.runs[j].hi)
		if lo <= hi {
			out.runs = append(out.runs, run{lo, hi})
		}
		if s.runs[i].hi < t.runs[j].hi {
			i++
		} else {
			j++
		}
	}
	return out
}

// Minus is the set of ranks that are in s and not in t.
func (s Set) Minus(t Set) Set {
	var out Set
	j := 0
	for _, r := range s.runs {
		for j < len(t.runs) && t.runs[j].hi < r.lo {
			j++
		}
		lo := r.lo
		for k := j; k < len(t.runs) && t.runs[k].lo <= r.hi; k++ {
			if lo < t.runs[k].lo {
				out.runs = append(out.runs, run{lo, t.runs[k].lo - 1})
			}
			lo = t.runs[k].hi + 1
		}
		if lo <= r.hi {
			out.runs = append(out.runs, run{lo, r.hi})
		}
	}
	return out
}

// Contains reports whether every rank of t is in s.
func (s Set) Contains(t Set) bool { return s.Intersect(t).Len() == t.Len() }

// Equal reports whether both sets have the same ranks.
func (s Set) Equal(t Set) bool { return slices.Equal(s.runs, t.runs) }

// FirstAbsent is the lowest non-negative rank that is not in the set.
func (s Set) FirstAbsent() int {
	if len(s.runs) > 0 && s.runs[0].lo == 0 {
		return s.runs[0].hi + 1
	}
	return 0
}

// FirstAbsentFrom is the lowest rank from r on that is not in the set.
func (s Set) FirstAbsentFrom(r int) int {
	if k, found := s.find(r); found {
		return s.runs[k].hi + 1
	}
	return r
}

// String shows the set as its runs, as in {0-3,7}.
func (s Set) String() string {
	var b strings.Builder
	b.WriteByte('{')
	for i, r := range s.runs {
		if i > 0 {
			b.WriteByte(',')
		}
		if r.lo == r.hi {
			fmt.Fprintf(&b, "%d", r.lo)
		} else {
			fmt.Fprintf(&b, "%d-%d", r.lo, r.hi)
		}
	}
	b.WriteByte('}')
	return b.String()
}

// Append adds the wire form: the number of runs, then for each run the gap from the end of the one
// before and its length minus 1, all unsigned varints.
func (s Set) Append(dst []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(s.runs)))
	next := 0
	for _, r := range s.runs {
		dst = binary.AppendUvarint(dst, uint64(r.lo-next))
		dst = binary.AppendUvarint(dst, uint64(r.hi-r.lo))
		next = r.hi + 2 // runs are separated by at least one rank
	}
	return dst
}

var errMalformed = errors.New("rankset: malformed set")

// Decode reads the wire form of a set of ranks below n from the front of src and returns what
// follows it.
func Decode(src []byte, n int) (Set, []byte, error) {
	count, k := binary.Uvarint(src)
	if k <= 0 || count > uint64(n) || count > uint64(len(src)) {
		return Set{}, nil, errMalformed
	}
	src = src[k:]
	s := Set{make([]run, 0, count)}
	next := uint64(0)
	for range count {
		gap, k := binary.Uvarint(src)
		if k <= 0 || gap > uint64(n) {
			return Set{}, nil, errMalformed
		}
		length, m := binary.Uvarint(src[k:])
		if m <= 0 || length > uint64(n) || next+gap+length >= uint64(n) {
			return Set{}, nil, errMalformed
		}
		src = src[k+m:]
		lo := next + gap
		s.runs = append(s.runs, run{int(lo), int(lo + length)})
		next = lo + length + 2
	}
	return s, src, nil
}
