package io

import (
	"encoding/binary"

	"libspx/core/mpierr"
)

// Ranges of a file, in the order of the data that belong to them. Views of many short blocks are
// regular most of the time: then a row stands for any number of ranges, and what is done for a
// range is a copy and an addition.

// row is count ranges of n bytes each, the first at off, stride from one to the next. stride is at
// least n unless count is 1.
type row struct{ off, n, stride, count int64 }

func (r row) bytes() int64 { return r.n * r.count }

// end is the offset behind the last range.
func (r row) end() int64 { return r.off + (r.count-1)*r.stride + r.n }

// rows is a list of ranges. Its data lie one after the other.
type rows []row

// rows collects the ranges behind positions [from, to).
func (v *View) rows(from, to int64) rows {
	var list rows
	v.strides(from, to, func(off, n, stride, count int64) bool {
		list = list.add(row{off, n, stride, count})
		return true
	})
	return list
}

// regular returns what is behind positions [from, to) as one row; false if that takes more than
// one, or long to find out.
func (v *View) regular(from, to int64) (row, bool) {
	const most = 256
	var list rows
	steps := 0
	v.strides(from, to, func(off, n, stride, count int64) bool {
		list = list.add(row{off, n, stride, count})
		steps++
		return len(list) < 2 && steps <= most
	})
	if len(list) != 1 || steps > most {
		return row{}, false
	}
	return list[0], true
}

// within returns the part of a row's ranges within [from, to).
func (r row) within(from, to int64) rows {
	var list rows
	if r.count == 1 {
		r.stride = max(r.n, 1)
	}
	first, last := int64(0), r.count-1 // of the ranges that reach into it
	if from >= r.off+r.n {
		first = (from-r.off-r.n)/r.stride + 1
	}
	if to <= r.off+last*r.stride {
		last = (to-r.off-1+r.stride)/r.stride - 1
	}
	for first <= last {
		off := r.off + first*r.stride
		if off < from || off+r.n > to || first == last {
			begin, end := max(off, from), min(off+r.n, to)
			list = list.add(row{begin, end - begin, 0, 1})
			first++
			continue
		}
		whole := last - first // the last one may be cut
		list = list.add(row{off, r.n, r.stride, whole})
		first += whole
	}
	return list
}

// add appends ranges, to the last row if they continue it.
func (l rows) add(r row) rows {
	switch {
	case r.count == 0 || r.n == 0:
		return l
	case r.count == 1:
		r.stride = 0
	case r.stride == r.n:
		r = row{r.off, r.bytes(), 0, 1}
	case r.stride < r.n: // they overlap
		for i := range r.count {
			l = append(l, row{r.off + i*r.stride, r.n, 0, 1})
		}
		return l
	}
	if len(l) == 0 {
		return append(l, r)
	}
	last := &l[len(l)-1]
	switch {
	case last.count == 1 && r.count == 1 && r.off == last.off+last.n:
		last.n += r.n
	case last.n != r.n:
		return append(l, r)
	case last.count == 1 && r.off-last.off > r.n && (r.count == 1 || r.stride == r.off-last.off):
		last.stride, last.count = r.off-last.off, r.count+1
	case last.count > 1 && r.off == last.off+last.count*last.stride &&
		(r.count == 1 || r.stride == last.stride):
		last.count += r.count
	default:
		return append(l, r)
	}
	return l
}

// take removes ranges from the front of the list that go up, have gaps of at most gap between them,
// and span at most most bytes. At least one is taken. It returns them, the rest (both in the memory
// of the list), and where the last of them ends.
func (l rows) take(gap, most int64) (group, rest rows, end int64) {
	first := l[0].off
	end = first
	at := first // of the last range that was taken
	for i, r := range l {
		k := int64(0)
		if i == 0 || r.off >= at && r.off-end <= gap && r.off+r.n-first <= most {
			k = 1
			if r.count > 1 && r.stride-r.n <= gap {
				k = max(1, min(r.count, (most-r.n-(r.off-first))/r.stride+1))
			}
			at = r.off + (k-1)*r.stride
			end = max(end, at+r.n)
		}
		switch {
		case k == 0:
			return l[:i], l[i:], end
		case k < r.count:
			l[i] = row{r.off + k*r.stride, r.n, r.stride, r.count - k}
			return append(l[:i:i], row{r.off, r.n, r.stride, k}), l[i:], end
		}
	}
	return l, nil, end
}

