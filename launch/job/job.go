// Package job decides about a job: the effect of a process's end on the other processes, when the
// job is over, and its exit status (MPI-5.0, 11.5 and 9.7 for MPI_Abort; the rules are in
// docs/running.md).
//
// It is a pure state machine: the shell around it (launch/agent) reports events with the time since
// the start, performs the actions that Step returns, in order, and calls Step with a Tick when
// Deadline has come. No process, clock or file is touched here.
package job

import (
	"cmp"
	"fmt"
	"time"
)

// Grace periods between asking processes to end and killing them.
const (
	GraceFailure = 250 * time.Millisecond // after a death, an abort, a timeout
	// after the user's signal: programs may want to save their state
	GraceSignal = 3 * time.Second
	GiveUp      = 5 * time.Second // after SIGKILL: what still exists cannot be ended
	// a signal repeated so soon is the same one: timeout(1) sends it to spxrun and to its group
	SameSignal = 100 * time.Millisecond
)

// Exit statuses that are not a process's own.
const (
	StatusFailed  = 1
	StatusTimeout = 124
)

// ReportLimit is how long a report may take before the job is ended without it.
const ReportLimit = 10 * time.Second

// OnDeath is the policy of --on-death.
type OnDeath int

const (
	Auto     OnDeath = iota // end the job, unless a survivor's error handler returns
	Kill                    // end the job
	Continue                // notify the survivors
)

// Config is the job's initial configuration.
type Config struct {
	Host    string // this host's name, for messages
	Procs   int    // processes of the job
	OnDeath OnDeath
	// deaths of which survivors are notified count in the exit status, as under Hydra
	CountDeaths bool
	Detach      bool          // the death of spxrun does not end the job
	Timeout     time.Duration // 0: none
	Report      bool          // at the timeout all processes are inspected first
	HangAfter   time.Duration // processes that wait for so long in one call are reported; 0: never
	Grace       time.Duration // between SIGTERM and SIGKILL after a failure; 0: GraceFailure
	Parts       []Part        // of a system of clusters; nil: the job is one whole
	// the system's master decides about clusters that cannot continue (Ask)
	Masters bool
	// other spxruns have started clusters of it: their users are sent the reason of its end, as
	// they cannot see events here
	Leads bool
}

// Owner is a process's state, as published by itself.
type Owner int

const (
	OwnerNone      Owner = iota // never called MPI_Init
	OwnerInit                   // between MPI_Init and MPI_Finalize
	OwnerFinalized              // after MPI_Finalize
	OwnerAborted                // called MPI_Abort, or had a fatal error
)

// Wait is how a process ended: by a signal, or with an exit code. Of one that is another's child it
// is Unknown.
type Wait struct {
	Code    int
	Signal  int
	Core    bool
	Unknown bool
	Memory  Memory // of one that SIGKILL has ended
}

// Memory is the kernel's out-of-memory accounting for a process ended by SIGKILL.
type Memory int

const (
	MemoryUnknown Memory = iota // nothing points to a lack of memory
	// meanwhile a process of this host has been ended for lack of memory
	MemoryPerhaps
	MemoryUsedUp // ... one of this job's control group
)

// Status is the exit status that a shell shows for w.
func (w Wait) Status() int {
	switch {
	case w.Unknown:
		return StatusFailed
	case w.Signal != 0:
		return 128 + w.Signal
	}
	return w.Code
}

// An Event is what happened: one of the types below.
type Event interface{}

// Started: the process exists.
type Started struct {
	Proc, Pid int
	Host      string // for messages; empty: that of Config
	Part      int    // from 1; 0: the job has none
	Rank      int    // in its part
}

// Spawned: a process was added to the running job. Its number may be that of one that has ended.
type Spawned struct {
	Proc, Pid int
	Name      string // for messages: "rank 2 of world 3"
	Host      string // the same; empty: that of Config
	Part      int    // from 1, of a part that is started again; 0: none
	Rank      int    // in its part
}

// NotStarted: a process could not be made. No more are started then.
type NotStarted struct {
	Proc   int
	Text   string // why, and what to do
	Status int
}

