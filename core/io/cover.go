package io

import "math/bits"

// Which part of a window of the file some lists of ranges cover.

// joined returns the ranges of all lists as long pieces: those at most gap apart are one. The
// ranges of each list go up.
func joined(lists []rows, gap int64) rows {
	whole := make([]rows, 0, len(lists))
	for _, l := range lists {
		var long rows
		for _, r := range l {
			switch k := len(long) - 1; {
			case r.count > 1 && r.stride-r.n > gap:
				for i := range r.count {
					long = append(long, row{r.off + i*r.stride, r.n, 0, 1})
				}
			case k >= 0 && r.off <= long[k].off+long[k].n+gap:
				long[k].n = max(long[k].n, r.end()-long[k].off)
			default:
				long = append(long, row{r.off, r.end() - r.off, 0, 1})
			}
		}
		whole = append(whole, long)
	}
	for len(whole) > 1 { // neighbours in pairs, so that each range is visited log n times
		half := whole[:0]
		for i := 0; i < len(whole); i += 2 {
			if i+1 == len(whole) {
				half = append(half, whole[i])
				break
			}
			half = append(half, merge(whole[i], whole[i+1], gap))
		}
		whole = half
	}
	if len(whole) == 0 {
		return nil
	}
	return merge(whole[0], nil, gap)
}

// merge joins two lists of single ranges that go up.
func merge(a, b rows, gap int64) rows {
	out := make(rows, 0, len(a)+len(b))
	for len(a)+len(b) > 0 {
		from := &a
		if len(a) == 0 || len(b) > 0 && b[0].off < a[0].off {
			from = &b
		}
		r := (*from)[0]
		*from = (*from)[1:]
		if k := len(out) - 1; k >= 0 && r.off <= out[k].off+out[k].n+gap {
			out[k].n = max(out[k].n, r.off+r.n-out[k].off)
			continue
		}
		out = append(out, r)
	}
	return out
}

// coverage records for each unit of a window whether it is covered.
type coverage struct {
	from, unit, units int64
	words             []uint64
}

// cover computes exactly which parts of the window [from, to) are covered by the lists, which are
// within it.
func cover(lists []rows, from, to int64) *coverage {
	unit := int64(0)
	for _, l := range lists {
		for _, r := range l {
			unit = gcd(gcd(gcd(unit, r.off-from), r.n), r.stride)
		}
	}
	c := &coverage{from: from, unit: max(unit, 1)}
	c.units = (to - from + c.unit - 1) / c.unit
	c.words = make([]uint64, c.units/64+1)
	for _, l := range lists {
		for _, r := range l {
			c.mark(r)
		}
	}
	return c
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

func (c *coverage) mark(r row) {
	at, n, stride := (r.off-c.from)/c.unit, r.n/c.unit, r.stride/c.unit
	for range r.count {
		if n == 1 {
			c.words[at>>6] |= 1 << (at & 63)
		} else {
			c.fill(at, at+n)
		}
		at += stride
	}
}

func (c *coverage) fill(from, to int64) {
	for from < to {
		word, k := from>>6, min(64-from&63, to-from)
		c.words[word] |= (1<<uint64(k) - 1) << (from & 63)
		from += k
	}
}

// next returns the first unit from at on that is covered, or is not; units if there is none.
func (c *coverage) next(at int64, covered bool) int64 {
	for at < c.units {
		w := c.words[at>>6]
		if !covered {
			w = ^w
		}
		if w >>= uint64(at & 63); w != 0 {
			return min(at+int64(bits.TrailingZeros64(w)), c.units)
		}
		at = (at>>6 + 1) << 6
	}
	return c.units
}

// rows returns what is covered; ranges do not touch.
func (c *coverage) rows() rows {
	var l rows
	for at := c.next(0, true); at < c.units; {
		end := c.next(at, false)
		l = l.add(row{c.from + at*c.unit, (end - at) * c.unit, 0, 1})
		at = c.next(end, true)
	}
	return l
}
