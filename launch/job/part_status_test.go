package job

import (
	"testing"
	"time"
)

// What a cluster has ended with is of processes that have ended by themselves, or by its user: not
// of those that the job has ended, wherever they were then.
func TestStatusOfPart(t *testing.T) {
	term := func(proc int, owner Owner) Ended {
		return Ended{Proc: proc, Owner: owner, Wait: Wait{Signal: SIGTERM}}
	}
	for name, c := range map[string]struct {
		whole       Treatment
		ends        []Event
		exit, death int
	}{
		"standbys are dismissed": {Stop,
			[]Event{ends(0), ends(1), term(2, OwnerFinalized), term(3, OwnerInit)}, 0, 0},
		"a rank ends with a status": {Stop,
			[]Event{Ended{Proc: 0, Owner: OwnerFinalized, Wait: Wait{Code: 3}}, ends(1),
				term(2, OwnerFinalized), term(3, OwnerFinalized)}, 3, 0},
		"a rank is replaced": {Stop, []Event{dies(0), TookOver{1, []int{2, 1}}, ends(1),
			ends(2), term(3, OwnerFinalized)}, 0, 137},
		"the others are ended": {Degrade,
			[]Event{dies(0), dies(2), dies(3), term(1, OwnerFinalized)}, 0, 137},
		"its user ends it": {Degrade, []Event{PartSignalled{1, SIGTERM},
			term(0, OwnerInit), Ended{Proc: 1, Owner: OwnerFinalized, Wait: Wait{Code: 4}},
			term(2, OwnerInit), term(3, OwnerInit)}, 4, 143},
		"it leaves, and is told to end": {Degrade, []Event{Depart{1, time.Second, false}, Tick{},
			term(0, OwnerFinalized), ends(1)}, 143, 0},
	} {
		t.Run(name, func(t *testing.T) {
			m := New(Config{Host: "h", Procs: 5, Leads: true,
				Parts: []Part{{Name: "cluster a", Ranks: 2, Process: Replace, Whole: c.whole},
					{Name: "cluster b"}}})
			for i, part := range []int{1, 1, 1, 1, 2} {
				m.Step(Started{Proc: i, Pid: 100 + i, Part: part, Rank: i % 4}, 0)
			}
			m.Step(AllStarted{}, 0)
			for n, e := range c.ends {
				m.Step(e, time.Duration(n)*time.Second)
			}
			if p := m.Parts()[0]; p.Exit != c.exit || p.Death != c.death || m.Ending() {
				t.Errorf("%+v", p)
			}
			m.Step(Attached{1}, 10*time.Second)
			if p := m.Parts()[0]; p.Exit != 0 || p.Death != 0 {
				t.Errorf("attached again, it has the status of before: %+v", p)
			}
		})
	}
}

// A cluster is about to be attached when all processes have ended: the job waits for it, and so do
// the I/O processes, until it has ended, or does not come.
func TestComing(t *testing.T) {
	begin := func() *Machine {
		m := New(Config{Host: "h", Procs: 2, Leads: true, Parts: []Part{{Name: "cluster a"},
			{Name: "cluster b", Away: true}, {Name: "io0", Serves: true, Whole: Restart}}})
		m.Step(Started{Proc: 0, Pid: 100, Part: 1}, 0)
		m.Step(Started{Proc: 1, Pid: 101, Part: 3}, 0)
		m.Step(AllStarted{}, 0)
		return m
	}
	over := func(m *Machine, e Event, at time.Duration) bool {
		_, ok := finished(m.Step(e, at))
		return ok
	}

	m := begin()
	m.Step(ends(0), 0)
	m.Step(Coming{1}, time.Second)
	m.Step(Tick{}, time.Minute)
	if m.Parts()[2].State != "running" || over(m, ends(1), time.Minute) {
		t.Error("the job has not waited for the cluster that comes")
	}
	m.Step(Attached{2}, time.Minute)
	if over(m, Coming{0}, time.Minute) {
		t.Error("it has ended though a cluster is about to be started")
	}
	m.Step(Spawned{Proc: 2, Pid: 102, Part: 2}, time.Minute)
	if !over(m, ends(2), time.Minute) {
		t.Error("it has not ended with the last cluster")
	}

	m = begin()
	m.Step(Coming{1}, 0)
	m.Step(ends(0), 0)
	if over(m, ends(1), 0) || !over(m, Coming{0}, time.Second) {
		t.Error("it has not ended when nothing came")
	}

	m = begin()
	m.Step(Coming{1}, 0)
	m.Step(ends(0), 0)
	m.Step(Coming{0}, time.Second)
	if at, ok := m.Deadline(); !ok || at != time.Second+serveGrace {
		t.Errorf("I/O processes that serve no cluster are ended at %v, %v", at, ok)
	}

	m = begin()
	m.Step(Coming{1}, 0)
	m.Step(ends(0), 0)
	m.Step(Signalled{SIGINT}, time.Second)
	if !over(m, ends(1), time.Second) {
		t.Error("told to end, it has waited for a cluster")
	}
}
