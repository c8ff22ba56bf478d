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

// A cluster that does not obey is killed; meanwhile and afterwards the others go on, and then what
// served them is ended.
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

// An I/O process dies before any process of a cluster is known to have been started: it is started
// again for those that are about to be.
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

// A cluster that cannot be started again is left out when there are others, and its processes that
// were made are ended; the last one takes the system with it.
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

// A host is lost before a cluster has been made that was attached: it is begun anew on its other
// hosts, also on those where its standbys have all slots, where these are for that. When it cannot
// be, what the file says about a cluster that stops is done; a cluster that has been made and
// cannot be started again is left out, as ever.
func TestPartNotMade(t *testing.T) {
	const lost = "host x is lost, and the other hosts of the cluster have too few free slots"
	for name, c := range map[string]struct {
		part  Part
		made  bool
		first string // what is said
		again bool   // it is tried once more, with or without slots
		then  string // what is said when that is not possible, too
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

// I/O processes whose hosts are lost and that cannot be started again: the others of the link go
// on; the last of a link may go anywhere, and when that cannot be the system ends.
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

// A cluster that another spxrun starts, and the I/O process that comes with it: awaited, started,
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

// A cluster without which the system cannot be ends it, when its spxrun is told to end.
func TestPartSignalled(t *testing.T) {
	m := system(Part{Whole: Stop})
	out := m.Step(PartSignalled{Part: 1, Signal: SIGTERM}, time.Second)
	if !strings.Contains(said(out),
		"cluster a is ended by its spxrun, and with it the system; exit status 143.") ||
		!m.Ending() {
		t.Errorf("%v", out)
	}
}

// A rank has died, and the others go on: it is not replaced. When the cluster has ended nothing of
// it comes again, though it would have been started again, had it stopped.
func TestPartOver(t *testing.T) {
	// clusters may have been started by others, and attached again
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
