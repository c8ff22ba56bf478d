package job

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// A cluster of two ranks with two standbys: each death is made good while two processes are left,
// standbys that have ranks are called by these, an abort is never made good, and standbys are ended
// when no rank is left that they could take.
func TestStandbys(t *testing.T) {
	begin := func() *Machine {
		m := New(Config{Host: "h", Procs: 4,
			Parts: []Part{{Name: "cluster a", Ranks: 2, Process: Replace}}})
		for i := range 4 {
			m.Step(Started{Proc: i, Pid: 100 + i, Part: 1, Rank: i}, 0)
		}
		m.Step(AllStarted{}, 0)
		return m
	}
	m := begin()
	if p := m.Parts()[0]; p.Standbys != 2 || p.Alive != 4 || p.State != "running" {
		t.Errorf("%+v", p)
	}
	if out := m.Step(dies(1), 0); said(
		out) != "rank 1 of cluster a (pid 101 on h) was killed by signal 9 (SIGKILL); a standby "+
		"takes its place.\n" {
		t.Errorf("%q", said(out))
	}
	m.Step(TookOver{Part: 1, Procs: []int{0, 2}}, 0)
	if p := m.Parts()[0]; p.Standbys != 1 || p.Replaced != 1 || p.State != "running" {
		t.Errorf("%+v", p)
	}
	if out := m.Step(dies(3), 0); said(
		out) != "standby 1 of cluster a (pid 103 on h) was killed by signal 9 (SIGKILL); "+
		"cluster a has 0 standbys left.\n" {
		t.Errorf("%q", said(out))
	}
	if out := m.Step(dies(2), 0); !strings.Contains(said(out),
		"rank 1 of cluster a (pid 102 on h) was killed") ||
		!strings.Contains(said(out), "cluster a is ended and with it the system") {
		t.Errorf("%q", said(out))
	}

	m = begin()
	if out := m.Step(Ended{Proc: 0, Owner: OwnerAborted, Code: 3}, 0); !strings.Contains(said(out),
		"is ended and with it the system; exit status 3") {
		t.Errorf("an abort: %q", said(out))
	}

	m = begin()
	m.Step(ends(1), 0)
	out := m.Step(ends(0), 0)
	asked := false
	for _, a := range out {
		if s, is := a.(SendTo); is {
			asked = s.Signal == SIGTERM && len(s.Procs) == 2
		}
	}
	if !asked {
		t.Errorf("the standbys are not ended: %v", out)
	}
	m.Step(Ended{Proc: 2, Owner: OwnerInit, Wait: Wait{Signal: SIGTERM}}, 0)
	if status, ok := finished(m.Step(Ended{Proc: 3, Owner: OwnerInit, Wait: Wait{Signal: SIGTERM}},
		0)); !ok || status != 0 {
		t.Errorf("status %d, %v", status, ok)
	}
}

// Both ranks of a cluster die, and standbys take them. One of these has done all before it is heard
// that they have: the other one goes on, and only who is left without a rank is ended then.
func TestEndsBeforeItsTakeover(t *testing.T) {
	m := New(Config{Host: "h", Procs: 6,
		Parts: []Part{{Name: "cluster a", Ranks: 2, Process: Replace}}})
	for i := range 6 {
		m.Step(Started{Proc: i, Pid: 100 + i, Part: 1, Rank: i}, 0)
	}
	m.Step(AllStarted{}, 0)
	told := func(e Event) (procs []int) {
		for _, a := range m.Step(e, 0) {
			if s, is := a.(SendTo); is {
				procs = append(procs, s.Procs...)
			}
		}
		return procs
	}
	for _, e := range []Event{dies(0), dies(1), ends(3), TookOver{1, []int{2, 3}}} {
		if procs := told(e); procs != nil {
			t.Errorf("%#v: %v are told to end", e, procs)
		}
	}
	if procs := told(ends(2)); !slices.Equal(procs, []int{4, 5}) {
		t.Errorf("at the end %v are told to end", procs)
	}
	m.Step(ends(4), 0)
	if status, ok := finished(m.Step(Ended{Proc: 5, Owner: OwnerInit, Wait: Wait{Signal: SIGTERM}},
		0)); !ok || status != 0 {
		t.Errorf("status %d, %v", status, ok)
	}
}

