package start

import (
	"slices"
	"testing"
)

const second = int64(1e9)

// system: cluster a waits for b, b for none, an I/O process for both. a has the processes 0 and
// 1, b 2 to 5, the I/O process is 6.
func system() *Machine {
	return New([]Member{
		{Name: "cluster a", Procs: 2, Awaits: []int{0, 1}, Limit: 5 * second},
		{Name: "cluster b", Procs: 4, Awaits: []int{1}, Limit: 2 * second},
		{Name: "I/O process ab.iop0", Procs: 1, Awaits: []int{0, 1}, Limit: 5 * second},
	})
}

func procs(list []Answer) (out []int) {
	for _, a := range list {
		if a.Missing == "" {
			out = append(out, a.Proc)
		}
	}
	slices.Sort(out)
	return out
}

// A cluster that is added while the system runs waits for the clusters that it names, which have
// arrived; it is not awaited.
func TestAdded(t *testing.T) {
	m := system()
	for proc, in := range []int{0, 0, 1, 1, 1, 1, 2} {
		m.Arrived(in, map[bool]int{true: proc, false: proc - 2}[in == 0], proc, 0)
	}
	m.Add([]Member{{Name: "cluster n", Procs: 2, Awaits: []int{1, 4}, Limit: second},
		{Name: "I/O process an.iop0", Procs: 1, Awaits: []int{0, 3}, Limit: second}})
	if got := m.Arrived(3, 0, 10, 0); got != nil {
		t.Errorf("rank 0 of n goes on alone: %v", got)
	}
	if got := m.Tick(second); len(got) != 1 ||
		got[0].Missing != "rank 1 of cluster n, all of I/O process an.iop0" {
		t.Errorf("%v", got)
	}
	m.Arrived(3, 0, 10, second)
	m.Arrived(4, 0, 12, second)
	if got := procs(m.Arrived(3, 1, 11, second)); !slices.Equal(got, []int{10, 11, 12}) {
		t.Errorf("%v go on", got)
	}
}

func TestWhoIsComplete(t *testing.T) {
	m := system()
	for _, step := range []struct {
		in, rank, proc int
		want           []int
	}{{0, 0, 0, nil}, {2, 0, 6, nil}, {1, 1, 3, nil}, {1, 0, 2, nil}, {0, 1, 1, nil},
		{1, 3, 5, nil}, {1, 2, 4, []int{0, 1, 2, 3, 4, 5, 6}}} {
		if got := procs(m.Arrived(step.in, step.rank, step.proc, 0)); !slices.Equal(got,
			step.want) {
			t.Fatalf("process %d: %v go on, should be %v", step.proc, got, step.want)
		}
	}
	if _, ok := m.Deadline(); ok {
		t.Error("nobody waits, and there is a deadline")
	}
	if got := procs(m.Arrived(0, 0, 7, second)); !slices.Equal(got, []int{7}) {
		t.Errorf("who comes later waits: %v", got)
	}
}

func TestWhoIsMissing(t *testing.T) {
	m := system()
	m.Arrived(0, 1, 1, second)
	m.Arrived(1, 1, 3, 2*second)
	at, ok := m.Deadline()
	if !ok || at != 4*second {
		t.Fatalf("deadline %v, %v", at, ok)
	}
	if got := m.Tick(at - 1); got != nil {
		t.Errorf("too early: %v", got)
	}
	if got := m.Tick(at); len(got) != 1 || got[0].Proc != 3 ||
		got[0].Missing != "ranks 0,2-3 of cluster b" {
		t.Errorf("%+v", got)
	}
	if got := m.Tick(6 * second); len(got) != 1 || got[0].Proc != 1 ||
		got[0].Missing != "rank 0 of cluster a, ranks 0,2-3 of cluster b" {
		t.Errorf("%+v", got)
	}
	if got := m.Arrived(2, 0, 6, 10*second); got != nil {
		t.Errorf("%+v", got)
	}
	if got := m.Tick(15 * second); len(got) != 1 ||
		got[0].Missing != "rank 0 of cluster a, ranks 0,2-3 of cluster b" {
		t.Errorf("%+v", got)
	}
}

