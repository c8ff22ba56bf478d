package takeover

import "fmt"

// A Shell is the interface of a Process to its operating-system process. Every function may wait
// for other processes, and meanwhile processes may die; those that return nothing cannot fail. None
// is called by two threads at once.
type Shell interface {
	// Decide has all living processes of the cluster meet, from any state. done: this one no longer
	// needs the others. home: all that have a rank are there, or were done, and all that live are
	// done. Nothing has changed yet.
	Decide(done bool) (home bool, err error)
	// Form gives the ranks of dead processes to standbys, among those that have met. It calls
	// Process.Together at those that are to have ranks, again if one of them dies. works: this
	// process has a rank now.
	Form() (works bool, err error)
	// Join is called by a process that was started after deaths: it waits for the members that form
	// without it, and forms with them.
	Join() (works bool, err error)
	// Await waits until other processes meet, or no process with a rank lives and at least one of
	// them has died.
	Await()
	// Late reports whether this process was started after deaths.
	Late() bool
	// Died reports whether a process is known to have died that has a rank.
	Died() bool
	// Empty waits until no process has a rank: each of them has died, or has left.
	Empty()

	// Working returns how many processes have a rank in what Form makes, within Together.
	Working() int
	// Fetch gets this process, which is about to have its first rank, the log of the process that
	// had it, unless it is at hand; within Together.
	Fetch() error
	// Exchange gives each process that is to have a rank the Statements of all; within Together.
	Exchange() error
	// Apply gives the communicators their members, as in the last Exchange. It returns the
	// number of ranks that were taken over.
	Apply() (replaced int, err error)
	// Lack returns the error for ranks that have no process: so many of them.
	Lack(ranks int) error

	// Prepare has this process and the others of the cluster share what a standby needs of a rank
	// that it takes over.
	Prepare() error
	// Begin lets this process, which was a standby, begin with the rank that it has now.
	Begin() error
	// Settle waits until all that this process has sent was accepted.
	Settle()
	// Publish notifies the other processes of this host whether this one is done with its work.
	Publish(done bool)
	// Hold keeps messages from being delivered while it is on: which process has which rank
	// changes.
	Hold(on bool)
	// Met is called after a meeting, with no meeting under way: state that depends on the living
	// processes is to be updated.
	Met()
	// Fail ends the job: there is no way on.
	Fail(err error)
	// Exit ends this process, a standby that is not needed any more. It does not return.
	Exit()
}

// A Process is one process's part in the takeovers of its cluster: when and how often it meets the
// others, and when it leaves. The order of its steps is such that each process may be killed
// between any two of them (sim/takeover.go).
type Process struct {
	sh      Shell
	ranks   int  // of the cluster
	standby bool // this process began without a rank
	taken   bool // it has had one since
	meeting bool // in MeetAll
	working int  // of the last Together
}

// NewProcess returns the part of a process in a cluster with so many ranks. standby: it begins
// without one.
func NewProcess(sh Shell, ranks int, standby bool) *Process {
	return &Process{sh: sh, ranks: ranks, standby: standby}
}

// Standby reports whether the process began without a rank.
func (p *Process) Standby() bool { return p.standby }

// Together is what those do that are to have ranks, before that counts. Unless there are too few,
// they exchange their statements.
func (p *Process) Together() error {
	if p.working = p.sh.Working(); p.working < p.ranks {
		return nil
	}
	if p.standby && !p.taken { // the other ranks wait for what follows, and so they answer
		if err := p.sh.Fetch(); err != nil {
			p.sh.Fail(err)
			return err
		}
	}
	return p.sh.Exchange()
}

// formed is the end of Form and Join.
func (p *Process) formed(works bool, err error) (bool, int, error) {
	if err != nil || !works {
		return false, 0, err
	}
	if p.working < p.ranks {
		return false, 0, p.sh.Lack(p.ranks - p.working)
	}
	replaced, err := p.sh.Apply()
	p.taken = true
	return err == nil, replaced, err
}

// meet is one meeting. home: all that live are done, and leave. works: this
// process has a rank. replaced: so many ranks were taken over.
func (p *Process) meet(done bool) (home, works bool, replaced int, err error) {
	if home, err = p.sh.Decide(done); err != nil || home {
		return home, false, 0, err
	}
	p.sh.Hold(true)
	defer p.sh.Hold(false)
	works, replaced, err = p.formed(p.sh.Form())
	return false, works, replaced, err
}

// StandBy is a process's part in MPI_Init: a standby returns when it has a rank, if ever.
func (p *Process) StandBy() error {
	if err := p.sh.Prepare(); err != nil || !p.standby || p.taken {
		return err
	}
	works, home, err := false, false, error(nil)
	if p.sh.Late() { // the other ranks have begun already
		works, _, err = p.formed(p.sh.Join())
	}
	for err == nil && !works {
		p.sh.Await()
		if home, works, _, err = p.meet(true); home {
			p.rest()
			return nil
		}
	}
	if err != nil {
		return err
	}
	return p.sh.Begin()
}

// rest is the end of a standby: all ranks leave. What becomes of them is of no interest any more;
// it ends as they do, or by its agent.
func (p *Process) rest() {
	p.sh.Empty()
	p.sh.Exit()
}

// Notice is called when processes may have died, or other processes have begun to meet, within any
// MPI call of the program. A process that is called although none with a rank is dead takes part
// when it leaves: living processes do not need it before.
func (p *Process) Notice() {
	if !p.meeting && p.sh.Died() {
		p.meetAll(false)
	}
}

// meetAll meets the others until no process with a rank is dead, as more may die meanwhile.
func (p *Process) meetAll(done bool) (home bool) {
	p.meeting = true
	defer func() { p.meeting = false }()
	var err error
	for again := true; again; again = err == nil && !home && p.sh.Died() {
		home, _, _, err = p.meet(done)
	}
	if err != nil {
		p.sh.Fail(fmt.Errorf("no standby takes the place of one that died: %w", err))
	}
	p.sh.Met()
	return home
}

// Leave is a rank's part in MPI_Finalize, with transparent takeover: the ranks leave together. As
// long as one of them has something to do, all may be needed for it. A process that dies after that
// is not replaced: it was done.
func (p *Process) Leave() {
	for {
		p.sh.Settle()
		p.sh.Publish(true) // before other processes see it, and have left
		if p.meetAll(true) {
			return
		}
		p.sh.Publish(false)
	}
}

// Repair is one meeting requested by the program (MPISP_Repair). It returns the number of
// ranks that were taken over.
func (p *Process) Repair() (replaced int, err error) {
	_, _, replaced, err = p.meet(false)
	return replaced, err
}
