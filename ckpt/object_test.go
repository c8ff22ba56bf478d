package ckpt

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"libspx/core/mpierr"
)

// net is messages between goroutines, each of which is a process. No process fails: sim has those
// that do.
type net struct {
	n       int
	mu      sync.Mutex
	arrived *sync.Cond
	queues  map[[3]int][][]byte
	gathers map[int][][]uint64
}

func newNet(n int) *net {
	w := &net{n: n, queues: map[[3]int][][]byte{}, gathers: map[int][][]uint64{}}
	w.arrived = sync.NewCond(&w.mu)
	return w
}

// peer is one process's view.
type peer struct {
	*net
	rank, gathered int
}

func (p *peer) Rank() int { return p.rank }
func (p *peer) Size() int { return p.n }
func (p *peer) Host() int { return p.rank % 2 }
func (p *peer) Revoke()   {}
func (p *peer) Leave()    {}

func (p *peer) Gather(mine []uint64) ([]uint64, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	k := p.gathered
	p.gathered++
	if p.gathers[k] == nil {
		p.gathers[k] = make([][]uint64, p.n)
	}
	p.gathers[k][p.rank] = slices.Clone(mine)
	p.arrived.Broadcast()
	for slices.ContainsFunc(p.gathers[k], func(w []uint64) bool { return w == nil }) {
		p.arrived.Wait()
	}
	return slices.Concat(p.gathers[k]...), nil
}

type posted struct {
	p               *peer
	receives, sends []Message
}

func (p *peer) Post(receives, sends []Message, _ func()) (Transfer, error) {
	return &posted{p, receives, sends}, nil
}

func (t *posted) Begin() {
	t.p.mu.Lock()
	defer t.p.mu.Unlock()
	for _, m := range t.sends {
		way := [3]int{t.p.rank, m.Peer, m.Tag}
		t.p.queues[way] = append(t.p.queues[way], slices.Clone(m.Data))
	}
	t.p.arrived.Broadcast()
}

func (t *posted) Wait() error {
	t.p.mu.Lock()
	defer t.p.mu.Unlock()
	for _, m := range t.receives {
		way := [3]int{m.Peer, t.p.rank, m.Tag}
		for len(t.p.queues[way]) == 0 {
			t.p.arrived.Wait()
		}
		into := m.Data
		if m.Into != nil {
			into = m.Into.([]byte)
		}
		if n := copy(into, t.p.queues[way][0]); n != len(t.p.queues[way][0]) || n != len(into) {
			return fmt.Errorf("%d bytes for %d", len(t.p.queues[way][0]), len(into))
		}
		t.p.queues[way] = t.p.queues[way][1:]
	}
	return nil
}

func (t *posted) Abandon(func()) { panic("it is waited for") }

// heap has no memory for a part of more bytes than that, if it is not 0.
type heap struct{ most int64 }

func (h heap) Alloc(bytes int64) []byte {
	if h.most > 0 && bytes > h.most {
		return nil
	}
	return slices.Repeat([]byte{0x55}, int(bytes))
}
func (heap) Free(b []byte)  { clear(b) }
func (heap) Release(Buffer) {}
func (heap) Pack(all []Packing) {
	for _, p := range all {
		copy(p.To, p.From.([]byte))
	}
}

// all runs a process for each rank, of which each has an object that is attached.
func all(t *testing.T, n int, set Settings, mem func(rank int) Heap,
	run func(o *Object, rank int) error) {
	t.Helper()
	w := newNet(n)
	var wg sync.WaitGroup
	for r := range n {
		wg.Go(func() {
			o := New(set, mem(r), nil)
			err := o.Attach(&peer{net: w, rank: r})
			if err == nil {
				err = run(o, r)
			}
			if err != nil {
				t.Errorf("rank %d of %d: %v", r, n, err)
			}
		})
	}
	wg.Wait()
}

func enough(int) Heap { return heap{} }

