package io

// Access by one process alone (MPI-5.0, 15.4.1: explicit offsets, individual and shared pointers).

const (
	chunkBytes = 4 << 20  // that pass through a buffer at a time
	hugeBytes  = 1 << 30  // that are moved at a time without a buffer
	sieveGap   = 32 << 10 // a gap between two ranges that is read rather than skipped
)

// span is a range of the file, and where its data are in a packed buffer.
type span struct {
	off, n int64
	at     int64
}

// spans collects the ranges behind positions [from, to).
func (v *View) spans(from, to int64) []span {
	var list []span
	at := int64(0)
	v.Runs(from, to, func(off, n int64) bool {
		list = append(list, span{off, n, at})
		at += n
		return true
	})
	return list
}

// Access moves all of m from or to the positions of v from pos on. It returns how many bytes were moved: fewer than m has
// when a file that is read ends before.
func Access(b Backend, v *View, m Memory, pos int64, write, atomic bool) (int64, error) {
	n := m.Size()
	if err := v.CheckRange(pos, n); err != nil {
		return 0, err
	}
	if n == 0 || v.size == 0 {
		return 0, nil
	}
	if atomic {
		from, to := v.bounds(pos, pos+n)
		unlock, err := b.Lock(from, to, write)
		if err != nil {
			return 0, err
		}
		defer unlock()
	}
	var buf []byte
	for done := int64(0); done < n; {
		k := min(n-done, hugeBytes)
		p := m.Direct(done, k)
		direct := p != nil
		if !direct || !v.plain {
			k = min(k, chunkBytes)
			p = m.Direct(done, k)
		}
		if !direct {
			if buf == nil {
				buf = make([]byte, k)
			}
			p = buf[:k]
		}
		if write {
			if !direct {
				m.Load(p, done)
			}
			if err := writeSpans(b, v.spans(pos+done, pos+done+k), p); err != nil {
				return done, err
			}
			done += k
			continue
		}
		got, err := readSpans(b, v.spans(pos+done, pos+done+k), p)
		if !direct && got > 0 {
			m.Store(p[:got], done)
		}
		done += got
		if err != nil || got < k {
			return done, err
		}
	}
	return n, nil
}

func writeSpans(b Backend, list []span, p []byte) error {
	for _, s := range list {
		if err := b.WriteAt(p[s.at:s.at+s.n], s.off); err != nil {
			return err
		}
	}
	return nil
}

// readSpans fills p and returns the number of bytes before the file's end. Ranges that lie close together are read at once.
func readSpans(b Backend, list []span, p []byte) (int64, error) {
	var sieve []byte
	for i := 0; i < len(list); {
		first, end := list[i], list[i].off+list[i].n
		j := i + 1
		for j < len(list) && list[j].off >= list[j-1].off && list[j].off-end <= sieveGap && list[j].off+list[j].n-first.off <= chunkBytes {
			end = max(end, list[j].off+list[j].n)
			j++
		}
		if j == i+1 {
			got, err := b.ReadAt(p[first.at:first.at+first.n], first.off)
			if err != nil || int64(got) < first.n {
				return first.at + int64(got), err
			}
			i = j
			continue
		}
		if int64(len(sieve)) < end-first.off {
			sieve = make([]byte, end-first.off)
		}
		got, err := b.ReadAt(sieve[:end-first.off], first.off)
		if err != nil {
			return first.at, err
		}
		for _, s := range list[i:j] {
			there := min(max(first.off+int64(got)-s.off, 0), s.n)
			copy(p[s.at:s.at+there], sieve[s.off-first.off:])
			if there < s.n {
				return s.at + there, nil
			}
		}
		i = j
	}
	return int64(len(p)), nil
}
