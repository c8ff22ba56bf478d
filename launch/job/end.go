package job

import (
	"cmp"
	"fmt"
	"strings"
	"time"
)

// ended decides what the end of a process means.
func (m *Machine) ended(e Ended, now time.Duration) []Action {
	m.procs[e.Proc].alive = false
	m.alive--
	if p := m.partOf(e.Proc); p != nil && !m.ending && !e.Spawning {
		return m.endedInPart(p, e, now)
	}
	if m.ending {
		if e.Aborted && m.status == 0 {
			m.fail(abortStatus(e.Code))
		}
		return nil
	}
	switch {
	case e.Spawning, m.procs[e.Proc].endedByJob:
		return []Action{Publish{Proc: e.Proc, Dead: e.Spawning, Wait: e.Wait}}
	case e.Aborted && e.Connected != nil:
		return append([]Action{Publish{Proc: e.Proc, Dead: true, Wait: e.Wait}},
			m.abort(e.Connected, abortStatus(e.Code), now, "")...)
	case e.Aborted:
		m.fail(abortStatus(e.Code))
		return m.end(now, SIGTERM, m.cfg.Grace)
	case e.Owner == OwnerInit, e.Owner == OwnerAborted, e.Owner == OwnerNone && e.OtherMPI:
		out := m.died(e, now)
		if len(e.Others) > 0 && !m.ending {
			out = append(out, SendTo{e.Others, SIGKILL})
		}
		return out
	}
	return m.exited(e)
}

// abort ends the processes connected with one that has called MPI_Abort: the job, or a part
// of it.
func (m *Machine) abort(connected []int, status int, now time.Duration, who string) []Action {
	var out, say []Action
	if who != "" {
		say = []Action{Say{who +
			", with which processes of this job are connected, has called MPI_Abort"}}
	}
	if m.ending {
		return nil
	}
	m.fail(status)
	if len(connected) >= m.alive {
		return m.end(now, SIGTERM, m.cfg.Grace, say...)
	}
	for _, p := range connected {
		m.procs[p].endedByJob = true
	}
	if len(connected) > 0 {
		out = append(say, SendTo{connected, SIGKILL})
	}
	return out
}

// abortStatus is the exit status for a code given to MPI_Abort: never 0.
func abortStatus(code int) int {
	if code&255 == 0 {
		return StatusFailed
	}
	return code & 255
}

// died: other processes may depend on the process.
func (m *Machine) died(e Ended, now time.Duration) []Action {
	status := e.Wait.Status()
	if status == 0 {
		status = StatusFailed
	}
	tell := m.cfg.OnDeath == Continue || m.cfg.OnDeath == Auto && e.Returns
	if !tell {
		m.fail(status)
		text := fmt.Sprintf("%s%s; the job is ended with exit status %d.", m.describe(e),
			m.others(e.Also), status)
		if m.alive > 0 && m.cfg.OnDeath == Auto && e.Owner != OwnerAborted {
			text += " (To let the others go on: an error handler that returns, or --with-ft.)"
		}
		return m.end(now, SIGTERM, m.cfg.Grace, Say{text})
	}
	// MPI_Abort on a communicator of some: never forgiven
	if e.Owner == OwnerAborted || m.cfg.CountDeaths {
		m.fail(status)
	}
	if m.death == 0 {
		m.death = status
	}
	text := m.describe(e)
	switch {
	case m.alive == 1:
		text += "; the other one is told and goes on."
	case m.alive > 1:
		text += fmt.Sprintf("; the other %d are told and go on.", m.alive)
	}
	return []Action{Publish{Proc: e.Proc, Dead: true, Wait: e.Wait}, Say{text}}
}

// exited: no process depends on the process.
func (m *Machine) exited(e Ended) []Action {
	status := e.Wait.Status()
	out := []Action{Publish{Proc: e.Proc, Dead: e.Owner == OwnerNone && m.cfg.OnDeath == Continue,
		Wait: e.Wait}}
	if status == 0 {
		m.succeeded = true
	} else if m.status == 0 {
		out = append(out, Say{fmt.Sprintf("%s; exit status %d.", m.describe(e), status)})
	}
	m.fail(status)
	if e.Owner == OwnerNone && m.early == "" {
		m.early = m.describe(e) + " without calling MPI_Init"
		out = append(out, WatchJoin{})
	}
	return out
}

// joined: a process uses MPI although another has ended without. They form one MPI_COMM_WORLD, and
// would wait for ever.
func (m *Machine) joined(now time.Duration) []Action {
	if m.early == "" || m.ending {
		return nil
	}
	if m.cfg.OnDeath == Continue {
		m.early = ""
		return nil
	}
	m.fail(StatusFailed)
	text := fmt.Sprintf(
		"%s, but others have called MPI_Init; the job is ended with exit status %d.", m.early,
		m.status)
	return m.end(now, SIGTERM, m.cfg.Grace, Say{text})
}

