package win

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"libspx/core/mpierr"
)

func TestCheck(t *testing.T) {
	good := Args{Flavor: FromUser, Base: 4096, Size: 8, Unit: 1}
	with := func(f func(*Args)) Args { a := good; f(&a); return a }
	for _, c := range []struct {
		name       string
		a          Args
		inter, far bool
		class      mpierr.Class
	}{
		{name: "good", a: good, far: true},
		{name: "intercommunicator", a: good, inter: true, class: mpierr.Comm},
		{name: "shared over hosts", a: with(func(a *Args) { a.Flavor = Shared }), far: true,
			class: mpierr.RMAShared},
		{name: "negative", a: with(func(a *Args) { a.Size = -1 }), class: mpierr.Size},
		{name: "too much to allocate",
			a: with(func(a *Args) { a.Flavor, a.Size = Allocated, Most+1 }), class: mpierr.NoMem},
		{name: "as much of the program's", a: with(func(a *Args) { a.Size = Most + 1 })},
		{name: "unit", a: with(func(a *Args) { a.Unit = 0 }), class: mpierr.Disp},
		{name: "NULL", a: with(func(a *Args) { a.Base = 0 }), class: mpierr.Base},
		{name: "MPI_IN_PLACE", a: with(func(a *Args) { a.Base = 1 }), class: mpierr.Base},
		{name: "NULL without bytes", a: with(func(a *Args) { a.Base, a.Size = 0, 0 })},
	} {
		if got := mpierr.ClassOf(c.a.Check(c.inter, c.far)); got != c.class {
			t.Errorf("%s: class %d, want %d", c.name, got, c.class)
		}
	}
}

func TestLayOut(t *testing.T) {
	all := func(int) bool { return true }
	parts := []share{{size: 10}, {size: 0}, {size: 5000}, {size: 1}}
	for _, c := range []struct {
		name   string
		flavor Flavor
		apart  bool
		near   func(int) bool
		at     []uint64
		end    uint64
	}{
		{"the program's", FromUser, false, all, []uint64{0, 0, 0, 0}, 4096},
		{"each on pages of its own", Allocated, false, all, []uint64{4096, 8192, 8192, 16384},
			20480},
		{"without gaps", Shared, false, all, []uint64{4096, 4106, 4106, 9106}, 9107},
		{"one asks for gaps", Shared, true, all, []uint64{4096, 8192, 8192, 16384}, 20480},
		{"two elsewhere", Allocated, false, func(i int) bool { return i%2 == 1 },
			[]uint64{4096, 4096, 4096, 4096}, 8192},
	} {
		mine := slices.Clone(parts)
		if c.apart {
			mine[3].flags = flagApart
		}
		at, end := layOut(c.flavor, 4096, mine, c.near)
		if !slices.Equal(at, c.at) || end != c.end {
			t.Errorf("%s: %v, %d; want %v, %d", c.name, at, end, c.at, c.end)
		}
	}
}

func TestAttach(t *testing.T) {
	have := []Segment{{4096, 100}, {8192, 0}}
	for _, c := range []struct {
		base  uint64
		size  int64
		class mpierr.Class
	}{
		{4196, 10, 0}, {4000, 96, 0}, {4195, 1, mpierr.RMAAttach}, {4000, 97, mpierr.RMAAttach},
		{8192, 10, 0},
		{5000, -1, mpierr.Size}, {0, 1, mpierr.Base}, {1, 1, mpierr.Base}, {0, 0, 0},
	} {
		if got := mpierr.ClassOf(Attach(have, c.base, c.size)); got != c.class {
			t.Errorf("%d bytes at %d: class %d, want %d", c.size, c.base, got, c.class)
		}
	}
	if i, err := Detach(have, 8192); i != 1 || err != nil {
		t.Error(i, err)
	}
	if _, err := Detach(have, 4097); mpierr.ClassOf(err) != mpierr.Base {
		t.Error(err)
	}
}

// office is where the processes of a test meet.
type office struct {
	mu     sync.Mutex
	n      int
	come   int
	words  []uint64
	full   chan struct{}
	rounds int
}

func (o *office) gather(rank int, mine, all []uint64) {
	o.mu.Lock()
	if o.come == 0 {
		o.words, o.full = make([]uint64, o.n*len(mine)), make(chan struct{})
	}
	copy(o.words[rank*len(mine):], mine)
	words, full := o.words, o.full
	if o.come++; o.come == o.n {
		o.come = 0
		o.rounds++
		close(full)
	}
	o.mu.Unlock()
	<-full
	copy(all, words)
}

// process is one with all that Create wants. Processes of one host have the same rank / perHost.
type process struct {
	*office
	rank, perHost int

	poor, noContext, blind, noMap bool
	spare                         Chunk
	errno                         Errno
	serve                         mpierr.Class

	context  uint64
	took     []Chunk
	returned []Chunk
	mapped   Chunk
	filled   *Window
	dropped  bool
	how      End
}

