package io

import (
	"fmt"
	"math/rand"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"libspx/core/mpierr"
)

// memFile is a Backend in memory. Writes that reach beyond room fail, as on a full device.
type memFile struct {
	mu   sync.Mutex
	data []byte
	room int
	maps bool // what the file has can be mapped
}

func (f *memFile) ReadAt(p []byte, off int64) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if off >= int64(len(f.data)) {
		return 0, nil
	}
	return copy(p, f.data[off:]), nil
}

func (f *memFile) WriteAt(p []byte, off int64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	end := int(off) + len(p)
	if end > f.room {
		return mpierr.New(mpierr.NoSpace, "full")
	}
	if end > len(f.data) {
		f.data = append(f.data, make([]byte, end-len(f.data))...)
	}
	copy(f.data[off:], p)
	return nil
}

func (f *memFile) Map(from, to int64) ([]byte, func()) {
	if !f.maps || int(to) > len(f.data) {
		return nil, nil
	}
	return f.data[from:to], func() {}
}

func (f *memFile) Size() (int64, error)                    { return int64(len(f.data)), nil }
func (f *memFile) SetSize(int64) error                     { return nil }
func (f *memFile) Preallocate(int64) error                 { return nil }
func (f *memFile) Sync() error                             { return nil }
func (f *memFile) Close() error                            { return nil }
func (f *memFile) Lock(int64, int64, bool) (func(), error) { return func() {}, nil }

// wires are channels between goroutines that play processes.
type wires [][]chan []byte

type wirePeers struct {
	rank int
	w    wires
}

func (p wirePeers) Rank() int { return p.rank }
func (p wirePeers) Size() int { return len(p.w) }
func (p wirePeers) Exchange(sends, recvs []Message) error {
	for _, m := range sends {
		p.w[p.rank][m.Peer] <- append([]byte(nil), m.Data...)
	}
	for _, m := range recvs {
		if b := <-p.w[m.Peer][p.rank]; copy(m.Data, b) != len(b) || len(b) != len(m.Data) {
			return fmt.Errorf("a message of %d bytes where %d were expected", len(b), len(m.Data))
		}
	}
	return nil
}

// together runs f as size processes.
func together(size int, f func(p Peers)) {
	w := make(wires, size)
	for i := range w {
		for range size {
			w[i] = append(w[i], make(chan []byte, 1<<10))
		}
	}
	var all sync.WaitGroup
	for r := range size {
		all.Add(1)
		go func() {
			defer all.Done()
			f(wirePeers{r, w})
		}()
	}
	all.Wait()
}

// indirect is a Memory without Direct.
type indirect struct{ Bytes }

func (indirect) Direct(int64, int64) []byte { return nil }

// Random views of all processes, written and read by two phases in windows of one page, against
// byte maps.
func TestTwoPhasesAgainstByteMaps(t *testing.T) {
	for seed := range int64(60) {
		r := rand.New(rand.NewSource(seed))
		size := 1 + r.Intn(6)
		h := Hints{Aggregators: 1 + r.Intn(size), Window: partAlign, Mode: CollectiveAlways}
		views, maps, data := make([]*View, size), make([][]int64, size), make([][]byte, size)
		f := &memFile{room: 1 << 30}
		if f.maps = seed%2 == 0; f.maps {
			f.data = make([]byte, 1<<20)
		}
		want := map[int64]byte{}
		for rank := range size {
			// Processes take turns in rows: rank r has row r of every size rows, and a random type
			// within a row.
			ft := randomFiletype(t, r)
			disp := int64(rank)*100000 + int64(r.Intn(9000))
			v, err := NewView(disp, intType, ft)
			if err != nil {
				t.Fatal(err)
			}
			n := 4 * r.Intn(3000)
			views[rank], maps[rank], data[rank] = v, byteMap(disp, ft, n), make([]byte, n)
			r.Read(data[rank])
			for p, off := range maps[rank] {
				want[off] = data[rank][p]
			}
		}
		together(size, func(p Peers) {
			me := p.Rank()
			if n, err := AccessAll(p, h, f, views[me], indirect{data[me]}, 0, true, false,
				nil); err != nil || n != int64(len(data[me])) {
				t.Errorf("seed %d: rank %d wrote %d bytes: %v", seed, me, n, err)
			}
		})
		for off, b := range f.data {
			if b != want[int64(off)] {
				t.Fatalf("seed %d: byte %d of the file is %d, not %d", seed, off, b,
					want[int64(off)])
			}
		}
		cut := int64(r.Intn(len(f.data) + 1))
		f.data = f.data[:cut]
		together(size, func(p Peers) {
			me := p.Rank()
			got, there := make(Bytes, len(data[me])), int64(0)
			for _, off := range maps[me] {
				if off < cut {
					there++
				}
			}
			n, err := AccessAll(p, h, f, views[me], got, 0, false, false, nil)
			if err != nil || n != there {
				t.Errorf("seed %d: rank %d read %d bytes of %d: %v", seed, me, n, there, err)
			} else if diff := cmp.Diff(data[me][:n], []byte(got[:n])); diff != "" {
				t.Errorf("seed %d: rank %d read other data:\n%s", seed, me, diff)
			}
		})
	}
}

// A device that is full in the middle: all processes get that error, whichever has seen it.
func TestNoSpaceReachesAll(t *testing.T) {
	ft := must(t, intType, nil)
	f := &memFile{room: 10000}
	together(4, func(p Peers) {
		v, err := NewView(int64(p.Rank())*4, ft, ft)
		if err != nil {
			t.Error(err)
		}
		_, err = AccessAll(p, Hints{Aggregators: 2, Window: partAlign}, f, v, make(Bytes, 40000), 0,
			true, false, nil)
		if mpierr.ClassOf(err) != mpierr.NoSpace {
			t.Errorf("rank %d: %v", p.Rank(), err)
		}
	})
}

// An error in one process's arguments is returned by all, and none waits.
func TestFailureReachesAll(t *testing.T) {
	together(3, func(p Peers) {
		v, _ := NewView(0, intType, intType)
		var mine error
		if p.Rank() == 1 {
			mine = mpierr.New(mpierr.Count, "wrong")
		}
		if _, err := AccessAll(p, Hints{Aggregators: 1, Window: partAlign}, &memFile{room: 1 << 20},
			v, make(Bytes, 100), 0, true, false, mine); mpierr.ClassOf(err) != mpierr.Count {
			t.Errorf("rank %d: %v", p.Rank(), err)
		}
	})
}

func TestGather(t *testing.T) {
	for size := 1; size <= 9; size++ {
		together(size, func(p Peers) {
			all, err := GatherInts(p, int64(10*p.Rank()), 7)
			if err != nil {
				t.Error(err)
			}
			for r, v := range all {
				if v[0] != int64(10*r) || v[1] != 7 {
					t.Errorf("size %d: rank %d has %v of rank %d", size, p.Rank(), v, r)
				}
			}
		})
	}
}
