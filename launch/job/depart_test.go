package job

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// departing is a system of two clusters of two ranks, a {0,1} and b {2,3}, with an I/O process for
// b, which is 4, that is started with it.
func departing() *Machine {
	m := New(Config{Host: "h", Procs: 5, Parts: []Part{{Name: "cluster a"}, {Name: "cluster b"},
		{Name: "io", Whole: Restart, Restarts: 3, Serves: true, With: 2}}})
	for i, part := range []int{1, 1, 2, 2, 3} {
		m.Step(Started{Proc: i, Pid: 100 + i, Part: part, Rank: i % 2}, 0)
	}
	m.Step(AllStarted{}, 0)
	return m
}

func has[T any](out []Action) (found []T) {
	for _, a := range out {
		if x, is := a.(T); is {
			found = append(found, x)
		}
	}
	return found
}

func states(m *Machine) (out []string) {
	for _, p := range m.Parts() {
		out = append(out, p.State)
	}
	return out
}

// A cluster leaves by itself: its I/O process, then its ranks. It is awaited then, and can be
// attached again.
func TestDeparts(t *testing.T) {
	m := departing()
	out := m.Step(Depart{2, 10 * time.Second, false}, time.Second)
	if l := has[Leaves](out); len(l) != 1 || l[0].Part != 2 || len(has[SendTo](out)) > 0 ||
		!slices.Equal(states(m), []string{"running", "leaving", "leaving"}) {
		t.Fatalf("%v, %v", out, states(m))
	}
	if at, ok := m.Deadline(); !ok || at != 11*time.Second {
		t.Errorf("deadline %v, %v", at, ok)
	}
	if why := m.MayDepart(2, false); why != "cluster b leaves already" ||
		m.Step(Depart{2, time.Second, false}, time.Second) != nil {
		t.Error(why)
	}
	if p := has[Publish](m.Step(ends(4), 2*time.Second)); len(p) != 1 || !p[0].Dead {
		t.Errorf("its I/O process is to count as dead, for messages that it has not taken: %v", p)
	}
	if p := has[Publish](m.Step(ends(2), 3*time.Second)); len(p) != 1 || p[0].Dead {
		t.Errorf("a rank that has ended well counts as such: %v", p)
	}
	out = m.Step(ends(3), 3*time.Second)
	if !strings.Contains(said(out), "cluster b has left the system; it may be attached again") ||
		!slices.Equal(states(m), []string{"running", "awaited", "awaited"}) {
		t.Errorf("%v, %v", out, states(m))
	}
	if at, ok := m.Deadline(); ok {
		t.Errorf("deadline %v", at)
	}
	m.Step(Attached{Part: 2}, 4*time.Second)
	m.Step(Attached{Part: 3}, 4*time.Second)
	for i, part := range []int{2, 2, 3} {
		m.Step(Spawned{Proc: 5 + i, Pid: 300 + i, Name: "rank", Part: part, Rank: i % 2},
			5*time.Second)
	}
	if !slices.Equal(states(m), []string{"running", "running", "running"}) {
		t.Errorf("%v", states(m))
	}
	if out := m.Step(dies(7), 6*time.Second); len(has[RestartPart](out)) != 1 {
		t.Errorf("an I/O process that dies is started again, as before: %v", out)
	}
}

// Ranks that do not end in time are ordered to, and killed; an I/O process that does not end, after
// them. The exit status of a leaving process is no failure of the system.
func TestDepartsInTime(t *testing.T) {
	m := departing()
	m.Step(Depart{2, time.Second, false}, 0)
	out := m.Step(Tick{}, time.Second)
	if s := has[SendTo](out); len(s) != 1 || s[0].Signal != SIGTERM ||
		!slices.Equal(s[0].Procs, []int{2, 3}) ||
		!strings.Contains(said(out), "cluster b has not ended by itself") {
		t.Fatalf("%v", out)
	}
	if s := has[SendTo](m.Step(Tick{}, time.Second+GraceSignal)); len(s) != 1 ||
		s[0].Signal != SIGKILL {
		t.Errorf("%v", s)
	}
	m.Step(dies(2), 5*time.Second)
	if out := m.Step(dies(3), 5*time.Second); len(has[RestartPart](out)) > 0 ||
		len(has[Send](out)) > 0 {
		t.Fatalf("%v", out)
	}
	at, ok := m.Deadline()
	if s := has[SendTo](m.Step(Tick{}, at)); !ok || len(s) != 1 ||
		!slices.Equal(s[0].Procs, []int{4}) {
		t.Fatalf("%v, %v, %v", at, ok, s)
	}
	if out := m.Step(dies(4), at); !strings.Contains(said(out), "has left") ||
		len(has[RestartPart](out)) > 0 {
		t.Errorf("%v", out)
	}
	m.Step(ends(0), at)
	if status, over := finished(m.Step(ends(1), at)); !over || status != 0 {
		t.Errorf("status %d, over: %v", status, over)
	}
}

// One that dies on its way takes the rest of its cluster along, and no other one; its user may lose
// patience.
func TestDepartsAndDies(t *testing.T) {
	m := departing()
	m.Step(Depart{2, time.Minute, false}, 0)
	out := m.Step(dies(2), time.Second)
	if s := has[SendTo](out); len(s) != 1 || !slices.Equal(s[0].Procs, []int{3}) || m.Ending() {
		t.Errorf("%v", out)
	}
	m = departing()
	m.Step(Depart{2, time.Minute, false}, 0)
	if s := has[SendTo](m.Step(PartSignalled{Part: 2, Signal: SIGINT}, time.Second)); len(s) != 1 ||
		s[0].Signal != SIGTERM || m.Ending() {
		t.Errorf("%v", s)
	}
	for part, want := range map[int]string{1: "", 3: "is no cluster; it leaves with"} {
		if why := m.MayDepart(part, false); why != "" && want == "" ||
			!strings.Contains(why, want) {
			t.Errorf("part %d: %q", part, why)
		}
	}
}

// One that is not to be awaited is gone when it has left; so is one that has left before.
func TestDepartsForGood(t *testing.T) {
	for _, later := range []bool{false, true} {
		m := departing()
		m.Step(Depart{2, time.Minute, !later}, 0)
		var out []Action
		for _, proc := range []int{4, 2, 3} {
			out = m.Step(ends(proc), time.Second)
		}
		if later {
			out = m.Step(Depart{2, 0, true}, 2*time.Second)
		}
		if !strings.Contains(said(out), "is not awaited") ||
			!slices.Equal(states(m), []string{"running", "gone", "gone"}) || m.Over() != 2 {
			t.Errorf("%v, %v", out, states(m))
		}
		if why := m.MayDepart(2, true); why != "cluster b is gone" {
			t.Error(why)
		}
		m.Step(Attached{Part: 2}, 3*time.Second)
		if s := states(m)[1]; s != "restarting" {
			t.Errorf("it comes again, and is %s", s)
		}
	}
}