// Split: more than half of the job's hosts have been silent for too long, and may go on without
// this one.
type Split struct{ Text string } // why, and what to do

// AllStarted: no more processes will be started.
type AllStarted struct{}

// Ended: a process has ended.
type Ended struct {
	Proc  int
	Wait  Wait
	Owner Owner
	Fault Fault
	// of a part with Cold: which of these is to be started in its place, if one is, 1 + its number;
	// 0: the first that is left; -1: none can
	Place    int
	Call     string // the MPI function that it waited in, or empty
	Returns  bool   // a process that lives has an error handler that returns
	OtherMPI bool   // another process has called MPI_Init
	Aborted  bool   // some process has called MPI_Abort
	Code     int    // ... with this code
	// Spawning: the parents of the process have not met it yet. They are notified, and no other
	// process is concerned.
	Spawning bool
	// Connected are the processes that live and are connected with this one (MPI-5.0, 11.10.4):
	// MPI_Abort ends them, and only them.
	Connected []int
	// Others are processes, on any host, that this one has ended by MPI_Abort on a communicator of
	// a part of the job.
	Others []int
	// Also are other processes that were found to have ended when this one was: their order is not
	// known. A launcher may have ended them because of one of them.
	Also []int
}

// ExternalAborted: a process of another job, connected with some of this one, has called MPI_Abort.
type ExternalAborted struct {
	Name      string
	Connected []int
}

// Joined: a process has called MPI_Init. Reported while WatchJoin is in effect.
type Joined struct{}

// Signalled: spxrun or the agent has got a signal.
type Signalled struct{ Signal int }

// FrontLost: spxrun is gone.
type FrontLost struct{}

// Reported: the report requested by Report has been printed.
type Reported struct{}

// Looked answers Look.
type Looked struct {
	Waited time.Duration // the longest wait of a process in one call
	Hangs  bool          // some have waited that long, and can never go on
}

// Tick: time has passed.
type Tick struct{}

// An Action is what the shell has to do: one of the types below.
type Action interface{}

// Publish announces an end to the other processes, in the memory file: a death, or an exit of no
// concern to them.
type Publish struct {
	Proc int
	Dead bool
	Wait Wait
}

// Say prints one line on spxrun's standard error.
type Say struct{ Text string }

// Where prints in which MPI calls the processes are.
type Where struct{}

// Report prints what the processes do, and why they are blocked; then comes Reported.
type Report struct{ Why string }

// Look requests how long processes have waited: Looked.
type Look struct{}

// Send sends a signal to all processes of the job, with their process groups.
type Send struct{ Signal int }

// SendTo sends a signal to some processes, with their process groups.
type SendTo struct {
	Procs  []int
	Signal int
}

// WatchJoin requests Joined, as soon as any process has called MPI_Init.
type WatchJoin struct{}

// Finish: the job is over; leftovers of its processes are to be ended, and the
// output drained.
type Finish struct{ Status int }

type process struct {
	pid        int
	host       string
	alive      bool
	name       string
	endedByJob bool // ended by the job itself: no notification
	hangs      bool // it hangs, and that was reported
	ended      bool // for that
	part       int  // from 1; 0: none
}

// Machine is the state of a job.
type Machine struct {
	cfg     Config
	procs   []process
	started bool // no more will be started
	alive   int

	status    int  // the first that is not zero, without deaths of which survivors were notified
	death     int  // status of the first death of which survivors were notified
	succeeded bool // a process has ended normally
	// a process has ended without calling MPI: what to print if other processes turn out to use it
	early string

	// when Reported comes: the job is ended, with this text; empty: it continues
	endText  string
	reportBy time.Duration // then: its deadline
	looking  bool          // for Looked
	lookAt   time.Duration // when to look next
	told     bool          // of processes that wait too long

	ending   bool
	signalAt time.Duration // while ending by a signal: when that came
	hurried  bool          // the user does not want to wait
	deadline time.Duration // when to be harder; valid while ending
	stage    int           // while ending: 0 terminating, 1 killed, 2 abandoned
	finished bool

	now    time.Duration // of the last event
	parts  []part
	added  []Part // of these, those that Config does not have: the last
	coming int    // clusters that are about to be attached
	// all that I/O processes serve have ended: when these are; -1: they were
	serveUntil time.Duration
}