// For any number of processes each gets what each other has, and what each has sent to it.
func TestCollectives(t *testing.T) {
	for n := 1; n <= 17; n++ {
		counts := make([]int, n)
		for r := range counts {
			counts[r] = r * 5 % 7
		}
		all(t, n, Settings{Versions: 1}, enough, func(o *Object, me int) error {
			got, err := o.spread(fill(counts[me], uint64(me)), counts)
			if err != nil {
				return err
			}
			for r, words := range got {
				if !slices.Equal(words, fill(counts[r], uint64(r))) {
					return fmt.Errorf("of %d: %v", r, words)
				}
			}
			mine := make([]uint64, n)
			for r := range mine {
				mine[r] = uint64(100*me + r)
			}
			back, err := o.swap(mine)
			for r, w := range back {
				if int(w) != 100*r+me {
					return fmt.Errorf("rank %d has sent %d", r, w)
				}
			}
			return err
		})
	}
}

// All get the class of the worst error, and its process the text.
func TestAgree(t *testing.T) {
	all(t, 5, Settings{Versions: 1}, enough, func(o *Object, me int) error {
		status := map[int]error{1: mpierr.New(mpierr.Arg, "mine"),
			3: mpierr.New(mpierr.NoMem, "worst")}[me]
		_, err := o.agree(status)
		want := "checkpoint: rank 3 could not do its part; it has the reason"
		if me == 3 {
			want = "worst"
		}
		if mpierr.ClassOf(err) != mpierr.NoMem || err.Error() != want {
			return fmt.Errorf("%v", err)
		}
		return nil
	})
}

// A process without memory for its part, or for a copy, fails the commit of all; the version before
// stays.
func TestNoMemory(t *testing.T) {
	small := func(rank int) Heap {
		if rank == 2 {
			return heap{most: 200}
		}
		return heap{}
	}
	all(t, 4, Settings{Copies: 1, Versions: 2}, small, func(o *Object, me int) error {
		mem := []byte{byte(me)}
		for version := 1; version <= 2; version++ {
			if err := o.Register(0, int64(len(mem)), 1, mem); err != nil {
				return err
			}
			if err := o.Save(version); err != nil {
				return err
			}
			err := o.Commit()
			if class := mpierr.ClassOf(err); version == 1 && err != nil || version == 2 &&
				class != mpierr.NoMem {
				return fmt.Errorf("version %d: %v", version, err)
			}
			mem = make([]byte, 1000)
		}
		if v := o.Versions(); len(v) != 1 || v[0].Version != 1 {
			return fmt.Errorf("%v", v)
		}
		if err := o.Register(0, 1, 1, mem[:1]); err != nil {
			return err
		}
		if _, err := o.Restore(Newest, func(b Buffer) Buffer { return b }); err != nil {
			return err
		}
		if int(mem[0]) != me {
			return fmt.Errorf("%d is restored", mem[0])
		}
		return nil
	})
}

// The same version saved again is another attempt, also if the first was committed and deleted, or
// was not committed.
func TestAttempts(t *testing.T) {
	all(t, 3, Settings{Versions: 2}, enough, func(o *Object, _ int) error {
		seen := map[int64]bool{}
		for k := range 6 {
			if err := o.Save(7); err != nil {
				return err
			}
			if seen[o.generation] {
				return fmt.Errorf("attempt %d has the generation of an earlier one", k)
			}
			seen[o.generation] = true
			if k%2 == 1 {
				continue
			}
			if err := o.Commit(); err != nil {
				return err
			}
			if err := o.Delete(7); err != nil {
				return err
			}
		}
		return nil
	})
}

// What is written as a part is read as one.
func TestLayout(t *testing.T) {
	regions := []Region{{ID: 0, Bytes: 3}, {ID: 5, Bytes: 0}, {ID: 9, Bytes: 17}}
	part := slices.Repeat([]byte{0xff}, int(Layout(regions)))
	is := Item{Generation: 2, Version: 9, Rank: 1, Ranks: 4, Kind: File}
	Begin(part, is, regions)
	Seal(part)
	got, there, err := Parse(part)
	if err != nil || got != is || !slices.Equal(there, regions) {
		t.Fatal(got, there, err)
	}
	for _, r := range regions {
		for k := r.At + r.Bytes; k < r.At+rounded(r.Bytes); k++ {
			if part[k] != 0 {
				t.Fatalf("byte %d is not 0", k)
			}
		}
	}
}