// Deaths with a host, or behind a broken network, have treatments of their own.
func TestFaults(t *testing.T) {
	for fault, want := range map[Fault]string{
		FaultProcess: "cluster a is ended and with it the system",
		FaultHost:    "2 others of cluster a are told and go on",
		FaultNetwork: "a standby takes its place",
	} {
		m := New(Config{Host: "h", Procs: 3,
			Parts: []Part{{Name: "cluster a", Ranks: 2, Process: Stop, Host: Degrade,
				Network: Replace}}})
		for i := range 3 {
			m.Step(Started{Proc: i, Pid: 100 + i, Part: 1, Rank: i}, 0)
		}
		m.Step(AllStarted{}, 0)
		e := dies(1)
		e.Fault = fault
		if out := said(m.Step(e, 0)); !strings.Contains(out, want) {
			t.Errorf("fault %d: %q, not %q", fault, out, want)
		}
	}
}

// asked is the part about which the system's master is asked; 0: it is not.
func asked(out []Action) int {
	for _, a := range out {
		if ask, is := a.(Ask); is {
			return ask.Part
		}
	}
	return 0
}

// What is done about a cluster that stops the system's master says; the job waits for that. Without
// an answer it does what the file says, which is the same.
func TestMasterIsAsked(t *testing.T) {
	for _, c := range []struct {
		whole Treatment
		says  string
	}{{Stop, "cluster a is ended and with it the system; exit status 137"},
		{Degrade, "cluster a is gone; the others go on"},
		{Restart, "cluster a is started again (1 of at most 1 times)"}} {
		for _, answers := range []bool{true, false} {
			m := New(Config{Host: "h", Procs: 3, Masters: true,
				Parts: []Part{{Name: "cluster a", Whole: c.whole, Restarts: 1},
					{Name: "cluster b"}}})
			for i, part := range []int{1, 1, 2} {
				m.Step(Started{Proc: i, Pid: 100 + i, Part: part, Rank: i % 2}, 0)
			}
			m.Step(AllStarted{}, 0)
			out := m.Step(dies(1), time.Second)
			if asked(out) != 1 || said(out) != "" {
				t.Fatalf("%v", out)
			}
			m.Step(ends(2), time.Second) // all others end meanwhile
			out = m.Step(dies(0), time.Second)
			if _, over := finished(out); over || said(out) != "" ||
				m.Parts()[0].State != "stopping" {
				t.Fatalf("nobody has answered: %v", out)
			}
			if answers {
				out = m.Step(Judged{Part: 1, What: c.whole}, 2*time.Second)
			} else {
				at, ok := m.Deadline()
				for ok && at < time.Second+AskLimit { // that its processes are to be killed
					m.Step(Tick{}, at)
					at, ok = m.Deadline()
				}
				if !ok || at != time.Second+AskLimit {
					t.Fatalf("deadline %v, %v", at, ok)
				}
				out = m.Step(Tick{}, at)
			}
			if c.whole == Restart && len(out) > 0 && out[len(out)-1] == (RestartPart{Part: 1}) {
				out = append(out, m.Step(Placed{Part: 1}, 9*time.Second)...)
			}
			if !strings.Contains(said(out), c.says) ||
				strings.Contains(said(out), "no master of the system") == answers {
				t.Errorf("policy %d, answered: %v: %q", c.whole, answers, said(out))
			}
			if more := m.Step(Judged{Part: 1, What: c.whole}, 9*time.Second); said(more) != "" {
				t.Errorf("it was answered already: %v", more)
			}
		}
	}
}

