package agent

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"libspx/cluster/layout"
	"libspx/launch/control"
	"libspx/launch/job"
	"libspx/launch/service"
)

// All hosts see which numbers are given before anything is made with them, and what one that
// decides next gives is above all that those that are left have seen. What cannot be is not heeded.
func TestNumbers(t *testing.T) {
	a, _ := twoHosts(t, 1)
	a.serial = 3
	a.newcomers(&control.World{Number: 5, Step: control.Prepare,
		Members: []control.Member{{Proc: 2, Host: 2, Serial: 7, Life: 4},
			{Proc: 1 << 40, Serial: 1, Life: 9}}})
	a.newcomers(&control.World{Number: 4, Step: control.Prepare,
		Members: []control.Member{{Proc: 1, Host: 2, Serial: 6, Life: 2}}})
	a.newcomers(&control.World{Number: ofExternals | 3, Step: control.Prepare,
		Externals: []control.External{{Proc: 0, Serial: 8, Life: 3}}})
	s := a.stand()
	want := &control.Stand{Serial: 9, Worlds: 5, Groups: 3, Lives: map[int]uint32{0: 3, 1: 2, 2: 4}}
	if d := cmp.Diff(want, s); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	b, h := twoHosts(t, 0)
	b.serial, b.worlds = 4, 6
	b.lives[1] = 8
	b.heedNumbers(h, s)
	b.heedNumbers(h, &control.Stand{Serial: math.MaxUint32, Worlds: math.MaxUint32,
		Lives: map[int]uint32{-1: 1, 1 << 40: 1}, Layout: math.MaxUint64, Epoch: math.MaxUint32})
	if d := cmp.Diff(map[int]uint32{0: 3, 1: 8, 2: 4}, b.lives); d != "" || b.serial != 9 ||
		b.worlds != 6 || b.abroad.groups != 3 || b.tree.epoch != 0 {
		t.Errorf("serial %d, world %d, group %d, epoch %d: (-want +got)\n%s", b.serial, b.worlds,
			b.abroad.groups, b.tree.epoch, d)
	}
}

// Until all hosts have reported their state nothing is made and no table is published;
// then what waits is answered.
func TestGathering(t *testing.T) {
	a, h := twoHosts(t, 0)
	if err := a.inbox.open(); err != nil {
		t.Fatal(err)
	}
	a.others[1].gone = true
	h.led, h.made = true, true
	h.box.more.L = &h.box.mu // as if it were sent
	a.succession.inherited, a.succession.gathers = true, true
	for _, act := range []job.Action{job.RestartPart{Part: 1}, job.StartCold{Part: 1},
		job.Ask{Part: 1}, job.Relist{Part: 1}} {
		if !comesAgain(act) {
			t.Errorf("%T is done", act)
		}
	}
	answers := &counts{}
	a.serve(&question{&service.Message{Kind: service.TookOver, Number: 1 << 20, FD: -1}, answers})
	gone := &counts{}
	a.serve(&question{&service.Message{Kind: service.Arrive, FD: -1}, gone})
	a.hungUp(gone)
	if a.goesOn(); !a.succession.gathers || answers.n != 0 {
		t.Error("one host has not said yet how it stands")
	}
	a.heard(h, &control.Message{Stand: &control.Stand{}})
	if list := a.inbox.take(); len(list) != 1 || list[0] != (gathered{}) {
		t.Errorf("%v", list)
	}
	if a.goesOn(); a.succession.gathers || answers.n != 1 || gone.n != 0 {
		t.Errorf("%d and %d answers", answers.n, gone.n)
	}
}

// counts counts answers.
type counts struct{ n int }

func (a *counts) Send(*service.Message) error { a.n++; return nil }
func (a *counts) Gone() bool                  { return false }
func (a *counts) Close()                      {}

// What the table of a system becomes when a part has another crew; what follows from it twice is
// the same.
func TestEnter(t *testing.T) {
	fresh := func() *layout.Layout {
		return &layout.Layout{Clusters: []layout.Cluster{{World: 1, Procs: []int{0, 1},
			Standbys: []int{2, 3}, Cold: 1}, {World: 2, Procs: []int{4}, Heals: true}},
			IOPs: []layout.IOP{{Proc: 5, World: 3, Heals: true}}}
	}
	a := newAgent(&control.Job{Parts: make([]job.Part, 3)}, nil)
	for what, c := range map[string]struct {
		part int
		crew job.Crew
		want func(*layout.Layout)
	}{
		"as it was": {1, job.Crew{}, func(*layout.Layout) {}},
		"a standby": {1, job.Crew{Procs: []int{0, 3}}, func(l *layout.Layout) {
			l.Clusters[0].Procs,
				l.Clusters[0].Standbys = []int{0, 3}, []int{2}
		}},
		"again": {1, job.Crew{World: 9, Lead: 8, Procs: []int{6, 7}, Standbys: []int{8}},
			func(l *layout.Layout) {
				l.Clusters[0] = layout.Cluster{World: 9, Lead: 8, Procs: []int{6, 7},
					Standbys: []int{8}}
			}},
		"again, and then": {1, job.Crew{World: 9, Lead: 8, Procs: []int{6, 8}},
			func(l *layout.Layout) {
				l.Clusters[0] = layout.Cluster{World: 9, Lead: 8,
					Procs: []int{6, 8}}
			}},
		"an I/O process": {3, job.Crew{World: 9, Lead: 8, Procs: []int{7}},
			func(l *layout.Layout) { l.IOPs[0] = layout.IOP{Proc: 7, World: 9, Heals: true} }},
		"none of the table": {4, job.Crew{World: 9, Procs: []int{7}}, func(*layout.Layout) {}},
	} {
		got, want := fresh(), fresh()
		c.want(want)
		for range 2 {
			a.enter(got, c.part, c.crew)
			if d := cmp.Diff(want, got, cmp.Comparer(func(x, y layout.Procs) bool {
				return len(x) == len(y) && cmp.Equal([]int(x), []int(y)) || len(x)+len(y) == 0
			})); d != "" {
				t.Errorf("%s: (-want +got)\n%s", what, d)
			}
		}
	}
}

// Where a part runs that is started again follows from where it was placed last, if that can be.
func TestHostsBefore(t *testing.T) {
	a := newAgent(&control.Job{Hosts: []string{"a", "b", "c"}, Where: []int{0, 1},
		Programs: []control.Program{{Procs: 2, Part: 1}}, Parts: make([]job.Part, 1)}, nil)
	m := job.New(job.Config{Procs: 2, Parts: a.spec.Parts})
	a.machine = m
	for _, c := range []struct{ placed, want []int }{{nil, []int{0, 1}}, {[]int{2, 1}, []int{2, 1}},
		{[]int{2, 3}, []int{0, 1}}, {[]int{2}, []int{0, 1}}, {[]int{-1, 1}, []int{0, 1}}} {
		if c.placed != nil {
			m.Step(job.Placed{Part: 1, Hosts: c.placed}, 0)
		}
		if d := cmp.Diff(c.want, a.hostsBefore(1)); d != "" {
			t.Errorf("placed on %v: (-want +got)\n%s", c.placed, d)
		}
	}
}
