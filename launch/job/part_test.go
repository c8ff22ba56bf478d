package job

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// A job of two clusters of two ranks and an I/O process: a is {0,1}, b {2,3}, the I/O process 4.
func system(a Part) *Machine {
	a.Name = "cluster a"
	m := New(Config{Host: "h", Procs: 5, Parts: []Part{a, {Name: "cluster b"},
		{Name: "io", Whole: Degrade, Serves: true}}})
	for i, part := range []int{1, 1, 2, 2, 3} {
		m.Step(Started{Proc: i, Pid: 100 + i, Part: part, Rank: i % 2}, 0)
	}
	m.Step(AllStarted{}, 0)
	return m
}

func dies(proc int) Ended {
	return Ended{Proc: proc, Owner: OwnerInit,
		Wait: Wait{Signal: SIGKILL}}
}
func ends(proc int) Ended { return Ended{Proc: proc, Owner: OwnerFinalized} }

func said(out []Action) (text string) {
	for _, a := range out {
		if s, ok := a.(Say); ok {
			text += s.Text + "\n"
		}
	}
	return text
}

func finished(out []Action) (status int, ok bool) {
	for _, a := range out {
		if f, is := a.(Finish); is {
			return f.Status, true
		}
	}
	return 0, false
}

// Parts that are added come later, and are not awaited; when they have been attached the system is
// not over before they are.
func TestGrown(t *testing.T) {
	m := system(Part{Whole: Degrade})
	e := Grown{Parts: []Part{{Name: "cluster n", Added: 3, Whole: Degrade, Ranks: 1},
		{Name: "more io", Serves: true, Added: 2, With: 4}}}
	if !m.Accepts(e) || New(Config{Procs: 1}).Accepts(e) {
		t.Error("parts are for systems")
	}
	if again, err := DecodeEvent(EncodeEvent(e)); err != nil ||
		!reflect.DeepEqual(again, Event(e)) {
		t.Errorf("%v, %v", again, err)
	}
	m.Step(e, 0)
	if parts := m.Parts(); len(parts) != 5 || parts[3].State != StateAway ||
		parts[4].State != StateAway {
		t.Fatalf("%+v", parts)
	}
	for _, part := range []int{4, 5} {
		m.Step(Attached{Part: part}, 0)
		m.Step(Spawned{Proc: 3 + part, Pid: 200 + part, Name: "rank 0", Part: part}, 0)
	}
	for proc := range 4 {
		if _, over := finished(m.Step(ends(proc), time.Second)); over {
			t.Fatal("it ends, and the cluster that was added runs")
		}
	}
	if at, ok := m.Deadline(); ok {
		t.Errorf("I/O processes are to end at %v, and serve one that runs", at)
	}
	m.Step(ends(7), 2*time.Second)
	if _, ok := m.Deadline(); !ok {
		t.Error("I/O processes are not ended that serve no cluster")
	}
}

// A cluster that does not obey is killed; meanwhile and afterwards the other clusters continue, and
// then the processes that served them are ended.
func TestPartStops(t *testing.T) {
	m := system(Part{Whole: Degrade})
	out := m.Step(dies(1), time.Second)
	if !strings.Contains(said(out), "rank 1 of cluster a (pid 101 on h) was killed") {
		t.Errorf("%v", out)
	}
	at, ok := m.Deadline()
	if !ok || at != time.Second+GraceFailure {
		t.Fatalf("deadline %v, %v", at, ok)
	}
	killed := false
	for _, a := range m.Step(Tick{}, at) {
		if s, is := a.(SendTo); is {
			killed = s.Signal == SIGKILL && len(s.Procs) == 1 && s.Procs[0] == 0
		}
	}
	if !killed {
		t.Error("rank 0, which has not obeyed, is not killed")
	}
	if out = m.Step(dies(0), at); !strings.Contains(said(out),
		"cluster a is gone; the others go on") {
		t.Errorf("%v", out)
	}
	m.Step(ends(2), at)
	m.Step(ends(3), at)
	at, ok = m.Deadline()
	if !ok {
		t.Fatal("an I/O process may go on for ever")
	}
	if out = m.Step(Tick{}, at); len(out) != 1 || out[0].(SendTo).Signal != SIGTERM {
		t.Errorf("%v", out)
	}
	if status, ok := finished(m.Step(Ended{Proc: 4, Wait: Wait{Signal: SIGTERM}}, at)); !ok ||
		status != 0 {
		t.Errorf("status %d, %v", status, ok)
	}
}

