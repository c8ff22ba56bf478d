package io

import "sync"

// Access by one process alone (MPI-5.0, 15.4.1: explicit offsets, individual and shared pointers).

const (
	chunkBytes = 4 << 20 // of data that are moved at a time when they are not in one piece
	hugeBytes  = 1 << 30 // that are moved at a time when they are
	// that are read or mapped at once for the ranges therein: a processor's cache holds them
	sieveBytes = 512 << 10
	sieveGap   = 32 << 10 // a gap between two ranges that is read rather than skipped
	mapGap     = 1 << 10  // a gap between two ranges that is mapped rather than skipped
	mapRanges  = 32       // ranges that are worth a mapping
	// average length of a range from which on writing them one by one is as fast
	mapLength = 1 << 10
)

// buffers are reused: a new one would have to be cleared, page by page.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

// borrow returns a buffer of n bytes, and what gives it back.
func borrow(n int64) (p []byte, giveBack func()) {
	b := buffers.Get().(*[]byte)
	if int64(cap(*b)) < n {
		*b = make([]byte, n)
	}
	return (*b)[:n], func() { buffers.Put(b) }
}

// Access moves all of m from or to the positions of v from pos on. It returns how many bytes were
// moved: fewer than m has when a file that is read ends before. locked: under a lock of the range
// from its first byte to its last, as needed by atomic mode, and by a file of which hosts cache
// parts (Hints.Locked).
func Access(b Backend, v *View, m Memory, pos int64, write, locked bool) (int64, error) {
	n := m.Size()
	if err := v.CheckRange(pos, n); err != nil {
		return 0, err
	}
	if n == 0 || v.size == 0 {
		return 0, nil
	}
	if locked {
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
				var giveBack func()
				buf, giveBack = borrow(k)
				defer giveBack()
			}
			p = buf[:k]
		}
		if write {
			if !direct {
				m.Load(p, done)
			}
			if err := v.rows(pos+done, pos+done+k).write(b, p); err != nil {
				return done, err
			}
			done += k
			continue
		}
		got, err := v.rows(pos+done, pos+done+k).read(b, p)
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

// write writes p to the ranges. Many short ones that lie close together are stored into a mapping
// of the file: reading the gaps and writing them back would undo concurrent writes of other
// processes there.
func (l rows) write(b Backend, p []byte) error {
	for len(l) > 0 {
		first := l[0].off
		group, rest, end := l.take(mapGap, sieveBytes)
		l = rest
		n := int64(0)
		for _, r := range group {
			n += r.bytes()
		}
		data := p[:n]
		p = p[n:]
		if many := group.number(); many >= mapRanges && n/many < mapLength {
			if mapped, done := b.Map(first, end); mapped != nil {
				group.scatter(data, mapped, first)
				done()
				continue
			}
		}
		for _, r := range group {
			for i := range r.count {
				if err := b.WriteAt(data[:r.n], r.off+i*r.stride); err != nil {
					return err
				}
				data = data[r.n:]
			}
		}
	}
	return nil
}

// read fills p and returns the number of bytes before the file's end. Ranges that lie close
// together are read at once.
func (l rows) read(b Backend, p []byte) (int64, error) {
	sieve, giveBack := borrow(sieveBytes)
	defer giveBack()
	done := int64(0)
	for len(l) > 0 {
		first := l[0].off
		group, rest, end := l.take(sieveGap, sieveBytes)
		l = rest
		if group.number() == 1 {
			n := group[0].n
			got, err := b.ReadAt(p[done:done+n], first)
			done += int64(got)
			if err != nil || int64(got) < n {
				return done, err
			}
			continue
		}
		got, err := b.ReadAt(sieve[:end-first], first)
		if err != nil {
			return done, err
		}
		n := group.before(first + int64(got))
		group.gather(p[done:done+n], sieve, first)
		done += n
		if first+int64(got) < end {
			return done, nil
		}
	}
	return done, nil
}