// A process that ends without MPI counts as arrived, one that dies does not; a cluster that is
// started again is to be complete again, one that is gone is not waited for.
func TestEnds(t *testing.T) {
	m := system()
	m.Arrived(0, 0, 0, 0)
	m.Arrived(0, 1, 1, 0)
	for i := range 3 {
		m.Ended(1, i, 2+i, false, 0)
	}
	if got := m.Ended(1, 3, 5, true, 0); got != nil {
		t.Errorf("rank 3 has died: %v", got)
	}
	m.Again(1)
	if got := m.Ended(1, 3, 9, false, 0); got != nil {
		t.Errorf("three of the new ones are missing: %v", got)
	}
	if got := procs(m.Gone(1, 0)); !slices.Equal(got, []int{0, 1}) {
		t.Errorf("cluster b is gone: %v go on", got)
	}
	m = system()
	m.Arrived(1, 0, 2, 0)
	m.Ended(1, 0, 2, true, 0)
	if _, ok := m.Deadline(); ok {
		t.Error("a process that has died waits")
	}
}

// A rank that is taken over is not waited for, and counts once with its successor.
func TestHeals(t *testing.T) {
	m := New([]Member{{Name: "a", Procs: 3, Limit: second, Heals: true}})
	m.Arrived(0, 1, 1, 0)
	m.Ended(0, 1, 1, true, 0)
	if got := m.Arrived(0, 1, 3, 0); got != nil {
		t.Errorf("two ranks are missing: %v", got)
	}
	if got := m.Arrived(0, 2, 2, 0); got != nil {
		t.Errorf("rank 0 is missing: %v", got)
	}
	if got := procs(m.Ended(0, 0, 0, true, 0)); !slices.Equal(got, []int{2, 3}) {
		t.Errorf("rank 0 will be taken over: %v go on", got)
	}
	// Once the other ranks have continued, a process that takes a rank over does not wait, though a
	// cluster that it waits for begins again.
	m = New([]Member{{Name: "a", Procs: 1, Awaits: []int{1}, Limit: second},
		{Name: "b", Procs: 1, Limit: second}})
	m.Arrived(0, 0, 0, 0)
	if got := procs(m.Arrived(1, 0, 1, 0)); len(got) != 2 {
		t.Errorf("all are there: %v go on", got)
	}
	m.Again(1)
	m.Ended(0, 0, 0, true, 0)
	if got := procs(m.Arrived(0, 0, 2, 0)); !slices.Equal(got, []int{2}) {
		t.Errorf("another process has rank 0 of a: %v go on", got)
	}
	if got := m.Arrived(1, 0, 3, 0); len(got) != 1 || got[0].Proc != 3 {
		t.Errorf("b has begun again: %v", got)
	}
}

// Another machine continues in the middle of a start: a process that continued before shows that
// its member was complete, and those for which it waits. Processes that still wait repeat their
// request.
func TestPassed(t *testing.T) {
	m := system()
	m.Passed(1, 2, 4, second)
	if got := m.Passed(9, 0, 1, second); got != nil {
		t.Errorf("of no member: %v", got)
	}
	if got := procs(m.Arrived(1, 0, 2, second)); !slices.Equal(got, []int{2}) {
		t.Errorf("who comes later waits: %v", got)
	}
	if got := m.Arrived(0, 0, 0, second); got != nil {
		t.Errorf("a is not complete: %v", got)
	}
	if got := procs(m.Arrived(0, 1, 1, second)); !slices.Equal(got, []int{0, 1}) {
		t.Errorf("a is complete, as is b: %v", got)
	}
	m = system()
	m.Arrived(2, 0, 6, second)
	if got := procs(m.Passed(0, 1, 1, second)); !slices.Equal(got, []int{6}) {
		t.Errorf("a has gone on, so a and b were complete: %v", got)
	}
}
