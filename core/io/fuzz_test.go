package io

import (
	"bytes"
	"encoding/binary"
	"math"
	"testing"

	"libspx/core/mpierr"
)

func words(values ...int64) (b []byte) {
	for _, v := range values {
		b = binary.LittleEndian.AppendUint64(b, uint64(v))
	}
	return b
}

func plainView(t *testing.T) *View {
	v, err := NewView(0, intType, intType)
	if err != nil {
		t.Error(err)
	}
	return v
}

// A process's request for a window, by header and table: an accepted one is within the window, and
// can be moved.
func FuzzRows(f *testing.F) {
	const from, to = 1000, 1512
	f.Add(words(0, 0), []byte{})
	f.Add(words(2, 44), rows{{1000, 4, 8, 10}, {1100, 4, 0, 1}}.encode(nil))
	f.Add(words(1, 512), rows{{1000, 512, 0, 1}}.encode(nil))
	f.Add(words(1, 1), rows{{1511, 1, 0, 1}}.encode(nil))
	f.Add(words(-1, -1), []byte{})
	f.Add(words(1<<58, 1<<62), []byte{})
	f.Add(words(1, 8), rows{{1000, 4, math.MaxInt64, 2}}.encode(nil))
	f.Add(words(1, 8), rows{{1000, math.MaxInt64, 1, math.MaxInt64}}.encode(nil))
	f.Fuzz(func(t *testing.T, header, table []byte) {
		if len(header) != headerBytes {
			return
		}
		n, size, err := decodeHeader(header, to-from)
		if err != nil {
			return
		}
		if n < 0 || n > to-from || size < 0 || size > to-from {
			t.Fatalf("%d rows of %d bytes in a window of %d", n, size, to-from)
		}
		l, err := decodeRows(table, size, from, to)
		if err != nil {
			return
		}
		if !bytes.Equal(l.encode(nil), table) {
			t.Errorf("%x is taken for %v", table, l)
		}
		data, buf := make([]byte, size), make([]byte, to-from)
		for i := range data {
			data[i] = byte(i + 1)
		}
		l.scatter(data, buf, from)
		back := make([]byte, size)
		l.gather(back, buf, from)
		covered := int64(0)
		for _, r := range cover([]rows{l}, from, to).rows() {
			covered += r.bytes()
		}
		if !bytes.Equal(back, data) || covered != size {
			t.Errorf("%v: %x comes back as %x, %d bytes are covered", l, data, back, covered)
		}
		for _, r := range joined([]rows{l}, sieveGap) {
			if r.off < from || r.off+r.n > to {
				t.Errorf("%v: [%d, %d) is read", l, r.off, r.off+r.n)
			}
		}
		for _, r := range l { // as one that is known
			if e := (reach{r.off, r.end() - 1, r.bytes()}); e.isSound() && r.is(e) {
				r.within(from+7, to-7)
			}
		}
	})
}

// A process that sends an invalid extent gets an error, and so do all others.
func TestNonsenseAboutRows(t *testing.T) {
	const page = partAlign
	for _, header := range [][]byte{words(-1, 8), words(1, -8), words(1<<60, 8), words(1, 1<<60),
		words(2, 1), words(0, 8)} {
		var honest error
		together(2, func(p Peers) {
			if p.Rank() == 0 {
				v := plainView(t)
				_, honest = AccessAll(p, Hints{Aggregators: 1, Window: page,
					Mode: CollectiveAlways}, &memFile{room: 1 << 20}, v, make(Bytes, 64), 0, true,
					false, nil)
				return
			}
			// the other side counts
			GatherInts(p, 32, 63, 32, 0, 1, 1, 0, 0, 0, 0) //nolint:errcheck
			p.Exchange([]Message{{0, header}}, nil)        //nolint:errcheck // so here
			if err := Agree(p, nil); mpierr.ClassOf(err) != mpierr.Intern {
				t.Errorf("%x: who has sent it is told %v", header, err)
			}
		})
		if mpierr.ClassOf(honest) != mpierr.Intern {
			t.Errorf("%x: the error is %v", header, honest)
		}
	}
	for _, record := range [][]int64{{-1, 7, 8, 0, 1, 1, 0, 0, 0, 0},
		{0, math.MaxInt64, 8, 0, 1, 1, 0, 0, 0, 0}, {0, 3, 8, 0, 1, 1, 0, 0, 0, 0},
		{0, 63, -1, 0, 1, 1, 0, 0, 0, 0}, {0, 63, 8, 0, 1, 0, 0, 4, 0, 2},
		{0, 63, 8, 0, 1, 0, 0, 0, 0, 0}, {0, 63, 8, 0, 1, 0, 0, 4, math.MaxInt64, 2}} {
		var honest error
		together(2, func(p Peers) {
			if p.Rank() == 1 {
				GatherInts(p, record...) //nolint:errcheck // the other side counts
				return
			}
			v := plainView(t)
			_, honest = AccessAll(p, Hints{Aggregators: 1, Window: page, Mode: CollectiveAlways},
				&memFile{room: 1 << 20}, v, make(Bytes, 64), 0, true, false, nil)
		})
		if mpierr.ClassOf(honest) != mpierr.Intern {
			t.Errorf("%v: the error is %v", record, honest)
		}
	}
	texts := append([]byte{255}, make([]byte, textMax)...)
	together(2, func(p Peers) {
		if p.Rank() == 0 {
			GatherInts(p, int64(mpierr.NoMem)) //nolint:errcheck // the other side counts
			Gather(p, texts)                   //nolint:errcheck // so here
			return
		}
		if err := Agree(p, nil); mpierr.ClassOf(err) != mpierr.NoMem {
			t.Errorf("an error with a text that is too long is %v", err)
		}
	})
}
