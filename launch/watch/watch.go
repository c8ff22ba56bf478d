// Package watch decides which processes of a host hang (MPI/SPx: faults of processors and of
// applications, transient and permanent; docs/systems.md, "What hangs"). It owns the observations
// of each process so far, and the limits; the treatment of a hang is up to launch/job.
//
// It is pure: Look takes the agent's observations of the processes, with the time, and returns the
// changes. Times are added up between looks, each of which counts for so long as looks are apart
// and no longer: when the agent itself has not run, nothing is to be concluded from that.
//
// A process hangs
//   - that is stopped, for longer than Limits.Still;
//   - that neither communicates nor uses its processor for so long, while messages from peers wait
//     for it: its control group is frozen, say, or it waits outside of MPI;
//   - that uses its processor, and has not communicated for longer than Limits.Silent, while
//     messages wait for it: an endless loop, perhaps. A long computation looks the same, so this
//     limit is the user's to set, and there is none without;
//   - that has announced how long it will be silent (MPISP_Alive), and was silent for longer,
//     whether messages wait or not. Until then only being stopped counts.
//
// A process that sleeps in a call of MPI waits for its peers, and does not hang; nor does one that
// a debugger holds. Time in which it waits for a processor does not count: it is runnable.
package watch

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Every is how far looks are apart where the shortest of all limits is this.
func Every(shortest time.Duration) time.Duration {
	return min(max(shortest/looksEach, leastEvery), mostEvery)
}

const (
	looksEach  = 20
	leastEvery = 20 * time.Millisecond
	mostEvery  = time.Second

	// of Still: after that part of it another process is chosen, which costs nothing should this
	// one go on
	slowShare = 10
	slowLooks = 2 // but this was seen more than once

	// less than this part of the time on a processor is none: runtimes look around also in a
	// process that does nothing
	idleShare = 20
)

// Limits are those of one process. 0: none.
type Limits struct{ Still, Silent time.Duration }

// A Sight is what was seen of a process.
type Sight struct {
	Proc    int
	Pid     int
	Limits  Limits
	Stopped bool          // by a signal
	Held    bool          // by a debugger
	Used    time.Duration // of processors, so far
	Kept    time.Duration // since the look before, for how long it waited for one
	// it is between MPI_Init and MPI_Finalize; all that follows counts then alone
	Joined  bool
	Moves   uint64 // changes with all that it does for MPI
	Sleeps  bool   // in a call of MPI, and was not woken
	Pending bool   // messages wait for it
	// Its announcements of its own silence: their number, the duration (0: withdrawn), and Moves
	// then.
	Promises   uint32
	Promise    time.Duration
	PromisedAt uint64
}

// States of a process that are reported.
type State int

// States.
const (
	Works State = iota
	Slow        // it may hang: another one is chosen where there is one
	Hangs
)

// A Change is the new state of a process.
type Change struct {
	Proc int
	To   State
	Why  string        // of Slow and Hangs: how, as the end of "it ..."
	For  time.Duration // how long it has done so; of Works: how long it had
}

// process is the state kept of a process.
type process struct {
	pid     int
	used    time.Duration
	moves   uint64
	still   time.Duration // it has not run
	silent  time.Duration // it has not communicated while messages waited
	looks   int           // in turn, in which it did not run
	state   State
	told    Change        // the last report
	since   time.Duration // then: how long it has been so
	pledge  uint32        // the promise that silence is measured by
	pledged time.Duration // how long ago it was made
}

// Machine watches the processes of a host.
type Machine struct {
	every time.Duration
	last  time.Duration // of the last look; -1: there was none
	procs map[int]*process
}

// New makes one that is to look once in every such time.
func New(every time.Duration) *Machine {
	return &Machine{every: every, last: -1, procs: map[int]*process{}}
}

// Due is when to look next.
func (m *Machine) Due() time.Duration {
	if m.last < 0 {
		return 0
	}
	return m.last + m.every
}

