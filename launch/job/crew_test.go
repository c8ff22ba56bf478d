package job

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// restoring is a system whose cluster a is being started again: {0,1} have died.
func restoring(t *testing.T) *Machine {
	t.Helper()
	m := system(Part{Whole: Restart, Restarts: 2, Ranks: 2})
	m.Step(dies(0), time.Second)
	m.Step(dies(1), time.Second)
	return m
}

// again is a machine that goes on where this one is, as another host's does.
func again(t *testing.T, m *Machine) *Machine {
	t.Helper()
	n, err := Resume(m.cfg, m.Save())
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// At each moment of a restart the next deciding agent has the actions to be repeated, and none of
// them counts twice.
func TestOpenRestart(t *testing.T) {
	m := restoring(t)
	placed := Placed{Part: 1, Hosts: []int{2, 1}}
	for _, what := range []string{"stopped", "placed"} {
		if d := cmp.Diff([]Action{RestartPart{Part: 1}}, again(t, m).Open()); d != "" {
			t.Errorf("%s: (-want +got)\n%s", what, d)
		}
		if d := cmp.Diff([]int{1}, m.Restarting(true)); d != "" || m.Restarting(false) != nil {
			t.Errorf("%s: %v, %v", what, m.Restarting(true), m.Restarting(false))
		}
		m.Step(placed, 2*time.Second)
		m = again(t, m)
	}
	if m.Parts()[0].Restarts != 1 {
		t.Errorf("what was placed again counts %d times", m.Parts()[0].Restarts)
	}
	m.Step(Spawned{Proc: 5, Pid: 200, Name: "rank 0", Part: 1}, 3*time.Second)
	if m = again(t, m); m.Open() != nil || m.Restarting(true) != nil ||
		!cmp.Equal(m.Restarting(false), []int{1}) {
		t.Errorf("one of two has been made: %v, %v", m.Open(), m.Restarting(false))
	}
	m.Step(Spawned{Proc: 6, Pid: 201, Name: "rank 1", Part: 1, Rank: 1}, 3*time.Second)
	crew := Crew{World: 9, Lead: 12, Procs: []int{5, 6}}
	if out := m.Step(Manned{1, crew}, 3*time.Second); !cmp.Equal(out, []Action{Relist{1}}) ||
		!Weighty(out) {
		t.Errorf("%v", out)
	}
	if m = again(t, m); m.Open() != nil || m.Restarting(false) != nil ||
		!cmp.Equal(m.Crew(1), crew) || !cmp.Equal(m.Hosts(1), placed.Hosts) || m.Hosts(2) != nil {
		t.Errorf("all have been made: %v, %v, crew %+v on %v", m.Open(), m.Restarting(false),
			m.Crew(1), m.Hosts(1))
	}
}

// So is the first start of a part that was attached: one that is not complete is repeated, counts
// as none, and is known to be complete when it is.
func TestFirstStartIsRepeated(t *testing.T) {
	begin := func() *Machine {
		m := New(Config{Host: "h", Procs: 5,
			Parts: []Part{{Name: "cluster a", Whole: Restart, Restarts: 1},
				{Name: "cluster b", Ranks: 2, Whole: Restart, Restarts: 1, Away: true}}})
		m.Step(Started{Proc: 0, Pid: 100, Part: 1}, 0)
		m.Step(AllStarted{}, 0)
		m.Step(Attached{Part: 2}, time.Second)
		m.Step(Spawned{Proc: 5, Pid: 200, Name: "rank 0", Part: 2}, time.Second)
		return again(t, m)
	}
	m := begin()
	if m.Open() != nil || !cmp.Equal(m.Restarting(false), []int{2}) {
		t.Errorf("one of two has been made: %v, %v", m.Open(), m.Restarting(false))
	}
	m.Step(Inherited{}, 2*time.Second)
	m.Step(NotRestarted{2, "host x is lost", true}, 2*time.Second)
	out := m.Step(dies(5), 2*time.Second)
	if n := len(out); n == 0 || !cmp.Equal(out[n-1], Action(RestartPart{Part: 2})) {
		t.Errorf("it is not started again: %v", out)
	}
	m.Step(Placed{Part: 2, Hosts: []int{1, 1}}, 2*time.Second)
	if s := m.Parts()[1]; s.Restarts != 0 || s.State == StateGone {
		t.Errorf("%+v", s)
	}
	m = begin()
	m.Step(Spawned{Proc: 6, Pid: 201, Name: "rank 1", Part: 2, Rank: 1}, time.Second)
	m.Step(Manned{2, Crew{World: 9, Lead: 12, Procs: []int{5, 6}}}, time.Second)
	if m = again(t, m); m.Open() != nil || m.Restarting(false) != nil {
		t.Errorf("all have been made: %v, %v", m.Open(), m.Restarting(false))
	}
}

// A start that is under way when the deciding agent is lost is repeated, and counts once, at any
// stage, and whichever of its processes die with that host; likewise if the next deciding agent is
// lost, too. Later deaths belong to the next start.
func TestStartCountsOnce(t *testing.T) {
	lost := func(proc int) Ended {
		e := dies(proc)
		e.Fault = FaultHost
		return e
	}
	spawned := func(proc, rank int) Spawned {
		return Spawned{Proc: proc, Pid: 200 + proc, Name: "rank", Part: 1, Rank: rank}
	}
	for name, events := range map[string][]Event{
		"placed": {Inherited{}},
		"one is there": {spawned(5, 0), Inherited{},
			NotRestarted{1, "host x is lost", true}, dies(5)},
		"it has died meanwhile": {spawned(5, 0), spawned(6, 1), Inherited{}, dies(5),
			dies(6)},
		"it is lost with that host": {spawned(5, 0), spawned(6, 1), Inherited{}, lost(6),
			dies(5)},
		"and so is the next one": {spawned(5, 0), Inherited{},
			NotRestarted{1, "host x is lost", true}, dies(5), Placed{Part: 1}, spawned(6, 0),
			Inherited{}, NotRestarted{1, "host y is lost", true}, dies(6)},
		"lost before it was repeated": {spawned(5, 0), Inherited{},
			NotRestarted{1, "host x is lost", true}, Inherited{}, dies(5)},
	} {
		m := system(Part{Whole: Restart, Restarts: 1, Ranks: 2})
		m.Step(dies(0), time.Second)
		m.Step(dies(1), time.Second)
		m.Step(Placed{Part: 1}, time.Second)
		for _, e := range events {
			if !m.Accepts(e) {
				t.Fatalf("%s: %+v cannot be", name, e)
			}
			m.Step(e, 2*time.Second)
			m = again(t, m)
		}
		if d := cmp.Diff([]Action{RestartPart{Part: 1}}, m.Open()); d != "" || m.Ending() {
			t.Errorf("%s: it is not started again (-want +got)\n%s", name, d)
			continue
		}
		if text := said(m.Step(Placed{Part: 1},
			3*time.Second)); text != "cluster a is started again (1 of at most 1 times).\n" ||
			m.Parts()[0].Restarts != 1 {
			t.Errorf("%s: %s, %+v", name, text, m.Parts()[0])
		}
		m.Step(spawned(7, 0), 3*time.Second)
		m.Step(spawned(8, 1), 3*time.Second)
		m.Step(Manned{1, Crew{World: 9, Procs: []int{7, 8}}}, 3*time.Second)
		if out := m.Step(dies(7), 4*time.Second); !m.Ending() {
			t.Errorf("%s: it may be started again once more: %v", name, out)
		}
	}
	m := system(Part{Whole: Restart, Restarts: 1, Ranks: 2})
	// it has died before, by itself
	for _, e := range []Event{dies(0), dies(1), Placed{Part: 1}, spawned(5, 0), dies(5),
		Inherited{}} {
		m.Step(e, time.Second)
	}
	if !m.Ending() {
		t.Error("it may be started again once more")
	}
}

// A world that is complete when its part has stopped again is none that is missing: what counts is
// the one that comes.
func TestMannedLate(t *testing.T) {
	m := restoring(t)
	m.Step(Placed{Part: 1}, time.Second)
	m.Step(Spawned{Proc: 5, Pid: 200, Name: "rank 0", Part: 1}, time.Second)
	m.Step(dies(5), time.Second)
	m.Step(Placed{Part: 1}, time.Second)
	m.Step(Manned{1, Crew{World: 9, Procs: []int{5}}}, time.Second)
	m.Step(Spawned{Proc: 6, Pid: 201, Name: "rank 0", Part: 1}, time.Second)
	if !cmp.Equal(m.Restarting(false), []int{1}) {
		t.Error("the part is taken to be complete")
	}
	m.Step(Manned{1, Crew{World: 10, Procs: []int{6}}}, time.Second)
	if m.Restarting(false) != nil || m.Crew(1).World != 10 {
		t.Errorf("%v, %+v", m.Restarting(false), m.Crew(1))
	}
	if m.Parts()[0].Restarts != 2 {
		t.Errorf("started again %d times", m.Parts()[0].Restarts)
	}
}

// Requests to the system's master are repeated, orders to end are repeated, and processes that were
// to be started in the place of ranks are started; not when the system ends.
func TestOpenRest(t *testing.T) {
	m := New(Config{Host: "h", Procs: 6, Masters: true, Parts: []Part{
		{Name: "cluster a", Ranks: 2, Cold: 2, Process: Replace, Whole: Degrade, Restarts: 4},
		{Name: "cluster b", Whole: Restart, Restarts: 1},
	}})
	for i, part := range []int{1, 1, 0, 0, 2, 2} {
		if part > 0 {
			m.Step(Started{Proc: i, Pid: 100 + i, Part: part, Rank: i % 4}, 0)
		}
	}
	m.Step(AllStarted{}, 0)
	m.Step(dies(1), time.Second)
	if d := cmp.Diff([]Action{StartCold{1, 2, 1}}, again(t, m).Open()); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	m.Step(Started{Proc: 2, Pid: 102, Part: 1, Rank: 2}, time.Second)
	m.Step(TookOver{1, []int{0, 2}}, time.Second)
	m.Step(dies(5), time.Second)
	m = again(t, m)
	if d := cmp.Diff([]Action{Ask{2}, SendTo{[]int{4}, SIGTERM}}, m.Open()); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	if m.Asks(1) || !m.Asks(2) {
		t.Error("the master is to be asked about cluster b alone")
	}
	if d := cmp.Diff(Crew{Procs: []int{0, 2}}, m.Crew(1)); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	m.Step(Judged{2, Stop}, time.Second)
	if m.Open() != nil {
		t.Errorf("%v", m.Open())
	}
}

// The report of an end names the places on present hosts: places are used in that order, each once,
// and actions not performed yet are repeated with the same places.
func TestPlacesOnHosts(t *testing.T) {
	m := New(Config{Host: "h", Procs: 6, Parts: []Part{{Name: "cluster a", Ranks: 2, Cold: 4,
		Process: Replace, Host: Replace, Whole: Stop}}})
	for i := range 2 {
		m.Step(Started{Proc: i, Pid: 100 + i, Part: 1, Rank: i}, 0)
	}
	m.Step(AllStarted{}, 0)
	end := func(proc, place int) []Action {
		e := dies(proc)
		e.Fault, e.Place = FaultHost, place
		return m.Step(e, time.Second)
	}
	starts := func(out []Action, want ...Action) {
		t.Helper()
		var got []Action
		for _, a := range out {
			if s, ok := a.(StartCold); ok {
				got = append(got, s)
			}
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("(-want +got)\n%s", d)
		}
	}
	starts(end(1, 4), StartCold{1, 5, 1})
	m.Step(Started{Proc: 5, Pid: 105, Part: 1, Rank: 5}, time.Second)
	m.Step(TookOver{1, []int{0, 5}}, time.Second)
	starts(end(5, 2), StartCold{1, 3, 2})
	m = again(t, m)
	if d := cmp.Diff([]int{0, 2}, m.Unused(1)); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	starts(m.Open(), StartCold{1, 5, 1}, StartCold{1, 3, 2})
	m.Step(Started{Proc: 3, Pid: 103, Part: 1, Rank: 3}, time.Second)
	m.Step(TookOver{1, []int{0, 3}}, time.Second)
	starts(end(3, -1)) // no host is left that has one
	if !m.Ending() {
		t.Error("the system has to end: no process can be started, and the cluster cannot go on")
	}
}