func (p *process) Rank() int                       { return p.rank }
func (p *process) Size() int                       { return p.n }
func (p *process) Gather(mine, all []uint64) error { p.gather(p.rank, mine, all); return nil }
func (p *process) Near(rank int) bool              { return rank/p.perHost == p.rank/p.perHost }
func (p *process) Reads(int) bool                  { return !p.blind }
func (p *process) Prepare() bool                   { return !p.poor }
func (p *process) Name(context uint64)             { p.context = context }
func (p *process) Spare() Chunk                    { return p.spare }
func (p *process) Return(chunk Chunk)              { p.returned = append(p.returned, chunk) }
func (p *process) Serve() mpierr.Class             { return p.serve }
func (p *process) Fill(w *Window)                  { p.filled = w }
func (p *process) Drop(_ *Window, how End)         { p.dropped, p.how = true, how }

func (p *process) Context() uint64 {
	if p.noContext {
		return 0
	}
	return 800
}

func (p *process) Reason(errno Errno) string { return fmt.Sprint("errno ", int(errno)) }

func (p *process) Control(boxed bool) uint64 {
	if boxed {
		return 8192
	}
	return 4096
}

func (p *process) Take(bytes uint64) (Chunk, Errno) {
	if p.errno != 0 {
		return Chunk{}, p.errno
	}
	p.took = append(p.took, Chunk{1<<20 + uint64(p.rank), bytes})
	return p.took[len(p.took)-1], 0
}

func (p *process) Map(w *Window) bool {
	p.mapped = w.Chunk
	return !p.noMap
}

// create has n processes, perHost on a host, make a window.
func create(n, perHost int, a Args, change func(*process)) (procs []*process, wins []*Window,
	errs []error) {
	o := &office{n: n}
	wins, errs = make([]*Window, n), make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		p := &process{office: o, rank: i, perHost: perHost}
		change(p)
		procs = append(procs, p)
		all.Go(func() { wins[i], errs[i] = Create(a, p, p) })
	}
	all.Wait()
	return procs, wins, errs
}

func TestCreate(t *testing.T) {
	a := Args{Flavor: Allocated, Size: 100, Unit: 4}
	procs, wins, errs := create(5, 3, a, func(*process) {})
	for i, w := range wins {
		if errs[i] != nil {
			t.Fatal(errs[i])
		}
		leader := i / 3 * 3
		if w.Leader != leader || !w.Elsewhere || w.AM || w.Boxed || procs[i].context != 800 ||
			procs[i].dropped || procs[i].mapped != procs[leader].took[0] {
			t.Errorf("rank %d: %+v, %+v", i, w, procs[i])
		}
		for k, target := range w.Targets {
			want := Target{Size: 100, Unit: 4, Far: k/3 != i/3, Here: k/3 == i/3, At: target.At}
			if target != want || target.Here && target.At != 4096+uint64(k%3)*4096 {
				t.Errorf("rank %d of %d: %+v, want %+v", k, i, target, want)
			}
		}
	}
	if n := procs[0].rounds; n != 4 {
		t.Errorf("%d rounds, want 4", n)
	}
}

func TestMail(t *testing.T) {
	for _, c := range []struct {
		n         int
		blind     bool
		flavor    Flavor
		am, boxed bool
		rounds    int
	}{
		{1, true, FromUser, false, false, 3},
		{2, false, FromUser, false, true, 3},
		{2, true, Dynamic, true, true, 3},
		{2, true, Shared, false, false, 3},
		{BoxesMost + 1, false, FromUser, false, false, 4},
		{BoxesMost + 1, true, FromUser, true, true, 4},
	} {
		t.Run(fmt.Sprintf("%d,%v,%d", c.n, c.blind, c.flavor), func(t *testing.T) {
			procs, wins, errs := create(c.n, c.n,
				Args{Flavor: c.flavor, Base: 4096, Size: 8, Unit: 1},
				func(p *process) { p.blind = c.blind && p.rank == c.n-1 })
			for i, w := range wins {
				if errs[i] != nil {
					t.Fatal(errs[i])
				}
				if w.AM != c.am || w.Boxed != c.boxed {
					t.Errorf("rank %d: mail %v, boxes %v", i, w.AM, w.Boxed)
				}
			}
			if procs[0].rounds != c.rounds {
				t.Errorf("%d rounds, want %d", procs[0].rounds, c.rounds)
			}
		})
	}
}