// Forget restarts with the next observations, e.g. after the user has stopped all processes.
func (m *Machine) Forget(now time.Duration) {
	m.last = now
	for _, p := range m.procs {
		p.still, p.silent, p.looks = 0, 0, 0
	}
}

// Told returns the last report of each process that had one.
func (m *Machine) Told() (out []Change) {
	for _, p := range m.procs {
		if p.told != (Change{}) {
			out = append(out, p.told)
		}
	}
	slices.SortFunc(out, func(x, y Change) int { return cmp.Compare(x.Proc, y.Proc) })
	return out
}

// Look takes the observations of all living processes.
func (m *Machine) Look(sights []Sight, now time.Duration) (out []Change) {
	passed := m.every
	if m.last >= 0 {
		// there is no information on the time between two looks that are too far apart
		passed = min(now-m.last, 2*m.every)
	}
	m.last = now
	seen := map[int]*process{}
	for i := range sights {
		s := &sights[i]
		p := m.procs[s.Proc]
		if p == nil || p.pid != s.Pid {
			p = &process{pid: s.Pid, used: s.Used, moves: s.Moves}
		} else if c, ok := p.look(s, passed); ok {
			out = append(out, c)
		}
		seen[s.Proc] = p
	}
	m.procs = seen
	return out
}

// look takes what was seen of one process, passed after the look before.
func (p *process) look(s *Sight, passed time.Duration) (c Change, changed bool) {
	moved := s.Moves != p.moves
	idle := s.Used-p.used < passed/idleShare
	p.used, p.moves = s.Used, s.Moves
	passed = max(0, passed-s.Kept)
	promise, broken := p.promise(s, passed)
	works := moved || s.Sleeps || !s.Pending || !s.Joined
	switch {
	case s.Stopped:
	case s.Held:
		idle = false
	case works || promise && !broken:
		p.silent = 0
	default:
		p.silent += passed
	}
	if s.Stopped || idle && !works && !promise {
		p.still, p.looks = p.still+passed, p.looks+1
	} else {
		p.still, p.looks = 0, 0
	}
	to, why, how := Works, "", time.Duration(0)
	limit := s.Limits.Still
	switch {
	case limit > 0 && p.still >= limit && s.Stopped:
		to, why, how = Hangs, "is stopped", p.still
	case limit > 0 && p.still >= limit:
		to, why, how = Hangs, "does not run, and messages wait for it", p.still
	case broken:
		to, why, how = Hangs, fmt.Sprintf(
			"has said by MPISP_Alive that it would communicate again within %v, and has not",
			s.Promise), p.pledged
	case !promise && s.Limits.Silent > 0 && p.silent >= s.Limits.Silent:
		to, why, how = Hangs, "computes and does not communicate, and messages wait for it",
			p.silent
	case p.state == Hangs && (s.Stopped || s.Held):
		return c, false
	case limit > 0 && p.still >= limit/slowShare && p.looks >= slowLooks:
		to, how = Slow, p.still
	}
	if p.state == Works {
		p.since = how
	} else {
		p.since = max(p.since+passed, how)
	}
	if to == p.state || p.state == Hangs && to == Slow {
		return c, false
	}
	if to == Works {
		how = p.since
	}
	p.state, p.told = to, Change{s.Proc, to, why, how}
	return p.told, true
}

// promise reports whether the process has announced how long it will be silent, and is; and whether
// that time is over. An announcement ends when it communicates.
func (p *process) promise(s *Sight, passed time.Duration) (holds, broken bool) {
	if s.Promises != p.pledge {
		p.pledge, p.pledged = s.Promises, 0
	} else {
		p.pledged += passed
	}
	if s.Promises == 0 || s.Promise == 0 || s.Moves != s.PromisedAt || s.Sleeps || !s.Joined {
		return false, false
	}
	return true, !s.Stopped && !s.Held && p.pledged >= s.Promise
}
