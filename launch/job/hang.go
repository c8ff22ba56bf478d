package job

import (
	"cmp"
	"fmt"
	"time"
)

// Processes of a system that hang (package watch judges that): their treatment is configured for
// each part, beside that of processes that die.

// Hung: a process does not run, or does not communicate, for longer than its part allows.
type Hung struct {
	Proc, Pid int
	Why       string // the end of "it ..."
	For       time.Duration
}

// Slowed: a process may hang.
type Slowed struct{ Proc, Pid int }

// WentOn: one of these continues. For: how long it did not run.
type WentOn struct {
	Proc, Pid int
	For       time.Duration
}

// Shun has processes that send choose another I/O process than this one while it hangs.
type Shun struct {
	Proc  int
	Hangs bool
}

// watched is the part of a process that is there, and that the job does not end anyway; nil: it is
// another one.
func (m *Machine) watched(proc, pid int) *part {
	if proc < 0 || proc >= len(m.procs) || !m.procs[proc].alive || m.procs[proc].pid != pid ||
		m.ending {
		return nil
	}
	return m.partOf(proc)
}

func (m *Machine) slowed(e Slowed) []Action {
	if p := m.watched(e.Proc, e.Pid); p != nil && p.Serves {
		return []Action{Shun{e.Proc, true}}
	}
	return nil
}

func (m *Machine) hung(e Hung) (out []Action) {
	p := m.watched(e.Proc, e.Pid)
	if p == nil || m.procs[e.Proc].hangs {
		return nil
	}
	x := &m.procs[e.Proc]
	x.hangs = true
	if p.Serves {
		out = append(out, Shun{e.Proc, true})
	}
	text := fmt.Sprintf("%s (pid %d on %s) hangs: it %s, for %v", x.name, x.pid,
		cmp.Or(x.host, m.cfg.Host), e.Why, e.For.Round(time.Millisecond))
	switch {
	case p.Hang == LeaveBe && p.Serves:
		return append(out, Say{text +
			"; meanwhile those of its link are chosen that run (iop_hang = \"report\")."})
	case p.Hang == LeaveBe:
		return append(out, Say{text + "; it is left alone (hang = \"report\")."})
	case p.stopping || x.endedByJob: // it is ended anyway
		return out
	}
	x.ended = true
	return append(out, Say{text + "; it is ended."}, SendTo{[]int{e.Proc}, SIGKILL})
}

func (m *Machine) wentOn(e WentOn) (out []Action) {
	p := m.watched(e.Proc, e.Pid)
	if p == nil {
		return nil
	}
	x := &m.procs[e.Proc]
	if p.Serves {
		out = append(out, Shun{e.Proc, false})
	}
	if x.hangs && !x.ended {
		out = append(out, Say{fmt.Sprintf("%s (pid %d on %s) goes on again; it had hung for %v.",
			x.name, x.pid, cmp.Or(x.host, m.cfg.Host), e.For.Round(time.Millisecond))})
	}
	x.hangs = x.ended
	return out
}

// wentOnAndEnded reports for a process that was reported to hang, and has ended normally before it
// was seen to continue, that it no longer hung.
func (m *Machine) wentOnAndEnded(proc int) []Action {
	x := &m.procs[proc]
	if !x.hangs || x.ended {
		return nil
	}
	return []Action{Say{fmt.Sprintf("%s (pid %d on %s) went on again, and has ended.", x.name,
		x.pid, cmp.Or(x.host, m.cfg.Host))}}
}