// An I/O process dies before any process of a cluster is known to have been started: it is
// restarted for the processes about to be started.
func TestServesWhoIsAboutToBeStarted(t *testing.T) {
	m := New(Config{Host: "h", Procs: 2, Parts: []Part{{Name: "cluster a"},
		{Name: "io", Whole: Restart, Restarts: 1, Serves: true}}})
	m.Step(Started{Proc: 1, Pid: 101, Part: 2}, 0)
	out := m.Step(dies(1), 0)
	if _, over := finished(out); over || len(out) == 0 ||
		out[len(out)-1] != (RestartPart{2, true}) {
		t.Fatalf("%v", out)
	}
}

// What is to be started again keeps the job alive, also when nothing else is left of it.
func TestPartRestarts(t *testing.T) {
	m := system(Part{Whole: Restart, Restarts: 1})
	for _, i := range []int{2, 3, 4} {
		m.Step(ends(i), 0)
	}
	m.Step(dies(0), 0)
	out := m.Step(dies(1), 0)
	if _, over := finished(out); over || len(out) < 2 || out[len(out)-1] != (RestartPart{Part: 1}) {
		t.Fatalf("%v", out)
	}
	if out = m.Step(Placed{Part: 1, Text: " on host x"}, 0); said(
		out) != "cluster a is started again (1 of at most 1 times) on host x.\n" {
		t.Errorf("%q", said(out))
	}
	for rank, proc := range []int{5, 6} {
		m.Step(Spawned{Proc: proc, Pid: 200 + rank, Name: "rank", Part: 1}, 0)
	}
	out = m.Step(Ended{Proc: 5, Owner: OwnerAborted, Aborted: true, Code: 7}, 0)
	if !strings.Contains(said(out), "started again 1 times; exit status 7.") {
		t.Errorf("%v", out)
	}
	if status, ok := finished(m.Step(dies(6), 0)); !ok || status != 7 {
		t.Errorf("status %d, %v", status, ok)
	}
}

// A cluster that cannot be started again is left out when there are other clusters, and its
// processes that were made are ended; the last one takes the system with it.
func TestPartNotRestarted(t *testing.T) {
	for _, others := range []bool{true, false} {
		m := system(Part{Whole: Restart, Restarts: 9})
		if !others {
			m.Step(ends(2), 0)
			m.Step(ends(3), 0)
		}
		m.Step(dies(0), 0)
		m.Step(dies(1), 0)
		m.Step(Spawned{Proc: 5, Pid: 105, Part: 1}, 0)
		out := m.Step(NotRestarted{Part: 1, Text: "no host"}, 0)
		if !others {
			if !strings.Contains(said(out),
				"cluster a cannot be started again: no host; the system is ended with exit "+
					"status 137.") {
				t.Errorf("%v", out)
			}
			continue
		}
		if said(out) != "cluster a cannot be started again: no host.\n" ||
			out[1].(SendTo).Procs[0] != 5 || m.Ending() {
			t.Fatalf("%v", out)
		}
		if out = m.Step(dies(5), 0); said(out) != "cluster a is gone; the others go on.\n" ||
			m.Parts()[0].State != StateGone {
			t.Errorf("%v", out)
		}
		m.Step(ends(4), 0)
		m.Step(ends(2), 0)
		if status, ok := finished(m.Step(ends(3), 0)); !ok || status != 0 {
			t.Errorf("status %d, %v", status, ok)
		}
	}
}