func TestSpare(t *testing.T) {
	for _, c := range []struct {
		bytes uint64
		used  bool
	}{{1 << 16, true}, {4096, false}} {
		spare := Chunk{77 << 12, c.bytes}
		procs, wins, errs := create(3, 3, Args{Flavor: Shared, Size: 1000, Unit: 1},
			func(p *process) { p.spare = spare })
		if errs[2] != nil || (wins[2].Chunk == spare) != c.used ||
			(len(procs[0].returned) == 0) != c.used || len(procs[1].returned) > 0 {
			t.Errorf("%d bytes at hand: %v, %+v, given back %v", c.bytes, errs[2], wins[2],
				procs[0].returned)
		}
	}
}

// Whatever fails at one process fails at all, in the same way, and is undone by each.
func TestCreateFails(t *testing.T) {
	for _, c := range []struct {
		name    string
		perHost int
		change  func(*process)
		class   mpierr.Class
		text    string
	}{
		{"poor", 4, func(p *process) { p.poor = p.rank == 2 }, mpierr.NoMem,
			"no memory for a window"},
		{"no context", 4, func(p *process) { p.noContext = true }, mpierr.NoMem,
			"no memory for a window"},
		{"no plot", 4, func(p *process) { p.errno = 28 }, mpierr.NoMem,
			"no memory for the 20480 bytes of the window: errno 28"},
		{"no plot at the second host", 2, func(p *process) {
			if p.rank == 2 {
				p.errno = outOfMemory
			}
		}, mpierr.NoMem, "no memory for the 12288 bytes of the window: errno 12"},
		{"no addresses", 4, func(p *process) { p.noMap = p.rank == 3 }, mpierr.NoMem,
			"no memory for the 20480 bytes of the window: errno 12"},
		{"does not serve", 2, func(p *process) {
			if p.rank == 1 {
				p.serve = mpierr.NoMem
			}
		}, mpierr.NoMem, "no memory for a window"},
	} {
		t.Run(c.name, func(t *testing.T) {
			procs, _, errs := create(4, c.perHost, Args{Flavor: Allocated, Size: 10, Unit: 1},
				c.change)
			for i, err := range errs {
				if mpierr.ClassOf(err) != c.class || err.Error() != c.text {
					t.Errorf("rank %d: %v", i, err)
				}
				if p := procs[i]; !p.dropped || p.how != Failed {
					t.Errorf("rank %d: %+v", i, p)
				}
			}
		})
	}
}

// broken is a process whose wait is left in round at, or fails there.
type broken struct {
	*process
	at    int
	left  bool
	calls int
}

func (b *broken) Gather(mine, all []uint64) error {
	b.gather(b.rank, mine, all)
	switch b.calls++; {
	case b.calls-1 != b.at:
		return nil
	case b.left:
		panic("left")
	}
	return mpierr.New(mpierr.ProcFailed, "a process has failed")
}

func TestLeft(t *testing.T) {
	for at := range 3 {
		p := &process{office: &office{n: 1}, perHost: 1, spare: Chunk{4096, 1 << 20}}
		func() {
			defer func() { recover() }() //nolint:errcheck // it is this test's
			_, err := Create(Args{Flavor: Allocated, Unit: 1},
				&broken{process: p, at: at, left: true}, p)
			t.Error("goes on", err)
		}()
		// before the last round no other process can use the memory
		if !p.dropped || (p.how == Left) != (at == 2) || (p.how == Lost) != (at < 2) ||
			(len(p.returned) > 0) != (at < 2) {
			t.Errorf("left in round %d: %+v", at, p)
		}
	}
}

// A process that sees a failure goes through all rounds, and those that have not seen it then fail
// as well, unless it comes in the last round.
func TestFailureInARound(t *testing.T) {
	for at := range 3 {
		o := &office{n: 3}
		var all sync.WaitGroup
		procs, errs := make([]*process, 3), make([]error, 3)
		for i := range 3 {
			p := &process{office: o, rank: i, perHost: 3, spare: Chunk{4096, 4096}}
			procs[i] = p
			var peers Peers = p
			if i == 1 {
				peers = &broken{process: p, at: at}
			}
			all.Go(func() {
				_, errs[i] = Create(Args{Flavor: Allocated, Unit: 1, Size: 5000}, peers,
					p)
			})
		}
		all.Wait()
		if o.rounds != 3 {
			t.Errorf("failure in round %d: %d rounds", at, o.rounds)
		}
		for i, p := range procs {
			lost := i == 1 || at < 2
			if lost != (mpierr.ClassOf(errs[i]) == mpierr.ProcFailed) || lost != p.dropped ||
				lost && p.how != Lost {
				t.Errorf("failure in round %d: rank %d: %v, %+v", at, i, errs[i], p)
			}
		}
		if len(procs[0].returned) != 1 {
			t.Errorf("failure in round %d: given back %v", at, procs[0].returned)
		}
	}
}