// New makes the machine of a job that is about to start, at time 0.
func New(cfg Config) *Machine {
	cfg.Grace = cmp.Or(cfg.Grace, GraceFailure)
	m := &Machine{cfg: cfg, procs: make([]process, cfg.Procs), lookAt: cfg.HangAfter}
	for _, p := range cfg.Parts {
		m.parts = append(m.parts, newPart(p))
	}
	return m
}

// Ending reports whether the job is being ended: no more processes are to be started.
func (m *Machine) Ending() bool { return m.ending }

// Hurried reports whether the end must not wait for anything, such as readers of the output: the
// user has requested it twice, or is gone.
func (m *Machine) Hurried() bool { return m.hurried }

// Status is the first exit status so far that is not zero, without deaths of which survivors were
// notified.
func (m *Machine) Status() int { return m.status }

// Alive is the number of processes that exist.
func (m *Machine) Alive() int { return m.alive }

// Deadline is when the machine wants the next Tick, if ok.
func (m *Machine) Deadline() (at time.Duration, ok bool) {
	switch {
	case m.finished:
		return 0, false
	case m.ending:
		return m.deadline, true
	case m.endText != "":
		return m.reportBy, true
	}
	at, ok = m.cfg.Timeout, m.cfg.Timeout > 0
	if part := m.partDeadline(); part > 0 && (!ok || part < at) {
		at, ok = part, true
	}
	if m.cfg.HangAfter > 0 && !m.looking && (!ok || m.lookAt < at) {
		at, ok = m.lookAt, true
	}
	return at, ok
}

// Step takes an event at time now and returns what is to be done.
func (m *Machine) Step(event Event, now time.Duration) []Action {
	if m.finished {
		return nil
	}
	m.now = now
	var out []Action
	switch e := event.(type) {
	case Started:
		rank := e.Proc
		if e.Part > 0 {
			rank = e.Rank
		}
		m.procs[e.Proc] = process{pid: e.Pid, host: e.Host, alive: true,
			name: fmt.Sprintf("rank %d", rank), part: e.Part}
		m.alive++
		m.join(e.Proc, e.Rank)
	case Spawned:
		for e.Proc >= len(m.procs) {
			m.procs = append(m.procs, process{})
		}
		m.procs[e.Proc] = process{pid: e.Pid, host: e.Host, alive: true, name: e.Name, part: e.Part}
		m.alive++
		m.join(e.Proc, e.Rank)
	case NotStarted:
		m.fail(e.Status)
		out = m.end(now, SIGTERM, m.cfg.Grace, Say{e.Text})
	case Split:
		m.fail(StatusFailed)
		out = m.end(now, SIGTERM, m.cfg.Grace, Say{e.Text})
	case AllStarted:
		m.allStarted()
	case Ended:
		out = m.ended(e, now)
	case ExternalAborted:
		out = m.abort(e.Connected, StatusFailed, now, e.Name)
	case TookOver:
		out = m.tookOver(e)
	case Manned:
		out = m.manned(e)
	case Placed:
		out = m.placed(e, now)
	case NotRestarted:
		out = m.notRestarted(e, now)
	case Inherited:
		m.inherited()
	case Hung:
		out = m.hung(e)
	case Slowed:
		out = m.slowed(e)
	case WentOn:
		out = m.wentOn(e)
	case Grown:
		m.grown(e)
	case Depart:
		out = m.depart(e, now)
	case Coming:
		m.comes(e)
	case Attached:
		m.attached(e)
	case Detached:
		out = m.detached(e)
	case Judged:
		out = m.judged(e, now)
	case PartSignalled:
		out = m.partSignalled(e, now)
	case Joined:
		out = m.joined(now)
	case Signalled:
		out = m.signalled(e.Signal, now)
	case FrontLost:
		out = m.frontLost(now)
	case Reported:
		out = m.reported(now)
	case Looked:
		out = m.looked(e, now)
	case Tick:
	default:
		panic(fmt.Sprintf("job: unknown event %T", event))
	}
	out = append(out, m.time(now)...)
	return append(out, m.over()...)
}