// A host was lost while a part was being started again there: it is tried on another one, so often
// as it may be started again.
func TestPartRestartedElsewhere(t *testing.T) {
	m := system(Part{Whole: Restart, Restarts: 2})
	m.Step(dies(0), 0)
	m.Step(dies(1), 0)
	m.Step(Placed{Part: 1}, 0)
	m.Step(Spawned{Proc: 5, Pid: 105, Part: 1}, 0)
	if out := m.Step(NotRestarted{Part: 1, Text: "host x is lost", Again: true}, 0); m.Ending() ||
		m.Parts()[0].State != "stopping" {
		t.Fatalf("%v", out)
	}
	out := m.Step(dies(5), 0)
	if len(out) == 0 || out[len(out)-1] != (RestartPart{Part: 1}) {
		t.Fatalf("%v", out)
	}
	m.Step(Placed{Part: 1}, 0)
	if out = m.Step(NotRestarted{Part: 1, Text: "host y is lost", Again: true}, 0); said(
		out) != "cluster a cannot be started again: host y is lost.\ncluster a is gone; the "+
		"others go on.\n" {
		t.Errorf("%v", out)
	}
}

// A host is lost before an attached cluster has been made: it is started anew on its other hosts,
// including those where its standbys have all slots, if these are for that. If that is impossible,
// the file's treatment of a stopped cluster applies; a cluster that has been made and cannot be
// restarted is left out, as usual.
func TestPartNotMade(t *testing.T) {
	const lost = "host x is lost, and the other hosts of the cluster have too few free slots"
	for name, c := range map[string]struct {
		part  Part
		made  bool
		first string // text printed
		again bool   // it is tried once more, with or without slots
		then  string // text printed when that is not possible either
		ends  bool
	}{
		"stop": {Part{Whole: Stop}, false, "cluster a cannot be started: " + lost +
			"; the system is ended with exit status 1.\n", false, "", true},
		"degrade": {Part{Whole: Degrade}, false, "cluster a cannot be started: " + lost +
			".\ncluster a is gone; the others go on.\n", false, "", false},
		"restart": {Part{Whole: Restart}, false, "cluster a cannot be started: " + lost +
			".\ncluster a is gone; the others go on.\n", false, "", false},
		"stop, standbys": {Part{Whole: Stop, Host: Replace, Waiting: 1}, false,
			"cluster a cannot be started: " + lost + ".\n", true, "cluster a cannot be started: " +
				lost + "; the system is ended with exit status 1.\n", true},
		"silent, standbys": {Part{Whole: Degrade, Network: Replace, Waiting: 1}, false,
			"cluster a cannot be started: " + lost + ".\n", true, "cluster a cannot be started: " +
				lost + ".\ncluster a is gone; the others go on.\n", false},
		"made before": {Part{Whole: Stop, Host: Replace, Waiting: 1}, true,
			"cluster a cannot be started again: " + lost +
				".\ncluster a is gone; the others go on.\n", false, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			c.part.Name, c.part.Ranks, c.part.Away, c.part.Restarts = "cluster a", 2, true, 3
			m := New(Config{Procs: 3, Masters: true,
				Parts: []Part{c.part, {Name: "cluster b", Ranks: 1}}})
			m.Step(Started{Proc: 2, Pid: 102, Part: 2}, 0)
			m.Step(AllStarted{}, 0)
			m.Step(Attached{Part: 1}, 0)
			if c.made {
				m.Step(Manned{Part: 1}, 0)
			}
			out := m.Step(NotRestarted{Part: 1, Text: lost}, 0)
			if said(out) != c.first || slices.Contains(out,
				Action(RestartPart{Part: 1, Last: true})) != c.again {
				t.Fatalf("%v", out)
			}
			if c.again {
				if out = m.Step(NotRestarted{Part: 1, Text: lost}, 0); said(out) != c.then {
					t.Errorf("%v", out)
				}
			}
			if m.Made(1) != c.made {
				t.Errorf("it has been made: %v", m.Made(1))
			}
			if m.Ending() != c.ends {
				t.Errorf("it ends: %v", m.Ending())
			}
		})
	}
}

