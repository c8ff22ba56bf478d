package datatype

import (
	"math/bits"

	"libspx/core/mpierr"
)

// shape says where the data of a type lies, in terms of other types: the common form of all
// constructors, from which bounds and layouts are derived.
type shape struct {
	op     shapeOp
	basic  *Basic // opBasic
	typ    *Type  // opType
	n      int64  // opRep: n times kid, stride bytes apart
	stride int64
	kid    *shape
	offs   []int64  // opList: kids[i] at offs[i]; a single kid is at every one of them
	kids   []*shape // nil entries have no data and no markers
	// bounds set by the constructor (markers), whatever is below
	marked           bool
	markLow, markEnd int64
}

type shapeOp int

const (
	opBasic shapeOp = iota
	opType
	opRep
	opList
)

func ofType(t *Type) *shape { return &shape{op: opType, typ: t} }

func repeat(n, stride int64, kid *shape) *shape {
	if n == 0 || kid == nil {
		return nil
	}
	if n == 1 {
		return kid
	}
	return &shape{op: opRep, n: n, stride: stride, kid: kid}
}

func (s *shape) kidAt(i int) *shape {
	if len(s.kids) == 1 {
		return s.kids[0]
	}
	return s.kids[i]
}

// facts are what is known of a typemap without listing it.
type facts struct {
	size, elements int64
	basic          *Basic // the first one met
	mixed          bool
	data           bool // at least one byte of data
	// of the data: displacement of the first byte, and of the one after the last
	first, last int64
	marked      bool  // explicit bounds
	low, end    int64 // the markers
	align       int64 // strictest alignment of the data
}

func (f *facts) lb() int64 {
	if f.marked {
		return f.low
	}
	return f.first
}

func (f *facts) ub() int64 {
	switch {
	case f.marked:
		return f.end
	case !f.data:
		return 0
	}
	extent := f.last - f.first
	if r := extent % f.align; r != 0 {
		extent += f.align - r
	}
	return f.first + extent
}

// calc does checked arithmetic: after an overflow all is lost, which is asked once at the end.
type calc struct{ overflow bool }

func (c *calc) add(a, b int64) int64 {
	s := a + b
	if (a > 0) == (b > 0) && a != 0 && (s > 0) != (a > 0) {
		c.overflow = true
	}
	return s
}

func (c *calc) sub(a, b int64) int64 {
	if b == -1<<63 {
		c.overflow = true
		return 0
	}
	return c.add(a, -b)
}

func (c *calc) mul(a, b int64) int64 {
	neg := (a < 0) != (b < 0)
	hi, lo := bits.Mul64(magnitude(a), magnitude(b))
	if hi != 0 || lo > 1<<63-1 {
		c.overflow = true
	}
	if neg {
		return -int64(lo)
	}
	return int64(lo)
}

func magnitude(a int64) uint64 {
	if a < 0 {
		return -uint64(a)
	}
	return uint64(a)
}

func (c *calc) err() error {
	if c.overflow {
		return mpierr.New(mpierr.Count,
			"the size, the extent or a displacement of the new datatype does not fit into 63 "+
				"bits; use smaller counts or displacements")
	}
	return nil
}

// facts computes the facts of a shape, or fails when a number does not fit.
func (s *shape) facts() (facts, error) {
	var c calc
	f := s.compute(&c)
	f.checkBounds(&c)
	return f, c.err()
}

// checkBounds makes sure that bounds and extents can be told.
func (f *facts) checkBounds(c *calc) {
	c.add(c.sub(f.last, f.first), 64) // 64: more than any alignment adds
	c.add(f.last, 64)
	if f.marked {
		c.sub(f.end, f.low)
	}
}

func (s *shape) compute(c *calc) facts {
	if s == nil {
		return facts{}
	}
	var f facts
	switch s.op {
	case opBasic:
		f = s.basic.facts()
	case opType:
		f = s.typ.facts
	case opRep:
		f = s.kid.compute(c).repeated(c, s.n, s.stride)
	case opList:
		f = s.computeList(c)
	}
	if s.marked {
		f.marked, f.low, f.end = true, s.markLow, s.markEnd
	}
	return f
}

func (b *Basic) facts() facts {
	f := facts{size: b.Size, elements: 1, basic: b, data: true, last: b.Size, align: b.Align}
	if b.Value != nil {
		f.elements = 2
		f.last = b.IndexAt + b.Index.Size
	}
	return f
}

func (s *shape) computeList(c *calc) facts {
	var f facts
	if len(s.kids) == 1 { // one kid at many places: its smallest and largest displacement say all
		kid := s.kids[0].compute(c)
		if len(s.offs) == 0 {
			return f
		}
		lo, hi := s.offs[0], s.offs[0]
		for _, o := range s.offs {
			lo, hi = min(lo, o), max(hi, o)
		}
		f = kid.shifted(c, lo)
		f.merge(c, kid.shifted(c, hi))
		f.size = c.mul(kid.size, int64(len(s.offs)))
		f.elements = c.mul(kid.elements, int64(len(s.offs)))
		return f
	}
	known := map[*shape]*facts{}
	var k *facts
	for i, kid := range s.kids {
		if i == 0 || kid != s.kids[i-1] {
			if k = known[kid]; k == nil {
				one := kid.compute(c)
				k = &one
				known[kid] = k
			}
		}
		f.merge(c, k.shifted(c, s.offs[i]))
	}
	return f
}

// shifted returns the facts of the same data d bytes further on.
func (f facts) shifted(c *calc, d int64) facts {
	if f.data {
		f.first, f.last = c.add(f.first, d), c.add(f.last, d)
	}
	if f.marked {
		f.low, f.end = c.add(f.low, d), c.add(f.end, d)
	}
	return f
}

// repeated returns the facts of n > 0 copies, stride bytes apart.
func (f facts) repeated(c *calc, n, stride int64) facts {
	far := f.shifted(c, c.mul(n-1, stride))
	out := f
	out.merge(c, far)
	out.size, out.elements = c.mul(f.size, n), c.mul(f.elements, n)
	return out
}

// merge adds the entries of another typemap.
func (f *facts) merge(c *calc, g facts) {
	f.size, f.elements = c.add(f.size, g.size), c.add(f.elements, g.elements)
	if g.data {
		if f.data {
			f.first, f.last = min(f.first, g.first), max(f.last, g.last)
		} else {
			f.first, f.last = g.first, g.last
		}
		f.mixed = f.mixed || g.mixed || f.basic != nil && f.basic != g.basic
		if f.basic == nil {
			f.basic = g.basic
		}
		f.align = max(f.align, g.align)
		f.data = true
	}
	if g.marked {
		if f.marked {
			f.low, f.end = min(f.low, g.low), max(f.end, g.end)
		} else {
			f.marked, f.low, f.end = true, g.low, g.end
		}
	}
}