// Numbers of the signals that the machine itself sends or interprets: those of Linux.
const (
	SIGHUP  = 1
	SIGINT  = 2
	SIGKILL = 9
	SIGTERM = 15
)

// end begins to end the job, once; say is printed only then.
func (m *Machine) end(now time.Duration, signal int, grace time.Duration, say ...Action) []Action {
	if m.ending {
		return nil
	}
	m.ending, m.deadline = true, now+grace
	return append(say, Send{signal})
}

// fail records a status; the first that is not zero stays. The exit status has eight bits.
func (m *Machine) fail(status int) {
	if m.status == 0 && status != 0 {
		m.status = cmp.Or(status&255, StatusFailed)
	}
}

// time does what is due.
func (m *Machine) time(now time.Duration) []Action {
	out := m.timeParts(now)
	switch {
	case m.ending && now < m.deadline:
		return out
	case m.ending:
	case m.endText != "": // unless the report does not come
		if now >= m.reportBy {
			out = append(out, m.reported(now)...)
		}
		return out
	case m.cfg.Timeout > 0 && now >= m.cfg.Timeout:
		m.fail(StatusTimeout)
		text := fmt.Sprintf("the job ran longer than --timeout=%v s and was ended; exit status %d",
			m.cfg.Timeout.Seconds(), StatusTimeout)
		if m.cfg.Report {
			return append(out, m.report(fmt.Sprintf("--timeout=%v s is over",
				m.cfg.Timeout.Seconds()), text, now)...)
		}
		return append(append(out, Where{}), m.end(now, SIGTERM, m.cfg.Grace, Say{text})...)
	case m.cfg.HangAfter > 0 && !m.looking && now >= m.lookAt:
		m.looking = true
		return append(out, Look{})
	default:
		return out
	}
	if m.stage == 0 {
		m.stage, m.deadline = 1, now+GiveUp
		return append(out, Send{SIGKILL})
	}
	m.stage, m.started = 2, true
	return out
}

// report requests a report, after which the job is ended with endText, or continues if that is
// empty.
func (m *Machine) report(why, endText string, now time.Duration) []Action {
	m.endText, m.reportBy = endText, now+ReportLimit
	return []Action{Report{why}}
}

func (m *Machine) reported(now time.Duration) []Action {
	text := m.endText
	if m.endText = ""; text == "" {
		return nil
	}
	return m.end(now, SIGTERM, m.cfg.Grace, Say{text})
}

// Between two looks, in parts of HangAfter.
const looksEach = 4

// looked handles how long processes have waited. Those that wait too long are reported once; when
// they can never go on, the job is ended.
func (m *Machine) looked(e Looked, now time.Duration) []Action {
	m.looking, m.lookAt = false, now+max(m.cfg.HangAfter/looksEach, 50*time.Millisecond)
	waits := e.Waited >= m.cfg.HangAfter
	was := m.told
	m.told = waits
	switch {
	case m.ending || m.endText != "" || !waits:
		return nil
	case e.Hangs:
		m.fail(StatusTimeout)
		return m.report(fmt.Sprintf(
			"processes have waited for --hang-after=%v s, and can never go on",
			m.cfg.HangAfter.Seconds()),
			fmt.Sprintf("the job hangs and was ended; exit status %d", StatusTimeout), now)
	case was:
		return nil
	}
	return []Action{Report{fmt.Sprintf("a process has waited for --hang-after=%v s in one call",
		m.cfg.HangAfter.Seconds())}}
}

// over finishes the job when none of its processes lives.
func (m *Machine) over() []Action {
	gaveUp := m.ending && m.stage == 2 && m.alive > 0
	if m.alive > 0 && !gaveUp || !(m.started || m.ending) || (m.again() || m.coming > 0) &&
		!m.ending {
		return nil
	}
	m.finished = true
	var out []Action
	if gaveUp {
		out = append(out, Say{fmt.Sprintf(
			"%d processes of the job cannot be ended: they are held in the kernel", m.alive)})
	}
	return append(out, Finish{m.outcome()})
}