// I/O processes whose hosts are lost and that cannot be started again: the other I/O processes of
// the link continue; the last of a link may be placed on any host, and if that is impossible the
// system ends.
func TestIOPNotRestarted(t *testing.T) {
	m := New(Config{Host: "h", Procs: 4, Parts: []Part{{Name: "cluster a"},
		{Name: "io0", Whole: Restart, Restarts: 1, Serves: true, Link: 1},
		{Name: "io1", Whole: Restart, Restarts: 1, Serves: true, Link: 1},
		{Name: "io2", Whole: Restart, Restarts: 1, Serves: true, Link: 2}}})
	for i := range 4 {
		m.Step(Started{Proc: i, Pid: 100 + i, Part: i + 1}, 0)
	}
	m.Step(AllStarted{}, 0)
	lost := func(proc int, want RestartPart) {
		t.Helper()
		e := dies(proc)
		e.Fault = FaultHost
		out := m.Step(e, time.Second)
		if len(out) == 0 || out[len(out)-1] != want {
			t.Fatalf("%v, not %v", out, want)
		}
	}
	lost(1, RestartPart{Part: 2})
	if out := m.Step(NotRestarted{Part: 2, Text: "no room"}, time.Second); said(
		out) != "io0 cannot be started again: no room.\nio0 is gone; the others go on.\n" ||
		m.Ending() || m.Parts()[1].State != StateGone {
		t.Fatalf("%v", out)
	}
	lost(3, RestartPart{Part: 4, Last: true})
	m.Step(Placed{Part: 4}, time.Second)
	m.Step(Spawned{Proc: 4, Pid: 104, Part: 4}, time.Second)
	lost(2, RestartPart{Part: 3, Last: true})
	if out := m.Step(NotRestarted{Part: 3, Text: "no host"}, time.Second); said(
		out) != "io1 cannot be started again: no host; the system is ended with exit status "+
		"137.\n" || !m.Ending() {
		t.Errorf("%v", out)
	}
}

// A cluster of two ranks with two standbys: each death is replaced while two processes are left,
// standbys that have ranks are named by these, an abort is never replaced, and standbys are ended
// when no process is left whose rank they could take.
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

// Both ranks of a cluster die, and standbys take them. One of these finishes before the takeover is
// reported: the other one continues, and only a process left without a rank is ended then.
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

// A cluster started by another spxrun, and the I/O process that comes with it: awaited, started,
// away when its host is lost, and started again.
func TestPartAttached(t *testing.T) {
	states := func(m *Machine, want ...string) {
		t.Helper()
		for i, p := range m.Parts() {
			if p.State != want[i] {
				t.Errorf("%s is %s, not %s", p.Name, p.State, want[i])
			}
		}
	}
	for _, policy := range []Treatment{Restart, Degrade} {
		m := New(Config{Host: "h", Procs: 3, Parts: []Part{{Name: "cluster a"},
			{Name: "cluster b", Whole: policy, Restarts: 1, Away: true},
			{Name: "io", Whole: Restart, Restarts: 1, Serves: true, Away: true, With: 2}}})
		m.Step(Started{Proc: 0, Pid: 100, Part: 1}, 0)
		m.Step(AllStarted{}, 0)
		states(m, "running", StateAway, StateAway)
		attach := func(first int) {
			m.Step(Attached{Part: 2}, 0)
			m.Step(Attached{Part: 3}, 0)
			states(m, "running", "restarting", "restarting")
			m.Step(Spawned{Proc: first, Pid: 101, Part: 2}, 0)
			m.Step(Spawned{Proc: first + 1, Pid: 102, Part: 3}, 0)
			states(m, "running", "running", "running")
		}
		attach(1)
		again := 0
		// both with their host: the shell finds that it cannot start them again
		for _, proc := range []int{1, 2} {
			for _, act := range m.Step(dies(proc), time.Second) {
				if r, is := act.(RestartPart); is {
					again++
					m.Step(Detached{Part: r.Part}, time.Second)
				}
			}
		}
		if policy == Restart {
			states(m, "running", StateAway, StateAway)
		} else {
			states(m, "running", StateGone, StateGone)
		}
		if n := m.Over(); n != map[Treatment]int{Restart: 0, Degrade: 2}[policy] {
			t.Errorf("%d parts are over", n)
		}
		if want := map[Treatment]int{Restart: 2, Degrade: 1}[policy]; again != want {
			t.Errorf("%d parts were to be started again, not %d", again, want)
		}
		attach(3)
		m.Step(PartSignalled{Part: 2, Signal: SIGINT}, 2*time.Second)
		states(m, "running", "stopping", "running")
		if out := said(m.Step(dies(3), 3*time.Second)); !strings.Contains(out,
			"cluster b is gone; the others go on.") {
			t.Errorf("who was told to end is started again: %s", out)
		}
		m.Step(ends(4), 3*time.Second)
		if _, over := finished(m.Step(ends(0), 4*time.Second)); !over {
			t.Error("the system has not ended")
		}
	}
}