// signalled: the user's signals end the job, at once when repeated; other signals are forwarded.
func (m *Machine) signalled(signal int, now time.Duration) []Action {
	switch signal {
	case SIGHUP, SIGINT, SIGTERM:
	default:
		return []Action{Send{signal}}
	}
	if m.ending {
		if m.signalAt == 0 || now-m.signalAt >= SameSignal {
			m.hurried = true
			if m.stage == 0 {
				m.deadline = now
			}
		}
		return nil
	}
	m.signalAt = max(now, 1)
	m.fail(128 + signal)
	if !m.cfg.Leads {
		return m.end(now, signal, GraceSignal)
	}
	return m.end(now, signal, GraceSignal,
		Say{fmt.Sprintf(
			"the spxrun that leads the system, on host %s, has got signal %d (%s), and with it "+
				"the system is ended; exit status %d.",
			m.cfg.Host, signal, signalName(signal), m.status)})
}

func (m *Machine) frontLost(now time.Duration) []Action {
	if m.cfg.Detach {
		return nil
	}
	m.hurried = true
	if m.ending && m.stage == 0 {
		m.deadline = min(m.deadline, now+m.cfg.Grace)
	}
	m.fail(128 + SIGKILL)
	return m.end(now, SIGTERM, m.cfg.Grace)
}

// describe names the process that ended and how: the beginning of a line.
func (m *Machine) describe(e Ended) string {
	var b strings.Builder
	p := &m.procs[e.Proc]
	fmt.Fprintf(&b, "%s (pid %d on %s) ", p.name, p.pid, cmp.Or(p.host, m.cfg.Host))
	if e.Wait.Unknown {
		b.WriteString("has ended")
	} else if e.Wait.Signal != 0 {
		fmt.Fprintf(&b, "was killed by signal %d (%s)", e.Wait.Signal,
			signalName(e.Wait.Signal)+lack[e.Wait.Memory])
		if p.ended {
			b.WriteString(" because it hung")
		}
		if e.Wait.Core {
			b.WriteString(", core dumped,")
		}
	} else {
		fmt.Fprintf(&b, "exited with status %d", e.Wait.Code)
	}
	switch {
	case e.Owner == OwnerInit && e.Call != "":
		fmt.Fprintf(&b, " in %s", e.Call)
	case e.Owner == OwnerInit && e.Wait.Signal == 0:
		b.WriteString(" without calling MPI_Finalize")
	case e.Owner == OwnerAborted:
		b.WriteString(" in MPI_Abort")
	case e.Owner == OwnerFinalized:
		b.WriteString(" after MPI_Finalize")
	case e.Owner == OwnerNone && e.OtherMPI:
		b.WriteString(" before MPI_Init")
	}
	return strings.TrimSuffix(b.String(), ",")
}

// lack follows the name of SIGKILL.
var lack = map[Memory]string{
	MemoryPerhaps: ", perhaps by the kernel because memory was used up: see dmesg",
	MemoryUsedUp: ", by the kernel because memory was used up, the host's or what its control " +
		"group may have",
}

// others names processes that have ended as well: the text after the first one.
func (m *Machine) others(list []int) string {
	var names []string
	for _, i := range list {
		if i >= 0 && i < len(m.procs) {
			p := &m.procs[i]
			names = append(names, fmt.Sprintf("%s (pid %d on %s)", p.name, p.pid,
				cmp.Or(p.host, m.cfg.Host)))
		}
	}
	if len(names) == 0 {
		return ""
	}
	return ", and at about the same time " + strings.Join(names, ", ")
}

// signalNames are the signals of Linux by number, from 1.
var signalNames = []string{
	1: "SIGHUP", "SIGINT", "SIGQUIT", "SIGILL: illegal instruction", "SIGTRAP", "SIGABRT: abort",
	"SIGBUS: bus error", "SIGFPE: arithmetic error", "SIGKILL", "SIGUSR1",
	"SIGSEGV: invalid memory access",
	"SIGUSR2", "SIGPIPE", "SIGALRM", "SIGTERM", "SIGSTKFLT", "SIGCHLD", "SIGCONT", "SIGSTOP",
	"SIGTSTP",
	"SIGTTIN", "SIGTTOU", "SIGURG", "SIGXCPU: out of processor time", "SIGXFSZ: file too large",
	"SIGVTALRM",
	"SIGPROF", "SIGWINCH", "SIGIO", "SIGPWR", "SIGSYS: bad system call",
}

func signalName(n int) string {
	if n > 0 && n < len(signalNames) {
		return signalNames[n]
	}
	return "real-time"
}