// number is the number of ranges.
func (l rows) number() int64 {
	n := int64(0)
	for _, r := range l {
		n += r.count
	}
	return n
}

// before returns how many bytes of data lie before the first range that reaches beyond offset
// limit, and in it before limit.
func (l rows) before(limit int64) int64 {
	n := int64(0)
	for _, r := range l {
		if r.end() <= limit {
			n += r.bytes()
			continue
		}
		whole := int64(0)
		if limit >= r.off+r.n { // then count > 1
			whole = (limit-r.off-r.n)/r.stride + 1
		}
		return n + whole*r.n + min(max(limit-r.off-whole*r.stride, 0), r.n)
	}
	return n
}

// gather copies data out of buf, which holds the file from offset base on, to p, until that is
// full.
func (l rows) gather(p, buf []byte, base int64) {
	for _, r := range l {
		k := min(r.bytes(), int64(len(p)))
		r.move(p[:k], buf[r.off-base:], false)
		p = p[k:]
	}
}

// scatter copies data from p to buf, which holds the file from offset base on, until p is at its
// end.
func (l rows) scatter(p, buf []byte, base int64) {
	for _, r := range l {
		k := min(r.bytes(), int64(len(p)))
		r.move(p[:k], buf[r.off-base:], true)
		p = p[k:]
	}
}

// move copies between packed data and the ranges of buf, whose first byte is that of the first
// range. p may end before the row does.
func (r row) move(p, buf []byte, out bool) {
	whole := min(int64(len(p))/r.n, r.count)
	at := int64(0)
	switch {
	case r.n == 4 && out:
		for ; whole > 0; whole-- {
			binary.LittleEndian.PutUint32(buf[at:], binary.LittleEndian.Uint32(p))
			p, at = p[4:], at+r.stride
		}
	case r.n == 4:
		for ; whole > 0; whole-- {
			binary.LittleEndian.PutUint32(p, binary.LittleEndian.Uint32(buf[at:]))
			p, at = p[4:], at+r.stride
		}
	case r.n == 8 && out:
		for ; whole > 0; whole-- {
			binary.LittleEndian.PutUint64(buf[at:], binary.LittleEndian.Uint64(p))
			p, at = p[8:], at+r.stride
		}
	case r.n == 8:
		for ; whole > 0; whole-- {
			binary.LittleEndian.PutUint64(p, binary.LittleEndian.Uint64(buf[at:]))
			p, at = p[8:], at+r.stride
		}
	default:
		for ; whole > 0; whole-- {
			if out {
				copy(buf[at:at+r.n], p)
			} else {
				copy(p[:r.n], buf[at:])
			}
			p, at = p[r.n:], at+r.stride
		}
	}
	switch {
	case len(p) == 0:
	case out:
		copy(buf[at:], p)
	default:
		copy(p, buf[at:])
	}
}

const rowBytes = 32

// encode appends the rows as a process sends them to another.
func (l rows) encode(b []byte) []byte {
	for _, r := range l {
		for _, v := range [...]int64{r.off, r.n, r.stride, r.count} {
			b = binary.LittleEndian.AppendUint64(b, uint64(v))
		}
	}
	return b
}

// decodeRows reads the rows that another process wants of the window [from, to): n bytes, in ranges
// that go up and do not overlap.
func decodeRows(b []byte, n, from, to int64) (rows, error) {
	l := make(rows, len(b)/rowBytes)
	for i := range l {
		at := func(k int) int64 { return int64(binary.LittleEndian.Uint64(b[i*rowBytes+8*k:])) }
		r := row{at(0), at(1), at(2), at(3)}
		if r.off < from || !r.fits(to) || r.bytes() > n {
			return nil, errAsked
		}
		from, n, l[i] = r.end(), n-r.bytes(), r
	}
	if n != 0 || len(b)%rowBytes != 0 {
		return nil, errAsked
	}
	return l, nil
}

// fits reports whether a row from elsewhere is valid, and ends before offset to.
func (r row) fits(to int64) bool {
	switch {
	case r.off < 0 || r.n < 1 || r.count < 1 || r.n > to || r.off > to-r.n:
		return false
	case r.count == 1:
		return true
	}
	return r.stride >= r.n && r.count-1 <= (to-r.n-r.off)/r.stride
}

var errAsked = &mpierr.Error{Class: mpierr.Intern,
	Text: "what a process says it accesses of the file cannot be"}