// A rank of a cluster dies: a process is to be started, before the death is told, and the job goes
// on until it is there; so often as there are places for it.
func TestStartCold(t *testing.T) {
	m := New(Config{Host: "h", Procs: 4,
		Parts: []Part{{Name: "cluster a", Ranks: 1, Waiting: 1, Cold: 2, Process: Replace}}})
	for i := range 2 {
		m.Step(Started{Proc: i, Pid: 10 + i, Part: 1, Rank: i}, 0)
	}
	m.Step(AllStarted{}, 0)
	die := func(proc int) []Action {
		return m.Step(Ended{Proc: proc, Owner: OwnerInit, Wait: Wait{Signal: 9}}, time.Second)
	}
	cold := func(out []Action) (rank int) {
		for i, a := range out {
			if s, is := a.(StartCold); is {
				if p, is := out[i+1].(Publish); !is || !p.Dead {
					t.Errorf("the death is not told behind it: %v", out)
				}
				return s.Rank
			}
		}
		return -1
	}
	if out := die(0); cold(out) != -1 {
		t.Errorf("there is a standby: %v", out)
	}
	m.Step(TookOver{Part: 1, Procs: []int{1}}, time.Second)
	for n, proc := range []int{1, 2} {
		out := die(proc)
		if _, over := finished(out); over || cold(out) != 2+n {
			t.Fatalf("death %d: %v", n+2, out)
		}
		m.Step(Started{Proc: 2 + n, Pid: 12 + n, Part: 1, Rank: 2 + n}, time.Second)
	}
	if p := m.Parts()[0]; p.Cold != 0 || p.Alive != 1 {
		t.Errorf("%+v", p)
	}
	if out := die(3); cold(out) != -1 || m.Status() != 137 {
		t.Errorf("status %d: %v", m.Status(), out)
	}
}

// A rank that dies while others of its cluster are being made, perhaps on other hosts, is replaced
// by those: by standbys that are to come, or by a process that is started, when not even these are
// enough.
func TestDiesWhileOthersAreMade(t *testing.T) {
	for name, c := range map[string]struct {
		part  Part
		there int // processes that were made before; rank 0 dies
		then  []Event
		wants string
	}{
		"standbys are to come": {Part{Ranks: 3, Waiting: 2, Process: Replace}, 2, nil,
			"a standby takes its place"},
		"with the first of them": {Part{Ranks: 3, Waiting: 1, Process: Replace}, 1, nil,
			"a standby takes its place"},
		"one is started": {Part{Ranks: 3, Cold: 1, Process: Replace}, 1, nil,
			"a process is started that takes its place (1 of at most 1)"},
		"one is started before the rest": {Part{Ranks: 3, Cold: 1, Process: Replace}, 2,
			[]Event{Started{Proc: 3, Pid: 13, Part: 1, Rank: 3}, dies(3)},
			"cluster a is ended and with it the system"},
		"all ranks but it are to come": {Part{Ranks: 3, Process: Degrade}, 1, nil,
			"2 others of cluster a are told and go on"},
		"none can take its place": {Part{Ranks: 3, Process: Replace}, 2, nil,
			"cluster a is ended and with it the system"},
		"no more are made": {Part{Ranks: 2, Waiting: 1, Process: Replace}, 2,
			[]Event{AllStarted{}, dies(1)}, "cluster a is ended and with it the system"},
		"two ranks, one standby to come": {Part{Ranks: 2, Waiting: 1, Process: Replace}, 2,
			[]Event{dies(1)}, "cluster a is ended and with it the system"},
		"two ranks, two standbys to come": {Part{Ranks: 2, Waiting: 2, Process: Replace}, 2,
			[]Event{dies(1)},
			"rank 1 of cluster a (pid 11 on h) was killed by signal 9 (SIGKILL); a standby " +
				"takes its place"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, life := range []string{"first", "again", "attached"} {
				part := c.part
				part.Name, part.Away = "cluster a", life == "attached"
				if life == "again" {
					if part.Cold > 0 { // these have been started with the others then
						continue
					}
					part.Whole, part.Restarts = Restart, 1
				}
				m := New(Config{Host: "h", Procs: 9, Parts: []Part{part, {Name: "cluster b"}}})
				m.Step(Started{Proc: 8, Pid: 18, Part: 2}, 0)
				switch life {
				case "again":
					m.Step(Started{Proc: 0, Pid: 9, Part: 1}, 0)
					m.Step(AllStarted{}, 0)
					m.Step(Ended{Proc: 0, Owner: OwnerAborted, Code: 1}, 0)
					m.Step(Placed{Part: 1}, 0)
				case "attached":
					m.Step(AllStarted{}, 0)
					m.Step(Attached{Part: 1}, 0)
				}
				for i := range c.there {
					m.Step(Started{Proc: i, Pid: 10 + i, Part: 1, Rank: i}, 0)
				}
				m = again(t, m)
				text := said(m.Step(dies(0), time.Second))
				for _, e := range c.then {
					if e == (AllStarted{}) && life != "first" {
						e = Manned{Part: 1}
					}
					text += said(m.Step(e, time.Second))
				}
				if !strings.Contains(text, c.wants) {
					t.Errorf("%s: %q", life, text)
				}
			}
		})
	}
}