// An indispensable cluster ends the system when its spxrun is signalled to end.
func TestPartSignalled(t *testing.T) {
	m := system(Part{Whole: Stop})
	out := m.Step(PartSignalled{Part: 1, Signal: SIGTERM}, time.Second)
	if !strings.Contains(said(out),
		"cluster a is ended by its spxrun, and with it the system; exit status 143.") ||
		!m.Ending() {
		t.Errorf("%v", out)
	}
}

// asked is the part for which a decision of the system's master is requested; 0: none.
func asked(out []Action) int {
	for _, a := range out {
		if ask, is := a.(Ask); is {
			return ask.Part
		}
	}
	return 0
}

// The system's master decides about a stopped cluster; the job waits for that. Without an answer it
// follows the file, with the same result.
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
			m.Step(ends(2), time.Second) // all other processes end meanwhile
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

// A rank of a cluster dies: a process is started, before the death is published, and the job
// continues until it has arrived; as often as there are places for it.
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

// A rank that dies while other processes of its cluster are being made, perhaps on other hosts, is
// replaced by these: by standbys that are to come, or by a process that is started, when not even
// these are enough.
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
					if part.Cold > 0 { // these have been started with the rest then
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

// A dead rank stays dead while other processes of its cluster are being made: it is not replaced.
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
// it has been made, independent of earlier users of the numbers. Attached again, it has all of them
// again.
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

// The last rank of a cluster dies when the others have ended normally: this is handled as if it had
// died before they ended, and nothing is restarted. If none has ended normally, the cluster has
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

// A rank has died, and the others continue: it is not replaced. When the cluster has ended no part
// of it is restarted, though it would have been, had it stopped.
func TestPartOver(t *testing.T) {
	// clusters may have been started by other spxruns, and attached again
	for _, leads := range []bool{false, true} {
		m := New(Config{Host: "h", Procs: 3, Leads: leads,
			Parts: []Part{{Name: "cluster a", Process: Degrade, Whole: Restart, Restarts: 1},
				{Name: "cluster b"}}})
		for proc, part := range []int{1, 1, 2} {
			m.Step(Started{Proc: proc, Pid: 100 + proc, Part: part}, 0)
		}
		m.Step(AllStarted{}, 0)
		m.Step(dies(0), time.Second)
		if parts := m.Parts(); m.Over() != 1 || parts[0].Over ||
			!slices.Equal(parts[0].Lost, []int{0}) {
			t.Errorf("%+v", parts)
		}
		m.Step(ends(1), 2*time.Second)
		if parts := m.Parts(); m.Over() != 2 || !parts[0].Over || parts[1].Over {
			t.Errorf("%+v", parts)
		}
	}
}
