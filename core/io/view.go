package io

import (
	"math"

	"libspx/core/datatype"
	"libspx/core/mpierr"
)

// View is what a process sees of a file (MPI-5.0, 15.3): from Disp on, the file is tiled with
// filetypes, and the data of these are the view, a sequence of bytes that are counted in etypes.
type View struct {
	Disp  int64 // offset in the file at which the first filetype begins
	Etype int64 // bytes of an etype in the file, at least 1
	// Overlaps: the filetype contains a byte of the file more than once: such views are for
	// reading.
	Overlaps bool
	// tangled: the filetype's data reach into the next tile. That is no overlap while only
	// one tile is accessed: a filetype of which one copy is all that is wanted may have any extent.
	tangled bool

	file         *datatype.Type
	size, extent int64
	plain        bool // position p is at offset Disp + first + p
	first        int64
	lone         bool // a filetype has one run of bytes, at first
}

// NewView makes a view. etype and filetype are as the file has them: with the sizes of its data
// representation.
func NewView(disp int64, etype, filetype *datatype.Type) (*View, error) {
	v := &View{Disp: disp, Etype: max(etype.Size(), 1), file: filetype, size: filetype.Size(),
		extent: filetype.Extent()}
	switch {
	case disp < 0:
		return nil, mpierr.New(mpierr.Arg, "disp is %d: it may not be negative", disp)
	case v.size > 0 && etype.Size() == 0:
		return nil, mpierr.New(mpierr.Arg, "the etype has no data, but the filetype has")
	case v.size%v.Etype != 0:
		return nil, mpierr.New(mpierr.Arg,
			"the filetype has %d bytes of data, which is no multiple of the etype's %d", v.size,
			v.Etype)
	}
	return v, v.inspect()
}

// inspectMax bounds the number of runs that are checked: larger types are trusted.
const inspectMax = 1 << 16

// inspect checks the order of the filetype's data, and finds out whether the view is in one piece
// or overlaps itself.
func (v *View) inspect() error {
	last, end, first, runs := int64(0), int64(0), int64(0), 0
	bad := error(nil)
	v.file.Runs(0, v.size, func(off, n int64) bool {
		if runs == 0 {
			first = off
		}
		switch {
		case off < 0:
			bad = mpierr.New(mpierr.IO,
				"the filetype has data at displacement %d: displacements may not be negative", off)
		case runs > 0 && off < last:
			bad = mpierr.New(mpierr.IO,
				"the filetype has data at displacement %d after displacement %d: displacements "+
					"may not go down", off, last)
		case runs > 0 && off < end:
			v.Overlaps = true
		}
		last, end = off, max(end, off+n)
		runs++
		return bad == nil && runs < inspectMax
	})
	if bad != nil {
		return bad
	}
	v.first, v.lone = first, runs == 1
	if v.size > 0 && end-first > v.extent {
		// The next tile begins before this one's data end.
		if v.extent < 0 {
			return mpierr.New(mpierr.Arg, "the filetype has a negative extent, %d", v.extent)
		}
		v.tangled = true
	}
	v.plain = v.size > 0 && end-first == v.size && v.extent == v.size && !v.Overlaps
	return nil
}

// simpleRun is the shortest run, in bytes, that is worth a system call of its own wherever the next
// one is.
const simpleRun = 4096

// Simple describes a view that is one piece from offset first on (run 0), or long runs of bytes,
// stride apart, the first one at first. Processes with such views gain nothing from reading
// together.
func (v *View) Simple() (first, run, stride int64, ok bool) {
	switch {
	case v.plain:
		return v.Disp + v.first, 0, 0, true
	case v.lone && !v.tangled && v.size >= simpleRun:
		return v.Disp + v.first, v.size, v.extent, true
	}
	return 0, 0, 0, false
}

// ordered reports whether offsets go up, without overlap, over positions [from, to).
func (v *View) ordered(from, to int64) bool {
	return !v.Overlaps && (!v.tangled || from >= to || from/v.size == (to-1)/v.size)
}

// bounds returns a range of the file that holds all positions of [from, to), which are not none.
func (v *View) bounds(from, to int64) (begin, end int64) {
	if v.ordered(from, to) {
		return v.Offset(from), v.Offset(to-1) + 1
	}
	begin = math.MaxInt64
	v.Runs(from, to, func(off, n int64) bool {
		begin, end = min(begin, off), max(end, off+n)
		return true
	})
	return begin, end
}

// Runs calls emit for the ranges of the file behind positions [from, to), in order; ranges that
// touch come as one. It stops when emit returns false.
func (v *View) Runs(from, to int64, emit func(off, n int64) bool) {
	off, n := int64(0), int64(0)
	v.strides(from, to, func(o, k, stride, count int64) bool {
		for range count {
			if n > 0 && o == off+n {
				n += k
			} else {
				if n > 0 && !emit(off, n) {
					n = 0
					return false
				}
				off, n = o, k
			}
			o += stride
		}
		return true
	})
	if n > 0 {
		emit(off, n)
	}
}

// strides calls emit for the ranges behind positions [from, to), in order, as datatype.Type.Strides
// does.
func (v *View) strides(from, to int64, emit func(off, n, stride, count int64) bool) {
	switch {
	case from >= to || v.size == 0:
	case v.plain:
		emit(v.Disp+v.first+from, to-from, 0, 1)
	case v.lone:
		datatype.Repetition(v.Disp+v.first, v.size, v.extent, from, to, emit)
	default:
		for tile := from / v.size; tile*v.size < to; tile++ {
			base, begin := v.Disp+tile*v.extent, tile*v.size
			if !v.file.Strides(max(from-begin, 0), min(to-begin, v.size),
				func(off, n, stride, count int64) bool {
					return emit(base+off, n, stride, count)
				}) {
				return
			}
		}
	}
}

// Offset returns the offset of a position in the file: for position 0 and a filetype without data,
// Disp.
func (v *View) Offset(pos int64) int64 {
	at := v.Disp
	v.Runs(pos, pos+1, func(off, _ int64) bool { at = off; return false })
	return at
}

// Below returns how many positions of [from, to) are before offset off. The view must not overlap
// itself.
func (v *View) Below(from, to, off int64) int64 {
	if v.plain {
		return min(max(off-v.Offset(from), 0), to-from)
	}
	lo, hi := from, to // positions below lo are before off, those from hi on are not
	for lo < hi {
		mid := lo + (hi-lo)/2
		if v.Offset(mid) < off {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo - from
}

// End returns the first position behind the end of a file of n bytes.
func (v *View) End(n int64) int64 {
	if v.size == 0 || n <= v.Disp {
		return 0
	}
	if v.extent <= 0 {
		return v.Below(0, v.size, n)
	}
	return v.Below(0, ((n-v.Disp)/v.extent+2)*v.size, n)
}

// CheckRange refuses positions whose offsets do not fit 63 bits.
func (v *View) CheckRange(pos, n int64) error {
	end := pos + n
	if pos < 0 || end < pos {
		return mpierr.New(mpierr.Arg,
			"the access begins %d bytes into the view and has %d bytes: that is out of range", pos,
			n)
	}
	if v.size == 0 {
		return nil
	}
	tiles, most := end/v.size+1, int64(1)<<62
	if v.extent > 0 && tiles > (most-v.Disp)/v.extent {
		return mpierr.New(mpierr.Arg,
			"the access ends %d bytes into the view: that is beyond the largest offset that a "+
				"file can have", end)
	}
	return nil
}