// A rank that has died stays so while others of its cluster are being made: it is not replaced.
func TestLostStayLost(t *testing.T) {
	m := New(Config{Host: "h", Procs: 3,
		Parts: []Part{{Name: "cluster a", Ranks: 3, Process: Degrade}}})
	m.Step(Started{Proc: 0, Pid: 10, Part: 1}, 0)
	m.Step(dies(0), 0)
	m.Step(Started{Proc: 1, Pid: 11, Part: 1, Rank: 1}, 0)
	m.Step(Started{Proc: 2, Pid: 12, Part: 1, Rank: 2}, 0)
	if p := m.Parts()[0]; !slices.Equal(p.Lost, []int{0}) {
		t.Errorf("%+v", p)
	}
}

// Whether what is for a part waits when a process of it has died: that depends on all that may be
// done about it, also when it is ended because it hangs.
func TestHeals(t *testing.T) {
	for _, p := range []Part{{Whole: Restart}, {Process: Replace}, {Host: Replace},
		{Network: Replace}, {Hang: Replace}, {Whole: Degrade, Hang: Restart, Serves: true}} {
		if !p.Heals() {
			t.Errorf("%+v", p)
		}
	}
	for _, p := range []Part{{}, {Whole: Degrade, Process: Degrade, Host: Degrade, Network: Degrade,
		Hang: Degrade}, {Hang: LeaveBe}} {
		if p.Heals() {
			t.Errorf("%+v heals", p)
		}
	}
}

// The same in a cluster that is attached: its places for processes that are started are known when
// it has been made, whoever has had numbers before. Attached again, it has all of them again.
func TestStartColdAttached(t *testing.T) {
	m := New(Config{Host: "h", Procs: 1, Parts: []Part{{Name: "cluster a"},
		{Name: "cluster b", Ranks: 1, Cold: 2, Restarts: 10, Process: Replace, Whole: Restart,
			Away: true}}})
	m.Step(Started{Proc: 0, Pid: 9, Part: 1}, 0)
	m.Step(AllStarted{}, 0)
	for turn, first := range []int{3, 6} {
		m.Step(Attached{Part: 2}, 0)
		m.Step(Placed{Part: 2, Hosts: []int{1, 1, 1}}, 0)
		m.Step(Spawned{Proc: first, Pid: 10, Part: 2}, 0)
		e := Manned{Part: 2, Crew: Crew{World: 7, Lead: 8, Procs: []int{first},
			Standbys: []int{first + 1, first + 2}, Cold: 2}}
		if !m.Accepts(e) {
			t.Fatal("a cluster of which not all processes have been made cannot be")
		}
		m.Step(e, 0)
		for n := range 2 {
			out := m.Step(dies(first+n), time.Second)
			if i := slices.IndexFunc(out, func(a Action) bool {
				_,
					is := a.(StartCold)
				return is
			}); i < 0 || out[i].(StartCold) != (StartCold{2, 1 + n, n + 1}) {
				t.Fatalf("turn %d, death %d: %v", turn, n, out)
			}
			spawned := Spawned{Proc: first + n + 1, Pid: 11 + n, Part: 2, Rank: 1 + n}
			if !m.Accepts(spawned) {
				t.Fatalf("%+v cannot be", spawned)
			}
			m.Step(spawned, time.Second)
			m.Step(TookOver{Part: 2, Procs: []int{first + n + 1}}, time.Second)
		}
		if p := m.Parts()[1]; p.Cold != 0 || p.Alive != 1 || m.Crew(2).Cold != 2 {
			t.Errorf("turn %d: %+v, %+v", turn, p, m.Crew(2))
		}
		m.Step(dies(first+2), time.Second)
		m.Step(Detached{Part: 2}, time.Second)
	}
}

