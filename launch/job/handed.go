package job

import "time"

// The state of a machine that an agent needs to take over from another one (package launch/follow).

// ProcState is the machine's state of a process.
type ProcState struct {
	Pid    int
	Alive  bool
	Ending bool // the job ends it, which is not printed
}

// Procs are the processes by number.
func (m *Machine) Procs() []ProcState {
	out := make([]ProcState, len(m.procs))
	for i := range m.procs {
		p := &m.procs[i]
		out[i] = ProcState{p.pid, p.alive, p.endedByJob}
	}
	return out
}

// Lives reports whether a process lives, as known to the machine.
func (m *Machine) Lives(proc int) bool { return m.isProc(proc) && m.procs[proc].alive }

// Started reports whether all processes have been made that the job begins with.
func (m *Machine) Started() bool { return m.started }

// Looking: the machine waits for Looked.
func (m *Machine) Looking() bool { return m.looking && !m.finished }

// Now is when the machine was stepped last.
func (m *Machine) Now() time.Duration { return m.now }

// Finished is the exit status of a job that is over.
func (m *Machine) Finished() (status int, ok bool) { return m.outcome(), m.finished }

// outcome is the exit status if the job ended now.
func (m *Machine) outcome() int {
	if m.status == 0 && m.death != 0 && !m.succeeded {
		return m.death & 255
	}
	return m.status & 255
}
