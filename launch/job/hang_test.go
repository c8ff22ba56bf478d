package job

import (
	"strings"
	"testing"
	"time"
)

// What is done about a rank that hangs, by the word of the file: nothing, or it is ended, and then
// what that word means for one that has died.
func TestRankHangs(t *testing.T) {
	for name, c := range map[string]struct {
		part  Part
		ended bool
		then  string // text printed at its death
	}{
		"report": {Part{Hang: LeaveBe}, false, ""},
		"stop": {Part{Hang: Stop, Process: Degrade}, true,
			"cluster a is ended and with it the system; exit status 137."},
		"degrade": {Part{Hang: Degrade, Process: Stop}, true,
			"1 others of cluster a are told and go on."},
		"replace": {Part{Hang: Replace, Process: Stop, Ranks: 1}, true,
			"a standby takes its place."},
		"restart": {Part{Hang: Replace, Process: Stop, Ranks: 2, Cold: 1}, true,
			"a process is started that takes its place (1 of at most 1)."},
	} {
		m := system(c.part)
		hung := Hung{Proc: 0, Pid: 100, Why: "is stopped", For: 31 * time.Second}
		out := m.Step(hung, time.Minute)
		begins := "rank 0 of cluster a (pid 100 on h) hangs: it is stopped, for 31s; "
		killed := false
		for _, a := range out {
			s, is := a.(SendTo)
			killed = killed || is && s.Signal == SIGKILL && len(s.Procs) == 1 && s.Procs[0] == 0
		}
		if want := begins + map[bool]string{true: "it is ended.\n",
			false: "it is left alone (hang = \"report\").\n"}[c.ended]; said(out) != want ||
			killed != c.ended {
			t.Errorf("%s: killed: %v, %q", name, killed, said(out))
		}
		if out = m.Step(hung, time.Minute); len(out) > 0 { // known already
			t.Errorf("%s: %v", name, out)
		}
		if !c.ended {
			if out = m.Step(WentOn{0, 100, 35 * time.Second}, time.Minute); said(
				out) != "rank 0 of cluster a (pid 100 on h) goes on again; it had hung for 35s.\n" {
				t.Errorf("%s: %q", name, said(out))
			}
			if out = m.Step(hung, time.Minute); !strings.HasPrefix(said(out), begins) { // once more
				t.Errorf("%s: %q", name, said(out))
			}
			if text := said(m.Step(Ended{Proc: 0, Owner: OwnerFinalized},
				time.Minute)); !strings.HasPrefix(text,
				"rank 0 of cluster a (pid 100 on h) went on again, and has ended.\n") {
				t.Errorf("%s: %q", name, text)
			}
			continue
		}
		if out = m.Step(WentOn{0, 100, 35 * time.Second}, time.Minute); said(out) != "" {
			t.Errorf("%s: of one that is ended: %q", name, said(out))
		}
		if text := said(m.Step(dies(0), time.Minute)); !strings.HasPrefix(text,
			"rank 0 of cluster a (pid 100 on h) was killed by signal 9 (SIGKILL) because it "+
				"hung") || !strings.Contains(text, c.then) {
			t.Errorf("%s: %q", name, text)
		}
	}
	m := system(Part{Hang: Stop})
	// another process, or nothing to be done
	for _, e := range []Event{Hung{Proc: 0, Pid: 99}, Hung{Proc: 7, Pid: 0}, Slowed{0, 100},
		Slowed{-1, 0}, WentOn{Proc: 0, Pid: 100}, WentOn{Proc: 9}} {
		if out := m.Step(e, 0); len(out) > 0 {
			t.Errorf("%+v: %v", e, out)
		}
	}
	m.Step(Signalled{SIGTERM}, 0)
	if out := m.Step(Hung{Proc: 0, Pid: 100}, 0); len(out) > 0 {
		t.Errorf("while the job ends: %v", out)
	}
}

// An I/O process that may hang is not chosen from then on, until it continues; the treatment of a
// long hang is configured separately for it.
func TestIOPHangs(t *testing.T) {
	for name, c := range map[string]struct {
		hang, whole Treatment
		then        string
	}{
		"report": {LeaveBe, Stop,
			"meanwhile those of its link are chosen that run (iop_hang = \"report\")."},
		"restart": {Restart, Stop, "io is started again (1 of at most 1 times)."},
		"degrade": {Degrade, Stop, "io is gone; the others go on."},
		"stop":    {Stop, Restart, "io is ended and with it the system; exit status 137."},
	} {
		m := New(Config{Host: "h", Procs: 2, Masters: true,
			Parts: []Part{{Name: "cluster a"}, {Name: "io", Serves: true, Hang: c.hang,
				Whole: c.whole, Restarts: 1}}})
		m.Step(Started{Proc: 0, Pid: 100, Part: 1}, 0)
		m.Step(Started{Proc: 1, Pid: 101, Part: 2}, 0)
		m.Step(AllStarted{}, 0)
		if out := m.Step(Slowed{1, 101}, 0); len(out) != 1 || out[0] != (Shun{1, true}) {
			t.Errorf("%s: %v", name, out)
		}
		if out := m.Step(WentOn{1, 101, time.Second}, 0); len(out) != 1 ||
			out[0] != (Shun{1, false}) {
			t.Errorf("%s: %v", name, out)
		}
		out := m.Step(Hung{1, 101, "is stopped", time.Minute}, 0)
		if len(out) == 0 || out[0] != (Shun{1, true}) {
			t.Errorf("%s: %v", name, out)
		}
		if c.hang != LeaveBe {
			out = m.Step(dies(1), 0)
		}
		if n := len(out); n > 0 && out[n-1] == (RestartPart{Part: 2, Last: true}) {
			out = append(out, m.Step(Placed{Part: 2}, 0)...)
		}
		if !strings.Contains(said(out), c.then) {
			t.Errorf("%s: %q", name, said(out))
		}
	}
}