// The ranks of a cluster that is started again end before its standbys have been made: these are
// dismissed when all is. Ranks that have died are taken over.
func TestStandbysMadeLate(t *testing.T) {
	for _, ended := range []bool{true, false} {
		m := New(Config{Host: "h", Procs: 1, Parts: []Part{{Name: "cluster a"},
			{Name: "cluster b", Ranks: 1, Waiting: 1, Process: Replace, Whole: Restart, Restarts: 3,
				Away: true}}})
		m.Step(Started{Proc: 0, Pid: 9, Part: 1}, 0)
		m.Step(AllStarted{}, 0)
		m.Step(Attached{Part: 2}, 0)
		m.Step(Placed{Part: 2, Hosts: []int{1, 1}}, 0)
		m.Step(Spawned{Proc: 1, Pid: 10, Part: 2}, 0)
		if ended {
			m.Step(Ended{Proc: 1, Owner: OwnerFinalized}, 0)
		}
		if !m.Making(2) {
			t.Error("not all of it has been made")
		}
		m.Step(Spawned{Proc: 2, Pid: 11, Part: 2, Rank: 1}, 0)
		if !ended {
			m.Step(dies(1), 0)
		}
		out := m.Step(Manned{Part: 2, Crew: Crew{World: 7, Lead: 8, Procs: []int{1},
			Standbys: []int{2}}}, 0)
		told := slices.ContainsFunc(out, func(a Action) bool {
			s, is := a.(SendTo)
			return is && s.Signal == SIGTERM && slices.Equal(s.Procs, []int{2})
		})
		if told != ended || m.Making(2) {
			t.Errorf("ended: %v; %v", ended, out)
		}
	}
}

// The last rank of a cluster dies when the others have ended as they should: it is as if it had
// died before they ended, and nothing is started again. When none has ended so, the cluster has
// stopped.
func TestLastOfPartDies(t *testing.T) {
	for _, ended := range []bool{true, false} {
		m := New(Config{Host: "h", Procs: 3,
			Parts: []Part{{Name: "cluster a", Ranks: 2, Process: Degrade, Whole: Restart,
				Restarts: 1}, {Name: "cluster b"}}})
		for i, part := range []int{1, 1, 2} {
			m.Step(Started{Proc: i, Pid: 100 + i, Part: part, Rank: i % 2}, 0)
		}
		m.Step(AllStarted{}, 0)
		first := dies(0)
		if ended {
			first = Ended{Proc: 0, Owner: OwnerFinalized}
		}
		m.Step(first, time.Second)
		out := m.Step(dies(1), 2*time.Second)
		again := slices.ContainsFunc(out, func(a Action) bool {
			_,
				is := a.(RestartPart)
			return is
		})
		if again == ended || m.Parts()[0].Over != ended {
			t.Errorf("ended: %v; started again: %v, %+v", ended, again, m.Parts()[0])
		}
	}
}
